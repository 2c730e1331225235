/* The text of a template as tokens. What stands between tags loses the spaces that tags ask to lose: a block takes the
 * newline behind it, and the spaces before it if nothing else stands in its line (trim_blocks and lstrip_blocks), and a
 * minus takes all space on its side. */
#include <utf8proc.h>

#include "base/allocation.h"
#include "template/tree.h"

#define BRACKETS 200
#define NAME_BYTES 200

typedef struct lexer {
    sb_jinja *jinja;
    sb_jinja_tokens *tokens;
    const char *source;
    size_t bytes, at;
    int line;
    bool line_begins; /* what was read last ended with a newline, or nothing was */
    int depth;
    char closing[BRACKETS]; /* the brackets that are open */
} lexer;

/* ---- helpers ---- */

static bool at_text(const lexer *lexer, size_t at, const char *text) {
    size_t bytes = strlen(text);
    return at <= lexer->bytes && lexer->bytes - at >= bytes && memcmp(lexer->source + at, text, bytes) == 0;
}

static char at_byte(const lexer *lexer, size_t at) {
    return at < lexer->bytes ? lexer->source[at] : '\0';
}

static size_t skip_space(const lexer *lexer, size_t at) {
    return at < lexer->bytes ? at + sb_jinja_leading_space(lexer->source + at, lexer->bytes - at) : at;
}

static int count_lines(const char *data, size_t bytes) {
    int lines = 0;
    for (size_t i = 0; i < bytes; i++)
        lines += data[i] == '\n';
    return lines;
}

static sb_status fail_here(lexer *lexer, sb_status status, const char *what) {
    lexer->jinja->line = lexer->line;
    return sb_jinja_fail(lexer->jinja, status, "%s", what);
}

static sb_status add(lexer *lexer, sb_jinja_token_kind kind, sb_jinja_value value, const char *sign) {
    sb_jinja_tokens *tokens = lexer->tokens;
    if (!sb_grow((void **)&tokens->items, &tokens->capacity, tokens->count + 1, sizeof *tokens->items))
        return sb_fail_memory(lexer->jinja->error, sizeof *tokens->items);
    sb_jinja_token token = {.kind = kind, .line = lexer->line, .value = value};
    memcpy(token.sign, sign, strlen(sign));
    tokens->items[tokens->count++] = token;
    return SB_OK;
}

static sb_status add_text(lexer *lexer, sb_jinja_token_kind kind, const char *data, size_t bytes) {
    sb_jinja_value value;
    SB_TRY(sb_jinja_text_over(lexer->jinja, data, bytes, &value));
    return add(lexer, kind, value, "");
}

/* Goes on to `end`, and counts lines on the way. */
static void advance(lexer *lexer, size_t end) {
    lexer->line += count_lines(lexer->source + lexer->at, end - lexer->at);
    lexer->line_begins = end > 0 && lexer->source[end - 1] == '\n';
    lexer->at = end;
}

/* ---- between tags ---- */

/* The data up to `end`, where a tag with that sign begins; `strips`: it is a tag that lstrip_blocks is for. */
static sb_status add_data(lexer *lexer, size_t end, char sign, bool strips) {
    const char *data = lexer->source + lexer->at;
    size_t bytes = end - lexer->at, line = end - lexer->at;
    if (sign == '-') {
        bytes -= sb_jinja_trailing_space(data, bytes);
    } else if (sign != '+' && strips) {
        while (line > 0 && data[line - 1] != '\n')
            line--;
        if ((line > 0 || lexer->line_begins) && sb_jinja_leading_space(data + line, bytes - line) == bytes - line)
            bytes = line;
    }
    return bytes != 0 ? add_text(lexer, SB_JINJA_TOKEN_DATA, data, bytes) : SB_OK;
}

/* Where a block ends that may end at `at`: behind the end, and the space that goes with it. 0: it does not end there. */
static size_t block_end(const lexer *lexer, size_t at) {
    if (at_text(lexer, at, "+%}"))
        return at + 3;
    if (at_text(lexer, at, "-%}"))
        return skip_space(lexer, at + 3);
    if (!at_text(lexer, at, "%}"))
        return 0;
    return at + 2 + (at_byte(lexer, at + 2) == '\n');
}

/* Behind "raw %}", if that is what begins at `at`; else 0. */
static size_t raw_begin(const lexer *lexer, size_t at) {
    at = skip_space(lexer, at);
    if (!at_text(lexer, at, "raw"))
        return 0;
    at = skip_space(lexer, at + 3);
    if (at_text(lexer, at, "-%}"))
        return skip_space(lexer, at + 3);
    return at_text(lexer, at, "%}") ? at + 2 : 0;
}

static sb_status lex_raw(lexer *lexer) {
    for (size_t at = lexer->at; at < lexer->bytes; at++) {
        if (!at_text(lexer, at, "{%"))
            continue;
        char sign = at_byte(lexer, at + 2);
        sign = sign == '-' || sign == '+' ? sign : '\0';
        size_t name = skip_space(lexer, at + 2 + (sign != '\0'));
        size_t end = at_text(lexer, name, "endraw") ? block_end(lexer, skip_space(lexer, name + 6)) : 0;
        if (end == 0)
            continue;
        SB_TRY(add_data(lexer, at, sign, true));
        advance(lexer, end);
        return SB_OK;
    }
    /* (jinja2 misses the end only where something stands before it.) */
    return lexer->at == lexer->bytes ? SB_OK : fail_here(lexer, SB_ERROR_INVALID_FILE, "{% raw %} has no end");
}

static sb_status lex_comment(lexer *lexer) {
    for (size_t at = lexer->at; at + 1 < lexer->bytes; at++) {
        if (!at_text(lexer, at, "#}"))
            continue;
        char sign = at > lexer->at ? lexer->source[at - 1] : '\0';
        size_t end = at + 2;
        if (sign == '-')
            end = skip_space(lexer, end);
        else if (sign != '+')
            end += at_byte(lexer, end) == '\n';
        advance(lexer, end);
        return SB_OK;
    }
    return lexer->at == lexer->bytes ? SB_OK : fail_here(lexer, SB_ERROR_INVALID_FILE, "a comment has no end");
}

static sb_status lex_tag(lexer *lexer, bool block);

static sb_status lex_between(lexer *lexer) {
    size_t at = lexer->at;
    while (at < lexer->bytes && !at_text(lexer, at, "{%") && !at_text(lexer, at, "{{") && !at_text(lexer, at, "{#"))
        at++;
    if (at == lexer->bytes) {
        SB_TRY(add_data(lexer, at, '+', false));
        advance(lexer, at);
        return SB_OK;
    }
    char kind = lexer->source[at + 1], sign = at_byte(lexer, at + 2);
    sign = sign == '-' || sign == '+' ? sign : '\0';
    size_t inside = at + 2 + (sign != '\0'), raw = kind == '%' ? raw_begin(lexer, inside) : 0;
    SB_TRY(add_data(lexer, at, sign, kind != '{'));
    advance(lexer, raw != 0 ? raw : inside);
    if (raw != 0)
        return lex_raw(lexer);
    return kind == '#' ? lex_comment(lexer) : lex_tag(lexer, kind == '%');
}

/* ---- in tags ---- */

static bool is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

static bool is_name_byte(char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' || is_digit(byte);
}

/* Behind digits that single underscores may separate. */
static size_t skip_digits(const lexer *lexer, size_t at) {
    while (is_digit(at_byte(lexer, at)))
        at += at_byte(lexer, at + 1) == '_' && is_digit(at_byte(lexer, at + 2)) ? 2 : 1;
    return at;
}

/* Where the float ends that begins here; 0: there is none. */
static size_t float_end(const lexer *lexer) {
    if (lexer->at > 0 && lexer->source[lexer->at - 1] == '.')
        return 0;
    size_t at = skip_digits(lexer, lexer->at), whole = at;
    if (at_byte(lexer, at) == '.' && is_digit(at_byte(lexer, at + 1)))
        at = skip_digits(lexer, at + 1);
    size_t exponent = at + 1;
    if ((at_byte(lexer, at) | 0x20) == 'e') {
        exponent += at_byte(lexer, exponent) == '+' || at_byte(lexer, exponent) == '-';
        if (is_digit(at_byte(lexer, exponent)))
            return skip_digits(lexer, exponent);
    }
    return at != whole ? at : 0;
}

static int digit_of(char byte) {
    return is_digit(byte) ? byte - '0' : (byte | 0x20) >= 'a' && (byte | 0x20) <= 'f' ? (byte | 0x20) - 'a' + 10 : 99;
}

static sb_status lex_integer(lexer *lexer) {
    size_t at = lexer->at;
    int64_t number = 0;
    int base = 10;
    bool any = false;
    if (lexer->source[at] == '0') {
        char mark = (char)(at_byte(lexer, at + 1) | 0x20);
        int other = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
        size_t first = at + 2 + (at_byte(lexer, at + 2) == '_');
        if (other != 0 && digit_of(at_byte(lexer, first)) < other) {
            base = other;
            at = first;
        }
    }
    bool zeros = base == 10 && lexer->source[at] == '0'; /* "012" are two numbers, of which the parser makes nothing */
    for (;; any = true) {
        size_t digit = at + (any && at_byte(lexer, at) == '_');
        int value = digit_of(at_byte(lexer, digit));
        if (value >= base || (zeros && value != 0))
            break;
        if (__builtin_mul_overflow(number, (int64_t)base, &number) ||
            __builtin_add_overflow(number, (int64_t)value, &number))
            return fail_here(lexer, SB_ERROR_UNSUPPORTED, "a whole number beyond 64 bits");
        at = digit + 1;
    }
    SB_TRY(add(lexer, SB_JINJA_TOKEN_CONSTANT, sb_jinja_integer(number), ""));
    advance(lexer, at);
    return SB_OK;
}

static sb_status lex_number(lexer *lexer) {
    size_t end = float_end(lexer);
    if (end == 0)
        return lex_integer(lexer);
    sb_jinja_text text = {lexer->source + lexer->at, end - lexer->at, 0};
    double real;
    if (!sb_jinja_parse_real(&text, &real))
        return fail_here(lexer, SB_ERROR_UNSUPPORTED, "a number of more than 500 digits");
    SB_TRY(add(lexer, SB_JINJA_TOKEN_CONSTANT, sb_jinja_real(real), ""));
    advance(lexer, end);
    return SB_OK;
}

static sb_status lex_string(lexer *lexer) {
    char quote = lexer->source[lexer->at];
    size_t end = lexer->at + 1;
    while (end < lexer->bytes && lexer->source[end] != quote)
        end += lexer->source[end] == '\\' ? 2 : 1;
    if (end >= lexer->bytes)
        return fail_here(lexer, SB_ERROR_INVALID_FILE, "a text has no closing quote");
    sb_jinja_value value;
    lexer->jinja->line = lexer->line;
    SB_TRY(sb_jinja_unescape(lexer->jinja, lexer->source + lexer->at + 1, end - lexer->at - 1, &value));
    SB_TRY(add(lexer, SB_JINJA_TOKEN_STRING, value, ""));
    advance(lexer, end + 1);
    return SB_OK;
}

static sb_status balance(lexer *lexer, char sign) {
    const char *open = strchr("{}()[]", sign);
    if (open == NULL)
        return SB_OK;
    if ((open - "{}()[]") % 2 == 0) {
        if (lexer->depth == BRACKETS)
            return fail_here(lexer, SB_ERROR_LIMIT, "brackets nest too deep");
        lexer->closing[lexer->depth++] = open[1];
        return SB_OK;
    }
    if (lexer->depth == 0 || lexer->closing[--lexer->depth] != sign)
        return fail_here(lexer, SB_ERROR_INVALID_FILE, "a closing bracket that fits no opening one");
    return SB_OK;
}

static sb_status lex_operator(lexer *lexer) {
    static const char *const doubles[] = {"**", "//", "==", "!=", ">=", "<="};
    char byte = lexer->source[lexer->at], sign[3] = {byte, '\0', '\0'};
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++) {
        if (at_text(lexer, lexer->at, doubles[i]))
            sign[1] = doubles[i][1];
    }
    if (sign[1] == '\0' && (byte == '\0' || strchr("+-/*%~[](){}><=.:|,;", byte) == NULL))
        return fail_here(lexer, SB_ERROR_INVALID_FILE, "a character that has no meaning inside a tag");
    if (sign[1] == '\0')
        SB_TRY(balance(lexer, byte));
    SB_TRY(add(lexer, SB_JINJA_TOKEN_OPERATOR, sb_jinja_none(), sign));
    advance(lexer, lexer->at + strlen(sign));
    return SB_OK;
}

static size_t output_end(const lexer *lexer, size_t at) {
    if (at_text(lexer, at, "-}}"))
        return skip_space(lexer, at + 3);
    return at_text(lexer, at, "}}") ? at + 2 : 0;
}

static sb_status lex_tag(lexer *lexer, bool block) {
    lexer->depth = 0;
    SB_TRY(add(lexer, block ? SB_JINJA_TOKEN_BLOCK_BEGIN : SB_JINJA_TOKEN_OUTPUT_BEGIN, sb_jinja_none(), ""));
    while (lexer->at < lexer->bytes) {
        size_t end = lexer->depth != 0 ? 0 : block ? block_end(lexer, lexer->at) : output_end(lexer, lexer->at);
        if (end != 0) {
            SB_TRY(add(lexer, block ? SB_JINJA_TOKEN_BLOCK_END : SB_JINJA_TOKEN_OUTPUT_END, sb_jinja_none(), ""));
            advance(lexer, end);
            return SB_OK;
        }
        char byte = lexer->source[lexer->at];
        size_t name = lexer->at, space = skip_space(lexer, lexer->at);
        while (is_name_byte(at_byte(lexer, name)))
            name++;
        if (space != lexer->at)
            advance(lexer, space);
        else if (is_digit(byte))
            SB_TRY(lex_number(lexer));
        else if (name - lexer->at > NAME_BYTES)
            return fail_here(lexer, SB_ERROR_LIMIT, "a name of more than 200 bytes");
        else if (name != lexer->at) {
            SB_TRY(add_text(lexer, SB_JINJA_TOKEN_NAME, lexer->source + lexer->at, name - lexer->at));
            advance(lexer, name);
        } else if (byte == '\'' || byte == '"')
            SB_TRY(lex_string(lexer));
        else
            SB_TRY(lex_operator(lexer));
    }
    return fail_here(lexer, SB_ERROR_INVALID_FILE, "a tag has no end");
}

/* ---- the whole ---- */

/* A copy with every line ended by \n, and without the last of these. */
static sb_status normalise(sb_jinja *jinja, const char *source, size_t bytes, lexer *lexer) {
    char *copy;
    SB_TRY(sb_jinja_allocate(jinja, bytes, 1, &copy));
    size_t used = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (source[i] == '\n' && i > 0 && source[i - 1] == '\r')
            continue;
        copy[used++] = source[i];
        if (source[i] == '\r')
            copy[used - 1] = '\n';
    }
    lexer->source = copy;
    lexer->bytes = used - (used > 0 && copy[used - 1] == '\n');
    return SB_OK;
}

static sb_status check_encoding(sb_jinja *jinja, const char *source, size_t bytes) {
    if (bytes > SB_JINJA_SOURCE_BYTES)
        return sb_fail(jinja->error, SB_ERROR_LIMIT, "the template has %zu bytes, and may have %zu", bytes,
                       SB_JINJA_SOURCE_BYTES);
    for (size_t at = 0; at < bytes;) {
        utf8proc_int32_t point;
        utf8proc_ssize_t step =
            utf8proc_iterate((const utf8proc_uint8_t *)source + at, (utf8proc_ssize_t)(bytes - at), &point);
        if (step <= 0)
            return sb_fail(jinja->error, SB_ERROR_INVALID_FILE, "the template, byte %zu: no UTF-8", at);
        at += (size_t)step;
    }
    return SB_OK;
}

sb_status sb_jinja_lex(sb_jinja *jinja, const char *source, size_t bytes, sb_jinja_tokens *tokens) {
    lexer lexer = {.jinja = jinja, .tokens = tokens, .line = 1, .line_begins = true};
    SB_TRY(check_encoding(jinja, source, bytes));
    SB_TRY(normalise(jinja, source, bytes, &lexer));
    while (lexer.at < lexer.bytes)
        SB_TRY(lex_between(&lexer));
    return add(&lexer, SB_JINJA_TOKEN_END, sb_jinja_none(), "");
}
