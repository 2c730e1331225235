/* What kernels that compare and accumulate along an axis take, for the host and for devices. */
#ifndef SB_CUDA_ROWS_ORDER_PARAMETERS_H
#define SB_CUDA_ROWS_ORDER_PARAMETERS_H

#include "cuda/rows/rows_parameters.h"

/* ArgMax, ArgMin and Hardmax: a block for each row, or a warp where rows are short. */
typedef struct sb_cuda_arg {
    sb_cuda_rows rows; /* Hardmax: the output's too */
    int64_t *best;     /* [rows] */
    int32_t dtype;     /* sb_dtype */
    int32_t least, last;
    int32_t one_hot; /* Hardmax */
    uint32_t *fault; /* set where no elements are used; NULL where all are */
} sb_cuda_arg;

/* CumSum and CumProd: a thread for each row. */
typedef struct sb_cuda_cumulative {
    sb_cuda_rows rows;
    int32_t dtype;
    int32_t exclusive, reverse, product;
} sb_cuda_cumulative;

/* Elements that a block sorts in shared memory. */
#define SB_CUDA_SORTED 2048
/* The largest k that blocks select; beyond it, elements count how many come before them. */
#define SB_CUDA_SELECTED (SB_CUDA_SORTED / 2)

/* TopK; the output's rows have k elements. */
typedef struct sb_cuda_topk {
    sb_cuda_rows rows;
    int64_t k;
    int32_t dtype;
    int32_t largest;
    int64_t *indices; /* of the values' shape; may be NULL */
} sb_cuda_topk;

#endif
