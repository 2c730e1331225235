#define _GNU_SOURCE /* memmem */
/* PCRE2 searches for what has no pass of its own. It may go back over a text, within a limit of steps for each match.
 * */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "tokenizer/pattern.h"

#include <string.h>

#include "base/allocation.h"
#include "tokenizer/unicode.h"

/* A match of a long text may take many steps; one that goes back again and again ends here, after some milliseconds. */
#define MOST_STEPS 1000000
#define STACK_BYTES (32 * 1024)
#define MOST_STACK_BYTES (1024 * 1024)
#define MOST_EXPRESSION_BYTES 100000

static void *allocate(PCRE2_SIZE bytes, void *context) {
    (void)context;
    return sb_allocate(bytes);
}

static void release(void *memory, void *context) {
    (void)context;
    sb_free(memory);
}

/* ---- making ---- */

/* Oniguruma's classes of characters in terms of PCRE2's, whose own have other members. Of words' characters below
 * U+0100 it has a table of its own, in which powers and fractions are some. */
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}"

static const char *translate_escape(char letter, bool class) {
    switch (letter) {
    case 'w':
        return class ? WORD : "[" WORD "]";
    case 'W':
        return class ? NULL : "[^" WORD "]";
    case 's':
        return "\\p{White_Space}";
    case 'S':
        return "\\P{White_Space}";
    default:
        return NULL;
    }
}

/* Why the escape cannot be taken over; NULL: it can. */
static const char *escape_problem(char letter, bool class) {
    if (letter == 'W' && class)
        return "is \\W in a class";
    return letter != '\0' && strchr("bBhHRXKGQECyYO", letter) != NULL ? "has another meaning here" : NULL;
}

/* Why what stands at the beginning of `left` bytes, no escape, cannot be taken over; NULL: it can. */
static const char *problem_at(const char *c, size_t left, bool class) {
    if (class)
        return c[0] == '['                              ? "is a class in a class"
               : left > 1 && c[0] == '&' && c[1] == '&' ? "is an intersection of classes"
                                                        : NULL;
    if (left > 1 && c[0] == '(' && c[1] == '*')
        return "is a verb";
    if (left < 3 || c[0] != '(' || c[1] != '?' || c[2] == '\0')
        return NULL;
    return strchr("RP&0123456789+C(|~@", c[2]) != NULL ? "is a kind of group"
           : c[2] == 'm' || c[2] == 's'                ? "is an option with another meaning here"
                                                       : NULL;
}

/* Writes the expression as PCRE2 has it. What Oniguruma and PCRE2 read differently is written so that it means what
 * it means there, or refused. */
static sb_status translate(const char *expression, size_t bytes, sb_text *written, sb_error *error) {
    bool class = false, ok = true;
    for (size_t i = 0; i < bytes && ok;) {
        const char *c = &expression[i], *problem, *other = NULL;
        size_t length = 1;
        bool escape = c[0] == '\\' && bytes - i > 1;
        if (escape) {
            length = 2;
            problem = escape_problem(c[1], class);
            other = translate_escape(c[1], class);
        } else
            problem = problem_at(c, bytes - i, class);
        if (problem != NULL)
            return sb_fail(error, SB_ERROR_UNSUPPORTED, "the expression %.*s: byte %zu %s, which is not supported",
                           (int)(bytes < 300 ? bytes : 300), expression, i, problem);
        if (!escape && c[0] == '[') {
            /* A bracket that closes, right behind, is a character of the class. */
            length += bytes - i > 1 && c[1] == '^';
            length += bytes - i > length && c[length] == ']';
            class = true;
        } else if (!escape && c[0] == ']')
            class = false;
        ok = other != NULL ? sb_text_append(written, other, strlen(other)) : sb_text_append(written, c, length);
        i += length;
    }
    return ok ? SB_OK : sb_fail_memory(error, bytes);
}

/* Compiles what PCRE2 reads; `expression` is for messages. */
static sb_status compile(sb_pattern *pattern, sb_span written, sb_span expression, sb_error *error) {
    pcre2_general_context *memory = pcre2_general_context_create(allocate, release, NULL);
    pcre2_compile_context *context = memory != NULL ? pcre2_compile_context_create(memory) : NULL;
    sb_status status = context == NULL ? sb_fail_memory(error, sizeof(void *)) : SB_OK;
    int problem = 0;
    PCRE2_SIZE place = 0;
    if (status == SB_OK) {
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
        pattern->code =
            pcre2_compile((PCRE2_SPTR)written.data, written.bytes,
                          PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &problem, &place, context);
        if (pattern->code != NULL)
            pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE); /* where it cannot, matching is slower and the same */
    }
    if (status == SB_OK && pattern->code == NULL && problem == PCRE2_ERROR_HEAP_FAILED) {
        status = sb_fail_memory(error, written.bytes);
    } else if (status == SB_OK && pattern->code == NULL) {
        char message[160] = "";
        pcre2_get_error_message(problem, (PCRE2_UCHAR *)message, sizeof message);
        status = sb_fail(error, SB_ERROR_INVALID_FILE, "the regular expression %.*s: %s",
                         (int)(expression.bytes < 300 ? expression.bytes : 300), expression.data, message);
    }
    pcre2_compile_context_free(context);
    pcre2_general_context_free(memory);
    return status;
}

sb_status sb_pattern_regex(sb_pattern *pattern, const char *expression, size_t bytes, sb_error *error) {
    sb_text written = {0};
    *pattern = (sb_pattern){.kind = SB_PATTERN_KNOWN, .known = sb_known_split_find(expression, bytes)};
    if (pattern->known != NULL)
        return SB_OK;
    pattern->kind = SB_PATTERN_REGEX;
    if (bytes > MOST_EXPRESSION_BYTES)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "a regular expression has %zu bytes: at most %d are supported",
                       bytes, MOST_EXPRESSION_BYTES);
    sb_status status = translate(expression, bytes, &written, error);
    if (status == SB_OK)
        status = compile(pattern, (sb_span){written.data, written.bytes}, (sb_span){expression, bytes}, error);
    sb_text_clear(&written);
    return status;
}

sb_status sb_pattern_literal(sb_pattern *pattern, const char *literal, size_t bytes, sb_error *error) {
    *pattern = (sb_pattern){.kind = SB_PATTERN_LITERAL, .literal = sb_allocate(bytes + 1), .literal_bytes = bytes};
    if (pattern->literal == NULL)
        return sb_fail_memory(error, bytes);
    if (bytes == 0)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "a pattern is empty");
    memcpy(pattern->literal, literal, bytes);
    pattern->literal[bytes] = '\0';
    return SB_OK;
}

void sb_pattern_clear(sb_pattern *pattern) {
    sb_free(pattern->literal);
    if (pattern->code != NULL)
        pcre2_code_free(pattern->code);
    *pattern = (sb_pattern){0};
}

/* ---- searching ---- */

void sb_search_memory_clear(sb_search_memory *memory) {
    pcre2_match_data_free(memory->data);
    pcre2_match_context_free(memory->context);
    pcre2_jit_stack_free(memory->stack);
    *memory = (sb_search_memory){0};
}

static sb_status make_memory(sb_search_memory *memory, sb_error *error) {
    pcre2_general_context *general = pcre2_general_context_create(allocate, release, NULL);
    if (general != NULL) {
        memory->data = pcre2_match_data_create(1, general);
        memory->context = pcre2_match_context_create(general);
        memory->stack = pcre2_jit_stack_create(STACK_BYTES, MOST_STACK_BYTES, general);
    }
    pcre2_general_context_free(general);
    if (memory->data == NULL || memory->context == NULL || memory->stack == NULL) {
        sb_search_memory_clear(memory);
        return sb_fail_memory(error, STACK_BYTES);
    }
    pcre2_set_match_limit(memory->context, MOST_STEPS);
    pcre2_set_depth_limit(memory->context, MOST_STEPS);
    pcre2_set_heap_limit(memory->context, 64 * 1024); /* in KiB */
    pcre2_jit_stack_assign(memory->context, NULL, memory->stack);
    return SB_OK;
}

sb_status sb_search_begin(sb_search *search, const sb_pattern *pattern, sb_span text, sb_search_memory *memory,
                          sb_error *error) {
    *search = (sb_search){.pattern = pattern, .text = text, .memory = memory};
    return pattern->kind != SB_PATTERN_REGEX || memory->data != NULL ? SB_OK : make_memory(memory, error);
}

static sb_status next_regex(sb_search *search, size_t *begin, size_t *end, sb_error *error) {
    for (size_t from = search->at; from < search->text.bytes;) {
        int result = pcre2_match(search->pattern->code, (PCRE2_SPTR)search->text.data, search->text.bytes, from,
                                 PCRE2_NO_UTF_CHECK, search->memory->data, search->memory->context);
        if (result == PCRE2_ERROR_NOMATCH)
            break;
        if (result == PCRE2_ERROR_NOMEMORY)
            return sb_fail_memory(error, 0);
        if (result < 0) {
            char message[160] = "";
            pcre2_get_error_message(result, (PCRE2_UCHAR *)message, sizeof message);
            return sb_fail(error, SB_ERROR_LIMIT,
                           "cutting the text at byte %zu takes more than the tokenizer's regular expression may (%s): "
                           "give it in parts",
                           from, message);
        }
        const PCRE2_SIZE *match = pcre2_get_ovector_pointer(search->memory->data);
        *begin = match[0];
        *end = match[1];
        if (*end > *begin && *begin >= search->at)
            return SB_OK;
        from =
            match[0] < search->text.bytes ? match[0] + sb_point_bytes(search->text.data[match[0]]) : search->text.bytes;
    }
    *begin = *end = search->text.bytes;
    return SB_OK;
}

static void next_character(sb_search *search, size_t *begin, size_t *end) {
    size_t at = search->at, bytes;
    uint32_t point;
    for (; at < search->text.bytes; at += bytes) {
        bytes = sb_point_read(search->text.data + at, &point);
        if (search->pattern->is_member(point)) {
            *begin = at;
            *end = at + bytes;
            return;
        }
    }
    *begin = *end = search->text.bytes;
}

sb_status sb_search_next(sb_search *search, size_t *begin, size_t *end, sb_error *error) {
    const sb_pattern *pattern = search->pattern;
    sb_span text = search->text;
    sb_status status = SB_OK;
    if (search->at >= text.bytes) {
        *begin = *end = text.bytes;
    } else if (pattern->kind == SB_PATTERN_KNOWN) {
        *begin = search->at;
        *end = sb_known_split_end(pattern->known, text, search->at);
    } else if (pattern->kind == SB_PATTERN_CHARACTER) {
        next_character(search, begin, end);
    } else if (pattern->kind == SB_PATTERN_LITERAL) {
        const char *found =
            memmem(text.data + search->at, text.bytes - search->at, pattern->literal, pattern->literal_bytes);
        *begin = found != NULL ? (size_t)(found - text.data) : text.bytes;
        *end = found != NULL ? *begin + pattern->literal_bytes : text.bytes;
    } else
        status = next_regex(search, begin, end, error);
    search->at = *end;
    return status;
}
