/* Texts in the making, and values as text: str() and repr() of Python, escapes of HTML. */
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <utf8proc.h>

#include "base/allocation.h"
#include "template/tree.h"

/* ---- the output ---- */

sb_status sb_jinja_write(sb_jinja *jinja, const char *data, size_t bytes) {
    if (bytes > SB_JINJA_OUTPUT_BYTES || jinja->written > SB_JINJA_OUTPUT_BYTES - bytes)
        return sb_jinja_fail(jinja, SB_ERROR_LIMIT, "it writes more than %zu MiB", SB_JINJA_OUTPUT_BYTES >> 20);
    SB_TRY(sb_jinja_spend(jinja, 1 + bytes / 64));
    if (!sb_grow((void **)&jinja->output, &jinja->capacity, jinja->written + bytes + 1, 1))
        return sb_fail_memory(jinja->error, jinja->written + bytes + 1);
    memcpy(jinja->output + jinja->written, data, bytes);
    jinja->written += bytes;
    return SB_OK;
}

sb_status sb_jinja_write_point(sb_jinja *jinja, int32_t point) {
    utf8proc_uint8_t bytes[4];
    return sb_jinja_write(jinja, (const char *)bytes, (size_t)utf8proc_encode_char(point, bytes));
}

sb_status sb_jinja_take(sb_jinja *jinja, size_t begin, sb_jinja_value *text) {
    size_t bytes = jinja->written - begin;
    char *copy;
    SB_TRY(sb_jinja_allocate(jinja, bytes, 1, &copy));
    if (bytes != 0)
        memcpy(copy, jinja->output + begin, bytes);
    jinja->written = begin;
    return sb_jinja_text_over(jinja, copy, bytes, text);
}

/* ---- floats ---- */

/* The C library's conversions round correctly, but write the decimal point of the locale. */
static char decimal_point(void) {
    const struct lconv *conventions = localeconv();
    return conventions->decimal_point[0] != '\0' ? conventions->decimal_point[0] : '.';
}

/* Digits times 10^(exponent - count + 1), as Python writes it: plain from 1e-4 to below 1e16. */
static int write_digits(char *text, const char *digits, int count, int exponent) {
    char *at = text;
    if (exponent < -4 || exponent >= 16) {
        at += sprintf(at, "%c", digits[0]);
        if (count > 1)
            at += sprintf(at, ".%.*s", count - 1, digits + 1);
        return (int)(at - text) + sprintf(at, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
    }
    if (exponent < 0)
        at += sprintf(at, "0.%.*s", -1 - exponent, "000");
    for (int i = 0; i < count || i <= exponent; i++) {
        *at++ = i < count ? digits[i] : '0';
        if (i == exponent)
            *at++ = '.';
    }
    if (at[-1] == '.')
        *at++ = '0';
    *at = '\0';
    return (int)(at - text);
}

int sb_jinja_format_real(double real, char text[SB_JINJA_REAL_BYTES]) {
    if (isnan(real))
        return sprintf(text, "nan");
    if (isinf(real))
        return sprintf(text, real < 0 ? "-inf" : "inf");
    char scientific[SB_JINJA_REAL_BYTES], digits[20];
    int precision = 0, count = 0;
    do {
        snprintf(scientific, sizeof scientific, "%.*e", precision, fabs(real));
    } while (strtod(scientific, NULL) != fabs(real) && ++precision < 17);
    int exponent = atoi(strchr(scientific, 'e') + 1);
    for (const char *at = scientific; *at != 'e'; at++) {
        if (*at >= '0' && *at <= '9')
            digits[count++] = *at;
    }
    while (count > 1 && digits[count - 1] == '0')
        count--;
    int sign = signbit(real) != 0;
    text[0] = '-';
    return sign + write_digits(text + sign, digits, count, exponent);
}

/* Copies digits, of which single underscores may stand between; NULL where there are none. */
static const char *copy_digits(const char *at, const char *end, char **to) {
    if (at == end || *at < '0' || *at > '9')
        return NULL;
    while (at < end && *at >= '0' && *at <= '9') {
        *(*to)++ = *at++;
        if (end - at >= 2 && *at == '_' && at[1] >= '0' && at[1] <= '9')
            at++;
    }
    return at;
}

static bool is_word(const char *at, const char *end, const char *word) {
    for (; at < end && *word != '\0'; at++, word++) {
        if ((*at | 0x20) != *word)
            return false;
    }
    return at == end && *word == '\0';
}

bool sb_jinja_parse_real(const sb_jinja_text *text, double *real) {
    char copy[512], *to = copy;
    size_t first = sb_jinja_leading_space(text->data, text->bytes);
    const char *at = text->data + first, *end = text->data + text->bytes;
    end -= first < text->bytes ? sb_jinja_trailing_space(text->data, text->bytes) : 0;
    if (end - at > 500)
        return false;
    if (at < end && (*at == '+' || *at == '-'))
        *to++ = *at++;
    if (is_word(at, end, "inf") || is_word(at, end, "infinity") || is_word(at, end, "nan")) {
        double value = (*at | 0x20) == 'n' ? (double)NAN : (double)INFINITY;
        *real = to > copy && copy[0] == '-' ? -value : value;
        return true;
    }
    const char *whole = copy_digits(at, end, &to), *fraction = NULL;
    at = whole != NULL ? whole : at;
    if (at < end && *at == '.') {
        *to++ = decimal_point();
        fraction = copy_digits(at + 1, end, &to);
        at = fraction != NULL ? fraction : at + 1;
    }
    if (whole == NULL && fraction == NULL)
        return false;
    if (at < end && (*at == 'e' || *at == 'E')) {
        *to++ = *at++;
        if (at < end && (*at == '+' || *at == '-'))
            *to++ = *at++;
        at = copy_digits(at, end, &to);
    }
    *to = '\0';
    *real = at == end ? strtod(copy, NULL) : 0;
    return at == end;
}

/* ---- str() and repr() ---- */

static sb_status write_format(sb_jinja *jinja, const char *format, int64_t number) {
    char text[32];
    return sb_jinja_write(jinja, text, (size_t)snprintf(text, sizeof text, format, (long long)number));
}

static sb_status write_escaped_point(sb_jinja *jinja, int32_t point) {
    if (point == '\n')
        return sb_jinja_write(jinja, "\\n", 2);
    if (point == '\r')
        return sb_jinja_write(jinja, "\\r", 2);
    if (point == '\t')
        return sb_jinja_write(jinja, "\\t", 2);
    return write_format(jinja, point < 0x100 ? "\\x%02llx" : point < 0x10000 ? "\\u%04llx" : "\\U%08llx", point);
}

static sb_status write_quoted(sb_jinja *jinja, const sb_jinja_text *text) {
    bool single = memchr(text->data, '\'', text->bytes) != NULL, both = memchr(text->data, '"', text->bytes) != NULL;
    const char quote = single && !both ? '"' : '\'';
    SB_TRY(sb_jinja_write(jinja, &quote, 1));
    size_t written = 0; /* what is as it is goes out in one piece */
    for (size_t at = 0, step; at < text->bytes; at += step) {
        int32_t point = sb_jinja_point(text->data + at, &step);
        bool printable = sb_jinja_is_printable(point);
        if (printable && point != quote && point != '\\')
            continue;
        SB_TRY(sb_jinja_write(jinja, text->data + written, at - written));
        written = at + (printable ? 0 : step);
        SB_TRY(printable ? sb_jinja_write(jinja, "\\", 1) : write_escaped_point(jinja, point));
    }
    SB_TRY(sb_jinja_write(jinja, text->data + written, text->bytes - written));
    return sb_jinja_write(jinja, &quote, 1);
}

static sb_status write_list(sb_jinja *jinja, const sb_jinja_list *list, const char *begin, const char *end) {
    SB_TRY(sb_jinja_write(jinja, begin, strlen(begin)));
    for (size_t i = 0; i < list->count; i++) {
        if (i != 0)
            SB_TRY(sb_jinja_write(jinja, ", ", 2));
        SB_TRY(sb_jinja_write_representation(jinja, list->items[i]));
    }
    if (begin[0] == '(' && list->count == 1)
        SB_TRY(sb_jinja_write(jinja, ",", 1));
    return sb_jinja_write(jinja, end, strlen(end));
}

static sb_status write_dict(sb_jinja *jinja, const sb_jinja_dict *dict, const char *begin, const char *end) {
    SB_TRY(sb_jinja_write(jinja, begin, strlen(begin)));
    for (size_t i = 0; i < dict->count; i++) {
        if (i != 0)
            SB_TRY(sb_jinja_write(jinja, ", ", 2));
        SB_TRY(sb_jinja_write_representation(jinja, dict->entries[i].key));
        SB_TRY(sb_jinja_write(jinja, ": ", 2));
        SB_TRY(sb_jinja_write_representation(jinja, dict->entries[i].value));
    }
    return sb_jinja_write(jinja, end, strlen(end));
}

static sb_status write_view(sb_jinja *jinja, sb_jinja_value view) {
    static const char *const begins[] = {"dict_items(", "dict_keys(", "dict_values("};
    sb_jinja_list *list;
    SB_TRY(sb_jinja_write(jinja, begins[view.detail], strlen(begins[view.detail])));
    SB_TRY(sb_jinja_collect(jinja, view, &list));
    return write_list(jinja, list, "[", "])");
}

static sb_status write_range(sb_jinja *jinja, const sb_jinja_range *range) {
    SB_TRY(write_format(jinja, "range(%lld", range->start));
    SB_TRY(write_format(jinja, ", %lld", range->stop));
    if (range->step != 1)
        SB_TRY(write_format(jinja, ", %lld", range->step));
    return sb_jinja_write(jinja, ")", 1);
}

static sb_status write_inner(sb_jinja *jinja, sb_jinja_value value) {
    char number[SB_JINJA_REAL_BYTES];
    switch (value.kind) {
    case SB_JINJA_UNDEFINED:
        return sb_jinja_write(jinja, "Undefined", 9);
    case SB_JINJA_NONE:
        return sb_jinja_write(jinja, "None", 4);
    case SB_JINJA_BOOLEAN:
        return sb_jinja_write(jinja, value.boolean ? "True" : "False", value.boolean ? 4 : 5);
    case SB_JINJA_INTEGER:
        return write_format(jinja, "%lld", value.integer);
    case SB_JINJA_REAL:
        return sb_jinja_write(jinja, number, (size_t)sb_jinja_format_real(value.real, number));
    case SB_JINJA_TEXT:
        if (value.detail == 0)
            return write_quoted(jinja, value.text);
        SB_TRY(sb_jinja_write(jinja, "Markup(", 7));
        SB_TRY(write_quoted(jinja, value.text));
        return sb_jinja_write(jinja, ")", 1);
    case SB_JINJA_LIST:
        return write_list(jinja, value.list, "[", "]");
    case SB_JINJA_TUPLE:
        return write_list(jinja, value.list, "(", ")");
    case SB_JINJA_DICT:
        return write_dict(jinja, value.dict, "{", "}");
    case SB_JINJA_NAMESPACE:
        return write_dict(jinja, value.dict, "<Namespace {", "}>");
    case SB_JINJA_VIEW:
        return write_view(jinja, value);
    case SB_JINJA_RANGE:
        return write_range(jinja, value.range);
    default:
        return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED, "a value of type %s has no text that would stay the same",
                             sb_jinja_kind_name(value));
    }
}

sb_status sb_jinja_write_representation(sb_jinja *jinja, sb_jinja_value value) {
    sb_status status = sb_jinja_enter(jinja);
    if (status != SB_OK)
        return status;
    status = write_inner(jinja, value);
    jinja->depth--;
    return status;
}

sb_status sb_jinja_write_value(sb_jinja *jinja, sb_jinja_value value) {
    if (value.kind == SB_JINJA_UNDEFINED)
        return SB_OK;
    if (value.kind == SB_JINJA_TEXT)
        return sb_jinja_write(jinja, value.text->data, value.text->bytes);
    return sb_jinja_write_representation(jinja, value);
}

sb_status sb_jinja_to_text(sb_jinja *jinja, sb_jinja_value value, sb_jinja_value *text) {
    if (value.kind == SB_JINJA_TEXT) {
        *text = value;
        return SB_OK;
    }
    size_t begin = sb_jinja_begin(jinja);
    SB_TRY(sb_jinja_write_value(jinja, value));
    return sb_jinja_take(jinja, begin, text);
}

/* ---- HTML ---- */

static const char *escape_of(char byte) {
    switch (byte) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '\'':
        return "&#39;";
    case '"':
        return "&#34;";
    default:
        return NULL;
    }
}

sb_status sb_jinja_escape(sb_jinja *jinja, sb_jinja_value value, sb_jinja_value *text) {
    SB_TRY(sb_jinja_to_text(jinja, value, text));
    if (value.kind == SB_JINJA_TEXT && value.detail != 0)
        return SB_OK;
    const sb_jinja_text plain = *text->text;
    size_t begin = sb_jinja_begin(jinja), written = 0;
    for (size_t i = 0; i < plain.bytes; i++) {
        const char *escaped = escape_of(plain.data[i]);
        if (escaped == NULL)
            continue;
        SB_TRY(sb_jinja_write(jinja, plain.data + written, i - written));
        SB_TRY(sb_jinja_write(jinja, escaped, strlen(escaped)));
        written = i + 1;
    }
    SB_TRY(sb_jinja_write(jinja, plain.data + written, plain.bytes - written));
    SB_TRY(sb_jinja_take(jinja, begin, text));
    text->detail = 1;
    return SB_OK;
}
