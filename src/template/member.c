/* Members of values: attributes, items, slices. As in jinja2, value.name is an attribute first and then an item, and
 * value['name'] an item first; what belongs to Python's objects and is not understood here is refused by name, for it would
 * not be undefined there. */
#define _GNU_SOURCE /* memmem */
#include "base/allocation.h"
#include "template/tree.h"

/* What Python's types have. A row of blanks, so that a name is found with them around it. */
static const char text_members[] =
    " capitalize casefold center count encode endswith expandtabs find format format_map index isalnum isalpha isascii "
    "isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower lstrip "
    "maketrans "
    "partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split splitlines "
    "startswith "
    "strip swapcase title translate upper zfill ";
static const char markup_members[] = " escape striptags unescape ";
static const char list_members[] = " append clear copy count extend index insert pop remove reverse sort ";
static const char tuple_members[] = " count index ";
static const char dict_members[] = " clear copy fromkeys get items keys pop popitem setdefault update values ";
static const char integer_members[] =
    " as_integer_ratio bit_count bit_length conjugate denominator from_bytes imag numerator real to_bytes ";
static const char real_members[] = " as_integer_ratio conjugate fromhex hex imag is_integer real ";
static const char view_members[] = " isdisjoint mapping ";
static const char range_members[] = " count index start step stop ";
static const char iterator_members[] = " close gi_code gi_frame gi_running gi_suspended gi_yieldfrom send throw ";
static const char macro_members[] = " arguments caller catch_kwargs catch_varargs explicit_caller name ";
/* What would change a list or dict: jinja2's sandbox makes it undefined. */
static const char list_changes[] = " append clear pop reverse insert sort extend remove ";
static const char dict_changes[] = " clear pop popitem setdefault update ";

static bool is_among(const char *names, const sb_jinja_text *name) {
    if (name->bytes == 0 || memchr(name->data, ' ', name->bytes) != NULL)
        return false;
    for (const char *at = names; (at = memmem(at, strlen(at), name->data, name->bytes)) != NULL; at++) {
        if (at[-1] == ' ' && at[name->bytes] == ' ')
            return true;
    }
    return false;
}

static bool python_has(sb_jinja_value value, const sb_jinja_text *name) {
    switch (value.kind) {
    case SB_JINJA_TEXT:
        return is_among(text_members, name) || (value.detail != 0 && is_among(markup_members, name));
    case SB_JINJA_LIST:
        return is_among(list_members, name);
    case SB_JINJA_TUPLE:
        return is_among(tuple_members, name);
    case SB_JINJA_DICT:
        return is_among(dict_members, name);
    case SB_JINJA_BOOLEAN:
    case SB_JINJA_INTEGER:
        return is_among(integer_members, name);
    case SB_JINJA_REAL:
        return is_among(real_members, name);
    case SB_JINJA_VIEW:
        return is_among(view_members, name);
    case SB_JINJA_RANGE:
        return is_among(range_members, name);
    case SB_JINJA_ITERATOR:
        return is_among(iterator_members, name);
    case SB_JINJA_MACRO:
        return is_among(macro_members, name);
    default:
        return false;
    }
}

/* The attribute of a Python object, if it has it. Names that begin with two underscores are all taken for such. */
static sb_status python_member(sb_jinja *jinja, sb_jinja_value value, const sb_jinja_text *name, sb_jinja_value *result,
                               bool *found) {
    *found = true;
    const bool changes = (value.kind == SB_JINJA_LIST && is_among(list_changes, name)) ||
                         (value.kind == SB_JINJA_DICT && is_among(dict_changes, name));
    if (changes || (name->bytes >= 2 && memcmp(name->data, "__", 2) == 0)) {
        *result = sb_jinja_undefined(SB_JINJA_UNSAFE, name);
        return SB_OK;
    }
    if (value.kind == SB_JINJA_LOOP)
        return sb_jinja_loop_member(jinja, value.loop, name, result);
    *found = python_has(value, name);
    if (!*found)
        return SB_OK;
    const sb_jinja_row *row = sb_jinja_find_method(value.kind, name);
    if (row == NULL)
        return sb_jinja_fail_unknown(jinja, "method", name);
    if (value.kind == SB_JINJA_TEXT && value.detail != 0)
        return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED,
                             "the method '%s' of a text that has been escaped is not understood", row->name);
    sb_jinja_method *method;
    SB_TRY(sb_jinja_allocate(jinja, 1, sizeof *method, &method));
    *method = (sb_jinja_method){value, row};
    *result = (sb_jinja_value){.kind = SB_JINJA_METHOD, .method = method};
    return SB_OK;
}

/* The item of a dict or namespace. */
static sb_status dict_item(sb_jinja *jinja, sb_jinja_value value, sb_jinja_value key, sb_jinja_value *result,
                           bool *found) {
    sb_jinja_value *item = NULL;
    /* (A key that no dict can have is none that is there.) */
    if (key.kind == SB_JINJA_TEXT || key.kind == SB_JINJA_NONE || sb_jinja_is_number(key))
        SB_TRY(sb_jinja_find(jinja, value.dict, key, &item));
    else if (key.kind == SB_JINJA_TUPLE)
        return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED, "a tuple as a subscript is not understood");
    *found = item != NULL;
    if (*found)
        *result = *item;
    return SB_OK;
}

sb_status sb_jinja_attribute(sb_jinja *jinja, sb_jinja_value value, const sb_jinja_text *name, sb_jinja_value *result) {
    bool found = false;
    sb_jinja_value key = {.kind = SB_JINJA_TEXT, .text = name};
    SB_TRY(sb_jinja_check_defined(jinja, value));
    if (value.kind == SB_JINJA_NAMESPACE)
        SB_TRY(dict_item(jinja, value, key, result, &found));
    if (!found)
        SB_TRY(python_member(jinja, value, name, result, &found));
    if (!found && value.kind == SB_JINJA_DICT)
        SB_TRY(dict_item(jinja, value, key, result, &found));
    if (!found)
        *result = sb_jinja_undefined(SB_JINJA_NO_MEMBER, name);
    return SB_OK;
}

/* Where code point `index` of a text begins; all of its bytes where there are not so many. */
static size_t find_point(const sb_jinja_text *text, int64_t index) {
    if (text->bytes == text->points)
        return index < (int64_t)text->bytes ? (size_t)index : text->bytes;
    size_t at = 0;
    for (; index > 0 && at < text->bytes; index--) {
        size_t step;
        sb_jinja_point(text->data + at, &step);
        at += step;
    }
    return at;
}

static sb_status numbered_item(sb_jinja *jinja, sb_jinja_value value, int64_t index, sb_jinja_value *result,
                               bool *found) {
    int64_t length = 0;
    sb_jinja_length(value, &length);
    index += index < 0 ? length : 0;
    *found = index >= 0 && index < length;
    if (!*found)
        return SB_OK;
    if (value.kind == SB_JINJA_RANGE)
        *result = sb_jinja_integer(value.range->start + index * value.range->step);
    if (value.kind == SB_JINJA_LIST || value.kind == SB_JINJA_TUPLE)
        *result = value.list->items[index];
    if (value.kind != SB_JINJA_TEXT)
        return SB_OK;
    size_t at = find_point(value.text, index), step;
    sb_jinja_point(value.text->data + at, &step);
    SB_TRY(sb_jinja_spend(jinja, at / 16));
    SB_TRY(sb_jinja_text_over(jinja, value.text->data + at, step, result));
    result->detail = value.detail;
    return SB_OK;
}

sb_status sb_jinja_item(sb_jinja *jinja, sb_jinja_value value, sb_jinja_value key, sb_jinja_value *result) {
    bool found = false;
    SB_TRY(sb_jinja_check_defined(jinja, value));
    bool sequence = value.kind == SB_JINJA_TEXT || value.kind == SB_JINJA_LIST || value.kind == SB_JINJA_TUPLE ||
                    value.kind == SB_JINJA_RANGE;
    if (value.kind == SB_JINJA_DICT)
        SB_TRY(dict_item(jinja, value, key, result, &found));
    else if (sequence && sb_jinja_is_whole(key))
        SB_TRY(numbered_item(jinja, value, sb_jinja_whole(key), result, &found));
    if (!found && key.kind == SB_JINJA_TEXT) {
        if (value.kind == SB_JINJA_NAMESPACE)
            SB_TRY(dict_item(jinja, value, key, result, &found));
        if (!found)
            SB_TRY(python_member(jinja, value, key.text, result, &found));
    }
    if (!found)
        *result = sb_jinja_undefined(SB_JINJA_NO_MEMBER, key.kind == SB_JINJA_TEXT ? key.text : NULL);
    return SB_OK;
}

/* ---- slices ---- */

/* Python's rules: a bound beyond an end is that end, a negative one counts from behind. */
static int64_t settle_bound(int64_t bound, int64_t length, bool backwards) {
    if (bound < 0) {
        bound += length;
        return bound < 0 ? (backwards ? -1 : 0) : bound;
    }
    return bound >= length ? (backwards ? length - 1 : length) : bound;
}

static sb_status read_bounds(sb_jinja *jinja, const sb_jinja_value bounds[3], int64_t length, sb_jinja_range *range) {
    int64_t numbers[3] = {0, 0, 1};
    bool given[3];
    for (int i = 0; i < 3; i++) {
        given[i] = bounds[i].kind != SB_JINJA_NONE;
        if (given[i])
            SB_TRY(sb_jinja_take_integer(jinja, "a bound of a slice", bounds[i], 0, &numbers[i]));
    }
    int64_t step = numbers[2];
    if (step == 0 || step == INT64_MIN)
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "the step of a slice is %s",
                             step == 0 ? "0" : "too large");
    bool back = step < 0;
    int64_t start = given[0] ? settle_bound(numbers[0], length, back) : back ? length - 1 : 0;
    int64_t stop = given[1] ? settle_bound(numbers[1], length, back) : back ? -1 : length;
    int64_t span = back ? start - stop : stop - start, width = back ? -step : step;
    *range = (sb_jinja_range){start, stop, step, span > 0 ? (span - 1) / width + 1 : 0};
    return SB_OK;
}

static sb_status slice_text(sb_jinja *jinja, sb_jinja_value value, const sb_jinja_range *range,
                            sb_jinja_value *result) {
    const sb_jinja_text *text = value.text;
    SB_TRY(sb_jinja_spend(jinja, text->bytes / 16));
    if (range->step == 1) {
        size_t from = find_point(text, range->start), to = find_point(text, range->start + range->count);
        SB_TRY(sb_jinja_text_over(jinja, text->data + from, to - from, result));
        result->detail = value.detail;
        return SB_OK;
    }
    size_t begin = sb_jinja_begin(jinja), at = find_point(text, range->start), step = 0;
    for (int64_t i = 0; i < range->count; i++) {
        sb_jinja_point(text->data + at, &step);
        SB_TRY(sb_jinja_write(jinja, text->data + at, step));
        for (int64_t left = range->step; left > 0 && at < text->bytes; left--) {
            sb_jinja_point(text->data + at, &step);
            at += step;
        }
        for (int64_t left = range->step; left < 0 && at > 0; left++)
            at -= sb_jinja_back(text->data, at);
    }
    SB_TRY(sb_jinja_take(jinja, begin, result));
    result->detail = value.detail;
    return SB_OK;
}

sb_status sb_jinja_slice(sb_jinja *jinja, sb_jinja_value value, const sb_jinja_value bounds[3],
                         sb_jinja_value *result) {
    int64_t length = 0;
    sb_jinja_range range;
    SB_TRY(sb_jinja_check_defined(jinja, value));
    if (value.kind != SB_JINJA_TEXT && value.kind != SB_JINJA_LIST && value.kind != SB_JINJA_TUPLE)
        return sb_jinja_fail(jinja, value.kind == SB_JINJA_RANGE ? SB_ERROR_UNSUPPORTED : SB_ERROR_INVALID_ARGUMENT,
                             "a value of type %s has no slices", sb_jinja_kind_name(value));
    sb_jinja_length(value, &length);
    SB_TRY(read_bounds(jinja, bounds, length, &range));
    if (value.kind == SB_JINJA_TEXT)
        return slice_text(jinja, value, &range, result);
    sb_jinja_list *list;
    SB_TRY(sb_jinja_new_list(jinja, (size_t)range.count, &list));
    SB_TRY(sb_jinja_spend(jinja, list->count / 16));
    for (size_t i = 0; i < list->count; i++)
        list->items[i] = value.list->items[range.start + (int64_t)i * range.step];
    *result = sb_jinja_of_list((sb_jinja_kind)value.kind, list);
    return SB_OK;
}
