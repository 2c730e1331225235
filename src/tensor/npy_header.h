/* The header of a .npy file. */
#ifndef IV_TENSOR_NPY_HEADER_H
#define IV_TENSOR_NPY_HEADER_H

#include "tensor/tensor.h"

/* Magic, version and the length of what follows. */
#define IV_NPY_PREFIX_BYTES 12
/* numpy's own headers have some hundred bytes. */
#define IV_NPY_MOST_HEADER 65536

typedef struct iv_npy_header {
    iv_dtype dtype;
    bool swapped;       /* the file's byte order is not this machine's */
    bool fortran_order; /* the first dimension varies fastest */
    int64_t characters; /* per element, for IV_STRING */
    int rank;
    int64_t dims[IV_MAX_RANK];
} iv_npy_header;

/** Bytes of one element in the file. */
uint64_t iv_npy_element_bytes(const iv_npy_header *header);

/** Checks magic and version in the first 10 bytes. `*prefix` becomes 10 or 12: the bytes before the
 * text. */
iv_status iv_npy_check_magic(const unsigned char *bytes, size_t *prefix, iv_error *error);

/** Parses the text that starts at byte `offset` of the file (for reports). */
iv_status iv_npy_parse_header(const char *text, size_t bytes, size_t offset, iv_npy_header *header,
                              iv_error *error);

/** Writes prefix and text, a multiple of 64 bytes, as numpy does; free `*bytes` by iv_free. */
iv_status iv_npy_format_header(const iv_npy_header *header, void **bytes, size_t *size,
                               iv_error *error);

#endif
