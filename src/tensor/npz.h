/* numpy's .npz files: zip archives of .npy files.
 *
 * Read: stored and deflated members whose names end in ".npy". Written: stored, in the order given,
 * with a fixed date, so that equal tensors give equal files. */
#ifndef SB_TENSOR_NPZ_H
#define SB_TENSOR_NPZ_H

#include "tensor/tensor.h"

/** An open archive. One thread at a time. */
typedef struct sb_npz sb_npz;

/** Opens an archive. Errors: IO; INVALID_FILE; UNSUPPORTED (members that are no .npy files,
 * encryption, other compression); OUT_OF_MEMORY. */
sb_status sb_npz_open(const char *path, sb_npz **npz, sb_error *error);
/** Opens an archive in memory, which must outlive it. */
sb_status sb_npz_open_memory(const void *bytes, size_t size, sb_npz **npz, sb_error *error);
/** NULL is allowed. */
void sb_npz_close(sb_npz *npz);

int sb_npz_count(const sb_npz *npz);
/** The name of array `index` without ".npy"; valid until the archive is closed. */
const char *sb_npz_name(const sb_npz *npz, int index);
/** The index of the array of that name, or -1. */
int sb_npz_find(const sb_npz *npz, const char *name);
/** Reads array `index`. Nothing larger than deflate can have packed into the member is allocated. */
sb_status sb_npz_read(sb_npz *npz, int index, sb_tensor **tensor, sb_error *error);

/** Writes `count` tensors as the archive `path`, whole or not at all. Errors: INVALID_ARGUMENT for
 * names that are empty or occur twice, and as sb_npy_image_create; IO; OUT_OF_MEMORY. */
sb_status sb_npz_write(const char *path, int count, const char *const *names, sb_tensor *const *tensors,
                       sb_error *error);

#endif
