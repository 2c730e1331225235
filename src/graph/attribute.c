#include "graph/attribute.h"

#include <string.h>

#include "base/allocation.h"
#include "graph/graph.h"

static void clear_attribute(iv_attribute *attribute) {
    iv_free(attribute->name);
    switch (attribute->kind) {
    case IV_ATTRIBUTE_INTS:
        iv_free(attribute->ints);
        break;
    case IV_ATTRIBUTE_FLOATS:
        iv_free(attribute->floats);
        break;
    case IV_ATTRIBUTE_STRINGS:
        for (int64_t i = 0; attribute->strings != NULL && i < attribute->count; i++)
            iv_free(attribute->strings[i]);
        iv_free(attribute->strings);
        break;
    case IV_ATTRIBUTE_TENSOR:
        iv_tensor_release(attribute->tensor);
        break;
    case IV_ATTRIBUTE_GRAPH:
        iv_graph_destroy(attribute->graph);
        break;
    }
}

/* Appends `attribute`, which must be complete but for its name; clears it on failure. */
static iv_status append(iv_attributes *attributes, const char *name, iv_attribute attribute,
                        iv_error *error) {
    attribute.name = iv_duplicate_string(name);
    if (attribute.name == NULL || !iv_grow((void **)&attributes->items, &attributes->capacity,
                                           attributes->count + 1, sizeof attribute)) {
        clear_attribute(&attribute);
        return iv_fail_memory(error, sizeof attribute);
    }
    attributes->items[attributes->count++] = attribute;
    return IV_OK;
}

static iv_status copy_list(const void *values, int64_t count, size_t size, void **copy,
                           iv_error *error) {
    *copy = iv_allocate_array((size_t)count, size);
    if (*copy == NULL)
        return iv_fail_memory(error, (size_t)count * size);
    if (count != 0)
        memcpy(*copy, values, (size_t)count * size);
    return IV_OK;
}

iv_status iv_attributes_add_ints(iv_attributes *attributes, const char *name, bool scalar,
                                 int64_t count, const int64_t *values, iv_error *error) {
    iv_attribute attribute = {.kind = IV_ATTRIBUTE_INTS, .scalar = scalar, .count = count};
    IV_TRY(copy_list(values, count, sizeof *values, (void **)&attribute.ints, error));
    return append(attributes, name, attribute, error);
}

iv_status iv_attributes_add_floats(iv_attributes *attributes, const char *name, bool scalar,
                                   int64_t count, const float *values, iv_error *error) {
    iv_attribute attribute = {.kind = IV_ATTRIBUTE_FLOATS, .scalar = scalar, .count = count};
    IV_TRY(copy_list(values, count, sizeof *values, (void **)&attribute.floats, error));
    return append(attributes, name, attribute, error);
}

iv_status iv_attributes_add_strings(iv_attributes *attributes, const char *name, bool scalar,
                                    int64_t count, const iv_string *values, iv_error *error) {
    iv_attribute attribute = {.kind = IV_ATTRIBUTE_STRINGS, .scalar = scalar, .count = count};
    attribute.strings = iv_allocate_array((size_t)count, sizeof *attribute.strings);
    bool complete = attribute.strings != NULL;
    for (int64_t i = 0; complete && i < count; i++) {
        char *copy = iv_allocate(values[i].bytes + 1);
        attribute.strings[i] = copy;
        complete = copy != NULL;
        if (!complete)
            break;
        if (values[i].bytes != 0)
            memcpy(copy, values[i].data, values[i].bytes);
        copy[values[i].bytes] = '\0';
    }
    if (!complete) {
        clear_attribute(&attribute);
        return iv_fail(error, IV_ERROR_OUT_OF_MEMORY, "out of memory: attribute %s", name);
    }
    return append(attributes, name, attribute, error);
}

iv_status iv_attributes_add_tensor(iv_attributes *attributes, const char *name, iv_tensor *tensor,
                                   iv_error *error) {
    iv_attribute attribute = {
        .kind = IV_ATTRIBUTE_TENSOR, .scalar = true, .count = 1, .tensor = tensor};
    return append(attributes, name, attribute, error);
}

iv_status iv_attributes_add_graph(iv_attributes *attributes, const char *name, iv_graph *graph,
                                  iv_error *error) {
    iv_attribute attribute = {
        .kind = IV_ATTRIBUTE_GRAPH, .scalar = true, .count = 1, .graph = graph};
    return append(attributes, name, attribute, error);
}

void iv_attributes_clear(iv_attributes *attributes) {
    for (size_t i = 0; i < attributes->count; i++)
        clear_attribute(&attributes->items[i]);
    iv_free(attributes->items);
    *attributes = (iv_attributes){0};
}

const iv_attribute *iv_attributes_find(const iv_attributes *attributes, const char *name) {
    for (size_t i = 0; i < attributes->count; i++) {
        if (strcmp(attributes->items[i].name, name) == 0)
            return &attributes->items[i];
    }
    return NULL;
}

static bool same_attribute(const iv_attribute *left, const iv_attribute *right) {
    if (left->kind != right->kind || left->count != right->count || left->scalar != right->scalar ||
        strcmp(left->name, right->name) != 0)
        return false;
    size_t count = (size_t)left->count;
    switch (left->kind) {
    case IV_ATTRIBUTE_INTS:
        return memcmp(left->ints, right->ints, count * sizeof *left->ints) == 0;
    case IV_ATTRIBUTE_FLOATS:
        return memcmp(left->floats, right->floats, count * sizeof *left->floats) == 0;
    case IV_ATTRIBUTE_STRINGS:
        for (size_t i = 0; i < count; i++) {
            if (strcmp(left->strings[i], right->strings[i]) != 0)
                return false;
        }
        return true;
    case IV_ATTRIBUTE_TENSOR:
        return left->tensor == right->tensor || iv_tensor_equal(left->tensor, right->tensor);
    case IV_ATTRIBUTE_GRAPH:
        return false;
    }
    return false;
}

bool iv_attributes_equal(const iv_attributes *left, const iv_attributes *right) {
    bool equal = left->count == right->count;
    for (size_t i = 0; equal && i < left->count; i++)
        equal = same_attribute(&left->items[i], &right->items[i]);
    return equal;
}
