/* The structs that the kernels of moving.cu take. Elements lie packed unless there are steps. */
#ifndef SB_CUDA_MOVING_MOVING_PARAMETERS_H
#define SB_CUDA_MOVING_MOVING_PARAMETERS_H

#include "cuda/common/parameters.h"
#include "ops/pad_values.h"
#include "ops/range_values.h"

/* Inputs of a Concat in front of another one that may be used partly. */
#define SB_CUDA_PLACES 8

/* A copy from operand 1 to operand 0, which begins as many rows later as there are used ones in front of it. */
typedef struct sb_cuda_placed_copy {
    sb_cuda_box box; /* operand 0 as if they were none */
    int32_t count, unused;
    const int64_t *used[SB_CUDA_PLACES];
    int64_t extents[SB_CUDA_PLACES];
    int64_t step; /* from row to row of operand 0, in bytes */
} sb_cuda_placed_copy;

/* Inputs that one kernel joins; a power of 2. */
#define SB_CUDA_JOINED 16

/* Lines of `width` units, each of which has a part from each input: the first unit of an input's part, INT64_MAX where there is no
 * input. Steps, from line to line, are in bytes. */
typedef struct sb_cuda_line_join {
    int64_t units, width, out_step;
    char *out;
    int64_t starts[SB_CUDA_JOINED], in_steps[SB_CUDA_JOINED];
    const char *in[SB_CUDA_JOINED];
    int32_t count, unused;
} sb_cuda_line_join;

/* Every element gets the same bits. */
typedef struct sb_cuda_fill {
    int64_t elements;
    uint64_t bits;
    char *out;
} sb_cuda_fill;

/* [rows, columns]: `one` where column = row + diagonal, else 0. */
typedef struct sb_cuda_eye {
    int64_t elements, columns, diagonal;
    uint64_t one;
    char *out;
} sb_cuda_eye;

typedef struct sb_cuda_range_fill {
    sb_range range;
    char *out;
} sb_cuda_range_fill;

/* s64: the first elements of the run's range, of which there are no more than the planned one has. */
typedef struct sb_cuda_run_range {
    sb_range planned;
    const int64_t *start, *limit; /* the run's; NULL: as planned */
    char *out;
} sb_cuda_run_range;

/* [matrices, rows, columns]: 0 where column < row + diagonal (upper) or column > row + diagonal. */
typedef struct sb_cuda_trilu {
    int64_t elements, rows, columns, diagonal;
    const int64_t *known; /* the run's diagonal; NULL: the one above */
    int32_t upper;
    const char *in;
    char *out;
} sb_cuda_trilu;

/* [outer, middle, inner], one of the first two the time axis and the other the batch: the first
 * lengths[batch] elements of time are reversed. */
typedef struct sb_cuda_reverse {
    int64_t elements, outer, middle, inner;
    int32_t time_first, wide_lengths;
    const void *lengths;
    uint32_t *fault;
    const char *in;
    char *out;
} sb_cuda_reverse;

/* The output is packed; the input has steps in bytes. */
typedef struct sb_cuda_pad {
    int64_t elements;
    int32_t rank; /* at least 1 */
    sb_pad_mode mode;
    int64_t dims[SB_CUDA_RANK];    /* of the output */
    int64_t extents[SB_CUDA_RANK]; /* of the input */
    int64_t before[SB_CUDA_RANK], steps[SB_CUDA_RANK];
    uint64_t constant;
    const char *in;
    char *out;
} sb_cuda_pad;

#endif
