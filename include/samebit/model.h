/* Models: a graph with its weights, loaded once and shared by any number of threads and sessions.
 *
 * A model is immutable. Functions that take a `const sb_model *` may be called from any thread at any time. */
#ifndef SAMEBIT_MODEL_H
#define SAMEBIT_MODEL_H

#include <stddef.h>

#include <samebit/isa.h>
#include <samebit/value.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sb_model sb_model;

/** How a model is prepared. Start from SB_MODEL_OPTIONS_DEFAULT. None of it changes a result. */
typedef struct sb_model_options {
    size_t struct_bytes; /**< sizeof(sb_model_options): lets the struct grow */
    sb_isa isa;          /**< the instruction set of the kernels */
    bool passes;         /**< whether the graph is simplified and fused */
    bool reference_only; /**< whether every node runs its reference evaluation: slow, the definition of the bits */
    /** The most bytes that loading may hold, and that the model then keeps; 0: as in sb_session_options. Files that are
     * mapped into memory do not count. */
    int64_t memory_limit;
    /** Symbols of the file that stand for extents which need not be equal, although it calls them the same: names with commas
     * between; NULL: none. Each such extent of an input is then known by no name. Equal names are equal extents otherwise,
     * in every run: the graph is simplified by that. INVALID_ARGUMENT for a name that no input's extent has. */
    const char *unrelated_symbols;
} sb_model_options;

#define SB_MODEL_OPTIONS_DEFAULT                                                                                       \
    { sizeof(sb_model_options), SB_ISA_BEST, true, false, 0, NULL }

/** Loads an ONNX file. External data are read from the file's own folder.
 *
 * `options` may be NULL. The caller owns the model. Errors: IO, INVALID_FILE, INVALID_MODEL, UNSUPPORTED (listing
 * every operator that is missing), SHAPE, OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_model_load(const char *path, const sb_model_options *options, sb_model **model,
                                             sb_error *error);
/** The same from memory, which may be freed afterwards. Models with external data are refused. */
SB_API SB_MUST_CHECK sb_status sb_model_load_memory(const void *bytes, size_t size, const sb_model_options *options,
                                                    sb_model **model, sb_error *error);
/** Drops the caller's reference. Sessions keep a model alive, so any order of releasing is safe. NULL is allowed. */
SB_API void sb_model_release(sb_model *model);

/** A set of operators that a model's file uses. */
typedef struct sb_model_opset {
    const char *domain; /**< "" for the ONNX standard's own */
    int64_t version;
} sb_model_opset;

/** A pair of texts that whoever made the file put into it. */
typedef struct sb_model_property {
    const char *key, *value;
} sb_model_property;

/** What a model's file says of itself. Text is UTF-8 as it stands in the file; "" where the file says nothing. All
 * pointers are the model's. */
typedef struct sb_model_metadata {
    int64_t format_version; /**< of the file format (ONNX: ir_version) */
    int64_t model_version;
    const char *producer_name, *producer_version, *domain, *graph_name, *description;
    size_t opset_count;
    const sb_model_opset *opsets;
    size_t property_count;
    const sb_model_property *properties;
} sb_model_metadata;

/** What the model's file says of itself; NULL for a model that was made by calls. */
SB_API const sb_model_metadata *sb_model_describe(const sb_model *model);

/** How many things in the model's file were tolerated that break the rules of its format, or are newer than what Samebit
 * knows. Each has one meaning, the one that others who read such files give it; what has none is an error of loading.
 * At most 1,001 are listed. 0 for a model that was made by calls. */
SB_API int sb_model_warning_count(const sb_model *model);
/** Sentence `index`, which must be in range, for whoever made the file: what it says, and how it was taken. Names in it
 * are bytes as in the file. The text is the model's. */
SB_API const char *sb_model_warning(const sb_model *model, int index);

/** What is known of an input or output before running. All pointers are the model's. */
typedef struct sb_value_description {
    const char *name;
    sb_kind kind;
    bool optional;                /**< the value may be nothing */
    sb_dtype dtype;               /**< of the tensor, or of the tensors in the sequence */
    int rank;                     /**< -1 when even the rank is open */
    const int64_t *dims;          /**< `rank` extents; -1 where `dim_texts` has a formula */
    const char *const *dim_texts; /**< `rank` extents as text: "8", "batch", "2*time+1" */
} sb_value_description;

SB_API int sb_model_input_count(const sb_model *model);
SB_API int sb_model_output_count(const sb_model *model);
/** `index` must be in range. */
SB_API const sb_value_description *sb_model_input(const sb_model *model, int index);
SB_API const sb_value_description *sb_model_output(const sb_model *model, int index);
/** The index of the input of that name, or -1. */
SB_API int sb_model_input_index(const sb_model *model, const char *name);
SB_API int sb_model_output_index(const sb_model *model, const char *name);

/* ---- models of several entry graphs: the functions above are about the first ---- */

SB_API int sb_model_entry_count(const sb_model *model);
/** The name of an entry graph; `entry` must be in range here and below. */
SB_API const char *sb_model_entry_name(const sb_model *model, int entry);
/** The index of the entry graph of that name, or -1. */
SB_API int sb_model_entry_index(const sb_model *model, const char *name);
SB_API int sb_model_entry_input_count(const sb_model *model, int entry);
SB_API int sb_model_entry_output_count(const sb_model *model, int entry);
/** `index` must be in range. */
SB_API const sb_value_description *sb_model_entry_input(const sb_model *model, int entry, int index);
SB_API const sb_value_description *sb_model_entry_output(const sb_model *model, int entry, int index);

#ifdef __cplusplus
}
#endif
#endif
