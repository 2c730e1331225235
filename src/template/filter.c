/* Filters of one value: texts and numbers; and the table of all filters. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <utf8proc.h>

#include "base/allocation.h"
#include "template/filter.h"
#include "template/string.h"

/* ---- texts ---- */

static sb_status to_text(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                         sb_jinja_value *result) {
    return sb_jinja_to_text(jinja, self, result);
}

static sb_status mark_safe(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                           sb_jinja_value *result) {
    SB_TRY(sb_jinja_to_text(jinja, self, result));
    result->detail = 1;
    return SB_OK;
}

static sb_status escape(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments, sb_jinja_value *result) {
    return sb_jinja_escape(jinja, self, result);
}

static sb_status replace(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                         sb_jinja_value *result) {
    sb_jinja_value texts[3] = {arguments[0], arguments[1], arguments[2]};
    if (texts[2].kind == SB_JINJA_NONE)
        texts[2] = (sb_jinja_value){.kind = SB_JINJA_MISSING};
    SB_TRY(sb_jinja_to_text(jinja, self, &self));
    SB_TRY(sb_jinja_to_text(jinja, texts[0], &texts[0]));
    SB_TRY(sb_jinja_to_text(jinja, texts[1], &texts[1]));
    return sb_jinja_replace(jinja, self, texts, result);
}

static bool begins_word(int32_t before) {
    return sb_jinja_is_space(before) || (before < 0x80 && before != 0 && strchr("-({[<", before) != NULL);
}

/* jinja2's own idea of a title: words are what stands between spaces, hyphens and opening brackets. */
static sb_status title(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments, sb_jinja_value *result) {
    SB_TRY(sb_jinja_to_text(jinja, self, &self));
    const sb_jinja_text *text = self.text;
    size_t begin = sb_jinja_begin(jinja);
    for (size_t at = 0, end; at < text->bytes; at = end) {
        size_t step, first;
        bool separates = begins_word(sb_jinja_point(text->data + at, &first));
        for (end = at + first; end < text->bytes; end += step) {
            if (begins_word(sb_jinja_point(text->data + end, &step)) != separates)
                break;
        }
        const sb_jinja_text rest = {text->data + at + first, end - at - first, 0};
        SB_TRY(sb_jinja_write_case(jinja, text, at, at + first, SB_JINJA_UPPER));
        SB_TRY(sb_jinja_write_case(jinja, &rest, 0, rest.bytes, SB_JINJA_LOWER));
    }
    SB_TRY(sb_jinja_take(jinja, begin, result));
    result->detail = self.detail;
    return SB_OK;
}

static sb_status write_blanks(sb_jinja *jinja, int64_t blanks) {
    for (int64_t i = 0; i < blanks; i++)
        SB_TRY(sb_jinja_write(jinja, " ", 1));
    return SB_OK;
}

static sb_status write_indent(sb_jinja *jinja, sb_jinja_value width) {
    int64_t blanks;
    if (width.kind == SB_JINJA_TEXT)
        return sb_jinja_write_value(jinja, width);
    SB_TRY(sb_jinja_take_integer(jinja, "the width of indent", width, 4, &blanks));
    return write_blanks(jinja, blanks);
}

static sb_status indent(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments, sb_jinja_value *result) {
    sb_jinja_list *lines;
    SB_TRY(sb_jinja_check_text(jinja, "what is indented", self));
    if (self.detail != 0)
        return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED, "'indent' of a text that has been escaped is not understood");
    size_t begin = sb_jinja_begin(jinja);
    SB_TRY(sb_jinja_write_value(jinja, self));
    SB_TRY(sb_jinja_write(jinja, "\n", 1)); /* as jinja2 has it, for texts without a line */
    SB_TRY(sb_jinja_take(jinja, begin, &self));
    SB_TRY(sb_jinja_lines(jinja, self, false, &lines));
    bool first = sb_jinja_true(arguments[1]), blank = sb_jinja_true(arguments[2]);
    for (size_t i = 0; i < lines->count; i++) {
        if (i != 0)
            SB_TRY(sb_jinja_write(jinja, "\n", 1));
        if (i == 0 ? first : blank || lines->items[i].text->bytes != 0)
            SB_TRY(write_indent(jinja, arguments[0]));
        SB_TRY(sb_jinja_write_value(jinja, lines->items[i]));
    }
    return sb_jinja_take(jinja, begin, result);
}

static sb_status standard(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                          sb_jinja_value *result) {
    bool lacks = self.kind == SB_JINJA_UNDEFINED || (sb_jinja_true(arguments[1]) && !sb_jinja_true(self));
    *result = lacks ? arguments[0] : self;
    return lacks && arguments[0].kind == SB_JINJA_MISSING ? sb_jinja_text_over(jinja, "", 0, result) : SB_OK;
}

/* ---- numbers ---- */

/* Python's int() of a text; false for what is none. */
static sb_status parse_integer(sb_jinja *jinja, const sb_jinja_text *text, int64_t *number, bool *parsed) {
    size_t at = sb_jinja_leading_space(text->data, text->bytes);
    size_t end = at < text->bytes ? text->bytes - sb_jinja_trailing_space(text->data, text->bytes) : at;
    bool negative = at < end && text->data[at] == '-';
    at += at < end && (negative || text->data[at] == '+');
    *number = 0;
    *parsed = at < end;
    for (bool first = true; at < end; at++, first = false) {
        char byte = text->data[at];
        if (byte == '_' && !first && at + 1 < end)
            byte = text->data[++at];
        if (byte < '0' || byte > '9') {
            *parsed = false;
            return SB_OK;
        }
        int digit = byte - '0';
        if (__builtin_mul_overflow(*number, INT64_C(10), number) ||
            __builtin_sub_overflow(*number, (int64_t)digit, number) || (!negative && *number == INT64_MIN))
            return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED, "a whole number beyond 64 bits");
    }
    *number = negative ? *number : -*number;
    return SB_OK;
}

/* Python reads digits of every script. */
static sb_status refuse_other_digits(sb_jinja *jinja, const sb_jinja_text *text) {
    for (size_t at = 0, step; at < text->bytes; at += step) {
        int32_t point = sb_jinja_point(text->data + at, &step);
        if (point >= 0x80 && utf8proc_category(point) == UTF8PROC_CATEGORY_ND)
            return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED, "digits beyond 0 to 9 are not understood");
    }
    return SB_OK;
}

static sb_status truncate_real(sb_jinja *jinja, double real, bool text, sb_jinja_value fallback,
                               sb_jinja_value *result) {
    *result = fallback;
    if (isnan(real) || (isinf(real) && text))
        return SB_OK;
    if (isinf(real))
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "infinity is no whole number");
    if (fabs(real) >= 0x1p63)
        return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED, "a whole number beyond 64 bits");
    *result = sb_jinja_integer((int64_t)real);
    return SB_OK;
}

static sb_status to_integer(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                            sb_jinja_value *result) {
    int64_t base, number;
    bool parsed;
    double real;
    SB_TRY(sb_jinja_take_integer(jinja, "the base of int", arguments[1], 10, &base));
    if (base != 10)
        return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED, "'int' of a base other than 10 is not understood");
    SB_TRY(sb_jinja_check_defined(jinja, self));
    *result = arguments[0].kind != SB_JINJA_MISSING ? arguments[0] : sb_jinja_integer(0);
    if (sb_jinja_is_whole(self))
        *result = sb_jinja_integer(sb_jinja_whole(self));
    if (self.kind == SB_JINJA_REAL)
        return truncate_real(jinja, self.real, false, *result, result);
    if (self.kind != SB_JINJA_TEXT)
        return SB_OK;
    SB_TRY(refuse_other_digits(jinja, self.text));
    SB_TRY(parse_integer(jinja, self.text, &number, &parsed));
    if (!parsed)
        return sb_jinja_parse_real(self.text, &real) ? truncate_real(jinja, real, true, *result, result) : SB_OK;
    *result = sb_jinja_integer(number);
    return SB_OK;
}

static sb_status to_real(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                         sb_jinja_value *result) {
    double real;
    SB_TRY(sb_jinja_check_defined(jinja, self));
    *result = arguments[0].kind != SB_JINJA_MISSING ? arguments[0] : sb_jinja_real(0);
    if (self.kind == SB_JINJA_TEXT)
        SB_TRY(refuse_other_digits(jinja, self.text));
    if (self.kind == SB_JINJA_TEXT && sb_jinja_parse_real(self.text, &real))
        *result = sb_jinja_real(real);
    else if (sb_jinja_is_whole(self))
        *result = sb_jinja_real((double)sb_jinja_whole(self));
    else if (self.kind == SB_JINJA_REAL)
        *result = self;
    return SB_OK;
}

static sb_status check_number(sb_jinja *jinja, const char *whose, sb_jinja_value value) {
    SB_TRY(sb_jinja_check_defined(jinja, value));
    if (sb_jinja_is_number(value))
        return SB_OK;
    return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "'%s' of a value of type %s", whose,
                         sb_jinja_kind_name(value));
}

static sb_status absolute(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                          sb_jinja_value *result) {
    SB_TRY(check_number(jinja, "abs", self));
    bool negative = self.kind == SB_JINJA_REAL ? signbit(self.real) : sb_jinja_whole(self) < 0;
    return sb_jinja_negate(jinja, self, negative, result);
}

/* To the nearest decimal, ties to even, of the float's exact value: what printf does. */
static double round_decimal(double real, int digits) {
    char text[700];
    if (!isfinite(real))
        return real;
    snprintf(text, sizeof text, "%.*f", digits, real);
    return strtod(text, NULL);
}

/* ceil or floor of value * 10^digits, divided by that again. */
static sb_status round_towards(sb_jinja *jinja, sb_jinja_value value, int digits, bool up, sb_jinja_value *result) {
    int64_t scale = 1;
    for (int i = 0; i < digits && i < 19; i++)
        scale *= i < 18 ? 10 : 1;
    if (digits > 15)
        return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED, "'round' to more than 15 digits is not understood");
    SB_TRY(sb_jinja_arithmetic(jinja, '*', value, sb_jinja_integer(scale), &value));
    if (value.kind == SB_JINJA_REAL) {
        double whole = up ? ceil(value.real) : floor(value.real);
        if (!(fabs(whole) < 0x1p53))
            return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED, "'round' of a number beyond 2^53 is not understood");
        value = sb_jinja_integer((int64_t)whole);
    }
    return sb_jinja_arithmetic(jinja, '/', value, sb_jinja_integer(scale), result);
}

static sb_status round_number(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                              sb_jinja_value *result) {
    int64_t digits;
    SB_TRY(check_number(jinja, "round", self));
    SB_TRY(sb_jinja_take_integer(jinja, "the precision of round", arguments[0], 0, &digits));
    if (digits < 0)
        return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED, "'round' to a negative number of digits is not understood");
    if (sb_jinja_is_text(arguments[1], "ceil") || sb_jinja_is_text(arguments[1], "floor"))
        return round_towards(jinja, self, digits > 16 ? 16 : (int)digits, arguments[1].text->data[0] == 'c', result);
    if (arguments[1].kind != SB_JINJA_MISSING && !sb_jinja_is_text(arguments[1], "common"))
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "the method of round is common, ceil or floor");
    if (self.kind == SB_JINJA_REAL)
        *result = sb_jinja_real(round_decimal(self.real, digits > 323 ? 323 : (int)digits));
    else
        *result = sb_jinja_integer(sb_jinja_whole(self));
    return SB_OK;
}

/* ---- the table ---- */

static const sb_jinja_row filters[] = {
    {"abs", "", 0, absolute, NULL},
    {"capitalize", "", 0, sb_jinja_capitalize, NULL},
    {"d", "default_value boolean", 0, standard, NULL},
    {"default", "default_value boolean", 0, standard, NULL},
    {"e", "", 0, escape, NULL},
    {"escape", "", 0, escape, NULL},
    {"float", "default", 0, to_real, NULL},
    {"indent", "width first blank", 0, indent, NULL},
    {"int", "default base", 0, to_integer, NULL},
    {"lower", "", 0, sb_jinja_lower, NULL},
    {"replace", "old new count", 2, replace, NULL},
    {"round", "precision method", 0, round_number, NULL},
    {"safe", "", 0, mark_safe, NULL},
    {"string", "", 0, to_text, NULL},
    {"title", "", 0, title, NULL},
    {"trim", "chars", 0, sb_jinja_trim, NULL},
    {"upper", "", 0, sb_jinja_upper, NULL},
};

const sb_jinja_row *sb_jinja_find_filter(const sb_jinja_text *name) {
    const sb_jinja_row *row = sb_jinja_find_row(filters, sizeof filters / sizeof *filters, name);
    if (row == NULL)
        row = sb_jinja_find_sequence_filter(name);
    return row != NULL ? row : sb_jinja_find_row(&sb_jinja_tojson, 1, name);
}
