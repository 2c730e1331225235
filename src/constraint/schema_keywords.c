#include "constraint/schema_keywords.h"

#include <math.h>
#include <string.h>

#include "constraint/format.h"

typedef struct reading {
    const char *pointer, *keyword;
    const json_t *value;
    sb_keywords *to;
    sb_error *error;
} reading;

static sb_status wrong(const reading *r, const char *wanted) {
    return sb_fail(r->error, SB_ERROR_INVALID_FILE, "the schema at '%.300s/%.60s' is not %s", r->pointer, r->keyword,
                   wanted);
}

static sb_status unsupported(const reading *r, const char *way_out) {
    return sb_fail(r->error, SB_ERROR_UNSUPPORTED, "the schema at '%.300s': '%.60s' is not supported%s", r->pointer,
                   r->keyword, way_out);
}

/* ---- values of keywords ---- */

static const struct {
    const char *name;
    unsigned types;
} type_names[] = {{"null", SB_TYPE_NULL},       {"boolean", SB_TYPE_BOOLEAN},
                  {"integer", SB_TYPE_INTEGER}, {"number", SB_TYPE_NUMBER | SB_TYPE_INTEGER},
                  {"string", SB_TYPE_STRING},   {"array", SB_TYPE_ARRAY},
                  {"object", SB_TYPE_OBJECT}};

static sb_status add_type(const reading *r, const json_t *name) {
    const char *text = json_string_value(name);
    for (size_t i = 0; text != NULL && i < sizeof type_names / sizeof *type_names; i++) {
        if (strcmp(type_names[i].name, text) == 0) {
            r->to->types |= type_names[i].types;
            return SB_OK;
        }
    }
    return wrong(r, "one of the types null, boolean, integer, number, string, array and object, or a list of them");
}

static sb_status read_type(const reading *r) {
    r->to->types = 0;
    if (!json_is_array(r->value))
        return add_type(r, r->value);
    if (json_array_size(r->value) == 0)
        return wrong(r, "a list with types in it");
    for (size_t i = 0; i < json_array_size(r->value); i++)
        SB_TRY(add_type(r, json_array_get(r->value, i)));
    return SB_OK;
}

static bool is_schema(const json_t *json) {
    return json_is_object(json) || json_is_boolean(json);
}

static sb_status read_schema(const reading *r, const json_t **to) {
    *to = r->value;
    return is_schema(r->value) ? SB_OK : wrong(r, "a schema: an object, true or false");
}

static sb_status read_schemas(const reading *r, const json_t **to) {
    *to = r->value;
    bool all = json_is_array(r->value) && json_array_size(r->value) > 0;
    for (size_t i = 0; all && i < json_array_size(r->value); i++)
        all = is_schema(json_array_get(r->value, i));
    return all ? SB_OK : wrong(r, "an array of schemas, at least one");
}

static sb_status read_properties(const reading *r) {
    const char *name;
    json_t *schema;
    bool all = json_is_object(r->value);
    r->to->properties = r->value;
    if (all)
        json_object_foreach((json_t *)(uintptr_t)r->value, name, schema) all = all && is_schema(schema);
    return all ? SB_OK : wrong(r, "an object of schemas");
}

static sb_status read_required(const reading *r) {
    bool all = json_is_array(r->value);
    for (size_t i = 0; all && i < json_array_size(r->value); i++)
        all = json_is_string(json_array_get(r->value, i));
    r->to->required = r->value;
    return all ? SB_OK : wrong(r, "an array of names");
}

static sb_status read_enumeration(const reading *r) {
    r->to->enumeration = r->value;
    return json_is_array(r->value) && json_array_size(r->value) > 0 ? SB_OK
                                                                    : wrong(r, "an array of values, at least one");
}

static sb_status read_count(const reading *r, int64_t *to) {
    double number = json_number_value(r->value);
    if (!json_is_number(r->value) || number < 0 || number != floor(number))
        return wrong(r, "a whole number, 0 or more");
    if (number > INT32_MAX)
        return sb_fail(r->error, SB_ERROR_LIMIT, "the schema at '%.300s/%.60s' is more than 2^31 - 1", r->pointer,
                       r->keyword);
    *to = (int64_t)number;
    return SB_OK;
}

static sb_status read_text(const reading *r, const char **to) {
    *to = json_string_value(r->value);
    return *to != NULL ? SB_OK : wrong(r, "a text");
}

static sb_status read_format(const reading *r) {
    SB_TRY(read_text(r, &r->to->format));
    if (sb_format_pattern(r->to->format) != NULL)
        return SB_OK;
    return sb_fail(r->error, SB_ERROR_UNSUPPORTED,
                   "the schema at '%.300s/format': '%.60s' is not supported; these are: %s. Say it by a pattern",
                   r->pointer, r->to->format, sb_format_names);
}

/* Of two bounds of a side the tighter one counts. */
static sb_status read_bound(const reading *r, sb_number_bound *to, bool low, bool excluded) {
    sb_number_bound given = {true, excluded, json_is_integer(r->value), json_integer_value(r->value),
                             json_number_value(r->value)};
    if (!json_is_number(r->value))
        return wrong(r, "a number");
    bool tighter = low ? given.value > to->value : given.value < to->value;
    if (!to->given || tighter || (given.value == to->value && excluded))
        *to = given;
    return SB_OK;
}

static sb_status read_multiple(const reading *r) {
    double number = json_number_value(r->value);
    if (!json_is_number(r->value) || !(number > 0))
        return wrong(r, "a number above 0");
    if (number != floor(number))
        return unsupported(r, " but for whole numbers");
    if (number > SB_MOST_MULTIPLE)
        return sb_fail(r->error, SB_ERROR_LIMIT, "the schema at '%.300s/%.60s' is more than %d", r->pointer, r->keyword,
                       SB_MOST_MULTIPLE);
    r->to->multiple = (int64_t)number;
    return SB_OK;
}

/* What counts for nothing here. */
static bool is_annotation(const char *keyword) {
    static const char *const names[] = {"title",     "description", "default", "examples", "deprecated",  "readOnly",
                                        "writeOnly", "$comment",    "$schema", "$defs",    "definitions", "$id"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], keyword) == 0)
            return true;
    }
    return false;
}

static sb_status read_additional_items(const reading *r) {
    return json_is_array(r->value) ? unsupported(r, " as an array: name the first items in prefixItems")
                                   : read_schema(r, &r->to->items);
}

static sb_status read_numbers(const reading *r, bool *known) {
    sb_keywords *k = r->to;
    const char *keyword = r->keyword;
    *known = true;
    if (strcmp(keyword, "minLength") == 0)
        return read_count(r, &k->least_length);
    if (strcmp(keyword, "maxLength") == 0)
        return read_count(r, &k->most_length);
    if (strcmp(keyword, "minItems") == 0)
        return read_count(r, &k->least_items);
    if (strcmp(keyword, "maxItems") == 0)
        return read_count(r, &k->most_items);
    if (strcmp(keyword, "minProperties") == 0)
        return read_count(r, &k->least_properties);
    if (strcmp(keyword, "maxProperties") == 0)
        return read_count(r, &k->most_properties);
    if (strcmp(keyword, "minimum") == 0)
        return read_bound(r, &k->low, true, false);
    if (strcmp(keyword, "exclusiveMinimum") == 0)
        return read_bound(r, &k->low, true, true);
    if (strcmp(keyword, "maximum") == 0)
        return read_bound(r, &k->high, false, false);
    if (strcmp(keyword, "exclusiveMaximum") == 0)
        return read_bound(r, &k->high, false, true);
    if (strcmp(keyword, "multipleOf") == 0)
        return read_multiple(r);
    *known = false;
    return SB_OK;
}

static sb_status read_keyword(const reading *r) {
    sb_keywords *k = r->to;
    const char *keyword = r->keyword;
    bool known;
    SB_TRY(read_numbers(r, &known));
    if (known)
        return SB_OK;
    if (strcmp(keyword, "type") == 0)
        return read_type(r);
    if (strcmp(keyword, "enum") == 0)
        return read_enumeration(r);
    if (strcmp(keyword, "const") == 0) {
        k->constant = r->value;
        return SB_OK;
    }
    if (strcmp(keyword, "properties") == 0)
        return read_properties(r);
    if (strcmp(keyword, "required") == 0)
        return read_required(r);
    if (strcmp(keyword, "additionalProperties") == 0)
        return read_schema(r, &k->additional);
    if (strcmp(keyword, "prefixItems") == 0)
        return read_schemas(r, &k->prefix);
    if (strcmp(keyword, "items") == 0)
        return read_additional_items(r);
    if (strcmp(keyword, "pattern") == 0)
        return read_text(r, &k->pattern);
    if (strcmp(keyword, "format") == 0)
        return read_format(r);
    if (strcmp(keyword, "allOf") == 0)
        return read_schemas(r, &k->all);
    if (strcmp(keyword, "anyOf") == 0)
        return read_schemas(r, &k->any);
    if (strcmp(keyword, "oneOf") == 0)
        return read_schemas(r, &k->one);
    if (strcmp(keyword, "$ref") == 0)
        return read_text(r, &k->reference);
    if (strcmp(keyword, "uniqueItems") == 0 && json_is_false(r->value))
        return SB_OK;
    if (strcmp(keyword, "$id") == 0 && r->pointer[0] != '\0')
        return unsupported(r, " within a schema: references are by pointers from the root, such as #/$defs/name");
    return is_annotation(keyword) ? SB_OK : unsupported(r, ", and a schema without it would be another one");
}

sb_status sb_keywords_read(const json_t *json, const char *pointer, sb_keywords *keywords, sb_error *error) {
    reading r = {.pointer = pointer, .to = keywords, .error = error};
    json_t *value;
    *keywords = (sb_keywords){
        .types = SB_TYPE_ANY, .most_length = SB_UNBOUNDED, .most_items = SB_UNBOUNDED, .most_properties = SB_UNBOUNDED};
    json_object_foreach((json_t *)(uintptr_t)json, r.keyword, value) {
        r.value = value;
        SB_TRY(read_keyword(&r));
    }
    return SB_OK;
}
