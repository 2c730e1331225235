#include "ops/number_text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ops/number.h"

/* Longer literals than this are no numbers that anybody writes. */
#define LITERAL_BYTES 512

/* The C library's conversions are correctly rounded, but use the locale's decimal point: it is
 * swapped for '.', and back. */
static char decimal_point(void) {
    const struct lconv *conventions = localeconv();
    return conventions->decimal_point[0] != '\0' ? conventions->decimal_point[0] : '.';
}

/* ---- to text ---- */

/* The value that decimal `digits` (in the locale's form) has in `dtype`, as f64, which holds them all exactly. */
static double reread(sb_dtype dtype, const char *digits) {
    switch (dtype) {
    case SB_F16:
        return sb_f16_to_f64(sb_f16_from_f64(strtod(digits, NULL)));
    case SB_BF16:
        return sb_bf16_to_f64(sb_bf16_from_f64(strtod(digits, NULL)));
    case SB_F32:
        return (double)strtof(digits, NULL);
    default:
        return strtod(digits, NULL);
    }
}

/* Writes `digits` times 10^(exponent - count + 1) in the plain form, with at least one digit on
 * both sides of the point. */
static int write_plain(char *text, const char *digits, int count, int exponent) {
    char *at = text;
    if (exponent < 0) {
        *at++ = '0';
        *at++ = '.';
        for (int i = -1; i > exponent; i--)
            *at++ = '0';
        memcpy(at, digits, (size_t)count);
        return (int)(at + count - text);
    }
    for (int i = 0; i <= exponent; i++)
        *at++ = i < count ? digits[i] : '0';
    *at++ = '.';
    if (count <= exponent + 1)
        *at++ = '0';
    for (int i = exponent + 1; i < count; i++)
        *at++ = digits[i];
    return (int)(at - text);
}

static int write_scientific(char *text, const char *digits, int count, int exponent) {
    int length = sprintf(text, "%c", digits[0]);
    if (count > 1)
        length += sprintf(text + length, ".%.*s", count - 1, digits + 1);
    return length + sprintf(text + length, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
}

static int float_to_text(sb_dtype dtype, double value, char text[SB_NUMBER_TEXT_BYTES]) {
    if (value != value)
        return sprintf(text, "NaN");
    if (value - value != 0)
        return sprintf(text, value < 0 ? "-INF" : "INF");
    char scientific[SB_NUMBER_TEXT_BYTES], digits[SB_NUMBER_TEXT_BYTES];
    int precision = 0;
    do {
        snprintf(scientific, sizeof scientific, "%.*e", precision, sb_abs_f64(value));
    } while (reread(dtype, scientific) != sb_abs_f64(value) && ++precision < 17);
    int count = 0, exponent = atoi(strchr(scientific, 'e') + 1);
    for (const char *at = scientific; *at != 'e'; at++) {
        if (isdigit((unsigned char)*at))
            digits[count++] = *at;
    }
    while (count > 1 && digits[count - 1] == '0')
        count--;
    int sign = sb_bits_from_f64(value) >> 63 != 0;
    text[0] = '-';
    bool plain = value == 0 || (exponent >= -4 && exponent < 16);
    return sign + (plain ? write_plain : write_scientific)(text + sign, digits, count, exponent);
}

int sb_number_to_text(sb_dtype dtype, const void *element, char text[SB_NUMBER_TEXT_BYTES]) {
    switch (dtype) {
    case SB_BOOL:
        return sprintf(text, *(const uint8_t *)element != 0 ? "True" : "False");
    case SB_U8:
        return sprintf(text, "%d", *(const uint8_t *)element);
    case SB_U16:
        return sprintf(text, "%d", *(const uint16_t *)element);
    case SB_U32:
        return sprintf(text, "%" PRIu32, *(const uint32_t *)element);
    case SB_U64:
        return sprintf(text, "%" PRIu64, *(const uint64_t *)element);
    case SB_S8:
        return sprintf(text, "%d", *(const int8_t *)element);
    case SB_S16:
        return sprintf(text, "%d", *(const int16_t *)element);
    case SB_S32:
        return sprintf(text, "%" PRId32, *(const int32_t *)element);
    case SB_S64:
        return sprintf(text, "%" PRId64, *(const int64_t *)element);
    case SB_F16:
        return float_to_text(dtype, sb_f16_to_f64(*(const uint16_t *)element), text);
    case SB_BF16:
        return float_to_text(dtype, sb_bf16_to_f64(*(const uint16_t *)element), text);
    case SB_F32:
        return float_to_text(dtype, (double)*(const float *)element, text);
    case SB_F64:
        return float_to_text(dtype, *(const double *)element, text);
    case SB_S4:
    case SB_U4:
    case SB_S2:
    case SB_U2:
        return sprintf(text, "%d", (int)sb_number_load(dtype, element, 0));
    default:
        return float_to_text(SB_F32, sb_number_load(dtype, element, 0), text);
    }
}

/* ---- from text ---- */

/* Digits of a decimal literal at `at`; returns how many. */
static int skip_digits(const char **at) {
    const char *start = *at;
    while (isdigit((unsigned char)**at))
        ++*at;
    return (int)(*at - start);
}

/* Whether `literal` is [sign] digits [. digits] [e [sign] digits], with a digit on one side of the
 * point at least; *whole: without a point or an exponent. The point becomes the locale's. */
static bool check_decimal(char *literal, bool *whole) {
    const char *at = literal;
    *whole = true;
    at += *at == '+' || *at == '-';
    int digits = skip_digits(&at);
    if (*at == '.') {
        literal[at - literal] = decimal_point();
        at++;
        digits += skip_digits(&at);
        *whole = false;
    }
    if (digits == 0)
        return false;
    if (*at == 'e' || *at == 'E') {
        at++;
        at += *at == '+' || *at == '-';
        *whole = false;
        if (skip_digits(&at) == 0)
            return false;
    }
    return *at == '\0';
}

static bool read_special(const char *literal, double *value) {
    bool negative = *literal == '-';
    const char *name = literal + (*literal == '+' || *literal == '-');
    if (strcasecmp(name, "inf") == 0)
        *value = negative ? -sb_infinity_f64() : sb_infinity_f64();
    else if (strcasecmp(literal, "nan") == 0)
        *value = sb_nan_f64();
    else if (strcasecmp(literal, "true") == 0)
        *value = 1;
    else if (strcasecmp(literal, "false") == 0)
        *value = 0;
    else
        return false;
    return true;
}

static void read_decimal(const char *literal, bool whole, sb_dtype dtype, void *element) {
    if (dtype == SB_F32)
        *(float *)element = strtof(literal, NULL);
    else if (whole && dtype == SB_S64)
        *(int64_t *)element = strtoll(literal, NULL, 10);
    else if (whole && dtype == SB_U64 && literal[0] != '-')
        *(uint64_t *)element = strtoull(literal, NULL, 10);
    else
        sb_number_store(dtype, element, 0, strtod(literal, NULL));
}

bool sb_number_from_text(sb_string text, sb_dtype dtype, void *element) {
    char literal[LITERAL_BYTES];
    if (text.bytes == 0) /* then there may be no data either */
        return false;
    const char *start = text.data, *end = text.data + text.bytes;
    while (start < end && isspace((unsigned char)*start))
        start++;
    while (start < end && isspace((unsigned char)end[-1]))
        end--;
    size_t length = (size_t)(end - start);
    if (length == 0 || length >= sizeof literal || memchr(start, '\0', length) != NULL)
        return false;
    memcpy(literal, start, length);
    literal[length] = '\0';
    bool whole;
    double special;
    if (read_special(literal, &special)) {
        sb_number_store(dtype, element, 0, special);
        return true;
    }
    if (!check_decimal(literal, &whole))
        return false;
    read_decimal(literal, whole, dtype, element);
    return true;
}
