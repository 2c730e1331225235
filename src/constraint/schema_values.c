/* Which values are right by a schema, and whether two schemas have any in common. */
#include <math.h>
#include <string.h>

#include "base/allocation.h"
#include "constraint/characters.h"
#include "constraint/dfa.h"
#include "constraint/expression.h"
#include "constraint/format.h"
#include "constraint/schema.h"
#include "tokenizer/unicode.h"

#define MOST_DEPTH 200
#define MOST_APART 4 /* properties in one another that are looked into for a difference */

/* ---- values ---- */

static bool are_equal(const json_t *left, const json_t *right) {
    if (json_is_number(left) && json_is_number(right))
        return json_number_value(left) == json_number_value(right);
    return json_equal(left, right) != 0;
}

static unsigned type_of(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_NULL:
        return SB_TYPE_NULL;
    case JSON_TRUE:
    case JSON_FALSE:
        return SB_TYPE_BOOLEAN;
    case JSON_INTEGER:
        return SB_TYPE_INTEGER;
    case JSON_REAL:
        return json_real_value(value) == floor(json_real_value(value)) ? SB_TYPE_INTEGER : SB_TYPE_NUMBER;
    case JSON_STRING:
        return SB_TYPE_STRING;
    case JSON_ARRAY:
        return SB_TYPE_ARRAY;
    default:
        return SB_TYPE_OBJECT;
    }
}

static bool is_listed(const sb_keywords *k, const json_t *value) {
    bool listed = k->enumeration == NULL;
    for (size_t i = 0; i < json_array_size(k->enumeration) && !listed; i++)
        listed = are_equal(json_array_get(k->enumeration, i), value);
    return listed && (k->constant == NULL || are_equal(k->constant, value));
}

static bool is_within(const sb_keywords *k, double number) {
    bool low = !k->low.given || number > k->low.value || (number == k->low.value && !k->low.excluded);
    bool high = !k->high.given || number < k->high.value || (number == k->high.value && !k->high.excluded);
    return low && high;
}

static bool is_multiple(const sb_keywords *k, const json_t *value) {
    if (k->multiple == 0)
        return true;
    return json_is_integer(value) ? json_integer_value(value) % k->multiple == 0
                                  : fmod(json_real_value(value), (double)k->multiple) == 0;
}

/* Whether a pattern finds the text, written as JSON writes it. */
static sb_status matches(sb_schema *schema, const char *pattern, const char *text, size_t bytes, bool *found) {
    sb_nfa pattern_nfa = sb_schema_nfa(schema), text_nfa = sb_schema_nfa(schema);
    sb_dfa left = {0}, right = {0}, both = {0};
    uint32_t from = sb_nfa_state(&pattern_nfa), to = sb_nfa_state(&pattern_nfa), begin = sb_nfa_state(&text_nfa);
    sb_nfa_expression(&pattern_nfa, from, to, pattern, strlen(pattern));
    uint32_t end = sb_nfa_written(&text_nfa, begin, text, bytes);
    sb_status status = sb_dfa_make(&pattern_nfa, from, to, &left, schema->error);
    if (status == SB_OK)
        status = sb_dfa_make(&text_nfa, begin, end, &right, schema->error);
    if (status == SB_OK)
        status = sb_dfa_both(&left, &right, &both, schema->error);
    *found = status == SB_OK && sb_dfa_takes_any(&both);
    sb_dfa_clear(&left);
    sb_dfa_clear(&right);
    sb_dfa_clear(&both);
    sb_nfa_clear(&pattern_nfa);
    sb_nfa_clear(&text_nfa);
    return status == SB_OK ? sb_schema_work(schema, 1000) : status;
}

static sb_status holds_text(sb_schema *schema, const sb_keywords *k, const json_t *value, bool *holds) {
    const char *text = json_string_value(value);
    size_t bytes = json_string_length(value);
    int64_t length = 0;
    for (size_t i = 0; i < bytes; i++)
        length += ((unsigned char)text[i] & 0xc0) != 0x80;
    *holds = length >= k->least_length && length <= k->most_length;
    if (*holds && k->pattern != NULL)
        SB_TRY(matches(schema, k->pattern, text, bytes, holds));
    if (*holds && k->format != NULL)
        SB_TRY(matches(schema, sb_format_pattern(k->format), text, bytes, holds));
    return SB_OK;
}

static sb_status holds_object(sb_schema *schema, uint32_t place, const json_t *value, bool *holds) {
    const sb_all_of way = {&place, 1};
    const json_t *required = schema->places[place].keywords.required;
    int64_t count = (int64_t)json_object_size(value);
    const char *name;
    json_t *member;
    *holds = count >= schema->places[place].keywords.least_properties &&
             count <= schema->places[place].keywords.most_properties;
    for (size_t i = 0; i < json_array_size(required); i++)
        *holds = *holds && json_object_get(value, json_string_value(json_array_get(required, i))) != NULL;
    json_object_foreach((json_t *)(uintptr_t)value, name, member) {
        sb_all_of all;
        bool possible;
        if (!*holds)
            return SB_OK;
        SB_TRY(sb_schema_property(schema, way, name, &all, &possible));
        *holds = possible;
        sb_status status = possible ? sb_schema_holds(schema, all, member, holds) : SB_OK;
        sb_free(all.places);
        SB_TRY(status);
    }
    return SB_OK;
}

static sb_status holds_array(sb_schema *schema, uint32_t place, const json_t *value, bool *holds) {
    const sb_all_of way = {&place, 1};
    int64_t count = (int64_t)json_array_size(value);
    *holds = count >= schema->places[place].keywords.least_items && count <= schema->places[place].keywords.most_items;
    for (int64_t i = 0; i < count && *holds; i++) {
        sb_all_of all;
        bool possible;
        SB_TRY(sb_schema_item(schema, way, i, &all, &possible));
        *holds = possible;
        sb_status status = possible ? sb_schema_holds(schema, all, json_array_get(value, (size_t)i), holds) : SB_OK;
        sb_free(all.places);
        SB_TRY(status);
    }
    return SB_OK;
}

/* By the place's own keywords. */
static sb_status holds_own(sb_schema *schema, uint32_t place, const json_t *value, bool *holds) {
    const sb_keywords *k = &schema->places[place].keywords;
    unsigned type = type_of(value);
    *holds = (k->types & type) != 0 && is_listed(k, value);
    if (!*holds)
        return SB_OK;
    if (type == SB_TYPE_STRING)
        return holds_text(schema, k, value, holds);
    if (type == SB_TYPE_OBJECT)
        return holds_object(schema, place, value, holds);
    if (type == SB_TYPE_ARRAY)
        return holds_array(schema, place, value, holds);
    if (json_is_number(value))
        *holds = is_within(k, json_number_value(value)) && is_multiple(k, value);
    return SB_OK;
}

sb_status sb_schema_holds(sb_schema *schema, sb_all_of all, const json_t *value, bool *holds) {
    sb_any_of ways;
    *holds = false;
    if (schema->depth >= MOST_DEPTH)
        return sb_fail(schema->error, SB_ERROR_LIMIT, "a value of enum or const is deeper than %d", MOST_DEPTH);
    SB_TRY(sb_schema_expand(schema, all, &ways));
    sb_status status = sb_schema_work(schema, 1);
    schema->depth++;
    for (uint32_t w = 0; w < ways.count && status == SB_OK && !*holds; w++) {
        *holds = true;
        for (uint32_t i = 0; i < ways.ways[w].count && status == SB_OK && *holds; i++)
            status = holds_own(schema, ways.ways[w].places[i], value, holds);
    }
    schema->depth--;
    sb_any_of_clear(&ways);
    return status;
}

/* ---- apart ---- */

/* Values of an enumerated way: no value of the first place that has some may be right by both. */
static sb_status values_apart(sb_schema *schema, sb_all_of way, sb_all_of other, bool *apart) {
    const sb_keywords *k = NULL;
    for (uint32_t i = 0; i < way.count && (k == NULL || (k->enumeration == NULL && k->constant == NULL)); i++)
        k = &schema->places[way.places[i]].keywords;
    const json_t *list = k->constant == NULL ? k->enumeration : NULL, *single = k->constant;
    size_t count = list != NULL ? json_array_size(list) : 1;
    *apart = true;
    for (size_t i = 0; i < count && *apart; i++) {
        const json_t *value = list != NULL ? json_array_get(list, i) : single;
        bool left, right = false;
        SB_TRY(sb_schema_holds(schema, way, value, &left));
        if (left)
            SB_TRY(sb_schema_holds(schema, other, value, &right));
        *apart = !(left && right);
    }
    return SB_OK;
}

static bool numbers_apart(const sb_together *left, const sb_together *right) {
    for (int side = 0; side < 2; side++) {
        const sb_number_bound *most = side == 0 ? &left->most : &right->most;
        const sb_number_bound *least = side == 0 ? &right->least : &left->least;
        if (most->given && least->given &&
            (most->value < least->value || (most->value == least->value && (most->excluded || least->excluded))))
            return true;
    }
    return false;
}

/* Schemas of two places in a text, each of which has to hold. */
static sb_status parts_apart(sb_schema *schema, sb_all_of left, sb_all_of right, int depth, bool *apart) {
    sb_any_of ways[2] = {{0}, {0}};
    sb_status status = sb_schema_expand(schema, left, &ways[0]);
    if (status == SB_OK)
        status = sb_schema_expand(schema, right, &ways[1]);
    *apart = true;
    for (uint32_t i = 0; i < ways[0].count && status == SB_OK && *apart; i++) {
        for (uint32_t j = 0; j < ways[1].count && status == SB_OK && *apart; j++)
            status = sb_schema_disjoint(schema, ways[0].ways[i], ways[1].ways[j], depth + 1, apart);
    }
    sb_any_of_clear(&ways[0]);
    sb_any_of_clear(&ways[1]);
    return status;
}

/* A property that the left one requires: both ways are apart where it cannot be in the right one, or is required there with
 * schemas that are apart. */
static sb_status property_apart(sb_schema *schema, sb_all_of left, sb_all_of right, const char *name, int depth,
                                bool *apart) {
    sb_all_of parts[2];
    bool possible[2];
    SB_TRY(sb_schema_property(schema, left, name, &parts[0], &possible[0]));
    sb_status status = sb_schema_property(schema, right, name, &parts[1], &possible[1]);
    if (status != SB_OK) {
        sb_free(parts[0].places);
        return status;
    }
    *apart = !possible[0] || !possible[1];
    if (!*apart) /* where it is there in both, which the left one sees to, it tells them apart if the right one wants it too */
        status =
            sb_schema_requires(schema, right, name) ? parts_apart(schema, parts[0], parts[1], depth, apart) : SB_OK;
    sb_free(parts[0].places);
    sb_free(parts[1].places);
    return status;
}

static sb_status objects_apart(sb_schema *schema, sb_all_of left, sb_all_of right, int depth, bool *apart) {
    *apart = false;
    for (int side = 0; side < 2; side++) {
        sb_all_of from = side == 0 ? left : right, other = side == 0 ? right : left;
        for (uint32_t i = 0; i < from.count; i++) {
            const json_t *required = schema->places[from.places[i]].keywords.required;
            for (size_t j = 0; j < json_array_size(required) && !*apart; j++)
                SB_TRY(
                    property_apart(schema, from, other, json_string_value(json_array_get(required, j)), depth, apart));
        }
    }
    return SB_OK;
}

sb_status sb_schema_disjoint(sb_schema *schema, sb_all_of left, sb_all_of right, int depth, bool *disjoint) {
    sb_together a = sb_schema_together(schema, left), b = sb_schema_together(schema, right);
    unsigned common = a.types & b.types;
    *disjoint = common == 0;
    SB_TRY(sb_schema_work(schema, 1 + left.count + right.count));
    if (*disjoint || depth == MOST_APART)
        return SB_OK;
    if (a.enumerated || b.enumerated)
        return a.enumerated ? values_apart(schema, left, right, disjoint) : values_apart(schema, right, left, disjoint);
    if ((common & (SB_TYPE_NULL | SB_TYPE_BOOLEAN)) != 0)
        return SB_OK;
    if ((common & (SB_TYPE_INTEGER | SB_TYPE_NUMBER)) != 0 && !numbers_apart(&a, &b))
        return SB_OK;
    if ((common & SB_TYPE_STRING) != 0 && a.most_length >= b.least_length && b.most_length >= a.least_length)
        return SB_OK;
    if ((common & SB_TYPE_ARRAY) != 0 && a.most_items >= b.least_items && b.most_items >= a.least_items)
        return SB_OK;
    *disjoint = true;
    bool counts_meet = a.most_properties >= b.least_properties && b.most_properties >= a.least_properties;
    return (common & SB_TYPE_OBJECT) != 0 && counts_meet ? objects_apart(schema, left, right, depth, disjoint) : SB_OK;
}
