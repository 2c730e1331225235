/* Attributes: the constants that a model file gives a node. */
#ifndef SB_GRAPH_ATTRIBUTE_H
#define SB_GRAPH_ATTRIBUTE_H

#include "tensor/tensor.h"

typedef struct sb_graph sb_graph;

typedef enum sb_attribute_kind {
    SB_ATTRIBUTE_INTS,    /* one or more integers */
    SB_ATTRIBUTE_FLOATS,  /* one or more floats */
    SB_ATTRIBUTE_STRINGS, /* one or more texts */
    SB_ATTRIBUTE_TENSOR,
    SB_ATTRIBUTE_GRAPH
} sb_attribute_kind;

typedef struct sb_attribute {
    char *name;
    sb_attribute_kind kind;
    bool scalar; /* written as one value rather than as a list */
    int64_t count;
    union {
        int64_t *ints;
        float *floats;
        char **strings; /* NUL-terminated copies */
        sb_tensor *tensor;
        sb_graph *graph;
    };
} sb_attribute;

typedef struct sb_attributes {
    size_t count, capacity;
    sb_attribute *items;
} sb_attributes;

/* Adding copies names and lists, and takes over the reference to a tensor or the ownership of a graph
 * (also when it fails). */
sb_status sb_attributes_add_ints(sb_attributes *attributes, const char *name, bool scalar, int64_t count,
                                 const int64_t *values, sb_error *error);
sb_status sb_attributes_add_floats(sb_attributes *attributes, const char *name, bool scalar, int64_t count,
                                   const float *values, sb_error *error);
sb_status sb_attributes_add_strings(sb_attributes *attributes, const char *name, bool scalar, int64_t count,
                                    const sb_string *values, sb_error *error);
sb_status sb_attributes_add_tensor(sb_attributes *attributes, const char *name, sb_tensor *tensor, sb_error *error);
sb_status sb_attributes_add_graph(sb_attributes *attributes, const char *name, sb_graph *graph, sb_error *error);
void sb_attributes_clear(sb_attributes *attributes);

/** Whether both hold the same attributes in the same order. Graphs are never equal;
 * floats are compared by their bits. */
bool sb_attributes_equal(const sb_attributes *left, const sb_attributes *right);

/** The attribute of that name, or NULL. */
const sb_attribute *sb_attributes_find(const sb_attributes *attributes, const char *name);

#endif
