/* What texts can do: the methods of Python's str, and the filters that are such methods. */
#define _GNU_SOURCE /* memmem */
#include "template/string.h"
#include "base/allocation.h"

/* ---- pieces ---- */

/* A part of a text, which stays escaped if the text is. */
static sb_status part_of(sb_jinja *jinja, sb_jinja_value text, size_t from, size_t to, sb_jinja_value *result) {
    SB_TRY(sb_jinja_text_over(jinja, text.text->data + from, to - from, result));
    result->detail = text.detail;
    return SB_OK;
}

static bool is_given(sb_jinja_value value) {
    return value.kind != SB_JINJA_MISSING && value.kind != SB_JINJA_NONE;
}

/* Where `what` begins at or behind `from`; SIZE_MAX: nowhere. */
static size_t find_text(const sb_jinja_text *text, size_t from, const sb_jinja_text *what) {
    if (what->bytes > text->bytes - from)
        return SIZE_MAX;
    if (what->bytes == 0)
        return from;
    const char *at = memmem(text->data + from, text->bytes - from, what->data, what->bytes);
    return at != NULL ? (size_t)(at - text->data) : SIZE_MAX;
}

/* Where the last one begins that ends at or before `to`. */
static size_t find_last(const sb_jinja_text *text, size_t to, const sb_jinja_text *what) {
    for (size_t at = to >= what->bytes ? to - what->bytes + 1 : 0; at > 0; at--) {
        if (memcmp(text->data + at - 1, what->data, what->bytes) == 0)
            return at - 1;
    }
    return SIZE_MAX;
}

/* What find_last may cost, over a whole text. */
static sb_status spend_finding(sb_jinja *jinja, const sb_jinja_text *text, const sb_jinja_text *what) {
    return sb_jinja_spend(jinja, text->bytes / 4 + text->bytes / 64 * (what->bytes / 64));
}

/* ---- strip ---- */

static bool is_among(const sb_jinja_text *characters, const char *data, size_t bytes) {
    for (size_t at = 0, step; at < characters->bytes; at += step) {
        sb_jinja_point(characters->data + at, &step);
        if (step == bytes && memcmp(characters->data + at, data, bytes) == 0)
            return true;
    }
    return false;
}

static sb_status strip(sb_jinja *jinja, sb_jinja_value self, sb_jinja_value characters, bool left, bool right,
                       sb_jinja_value *result) {
    const char *data = self.text->data;
    size_t from = 0, to = self.text->bytes, step;
    if (!is_given(characters)) {
        from = left ? sb_jinja_leading_space(data, to) : 0;
        to -= right ? sb_jinja_trailing_space(data + from, to - from) : 0;
        return part_of(jinja, self, from, to, result);
    }
    SB_TRY(sb_jinja_check_text(jinja, "what is stripped", characters));
    for (; left && from < to; from += step) {
        SB_TRY(sb_jinja_spend(jinja, 1 + characters.text->bytes / 16));
        sb_jinja_point(data + from, &step);
        if (!is_among(characters.text, data + from, step))
            break;
    }
    for (; right && from < to; to -= step) {
        SB_TRY(sb_jinja_spend(jinja, 1 + characters.text->bytes / 16));
        step = sb_jinja_back(data, to);
        if (!is_among(characters.text, data + to - step, step))
            break;
    }
    return part_of(jinja, self, from, to, result);
}

static sb_status strip_both(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                            sb_jinja_value *result) {
    return strip(jinja, self, arguments[0], true, true, result);
}

static sb_status strip_left(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                            sb_jinja_value *result) {
    return strip(jinja, self, arguments[0], true, false, result);
}

static sb_status strip_right(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                             sb_jinja_value *result) {
    return strip(jinja, self, arguments[0], false, true, result);
}

sb_status sb_jinja_trim(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments, sb_jinja_value *result) {
    SB_TRY(sb_jinja_to_text(jinja, self, &self));
    return strip_both(jinja, self, arguments, result);
}

/* ---- split ---- */

static sb_status split_space(sb_jinja *jinja, sb_jinja_value self, int64_t most, sb_jinja_list *list) {
    const sb_jinja_text *text = self.text;
    size_t capacity = 0, at = sb_jinja_leading_space(text->data, text->bytes);
    while (at < text->bytes) {
        size_t end = at, step;
        sb_jinja_value part;
        while (end < text->bytes && !sb_jinja_is_space(sb_jinja_point(text->data + end, &step)))
            end += step;
        if (most >= 0 && (int64_t)list->count == most) /* the rest, and Python leaves the space at its end there */
            end = text->bytes;
        SB_TRY(part_of(jinja, self, at, end, &part));
        SB_TRY(sb_jinja_append(jinja, list, &capacity, part));
        SB_TRY(sb_jinja_spend(jinja, 1 + (end - at) / 16));
        at = end + sb_jinja_leading_space(text->data + end, text->bytes - end);
    }
    return SB_OK;
}

static sb_status split_by(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_text *separator, int64_t most,
                          sb_jinja_list *list) {
    size_t capacity = 0, at = 0;
    for (bool last = false; !last;) {
        sb_jinja_value part;
        size_t end = most >= 0 && (int64_t)list->count >= most ? SIZE_MAX : find_text(self.text, at, separator);
        last = end == SIZE_MAX;
        end = last ? self.text->bytes : end;
        SB_TRY(part_of(jinja, self, at, end, &part));
        SB_TRY(sb_jinja_append(jinja, list, &capacity, part));
        SB_TRY(sb_jinja_spend(jinja, 1 + (end - at) / 16));
        at = end + separator->bytes;
    }
    return SB_OK;
}

static void reverse(sb_jinja_list *list) {
    for (size_t i = 0; i < list->count / 2; i++) {
        sb_jinja_value other = list->items[list->count - 1 - i];
        list->items[list->count - 1 - i] = list->items[i];
        list->items[i] = other;
    }
}

/* From the right; the parts are found in the other order. */
static sb_status split_last(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_text *separator, int64_t most,
                            sb_jinja_list *list) {
    size_t capacity = 0, end = self.text->bytes;
    SB_TRY(spend_finding(jinja, self.text, separator));
    for (bool last = false; !last;) {
        sb_jinja_value part;
        size_t at = most >= 0 && (int64_t)list->count >= most ? SIZE_MAX : find_last(self.text, end, separator);
        last = at == SIZE_MAX;
        size_t from = last ? 0 : at + separator->bytes;
        SB_TRY(sb_jinja_spend(jinja, 1));
        SB_TRY(part_of(jinja, self, from, end, &part));
        SB_TRY(sb_jinja_append(jinja, list, &capacity, part));
        end = at;
    }
    reverse(list);
    return SB_OK;
}

static sb_status split_space_last(sb_jinja *jinja, sb_jinja_value self, int64_t most, sb_jinja_list *list) {
    const sb_jinja_text *text = self.text;
    size_t capacity = 0, end = text->bytes - sb_jinja_trailing_space(text->data, text->bytes);
    while (end > 0) {
        size_t at = end, ignored;
        sb_jinja_value part;
        for (size_t step; at > 0; at -= step) {
            step = sb_jinja_back(text->data, at);
            if (sb_jinja_is_space(sb_jinja_point(text->data + at - step, &ignored)))
                break;
        }
        if (most >= 0 && (int64_t)list->count == most)
            at = 0;
        SB_TRY(part_of(jinja, self, at, end, &part));
        SB_TRY(sb_jinja_append(jinja, list, &capacity, part));
        SB_TRY(sb_jinja_spend(jinja, 1 + (end - at) / 16));
        end = at - sb_jinja_trailing_space(text->data, at);
    }
    reverse(list);
    return SB_OK;
}

static sb_status split(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments, bool from_right,
                       sb_jinja_value *result) {
    int64_t most;
    sb_jinja_list *list;
    SB_TRY(sb_jinja_take_integer(jinja, "maxsplit", arguments[1], -1, &most));
    SB_TRY(sb_jinja_new_list(jinja, 0, &list));
    *result = sb_jinja_of_list(SB_JINJA_LIST, list);
    if (!is_given(arguments[0]))
        return from_right ? split_space_last(jinja, self, most, list) : split_space(jinja, self, most, list);
    SB_TRY(sb_jinja_check_text(jinja, "a separator", arguments[0]));
    if (arguments[0].text->bytes == 0)
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "an empty separator");
    return from_right ? split_last(jinja, self, arguments[0].text, most, list)
                      : split_by(jinja, self, arguments[0].text, most, list);
}

static sb_status split_left(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                            sb_jinja_value *result) {
    return split(jinja, self, arguments, false, result);
}

static sb_status split_right(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                             sb_jinja_value *result) {
    return split(jinja, self, arguments, true, result);
}

sb_status sb_jinja_lines(sb_jinja *jinja, sb_jinja_value self, bool keep, sb_jinja_list **list) {
    const sb_jinja_text *text = self.text;
    size_t capacity = 0;
    SB_TRY(sb_jinja_new_list(jinja, 0, list));
    for (size_t at = 0; at < text->bytes;) {
        size_t end = at, step = 0;
        sb_jinja_value line;
        while (end < text->bytes && !sb_jinja_ends_line(sb_jinja_point(text->data + end, &step)))
            end += step;
        size_t next = end < text->bytes ? end + step : end;
        next += next < text->bytes && text->data[end] == '\r' && text->data[next] == '\n';
        SB_TRY(part_of(jinja, self, at, keep ? next : end, &line));
        SB_TRY(sb_jinja_append(jinja, *list, &capacity, line));
        SB_TRY(sb_jinja_spend(jinja, 1 + (next - at) / 16));
        at = next;
    }
    return SB_OK;
}

static sb_status split_lines(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                             sb_jinja_value *result) {
    sb_jinja_list *list;
    SB_TRY(sb_jinja_lines(jinja, self, sb_jinja_true(arguments[0]), &list));
    *result = sb_jinja_of_list(SB_JINJA_LIST, list);
    return SB_OK;
}

/* ---- finding ---- */

static bool has_end(const sb_jinja_text *text, const sb_jinja_text *what, bool front) {
    return what->bytes <= text->bytes &&
           memcmp(text->data + (front ? 0 : text->bytes - what->bytes), what->data, what->bytes) == 0;
}

/* startswith and endswith, of one text or any of a tuple's. */
static sb_status test_end(sb_jinja *jinja, sb_jinja_value self, sb_jinja_value what, bool front,
                          sb_jinja_value *result) {
    *result = sb_jinja_boolean(false);
    size_t count = what.kind == SB_JINJA_TUPLE ? what.list->count : 1;
    for (size_t i = 0; i < count && !result->boolean; i++) {
        sb_jinja_value one = what.kind == SB_JINJA_TUPLE ? what.list->items[i] : what;
        SB_TRY(sb_jinja_check_text(jinja, "what a text begins or ends with", one));
        SB_TRY(sb_jinja_spend(jinja, 1 + one.text->bytes / 64));
        *result = sb_jinja_boolean(has_end(self.text, one.text, front));
    }
    return SB_OK;
}

static sb_status starts_with(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                             sb_jinja_value *result) {
    return test_end(jinja, self, arguments[0], true, result);
}

static sb_status ends_with(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                           sb_jinja_value *result) {
    return test_end(jinja, self, arguments[0], false, result);
}

static sb_status remove_end(sb_jinja *jinja, sb_jinja_value self, sb_jinja_value what, bool front,
                            sb_jinja_value *result) {
    SB_TRY(sb_jinja_check_text(jinja, "what is removed", what));
    size_t bytes = has_end(self.text, what.text, front) ? what.text->bytes : 0;
    return part_of(jinja, self, front ? bytes : 0, self.text->bytes - (front ? 0 : bytes), result);
}

static sb_status remove_prefix(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                               sb_jinja_value *result) {
    return remove_end(jinja, self, arguments[0], true, result);
}

static sb_status remove_suffix(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                               sb_jinja_value *result) {
    return remove_end(jinja, self, arguments[0], false, result);
}

static sb_status locate(sb_jinja *jinja, sb_jinja_value self, sb_jinja_value what, bool last, sb_jinja_value *result) {
    SB_TRY(sb_jinja_check_text(jinja, "what is looked for", what));
    SB_TRY(spend_finding(jinja, self.text, what.text));
    size_t at = last ? find_last(self.text, self.text->bytes, what.text) : find_text(self.text, 0, what.text);
    *result = sb_jinja_integer(at == SIZE_MAX ? -1 : (int64_t)sb_jinja_count_points(self.text->data, at));
    return SB_OK;
}

static sb_status find_first(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                            sb_jinja_value *result) {
    return locate(jinja, self, arguments[0], false, result);
}

static sb_status find_from_right(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                                 sb_jinja_value *result) {
    return locate(jinja, self, arguments[0], true, result);
}

static sb_status index_of(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                          sb_jinja_value *result) {
    SB_TRY(locate(jinja, self, arguments[0], false, result));
    if (result->integer < 0)
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "'index' has not found what it looked for");
    return SB_OK;
}

static sb_status count_of(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                          sb_jinja_value *result) {
    SB_TRY(sb_jinja_check_text(jinja, "what is counted", arguments[0]));
    SB_TRY(sb_jinja_spend(jinja, self.text->bytes / 4));
    int64_t count = 0;
    if (arguments[0].text->bytes == 0)
        count = (int64_t)self.text->points + 1;
    for (size_t at = 0; arguments[0].text->bytes != 0; count++) {
        at = find_text(self.text, at, arguments[0].text);
        if (at == SIZE_MAX)
            break;
        at += arguments[0].text->bytes;
    }
    *result = sb_jinja_integer(count);
    return SB_OK;
}

/* ---- changing ---- */

sb_status sb_jinja_replace(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                           sb_jinja_value *result) {
    const sb_jinja_text *text = self.text, *old = arguments[0].text, *new = arguments[1].text;
    int64_t left;
    size_t begin = sb_jinja_begin(jinja), at = 0;
    SB_TRY(sb_jinja_take_integer(jinja, "how often to replace", arguments[2], -1, &left));
    SB_TRY(sb_jinja_spend(jinja, text->bytes / 16));
    for (; left != 0; left--) {
        size_t end = find_text(text, at, old), step = 0;
        if (end == SIZE_MAX)
            break;
        SB_TRY(sb_jinja_write(jinja, text->data + at, end - at));
        SB_TRY(sb_jinja_write(jinja, new->data, new->bytes));
        SB_TRY(sb_jinja_spend(jinja, 1));
        at = end + old->bytes;
        if (old->bytes != 0)
            continue;
        if (at == text->bytes) /* before each character, and at the end */
            break;
        sb_jinja_point(text->data + at, &step);
        SB_TRY(sb_jinja_write(jinja, text->data + at, step));
        at += step;
    }
    SB_TRY(sb_jinja_write(jinja, text->data + at, text->bytes - at));
    return sb_jinja_take(jinja, begin, result);
}

static sb_status replace(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                         sb_jinja_value *result) {
    SB_TRY(sb_jinja_check_text(jinja, "what is replaced", arguments[0]));
    SB_TRY(sb_jinja_check_text(jinja, "what replaces it", arguments[1]));
    return sb_jinja_replace(jinja, self, arguments, result);
}

static sb_status join(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments, sb_jinja_value *result) {
    sb_jinja_list *list;
    SB_TRY(sb_jinja_check_defined(jinja, arguments[0]));
    SB_TRY(sb_jinja_collect(jinja, arguments[0], &list));
    size_t begin = sb_jinja_begin(jinja);
    for (size_t i = 0; i < list->count; i++) {
        if (i != 0)
            SB_TRY(sb_jinja_write_value(jinja, self));
        SB_TRY(sb_jinja_check_text(jinja, "what is joined", list->items[i]));
        SB_TRY(sb_jinja_write_value(jinja, list->items[i]));
    }
    return sb_jinja_take(jinja, begin, result);
}

static sb_status change_case(sb_jinja *jinja, sb_jinja_value self, sb_jinja_case change, sb_jinja_value *result) {
    SB_TRY(sb_jinja_to_text(jinja, self, &self));
    size_t begin = sb_jinja_begin(jinja);
    SB_TRY(sb_jinja_write_case(jinja, self.text, 0, self.text->bytes, change));
    SB_TRY(sb_jinja_take(jinja, begin, result));
    result->detail = self.detail;
    return SB_OK;
}

sb_status sb_jinja_upper(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                         sb_jinja_value *result) {
    return change_case(jinja, self, SB_JINJA_UPPER, result);
}

sb_status sb_jinja_lower(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                         sb_jinja_value *result) {
    return change_case(jinja, self, SB_JINJA_LOWER, result);
}

sb_status sb_jinja_capitalize(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                              sb_jinja_value *result) {
    SB_TRY(sb_jinja_to_text(jinja, self, &self));
    size_t begin = sb_jinja_begin(jinja), step = 0;
    if (self.text->bytes != 0)
        sb_jinja_point(self.text->data, &step);
    SB_TRY(sb_jinja_write_case(jinja, self.text, 0, step, SB_JINJA_TITLE));
    SB_TRY(sb_jinja_write_case(jinja, self.text, step, self.text->bytes, SB_JINJA_LOWER));
    SB_TRY(sb_jinja_take(jinja, begin, result));
    result->detail = self.detail;
    return SB_OK;
}

/* str.title(): what follows a letter is lower case. */
static sb_status title(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments, sb_jinja_value *result) {
    size_t begin = sb_jinja_begin(jinja);
    bool inside = false;
    for (size_t at = 0, step; at < self.text->bytes; at += step) {
        int32_t point = sb_jinja_point(self.text->data + at, &step);
        SB_TRY(sb_jinja_write_case(jinja, self.text, at, at + step, inside ? SB_JINJA_LOWER : SB_JINJA_TITLE));
        inside = sb_jinja_is_cased(point);
    }
    return sb_jinja_take(jinja, begin, result);
}

static const sb_jinja_row methods[] = {
    {"strip", "chars", 0, strip_both, NULL},
    {"lstrip", "chars", 0, strip_left, NULL},
    {"rstrip", "chars", 0, strip_right, NULL},
    {"split", "sep maxsplit", 0, split_left, NULL},
    {"rsplit", "sep maxsplit", 0, split_right, NULL},
    {"splitlines", "keepends", 0, split_lines, NULL},
    {"startswith", "prefix", 1, starts_with, NULL},
    {"endswith", "suffix", 1, ends_with, NULL},
    {"removeprefix", "prefix", 1, remove_prefix, NULL},
    {"removesuffix", "suffix", 1, remove_suffix, NULL},
    {"find", "sub", 1, find_first, NULL},
    {"rfind", "sub", 1, find_from_right, NULL},
    {"index", "sub", 1, index_of, NULL},
    {"count", "sub", 1, count_of, NULL},
    {"replace", "old new count", 2, replace, NULL},
    {"join", "iterable", 1, join, NULL},
    {"upper", "", 0, sb_jinja_upper, NULL},
    {"lower", "", 0, sb_jinja_lower, NULL},
    {"capitalize", "", 0, sb_jinja_capitalize, NULL},
    {"title", "", 0, title, NULL},
};

const sb_jinja_row *sb_jinja_find_text_method(const sb_jinja_text *name) {
    return sb_jinja_find_row(methods, sizeof methods / sizeof *methods, name);
}
