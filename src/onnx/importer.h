/* What the parts of the importer share. */
#ifndef IV_ONNX_IMPORTER_H
#define IV_ONNX_IMPORTER_H

#include "graph/op.h"
#include "onnx/import.h"
#include "onnx/names.h"
#include "onnx/tensor.h"

/** How deep graphs and function calls may lie in each other. */
#define IV_ONNX_NESTING 100
/** What function calls may unfold to, in bytes (an estimate), beyond 64 times the model's size. */
#define IV_ONNX_UNFOLDED_BYTES ((size_t)64 << 20)
/** What all sparse tensors may take when they are dense. */
#define IV_ONNX_DENSE_BYTES ((size_t)256 << 20)

/* A function of the model. */
typedef struct iv_onnx_function {
    const Onnx__FunctionProto *proto;
    char *key;                             /* of iv_importer::function_names */
    size_t default_count;                  /* attributes with a default value */
    const Onnx__AttributeProto **defaults; /* in the arena */
    int state;                             /* of the survey: 0 not seen, 1 inside, 2 done */
    size_t cost;                           /* what one call unfolds to */
} iv_onnx_function;

typedef struct iv_importer {
    iv_scope *scope;
    iv_arena arena;
    iv_external external;
    size_t size; /* of the file */
    const Onnx__ModelProto *model;
    size_t dense_left; /* of IV_ONNX_DENSE_BYTES */
    size_t function_count;
    iv_onnx_function *functions;
    iv_names function_names; /* to index */
    size_t shared_count,
        shared_capacity; /* tensors in the bodies of functions, read once for all calls */
    iv_tensor **shared;
    iv_names shared_names; /* the addresses of their messages as text, to index */
    int depth;             /* graphs and calls around the node in work */
} iv_importer;

/* A value that a graph takes from the graph around it. */
typedef struct iv_capture {
    iv_value_id outer, inner;
} iv_capture;

/* A graph in work. */
typedef struct iv_graph_builder {
    iv_graph *graph;
    iv_names values;   /* all values, to id; the graph owns the texts */
    iv_names nodes;    /* all nodes, to the number of the next one that asks for the same name */
    iv_names reserved; /* the names that the file itself defines in this graph, to 0 */
    iv_names captured; /* outer values, to id in this graph: captures and copies of constants */
    size_t capture_count, capture_capacity;
    iv_capture *captures;
} iv_graph_builder;

typedef struct iv_environment iv_environment;

/* The call of a function that is being replaced by the function's nodes. */
typedef struct iv_call_site {
    const iv_onnx_function *function;
    const Onnx__NodeProto *node;
    iv_environment *environment; /* of the node */
} iv_call_site;

/* What names mean at one place of the file. */
struct iv_environment {
    iv_graph_builder *builder; /* of the graph that nodes go to */
    iv_environment *outer; /* around a graph that is a node's attribute; NULL for the main graph and
                              for functions */
    iv_names names;        /* to value, IV_NO_VALUE for an omitted argument */
    iv_names
        targets; /* in functions: formal outputs, to the value that stands for them in the caller */
    const iv_call_site *call; /* inside a function, also in its graphs; else NULL */
    const char *prefix;       /* of the names of all that is made here */
};

/* ---- types and tensors ---- */

/** Reads a tensor, dense (TensorProto) or `sparse` (SparseTensorProto). Inside a function it is
 * read once for all calls; elsewhere its data move out of the message. */
iv_status iv_onnx_read_tensor(iv_importer *importer, bool in_function, void *proto, bool sparse,
                              iv_tensor **tensor, iv_error *error);

/** Sets a fact from a declared type. Unnamed dimensions become fresh symbols called after `name`.
 */
iv_status iv_onnx_fact_of_type(iv_scope *scope, const Onnx__TypeProto *type, const char *name,
                               iv_fact *fact, iv_error *error);
/** Makes the symbols that a type names, so that no fresh one takes their names. */
void iv_onnx_declare_symbols(iv_scope *scope, const Onnx__TypeProto *type);
/** Checks that an inferred fact does not contradict a declared type. `name` is the value's. */
iv_status iv_onnx_check_type(const Onnx__TypeProto *type, const iv_fact *fact, const char *name,
                             iv_error *error);
/** The type as text, for attributes. */
iv_status iv_onnx_type_text(const Onnx__TypeProto *type, char *text, size_t bytes, iv_error *error);

/* ---- operators and functions ---- */

/** The domain as operators have it: "" for "ai.onnx". NULL gives "". */
const char *iv_onnx_domain(const char *domain);
/** Lists the model's functions. */
iv_status iv_onnx_find_functions(iv_importer *importer, iv_error *error);
/** The function that a node calls, or NULL. */
iv_status iv_onnx_function_of(const iv_importer *importer, const Onnx__NodeProto *node,
                              iv_onnx_function **function, iv_error *error);
/** Goes over all nodes before any is made: reports all missing operators at once, functions that
 * call themselves, and models that unfold without measure. */
iv_status iv_onnx_survey(iv_importer *importer, iv_error *error);
/** The version of the operator set that a node means, checked against what Invar supports. */
iv_status iv_onnx_version(const iv_importer *importer, const iv_environment *environment,
                          const Onnx__NodeProto *node, const char *name, int *version,
                          iv_error *error);

/* ---- graphs ---- */

void iv_graph_builder_clear(iv_graph_builder *builder);
/** Frees the tables of an environment. */
void iv_environment_clear(iv_environment *environment);
/** The value that a name stands for: of this graph, or captured from the graphs around it. `node`,
 * which wants it, is for the message; NULL for the graph's outputs. */
iv_status iv_environment_find(iv_importer *importer, iv_environment *environment, const char *name,
                              const char *node, iv_value_id *value, iv_error *error);
/** Makes the value that a node's output defines, without giving it its name yet. */
iv_status iv_environment_new_value(iv_environment *environment, const char *name,
                                   iv_value_id *value, iv_error *error);
/** Lets a name stand for a value; INVALID_MODEL when it does already for another. `name` is
 * borrowed. */
iv_status iv_environment_bind(iv_environment *environment, const char *name, iv_value_id value,
                              iv_error *error);
/** Makes a value and binds its name. */
iv_status iv_environment_define(iv_environment *environment, const char *name, iv_value_id *value,
                                iv_error *error);
/** A name for a node that no other node of the graph has; the caller frees it. */
iv_status iv_environment_node_name(iv_environment *environment, const Onnx__NodeProto *node,
                                   size_t index, char **name, iv_error *error);
/** Reads a graph into a fresh builder. On failure everything is freed. Inputs for captures are
 * still missing. */
iv_status iv_onnx_read_graph(iv_importer *importer, const Onnx__GraphProto *proto,
                             iv_environment *outer, iv_graph_builder *builder, iv_error *error);
/** Lists the outer values that any of the graphs captures, and adds an input for each to every
 * graph. The caller frees
 * `*outer`. */
iv_status iv_onnx_join_captures(size_t count, iv_graph_builder *builders,
                                const iv_graph *outer_graph, iv_value_id **outer,
                                size_t *outer_count, iv_error *error);

/* ---- nodes ---- */

/** Adds what a node of the file stands for: a node, a constant, or all nodes of a function. `index`
 * is its place in its list. */
iv_status iv_onnx_read_node(iv_importer *importer, iv_environment *environment,
                            const Onnx__NodeProto *node, size_t index, iv_error *error);
/** Replaces a call by the function's nodes. `name` is the call's. */
iv_status iv_onnx_read_call(iv_importer *importer, iv_environment *environment,
                            const Onnx__NodeProto *node, iv_onnx_function *function,
                            const char *name, iv_error *error);

/* A node's attributes and the graphs among them. */
typedef struct iv_node_reading {
    iv_attributes attributes;
    size_t graph_count, graph_capacity;
    iv_graph_builder *graphs; /* of the graphs that `attributes` own, in their order */
} iv_node_reading;

/** Converts all attributes. On failure, too, the caller clears `reading`. */
iv_status iv_onnx_read_attributes(iv_importer *importer, iv_environment *environment,
                                  const Onnx__NodeProto *node, iv_node_reading *reading,
                                  iv_error *error);
void iv_node_reading_clear(iv_node_reading *reading);

#endif
