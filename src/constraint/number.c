#include "constraint/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- whole numbers ---- */

static int digits_of(uint64_t number, unsigned char digits[SB_MOST_ROW]) {
    char text[SB_MOST_ROW + 4];
    int count = snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    memcpy(digits, text, (size_t)count);
    return count;
}

/* Numbers without a sign. */
static void add_magnitudes(sb_nfa *nfa, uint32_t from, uint32_t to, uint64_t low, uint64_t high) {
    unsigned char first[SB_MOST_ROW], last[SB_MOST_ROW];
    if (low > high)
        return;
    int least = digits_of(low, first), most = digits_of(high, last);
    for (int count = least; count <= most; count++) {
        unsigned char ends[2][SB_MOST_ROW];
        memset(ends[0], '0', sizeof ends[0]);
        memset(ends[1], '9', sizeof ends[1]);
        ends[0][0] = '1';
        sb_nfa_rows(nfa, from, to, count == least ? first : ends[0], count == most ? last : ends[1], count, '0', '9',
                    SB_COUNT_NONE);
    }
}

void sb_nfa_integers(sb_nfa *nfa, uint32_t from, uint32_t to, int64_t low, int64_t high) {
    if (low > high)
        return;
    if (low < 0) {
        uint32_t sign = sb_nfa_state(nfa);
        sb_nfa_bytes(nfa, from, '-', '-', SB_COUNT_NONE, sign);
        add_magnitudes(nfa, sign, to, high < 0 ? (uint64_t)-high : 1, (uint64_t)-low);
    }
    if (high >= 0)
        add_magnitudes(nfa, from, to, low > 0 ? (uint64_t)low : 0, (uint64_t)high);
}

/* ---- any number ---- */

/* Up to `most` digits, at least one; each may be the last. */
static void add_digits(sb_nfa *nfa, uint32_t from, uint32_t to, int most) {
    for (int i = 0; i < most; i++) {
        uint32_t next = sb_nfa_state(nfa);
        sb_nfa_bytes(nfa, from, '0', '9', SB_COUNT_NONE, next);
        sb_nfa_empty(nfa, next, to);
        from = next;
    }
}

/* Nothing, or a point and digits. */
static void add_fraction(sb_nfa *nfa, uint32_t from, uint32_t to, int most) {
    sb_nfa_empty(nfa, from, to);
    if (most > 0)
        add_digits(nfa, sb_nfa_text(nfa, from, ".", 1), to, most);
}

/* Digits before the point, without zeros in front. */
static void add_whole(sb_nfa *nfa, uint32_t from, uint32_t to, int most) {
    uint32_t first = sb_nfa_state(nfa);
    sb_nfa_bytes(nfa, from, '0', '0', SB_COUNT_NONE, to);
    sb_nfa_bytes(nfa, from, '1', '9', SB_COUNT_NONE, first);
    sb_nfa_empty(nfa, first, to);
    add_digits(nfa, first, to, most - 1);
}

void sb_nfa_numbers(sb_nfa *nfa, uint32_t from, uint32_t to) {
    uint32_t signless = sb_nfa_text(nfa, from, "-", 1), whole = sb_nfa_state(nfa), fraction = sb_nfa_state(nfa);
    uint32_t letter = sb_nfa_state(nfa), sign = sb_nfa_state(nfa);
    sb_nfa_empty(nfa, from, signless);
    add_whole(nfa, signless, whole, 15);
    add_fraction(nfa, whole, fraction, 17);
    sb_nfa_empty(nfa, fraction, to);
    sb_nfa_bytes(nfa, fraction, 'E', 'E', SB_COUNT_NONE, letter);
    sb_nfa_bytes(nfa, fraction, 'e', 'e', SB_COUNT_NONE, letter);
    sb_nfa_empty(nfa, letter, sign);
    sb_nfa_bytes(nfa, letter, '+', '+', SB_COUNT_NONE, sign);
    sb_nfa_bytes(nfa, letter, '-', '-', SB_COUNT_NONE, sign);
    add_digits(nfa, sign, to, 2);
}

/* ---- numbers between bounds ---- */

#define COUNTING 15

/* A bound without its sign: 15 digits count. */
typedef struct decimal {
    uint64_t whole;
    char fraction[COUNTING + 1]; /* without zeros at its end */
    int fraction_digits, whole_digits;
} decimal;

/* False: it has more digits than can be. */
static bool read_decimal(double value, decimal *d) {
    char text[64];
    unsigned char digits[SB_MOST_ROW];
    double magnitude = fabs(value);
    if (!(magnitude < 1e14))
        return false;
    snprintf(text, sizeof text, "%.*f", COUNTING, magnitude);
    /* What is behind its 15 digits is what a double makes of them. */
    int whole = (int)strspn(text, "0123456789");
    snprintf(text, sizeof text, "%.*f", COUNTING - whole, magnitude);
    if (strtod(text, NULL) != magnitude)
        return false;
    char *point = text + strspn(text, "0123456789"); /* a comma, where the process has such a locale */
    size_t count = *point != '\0' ? strlen(point + 1) : 0;
    while (count > 0 && point[count] == '0')
        count--;
    memcpy(d->fraction, count > 0 ? point + 1 : "", count);
    d->fraction[count] = '\0';
    d->fraction_digits = (int)count;
    d->whole = strtoull(text, NULL, 10);
    d->whole_digits = digits_of(d->whole, digits);
    return true;
}

/* What is given of the fraction, behind the point; `above` wants at least the bound's, else at most. */
static void add_compared(sb_nfa *nfa, uint32_t from, uint32_t to, const decimal *bound, int most, bool above,
                         bool excluded) {
    uint32_t equal = sb_nfa_state(nfa);
    bool is_whole = bound->fraction_digits == 0;
    /* No fraction at all is .0 */
    if (is_whole ? !excluded : !above)
        sb_nfa_empty(nfa, from, to);
    sb_nfa_bytes(nfa, from, '.', '.', SB_COUNT_NONE, equal);
    for (int i = 0; i < most; i++) {
        unsigned digit = i < bound->fraction_digits ? (unsigned char)bound->fraction[i] : '0';
        uint32_t next = sb_nfa_state(nfa), free = sb_nfa_state(nfa);
        sb_nfa_bytes(nfa, equal, digit, digit, SB_COUNT_NONE, next);
        if (above && digit < '9')
            sb_nfa_bytes(nfa, equal, digit + 1, '9', SB_COUNT_NONE, free);
        if (!above && digit > '0')
            sb_nfa_bytes(nfa, equal, '0', digit - 1, SB_COUNT_NONE, free);
        sb_nfa_empty(nfa, free, to);
        add_digits(nfa, free, to, most - i - 1);
        /* Ending here: equal where all of the bound's digits have come, else below it. */
        if (i + 1 >= bound->fraction_digits ? !excluded : !above)
            sb_nfa_empty(nfa, next, to);
        equal = next;
    }
}

/* Digits before the point: how many at most, of numbers and of their fractions. */
typedef struct room {
    uint64_t most_whole;
    int fraction;
} room;

/* Magnitudes at or above the bound, or at or below it. */
static void add_side(sb_nfa *nfa, uint32_t from, uint32_t to, const decimal *bound, bool above, bool excluded,
                     room room) {
    uint32_t apart = sb_nfa_state(nfa), same = sb_nfa_state(nfa);
    if (above)
        add_magnitudes(nfa, from, apart, bound->whole + 1, room.most_whole);
    else if (bound->whole > 0)
        add_magnitudes(nfa, from, apart, 0, bound->whole - 1);
    add_fraction(nfa, apart, to, room.fraction);
    add_magnitudes(nfa, from, same, bound->whole, bound->whole);
    add_compared(nfa, same, to, bound, room.fraction, above, excluded);
}

/* All magnitudes. */
static void add_all(sb_nfa *nfa, uint32_t from, uint32_t to, room room) {
    uint32_t whole = sb_nfa_state(nfa);
    add_magnitudes(nfa, from, whole, 0, room.most_whole);
    add_fraction(nfa, whole, to, room.fraction);
}

/* Numbers at or above the bound, or at or below it, as an automaton. */
static sb_status make_half(const decimal *bound, sb_number_bound given, bool above, room room, const sb_nfa *user,
                           sb_dfa *dfa) {
    sb_nfa nfa = {.error = user->error, .left = user->left};
    uint32_t from = sb_nfa_state(&nfa), to = sb_nfa_state(&nfa), sign = sb_nfa_text(&nfa, from, "-", 1);
    bool negative = given.value < 0 || (given.value == 0 && !above && given.excluded);
    if (!given.given) {
        add_all(&nfa, from, to, room);
        add_all(&nfa, sign, to, room);
    } else if (above) {
        if (negative)
            add_side(&nfa, sign, to, bound, false, given.excluded, room);
        if (negative)
            add_all(&nfa, from, to, room);
        else
            add_side(&nfa, from, to, bound, true, given.excluded, room);
    } else {
        if (negative)
            add_side(&nfa, sign, to, bound, true, given.excluded, room);
        else
            add_all(&nfa, sign, to, room);
        if (!negative)
            add_side(&nfa, from, to, bound, false, given.excluded, room);
    }
    sb_status status = sb_dfa_make(&nfa, from, to, dfa, nfa.error);
    sb_nfa_clear(&nfa);
    return status;
}

static bool settle_room(const decimal *low, const decimal *high, room *room) {
    int fraction = low->fraction_digits > high->fraction_digits ? low->fraction_digits : high->fraction_digits;
    int whole = low->whole_digits > high->whole_digits ? low->whole_digits : high->whole_digits;
    room->fraction = fraction > 6 ? fraction : COUNTING - whole < 6 ? COUNTING - whole : 6;
    room->most_whole = 1;
    for (int i = 0; i < COUNTING - room->fraction; i++)
        room->most_whole *= 10;
    room->most_whole--;
    return whole + room->fraction <= COUNTING;
}

bool sb_nfa_bounded_numbers(sb_nfa *nfa, uint32_t from, uint32_t to, sb_number_bound low, sb_number_bound high) {
    decimal bounds[2] = {{0}, {0}};
    room room;
    sb_dfa halves[2] = {{0}, {0}}, both = {0};
    bool any = true;
    if ((low.given && !read_decimal(low.value, &bounds[0])) || (high.given && !read_decimal(high.value, &bounds[1])) ||
        !settle_room(&bounds[0], &bounds[1], &room)) {
        sb_nfa_fail(nfa, sb_fail(nfa->error, SB_ERROR_UNSUPPORTED,
                                 "bounds of numbers may have 15 digits together, from the highest to the lowest"));
        return true;
    }
    sb_status status = make_half(&bounds[0], low, true, room, nfa, &halves[0]);
    if (status == SB_OK)
        status = make_half(&bounds[1], high, false, room, nfa, &halves[1]);
    if (status == SB_OK)
        status = sb_dfa_both(&halves[0], &halves[1], &both, nfa->error);
    if (status == SB_OK)
        any = sb_dfa_embed(&both, nfa, from, to);
    else
        sb_nfa_fail(nfa, status);
    sb_dfa_clear(&halves[0]);
    sb_dfa_clear(&halves[1]);
    sb_dfa_clear(&both);
    return any;
}

void sb_number_text(double number, char text[40]) {
    int digits = 15;
    do
        snprintf(text, 40, "%.*g", digits, number);
    while (strtod(text, NULL) != number && ++digits <= 17);
    char *comma = strchr(text, ','); /* of the process's locale */
    if (comma != NULL)
        *comma = '.';
}
