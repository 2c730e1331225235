/* Going through values. What filters like map make is gone through as it is asked for, and once, as Python's generators are:
 * a second time there is nothing left. */
#define _GNU_SOURCE /* memmem */
#include "base/allocation.h"
#include "template/value.h"

struct sb_jinja_iterator {
    sb_jinja_value source;
    size_t at; /* of a text bytes, else items */
    bool back;
    sb_jinja_next_function *next; /* NULL: goes through `source` */
    void *state;
};

static bool can_be_gone_through(sb_jinja_value value) {
    int64_t length;
    return sb_jinja_length(value, &length);
}

sb_status sb_jinja_iterate(sb_jinja *jinja, sb_jinja_value value, sb_jinja_iterator **iterator) {
    if (value.kind == SB_JINJA_ITERATOR) {
        *iterator = value.iterator;
        return SB_OK;
    }
    if (!can_be_gone_through(value))
        return sb_jinja_fail(jinja, value.kind == SB_JINJA_LOOP ? SB_ERROR_UNSUPPORTED : SB_ERROR_INVALID_ARGUMENT,
                             "a value of type %s has no items to go through", sb_jinja_kind_name(value));
    SB_TRY(sb_jinja_allocate(jinja, 1, sizeof **iterator, iterator));
    **iterator = (sb_jinja_iterator){.source = value};
    return SB_OK;
}

sb_status sb_jinja_iterate_back(sb_jinja *jinja, sb_jinja_value value, sb_jinja_iterator **iterator) {
    *iterator = NULL;
    if (value.kind == SB_JINJA_ITERATOR || !can_be_gone_through(value))
        return SB_OK;
    SB_TRY(sb_jinja_iterate(jinja, value, iterator));
    int64_t length;
    sb_jinja_length(value, &length);
    (*iterator)->at = value.kind == SB_JINJA_TEXT ? value.text->bytes : (size_t)length;
    (*iterator)->back = true;
    return SB_OK;
}

sb_status sb_jinja_new_iterator(sb_jinja *jinja, sb_jinja_next_function *next, void *state, sb_jinja_value *value) {
    sb_jinja_iterator *iterator;
    SB_TRY(sb_jinja_allocate(jinja, 1, sizeof *iterator, &iterator));
    *iterator = (sb_jinja_iterator){.next = next, .state = state};
    *value = (sb_jinja_value){.kind = SB_JINJA_ITERATOR, .iterator = iterator};
    return SB_OK;
}

/* ---- the next one ---- */

static sb_status next_character(sb_jinja *jinja, sb_jinja_iterator *iterator, sb_jinja_value *item, bool *found) {
    const sb_jinja_text *text = iterator->source.text;
    *found = iterator->back ? iterator->at > 0 : iterator->at < text->bytes;
    if (!*found)
        return SB_OK;
    size_t step;
    if (iterator->back)
        iterator->at -= step = sb_jinja_back(text->data, iterator->at);
    else
        sb_jinja_point(text->data + iterator->at, &step);
    SB_TRY(sb_jinja_text_over(jinja, text->data + iterator->at, step, item));
    if (!iterator->back)
        iterator->at += step;
    return SB_OK;
}

static sb_status make_pair(sb_jinja *jinja, const sb_jinja_entry *entry, sb_jinja_value *item) {
    sb_jinja_list *pair;
    SB_TRY(sb_jinja_new_list(jinja, 2, &pair));
    pair->items[0] = entry->key;
    pair->items[1] = entry->value;
    *item = sb_jinja_of_list(SB_JINJA_TUPLE, pair);
    return SB_OK;
}

/* Item `at` of what has a length. */
static sb_status item_at(sb_jinja *jinja, sb_jinja_value source, size_t at, sb_jinja_value *item) {
    const sb_jinja_entry *entry;
    switch (source.kind) {
    case SB_JINJA_RANGE:
        *item = sb_jinja_integer(source.range->start + (int64_t)at * source.range->step);
        return SB_OK;
    case SB_JINJA_DICT:
    case SB_JINJA_VIEW:
        entry = &source.dict->entries[at];
        if (source.kind == SB_JINJA_VIEW && source.detail == SB_JINJA_ITEMS)
            return make_pair(jinja, entry, item);
        *item = source.kind == SB_JINJA_VIEW && source.detail == SB_JINJA_VALUES ? entry->value : entry->key;
        return SB_OK;
    default:
        *item = source.list->items[at];
        return SB_OK;
    }
}

sb_status sb_jinja_next(sb_jinja *jinja, sb_jinja_iterator *iterator, sb_jinja_value *item, bool *found) {
    *found = false;
    if (iterator->next != NULL) { /* one over one over one …: as deep as calls */
        sb_status status = sb_jinja_enter(jinja);
        if (status != SB_OK)
            return status;
        status = iterator->next(jinja, iterator->state, item, found);
        jinja->depth--;
        return status;
    }
    SB_TRY(sb_jinja_spend(jinja, 1));
    if (iterator->source.kind == SB_JINJA_TEXT)
        return next_character(jinja, iterator, item, found);
    int64_t length;
    sb_jinja_length(iterator->source, &length);
    *found = iterator->back ? iterator->at > 0 : iterator->at < (size_t)length;
    if (!*found)
        return SB_OK;
    size_t at = iterator->back ? --iterator->at : iterator->at++;
    return item_at(jinja, iterator->source, at, item);
}

/* ---- all of them ---- */

sb_status sb_jinja_collect(sb_jinja *jinja, sb_jinja_value value, sb_jinja_list **list) {
    sb_jinja_iterator *iterator;
    size_t capacity = 0;
    SB_TRY(sb_jinja_iterate(jinja, value, &iterator));
    SB_TRY(sb_jinja_new_list(jinja, 0, list));
    for (;;) {
        sb_jinja_value item;
        bool found;
        SB_TRY(sb_jinja_next(jinja, iterator, &item, &found));
        if (!found)
            return SB_OK;
        SB_TRY(sb_jinja_append(jinja, *list, &capacity, item));
    }
}

sb_status sb_jinja_contains(sb_jinja *jinja, sb_jinja_value whole, sb_jinja_value item, bool *contains) {
    *contains = false;
    if (whole.kind == SB_JINJA_TEXT) {
        SB_TRY(sb_jinja_check_text(jinja, "what is looked for in a text", item));
        SB_TRY(sb_jinja_spend(jinja, whole.text->bytes / 16));
        *contains = item.text->bytes == 0 ||
                    (whole.text->bytes != 0 &&
                     memmem(whole.text->data, whole.text->bytes, item.text->data, item.text->bytes) != NULL);
        return SB_OK;
    }
    if (whole.kind == SB_JINJA_DICT || (whole.kind == SB_JINJA_VIEW && whole.detail == SB_JINJA_KEYS)) {
        sb_jinja_value *found;
        if (item.kind == SB_JINJA_UNDEFINED) /* has a hash, and is no key */
            return SB_OK;
        SB_TRY(sb_jinja_find(jinja, whole.dict, item, &found));
        *contains = found != NULL;
        return SB_OK;
    }
    sb_jinja_iterator *iterator;
    SB_TRY(sb_jinja_iterate(jinja, whole, &iterator));
    for (bool found = true; found && !*contains;) {
        sb_jinja_value candidate;
        SB_TRY(sb_jinja_next(jinja, iterator, &candidate, &found));
        if (found)
            SB_TRY(sb_jinja_equal(jinja, candidate, item, contains));
    }
    return SB_OK;
}
