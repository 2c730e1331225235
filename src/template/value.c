#include "template/value.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/allocation.h"

/* ---- memory and limits ---- */

struct sb_jinja_chunk {
    sb_jinja_chunk *next;
};
#define CHUNK_BYTES ((size_t)16 << 10)
#define CHUNK_HEADER ((size_t)16)

sb_status sb_jinja_fail(sb_jinja *jinja, sb_status status, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return sb_fail(jinja->error, status, "the template, line %d: %s", jinja->line, text);
}

static sb_status new_chunk(sb_jinja *jinja, size_t bytes) {
    if (bytes > SB_JINJA_MEMORY_BYTES || jinja->total > SB_JINJA_MEMORY_BYTES - bytes)
        return sb_jinja_fail(jinja, SB_ERROR_LIMIT, "it takes more than %zu MiB", SB_JINJA_MEMORY_BYTES >> 20);
    sb_jinja_chunk *chunk = sb_allocate(bytes);
    if (chunk == NULL)
        return sb_fail_memory(jinja->error, bytes);
    chunk->next = jinja->chunks;
    jinja->chunks = chunk;
    jinja->total += bytes;
    return SB_OK;
}

sb_status sb_jinja_allocate(sb_jinja *jinja, size_t count, size_t size, void *block) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SB_JINJA_MEMORY_BYTES)
        bytes = SB_JINJA_MEMORY_BYTES;
    bytes = bytes != 0 ? (bytes + 15) / 16 * 16 : 16;     /* no items have an address too */
    if (bytes > CHUNK_BYTES / 4 && bytes > jinja->left) { /* a chunk of its own; what is left of the newest stays */
        SB_TRY(new_chunk(jinja, bytes + CHUNK_HEADER));
        *(void **)block = (char *)jinja->chunks + CHUNK_HEADER;
        return SB_OK;
    }
    if (bytes > jinja->left) {
        SB_TRY(new_chunk(jinja, CHUNK_BYTES));
        jinja->next = (char *)jinja->chunks + CHUNK_HEADER;
        jinja->left = CHUNK_BYTES - CHUNK_HEADER;
    }
    *(void **)block = jinja->next;
    jinja->next += bytes;
    jinja->left -= bytes;
    return SB_OK;
}

void sb_jinja_free_chunks(sb_jinja_chunk *chunks) {
    while (chunks != NULL) {
        sb_jinja_chunk *next = chunks->next;
        sb_free(chunks);
        chunks = next;
    }
}

sb_status sb_jinja_spend(sb_jinja *jinja, size_t steps) {
    if (steps >= (size_t)jinja->steps)
        return sb_jinja_fail(jinja, SB_ERROR_LIMIT, "it takes more steps than it may");
    jinja->steps -= (int64_t)steps;
    return SB_OK;
}

sb_status sb_jinja_enter(sb_jinja *jinja) {
    if (jinja->depth >= SB_JINJA_DEPTH)
        return sb_jinja_fail(jinja, SB_ERROR_LIMIT, "calls or values nest too deep");
    jinja->depth++;
    return sb_jinja_spend(jinja, 1);
}

/* ---- making ---- */

sb_status sb_jinja_text_over(sb_jinja *jinja, const char *data, size_t bytes, sb_jinja_value *value) {
    sb_jinja_text *text;
    SB_TRY(sb_jinja_allocate(jinja, 1, sizeof *text, &text));
    SB_TRY(sb_jinja_spend(jinja, bytes / 64));
    *text = (sb_jinja_text){data, bytes, sb_jinja_count_points(data, bytes)};
    *value = (sb_jinja_value){.kind = SB_JINJA_TEXT, .text = text};
    return SB_OK;
}

sb_status sb_jinja_new_list(sb_jinja *jinja, size_t count, sb_jinja_list **list) {
    SB_TRY(sb_jinja_allocate(jinja, 1, sizeof **list, list));
    (*list)->count = count;
    return sb_jinja_allocate(jinja, count, sizeof *(*list)->items, &(*list)->items);
}

sb_status sb_jinja_append(sb_jinja *jinja, sb_jinja_list *list, size_t *capacity, sb_jinja_value value) {
    if (list->count == *capacity) {
        size_t larger = *capacity == 0 ? 8 : 2 * *capacity;
        sb_jinja_value *items;
        SB_TRY(sb_jinja_allocate(jinja, larger, sizeof *items, &items));
        if (list->count != 0)
            memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
        *capacity = larger;
    }
    list->items[list->count++] = value;
    return SB_OK;
}

sb_status sb_jinja_new_dict(sb_jinja *jinja, size_t capacity, sb_jinja_dict **dict) {
    SB_TRY(sb_jinja_allocate(jinja, 1, sizeof **dict, dict));
    (*dict)->count = 0;
    (*dict)->capacity = capacity;
    return sb_jinja_allocate(jinja, capacity, sizeof *(*dict)->entries, &(*dict)->entries);
}

static bool can_be_key(sb_jinja_value key) {
    switch (key.kind) {
    case SB_JINJA_NONE:
    case SB_JINJA_BOOLEAN:
    case SB_JINJA_INTEGER:
    case SB_JINJA_REAL:
    case SB_JINJA_TEXT:
        return true;
    case SB_JINJA_TUPLE:
        for (size_t i = 0; i < key.list->count; i++) {
            if (!can_be_key(key.list->items[i]))
                return false;
        }
        return true;
    default:
        return false;
    }
}

static bool equal_texts(const sb_jinja_text *left, const sb_jinja_text *right) {
    return left->bytes == right->bytes && memcmp(left->data, right->data, left->bytes) == 0;
}

sb_status sb_jinja_find(sb_jinja *jinja, const sb_jinja_dict *dict, sb_jinja_value key, sb_jinja_value **found) {
    *found = NULL;
    SB_TRY(sb_jinja_spend(jinja, dict->count / 4));
    if (key.kind != SB_JINJA_TEXT && !can_be_key(key))
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "a value of type %s can be no key of a dict",
                             sb_jinja_kind_name(key));
    for (size_t i = 0; i < dict->count && *found == NULL; i++) {
        sb_jinja_value candidate = dict->entries[i].key;
        bool equal = false;
        if (candidate.kind == SB_JINJA_TEXT && key.kind == SB_JINJA_TEXT) {
            if (candidate.text->bytes == key.text->bytes)
                SB_TRY(sb_jinja_spend(jinja, key.text->bytes / 256));
            equal = equal_texts(candidate.text, key.text);
        } else if (candidate.kind != SB_JINJA_TEXT && key.kind != SB_JINJA_TEXT) {
            SB_TRY(sb_jinja_equal(jinja, candidate, key, &equal));
        }
        if (equal)
            *found = &dict->entries[i].value;
    }
    return SB_OK;
}

sb_status sb_jinja_put(sb_jinja *jinja, sb_jinja_dict *dict, sb_jinja_value key, sb_jinja_value value) {
    sb_jinja_value *found;
    SB_TRY(sb_jinja_find(jinja, dict, key, &found));
    if (found != NULL) {
        *found = value;
        return SB_OK;
    }
    if (dict->count == dict->capacity) {
        sb_jinja_entry *entries;
        size_t larger = dict->capacity == 0 ? 4 : 2 * dict->capacity;
        SB_TRY(sb_jinja_allocate(jinja, larger, sizeof *entries, &entries));
        if (dict->count != 0)
            memcpy(entries, dict->entries, dict->count * sizeof *entries);
        dict->entries = entries;
        dict->capacity = larger;
    }
    dict->entries[dict->count++] = (sb_jinja_entry){key, value};
    return SB_OK;
}

static sb_status array_of_json(sb_jinja *jinja, const json_t *json, sb_jinja_value *value) {
    sb_jinja_list *list;
    SB_TRY(sb_jinja_new_list(jinja, json_array_size(json), &list));
    for (size_t i = 0; i < list->count; i++)
        SB_TRY(sb_jinja_of_json(jinja, json_array_get(json, i), &list->items[i]));
    *value = sb_jinja_of_list(SB_JINJA_LIST, list);
    return SB_OK;
}

static sb_status object_of_json(sb_jinja *jinja, const json_t *json, sb_jinja_value *value) {
    sb_jinja_dict *dict;
    SB_TRY(sb_jinja_new_dict(jinja, json_object_size(json), &dict));
    void *at = json_object_iter((json_t *)(uintptr_t)json);
    for (; at != NULL; at = json_object_iter_next((json_t *)(uintptr_t)json, at)) {
        sb_jinja_entry *entry = &dict->entries[dict->count++]; /* (Keys of an object differ.) */
        const char *key = json_object_iter_key(at);
        SB_TRY(sb_jinja_text_over(jinja, key, strlen(key), &entry->key));
        SB_TRY(sb_jinja_of_json(jinja, json_object_iter_value(at), &entry->value));
    }
    *value = (sb_jinja_value){.kind = SB_JINJA_DICT, .dict = dict};
    return SB_OK;
}

sb_status sb_jinja_of_json(sb_jinja *jinja, const json_t *json, sb_jinja_value *value) {
    sb_status status = sb_jinja_enter(jinja);
    if (status != SB_OK)
        return status;
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        status = object_of_json(jinja, json, value);
        break;
    case JSON_ARRAY:
        status = array_of_json(jinja, json, value);
        break;
    case JSON_STRING:
        status = sb_jinja_text_over(jinja, json_string_value(json), json_string_length(json), value);
        break;
    case JSON_INTEGER:
        *value = sb_jinja_integer(json_integer_value(json));
        break;
    case JSON_REAL:
        *value = sb_jinja_real(json_real_value(json));
        break;
    case JSON_NULL:
        *value = sb_jinja_none();
        break;
    default:
        *value = sb_jinja_boolean(json_is_true(json));
        break;
    }
    jinja->depth--;
    return status;
}

/* ---- asking ---- */

const char *sb_jinja_kind_name(sb_jinja_value value) {
    static const char *const names[] = {"nothing",  "undefined", "NoneType", "bool",  "int",    "float",
                                        "str",      "list",      "tuple",    "dict",  "view",   "range",
                                        "iterator", "namespace", "loop",     "macro", "method", "function"};
    return names[value.kind];
}

bool sb_jinja_length(sb_jinja_value value, int64_t *length) {
    switch (value.kind) {
    case SB_JINJA_UNDEFINED:
        *length = 0;
        return true;
    case SB_JINJA_TEXT:
        *length = (int64_t)value.text->points;
        return true;
    case SB_JINJA_LIST:
    case SB_JINJA_TUPLE:
        *length = (int64_t)value.list->count;
        return true;
    case SB_JINJA_DICT:
    case SB_JINJA_VIEW:
        *length = (int64_t)value.dict->count;
        return true;
    case SB_JINJA_RANGE:
        *length = value.range->count;
        return true;
    default:
        return false;
    }
}

bool sb_jinja_true(sb_jinja_value value) {
    int64_t length;
    switch (value.kind) {
    case SB_JINJA_MISSING:
    case SB_JINJA_UNDEFINED:
    case SB_JINJA_NONE:
        return false;
    case SB_JINJA_BOOLEAN:
        return value.boolean;
    case SB_JINJA_INTEGER:
        return value.integer != 0;
    case SB_JINJA_REAL:
        return value.real != 0;
    default:
        return !sb_jinja_length(value, &length) || length != 0;
    }
}

sb_status sb_jinja_check_defined(sb_jinja *jinja, sb_jinja_value value) {
    if (value.kind != SB_JINJA_UNDEFINED)
        return SB_OK;
    static const sb_jinja_text nameless = {"?", 1, 1};
    const sb_jinja_text *name = value.text != NULL ? value.text : &nameless;
    int bytes = (int)(name->bytes < 200 ? name->bytes : 200);
    static const char *const reasons[] = {"'%.*s' is undefined", "there is no member '%.*s'",
                                          "a template may not use '%.*s', which belongs to Python or changes a value",
                                          "'%.*s' was asked of what is empty"};
    char text[512];
    snprintf(text, sizeof text, reasons[value.detail], bytes, name->data);
    return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "%s", text);
}

sb_status sb_jinja_check_text(sb_jinja *jinja, const char *whose, sb_jinja_value value) {
    if (value.kind == SB_JINJA_TEXT)
        return SB_OK;
    SB_TRY(sb_jinja_check_defined(jinja, value));
    return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "%s has to be text, and is of type %s", whose,
                         sb_jinja_kind_name(value));
}

sb_status sb_jinja_take_integer(sb_jinja *jinja, const char *whose, sb_jinja_value value, int64_t standard,
                                int64_t *number) {
    *number = standard;
    if (value.kind == SB_JINJA_MISSING)
        return SB_OK;
    SB_TRY(sb_jinja_check_defined(jinja, value));
    if (!sb_jinja_is_whole(value))
        return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "%s has to be a whole number, and is of type %s", whose,
                             sb_jinja_kind_name(value));
    *number = sb_jinja_whole(value);
    return SB_OK;
}

/* ---- comparing ---- */

/* Of numbers, exactly, as Python has it; 2 where one is NaN. */
static int compare_numbers(sb_jinja_value left, sb_jinja_value right) {
    if (sb_jinja_is_whole(left) && sb_jinja_is_whole(right)) {
        int64_t a = sb_jinja_whole(left), b = sb_jinja_whole(right);
        return (a > b) - (a < b);
    }
    if (sb_jinja_is_whole(right))
        return compare_numbers(right, left) == 2 ? 2 : -compare_numbers(right, left);
    double b = right.real;
    if (isnan(b) || (left.kind == SB_JINJA_REAL && isnan(left.real)))
        return 2;
    if (left.kind == SB_JINJA_REAL)
        return (left.real > b) - (left.real < b);
    /* A whole number and a float: floats beyond 63 bits are further out than any; of others the whole part decides. */
    int64_t a = sb_jinja_whole(left);
    if (b >= 0x1p63 || b < -0x1p63)
        return b > 0 ? -1 : 1;
    int64_t whole = (int64_t)b;
    double rest = b - (double)whole;
    return a != whole ? (a > whole) - (a < whole) : (rest < 0) - (rest > 0);
}

static sb_status equal_lists(sb_jinja *jinja, const sb_jinja_list *left, const sb_jinja_list *right, bool *equal) {
    *equal = left->count == right->count;
    for (size_t i = 0; i < left->count && *equal && left != right; i++)
        SB_TRY(sb_jinja_equal(jinja, left->items[i], right->items[i], equal));
    return SB_OK;
}

static sb_status equal_dicts(sb_jinja *jinja, const sb_jinja_dict *left, const sb_jinja_dict *right, bool *equal) {
    *equal = left->count == right->count;
    for (size_t i = 0; i < left->count && *equal && left != right; i++) {
        sb_jinja_value *other;
        SB_TRY(sb_jinja_find(jinja, right, left->entries[i].key, &other));
        *equal = other != NULL;
        if (other != NULL)
            SB_TRY(sb_jinja_equal(jinja, left->entries[i].value, *other, equal));
    }
    return SB_OK;
}

static sb_status equal_same_kind(sb_jinja *jinja, sb_jinja_value left, sb_jinja_value right, bool *equal) {
    const sb_jinja_range *a = left.range, *b = right.range;
    switch (left.kind) {
    case SB_JINJA_UNDEFINED:
    case SB_JINJA_NONE:
        *equal = true;
        return SB_OK;
    case SB_JINJA_TEXT:
        *equal = equal_texts(left.text, right.text);
        return sb_jinja_spend(jinja, left.text->bytes / 256);
    case SB_JINJA_LIST:
    case SB_JINJA_TUPLE:
        return equal_lists(jinja, left.list, right.list, equal);
    case SB_JINJA_DICT:
        return equal_dicts(jinja, left.dict, right.dict, equal);
    case SB_JINJA_RANGE:
        *equal =
            a->count == b->count && (a->count == 0 || (a->start == b->start && (a->count == 1 || a->step == b->step)));
        return SB_OK;
    case SB_JINJA_VIEW:
    case SB_JINJA_METHOD:
        return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED, "values of type %s cannot be compared here",
                             sb_jinja_kind_name(left));
    default:
        *equal = left.dict == right.dict; /* the same one: whichever pointer it is */
        return SB_OK;
    }
}

sb_status sb_jinja_equal(sb_jinja *jinja, sb_jinja_value left, sb_jinja_value right, bool *equal) {
    sb_status status = sb_jinja_enter(jinja);
    if (status != SB_OK)
        return status;
    *equal = false;
    if (sb_jinja_is_number(left) && sb_jinja_is_number(right))
        *equal = compare_numbers(left, right) == 0;
    else if (left.kind == right.kind)
        status = equal_same_kind(jinja, left, right, equal);
    jinja->depth--;
    return status;
}

static sb_status compare_lists(sb_jinja *jinja, const sb_jinja_list *left, const sb_jinja_list *right, const char *sign,
                               int *order) {
    for (size_t i = 0; i < left->count && i < right->count; i++) {
        bool equal;
        SB_TRY(sb_jinja_equal(jinja, left->items[i], right->items[i], &equal));
        if (!equal)
            return sb_jinja_compare(jinja, left->items[i], right->items[i], sign, order);
    }
    *order = (left->count > right->count) - (left->count < right->count);
    return SB_OK;
}

sb_status sb_jinja_compare(sb_jinja *jinja, sb_jinja_value left, sb_jinja_value right, const char *sign, int *order) {
    SB_TRY(sb_jinja_check_defined(jinja, left));
    SB_TRY(sb_jinja_check_defined(jinja, right));
    if (sb_jinja_is_number(left) && sb_jinja_is_number(right)) {
        *order = compare_numbers(left, right);
        return SB_OK;
    }
    if (left.kind == SB_JINJA_TEXT && right.kind == SB_JINJA_TEXT) { /* UTF-8 is ordered as code points are */
        size_t a = left.text->bytes, b = right.text->bytes;
        int first = memcmp(left.text->data, right.text->data, a < b ? a : b);
        *order = first != 0 ? (first > 0) - (first < 0) : (a > b) - (a < b);
        return sb_jinja_spend(jinja, (a < b ? a : b) / 256);
    }
    if (left.kind == right.kind && (left.kind == SB_JINJA_LIST || left.kind == SB_JINJA_TUPLE)) {
        sb_status status = sb_jinja_enter(jinja);
        if (status != SB_OK)
            return status;
        status = compare_lists(jinja, left.list, right.list, sign, order);
        jinja->depth--;
        return status;
    }
    return sb_jinja_fail(jinja, SB_ERROR_INVALID_ARGUMENT, "'%s' between values of types %s and %s", sign,
                         sb_jinja_kind_name(left), sb_jinja_kind_name(right));
}
