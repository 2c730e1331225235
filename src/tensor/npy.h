/* numpy's .npy files: one array behind a header of text.
 *
 * Read: format versions 1, 2 and 3; both byte orders; C order, and Fortran order, which becomes a
 * transposed view. Dtypes: b1, u1 … u8, i1 … i8, f2, f4, f8; U (UTF-32 text, which becomes
 * IV_STRING without the NULs at the end, as in numpy); and V2 as bf16: numpy has no bf16, and
 * arrays of the ml_dtypes package are written with the descriptor '<V2' ('|V2' once numpy has read
 * and written them again). Pickled objects, structures, bytes (S), complex numbers and dates are
 * refused with the way out.
 *
 * Written: version 1 (2 for very long headers, which no tensor has), C order, the byte order of
 * this machine. */
#ifndef IV_TENSOR_NPY_H
#define IV_TENSOR_NPY_H

#include "base/file.h"
#include "tensor/tensor.h"

/** Where the bytes of a file come from, in order. */
typedef struct iv_npy_source {
    /* Fills all of `into` or fails; `offset` is where in the file that is, for reports. */
    iv_status (*read)(void *context, void *into, size_t bytes, iv_error *error);
    void *context;
    uint64_t size; /* of the whole file */
} iv_npy_source;

/** Reads a file from its source, which must hold nothing behind the array. No allocation is larger
 * than a small multiple of the file. Errors: INVALID_FILE (with the byte offset); UNSUPPORTED (a
 * dtype); OUT_OF_MEMORY; whatever the source reports. */
iv_status iv_npy_read_from(const iv_npy_source *source, iv_tensor **tensor, iv_error *error);
/** Reads a file of `size` bytes in memory; the tensor has a copy. */
iv_status iv_npy_read(const void *bytes, size_t size, iv_tensor **tensor, iv_error *error);
/** Reads the file `path`. */
iv_status iv_npy_read_file(const char *path, iv_tensor **tensor, iv_error *error);

/** A tensor as a file, in two parts without a copy where possible. */
typedef struct iv_npy_image {
    iv_file_part parts[2]; /* the header, the elements */
    void *header;
    void *text;            /* UTF-32, or NULL */
    iv_tensor *contiguous; /* what the elements belong to, or NULL */
} iv_npy_image;

/** Prepares the tensor's file. Errors: INVALID_ARGUMENT for text that is no UTF-8 or ends in NUL,
 * which numpy would drop; OUT_OF_MEMORY. */
iv_status iv_npy_image_create(iv_tensor *tensor, iv_npy_image *image, iv_error *error);
/** Frees what the image owns and zeroes it; a zeroed one is allowed. */
void iv_npy_image_release(iv_npy_image *image);

/** Writes the tensor's file into memory of its own: free it by iv_free. */
iv_status iv_npy_write(iv_tensor *tensor, void **bytes, size_t *size, iv_error *error);
/** Writes the file `path`, whole or not at all. */
iv_status iv_npy_write_file(const char *path, iv_tensor *tensor, iv_error *error);

#endif
