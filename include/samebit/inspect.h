/* Looking inside a model: its nodes and values, what is known of them before anything runs, and
 * what they cost. */
#ifndef SAMEBIT_INSPECT_H
#define SAMEBIT_INSPECT_H

#include <samebit/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A snapshot of a graph. Immutable, and independent of the model once it is made: any thread may read it. */
typedef struct sb_inspection sb_inspection;

/** How to look. Start from SB_INSPECT_OPTIONS_DEFAULT. */
typedef struct sb_inspect_options {
    size_t struct_bytes;          /**< sizeof(sb_inspect_options): lets the struct grow */
    int symbol_count;             /**< how many symbolic extents get a value */
    const char *const *symbols;   /**< their names, as in sb_value_description::dim_texts */
    const int64_t *symbol_values; /**< their values, each at least 0 */
} sb_inspect_options;

#define SB_INSPECT_OPTIONS_DEFAULT                                                                                     \
    { sizeof(sb_inspect_options), 0, NULL, NULL }

/** What is known of a value. */
typedef struct sb_inspected_value {
    const char *name;
    const char *fact; /**< "f32[batch,3,224,224]", "sequence(f32)"; "?" when nothing is known */
    sb_kind kind;
    sb_dtype dtype;
    int64_t elements;          /**< of a tensor whose extents are all known, else -1 */
    const sb_tensor *constant; /**< the value where it is known before running, else NULL; borrowed */
    int producer;              /**< index of the node that computes it; -1 for inputs and initialisers */
    bool initialiser;          /**< whether it comes from the model's file (or from a pass), not from a node */
} sb_inspected_value;

/** A node. Indices of values and of nodes are those of the node's own graph. */
typedef struct sb_inspected_node {
    const char *name;
    const char *op;
    const char *domain;     /**< "" for the ONNX standard's own */
    int version;            /**< of the operator set */
    const char *attributes; /**< "kernel_shape=[3,3] group=1"; long lists are cut */
    int input_count;
    const int *inputs; /**< -1 where an optional input is omitted */
    int capture_count; /**< how many of the last inputs are outer values that the node's bodies use */
    int output_count;
    const int *outputs; /**< -1 where nobody wants the output */
    /** Elements of the initialisers that this node reads first, bodies included; integers of 64 bits, bool and text
     * (shapes, indices, axes) do not count. */
    int64_t parameters;
    const char *flops;  /**< operations per run as a formula: see below; NULL when they are not known */
    int64_t flop_count; /**< the same when it is a number, else -1 */
    const char
        *bytes; /**< bytes that a run has to read and write as a formula: see below; NULL when they are not known */
    int64_t byte_count; /**< the same when it is a number, else -1 */
    /** What will compute it: a kernel's name, "reference", "constant" when the result is known before running; NULL
     * while an open extent decides. */
    const char *kernel;
    const char *why; /**< with "reference": why no kernel took the node; else "" */
    int body_count;  /**< graphs of its own: the branches of an If, what a Fused node was made of, … */
    const char *const *body_names;
    const sb_inspection *const *bodies;
} sb_inspected_node;

/** Sums over a graph, bodies included. */
typedef struct sb_inspected_totals {
    int64_t parameters;
    int64_t parameter_bytes;
    const char *flops;       /**< of the nodes where they are known; NULL when the formula grows beyond all bounds */
    int64_t flop_count;      /**< the same when it is a number, else -1 */
    int nodes_without_flops; /**< nodes of the graph itself whose operations are not known */
} sb_inspected_totals;

/** Takes a snapshot of the model's graph as it runs (after the passes, unless the model was loaded without).
 *
 * With values for symbols, facts, operation counts and kernels are those of a run with such inputs. `options` may be
 * NULL. The caller releases the snapshot.
 *
 * Operations are counted in the way of the field: 2 for each multiply-add of a contraction, 1 for each element that an
 * element-wise operator writes or a reduction reads, a small fixed number per element of a normalisation or softmax,
 * and none for what only moves elements.
 *
 * Bytes are those that cannot be spared: each element that the result depends on is read once and each of the outputs
 * written once, however often a kernel does so; none for views, and of a Fused node none for what stays inside.
 *
 * Errors: INVALID_ARGUMENT for a negative extent; SHAPE when the values do not fit the model; OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_model_inspect(const sb_model *model, const sb_inspect_options *options,
                                                sb_inspection **inspection, sb_error *error);
/** Frees a snapshot that sb_model_inspect gave (not the bodies of nodes). NULL is allowed. */
SB_API void sb_inspection_release(sb_inspection *inspection);

/* All pointers below are the snapshot's; indices must be in range. */

/** The graph's name in the file; "" when it has none. */
SB_API const char *sb_inspection_name(const sb_inspection *inspection);
SB_API int sb_inspection_node_count(const sb_inspection *inspection);
/** Node `index`, in the order of execution. */
SB_API const sb_inspected_node *sb_inspection_node(const sb_inspection *inspection, int index);
SB_API int sb_inspection_value_count(const sb_inspection *inspection);
SB_API const sb_inspected_value *sb_inspection_value(const sb_inspection *inspection, int index);
SB_API int sb_inspection_input_count(const sb_inspection *inspection);
/** The value that is input `index` of the graph; a body's last inputs are what it captures. */
SB_API int sb_inspection_input(const sb_inspection *inspection, int index);
SB_API int sb_inspection_output_count(const sb_inspection *inspection);
SB_API int sb_inspection_output(const sb_inspection *inspection, int index);
SB_API const sb_inspected_totals *sb_inspection_totals(const sb_inspection *inspection);

#ifdef __cplusplus
}
#endif
#endif
