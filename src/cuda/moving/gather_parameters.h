/* The structs that the kernels of gather.cu and scatter.cu take. Everything lies packed but for
 * the data of Gather and GatherElements. */
#ifndef SB_CUDA_MOVING_GATHER_PARAMETERS_H
#define SB_CUDA_MOVING_GATHER_PARAMETERS_H

#include "cuda/common/parameters.h"
#include "ops/scatter_values.h"

/* Axes of a packed tensor that are used partly. */
typedef struct sb_cuda_used_axes {
    int32_t count, unused;
    const int64_t *used[SB_CUDA_RANK];
    int64_t extents[SB_CUDA_RANK], inner[SB_CUDA_RANK]; /* inner: elements of a row */
} sb_cuda_used_axes;

/* Element i of the output, of the shape of the indices, is that of the data at the same place, but
 * for the index along `axis`. Steps are those of the data, in bytes. For Gather dims[axis] is the
 * number of indices, and elements may be words of several. */
typedef struct sb_cuda_gather_elements {
    int64_t elements, extent;
    const int64_t *used_extent; /* how much of it is used; NULL: all */
    int32_t rank, axis, wide;
    int64_t dims[SB_CUDA_RANK], steps[SB_CUDA_RANK];
    const void *indices;
    sb_cuda_used_axes used; /* of the indices: others are not looked at */
    uint32_t *fault;
    const char *in;
    char *out;
} sb_cuda_gather_elements;

/* [batches, dims…, block] to [batches, tuples, block], by tuples of `depth` indices. */
typedef struct sb_cuda_gather_nd {
    int64_t words;
    int64_t tuples, block, inside; /* inside: words of a batch of the data */
    int32_t depth, wide;
    int64_t dims[SB_CUDA_RANK];
    const void *indices;
    uint32_t *fault;
    const char *in;
    char *out;
} sb_cuda_gather_nd;

/* [outer, extent, inner]: values[1] where the index at [outer, inner] is that of the middle, else values[0]. */
typedef struct sb_cuda_one_hot {
    int64_t elements, extent, inner;
    sb_dtype dtype; /* of the indices */
    const char *indices, *values;
    char *out;
} sb_cuda_one_hot;

/* Updates are numbered row-major over [outer, line, inner]: only those of one line (that differ in
 * the middle) can have the same place. A place is the number of a block of the output; -1 for an
 * index that is out of range. */
typedef struct sb_cuda_scatter_places {
    int64_t updates;
    int32_t depth, wide;           /* indices of an update */
    int32_t rank, axis;            /* of ScatterElements, whose depth is 0 */
    int64_t dims[SB_CUDA_RANK];    /* of the output: the first `depth`, or all of them */
    int64_t extents[SB_CUDA_RANK]; /* of the indices, for ScatterElements */
    const void *indices;
    uint32_t *fault;
    int64_t *places; /* [updates] */
} sb_cuda_scatter_places;

/* For each update the number of the next one at its place, or -1, and whether it is the first. */
typedef struct sb_cuda_scatter_links {
    int64_t updates, line, inner;
    const int64_t *places;
    int64_t *next;  /* [updates] */
    uint8_t *first; /* [updates] */
} sb_cuda_scatter_links;

typedef struct sb_cuda_scatter {
    int64_t elements; /* updates * block */
    int64_t block;
    sb_scatter_how how;
    sb_dtype dtype;
    const int64_t *places, *next;
    const uint8_t *first;
    const char *from;
    char *out;
} sb_cuda_scatter;

#endif
