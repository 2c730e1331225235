/* Checkpoints: what a language model's folder or GGUF file holds, mapped and checked, without knowing any model.
 *
 * A folder has config.json, and weights in model.safetensors or in the files that model.safetensors.index.json names;
 * generation_config.json may be there. A GGUF file has it all; a split one is opened by its first part.
 *
 * Every tensor's dtype, extents and place have been checked to lie inside its file when sb_checkpoint_open returns, so
 * that reading one fails for lack of memory alone. Files must not be changed while the checkpoint, or a tensor that was
 * read from it, is in use: they are mapped. */
#ifndef SB_CHECKPOINT_CHECKPOINT_H
#define SB_CHECKPOINT_CHECKPOINT_H

#include <jansson.h>

#include "base/names.h"
#include "base/shared_mapping.h"
#include "checkpoint/gguf.h"
#include "checkpoint/weight_format.h"
#include "tensor/tensor.h"

/** The most dimensions of a weight. */
#define SB_CHECKPOINT_RANK 8

typedef struct sb_checkpoint_file {
    char *path;
    sb_shared_mapping *mapping;
} sb_checkpoint_file;

typedef struct sb_checkpoint_tensor {
    char *name;
    const sb_weight_format *format;
    int rank;
    int64_t dims[SB_CHECKPOINT_RANK]; /* row-major: the last one is that of neighbours in the file */
    int64_t elements;
    size_t file;   /* which of the files */
    size_t offset; /* of its first byte in that file */
    size_t bytes;
    sb_tensor *replacement; /* row-major, of the format's dtype: stands for the file's elements; NULL: those do */
    bool used;              /* somebody has asked for it: sb_checkpoint_find */
} sb_checkpoint_tensor;

typedef struct sb_checkpoint {
    char *path;
    size_t file_count, file_capacity;
    sb_checkpoint_file *files;
    size_t tensor_count, tensor_capacity;
    sb_checkpoint_tensor *tensors;
    sb_names names;        /* of tensors, to their index */
    json_t *config;        /* config.json, an object; NULL for a GGUF file */
    json_t *generation;    /* generation_config.json, an object; NULL: there is none */
    sb_gguf_metadata gguf; /* of a GGUF file; empty for a folder */
} sb_checkpoint;

/** Opens a folder or a file. Errors: IO; INVALID_FILE, with the byte offset; UNSUPPORTED; OUT_OF_MEMORY. */
sb_status sb_checkpoint_open(const char *path, sb_checkpoint **checkpoint, sb_error *error);
/** Frees it; tensors that were read live on. NULL is allowed. */
void sb_checkpoint_close(sb_checkpoint *checkpoint);

/** The tensor of that name, which counts as used from here on; NULL if there is none. */
const sb_checkpoint_tensor *sb_checkpoint_find(const sb_checkpoint *checkpoint, const char *name);

/** The tensor's bytes, row-major: the file's, or those of what has replaced them. */
const char *sb_checkpoint_data(const sb_checkpoint *checkpoint, const sb_checkpoint_tensor *tensor);

/** The tensor as `dtype` (f32, f16, bf16), row-major: over the mapped file where it has that dtype and is aligned,
 * or what has replaced it, else
 * converted by sb_weight_convert. The caller releases it. Errors: UNSUPPORTED for a format that is not computed with;
 * OUT_OF_MEMORY. */
sb_status sb_checkpoint_read(const sb_checkpoint *checkpoint, const sb_checkpoint_tensor *tensor, sb_dtype dtype,
                             sb_tensor **result, sb_error *error);

/* ---- for the readers of formats ---- */

/** Adds an empty tensor of that name, of `bytes` bytes (no NUL among them), in the file that was added last; `*index` is
 * its place. INVALID_FILE when there is one of that name. */
sb_status sb_checkpoint_add(sb_checkpoint *checkpoint, const char *name, size_t bytes, size_t *index, sb_error *error);
/** Works out elements and bytes of a tensor whose format and extents are known, INVALID_FILE if they overflow or blocks
 * do not fill rows. */
sb_status sb_checkpoint_measure(const sb_checkpoint *checkpoint, sb_checkpoint_tensor *tensor, sb_error *error);
/** Maps a file and adds it. The path is copied. */
sb_status sb_checkpoint_add_file(sb_checkpoint *checkpoint, const char *path, sb_error *error);
/** Fails about a place in the file that was added last: "FILE: …: …". */
sb_status sb_checkpoint_fail(const sb_checkpoint *checkpoint, size_t offset, sb_error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/** Reads the tensors of the safetensors file that was added last. */
sb_status sb_safetensors_read(sb_checkpoint *checkpoint, sb_error *error);
/** Reads metadata and tensors of the GGUF file that was added last. */
sb_status sb_gguf_read(sb_checkpoint *checkpoint, sb_error *error);

/** Parses an object of JSON. `name` is for messages. The caller has a reference. Errors: INVALID_FILE, with the byte
 * offset; OUT_OF_MEMORY. */
sb_status sb_json_object(const char *name, const char *bytes, size_t size, json_t **object, sb_error *error);

#endif
