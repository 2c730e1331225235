/* Whether a value is right by a schema: written for tests alone, from the standard, one keyword after the other, and nothing of the
 * library in it. Patterns and formats are left to the test in Python. */
#ifndef SB_TESTS_CONSTRAINT_CHECKER_H
#define SB_TESTS_CONSTRAINT_CHECKER_H

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static inline bool is_right(const json_t *root, const json_t *schema, const json_t *value);

static inline bool is_equal_value(const json_t *left, const json_t *right) {
    return json_is_number(left) && json_is_number(right) ? json_number_value(left) == json_number_value(right)
                                                         : json_equal(left, right) != 0;
}

static inline bool is_of_type(const char *type, const json_t *value) {
    bool whole =
        json_is_integer(value) || (json_is_real(value) && json_real_value(value) == floor(json_real_value(value)));
    return strcmp(type, "null") == 0      ? json_is_null(value)
           : strcmp(type, "boolean") == 0 ? json_is_boolean(value)
           : strcmp(type, "integer") == 0 ? whole
           : strcmp(type, "number") == 0  ? json_is_number(value)
           : strcmp(type, "string") == 0  ? json_is_string(value)
           : strcmp(type, "array") == 0   ? json_is_array(value)
                                          : json_is_object(value);
}

static inline bool is_of_types(const json_t *types, const json_t *value) {
    if (json_is_string(types))
        return is_of_type(json_string_value(types), value);
    for (size_t i = 0; i < json_array_size(types); i++) {
        if (is_of_type(json_string_value(json_array_get(types, i)), value))
            return true;
    }
    return types == NULL;
}

static inline const json_t *find_reference(const json_t *root, const char *reference) {
    char name[256];
    const json_t *at = root;
    for (const char *c = reference + 1; *c == '/' && at != NULL;) {
        size_t length = 0;
        for (c++; *c != '\0' && *c != '/'; c++) {
            if (strncmp(c, "~1", 2) == 0 || strncmp(c, "~0", 2) == 0)
                name[length++] = *++c == '1' ? '/' : '~';
            else if (strncmp(c, "%20", 3) == 0) {
                name[length++] = ' ';
                c += 2;
            } else
                name[length++] = *c;
        }
        name[length] = '\0';
        at = json_object_get(at, name);
    }
    return at;
}

static inline double bound_of(const json_t *schema, const char *name, double otherwise) {
    const json_t *bound = json_object_get(schema, name);
    return bound != NULL ? json_number_value(bound) : otherwise;
}

static inline bool is_right_object(const json_t *root, const json_t *schema, const json_t *value) {
    const json_t *properties = json_object_get(schema, "properties"),
                 *more = json_object_get(schema, "additionalProperties");
    const json_t *required = json_object_get(schema, "required");
    const char *name;
    json_t *member;
    for (size_t i = 0; i < json_array_size(required); i++) {
        if (json_object_get(value, json_string_value(json_array_get(required, i))) == NULL)
            return false;
    }
    double count = (double)json_object_size(value);
    if (count < bound_of(schema, "minProperties", 0) || count > bound_of(schema, "maxProperties", INFINITY))
        return false;
    json_object_foreach((json_t *)(uintptr_t)value, name, member) {
        const json_t *own = json_object_get(properties, name);
        own = own != NULL ? own : more;
        if (own != NULL && !is_right(root, own, member))
            return false;
    }
    return true;
}

static inline bool is_right_array(const json_t *root, const json_t *schema, const json_t *value) {
    const json_t *prefix = json_object_get(schema, "prefixItems"), *items = json_object_get(schema, "items");
    size_t count = json_array_size(value);
    if ((double)count < bound_of(schema, "minItems", 0) || (double)count > bound_of(schema, "maxItems", INFINITY))
        return false;
    for (size_t i = 0; i < count; i++) {
        const json_t *own = i < json_array_size(prefix) ? json_array_get(prefix, i) : items;
        if (own != NULL && !is_right(root, own, json_array_get(value, i)))
            return false;
    }
    return true;
}

static inline bool is_right_simple(const json_t *schema, const json_t *value) {
    if (json_is_number(value)) {
        double number = json_number_value(value), multiple = bound_of(schema, "multipleOf", 0);
        if (multiple != 0 && (json_is_integer(value) ? json_integer_value(value) % (json_int_t)multiple != 0
                                                     : fmod(number, multiple) != 0))
            return false;
        return number >= bound_of(schema, "minimum", -INFINITY) && number <= bound_of(schema, "maximum", INFINITY) &&
               number > bound_of(schema, "exclusiveMinimum", -INFINITY) &&
               number < bound_of(schema, "exclusiveMaximum", INFINITY);
    }
    double length = 0;
    for (const char *c = json_string_value(value); c != NULL && *c != '\0'; c++)
        length += (*c & 0xc0) != 0x80;
    return !json_is_string(value) ||
           (length >= bound_of(schema, "minLength", 0) && length <= bound_of(schema, "maxLength", INFINITY));
}

static inline size_t count_right(const json_t *root, const json_t *schemas, const json_t *value) {
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(schemas); i++)
        count += is_right(root, json_array_get(schemas, i), value);
    return count;
}

static inline bool is_right_combined(const json_t *root, const json_t *schema, const json_t *value) {
    const json_t *all = json_object_get(schema, "allOf"), *any = json_object_get(schema, "anyOf");
    const json_t *one = json_object_get(schema, "oneOf"), *reference = json_object_get(schema, "$ref");
    return (reference == NULL || is_right(root, find_reference(root, json_string_value(reference)), value)) &&
           (all == NULL || count_right(root, all, value) == json_array_size(all)) &&
           (any == NULL || count_right(root, any, value) > 0) && (one == NULL || count_right(root, one, value) == 1);
}

static inline bool is_right(const json_t *root, const json_t *schema, const json_t *value) {
    const json_t *listed = json_object_get(schema, "enum"), *constant = json_object_get(schema, "const");
    if (!json_is_object(schema))
        return json_is_true(schema);
    bool found = listed == NULL;
    for (size_t i = 0; i < json_array_size(listed); i++)
        found = found || is_equal_value(json_array_get(listed, i), value);
    return found && (constant == NULL || is_equal_value(constant, value)) &&
           is_of_types(json_object_get(schema, "type"), value) && is_right_combined(root, schema, value) &&
           (json_is_object(value)  ? is_right_object(root, schema, value)
            : json_is_array(value) ? is_right_array(root, schema, value)
                                   : is_right_simple(schema, value));
}

#endif
