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
    /* How many of the last inputs are outer values that the node's graphs use, in the order in which they are the last
     * inputs of *each* of its graphs. */
    int capture_count;
    int output_count;
    sb_value_id *outputs; /* SB_NO_VALUE where an output is not wanted */
    sb_attributes attributes;
    void *params; /* op->params_size bytes that op->prepare filled from the attributes; owned */
} sb_node;

/* What a graph does with a variable (graph/variable.h), in entry graphs only. */
typedef struct sb_variable_use {
    int variable; /* its index in the model's table */
    sb_value_id value;
} sb_variable_use;

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
    /* Versions of variables with which a run begins: beside the inputs, values that no node makes.
     * At most one for a variable. */
    size_t read_count, read_capacity;
    sb_variable_use *reads;
    /* The values with which a run leaves variables: beside the outputs, values that must be made.
     * At most one for a variable. */
    size_t update_count, update_capacity;
    sb_variable_use *updates;
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

/** Notes that `value` is the version of a variable that the graph begins with. */
sb_status sb_graph_add_read(sb_graph *graph, int variable, sb_value_id value, sb_error *error);
/** Notes that the graph leaves a variable with `value`. */
sb_status sb_graph_add_update(sb_graph *graph, int variable, sb_value_id value, sb_error *error);
/** The value by which the graph reads the variable, or SB_NO_VALUE. */
sb_value_id sb_graph_read_of(const sb_graph *graph, int variable);
/** The value with which the graph leaves the variable, or SB_NO_VALUE. */
sb_value_id sb_graph_update_of(const sb_graph *graph, int variable);

/** Appends a node. The op's `prepare` runs: counts of inputs and outputs and the attributes are checked against the op.
 * The attributes move into the node (and are cleared for the caller); on failure they stay the caller's. */
sb_status sb_graph_add_node(sb_graph *graph, const sb_op *op, int version, const char *name, int input_count,
                            const sb_value_id *inputs, int capture_count, int output_count, const sb_value_id *outputs,
                            sb_attributes *attributes, sb_node **node, sb_error *error);

/** Takes the last node out again, whose attributes move to `*attributes` (empty before);
 * its outputs have no producer then. */
void sb_graph_remove_last_node(sb_graph *graph, sb_attributes *attributes);

void sb_node_destroy(sb_node *node);

/** Whether it is a node of that operator of ONNX's own domain. */
bool sb_node_is(const sb_node *node, const char *name);

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
