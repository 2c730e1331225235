/* numpy's .npz files: zip archives of .npy files.
 *
 * Read: stored and deflated members whose names end in ".npy". Written: stored, in the order given,
 * with a fixed date, so that equal tensors give equal files. */
#ifndef IV_TENSOR_NPZ_H
#define IV_TENSOR_NPZ_H

#include "tensor/tensor.h"

/** An open archive. One thread at a time. */
typedef struct iv_npz iv_npz;

/** Opens an archive. Errors: IO; INVALID_FILE; UNSUPPORTED (members that are no .npy files,
 * encryption, other compression); OUT_OF_MEMORY. */
iv_status iv_npz_open(const char *path, iv_npz **npz, iv_error *error);
/** Opens an archive in memory, which must outlive it. */
iv_status iv_npz_open_memory(const void *bytes, size_t size, iv_npz **npz, iv_error *error);
/** NULL is allowed. */
void iv_npz_close(iv_npz *npz);

int iv_npz_count(const iv_npz *npz);
/** The name of array `index` without ".npy"; valid until the archive is closed. */
const char *iv_npz_name(const iv_npz *npz, int index);
/** The index of the array of that name, or -1. */
int iv_npz_find(const iv_npz *npz, const char *name);
/** Reads array `index`. Nothing larger than deflate can have packed into the member is allocated.
 */
iv_status iv_npz_read(iv_npz *npz, int index, iv_tensor **tensor, iv_error *error);

/** Writes `count` tensors as the archive `path`, whole or not at all. Errors: INVALID_ARGUMENT for
 * names that are empty or occur twice, and as iv_npy_image_create; IO; OUT_OF_MEMORY. */
iv_status iv_npz_write(const char *path, int count, const char *const *names,
                       iv_tensor *const *tensors, iv_error *error);

#endif
