/* The products of a recurrent node's X and W, of all time steps and directions. */
#ifndef SB_CUDA_RECURRENT_RECURRENT_PRODUCTS_H
#define SB_CUDA_RECURRENT_RECURRENT_PRODUCTS_H

#include "cuda/common/call.h"
#include "ops/recurrent.h"

/* Their chains as they are, of the computing type; strides in elements. Gate rows are side by side. */
typedef struct sb_cuda_recurrent_products {
    char *data;
    size_t bytes;
    int64_t direction, step, batch;
} sb_cuda_recurrent_products;

/** Has a call's X and W multiplied by the kernels of MatMul, in memory of the call's workspace. */
sb_status sb_cuda_recurrent_multiply(sb_call *call, const sb_recurrent_params *params,
                                     const sb_recurrent_extents *extents, sb_cuda_recurrent_products *products);

#endif
