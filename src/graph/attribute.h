/* Attributes: the constants that a model file gives a node. */
#ifndef IV_GRAPH_ATTRIBUTE_H
#define IV_GRAPH_ATTRIBUTE_H

#include "tensor/tensor.h"

typedef struct iv_graph iv_graph;

typedef enum iv_attribute_kind {
    IV_ATTRIBUTE_INTS,    /* one or more integers */
    IV_ATTRIBUTE_FLOATS,  /* one or more floats */
    IV_ATTRIBUTE_STRINGS, /* one or more texts */
    IV_ATTRIBUTE_TENSOR,
    IV_ATTRIBUTE_GRAPH
} iv_attribute_kind;

typedef struct iv_attribute {
    char *name;
    iv_attribute_kind kind;
    bool scalar; /* written as one value rather than as a list */
    int64_t count;
    union {
        int64_t *ints;
        float *floats;
        char **strings; /* NUL-terminated copies */
        iv_tensor *tensor;
        iv_graph *graph;
    };
} iv_attribute;

typedef struct iv_attributes {
    size_t count, capacity;
    iv_attribute *items;
} iv_attributes;

/* Adding copies names and lists, and takes over the reference to a tensor or the ownership of a graph (also when it fails). */
iv_status iv_attributes_add_ints(iv_attributes *attributes, const char *name, bool scalar,
                                 int64_t count, const int64_t *values, iv_error *error);
iv_status iv_attributes_add_floats(iv_attributes *attributes, const char *name, bool scalar,
                                   int64_t count, const float *values, iv_error *error);
iv_status iv_attributes_add_strings(iv_attributes *attributes, const char *name, bool scalar,
                                    int64_t count, const iv_string *values, iv_error *error);
iv_status iv_attributes_add_tensor(iv_attributes *attributes, const char *name, iv_tensor *tensor,
                                   iv_error *error);
iv_status iv_attributes_add_graph(iv_attributes *attributes, const char *name, iv_graph *graph,
                                  iv_error *error);
void iv_attributes_clear(iv_attributes *attributes);

/** Whether both hold the same attributes in the same order. Graphs are never equal; floats are compared by their bits. */
bool iv_attributes_equal(const iv_attributes *left, const iv_attributes *right);

/** The attribute of that name, or NULL. */
const iv_attribute *iv_attributes_find(const iv_attributes *attributes, const char *name);

#endif
