/* What the parts of the importer share. */
#ifndef SB_ONNX_IMPORTER_H
#define SB_ONNX_IMPORTER_H

#include "graph/builder.h"
#include "onnx/import.h"
#include "onnx/tensor.h"

/** How deep graphs and function calls may lie in each other. */
#define SB_ONNX_NESTING 100
/** What function calls may unfold to, in bytes (an estimate), beyond 64 times the model's size. */
#define SB_ONNX_UNFOLDED_BYTES ((size_t)64 << 20)
/** What all sparse tensors may take when they are dense. */
#define SB_ONNX_DENSE_BYTES ((size_t)256 << 20)

/* A function of the model. */
typedef struct sb_onnx_function {
    const Onnx__FunctionProto *proto;
    char *key;                             /* of sb_importer::function_names */
    size_t default_count;                  /* attributes with a default value */
    const Onnx__AttributeProto **defaults; /* in the arena */
    int state;                             /* of the survey: 0 not seen, 1 inside, 2 done */
    size_t cost;                           /* what one call unfolds to */
    size_t *order;                         /* of its nodes; NULL before the first call */
} sb_onnx_function;

typedef struct sb_importer {
    sb_scope *scope;
    sb_arena arena;
    sb_external external;
    size_t size; /* of the file */
    const Onnx__ModelProto *model;
    sb_warnings *warnings; /* NULL: nobody wants them */
    const char *unrelated; /* symbols that are several extents; NULL: none */
    bool newer_noted;      /* that nodes are of an operator set that is not known yet */
    size_t dense_left;     /* of SB_ONNX_DENSE_BYTES */
    size_t function_count;
    sb_onnx_function *functions;
    sb_names function_names;              /* to index */
    size_t shared_count, shared_capacity; /* tensors in the bodies of functions, read once for all calls */
    sb_tensor **shared;
    sb_names shared_names; /* the addresses of their messages as text, to index */
    int depth;             /* graphs and calls around the node in work */
} sb_importer;

typedef struct sb_environment sb_environment;

/* The call of a function that is being replaced by the function's nodes. */
typedef struct sb_call_site {
    const sb_onnx_function *function;
    const Onnx__NodeProto *node;
    sb_environment *environment; /* of the node */
} sb_call_site;

/* What names mean at one place of the file. */
struct sb_environment {
    sb_graph_builder *builder; /* of the graph that nodes go to */
    /* Around a graph that is a node's attribute; NULL for the main graph and for functions. */
    sb_environment *outer;
    sb_names names;           /* to value, SB_NO_VALUE for an omitted argument */
    sb_names targets;         /* in functions: formal outputs, to the value that stands for them in the caller */
    const sb_call_site *call; /* inside a function, also in its graphs; else NULL */
    const char *prefix;       /* of the names of all that is made here */
};

/* ---- types and tensors ---- */

/** Reads a tensor, dense (TensorProto) or `sparse` (SparseTensorProto). Inside a function it is
 * read once for all calls; elsewhere its data move out of the message. */
sb_status sb_onnx_read_tensor(sb_importer *importer, bool in_function, void *proto, bool sparse, sb_tensor **tensor,
                              sb_error *error);

/** Sets a fact from a declared type. Dimensions without a name, and those that are unrelated, become fresh symbols called after
 * `name`. */
sb_status sb_onnx_fact_of_type(const sb_importer *importer, const Onnx__TypeProto *type, const char *name,
                               sb_fact *fact, sb_error *error);
/** INVALID_ARGUMENT when one of the unrelated symbols is in no type of the graph's inputs. */
sb_status sb_onnx_check_unrelated(const sb_importer *importer, const Onnx__GraphProto *graph, sb_error *error);
/** Makes the symbols that a type names, so that no fresh one takes their names. */
void sb_onnx_declare_symbols(sb_scope *scope, const Onnx__TypeProto *type);
/** Warns when a declared type is not what the nodes make, or is none that Samebit has: what they make counts. `name` is
 * the value's. */
sb_status sb_onnx_check_type(sb_importer *importer, const Onnx__TypeProto *type, const sb_fact *fact, const char *name,
                             sb_error *error);
/** The type as text, for attributes. */
sb_status sb_onnx_type_text(const Onnx__TypeProto *type, char *text, size_t bytes, sb_error *error);

/* ---- operators and functions ---- */

/** The domain as operators have it: "" for "ai.onnx". NULL gives "". */
const char *sb_onnx_domain(const char *domain);
/** Lists the model's functions. */
sb_status sb_onnx_find_functions(sb_importer *importer, sb_error *error);
/** The function that a node calls, or NULL. */
sb_status sb_onnx_function_of(const sb_importer *importer, const Onnx__NodeProto *node, sb_onnx_function **function,
                              sb_error *error);
/** Goes over all nodes before any is made: reports all missing operators at once, functions that
 * call themselves, and models that unfold without measure. */
sb_status sb_onnx_survey(sb_importer *importer, sb_error *error);
/** The version of the operator set that a node means, checked against what Samebit supports. */
sb_status sb_onnx_version(sb_importer *importer, const sb_environment *environment, const Onnx__NodeProto *node,
                          const char *name, int *version, sb_error *error);

/* ---- graphs ---- */

/** Frees the tables of an environment. */
void sb_environment_clear(sb_environment *environment);
/** The value that a name stands for: of this graph, or captured from the graphs around it. `node`,
 * which wants it, is for the message; NULL for the graph's outputs. */
sb_status sb_environment_find(sb_importer *importer, sb_environment *environment, const char *name, const char *node,
                              sb_value_id *value, sb_error *error);
/** Makes the value that a node's output defines, without giving it its name yet. */
sb_status sb_environment_new_value(sb_environment *environment, const char *name, sb_value_id *value, sb_error *error);
/** Lets a name stand for a value; INVALID_MODEL when it does already for another. `name` is borrowed. */
sb_status sb_environment_bind(sb_environment *environment, const char *name, sb_value_id value, sb_error *error);
/** Makes a value and binds its name. */
sb_status sb_environment_define(sb_environment *environment, const char *name, sb_value_id *value, sb_error *error);
/** A name for a node that no other node of the graph has; the caller frees it. `op_type` names nodes without a name. */
sb_status sb_environment_node_name(sb_environment *environment, const Onnx__NodeProto *node, size_t index, char **name,
                                   sb_error *error);
/** An order in which a graph's nodes can run: theirs where that is one, and else there is a warning. `*order` is an array
 * of their numbers that the caller frees. INVALID_MODEL when nodes feed each other in a circle. */
sb_status sb_onnx_order(sb_importer *importer, const Onnx__GraphProto *graph, size_t **order, sb_error *error);
/** Reads a graph into a fresh builder, which the caller destroys. */
sb_status sb_onnx_read_graph(sb_importer *importer, const Onnx__GraphProto *proto, sb_environment *outer,
                             sb_graph_builder **builder, sb_error *error);

/* ---- nodes ---- */

/** Adds what a node of the file stands for: a node, a constant, or all nodes of a function. `index`
 * is its place in its list. */
sb_status sb_onnx_read_node(sb_importer *importer, sb_environment *environment, const Onnx__NodeProto *node,
                            size_t index, sb_error *error);
/** Replaces a call by the function's nodes. `name` is the call's. */
sb_status sb_onnx_read_call(sb_importer *importer, sb_environment *environment, const Onnx__NodeProto *node,
                            sb_onnx_function *function, const char *name, sb_error *error);

/* A node's attributes, and apart from them the graphs. */
typedef struct sb_node_reading {
    sb_attributes attributes;
    size_t graph_count, graph_capacity;
    sb_nested_graph *graphs; /* owned builders; names of the message */
} sb_node_reading;

/** Converts all attributes but those that no version of the operator has: of these, and of those that `version` has not,
 * there are warnings, which call the node `called`. On failure, too, the caller clears `reading`. */
sb_status sb_onnx_read_attributes(sb_importer *importer, sb_environment *environment, const Onnx__NodeProto *node,
                                  const char *called, int version, sb_node_reading *reading, sb_error *error);
void sb_node_reading_clear(sb_node_reading *reading);

#endif
