/* Models: a graph with its weights, loaded once and shared by any number of threads and sessions.
 *
 * A model is immutable. Functions that take a `const iv_model *` may be called from any thread at any time. */
#ifndef INVAR_MODEL_H
#define INVAR_MODEL_H

#include <stddef.h>

#include <invar/isa.h>
#include <invar/value.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct iv_model iv_model;

/** How a model is prepared. Start from IV_MODEL_OPTIONS_DEFAULT. None of it changes a result. */
typedef struct iv_model_options {
    size_t struct_bytes; /**< sizeof(iv_model_options): lets the struct grow */
    iv_isa isa;          /**< the instruction set of the kernels */
    bool passes;         /**< whether the graph is simplified and fused */
    bool reference_only; /**< whether every node runs its reference evaluation: slow, the definition of the bits */
    int64_t memory_limit; /**< the most bytes that loading may hold, and that the model then keeps; 0: as in iv_session_options.
                               Files that are mapped into memory do not count */
} iv_model_options;

#define IV_MODEL_OPTIONS_DEFAULT                                                                   \
    { sizeof(iv_model_options), IV_ISA_BEST, true, false, 0 }

/** Loads an ONNX file. External data are read from the file's own folder.
 *
 * `options` may be NULL. The caller owns the model. Errors: IO, INVALID_FILE, INVALID_MODEL, UNSUPPORTED (listing
 * every operator that is missing), SHAPE, OUT_OF_MEMORY. */
IV_API IV_MUST_CHECK iv_status iv_model_load(const char *path, const iv_model_options *options,
                                             iv_model **model, iv_error *error);
/** The same from memory, which may be freed afterwards. Models with external data are refused. */
IV_API IV_MUST_CHECK iv_status iv_model_load_memory(const void *bytes, size_t size,
                                                    const iv_model_options *options,
                                                    iv_model **model, iv_error *error);
/** Drops the caller's reference. Sessions keep a model alive, so any order of releasing is safe. NULL is allowed. */
IV_API void iv_model_release(iv_model *model);

/** What is known of an input or output before running. All pointers are the model's. */
typedef struct iv_value_description {
    const char *name;
    iv_kind kind;
    bool optional;       /**< the value may be nothing */
    iv_dtype dtype;      /**< of the tensor, or of the tensors in the sequence */
    int rank;            /**< -1 when even the rank is open */
    const int64_t *dims; /**< `rank` extents; -1 where `dim_texts` has a formula */
    const char *const *dim_texts; /**< `rank` extents as text: "8", "batch", "2*time+1" */
} iv_value_description;

IV_API int iv_model_input_count(const iv_model *model);
IV_API int iv_model_output_count(const iv_model *model);
/** `index` must be in range. */
IV_API const iv_value_description *iv_model_input(const iv_model *model, int index);
IV_API const iv_value_description *iv_model_output(const iv_model *model, int index);
/** The index of the input of that name, or -1. */
IV_API int iv_model_input_index(const iv_model *model, const char *name);
IV_API int iv_model_output_index(const iv_model *model, const char *name);

#ifdef __cplusplus
}
#endif
#endif
