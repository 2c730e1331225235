#include "constraint/characters.h"

#include <stdio.h>
#include <string.h>

#include "tokenizer/unicode.h"

/* Characters of one length in UTF-8. */
typedef struct length {
    uint32_t low, high;
    int bytes;
} length;

static const length lengths[] = {
    {0x20, 0x7f, 1}, {0x80, 0x7ff, 2}, {0x800, 0xd7ff, 3}, {0xe000, 0xffff, 3}, {0x10000, SB_LAST_POINT, 4}};

static void add_utf8(sb_nfa *nfa, uint32_t from, uint32_t to, uint32_t low, uint32_t high, int bytes,
                     sb_count_action action) {
    char ends[2][4];
    unsigned char rows[2][4];
    sb_point_write(low, ends[0]);
    sb_point_write(high, ends[1]);
    memcpy(rows, ends, sizeof rows);
    sb_nfa_rows(nfa, from, to, rows[0], rows[1], bytes, 0x80, 0xbf, action);
}

/* Characters as they are, but for those that JSON wants escaped. */
static void add_plain(sb_nfa *nfa, uint32_t from, uint32_t to, uint32_t low, uint32_t high, sb_count_action action) {
    static const uint32_t stops[] = {'"', '\\'};
    for (int i = 0; i < 2; i++) {
        if (low <= stops[i] && stops[i] <= high) {
            if (low < stops[i])
                add_plain(nfa, from, to, low, stops[i] - 1, action);
            if (high > stops[i])
                add_plain(nfa, from, to, stops[i] + 1, high, action);
            return;
        }
    }
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        uint32_t first = low > lengths[i].low ? low : lengths[i].low;
        uint32_t last = high < lengths[i].high ? high : lengths[i].high;
        if (first <= last)
            add_utf8(nfa, from, to, first, last, lengths[i].bytes, action);
    }
}

static void add_digit(sb_nfa *nfa, uint32_t from, uint32_t to, unsigned low, unsigned high) {
    if (low <= 9)
        sb_nfa_bytes(nfa, from, '0' + low, '0' + (high < 9 ? high : 9), SB_COUNT_NONE, to);
    if (high >= 10) {
        unsigned first = low > 10 ? low - 10 : 0;
        sb_nfa_bytes(nfa, from, 'a' + first, 'a' + high - 10, SB_COUNT_NONE, to);
        sb_nfa_bytes(nfa, from, 'A' + first, 'A' + high - 10, SB_COUNT_NONE, to);
    }
}

/* Of a character below U+0020, '"' or '\\': what stands behind the backslash; 0: u00 and two digits. */
static char short_escape(uint32_t point) {
    switch (point) {
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    case '"':
    case '\\':
        return (char)point;
    default:
        return 0;
    }
}

static void add_escaped(sb_nfa *nfa, uint32_t from, uint32_t to, uint32_t point, sb_count_action action) {
    char escape = short_escape(point);
    uint32_t slash = sb_nfa_state(nfa);
    sb_nfa_bytes(nfa, from, '\\', '\\', action, slash);
    if (escape != 0) {
        sb_nfa_bytes(nfa, slash, (unsigned char)escape, (unsigned char)escape, SB_COUNT_NONE, to);
        return;
    }
    uint32_t zeros = sb_nfa_text(nfa, slash, "u00", 3), digit = sb_nfa_state(nfa);
    add_digit(nfa, zeros, digit, point / 16, point / 16);
    add_digit(nfa, digit, to, point % 16, point % 16);
}

void sb_nfa_points(sb_nfa *nfa, uint32_t from, uint32_t to, const sb_point_range *ranges, size_t count,
                   sb_count_action action) {
    for (size_t i = 0; i < count; i++) {
        uint32_t low = ranges[i].low, high = ranges[i].high < SB_LAST_POINT ? ranges[i].high : SB_LAST_POINT;
        for (uint32_t point = 1; point <= '\\'; point++) {
            bool escaped = point < 0x20 || point == '"' || point == '\\';
            if (escaped && low <= point && point <= high)
                add_escaped(nfa, from, to, point, action);
        }
        if (high >= 0x20 && low <= high)
            add_plain(nfa, from, to, low > 0x20 ? low : 0x20, high, action);
    }
}

/* Four digits of a row `low` to `high`, in hexadecimal. */
static void add_four(sb_nfa *nfa, uint32_t from, uint32_t to, unsigned first_low, unsigned first_high,
                     unsigned second_low, unsigned second_high) {
    uint32_t states[3];
    for (int i = 0; i < 3; i++)
        states[i] = sb_nfa_state(nfa);
    add_digit(nfa, from, states[0], first_low, first_high);
    add_digit(nfa, states[0], states[1], second_low, second_high);
    add_digit(nfa, states[1], states[2], 0, 15);
    add_digit(nfa, states[2], to, 0, 15);
}

void sb_nfa_character(sb_nfa *nfa, uint32_t from, uint32_t to, sb_count_action action) {
    static const char shorts[] = "\"\\/bfnrt";
    uint32_t slash = sb_nfa_state(nfa), digits = sb_nfa_state(nfa), half = sb_nfa_state(nfa);
    uint32_t zero[3] = {sb_nfa_state(nfa), sb_nfa_state(nfa), sb_nfa_state(nfa)};
    add_plain(nfa, from, to, 0x20, SB_LAST_POINT, action);
    sb_nfa_bytes(nfa, from, '\\', '\\', action, slash);
    for (const char *c = shorts; *c != '\0'; c++)
        sb_nfa_bytes(nfa, slash, (unsigned char)*c, (unsigned char)*c, SB_COUNT_NONE, to);
    sb_nfa_bytes(nfa, slash, 'u', 'u', SB_COUNT_NONE, digits);
    /* All but 0000 and d800 to dfff. */
    add_four(nfa, digits, to, 1, 12, 0, 15);
    add_four(nfa, digits, to, 14, 15, 0, 15);
    add_four(nfa, digits, to, 13, 13, 0, 7);
    add_four(nfa, digits, to, 0, 0, 1, 15);
    add_digit(nfa, digits, zero[0], 0, 0);
    add_digit(nfa, zero[0], zero[1], 0, 0);
    add_digit(nfa, zero[1], zero[2], 0, 0);
    add_digit(nfa, zero[2], to, 1, 15);
    uint32_t ten = sb_nfa_state(nfa);
    add_digit(nfa, zero[1], ten, 1, 15);
    add_digit(nfa, ten, to, 0, 15);
    add_four(nfa, digits, half, 13, 13, 8, 11);
    add_four(nfa, sb_nfa_text(nfa, half, "\\u", 2), to, 13, 13, 12, 15);
}

uint32_t sb_nfa_written(sb_nfa *nfa, uint32_t from, const char *text, size_t bytes) {
    for (size_t at = 0; at < bytes;) {
        uint32_t point, to = sb_nfa_state(nfa);
        at += sb_point_read(text + at, &point);
        sb_nfa_points(nfa, from, to, &(sb_point_range){point, point}, 1, SB_COUNT_NONE);
        from = to;
    }
    return from;
}
