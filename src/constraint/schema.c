#include "constraint/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/allocation.h"
#include "constraint/schema_keywords.h"
#include "tokenizer/text.h"

#define MOST_STEPS 20000000
#define MOST_DEPTH 200
#define MOST_WAYS 4096

/* ---- life ---- */

sb_status sb_schema_read(sb_schema *schema, const char *text, size_t bytes, sb_error *error) {
    json_error_t why;
    *schema = (sb_schema){.steps = MOST_STEPS, .edges = SB_MOST_FOLLOWED_EDGES, .error = error};
    schema->json = json_loadb(text, bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (schema->json == NULL && json_error_code(&why) == json_error_out_of_memory)
        return sb_fail_memory(error, bytes);
    if (schema->json == NULL)
        return sb_fail(error, SB_ERROR_INVALID_FILE, "the schema is no JSON: byte %d: %s", why.position, why.text);
    if (!json_is_object(schema->json) && !json_is_boolean(schema->json))
        return sb_fail(error, SB_ERROR_INVALID_FILE, "the schema is neither an object nor true or false");
    return SB_OK;
}

/* In front of a place's pointer stands the address of its JSON, which the table of names refers to. */
void sb_schema_clear(sb_schema *schema) {
    for (size_t i = 0; i < schema->place_count; i++)
        sb_free(schema->places[i].pointer - sizeof(const json_t *));
    sb_free(schema->places);
    sb_names_clear(&schema->numbers);
    json_decref(schema->json);
    *schema = (sb_schema){.error = schema->error};
}

sb_status sb_schema_work(sb_schema *schema, int64_t steps) {
    schema->steps -= steps;
    return schema->steps > 0
               ? SB_OK
               : sb_fail(schema->error, SB_ERROR_LIMIT,
                         "the schema takes too many steps to be understood: combine fewer schemas in allOf, "
                         "anyOf and oneOf");
}

/* ---- places ---- */

static sb_status make_place(sb_schema *schema, const json_t *json, const char *pointer, uint32_t *place) {
    size_t bytes = strlen(pointer) + 1, count = schema->place_count;
    char *block = sb_allocate(sizeof json + bytes);
    if (block == NULL)
        return sb_fail_memory(schema->error, sizeof json + bytes);
    memcpy(block, &json, sizeof json);
    memcpy(block + sizeof json, pointer, bytes);
    sb_place fresh = {.json = json, .pointer = block + sizeof json};
    sb_status status = sb_keywords_read(json, fresh.pointer, &fresh.keywords, schema->error);
    if (status == SB_OK && (!sb_grow((void **)&schema->places, &schema->place_capacity, count + 1, sizeof fresh) ||
                            !sb_names_put_span(&schema->numbers, block, sizeof json, (int32_t)count)))
        status = sb_fail_memory(schema->error, (count + 1) * sizeof fresh);
    if (status != SB_OK) {
        sb_free(block);
        return status;
    }
    schema->places[schema->place_count] = fresh;
    *place = (uint32_t)schema->place_count++;
    return SB_OK;
}

bool sb_all_of_create(uint32_t count, sb_all_of *all) {
    *all = (sb_all_of){.places = sb_allocate_array((size_t)count + 1, sizeof *all->places)};
    return all->places != NULL;
}

/* Ascending, each once. */
static void insert(sb_all_of *all, uint32_t place) {
    uint32_t at = all->count;
    while (at > 0 && all->places[at - 1] > place)
        at--;
    if (at > 0 && all->places[at - 1] == place)
        return;
    memmove(all->places + at + 1, all->places + at, (all->count - at) * sizeof *all->places);
    all->places[at] = place;
    all->count++;
}

sb_status sb_schema_add(sb_schema *schema, const json_t *json, const char *pointer, sb_all_of *all, bool *possible) {
    uint32_t place;
    if (json_is_boolean(json)) {
        *possible = *possible && json_is_true(json);
        return SB_OK;
    }
    if (!json_is_object(json))
        return sb_fail(schema->error, SB_ERROR_INVALID_FILE,
                       "the schema at '%.300s' is neither an object nor true or false", pointer);
    const int32_t *known = sb_names_find_span(&schema->numbers, (const char *)&json, sizeof json);
    if (known != NULL)
        place = (uint32_t)*known;
    else
        SB_TRY(make_place(schema, json, pointer, &place));
    insert(all, place);
    return SB_OK;
}

/* The pointer of a part: `step`, and behind it a name, with its marks escaped, or an index. */
static sb_status add_part(sb_schema *schema, const json_t *json, uint32_t from, const char *step, const char *name,
                          int64_t index, sb_all_of *all, bool *possible) {
    sb_text pointer = {0};
    char number[24];
    const char *base = schema->places[from].pointer;
    snprintf(number, sizeof number, "/%lld", (long long)index);
    bool room = sb_text_append(&pointer, base, strlen(base)) && sb_text_append(&pointer, "/", 1) &&
                sb_text_append(&pointer, step, strlen(step));
    if (room && index >= 0)
        room = sb_text_append(&pointer, number, strlen(number));
    if (room && name != NULL)
        room = sb_text_append(&pointer, "/", 1);
    for (const char *c = name; room && c != NULL && *c != '\0'; c++)
        room = *c == '~'   ? sb_text_append(&pointer, "~0", 2)
               : *c == '/' ? sb_text_append(&pointer, "~1", 2)
                           : sb_text_append(&pointer, c, 1);
    room = room && sb_text_append(&pointer, "", 1);
    sb_status status =
        room ? sb_schema_add(schema, json, pointer.data, all, possible) : sb_fail_memory(schema->error, pointer.bytes);
    sb_text_clear(&pointer);
    return status;
}

/* ---- references ---- */

static int hexadecimal(char c) {
    return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

/* The next name of a pointer, its escapes undone; `*at` stands at the slash before it. */
static void take_name(const char **at, char *name) {
    size_t length = 0;
    for (++*at; **at != '\0' && **at != '/'; ++*at) {
        const char *c = *at;
        char now = *c;
        if (*c == '%' && hexadecimal(c[1]) >= 0 && hexadecimal(c[2]) >= 0) {
            now = (char)(hexadecimal(c[1]) * 16 + hexadecimal(c[2]));
            *at += 2;
        }
        /* ~ may itself be written with a percent sign. */
        if (now == '~' && ((*at)[1] == '0' || (*at)[1] == '1')) {
            now = (*at)[1] == '0' ? '~' : '/';
            ++*at;
        }
        name[length++] = now;
    }
    name[length] = '\0';
}

static const json_t *member_of(const json_t *json, const char *name) {
    if (json_is_object(json))
        return json_object_get(json, name);
    size_t digits = strspn(name, "0123456789");
    if (!json_is_array(json) || digits == 0 || name[digits] != '\0' || digits > 9)
        return NULL;
    return json_array_get(json, strtoull(name, NULL, 10));
}

static sb_status add_reference(sb_schema *schema, uint32_t from, sb_all_of *all, bool *possible) {
    const sb_place *place = &schema->places[from];
    const char *reference = place->keywords.reference, *at = reference + 1;
    const json_t *json = schema->json;
    if (reference[0] != '#' || (reference[1] != '\0' && reference[1] != '/'))
        return sb_fail(
            schema->error, SB_ERROR_UNSUPPORTED,
            "the schema at '%.300s/$ref' refers to '%.200s': only pointers into the schema itself are followed, such "
            "as #/$defs/name",
            place->pointer, reference);
    char *name = sb_allocate(strlen(reference) + 1);
    if (name == NULL)
        return sb_fail_memory(schema->error, strlen(reference) + 1);
    while (*at == '/' && json != NULL) {
        take_name(&at, name);
        json = member_of(json, name);
    }
    sb_free(name);
    if (json == NULL)
        return sb_fail(schema->error, SB_ERROR_INVALID_FILE,
                       "the schema at '%.300s/$ref' refers to '%.200s', which is not there", place->pointer, reference);
    return sb_schema_add(schema, json, reference + 1, all, possible);
}

/* ---- ways ---- */

void sb_any_of_clear(sb_any_of *any) {
    for (uint32_t i = 0; i < any->count; i++)
        sb_free(any->ways[i].places);
    sb_free(any->ways);
    *any = (sb_any_of){0};
}

/* Adds the union of two sets as one more way, unless it is there. */
static sb_status add_way(sb_schema *schema, sb_any_of *any, sb_all_of left, sb_all_of right) {
    sb_all_of both;
    SB_TRY(sb_schema_work(schema, 1 + left.count + right.count + any->count));
    if (any->count == MOST_WAYS)
        return sb_fail(schema->error, SB_ERROR_LIMIT,
                       "a schema is more than %d ways combined: use fewer in anyOf and oneOf", MOST_WAYS);
    if (!sb_all_of_create(left.count + right.count, &both))
        return sb_fail_memory(schema->error, (size_t)left.count + right.count);
    for (uint32_t i = 0; i < left.count; i++)
        insert(&both, left.places[i]);
    for (uint32_t i = 0; i < right.count; i++)
        insert(&both, right.places[i]);
    for (uint32_t i = 0; i < any->count; i++) {
        if (any->ways[i].count == both.count &&
            memcmp(any->ways[i].places, both.places, both.count * sizeof *both.places) == 0) {
            sb_free(both.places);
            return SB_OK;
        }
    }
    if (!sb_grow((void **)&any->ways, &any->capacity, (size_t)any->count + 1, sizeof both)) {
        sb_free(both.places);
        return sb_fail_memory(schema->error, ((size_t)any->count + 1) * sizeof both);
    }
    any->ways[any->count++] = both;
    return SB_OK;
}

/* Each way of one with each of the other, in place of the first. */
static sb_status multiply(sb_schema *schema, sb_any_of *any, const sb_any_of *by) {
    sb_any_of product = {0};
    sb_status status = SB_OK;
    for (uint32_t i = 0; i < any->count && status == SB_OK; i++) {
        for (uint32_t j = 0; j < by->count && status == SB_OK; j++)
            status = add_way(schema, &product, any->ways[i], by->ways[j]);
    }
    sb_any_of_clear(any);
    *any = product;
    return status;
}

static sb_status expand_all(sb_schema *schema, sb_all_of all, uint32_t path, sb_any_of *ways);

/* The ways of one schema that a place combines. */
static sb_status expand_part(sb_schema *schema, uint32_t from, const char *step, const json_t *json, int64_t index,
                             uint32_t path, sb_any_of *ways) {
    sb_all_of one;
    bool possible = true;
    *ways = (sb_any_of){0};
    if (!sb_all_of_create(1, &one))
        return sb_fail_memory(schema->error, sizeof *one.places);
    sb_status status = json != NULL ? add_part(schema, json, from, step, NULL, index, &one, &possible)
                                    : add_reference(schema, from, &one, &possible);
    if (status == SB_OK && possible)
        status = expand_all(schema, one, path, ways);
    sb_free(one.places);
    return status;
}

/* Whether no value can be right by two schemas of a oneOf. */
static sb_status check_apart(sb_schema *schema, uint32_t from, const sb_any_of *left, const sb_any_of *right, size_t i,
                             size_t j) {
    for (uint32_t a = 0; a < left->count; a++) {
        for (uint32_t b = 0; b < right->count; b++) {
            bool apart;
            SB_TRY(sb_schema_disjoint(schema, left->ways[a], right->ways[b], 0, &apart));
            if (!apart)
                return sb_fail(
                    schema->error, SB_ERROR_UNSUPPORTED,
                    "the schema at '%.300s/oneOf': schemas %zu and %zu may both hold, as far as can be seen, which "
                    "oneOf forbids: tell them apart by types, or by a required property with different values "
                    "of const or enum, or write anyOf",
                    schema->places[from].pointer, i, j);
        }
    }
    return SB_OK;
}

static sb_status check_one(sb_schema *schema, uint32_t from, const sb_any_of *parts, size_t count) {
    if (schema->places[from].is_checked)
        return SB_OK;
    schema->places[from].is_checked = true;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + 1; j < count; j++)
            SB_TRY(check_apart(schema, from, &parts[i], &parts[j], i, j));
    }
    return SB_OK;
}

/* anyOf or oneOf: the ways of all their schemas. */
static sb_status multiply_any(sb_schema *schema, uint32_t from, const char *step, const json_t *list, uint32_t path,
                              sb_any_of *ways) {
    size_t count = json_array_size(list);
    sb_any_of sum = {0}, *parts = sb_allocate_array(count, sizeof *parts);
    sb_status status = parts != NULL ? SB_OK : sb_fail_memory(schema->error, count * sizeof *parts);
    for (size_t i = 0; i < count && status == SB_OK; i++) {
        status = expand_part(schema, from, step, json_array_get(list, i), (int64_t)i, path, &parts[i]);
        for (uint32_t w = 0; w < parts[i].count && status == SB_OK; w++)
            status = add_way(schema, &sum, parts[i].ways[w], (sb_all_of){0});
    }
    if (status == SB_OK && strcmp(step, "oneOf") == 0)
        status = check_one(schema, from, parts, count);
    for (size_t i = 0; i < count && parts != NULL; i++)
        sb_any_of_clear(&parts[i]);
    sb_free(parts);
    if (status == SB_OK)
        status = multiply(schema, ways, &sum);
    sb_any_of_clear(&sum);
    return status;
}

static sb_status multiply_part(sb_schema *schema, uint32_t from, const char *step, const json_t *json, int64_t index,
                               uint32_t path, sb_any_of *ways) {
    sb_any_of part;
    sb_status status = expand_part(schema, from, step, json, index, path, &part);
    if (status == SB_OK)
        status = multiply(schema, ways, &part);
    sb_any_of_clear(&part);
    return status;
}

static sb_status multiply_parts(sb_schema *schema, uint32_t place, uint32_t path, sb_any_of *ways) {
    const sb_keywords k = schema->places[place].keywords; /* places move when there are more */
    if (k.reference != NULL)
        SB_TRY(multiply_part(schema, place, "$ref", NULL, -1, path, ways));
    for (size_t i = 0; i < json_array_size(k.all); i++)
        SB_TRY(multiply_part(schema, place, "allOf", json_array_get(k.all, i), (int64_t)i, path, ways));
    if (k.any != NULL)
        SB_TRY(multiply_any(schema, place, "anyOf", k.any, path, ways));
    return k.one != NULL ? multiply_any(schema, place, "oneOf", k.one, path, ways) : SB_OK;
}

static sb_status expand_place(sb_schema *schema, uint32_t place, uint32_t path, sb_any_of *ways) {
    uint32_t before = schema->places[place].path;
    const sb_all_of own = {&place, 1};
    if (before == path)
        return sb_fail(schema->error, SB_ERROR_INVALID_FILE,
                       "the schema at '%.300s' refers to itself with neither a property nor an item in between",
                       schema->places[place].pointer);
    if (schema->depth == MOST_DEPTH)
        return sb_fail(schema->error, SB_ERROR_LIMIT,
                       "references and combined schemas lie deeper in one another than %d", MOST_DEPTH);
    schema->places[place].path = path;
    schema->depth++;
    sb_status status = add_way(schema, ways, own, (sb_all_of){0});
    if (status == SB_OK)
        status = multiply_parts(schema, place, path, ways);
    schema->depth--;
    schema->places[place].path = before;
    return status;
}

static sb_status expand_all(sb_schema *schema, sb_all_of all, uint32_t path, sb_any_of *ways) {
    SB_TRY(add_way(schema, ways, (sb_all_of){0}, (sb_all_of){0}));
    for (uint32_t i = 0; i < all.count; i++) {
        sb_any_of part = {0};
        sb_status status = expand_place(schema, all.places[i], path, &part);
        if (status == SB_OK)
            status = multiply(schema, ways, &part);
        sb_any_of_clear(&part);
        SB_TRY(status);
    }
    return SB_OK;
}

sb_status sb_schema_expand(sb_schema *schema, sb_all_of all, sb_any_of *ways) {
    *ways = (sb_any_of){0};
    sb_status status = expand_all(schema, all, ++schema->paths, ways);
    if (status != SB_OK)
        sb_any_of_clear(ways);
    return status;
}

/* ---- ways together ---- */

/* A bound of whole numbers, within what they can be. */
static int64_t whole_bound(sb_number_bound bound, bool low) {
    int64_t out = low ? -SB_MOST_INTEGER - 1 : SB_MOST_INTEGER + 1, whole = bound.whole;
    if (!bound.given)
        return low ? -SB_MOST_INTEGER : SB_MOST_INTEGER;
    if (!bound.is_whole) {
        double cut = (double)(int64_t)(bound.value > 2e18 ? 2e18 : bound.value < -2e18 ? -2e18 : bound.value);
        whole = (int64_t)cut;
        if (cut != bound.value && bound.value < 2e18 && bound.value > -2e18) {
            bound.excluded = false;
            whole += low ? cut < bound.value : -(cut > bound.value);
        }
    }
    if (whole > SB_MOST_INTEGER || whole < -SB_MOST_INTEGER)
        return (whole > 0) == low ? -out : low ? -SB_MOST_INTEGER : SB_MOST_INTEGER;
    return whole + (bound.excluded ? (low ? 1 : -1) : 0);
}

static void tighten(sb_number_bound *to, sb_number_bound by, bool low) {
    bool tighter = low ? by.value > to->value : by.value < to->value;
    if (by.given && (!to->given || tighter || (by.value == to->value && by.excluded)))
        *to = by;
}

static int64_t common_multiple(int64_t left, int64_t right) {
    int64_t a = left, b = right;
    if (a == 0 || b == 0)
        return a + b;
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    int64_t least = left / a * right;
    return least <= SB_MOST_MULTIPLE ? least : SB_MOST_MULTIPLE + 1;
}

sb_together sb_schema_together(const sb_schema *schema, sb_all_of way) {
    sb_together t = {.types = SB_TYPE_ANY,
                     .low = -SB_MOST_INTEGER,
                     .high = SB_MOST_INTEGER,
                     .most_length = SB_UNBOUNDED,
                     .most_items = SB_UNBOUNDED,
                     .most_properties = SB_UNBOUNDED};
    for (uint32_t i = 0; i < way.count; i++) {
        const sb_keywords *k = &schema->places[way.places[i]].keywords;
        int64_t low = whole_bound(k->low, true), high = whole_bound(k->high, false);
        t.types &= k->types;
        t.low = low > t.low ? low : t.low;
        t.high = high < t.high ? high : t.high;
        tighten(&t.least, k->low, true);
        tighten(&t.most, k->high, false);
        t.multiple = common_multiple(t.multiple, k->multiple);
        t.least_length = k->least_length > t.least_length ? k->least_length : t.least_length;
        t.most_length = k->most_length < t.most_length ? k->most_length : t.most_length;
        t.least_items = k->least_items > t.least_items ? k->least_items : t.least_items;
        t.most_items = k->most_items < t.most_items ? k->most_items : t.most_items;
        t.least_properties = k->least_properties > t.least_properties ? k->least_properties : t.least_properties;
        t.most_properties = k->most_properties < t.most_properties ? k->most_properties : t.most_properties;
        t.enumerated = t.enumerated || k->enumeration != NULL || k->constant != NULL;
    }
    return t;
}

sb_status sb_schema_property(sb_schema *schema, sb_all_of way, const char *name, sb_all_of *all, bool *possible) {
    *possible = true;
    if (!sb_all_of_create(way.count, all))
        return sb_fail_memory(schema->error, way.count * sizeof *all->places);
    sb_status status = sb_schema_work(schema, 1 + way.count);
    for (uint32_t i = 0; i < way.count && status == SB_OK; i++) {
        const sb_keywords k = schema->places[way.places[i]].keywords;
        const json_t *own = name != NULL ? json_object_get(k.properties, name) : NULL;
        if (own != NULL)
            status = add_part(schema, own, way.places[i], "properties", name, -1, all, possible);
        else if (k.additional != NULL)
            status = add_part(schema, k.additional, way.places[i], "additionalProperties", NULL, -1, all, possible);
    }
    if (status != SB_OK)
        sb_free(all->places);
    return status;
}

sb_status sb_schema_item(sb_schema *schema, sb_all_of way, int64_t index, sb_all_of *all, bool *possible) {
    *possible = true;
    if (!sb_all_of_create(way.count, all))
        return sb_fail_memory(schema->error, way.count * sizeof *all->places);
    sb_status status = sb_schema_work(schema, 1 + way.count);
    for (uint32_t i = 0; i < way.count && status == SB_OK; i++) {
        const sb_keywords k = schema->places[way.places[i]].keywords;
        bool is_named = index >= 0 && (size_t)index < json_array_size(k.prefix);
        if (is_named)
            status = add_part(schema, json_array_get(k.prefix, (size_t)index), way.places[i], "prefixItems", NULL,
                              index, all, possible);
        else if (k.items != NULL)
            status = add_part(schema, k.items, way.places[i], "items", NULL, -1, all, possible);
    }
    if (status != SB_OK)
        sb_free(all->places);
    return status;
}

bool sb_schema_requires(const sb_schema *schema, sb_all_of way, const char *name) {
    for (uint32_t i = 0; i < way.count; i++) {
        const json_t *required = schema->places[way.places[i]].keywords.required;
        for (size_t j = 0; j < json_array_size(required); j++) {
            if (strcmp(json_string_value(json_array_get(required, j)), name) == 0)
                return true;
        }
    }
    return false;
}
