/* The functions that a template can call by name. */
#include <stdio.h>

#include "base/allocation.h"
#include "template/value.h"

/* As many items as jinja2's sandbox allows a range. */
#define RANGE_ITEMS 100000

/* ---- dicts ---- */

/* The entries of what dict() was given: a dict, or pairs. */
static sb_status add_entries(sb_jinja *jinja, sb_jinja_value from, sb_jinja_dict *dict) {
    sb_jinja_list *pairs, *pair;
    if (from.kind == SB_JINJA_DICT)
        from = (sb_jinja_value){.kind = SB_JINJA_VIEW, .detail = SB_JINJA_ITEMS, .dict = from.dict};
    SB_TRY(sb_jinja_collect(jinja, from, &pairs));
    for (size_t i = 0; i < pairs->count; i++) {
        SB_TRY(sb_jinja_collect(jinja, pairs->items[i], &pair));
        if (pair->count != 2)
            return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "a dict is made of pairs, and item %zu is none", i);
        SB_TRY(sb_jinja_put(jinja, dict, pair->items[0], pair->items[1]));
    }
    return SB_OK;
}

static sb_status make_dict(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_arguments *arguments,
                           sb_jinja_value *result) {
    sb_jinja_dict *dict;
    SB_TRY(sb_jinja_new_dict(jinja, arguments->count, &dict));
    for (size_t i = 0; i < arguments->count; i++) {
        sb_jinja_value key = {.kind = SB_JINJA_TEXT, .text = arguments->names[i]};
        if (i != 0 && key.text == NULL)
            return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "a dict is made of one argument and of names");
        SB_TRY(key.text == NULL ? add_entries(jinja, arguments->items[i], dict)
                                : sb_jinja_put(jinja, dict, key, arguments->items[i]));
    }
    *result = (sb_jinja_value){.kind = SB_JINJA_DICT, .dict = dict};
    return SB_OK;
}

static sb_status make_namespace(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_arguments *arguments,
                                sb_jinja_value *result) {
    SB_TRY(make_dict(jinja, self, arguments, result));
    result->kind = SB_JINJA_NAMESPACE;
    for (size_t i = 0; i < result->dict->count; i++) {
        sb_jinja_value key = result->dict->entries[i].key;
        if (key.kind == SB_JINJA_TEXT && key.text->bytes != 0 && key.text->data[0] == '_')
            return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "a namespace has no attributes that begin with '_'");
    }
    return SB_OK;
}

/* ---- range ---- */

static sb_status make_range(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                            sb_jinja_value *result) {
    bool one = arguments[1].kind == SB_JINJA_MISSING;
    sb_jinja_range *range;
    SB_TRY(sb_jinja_allocate(jinja, 1, sizeof *range, &range));
    SB_TRY(sb_jinja_take_integer(jinja, "an argument of range", one ? arguments[1] : arguments[0], 0, &range->start));
    SB_TRY(sb_jinja_take_integer(jinja, "an argument of range", one ? arguments[0] : arguments[1], 0, &range->stop));
    SB_TRY(sb_jinja_take_integer(jinja, "an argument of range", arguments[2], 1, &range->step));
    if (range->step == 0)
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "the step of a range is 0");
    bool up = range->step > 0, empty = up ? range->start >= range->stop : range->start <= range->stop;
    /* (Unsigned, for the distance of two numbers may have 64 bits.) */
    uint64_t span =
        up ? (uint64_t)range->stop - (uint64_t)range->start : (uint64_t)range->start - (uint64_t)range->stop;
    uint64_t step = up ? (uint64_t)range->step : 0 - (uint64_t)range->step;
    uint64_t count = empty ? 0 : (span - 1) / step + 1;
    if (count > RANGE_ITEMS)
        return sb_jinja_fail(jinja, SB_ERROR_LIMIT, "a range of more than %d items", RANGE_ITEMS);
    range->count = (int64_t)count;
    *result = (sb_jinja_value){.kind = SB_JINJA_RANGE, .range = range};
    return SB_OK;
}

/* ---- giving up ---- */

static sb_status raise_exception(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                                 sb_jinja_value *result) {
    sb_jinja_value text;
    SB_TRY(sb_jinja_to_text(jinja, arguments[0], &text));
    return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "it refuses: %.*s",
                         (int)(text.text->bytes < 900 ? text.text->bytes : 900), text.text->data);
}

/* ---- the date ---- */

static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
                                     "July",    "August",   "September", "October", "November", "December"};
static const char *const days[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};

static bool is_leap(int year) {
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int days_of_month(int year, int month) {
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return lengths[month - 1] + (month == 2 && is_leap(year));
}

/* From 1. */
static int day_of_year(const sb_llm_date *date) {
    int day = date->day;
    for (int month = 1; month < date->month; month++)
        day += days_of_month(date->year, month);
    return day;
}

/* 0: a Sunday. */
static int day_of_week(const sb_llm_date *date) {
    int before = date->year - 1;
    return (before + before / 4 - before / 100 + before / 400 + day_of_year(date)) % 7;
}

static sb_status check_date(sb_jinja *jinja) {
    const sb_llm_date *date = jinja->date;
    if (date == NULL)
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "it asks for the date, and none was given");
    if (date->year < 1000 || date->year > 9999 || date->month < 1 || date->month > 12 || date->day < 1 ||
        date->day > days_of_month(date->year, date->month) || date->hour < 0 || date->hour > 23 || date->minute < 0 ||
        date->minute > 59 || date->second < 0 || date->second > 59)
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT,
                             "there is no date %d-%d-%d, %d:%d:%d from year 1000 to 9999", date->year, date->month,
                             date->day, date->hour, date->minute, date->second);
    return SB_OK;
}

/* What a directive of strftime stands for, in English; its length, 0 for one that is not known. `plain`: without padding. */
static int format_directive(const sb_llm_date *date, char directive, bool plain, char text[40]) {
    const char *two = plain ? "%d" : "%02d";
    int hour = date->hour % 12 == 0 ? 12 : date->hour % 12;
    switch (directive) {
    case 'Y':
        return sprintf(text, "%d", date->year);
    case 'm':
        return sprintf(text, two, date->month);
    case 'd':
        return sprintf(text, two, date->day);
    case 'H':
        return sprintf(text, two, date->hour);
    case 'I':
        return sprintf(text, two, hour);
    case 'M':
        return sprintf(text, two, date->minute);
    case 'S':
        return sprintf(text, two, date->second);
    case 'y':
        return sprintf(text, two, date->year % 100);
    case 'j':
        return sprintf(text, plain ? "%d" : "%03d", day_of_year(date));
    case 'e':
        return plain ? 0 : sprintf(text, "%2d", date->day);
    case 'B':
        return plain ? 0 : sprintf(text, "%s", months[date->month - 1]);
    case 'b':
        return plain ? 0 : sprintf(text, "%.3s", months[date->month - 1]);
    case 'A':
        return plain ? 0 : sprintf(text, "%s", days[day_of_week(date)]);
    case 'a':
        return plain ? 0 : sprintf(text, "%.3s", days[day_of_week(date)]);
    case 'p':
        return plain ? 0 : sprintf(text, "%s", date->hour < 12 ? "AM" : "PM");
    case 'F':
        return plain ? 0 : sprintf(text, "%d-%02d-%02d", date->year, date->month, date->day);
    case 'T':
        return plain ? 0 : sprintf(text, "%02d:%02d:%02d", date->hour, date->minute, date->second);
    case '%':
        return plain ? 0 : sprintf(text, "%%");
    default:
        return 0;
    }
}

static sb_status write_date(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                            sb_jinja_value *result) {
    SB_TRY(sb_jinja_check_text(jinja, "the format of a date", arguments[0]));
    SB_TRY(check_date(jinja));
    const sb_jinja_text *format = arguments[0].text;
    size_t begin = sb_jinja_begin(jinja);
    for (size_t at = 0; at < format->bytes; at++) {
        if (format->data[at] != '%') {
            SB_TRY(sb_jinja_write(jinja, format->data + at, 1));
            continue;
        }
        bool plain = at + 1 < format->bytes && format->data[at + 1] == '-';
        at += 1 + (size_t)plain;
        char text[40];
        int bytes = at < format->bytes ? format_directive(jinja->date, format->data[at], plain, text) : 0;
        if (bytes == 0)
            return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED, "the date's format '%.*s' is not understood",
                                 (int)(format->bytes < 100 ? format->bytes : 100), format->data);
        SB_TRY(sb_jinja_write(jinja, text, (size_t)bytes));
    }
    return sb_jinja_take(jinja, begin, result);
}

static const sb_jinja_row functions[] = {
    {"dict", NULL, 0, NULL, make_dict},
    {"namespace", NULL, 0, NULL, make_namespace},
    {"raise_exception", "message", 1, raise_exception, NULL},
    {"range", "start stop step", 1, make_range, NULL},
    {"strftime_now", "format", 1, write_date, NULL},
};

const sb_jinja_row *sb_jinja_find_function(const sb_jinja_text *name) {
    return sb_jinja_find_row(functions, sizeof functions / sizeof *functions, name);
}
