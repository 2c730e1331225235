/* A term is built while it is read, and read again for each time that it is repeated. */
#include "constraint/expression.h"

#include <string.h>

#include "constraint/characters.h"
#include "tokenizer/unicode.h"

#define MOST_GROUPS 100 /* in one another */
#define MOST_REPEATS 1000
#define MOST_RANGES 256 /* of a class */
#define NO_LIMIT (-1)

typedef struct reader {
    sb_nfa *nfa;
    const char *begin, *at, *end;
    int groups;
} reader;

static sb_status refuse(reader *r, sb_status status, const char *what) {
    return sb_nfa_fail(
        r->nfa, sb_fail(r->nfa->error, status, "at byte %zu of the pattern, %s", (size_t)(r->at - r->begin), what));
}

static bool peek(const reader *r, char c) {
    return r->at < r->end && *r->at == c;
}

static bool take(reader *r, const char *text) {
    size_t bytes = strlen(text);
    if ((size_t)(r->end - r->at) < bytes || memcmp(r->at, text, bytes) != 0)
        return false;
    r->at += bytes;
    return true;
}

/* ---- classes ---- */

typedef struct class {
    sb_point_range ranges[MOST_RANGES];
    size_t count;
} class;

static sb_status add_range(reader *r, class *class, uint32_t low, uint32_t high) {
    if (class->count == MOST_RANGES)
        return refuse(r, SB_ERROR_LIMIT, "a class has more than 256 ranges");
    class->ranges[class->count++] = (sb_point_range){low, high};
    return SB_OK;
}

/* The ranges become those that lie between them. */
static sb_status negate(reader *r, class *class) {
    struct class other = {.count = 0};
    for (uint32_t low = 0; low <= SB_LAST_POINT;) {
        uint32_t next = SB_LAST_POINT + 1, after = low;
        for (size_t i = 0; i < class->count; i++) {
            const sb_point_range *range = &class->ranges[i];
            if (range->low <= low && range->high >= after)
                after = range->high + 1;
            else if (range->low > low && range->low < next)
                next = range->low;
        }
        if (after > low) {
            low = after;
            continue;
        }
        SB_TRY(add_range(r, &other, low, next - 1));
        low = next;
    }
    *class = other;
    return SB_OK;
}

/* What \d, \w or \s stand for; false where the letter is another one. */
static bool named_ranges(char name, const sb_point_range **ranges, size_t *count) {
    static const sb_point_range digits[] = {{'0', '9'}};
    static const sb_point_range word[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    static const sb_point_range space[] = {{9, 13},          {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680},
                                           {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f},
                                           {0x3000, 0x3000}, {0xfeff, 0xfeff}};
    switch (name) {
    case 'd':
        *ranges = digits;
        *count = 1;
        return true;
    case 'w':
        *ranges = word;
        *count = 4;
        return true;
    case 's':
        *ranges = space;
        *count = sizeof space / sizeof *space;
        return true;
    default:
        return false;
    }
}

/* \d, \D and their like, behind the backslash; *found false where something else stands there. */
static sb_status take_named(reader *r, class *class, bool *found) {
    const sb_point_range *ranges;
    size_t count;
    struct class own = {.count = 0};
    char name = r->at < r->end ? *r->at : '\0';
    *found = name != '\0' && named_ranges((char)(name | 0x20), &ranges, &count) && (name & 0x40) != 0;
    if (!*found)
        return SB_OK;
    r->at++;
    for (size_t i = 0; i < count; i++)
        SB_TRY(add_range(r, &own, ranges[i].low, ranges[i].high));
    if ((name & 0x20) == 0)
        SB_TRY(negate(r, &own));
    for (size_t i = 0; i < own.count; i++)
        SB_TRY(add_range(r, class, own.ranges[i].low, own.ranges[i].high));
    return SB_OK;
}

static int digit_of(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static sb_status take_hex(reader *r, int digits, uint32_t *point) {
    bool braces = digits == 4 && take(r, "{");
    int count = 0;
    for (*point = 0; r->at < r->end && digit_of(*r->at) >= 0 && *point <= SB_LAST_POINT && (braces || count < digits);
         count++)
        *point = *point * 16 + (uint32_t)digit_of(*r->at++);
    if (*point > SB_LAST_POINT || (braces ? count == 0 || !take(r, "}") : count < digits))
        return refuse(r, SB_ERROR_INVALID_FILE,
                      "\\x wants two hexadecimal digits, \\u four, or {a character's number}");
    return SB_OK;
}

/* A character behind a backslash. */
static sb_status take_escape(reader *r, uint32_t *point) {
    static const char names[] = "tnvfr0", values[] = "\t\n\v\f\r";
    if (r->at == r->end)
        return refuse(r, SB_ERROR_INVALID_FILE, "nothing follows the backslash");
    const char *name = *r->at != '\0' ? strchr(names, *r->at) : NULL;
    if (name != NULL && !(*name == '0' && r->at + 1 < r->end && r->at[1] >= '0' && r->at[1] <= '9')) {
        r->at++;
        *point = (uint32_t)values[name - names];
        return SB_OK;
    }
    if (take(r, "x"))
        return take_hex(r, 2, point);
    if (take(r, "u")) {
        uint32_t low;
        SB_TRY(take_hex(r, 4, point));
        const char *behind = r->at;
        if (*point >= 0xd800 && *point < 0xdc00 && take(r, "\\u")) {
            SB_TRY(take_hex(r, 4, &low));
            if (low >= 0xdc00 && low < 0xe000)
                *point = 0x10000 + ((*point - 0xd800) << 10) + (low - 0xdc00);
            else
                r->at = behind;
        }
        return SB_OK;
    }
    if (r->at + 1 < r->end && r->at[0] == 'c' && ((r->at[1] | 0x20) >= 'a' && (r->at[1] | 0x20) <= 'z')) {
        *point = (uint32_t)(r->at[1] & 0x1f);
        r->at += 2;
        return SB_OK;
    }
    char c = *r->at;
    if ((c >= '1' && c <= '9') || c == 'k')
        return refuse(r, SB_ERROR_UNSUPPORTED, "no automaton has references to groups: write the text out");
    if (c == 'b' || c == 'B' || c == 'p' || c == 'P')
        return refuse(r, SB_ERROR_UNSUPPORTED, "\\b, \\B and \\p are not supported: name the characters in brackets");
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '0')
        return refuse(r, SB_ERROR_INVALID_FILE, "there is no such escape");
    r->at += sb_point_read(r->at, point);
    return SB_OK;
}

/* An end of a range; *single is whether it is one character. */
static sb_status take_member(reader *r, class *class, uint32_t *point, bool *single) {
    *single = true;
    if (!take(r, "\\")) {
        r->at += sb_point_read(r->at, point);
        return SB_OK;
    }
    bool found;
    SB_TRY(take_named(r, class, &found));
    *single = !found;
    if (found)
        return SB_OK;
    if (take(r, "b")) {
        *point = '\b';
        return SB_OK;
    }
    if (take(r, "-")) {
        *point = '-';
        return SB_OK;
    }
    return take_escape(r, point);
}

/* A class, whose bracket has been read. */
static sb_status take_class(reader *r, class *class) {
    bool negated = take(r, "^");
    while (r->at < r->end && *r->at != ']') {
        uint32_t low, high;
        bool single, other;
        SB_TRY(take_member(r, class, &low, &single));
        if (!single)
            continue;
        high = low;
        if (peek(r, '-') && r->at + 1 < r->end && r->at[1] != ']') {
            r->at++;
            SB_TRY(take_member(r, class, &high, &other));
            if (!other || high < low)
                return refuse(r, SB_ERROR_INVALID_FILE, "a range ends before it begins, or with a class");
        }
        SB_TRY(add_range(r, class, low, high));
    }
    if (!take(r, "]"))
        return refuse(r, SB_ERROR_INVALID_FILE, "] is missing");
    return negated ? negate(r, class) : SB_OK;
}

/* ---- terms ---- */

static sb_status read_alternatives(reader *r, uint32_t from, uint32_t to);

static sb_status take_group(reader *r, uint32_t from, uint32_t to) {
    if (take(r, "?")) {
        bool named = peek(r, '<') && r->at + 1 < r->end && r->at[1] != '=' && r->at[1] != '!';
        if (named) {
            const char *close = memchr(r->at, '>', (size_t)(r->end - r->at));
            if (close == NULL)
                return refuse(r, SB_ERROR_INVALID_FILE, "a group's name has no end");
            r->at = close + 1;
        } else if (!take(r, ":"))
            return refuse(r, SB_ERROR_UNSUPPORTED, "groups that look ahead or back, or set flags, are not supported");
    }
    if (r->groups == MOST_GROUPS)
        return refuse(r, SB_ERROR_LIMIT, "groups lie deeper in one another than 100");
    r->groups++;
    SB_TRY(read_alternatives(r, from, to));
    r->groups--;
    return take(r, ")") ? SB_OK : refuse(r, SB_ERROR_INVALID_FILE, ") is missing");
}

/* One term without what repeats it. */
static sb_status take_term(reader *r, uint32_t from, uint32_t to) {
    class class = {.count = 0};
    uint32_t point = 0;
    bool found = false;
    if (take(r, "("))
        return take_group(r, from, to);
    if (take(r, "["))
        SB_TRY(take_class(r, &class));
    else if (take(r, ".")) { /* all but the ends of lines */
        SB_TRY(add_range(r, &class, 0, 9));
        SB_TRY(add_range(r, &class, 11, 12));
        SB_TRY(add_range(r, &class, 14, 0x2027));
        SB_TRY(add_range(r, &class, 0x202a, SB_LAST_POINT));
    } else if (take(r, "\\")) {
        SB_TRY(take_named(r, &class, &found));
        if (!found) {
            SB_TRY(take_escape(r, &point));
            SB_TRY(add_range(r, &class, point, point));
        }
    } else if (peek(r, '^') || peek(r, '$')) {
        return refuse(r, SB_ERROR_UNSUPPORTED,
                      "^ and $ are supported at the ends of the pattern and of its outermost alternatives alone");
    } else if (peek(r, '*') || peek(r, '+') || peek(r, '?') || peek(r, '{') || peek(r, '}') || peek(r, ']')) {
        return refuse(r, SB_ERROR_INVALID_FILE, "nothing is there to be repeated, or a bracket is not escaped");
    } else {
        r->at += sb_point_read(r->at, &point);
        SB_TRY(add_range(r, &class, point, point));
    }
    sb_nfa_points(r->nfa, from, to, class.ranges, class.count, SB_COUNT_NONE);
    return r->nfa->status;
}

static bool take_number(reader *r, int *number) {
    const char *begin = r->at;
    for (*number = 0; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
        *number = *number > MOST_REPEATS ? *number : *number * 10 + (*r->at - '0');
    return r->at > begin;
}

/* How often the term is repeated, which has been read. */
static sb_status take_times(reader *r, int *least, int *most) {
    *least = *most = 1;
    if (take(r, "*")) {
        *least = 0;
        *most = NO_LIMIT;
    } else if (take(r, "+")) {
        *most = NO_LIMIT;
    } else if (take(r, "?")) {
        *least = 0;
    } else if (take(r, "{")) {
        bool numbered = take_number(r, least);
        *most = *least;
        if (numbered && take(r, ",") && !take_number(r, most))
            *most = NO_LIMIT;
        if (!numbered || !take(r, "}") || (*most != NO_LIMIT && *most < *least))
            return refuse(r, SB_ERROR_INVALID_FILE, "{ wants a number, or two of which the second is not less, and }");
        if (*least > MOST_REPEATS || *most > MOST_REPEATS)
            return refuse(r, SB_ERROR_LIMIT, "something is repeated more than 1000 times");
    } else
        return SB_OK;
    take(r, "?"); /* greed makes no difference to what is matched */
    return SB_OK;
}

/* A term and how often it is repeated; *to is where it ends. */
static sb_status take_repeated(reader *r, uint32_t from, uint32_t *to) {
    const char *term = r->at;
    uint32_t first = sb_nfa_state(r->nfa), now = sb_nfa_state(r->nfa), end = sb_nfa_state(r->nfa);
    int least, most;
    SB_TRY(take_term(r, first, now));
    SB_TRY(take_times(r, &least, &most));
    const char *behind = r->at;
    *to = end;
    if (most != 0)
        sb_nfa_empty(r->nfa, from, first);
    if (least == 0)
        sb_nfa_empty(r->nfa, from, end);
    uint32_t last = first;
    for (int i = 1; most != 0 && i < (most == NO_LIMIT ? least : most); i++) {
        uint32_t next = sb_nfa_state(r->nfa);
        if (i >= least)
            sb_nfa_empty(r->nfa, now, end);
        /* A state of its own: what loops there may not lead back into the term before. */
        last = sb_nfa_state(r->nfa);
        sb_nfa_empty(r->nfa, now, last);
        r->at = term;
        SB_TRY(take_term(r, last, next));
        now = next;
    }
    if (most == NO_LIMIT)
        sb_nfa_empty(r->nfa, now, last);
    sb_nfa_empty(r->nfa, now, end);
    r->at = behind;
    return r->nfa->status;
}

static bool at_alternative_end(const reader *r) {
    return r->at == r->end || *r->at == '|' || *r->at == ')';
}

static sb_status read_alternatives(reader *r, uint32_t from, uint32_t to) {
    do {
        uint32_t now = from;
        while (!at_alternative_end(r))
            SB_TRY(take_repeated(r, now, &now));
        sb_nfa_empty(r->nfa, now, to);
    } while (take(r, "|"));
    return r->nfa->status;
}

/* ---- the expression ---- */

/* A state in which any characters may come. */
static uint32_t anything(sb_nfa *nfa) {
    uint32_t state = sb_nfa_state(nfa);
    sb_nfa_points(nfa, state, state, &(sb_point_range){1, SB_LAST_POINT}, 1, SB_COUNT_NONE);
    return state;
}

sb_status sb_nfa_expression(sb_nfa *nfa, uint32_t from, uint32_t to, const char *expression, size_t bytes) {
    reader r = {.nfa = nfa, .begin = expression, .at = expression, .end = expression + bytes};
    uint32_t before = anything(nfa), behind = anything(nfa);
    bool floats = false;
    sb_nfa_empty(nfa, behind, to);
    do {
        uint32_t now = sb_nfa_state(nfa);
        bool ended = false, begins = take(&r, "^");
        if (!begins && !floats) /* where all begin at ^, no subset is to have the loop in it */
            sb_nfa_empty(nfa, from, before);
        floats = floats || !begins;
        sb_nfa_empty(nfa, begins ? from : before, now);
        while (nfa->status == SB_OK && !at_alternative_end(&r) && !ended) {
            ended = *r.at == '$' && (r.at + 1 == r.end || r.at[1] == '|');
            if (ended)
                r.at++;
            else
                SB_TRY(take_repeated(&r, now, &now));
        }
        sb_nfa_empty(nfa, now, ended ? to : behind);
        if (peek(&r, ')'))
            return refuse(&r, SB_ERROR_INVALID_FILE, ") closes nothing");
    } while (nfa->status == SB_OK && take(&r, "|"));
    return nfa->status;
}
