/* Graphs: nodes in an order in which they can run, and the values between them. */
#ifndef SB_GRAPH_GRAPH_H
#define SB_GRAPH_GRAPH_H

#include "graph/attribute.h"
#include "graph/fact.h"

typedef struct sb_op sb_op;

/* A value is named by its index in `sb_graph::values`. */
typedef int32_t sb_value_id;
#define SB_NO_VALUE (-1)

/* Where a value comes from. */
typedef struct sb_value_info {
    char *name;   /* unique in the graph; owned */
    sb_fact fact; /* a constant's fact holds its tensor */
    int producer; /* the index of the node that computes it; -1 for inputs and constants */
} sb_value_info;

typedef struct sb_node {
    const sb_op *op;
    int version;         /* of the operator set that the model imports: the op's meaning may depend on it */
    char *name;          /* unique in the graph; owned */
    int input_count;     /* formal inputs, then captures */
    sb_value_id *inputs; /* SB_NO_VALUE where an optional input is omitted */
    int capture_count;   /* how many of the last inputs are outer values that the node's graphs use, in the order in
                          which they are the last inputs of *each* of its graphs */
    int output_count;
    sb_value_id *outputs; /* SB_NO_VALUE where an output is not wanted */
    sb_attributes attributes;
    void *params; /* op->params_size bytes that op->prepare filled from the attributes; owned */
} sb_node;

struct sb_graph {
    char *name;
    size_t value_count, value_capacity;
    sb_value_info *values;
    size_t node_count, node_capacity;
    sb_node **nodes; /* owned; topological order */
    size_t input_count, input_capacity;
    sb_value_id *inputs;
    size_t output_count, output_capacity;
    sb_value_id *outputs;
};

sb_status sb_graph_create(const char *name, sb_graph **graph, sb_error *error);
void sb_graph_destroy(sb_graph *graph);

/** Adds a value; the caller vouches that the name is not taken. */
sb_status sb_graph_add_value(sb_graph *graph, const char *name, sb_value_id *value, sb_error *error);
/** Adds a constant; the tensor is retained. The fact is set with extents in `scope`. */
sb_status sb_graph_add_constant(sb_graph *graph, sb_scope *scope, const char *name, sb_tensor *tensor,
                                sb_value_id *value, sb_error *error);
sb_status sb_graph_add_input(sb_graph *graph, sb_value_id value, sb_error *error);
sb_status sb_graph_add_output(sb_graph *graph, sb_value_id value, sb_error *error);

/** Appends a node. The attributes are moved into the node (and cleared for the caller), also on failure. Then the op's
 * `prepare` runs: counts of inputs and outputs and the attributes are checked against the op. */
sb_status sb_graph_add_node(sb_graph *graph, const sb_op *op, int version, const char *name, int input_count,
                            const sb_value_id *inputs, int capture_count, int output_count, const sb_value_id *outputs,
                            sb_attributes *attributes, sb_node **node, sb_error *error);

void sb_node_destroy(sb_node *node);

/** The node's attribute of kind GRAPH with that name, or NULL. */
sb_graph *sb_node_graph(const sb_node *node, const char *name);

/* Reading attributes, in `prepare`. Each fails with INVALID_MODEL, naming the node, when the attribute has another
 * kind. An absent attribute gives the default. */
sb_status sb_node_int(const sb_node *node, const char *name, int64_t otherwise, int64_t *value, sb_error *error);
sb_status sb_node_float(const sb_node *node, const char *name, float otherwise, float *value, sb_error *error);
/** `*text` stays the node's; `otherwise` may be NULL. */
sb_status sb_node_string(const sb_node *node, const char *name, const char *otherwise, const char **text,
                         sb_error *error);
/** `*values` stays the node's; NULL and count 0 when the attribute is absent. */
sb_status sb_node_ints(const sb_node *node, const char *name, int64_t *count, const int64_t **values, sb_error *error);
sb_status sb_node_floats(const sb_node *node, const char *name, int64_t *count, const float **values, sb_error *error);
bool sb_node_has(const sb_node *node, const char *name);

#endif
