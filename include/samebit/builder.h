/* Building models: graphs made by calls instead of read from a file.
 *
 *     sb_builder_create(&builder, &error);
 *     sb_value_description input = {.name = "x", .kind = SB_KIND_TENSOR, .dtype = SB_F32, .rank = 2,
 *                                   .dims = (int64_t[]){-1, 64}, .dim_texts = (const char *[]){"batch", NULL}};
 *     sb_builder_input(builder, &input, &x, &error);
 *     sb_builder_constant(builder, "w", weights, &w, &error);
 *     sb_builder_op(builder, "MatMul", 2, (sb_builder_value[]){x, w}, 0, NULL, &y, &error);
 *     sb_builder_output(builder, y, &error);
 *     sb_builder_build(builder, NULL, &model, &error);
 *
 * A model has one or more *entry graphs* over one set of *variables*. Calls go to the graph that is open:
 * at first the entry graph "main", then the one that sb_builder_entry named last, or the nested graph
 * that sb_builder_begin_graph began.
 *
 * Each node is inferred when it is added, so that what does not fit is refused there. (Nodes of nested graphs are
 * inferred with the node that takes the graph.) Every message names the node, value or variable.
 *
 * Handles are integers of one builder, valid until it is destroyed; 0 is none. A handle of another builder is refused.
 *
 * A call that fails leaves the builder as it was (sb_builder_build says what it adds). Text and lists are copied,
 * tensors retained. A builder may be used by one thread at a time; different builders at the same time.
 *
 * Errors of all calls: INVALID_ARGUMENT for a handle, name or list that the call excludes, and for anything but
 * sb_builder_destroy behind a build; OUT_OF_MEMORY. */
#ifndef SAMEBIT_BUILDER_H
#define SAMEBIT_BUILDER_H

#include <samebit/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sb_builder sb_builder;

typedef int64_t sb_builder_value;    /**< a value of one graph; 0: none */
typedef int64_t sb_builder_variable; /**< a variable */
typedef int64_t sb_builder_graph;    /**< a finished nested graph, for one node */

/** Creates a builder with the entry graph "main", which is open. The caller destroys it. */
SB_API SB_MUST_CHECK sb_status sb_builder_create(sb_builder **builder, sb_error *error);
/** Destroys a builder; models that it built live on. NULL is allowed. */
SB_API void sb_builder_destroy(sb_builder *builder);

/* ---- graphs ---- */

/** Opens the entry graph of that name, which is made if there is none. The first entry graph of a model is the one that
 * runs when nobody says which; "main" is left out of the model if nothing was put in it and there are others.
 * INVALID_ARGUMENT inside a nested graph. */
SB_API SB_MUST_CHECK sb_status sb_builder_entry(sb_builder *builder, const char *name, sb_error *error);

/** Begins a nested graph: a branch of If, or the body of Loop, Scan or SequenceMap. It may use values of the graphs
 * around it, which it then captures. At most 100 deep. */
SB_API SB_MUST_CHECK sb_status sb_builder_begin_graph(sb_builder *builder, const char *name, sb_error *error);
/** Ends the nested graph and opens the one around it again. *graph is for an attribute of one node in that. */
SB_API SB_MUST_CHECK sb_status sb_builder_end_graph(sb_builder *builder, sb_builder_graph *graph, sb_error *error);

/* ---- values ---- */

/** Adds an input to the open graph. `description` is as sb_model_input gives it: an extent is a number, or -1 with the
 * name of a symbol in dim_texts, such as "batch", or -1 with NULL (also for dim_texts as a whole) where nothing is
 * known. Equal names are equal extents in all entry graphs. A nested graph's input has a name alone (kind NONE): the
 * node that takes the graph says what enters. */
SB_API SB_MUST_CHECK sb_status sb_builder_input(sb_builder *builder, const sb_value_description *description,
                                                sb_builder_value *value, sb_error *error);
/** Adds a constant; the tensor is retained and must lie on the host. `name` may be NULL. */
SB_API SB_MUST_CHECK sb_status sb_builder_constant(sb_builder *builder, const char *name, sb_tensor *tensor,
                                                   sb_builder_value *value, sb_error *error);
/** Makes a value an output of the open graph, under its own name. */
SB_API SB_MUST_CHECK sb_status sb_builder_output(sb_builder *builder, sb_builder_value value, sb_error *error);

/* ---- variables ---- */

/** What a variable is besides a tensor. Start from SB_VARIABLE_OPTIONS_DEFAULT. */
typedef struct sb_variable_options {
    size_t struct_bytes; /**< sizeof(sb_variable_options): lets the struct grow */
    bool slots; /**< whether axis 0 is one of slots (sequences, streams) that begin and end apart from each other */
} sb_variable_options;

#define SB_VARIABLE_OPTIONS_DEFAULT                                                                                    \
    { sizeof(sb_variable_options), false }

/** Adds a variable to the model: a tensor that outlives runs. `description` is that of an input, with a rank and with a
 * number or a symbol for each extent. `initial` (retained) is what it begins with, or each of its slots does; NULL:
 * zeros. It must have the dtype and the extents, which are numbers then, without the axis of slots. `options` may be
 * NULL. Errors: SHAPE. */
SB_API SB_MUST_CHECK sb_status sb_builder_add_variable(sb_builder *builder, const sb_value_description *description,
                                                       sb_tensor *initial, const sb_variable_options *options,
                                                       sb_builder_variable *variable, sb_error *error);
/** The variable's value when a run of the entry graph begins: the same for all reads in it, whether the graph updates
 * the variable or not. */
SB_API SB_MUST_CHECK sb_status sb_builder_read(sb_builder *builder, sb_builder_variable variable,
                                               sb_builder_value *value, sb_error *error);
/** Says that the open graph leaves the variable with `new_value`, once at most. In a branch of If, the variable stays
 * as it is where the other branch runs; in the body of Loop and Scan, each iteration reads what the last one left.
 * Errors: INVALID_MODEL for a second update; SHAPE when dtype or extents do not fit. A variable that no graph of the
 * model updates is a constant. */
SB_API SB_MUST_CHECK sb_status sb_builder_update(sb_builder *builder, sb_builder_variable variable,
                                                 sb_builder_value new_value, sb_error *error);

/* ---- nodes ---- */

typedef enum sb_builder_attribute_kind {
    SB_BUILDER_INTS = 0,
    SB_BUILDER_FLOATS = 1,
    SB_BUILDER_TEXTS = 2,
    SB_BUILDER_TENSOR = 3,
    SB_BUILDER_GRAPH = 4
} sb_builder_attribute_kind;

/** An attribute of a node; made by the functions below. */
typedef struct sb_builder_attribute {
    const char *name;
    sb_builder_attribute_kind kind;
    bool list;     /**< a list, as opposed to one number or text */
    int64_t count; /**< of the list; without one, 1 */
    union {
        int64_t integer;
        float number;
        const char *text;
        const int64_t *integers;
        const float *numbers;
        const char *const *texts;
        sb_tensor *tensor;
        sb_builder_graph graph;
    };
} sb_builder_attribute;

/* What is given stays the caller's, and is read when the node is added. */
SB_API sb_builder_attribute sb_attribute_int(const char *name, int64_t value);
SB_API sb_builder_attribute sb_attribute_ints(const char *name, int64_t count, const int64_t *values);
SB_API sb_builder_attribute sb_attribute_float(const char *name, float value);
SB_API sb_builder_attribute sb_attribute_floats(const char *name, int64_t count, const float *values);
SB_API sb_builder_attribute sb_attribute_text(const char *name, const char *text);
SB_API sb_builder_attribute sb_attribute_texts(const char *name, int64_t count, const char *const *texts);
SB_API sb_builder_attribute sb_attribute_tensor(const char *name, sb_tensor *tensor);
SB_API sb_builder_attribute sb_attribute_graph(const char *name, sb_builder_graph graph);

/** A node to add. Start from SB_BUILDER_NODE_DEFAULT. */
typedef struct sb_builder_node {
    size_t struct_bytes; /**< sizeof(sb_builder_node): lets the struct grow */
    const char *domain;  /**< of the operator; NULL or "": the ONNX standard's */
    const char *op;      /**< its name */
    int version;         /**< of the domain's operator set; 0: the newest that is supported */
    const char *name;    /**< of the node, like no other in its graph; NULL: the operator's, with a number */
    int input_count;
    const sb_builder_value *inputs; /**< 0 where an optional one is omitted */
    int attribute_count;
    const sb_builder_attribute *attributes;
    int output_count;
    /** Like no other value in the graph; NULL, as a whole or in it: the node's, with a number; "": not wanted. */
    const char *const *output_names;
} sb_builder_node;

#define SB_BUILDER_NODE_DEFAULT                                                                                        \
    { sizeof(sb_builder_node), NULL, NULL, 0, NULL, 0, NULL, 0, NULL, 1, NULL }

/** Adds a node to the open graph. `outputs` has room for output_count values; 0 for those that are not wanted. Graphs
 * among the attributes belong to the node from here on. Errors: UNSUPPORTED (no such operator or version),
 * INVALID_MODEL (numbers of inputs and outputs, dtypes, attributes, a name taken), SHAPE. */
SB_API SB_MUST_CHECK sb_status sb_builder_add_node(sb_builder *builder, const sb_builder_node *node,
                                                   sb_builder_value *outputs, sb_error *error);
/** Adds a node of the ONNX standard's newest version with one output. */
SB_API SB_MUST_CHECK sb_status sb_builder_op(sb_builder *builder, const char *op, int input_count,
                                             const sb_builder_value *inputs, int attribute_count,
                                             const sb_builder_attribute *attributes, sb_builder_value *output,
                                             sb_error *error);

/* ---- the model ---- */

/** Makes the model: as sb_model_load does with a file. `options` may be NULL; its memory limit holds for what is
 * allocated here. The caller owns the model. A nested graph that is open, and entry graphs without outputs and updates,
 * are refused (INVALID_MODEL), and the builder stays as it was. Afterwards its graphs are the model's, and gone if
 * building fails then: the builder can only be destroyed. Errors: those of sb_model_load that are not of files. */
SB_API SB_MUST_CHECK sb_status sb_builder_build(sb_builder *builder, const sb_model_options *options, sb_model **model,
                                                sb_error *error);

#ifdef __cplusplus
}
#endif
#endif
