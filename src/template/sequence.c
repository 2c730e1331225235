/* Filters of what has items. */
#include "base/allocation.h"
#include "template/filter.h"
#include "template/string.h"

/* ---- one of the items ---- */

static sb_status take_one(sb_jinja *jinja, sb_jinja_iterator *iterator, const sb_jinja_text *name,
                          sb_jinja_value *result) {
    bool found;
    SB_TRY(sb_jinja_next(jinja, iterator, result, &found));
    if (!found)
        *result = sb_jinja_undefined(SB_JINJA_NO_ITEM, name);
    return SB_OK;
}

static sb_status first(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments, sb_jinja_value *result) {
    static const sb_jinja_text name = {"first", 5, 5};
    sb_jinja_iterator *iterator;
    SB_TRY(sb_jinja_iterate(jinja, self, &iterator));
    return take_one(jinja, iterator, &name, result);
}

static sb_status last(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments, sb_jinja_value *result) {
    static const sb_jinja_text name = {"last", 4, 4};
    sb_jinja_iterator *iterator;
    SB_TRY(sb_jinja_iterate_back(jinja, self, &iterator));
    if (iterator == NULL)
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "'last' of a value of type %s: make it a list",
                             sb_jinja_kind_name(self));
    return take_one(jinja, iterator, &name, result);
}

/* ---- all of them ---- */

static sb_status length(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments, sb_jinja_value *result) {
    int64_t count;
    if (!sb_jinja_length(self, &count))
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "a value of type %s has no length",
                             sb_jinja_kind_name(self));
    *result = sb_jinja_integer(count);
    return SB_OK;
}

static sb_status list(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments, sb_jinja_value *result) {
    sb_jinja_list *items;
    SB_TRY(sb_jinja_collect(jinja, self, &items));
    *result = sb_jinja_of_list(SB_JINJA_LIST, items);
    return SB_OK;
}

/* jinja2 says so when the first item is asked for. */
static sb_status refuse_items(sb_jinja *jinja, void *state, sb_jinja_value *item, bool *found) {
    const sb_jinja_value *self = state;
    return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "'items' of a value of type %s, which is no dict",
                         sb_jinja_kind_name(*self));
}

static sb_status items(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments, sb_jinja_value *result) {
    sb_jinja_iterator *iterator;
    sb_jinja_value *kept;
    if (self.kind != SB_JINJA_UNDEFINED && self.kind != SB_JINJA_DICT) {
        SB_TRY(sb_jinja_allocate(jinja, 1, sizeof *kept, &kept));
        *kept = self;
        return sb_jinja_new_iterator(jinja, refuse_items, kept, result);
    }
    if (self.kind == SB_JINJA_DICT)
        self = (sb_jinja_value){.kind = SB_JINJA_VIEW, .detail = SB_JINJA_ITEMS, .dict = self.dict};
    SB_TRY(sb_jinja_iterate(jinja, self, &iterator));
    *result = sb_jinja_of_iterator(iterator);
    return SB_OK;
}

static sb_status join(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments, sb_jinja_value *result) {
    sb_jinja_iterator *iterator;
    sb_jinja_path path;
    SB_TRY(sb_jinja_iterate(jinja, self, &iterator));
    SB_TRY(sb_jinja_read_path(jinja, arguments[1], &path));
    size_t begin = sb_jinja_begin(jinja);
    for (bool before = false;; before = true) {
        sb_jinja_value item;
        bool found;
        SB_TRY(sb_jinja_next(jinja, iterator, &item, &found));
        if (!found)
            return sb_jinja_take(jinja, begin, result);
        SB_TRY(sb_jinja_follow(jinja, &path, item, &item));
        if (before && arguments[0].kind != SB_JINJA_MISSING)
            SB_TRY(sb_jinja_write_value(jinja, arguments[0]));
        SB_TRY(sb_jinja_write_value(jinja, item));
    }
}

static sb_status reverse_text(sb_jinja *jinja, sb_jinja_value self, sb_jinja_value *result) {
    size_t begin = sb_jinja_begin(jinja);
    for (size_t at = self.text->bytes; at > 0;) {
        size_t step = sb_jinja_back(self.text->data, at);
        at -= step;
        SB_TRY(sb_jinja_write(jinja, self.text->data + at, step));
    }
    SB_TRY(sb_jinja_take(jinja, begin, result));
    result->detail = self.detail;
    return SB_OK;
}

static sb_status reverse(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                         sb_jinja_value *result) {
    sb_jinja_iterator *iterator;
    sb_jinja_list *collected, *reversed;
    if (self.kind == SB_JINJA_TEXT)
        return reverse_text(jinja, self, result);
    SB_TRY(sb_jinja_iterate_back(jinja, self, &iterator));
    if (iterator != NULL) {
        *result = sb_jinja_of_iterator(iterator);
        return SB_OK;
    }
    SB_TRY(sb_jinja_collect(jinja, self, &collected));
    SB_TRY(sb_jinja_new_list(jinja, collected->count, &reversed));
    for (size_t i = 0; i < collected->count; i++)
        reversed->items[i] = collected->items[collected->count - 1 - i];
    *result = sb_jinja_of_list(SB_JINJA_LIST, reversed);
    return SB_OK;
}

static sb_status sum(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments, sb_jinja_value *result) {
    sb_jinja_iterator *iterator;
    sb_jinja_path path;
    SB_TRY(sb_jinja_iterate(jinja, self, &iterator));
    SB_TRY(sb_jinja_read_path(jinja, arguments[0], &path));
    *result = arguments[1].kind != SB_JINJA_MISSING ? arguments[1] : sb_jinja_integer(0);
    if (result->kind == SB_JINJA_TEXT)
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "'sum' of texts: join them");
    for (;;) {
        sb_jinja_value item;
        bool found;
        SB_TRY(sb_jinja_next(jinja, iterator, &item, &found));
        if (!found)
            return SB_OK;
        SB_TRY(sb_jinja_follow(jinja, &path, item, &item));
        SB_TRY(sb_jinja_arithmetic(jinja, '+', *result, item, result));
    }
}

/* ---- in order ---- */

static sb_status find_extreme(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments, int sign,
                              sb_jinja_value *result) {
    static const sb_jinja_text name = {"min or max", 10, 10};
    sb_jinja_iterator *iterator;
    sb_jinja_path path;
    sb_jinja_value best = {0};
    SB_TRY(sb_jinja_iterate(jinja, self, &iterator));
    SB_TRY(sb_jinja_read_path(jinja, arguments[1], &path));
    path.fold = !sb_jinja_true(arguments[0]);
    *result = sb_jinja_undefined(SB_JINJA_NO_ITEM, &name);
    for (;;) {
        sb_jinja_value item, key;
        bool found;
        int order = sign;
        SB_TRY(sb_jinja_next(jinja, iterator, &item, &found));
        if (!found)
            return SB_OK;
        SB_TRY(sb_jinja_follow(jinja, &path, item, &key));
        if (best.kind != SB_JINJA_MISSING)
            SB_TRY(sb_jinja_compare(jinja, key, best, sign < 0 ? "<" : ">", &order));
        if (order != sign)
            continue;
        best = key;
        *result = item;
    }
}

static sb_status least(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments, sb_jinja_value *result) {
    return find_extreme(jinja, self, arguments, -1, result);
}

static sb_status greatest(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                          sb_jinja_value *result) {
    return find_extreme(jinja, self, arguments, 1, result);
}

/* Merges the sorted halves [from, middle) and [middle, to) of `entries` through `room`; what is equal stays in its order,
 * also backwards. */
static sb_status merge(sb_jinja *jinja, sb_jinja_entry *entries, sb_jinja_entry *room, size_t from, size_t middle,
                       size_t to, bool backwards) {
    size_t left = from, right = middle;
    for (size_t at = from; at < to; at++) {
        int order = 0;
        if (left < middle && right < to && !backwards)
            SB_TRY(sb_jinja_compare(jinja, entries[right].key, entries[left].key, "<", &order));
        else if (left < middle && right < to)
            SB_TRY(sb_jinja_compare(jinja, entries[left].key, entries[right].key, "<", &order));
        SB_TRY(sb_jinja_spend(jinja, 1));
        bool take_right = left == middle || (right < to && order == -1);
        room[at] = take_right ? entries[right++] : entries[left++];
    }
    memcpy(entries + from, room + from, (to - from) * sizeof *entries);
    return SB_OK;
}

static sb_status sort_entries(sb_jinja *jinja, sb_jinja_entry *entries, size_t count, bool backwards) {
    sb_jinja_entry *room;
    SB_TRY(sb_jinja_allocate(jinja, count, sizeof *room, &room));
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t from = 0; from + width < count; from += 2 * width) {
            size_t to = from + 2 * width < count ? from + 2 * width : count;
            SB_TRY(merge(jinja, entries, room, from, from + width, to, backwards));
        }
    }
    return SB_OK;
}

static sb_status sort_to_list(sb_jinja *jinja, sb_jinja_entry *entries, size_t count, bool backwards,
                              sb_jinja_value *result) {
    sb_jinja_list *sorted;
    SB_TRY(sort_entries(jinja, entries, count, backwards));
    SB_TRY(sb_jinja_new_list(jinja, count, &sorted));
    for (size_t i = 0; i < count; i++)
        sorted->items[i] = entries[i].value;
    *result = sb_jinja_of_list(SB_JINJA_LIST, sorted);
    return SB_OK;
}

static sb_status sort(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments, sb_jinja_value *result) {
    sb_jinja_list *unsorted;
    sb_jinja_entry *entries;
    sb_jinja_path path;
    if (arguments[2].kind == SB_JINJA_TEXT && arguments[2].text->bytes != 0 &&
        memchr(arguments[2].text->data, ',', arguments[2].text->bytes) != NULL)
        return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED, "'sort' by several attributes is not understood");
    SB_TRY(sb_jinja_collect(jinja, self, &unsorted));
    SB_TRY(sb_jinja_read_path(jinja, arguments[2], &path));
    SB_TRY(sb_jinja_allocate(jinja, unsorted->count, sizeof *entries, &entries));
    path.fold = !sb_jinja_true(arguments[1]);
    for (size_t i = 0; i < unsorted->count; i++) {
        /* jinja2 compares lists of one key: two that are equal are not asked which is less. */
        sb_jinja_list *key;
        SB_TRY(sb_jinja_new_list(jinja, 1, &key));
        SB_TRY(sb_jinja_follow(jinja, &path, unsorted->items[i], &key->items[0]));
        entries[i] = (sb_jinja_entry){sb_jinja_of_list(SB_JINJA_LIST, key), unsorted->items[i]};
    }
    return sort_to_list(jinja, entries, unsorted->count, sb_jinja_true(arguments[0]), result);
}

static sb_status sort_dict(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                           sb_jinja_value *result) {
    sb_jinja_list *pairs;
    sb_jinja_entry *entries;
    bool by_value = sb_jinja_is_text(arguments[1], "value");
    const sb_jinja_path fold = {.fold = !sb_jinja_true(arguments[0])};
    SB_TRY(sb_jinja_check_defined(jinja, self));
    if (self.kind != SB_JINJA_DICT ||
        (arguments[1].kind != SB_JINJA_MISSING && !by_value && !sb_jinja_is_text(arguments[1], "key")))
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "'dictsort' sorts a dict by \"key\" or \"value\"");
    self = (sb_jinja_value){.kind = SB_JINJA_VIEW, .detail = SB_JINJA_ITEMS, .dict = self.dict};
    SB_TRY(sb_jinja_collect(jinja, self, &pairs));
    SB_TRY(sb_jinja_allocate(jinja, pairs->count, sizeof *entries, &entries));
    for (size_t i = 0; i < pairs->count; i++) {
        entries[i].value = pairs->items[i];
        SB_TRY(sb_jinja_follow(jinja, &fold, pairs->items[i].list->items[by_value], &entries[i].key));
    }
    return sort_to_list(jinja, entries, pairs->count, sb_jinja_true(arguments[2]), result);
}

static const sb_jinja_row filters[] = {
    {"count", "", 0, length, NULL},
    {"dictsort", "case_sensitive by reverse", 0, sort_dict, NULL},
    {"first", "", 0, first, NULL},
    {"items", "", 0, items, NULL},
    {"join", "d attribute", 0, join, NULL},
    {"last", "", 0, last, NULL},
    {"length", "", 0, length, NULL},
    {"list", "", 0, list, NULL},
    {"max", "case_sensitive attribute", 0, greatest, NULL},
    {"min", "case_sensitive attribute", 0, least, NULL},
    {"reverse", "", 0, reverse, NULL},
    {"sort", "reverse case_sensitive attribute", 0, sort, NULL},
    {"sum", "attribute start", 0, sum, NULL},
};

const sb_jinja_row *sb_jinja_find_sequence_filter(const sb_jinja_text *name) {
    const sb_jinja_row *row = sb_jinja_find_row(filters, sizeof filters / sizeof *filters, name);
    return row != NULL ? row : sb_jinja_find_item_filter(name);
}
