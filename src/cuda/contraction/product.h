/* Products for kernels of other operators. */
#ifndef SB_CUDA_CONTRACTION_PRODUCT_H
#define SB_CUDA_CONTRACTION_PRODUCT_H

#include "cuda/common/call.h"
#include "ops/matmul.h"

/** Multiplies matrices of float tensors, which begin with their data, by the quickest kernel that MatMul has. Elements of y follow each other,
 * batch by batch and row by row; where A and B are of 16 bits it may be of f32, and has the chains as they are. Notes in the call which
 * schedule it took. Errors: as sb_gemm_launch and sb_cuda_call_launch. */
sb_status sb_cuda_product_alone(sb_call *call, const sb_matmul_geometry *geometry, const sb_tensor *a,
                                const sb_tensor *b, const sb_tensor *y);

#endif
