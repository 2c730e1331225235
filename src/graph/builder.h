/* Making graphs: what the importer and the public builder (<samebit/builder.h>) share.
 *
 * Entry graphs are inferred node by node as they grow, so that a node that does not fit is refused when it is added. A
 * nested graph (a node's attribute) is inferred with the node that has it, which knows what enters.
 *
 * A call that fails leaves the builder, and those around it, as they were. Builders are used by one thread at a time,
 * and those of one scope by the same. */
#ifndef SB_GRAPH_BUILDER_H
#define SB_GRAPH_BUILDER_H

#include "base/names.h"
#include "graph/op.h"
#include "graph/variable.h"

/** The versions of the ONNX standard's operator set that operators are defined for. */
#define SB_OLDEST_OPSET 6
#define SB_NEWEST_OPSET 28

/* A value that a graph takes from the graph around it. */
typedef struct sb_capture {
    sb_value_id outer, inner;
} sb_capture;

/* A graph in work. */
typedef struct sb_graph_builder {
    sb_scope *scope;
    sb_variables *variables;        /* of the model; NULL: none */
    struct sb_graph_builder *outer; /* of the graph whose node will have this one; NULL for entry graphs */
    sb_graph *graph;                /* owned, until it is taken or a node has it */
    sb_names values;                /* all values, to id; the graph owns the texts */
    sb_names nodes;                 /* all nodes, to the number of the next one that asks for the same name */
    sb_names reserved;              /* names that values made later will have, to 0 */
    sb_names captured;              /* outer values, to id in this graph: captures and copies of constants */
    size_t capture_count, capture_capacity;
    sb_capture *captures;
} sb_graph_builder;

/** Begins a graph. Everything given but `name` must live as long as the builder. */
sb_status sb_graph_builder_create(const char *name, sb_scope *scope, sb_variables *variables, sb_graph_builder *outer,
                                  sb_graph_builder **builder, sb_error *error);
/** Frees a builder and the graph, if it still has it. NULL is allowed. */
void sb_graph_builder_destroy(sb_graph_builder *builder);
/** The finished graph, which is the caller's from here on. */
sb_graph *sb_graph_builder_take(sb_graph_builder *builder);

/* ---- changes ---- */

/* How far a graph was when a change of several calls began. */
typedef struct sb_builder_mark {
    size_t values, inputs, outputs, reads, updates, captures;
} sb_builder_mark;

sb_builder_mark sb_graph_builder_mark(const sb_graph_builder *builder);
/** Takes out everything added since but nodes. */
void sb_graph_builder_undo(sb_graph_builder *builder, const sb_builder_mark *mark);

/* ---- names ---- */

/** Keeps a name for a value that will be made later. The text is borrowed. */
sb_status sb_graph_builder_reserve(sb_graph_builder *builder, const char *name, sb_error *error);
/** A name for a node: `base` itself, or with a number behind it where that is taken. The caller frees it. */
sb_status sb_graph_builder_node_name(sb_graph_builder *builder, const char *base, char **name, sb_error *error);
/** Takes a node's name, which is free, without a node. The text is borrowed. */
sb_status sb_graph_builder_take_node_name(sb_graph_builder *builder, const char *name, sb_error *error);

/* ---- values ---- */

/** Adds a value that nothing makes yet, called `name`, or with a number behind it where that is taken,
 * or reserved and not `reserved_for_it`. */
sb_status sb_graph_builder_add_value(sb_graph_builder *builder, const char *name, bool reserved_for_it,
                                     sb_value_id *value, sb_error *error);
/** Whether a value has that name. */
bool sb_graph_builder_has_value(const sb_graph_builder *builder, const char *name);
/** Makes the value an input. `fact` is copied; NULL in nested graphs. */
sb_status sb_graph_builder_set_input(sb_graph_builder *builder, sb_value_id value, const sb_fact *fact,
                                     sb_error *error);
/** Makes the value a constant; the tensor is retained. */
sb_status sb_graph_builder_set_constant(sb_graph_builder *builder, sb_value_id value, sb_tensor *tensor,
                                        sb_error *error);
/** Whether the value is a constant of the graph (not one that follows from constants). */
bool sb_graph_builder_is_constant(const sb_graph_builder *builder, sb_value_id value);
sb_status sb_graph_builder_add_output(sb_graph_builder *builder, sb_value_id value, sb_error *error);
/** The value of this graph that stands for value `outer` of the graph around it. A constant is shared rather than
 * captured, so that inference knows it inside too. */
sb_status sb_graph_builder_capture(sb_graph_builder *builder, sb_value_id outer, sb_value_id *value, sb_error *error);

/* ---- variables ---- */

/** The version of a variable with which the entry graph begins; in a nested graph, captured. */
sb_status sb_graph_builder_read(sb_graph_builder *builder, int variable, sb_value_id *value, sb_error *error);
/** The graph leaves the variable with `value`. In a nested graph, the node that takes the graph hands the
 * value on: INVALID_MODEL there where its operator cannot. INVALID_MODEL for a second update in one graph;
 * SHAPE for a value that does not fit. */
sb_status sb_graph_builder_update(sb_graph_builder *builder, int variable, sb_value_id value, sb_error *error);

/* ---- nodes ---- */

/** The operator of that domain and name that models may use. UNSUPPORTED,
 * with the domains that have the name, if there is none. */
sb_status sb_graph_builder_find_op(const char *domain, const char *name, const sb_op **op, sb_error *error);

/* A graph that becomes an attribute of a node. */
typedef struct sb_nested_graph {
    const char *attribute;
    sb_graph_builder *builder; /* its `outer` is the node's builder */
} sb_nested_graph;

/* A node to add. All is borrowed but the attributes, which move into the node when it is added, and the graphs of
 * `nested`, which their builders lose then. */
typedef struct sb_node_plan {
    const sb_op *op;
    int version;
    const char *name;
    size_t input_count;
    const sb_value_id *inputs; /* SB_NO_VALUE where omitted: what is omitted at the end is as good as not there */
    size_t output_count;
    const sb_value_id *outputs; /* values that nothing makes yet; SB_NO_VALUE where not wanted */
    sb_attributes *attributes;
    size_t nested_count;
    const sb_nested_graph *nested;
} sb_node_plan;

/** Adds a node, with an input for each value that its graphs capture. Errors: INVALID_MODEL (name taken, counts,
 * attributes), UNSUPPORTED (version), and what inference finds. */
sb_status sb_graph_builder_add_node(sb_graph_builder *builder, const sb_node_plan *plan, sb_error *error);

#endif
