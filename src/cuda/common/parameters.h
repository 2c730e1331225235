/* The structs that kernels take, for the host and for the device. */
#ifndef SB_CUDA_COMMON_PARAMETERS_H
#define SB_CUDA_COMMON_PARAMETERS_H

#include <stdint.h>

#include "cuda/common/divisor.h"
#include "kernel/fault.h"

/* As many dimensions as a tensor can have. */
#define SB_CUDA_RANK 12
#define SB_CUDA_OPERANDS 4
/* Elements of a box that a thread takes at once. */
#define SB_CUDA_GROUP 4

/* A box of elements and where they lie; operand 0 is written. Dimensions count from the slowest, and those that lie
 * behind each other in every operand have been merged, so packed operands come with a rank of 1. Steps are in bytes,
 * and 0 where an operand is repeated. Data are addresses of the device. */
typedef struct sb_cuda_box {
    int64_t elements;
    int32_t rank; /* at least 1 */
    int32_t operands;
    int64_t dims[SB_CUDA_RANK];
    int64_t steps[SB_CUDA_OPERANDS][SB_CUDA_RANK];
    char *data[SB_CUDA_OPERANDS];
    sb_cuda_divisor divisors[SB_CUDA_RANK]; /* the dims, where there are less than 2^31 elements */
    double inverses[SB_CUDA_RANK];          /* 1 / dim, where there are more */
    uint8_t rows;                           /* no group goes from one row of the last dimension to the next */
    uint8_t whole[SB_CUDA_OPERANDS];        /* and each is one aligned access to this operand */
} sb_cuda_box;

/* Element-wise operators of one and two inputs. */
typedef struct sb_cuda_elementwise {
    sb_cuda_box box;
    float a, b;      /* parameters of operators of one input: unary_formulas.h */
    uint32_t *fault; /* set by integer divisions; other operators leave it alone */
    int32_t op;      /* of integers: elementwise/integer_operations.h; other kernels have one operator */
} sb_cuda_elementwise;

/* The sides of a tile of a transposition. */
#define SB_CUDA_TILE 32

/* A copy of many matrices from operand 1 of `batch`, where rows are contiguous, to operand 0, where columns are. */
typedef struct sb_cuda_transposition {
    sb_cuda_box batch; /* of the matrices' first elements */
    int64_t rows, columns, row_tiles, column_tiles;
    int64_t tiles;     /* of all matrices */
    int64_t to_step;   /* from one row to the next, in bytes */
    int64_t from_step; /* from one column to the next */
} sb_cuda_transposition;

#endif
