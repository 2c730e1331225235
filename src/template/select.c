/* Filters that go through items as they are asked for: map, select, reject and the two with attributes, unique. What they
 * give is an iterator, as in Python: it has no length, is never empty to an if, and can be gone through once. */
#include "base/allocation.h"
#include "template/filter.h"
#include "template/string.h"

/* ---- paths ---- */

static sb_status read_part(sb_jinja *jinja, const char *data, size_t bytes, sb_jinja_value *part) {
    int64_t number = 0;
    SB_TRY(sb_jinja_text_over(jinja, data, bytes, part));
    for (size_t i = 0; i < bytes; i++) {
        if (data[i] < '0' || data[i] > '9')
            return SB_OK;
        if (i == 18)
            return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED, "a whole number beyond 64 bits");
        number = number * 10 + (data[i] - '0');
    }
    if (bytes != 0)
        *part = sb_jinja_integer(number);
    return SB_OK;
}

sb_status sb_jinja_read_path(sb_jinja *jinja, sb_jinja_value attribute, sb_jinja_path *path) {
    sb_jinja_list *parts;
    size_t capacity = 0;
    *path = (sb_jinja_path){0};
    if (attribute.kind == SB_JINJA_MISSING || attribute.kind == SB_JINJA_NONE)
        return SB_OK;
    SB_TRY(sb_jinja_new_list(jinja, 0, &parts));
    if (attribute.kind != SB_JINJA_TEXT)
        SB_TRY(sb_jinja_append(jinja, parts, &capacity, attribute));
    for (size_t at = 0; attribute.kind == SB_JINJA_TEXT && at <= attribute.text->bytes;) {
        const char *data = attribute.text->data + at;
        size_t left = attribute.text->bytes - at;
        const char *end = left != 0 ? memchr(data, '.', left) : NULL;
        size_t bytes = end != NULL ? (size_t)(end - data) : left;
        sb_jinja_value part;
        SB_TRY(read_part(jinja, data, bytes, &part));
        SB_TRY(sb_jinja_append(jinja, parts, &capacity, part));
        at += bytes + 1;
    }
    path->parts = parts->items;
    path->count = parts->count;
    return SB_OK;
}

sb_status sb_jinja_follow(sb_jinja *jinja, const sb_jinja_path *path, sb_jinja_value item, sb_jinja_value *result) {
    for (size_t i = 0; i < path->count; i++) {
        SB_TRY(sb_jinja_item(jinja, item, path->parts[i], &item));
        bool replaced = path->standard.kind != SB_JINJA_MISSING && path->standard.kind != SB_JINJA_NONE;
        if (replaced && item.kind == SB_JINJA_UNDEFINED)
            item = path->standard;
    }
    if (path->fold && item.kind == SB_JINJA_TEXT)
        SB_TRY(sb_jinja_lower(jinja, item, NULL, &item));
    *result = item;
    return SB_OK;
}

/* ---- items as they are asked for ---- */

typedef struct selection {
    sb_jinja_iterator *iterator;
    sb_jinja_path path;
    const sb_jinja_row *row; /* of a filter or a test; NULL: none */
    sb_jinja_arguments arguments;
    bool wanted;         /* what the test has to say */
    sb_jinja_dict *seen; /* of unique */
} selection;

static sb_status next_mapped(sb_jinja *jinja, void *state, sb_jinja_value *item, bool *found) {
    const selection *map = state;
    SB_TRY(sb_jinja_next(jinja, map->iterator, item, found));
    if (!*found)
        return SB_OK;
    SB_TRY(sb_jinja_follow(jinja, &map->path, *item, item));
    return map->row != NULL ? sb_jinja_apply(jinja, "filter", map->row, *item, &map->arguments, item) : SB_OK;
}

static sb_status next_selected(sb_jinja *jinja, void *state, sb_jinja_value *item, bool *found) {
    const selection *select = state;
    for (;;) {
        sb_jinja_value asked;
        SB_TRY(sb_jinja_next(jinja, select->iterator, item, found));
        if (!*found)
            return SB_OK;
        SB_TRY(sb_jinja_follow(jinja, &select->path, *item, &asked));
        if (select->row != NULL)
            SB_TRY(sb_jinja_apply(jinja, "test", select->row, asked, &select->arguments, &asked));
        if (sb_jinja_true(asked) == select->wanted)
            return SB_OK;
    }
}

static sb_status next_unique(sb_jinja *jinja, void *state, sb_jinja_value *item, bool *found) {
    selection *unique = state;
    for (;;) {
        sb_jinja_value key, *before;
        SB_TRY(sb_jinja_next(jinja, unique->iterator, item, found));
        if (!*found)
            return SB_OK;
        SB_TRY(sb_jinja_follow(jinja, &unique->path, *item, &key));
        SB_TRY(sb_jinja_find(jinja, unique->seen, key, &before));
        if (before == NULL)
            return sb_jinja_put(jinja, unique->seen, key, sb_jinja_none());
    }
}

/* A selection over the items of `self`; of what counts as false there are none, whatever it is. */
static sb_status begin(sb_jinja *jinja, sb_jinja_value self, bool lenient, selection **made) {
    static const sb_jinja_list nothing = {0, NULL};
    if (lenient && !sb_jinja_true(self))
        self = sb_jinja_of_list(SB_JINJA_LIST, &nothing);
    SB_TRY(sb_jinja_allocate(jinja, 1, sizeof **made, made));
    **made = (selection){0};
    return sb_jinja_iterate(jinja, self, &(*made)->iterator);
}

/* The arguments from `first` on. */
static sb_jinja_arguments rest_of(const sb_jinja_arguments *arguments, size_t first) {
    if (first >= arguments->count)
        return (sb_jinja_arguments){0};
    return (sb_jinja_arguments){arguments->count - first, arguments->items + first, arguments->names + first};
}

static bool has_name(const sb_jinja_arguments *arguments, size_t index, const char *name) {
    const sb_jinja_text *text = arguments->names[index];
    return text != NULL && text->bytes == strlen(name) && memcmp(text->data, name, text->bytes) == 0;
}

static sb_status map_attribute(sb_jinja *jinja, const sb_jinja_arguments *arguments, selection *map) {
    sb_jinja_value attribute = {0}, fallback = {0};
    for (size_t i = 0; i < arguments->count; i++) {
        if (has_name(arguments, i, "attribute"))
            attribute = arguments->items[i];
        else if (has_name(arguments, i, "default"))
            fallback = arguments->items[i];
        else
            return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT,
                                 "'map' takes a filter, or attribute= and perhaps default=");
    }
    SB_TRY(sb_jinja_read_path(jinja, attribute, &map->path));
    map->path.standard = fallback;
    return SB_OK;
}

static sb_status map(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_arguments *arguments,
                     sb_jinja_value *result) {
    selection *made;
    SB_TRY(begin(jinja, self, true, &made));
    if (arguments->count == 0)
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "'map' needs a filter or an attribute");
    if (arguments->names[0] != NULL) {
        SB_TRY(map_attribute(jinja, arguments, made));
    } else {
        SB_TRY(sb_jinja_check_text(jinja, "the filter of 'map'", arguments->items[0]));
        made->row = sb_jinja_find_filter(arguments->items[0].text);
        made->arguments = rest_of(arguments, 1);
        if (made->row == NULL)
            return sb_jinja_fail_unknown(jinja, "filter", arguments->items[0].text);
    }
    return sb_jinja_new_iterator(jinja, next_mapped, made, result);
}

static sb_status make_selection(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_arguments *arguments,
                                bool attribute, bool wanted, sb_jinja_value *result) {
    selection *made;
    SB_TRY(begin(jinja, self, true, &made));
    made->wanted = wanted;
    if (attribute && (arguments->count == 0 || arguments->names[0] != NULL))
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "the name of an attribute is missing");
    if (attribute)
        SB_TRY(sb_jinja_read_path(jinja, arguments->items[0], &made->path));
    sb_jinja_arguments rest = rest_of(arguments, attribute);
    if (rest.count != 0) {
        SB_TRY(sb_jinja_check_text(jinja, "the test that selects", rest.items[0]));
        made->row = sb_jinja_find_test(rest.items[0].text);
        made->arguments = rest_of(&rest, 1);
        if (made->row == NULL)
            return sb_jinja_fail_unknown(jinja, "test", rest.items[0].text);
    }
    return sb_jinja_new_iterator(jinja, next_selected, made, result);
}

static sb_status select_items(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_arguments *arguments,
                              sb_jinja_value *result) {
    return make_selection(jinja, self, arguments, false, true, result);
}

static sb_status reject_items(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_arguments *arguments,
                              sb_jinja_value *result) {
    return make_selection(jinja, self, arguments, false, false, result);
}

static sb_status select_attribute(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_arguments *arguments,
                                  sb_jinja_value *result) {
    return make_selection(jinja, self, arguments, true, true, result);
}

static sb_status reject_attribute(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_arguments *arguments,
                                  sb_jinja_value *result) {
    return make_selection(jinja, self, arguments, true, false, result);
}

static sb_status unique(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments, sb_jinja_value *result) {
    selection *made;
    SB_TRY(begin(jinja, self, false, &made));
    SB_TRY(sb_jinja_read_path(jinja, arguments[1], &made->path));
    made->path.fold = !sb_jinja_true(arguments[0]);
    SB_TRY(sb_jinja_new_dict(jinja, 0, &made->seen));
    return sb_jinja_new_iterator(jinja, next_unique, made, result);
}

static const sb_jinja_row filters[] = {
    {"map", NULL, 0, NULL, map},
    {"reject", NULL, 0, NULL, reject_items},
    {"rejectattr", NULL, 0, NULL, reject_attribute},
    {"select", NULL, 0, NULL, select_items},
    {"selectattr", NULL, 0, NULL, select_attribute},
    {"unique", "case_sensitive attribute", 0, unique, NULL},
};

const sb_jinja_row *sb_jinja_find_item_filter(const sb_jinja_text *name) {
    return sb_jinja_find_row(filters, sizeof filters / sizeof *filters, name);
}
