#include "graph/attribute.h"

#include <string.h>

#include "base/allocation.h"
#include "graph/graph.h"

static void clear_attribute(sb_attribute *attribute) {
    sb_free(attribute->name);
    switch (attribute->kind) {
    case SB_ATTRIBUTE_INTS:
        sb_free(attribute->ints);
        break;
    case SB_ATTRIBUTE_FLOATS:
        sb_free(attribute->floats);
        break;
    case SB_ATTRIBUTE_STRINGS:
        for (int64_t i = 0; attribute->strings != NULL && i < attribute->count; i++)
            sb_free(attribute->strings[i]);
        sb_free(attribute->strings);
        break;
    case SB_ATTRIBUTE_TENSOR:
        sb_tensor_release(attribute->tensor);
        break;
    case SB_ATTRIBUTE_GRAPH:
        sb_graph_destroy(attribute->graph);
        break;
    }
}

/* Appends `attribute`, which must be complete but for its name; clears it on failure. */
static sb_status append(sb_attributes *attributes, const char *name, sb_attribute attribute, sb_error *error) {
    attribute.name = sb_duplicate_string(name);
    if (attribute.name == NULL ||
        !sb_grow((void **)&attributes->items, &attributes->capacity, attributes->count + 1, sizeof attribute)) {
        clear_attribute(&attribute);
        return sb_fail_memory(error, sizeof attribute);
    }
    attributes->items[attributes->count++] = attribute;
    return SB_OK;
}

static sb_status copy_list(const void *values, int64_t count, size_t size, void **copy, sb_error *error) {
    *copy = sb_allocate_array((size_t)count, size);
    if (*copy == NULL)
        return sb_fail_memory(error, (size_t)count * size);
    if (count != 0)
        memcpy(*copy, values, (size_t)count * size);
    return SB_OK;
}

sb_status sb_attributes_add_ints(sb_attributes *attributes, const char *name, bool scalar, int64_t count,
                                 const int64_t *values, sb_error *error) {
    sb_attribute attribute = {.kind = SB_ATTRIBUTE_INTS, .scalar = scalar, .count = count};
    SB_TRY(copy_list(values, count, sizeof *values, (void **)&attribute.ints, error));
    return append(attributes, name, attribute, error);
}

sb_status sb_attributes_add_floats(sb_attributes *attributes, const char *name, bool scalar, int64_t count,
                                   const float *values, sb_error *error) {
    sb_attribute attribute = {.kind = SB_ATTRIBUTE_FLOATS, .scalar = scalar, .count = count};
    SB_TRY(copy_list(values, count, sizeof *values, (void **)&attribute.floats, error));
    return append(attributes, name, attribute, error);
}

sb_status sb_attributes_add_strings(sb_attributes *attributes, const char *name, bool scalar, int64_t count,
                                    const sb_string *values, sb_error *error) {
    sb_attribute attribute = {.kind = SB_ATTRIBUTE_STRINGS, .scalar = scalar, .count = count};
    attribute.strings = sb_allocate_array((size_t)count, sizeof *attribute.strings);
    bool complete = attribute.strings != NULL;
    for (int64_t i = 0; complete && i < count; i++) {
        char *copy = sb_allocate(values[i].bytes + 1);
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
        return sb_fail(error, SB_ERROR_OUT_OF_MEMORY, "out of memory: attribute %s", name);
    }
    return append(attributes, name, attribute, error);
}

sb_status sb_attributes_add_tensor(sb_attributes *attributes, const char *name, sb_tensor *tensor, sb_error *error) {
    sb_attribute attribute = {.kind = SB_ATTRIBUTE_TENSOR, .scalar = true, .count = 1, .tensor = tensor};
    return append(attributes, name, attribute, error);
}

sb_status sb_attributes_add_graph(sb_attributes *attributes, const char *name, sb_graph *graph, sb_error *error) {
    sb_attribute attribute = {.kind = SB_ATTRIBUTE_GRAPH, .scalar = true, .count = 1, .graph = graph};
    return append(attributes, name, attribute, error);
}

void sb_attributes_clear(sb_attributes *attributes) {
    for (size_t i = 0; i < attributes->count; i++)
        clear_attribute(&attributes->items[i]);
    sb_free(attributes->items);
    *attributes = (sb_attributes){0};
}

const sb_attribute *sb_attributes_find(const sb_attributes *attributes, const char *name) {
    for (size_t i = 0; i < attributes->count; i++) {
        if (strcmp(attributes->items[i].name, name) == 0)
            return &attributes->items[i];
    }
    return NULL;
}

static bool same_attribute(const sb_attribute *left, const sb_attribute *right) {
    if (left->kind != right->kind || left->count != right->count || left->scalar != right->scalar ||
        strcmp(left->name, right->name) != 0)
        return false;
    size_t count = (size_t)left->count;
    switch (left->kind) {
    case SB_ATTRIBUTE_INTS:
        return memcmp(left->ints, right->ints, count * sizeof *left->ints) == 0;
    case SB_ATTRIBUTE_FLOATS:
        return memcmp(left->floats, right->floats, count * sizeof *left->floats) == 0;
    case SB_ATTRIBUTE_STRINGS:
        for (size_t i = 0; i < count; i++) {
            if (strcmp(left->strings[i], right->strings[i]) != 0)
                return false;
        }
        return true;
    case SB_ATTRIBUTE_TENSOR:
        return left->tensor == right->tensor || sb_tensor_equal(left->tensor, right->tensor);
    case SB_ATTRIBUTE_GRAPH:
        return false;
    }
    return false;
}

bool sb_attributes_equal(const sb_attributes *left, const sb_attributes *right) {
    bool equal = left->count == right->count;
    for (size_t i = 0; equal && i < left->count; i++)
        equal = same_attribute(&left->items[i], &right->items[i]);
    return equal;
}
