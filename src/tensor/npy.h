/* numpy's .npy files: one array behind a header of text.
 *
 * Read: format versions 1, 2 and 3; both byte orders; C order, and Fortran order, which becomes a transposed view.
 * Dtypes: b1, u1 … u8, i1 … i8, f2, f4, f8; U (UTF-32 text, which becomes SB_STRING without the NULs at the end, as in
 * numpy); and V2 as bf16: numpy has no bf16, and arrays of the ml_dtypes package are written with the descriptor '<V2'
 * ('|V2' once numpy has read and written them again). Pickled objects, structures, bytes (S), complex numbers and dates
 * are refused with the way out.
 *
 * Written: version 1 (2 for very long headers, which no tensor has), C order, the byte order of this machine. */
#ifndef SB_TENSOR_NPY_H
#define SB_TENSOR_NPY_H

#include "base/file.h"
#include "tensor/tensor.h"

/** Where the bytes of a file come from, in order. */
typedef struct sb_npy_source {
    /* Fills all of `into` or fails; `offset` is where in the file that is, for reports. */
    sb_status (*read)(void *context, void *into, size_t bytes, sb_error *error);
    void *context;
    uint64_t size; /* of the whole file */
} sb_npy_source;

/** Reads a file from its source, which must hold nothing behind the array. No allocation is larger
 * than a small multiple of the file. Errors: INVALID_FILE (with the byte offset); UNSUPPORTED (a
 * dtype); OUT_OF_MEMORY; whatever the source reports. */
sb_status sb_npy_read_from(const sb_npy_source *source, sb_tensor **tensor, sb_error *error);
/** Reads a file of `size` bytes in memory; the tensor has a copy. */
sb_status sb_npy_read(const void *bytes, size_t size, sb_tensor **tensor, sb_error *error);
/** Reads the file `path`. */
sb_status sb_npy_read_file(const char *path, sb_tensor **tensor, sb_error *error);

/** A tensor as a file, in two parts without a copy where possible. */
typedef struct sb_npy_image {
    sb_file_part parts[2]; /* the header, the elements */
    void *header;
    void *text;            /* UTF-32, or NULL */
    sb_tensor *contiguous; /* what the elements belong to, or NULL */
} sb_npy_image;

/** Prepares the tensor's file. Errors: INVALID_ARGUMENT for text that is no UTF-8 or ends in NUL,
 * which numpy would drop; OUT_OF_MEMORY. */
sb_status sb_npy_image_create(sb_tensor *tensor, sb_npy_image *image, sb_error *error);
/** Frees what the image owns and zeroes it; a zeroed one is allowed. */
void sb_npy_image_release(sb_npy_image *image);

/** Writes the tensor's file into memory of its own: free it by sb_free. */
sb_status sb_npy_write(sb_tensor *tensor, void **bytes, size_t *size, sb_error *error);
/** Writes the file `path`, whole or not at all. */
sb_status sb_npy_write_file(const char *path, sb_tensor *tensor, sb_error *error);

#endif
