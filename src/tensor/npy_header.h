/* The header of a .npy file. */
#ifndef SB_TENSOR_NPY_HEADER_H
#define SB_TENSOR_NPY_HEADER_H

#include "tensor/tensor.h"

/* Magic, version and the length of what follows. */
#define SB_NPY_PREFIX_BYTES 12
/* numpy's own headers have some hundred bytes. */
#define SB_NPY_MOST_HEADER 65536

typedef struct sb_npy_header {
    sb_dtype dtype;
    bool swapped;       /* the file's byte order is not this machine's */
    bool fortran_order; /* the first dimension varies fastest */
    int64_t characters; /* per element, for SB_STRING */
    int rank;
    int64_t dims[SB_MAX_RANK];
} sb_npy_header;

/** Bytes of one element in the file. */
uint64_t sb_npy_element_bytes(const sb_npy_header *header);

/** Checks magic and version in the first 10 bytes. `*prefix` becomes 10 or 12: the bytes before the text. */
sb_status sb_npy_check_magic(const unsigned char *bytes, size_t *prefix, sb_error *error);

/** Parses the text that starts at byte `offset` of the file (for reports). */
sb_status sb_npy_parse_header(const char *text, size_t bytes, size_t offset, sb_npy_header *header, sb_error *error);

/** Writes prefix and text, a multiple of 64 bytes, as numpy does; free `*bytes` by sb_free. */
sb_status sb_npy_format_header(const sb_npy_header *header, void **bytes, size_t *size, sb_error *error);

#endif
