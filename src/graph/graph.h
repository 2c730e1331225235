/* Graphs: nodes in an order in which they can run, and the values between them. */
#ifndef IV_GRAPH_GRAPH_H
#define IV_GRAPH_GRAPH_H

#include "graph/attribute.h"
#include "graph/fact.h"

typedef struct iv_op iv_op;

/* A value is named by its index in `iv_graph::values`. */
typedef int32_t iv_value_id;
#define IV_NO_VALUE (-1)

/* Where a value comes from. */
typedef struct iv_value_info {
    char *name;  /* unique in the graph; owned */
    iv_fact fact; /* a constant's fact holds its tensor */
    int producer; /* the index of the node that computes it; -1 for inputs and constants */
} iv_value_info;

typedef struct iv_node {
    const iv_op *op;
    int version;  /* of the operator set that the model imports: the op's meaning may depend on it */
    char *name;   /* unique in the graph; owned */
    int input_count; /* formal inputs, then captures */
    iv_value_id *inputs; /* IV_NO_VALUE where an optional input is omitted */
    int capture_count; /* how many of the last inputs are outer values that the node's graphs use, in the order in
                          which they are the last inputs of *each* of its graphs */
    int output_count;
    iv_value_id *outputs; /* IV_NO_VALUE where an output is not wanted */
    iv_attributes attributes;
    void *params; /* op->params_size bytes that op->prepare filled from the attributes; owned */
} iv_node;

struct iv_graph {
    char *name;
    size_t value_count, value_capacity;
    iv_value_info *values;
    size_t node_count, node_capacity;
    iv_node **nodes; /* owned; topological order */
    size_t input_count, input_capacity;
    iv_value_id *inputs;
    size_t output_count, output_capacity;
    iv_value_id *outputs;
};

iv_status iv_graph_create(const char *name, iv_graph **graph, iv_error *error);
void iv_graph_destroy(iv_graph *graph);

/** Adds a value; the caller vouches that the name is not taken. */
iv_status iv_graph_add_value(iv_graph *graph, const char *name, iv_value_id *value, iv_error *error);
/** Adds a constant; the tensor is retained. The fact is set with extents in `scope`. */
iv_status iv_graph_add_constant(iv_graph *graph, iv_scope *scope, const char *name,
                                iv_tensor *tensor, iv_value_id *value, iv_error *error);
iv_status iv_graph_add_input(iv_graph *graph, iv_value_id value, iv_error *error);
iv_status iv_graph_add_output(iv_graph *graph, iv_value_id value, iv_error *error);

/** Appends a node. The attributes are moved into the node (and cleared for the caller), also on failure. Then the op's
 * `prepare` runs: counts of inputs and outputs and the attributes are checked against the op. */
iv_status iv_graph_add_node(iv_graph *graph, const iv_op *op, int version, const char *name,
                            int input_count, const iv_value_id *inputs, int capture_count,
                            int output_count, const iv_value_id *outputs,
                            iv_attributes *attributes, iv_node **node, iv_error *error);

void iv_node_destroy(iv_node *node);

/** The node's attribute of kind GRAPH with that name, or NULL. */
iv_graph *iv_node_graph(const iv_node *node, const char *name);

/* Reading attributes, in `prepare`. Each fails with INVALID_MODEL, naming the node, when the attribute has another
 * kind. An absent attribute gives the default. */
iv_status iv_node_int(const iv_node *node, const char *name, int64_t otherwise, int64_t *value,
                      iv_error *error);
iv_status iv_node_float(const iv_node *node, const char *name, float otherwise, float *value,
                        iv_error *error);
/** `*text` stays the node's; `otherwise` may be NULL. */
iv_status iv_node_string(const iv_node *node, const char *name, const char *otherwise,
                         const char **text, iv_error *error);
/** `*values` stays the node's; NULL and count 0 when the attribute is absent. */
iv_status iv_node_ints(const iv_node *node, const char *name, int64_t *count, const int64_t **values,
                       iv_error *error);
iv_status iv_node_floats(const iv_node *node, const char *name, int64_t *count, const float **values,
                         iv_error *error);
bool iv_node_has(const iv_node *node, const char *name);

#endif
