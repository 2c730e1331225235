/* The syntax: https://github.com/google/re2/wiki/Syntax, as RE2 reads it by default: `.` is no line feed, `^` and `$` are the
 * ends of the text, \d, \s, \w and \b are of ASCII. Which of several ways a text is matched in makes no difference to whether
 * it is, so greed (`*?`, (?U)) and names of groups are read and forgotten.
 *
 * What is written has characters by number, classes by ranges, and anchors in groups, so that nothing depends on the options
 * and the version of the library that reads it. */
#include "ops/regex_syntax.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "tensor/utf.h"

#define MOST_GROUPS 200 /* in one another: the library's own limit is 250 */
#define MOST_REPEATS 1000
#define LAST_POINT 0x10ffff
#define WORD "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789"

typedef struct flags {
    bool fold; /* i: capitals and small letters are equal */
    bool all;  /* s: `.` is also a line feed */
    bool many; /* m: ^ and $ are also at line feeds */
} flags;

typedef struct reader {
    const char *begin, *at; /* NUL ends the pattern */
    char *out;
    size_t used, capacity;
    flags flags, outer[MOST_GROUPS];
    bool folds, outer_folds[MOST_GROUPS]; /* what has been written of `fold` */
    int groups;
    bool repeatable; /* what was read last may be repeated */
    bool repeated;   /* and has been */
    sb_error *error;
} reader;

static sb_status refuse(const reader *reader, sb_status status, const char *what) {
    return sb_fail(reader->error, status, "at byte %zu, %s", (size_t)(reader->at - reader->begin), what);
}

static sb_status invalid(const reader *reader, const char *what) {
    return refuse(reader, SB_ERROR_INVALID_MODEL, what);
}

/* ---- writing ---- */

static sb_status put(reader *reader, const char *text) {
    size_t bytes = strlen(text);
    if (!sb_grow((void **)&reader->out, &reader->capacity, reader->used + bytes + 1, 1))
        return sb_fail_memory(reader->error, reader->used + bytes + 1);
    memcpy(reader->out + reader->used, text, bytes + 1);
    reader->used += bytes;
    return SB_OK;
}

static sb_status put_range(reader *reader, uint32_t low, uint32_t high) {
    char text[40];
    if (low == high)
        snprintf(text, sizeof text, "\\x{%x}", (unsigned)low);
    else
        snprintf(text, sizeof text, "\\x{%x}-\\x{%x}", (unsigned)low, (unsigned)high);
    return put(reader, text);
}

/* Something complete, which may be repeated. */
static sb_status put_item(reader *reader, const char *text) {
    if (reader->folds != reader->flags.fold)
        SB_TRY(put(reader, reader->flags.fold ? "(?i)" : "(?-i)"));
    reader->folds = reader->flags.fold;
    reader->repeatable = true;
    reader->repeated = false;
    return put(reader, text);
}

static sb_status put_point(reader *reader, uint32_t point) {
    SB_TRY(put_item(reader, ""));
    return put_range(reader, point, point);
}

/* ---- reading ---- */

static bool take(reader *reader, const char *text) {
    size_t bytes = strlen(text);
    if (strncmp(reader->at, text, bytes) != 0)
        return false;
    reader->at += bytes;
    return true;
}

/* The next character of text that is known to be UTF-8, and not at its end. */
static uint32_t take_point(reader *reader) {
    unsigned char first = (unsigned char)*reader->at;
    size_t bytes = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    uint32_t point;
    sb_utf8_to_utf32(reader->at, bytes, &point);
    reader->at += bytes;
    return point;
}

static int digit_of(char c, int base) {
    int value = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : 99;
    return value < base ? value : -1;
}

static sb_status take_hex(reader *reader, uint32_t *point) {
    bool braces = take(reader, "{");
    int digits = 0;
    *point = 0;
    while (digit_of(*reader->at, 16) >= 0 && (braces ? *point <= LAST_POINT : digits < 2)) {
        *point = *point * 16 + (uint32_t)digit_of(*reader->at++, 16);
        digits++;
    }
    if (*point > LAST_POINT || (braces ? digits == 0 || !take(reader, "}") : digits != 2))
        return invalid(reader, "\\x must have two hexadecimal digits, or {a character's number}");
    return SB_OK;
}

/* A character that is written with a backslash, which has been read. */
static sb_status take_escape(reader *reader, uint32_t *point) {
    static const char names[] = "aftnrv", values[] = "\a\f\t\n\r\v";
    const char *name = *reader->at != '\0' ? strchr(names, *reader->at) : NULL;
    char c = *reader->at;
    if (name != NULL) {
        reader->at++;
        *point = (uint32_t)values[name - names];
        return SB_OK;
    }
    if (take(reader, "x"))
        return take_hex(reader, point);
    if (c == '0' || (digit_of(c, 8) > 0 && digit_of(reader->at[1], 8) >= 0)) {
        *point = 0;
        for (int i = 0; i < 3 && digit_of(*reader->at, 8) >= 0; i++)
            *point = *point * 8 + (uint32_t)digit_of(*reader->at++, 8);
        return SB_OK;
    }
    if (c == '\0' || (unsigned char)c >= 0x80 || strchr(WORD, c) != NULL)
        return invalid(reader, c >= '1' && c <= '9' ? "there is no reference to a group" : "there is no such escape");
    reader->at++;
    *point = (uint32_t)c;
    return SB_OK;
}

/* ---- classes ---- */

/* Pairs of first and last characters, all of ASCII. */
typedef struct named_class {
    const char *name, *ranges;
} named_class;

static const named_class perl_classes[] = {{"d", "09"}, {"s", "\t\n\f\r  "}, {"w", "09AZ__az"}};
static const named_class posix_classes[] = {
    {"alnum", "09AZaz"}, {"alpha", "AZaz"}, {"ascii", "\x01\x7f"}, {"blank", "\t\t  "},  {"cntrl", "\x01\x1f\x7f\x7f"},
    {"digit", "09"},     {"graph", "!~"},   {"lower", "az"},       {"print", " ~"},      {"punct", "!/:@[`{~"},
    {"space", "\t\r  "}, {"upper", "AZ"},   {"word", "09AZ__az"},  {"xdigit", "09AFaf"},
};

/* Outside of ASCII, two characters are equal to letters of it when case does not count. */
#define LONG_S 0x17f
#define KELVIN 0x212a

static bool is_member(const named_class *named, bool fold, int c) {
    bool zero = c == 0 && (strcmp(named->name, "ascii") == 0 || strcmp(named->name, "cntrl") == 0);
    bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    for (const char *range = named->ranges; *range != '\0'; range += 2) {
        if ((c >= range[0] && c <= range[1]) || (fold && letter && (c ^ 0x20) >= range[0] && (c ^ 0x20) <= range[1]))
            return true;
    }
    return zero;
}

/* The ranges of a class, or of what is not in it; inside of brackets. */
static sb_status put_class(reader *reader, const named_class *named, bool negated) {
    bool fold = reader->flags.fold;
    for (int c = 0, first; c < 0x80; c++) {
        for (first = c; c < 0x80 && is_member(named, fold, c) != negated; c++)
            ;
        if (c > first)
            SB_TRY(put_range(reader, (uint32_t)first, (uint32_t)c - 1));
    }
    if (!negated)
        return SB_OK;
    bool s = fold && is_member(named, fold, 's'), k = fold && is_member(named, fold, 'k');
    SB_TRY(put_range(reader, 0x80, s ? LONG_S - 1 : k ? KELVIN - 1 : LAST_POINT));
    if (s)
        SB_TRY(put_range(reader, LONG_S + 1, k ? KELVIN - 1 : LAST_POINT));
    return k ? put_range(reader, KELVIN + 1, LAST_POINT) : SB_OK;
}

/* \d, \D and their like, inside of brackets; *found false where something else follows. */
static sb_status take_perl_class(reader *reader, bool *found) {
    for (size_t i = 0; i < sizeof perl_classes / sizeof perl_classes[0]; i++) {
        char small = perl_classes[i].name[0], given = reader->at[0] == '\\' ? reader->at[1] : '\0';
        *found = given != '\0' && (given | 0x20) == small;
        if (!*found)
            continue;
        reader->at += 2;
        return put_class(reader, &perl_classes[i], given != small);
    }
    return SB_OK;
}

/* [:alpha:] or [:^alpha:], inside of brackets. */
static sb_status take_posix_class(reader *reader, bool *found) {
    const char *end = strncmp(reader->at, "[:", 2) == 0 ? strstr(reader->at + 2, ":]") : NULL;
    *found = end != NULL;
    if (end == NULL)
        return SB_OK;
    bool negated = reader->at[2] == '^';
    const char *name = reader->at + 2 + negated;
    for (size_t i = 0; i < sizeof posix_classes / sizeof posix_classes[0]; i++) {
        const named_class *named = &posix_classes[i];
        if (strlen(named->name) != (size_t)(end - name) || strncmp(named->name, name, strlen(named->name)) != 0)
            continue;
        reader->at = end + 2;
        return put_class(reader, named, negated);
    }
    return invalid(reader, "there is no class of this name");
}

/* What the general category C, "other", has but characters that are not assigned; and everything else. */
#define OTHER "\\p{Cc}\\p{Cf}\\p{Co}\\p{Cs}"
#define NOT_OTHER "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Z}\\p{Cn}"

static sb_status put_unicode_class(reader *reader, const char *name, bool negated) {
    static const char categories[] =
        " C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm "
        "So Z Zl Zp Zs Any ";
    char padded[48], text[64];
    if (strcmp(name, "C") == 0)
        return put(reader, negated ? NOT_OTHER : OTHER);
    snprintf(padded, sizeof padded, " %s ", name);
    bool category = strstr(categories, padded) != NULL;
    if (!category && strlen(name) < 3)
        return invalid(reader, "there is no category or script of this name");
    snprintf(text, sizeof text, "\\%c{%s%s}", negated ? 'P' : 'p', category ? "" : "sc:", name);
    return put(reader, text);
}

/* \pL, \p{Greek}, \P{^Greek}, inside of brackets. */
static sb_status take_unicode_class(reader *reader, bool *found) {
    *found = reader->at[0] == '\\' && (reader->at[1] | 0x20) == 'p';
    if (!*found)
        return SB_OK;
    if (reader->flags.fold)
        return refuse(
            reader, SB_ERROR_UNSUPPORTED,
            "Samebit has no Unicode class without regard to case: write (?-i: ) around it, and name all that it "
            "is to have");
    bool negated = reader->at[1] == 'P', braces;
    char name[32];
    size_t length = 0;
    reader->at += 2;
    braces = take(reader, "{");
    if (braces && take(reader, "^"))
        negated = !negated;
    while (*reader->at != '\0' && *reader->at != '}' && length < (braces ? sizeof name - 1 : 1)) {
        if (strchr(WORD, *reader->at) == NULL)
            return invalid(reader, "there is no category or script of this name");
        name[length++] = *reader->at++;
    }
    name[length] = '\0';
    if (length == 0 || (braces && !take(reader, "}")))
        return invalid(reader, "there is no category or script of this name");
    return put_unicode_class(reader, name, negated);
}

static sb_status take_class_point(reader *reader, uint32_t *point) {
    if (*reader->at == '\0')
        return invalid(reader, "] is missing");
    if (take(reader, "\\"))
        return take_escape(reader, point);
    *point = take_point(reader);
    return SB_OK;
}

static sb_status take_class_range(reader *reader) {
    uint32_t low, high;
    SB_TRY(take_class_point(reader, &low));
    high = low;
    if (reader->at[0] == '-' && reader->at[1] != '\0' && reader->at[1] != ']') {
        reader->at++;
        SB_TRY(take_class_point(reader, &high));
    }
    if (high < low)
        return invalid(reader, "a range ends before it begins");
    return put_range(reader, low, high);
}

/* A class in brackets, the first of which has been read. */
static sb_status take_brackets(reader *reader) {
    SB_TRY(put_item(reader, take(reader, "^") ? "[^" : "["));
    for (bool first = true; first || *reader->at != ']'; first = false) {
        bool found;
        SB_TRY(take_posix_class(reader, &found));
        if (!found)
            SB_TRY(take_perl_class(reader, &found));
        if (!found)
            SB_TRY(take_unicode_class(reader, &found));
        if (!found)
            SB_TRY(take_class_range(reader));
    }
    reader->at++;
    return put(reader, "]");
}

/* ---- groups ---- */

static sb_status open_group(reader *reader, flags inside) {
    if (reader->groups == MOST_GROUPS)
        return refuse(reader, SB_ERROR_UNSUPPORTED, "groups lie deeper in one another than 200");
    reader->outer_folds[reader->groups] = reader->folds;
    reader->outer[reader->groups++] = reader->flags;
    reader->flags = inside;
    reader->folds = inside.fold;
    reader->repeatable = false;
    return put(reader, inside.fold ? "(?i:" : "(?-i:");
}

/* (?P<name> and (?<name>: what is in it counts, not what it is called. */
static sb_status take_name(reader *reader) {
    size_t length = strspn(reader->at, WORD);
    reader->at += length;
    if (length == 0 || !take(reader, ">"))
        return invalid(reader, "a group's name must be of letters, digits and _, up to >");
    return open_group(reader, reader->flags);
}

/* (?flags) and (?flags: */
static sb_status take_flags(reader *reader) {
    flags inside = reader->flags;
    bool set = true, named = false;
    for (;;) {
        char c = *reader->at;
        reader->at += c != '\0';
        switch (c) {
        case 'i':
            inside.fold = set;
            break;
        case 's':
            inside.all = set;
            break;
        case 'm':
            inside.many = set;
            break;
        case 'U':
            break;
        case '-':
            if (!set)
                return invalid(reader, "flags are taken back twice");
            set = false;
            named = false;
            continue;
        case ':':
        case ')':
            if (!set && !named)
                return invalid(reader, "no flag is taken back");
            if (c == ':')
                return open_group(reader, inside);
            reader->flags = inside; /* written with what comes next: a repetition is of what came before */
            return SB_OK;
        default:
            return invalid(reader, "RE2 has no such group (and none that looks ahead or back)");
        }
        named = true;
    }
}

/* A group, whose parenthesis has been read. */
static sb_status take_group(reader *reader) {
    if (!take(reader, "?"))
        return open_group(reader, reader->flags);
    bool looks_back = strncmp(reader->at, "<=", 2) == 0 || strncmp(reader->at, "<!", 2) == 0;
    if (!looks_back && (take(reader, "P<") || take(reader, "<")))
        return take_name(reader);
    return take_flags(reader);
}

static sb_status close_group(reader *reader) {
    if (reader->groups == 0)
        return invalid(reader, ") closes nothing");
    reader->flags = reader->outer[--reader->groups];
    reader->folds = reader->outer_folds[reader->groups];
    reader->repeatable = true;
    reader->repeated = false;
    return put(reader, ")");
}

/* ---- repetition ---- */

/* A number without zeros ahead of it; false, and nothing read, where there is none. Large ones are cut. */
static bool take_number(const char **at, int *number) {
    const char *digit = *at;
    if (digit_of(*digit, 10) < 0 || (*digit == '0' && digit_of(digit[1], 10) >= 0))
        return false;
    for (*number = 0; digit_of(*digit, 10) >= 0; digit++)
        *number = *number > MOST_REPEATS ? *number : *number * 10 + digit_of(*digit, 10);
    *at = digit;
    return true;
}

/* What follows as {n}, {n,} or {n,m}: most is -1 for any number. False, and nothing read, where it is something else. */
static bool take_counts(reader *reader, int *least, int *most) {
    const char *at = reader->at + 1;
    if (*reader->at != '{' || !take_number(&at, least))
        return false;
    *most = *least;
    if (*at == ',') {
        at++;
        *most = -1;
        if (*at != '}' && !take_number(&at, most))
            return false;
    }
    if (*at != '}')
        return false;
    reader->at = at + 1;
    return true;
}

/* *found is false where nothing is repeated here. */
static sb_status take_repetition(reader *reader, bool *found) {
    int least = 0, most = -1;
    char text[32], c = *reader->at;
    bool counted = take_counts(reader, &least, &most);
    *found = counted || c == '*' || c == '+' || c == '?';
    if (!*found)
        return SB_OK;
    if (!reader->repeatable)
        return invalid(reader, "nothing is there to be repeated");
    if (reader->repeated)
        return invalid(reader, "a repetition is repeated: put the first into a group");
    if (counted && (least > MOST_REPEATS || most > MOST_REPEATS || (most >= 0 && most < least)))
        return invalid(reader, "something is repeated more than 1000 times, or at most less often than at least");
    if (counted)
        snprintf(text, sizeof text, most < 0 ? "{%d,}" : "{%d,%d}", least, most);
    else
        snprintf(text, sizeof text, "%c", *reader->at++);
    take(reader, "?");
    reader->repeated = true;
    return put(reader, text);
}

/* ---- everything ---- */

/* \Q…\E: all characters as they are. */
static sb_status take_quoted(reader *reader) {
    while (*reader->at != '\0' && !take(reader, "\\E"))
        SB_TRY(put_point(reader, take_point(reader)));
    return SB_OK;
}

static sb_status take_backslash(reader *reader) {
    static const char *const anchors[] = {"\\A", "\\z", "\\b", "\\B"};
    static const char *const groups[] = {"(?:\\A)", "(?:\\z)", "(?:\\b)", "(?:\\B)"};
    for (int i = 0; i < 4; i++) {
        if (take(reader, anchors[i]))
            return put_item(reader, groups[i]);
    }
    if (strncmp(reader->at, "\\C", 2) == 0)
        return refuse(reader, SB_ERROR_UNSUPPORTED, "Samebit matches characters, not single bytes of them (\\C)");
    if (take(reader, "\\Q"))
        return take_quoted(reader);
    bool perl = reader->at[1] != '\0' && strchr("dDsSwWpP", reader->at[1]) != NULL, found;
    if (perl) {
        SB_TRY(put_item(reader, "["));
        SB_TRY(take_perl_class(reader, &found));
        if (!found)
            SB_TRY(take_unicode_class(reader, &found));
        return put(reader, "]");
    }
    uint32_t point;
    reader->at++;
    SB_TRY(take_escape(reader, &point));
    return put_point(reader, point);
}

static sb_status take_next(reader *reader) {
    bool found;
    SB_TRY(take_repetition(reader, &found));
    if (found)
        return SB_OK;
    switch (*reader->at) {
    case '\\':
        return take_backslash(reader);
    case '[':
        reader->at++;
        return take_brackets(reader);
    case '(':
        reader->at++;
        return take_group(reader);
    case ')':
        SB_TRY(close_group(reader));
        reader->at++;
        return SB_OK;
    case '|':
        reader->at++;
        reader->repeatable = false;
        return put(reader, "|");
    case '.':
        reader->at++;
        return put_item(reader, reader->flags.all ? "[\\x{0}-\\x{10ffff}]" : "[^\\x{a}]");
    case '^':
        reader->at++;
        return put_item(reader, reader->flags.many ? "(?m:^)" : "(?:\\A)");
    case '$':
        reader->at++;
        return put_item(reader, reader->flags.many ? "(?m:$)" : "(?:\\z)");
    default:
        return put_point(reader, take_point(reader));
    }
}

sb_status sb_regex_translate(const char *pattern, char **translated, sb_error *error) {
    reader reader = {.begin = pattern, .at = pattern, .error = error};
    size_t characters;
    *translated = NULL;
    if (!sb_utf8_measure(pattern, strlen(pattern), &characters))
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "it is not UTF-8");
    sb_status status = put(&reader, "(?:");
    while (status == SB_OK && *reader.at != '\0')
        status = take_next(&reader);
    if (status == SB_OK && reader.groups > 0)
        status = invalid(&reader, ") is missing");
    if (status == SB_OK)
        status = put(&reader, ")\\z");
    if (status != SB_OK) {
        sb_free(reader.out);
        return status;
    }
    *translated = reader.out;
    return SB_OK;
}
