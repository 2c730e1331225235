/* Methods of dicts and lists: what changes neither, for the sandbox has no other. */
#include "template/string.h"

static sb_status get(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments, sb_jinja_value *result) {
    sb_jinja_value *found = NULL;
    if (arguments[0].kind != SB_JINJA_UNDEFINED)
        SB_TRY(sb_jinja_find(jinja, self.dict, arguments[0], &found));
    *result = found != NULL ? *found : arguments[1].kind != SB_JINJA_MISSING ? arguments[1] : sb_jinja_none();
    return SB_OK;
}

static sb_status view(sb_jinja_value self, sb_jinja_view which, sb_jinja_value *result) {
    *result = (sb_jinja_value){.kind = SB_JINJA_VIEW, .detail = (uint8_t)which, .dict = self.dict};
    return SB_OK;
}

static sb_status items(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments, sb_jinja_value *result) {
    return view(self, SB_JINJA_ITEMS, result);
}

static sb_status keys(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments, sb_jinja_value *result) {
    return view(self, SB_JINJA_KEYS, result);
}

static sb_status values(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments, sb_jinja_value *result) {
    return view(self, SB_JINJA_VALUES, result);
}

static const sb_jinja_row dict_methods[] = {{"get", "key default", 1, get, NULL},
                                            {"items", "", 0, items, NULL},
                                            {"keys", "", 0, keys, NULL},
                                            {"values", "", 0, values, NULL}};

static sb_status find_in_list(sb_jinja *jinja, sb_jinja_value self, sb_jinja_value item, int64_t *first,
                              int64_t *count) {
    *first = -1;
    *count = 0;
    for (size_t i = 0; i < self.list->count; i++) {
        bool equal;
        SB_TRY(sb_jinja_equal(jinja, self.list->items[i], item, &equal));
        *first = equal && *first < 0 ? (int64_t)i : *first;
        *count += equal;
    }
    return SB_OK;
}

static sb_status list_index(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                            sb_jinja_value *result) {
    int64_t first, count;
    SB_TRY(find_in_list(jinja, self, arguments[0], &first, &count));
    if (first < 0)
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "'index' has not found what it looked for");
    *result = sb_jinja_integer(first);
    return SB_OK;
}

static sb_status list_count(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                            sb_jinja_value *result) {
    int64_t first, count;
    SB_TRY(find_in_list(jinja, self, arguments[0], &first, &count));
    *result = sb_jinja_integer(count);
    return SB_OK;
}

static const sb_jinja_row list_methods[] = {{"index", "value", 1, list_index, NULL},
                                            {"count", "value", 1, list_count, NULL}};

const sb_jinja_row *sb_jinja_find_method(sb_jinja_kind kind, const sb_jinja_text *name) {
    switch (kind) {
    case SB_JINJA_TEXT:
        return sb_jinja_find_text_method(name);
    case SB_JINJA_DICT:
        return sb_jinja_find_row(dict_methods, sizeof dict_methods / sizeof *dict_methods, name);
    case SB_JINJA_LIST:
    case SB_JINJA_TUPLE:
        return sb_jinja_find_row(list_methods, sizeof list_methods / sizeof *list_methods, name);
    default:
        return NULL;
    }
}
