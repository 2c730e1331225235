/* Products of few rows that normalise their rows themselves. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_NORMED_H
#define SB_CUDA_CONTRACTION_GEMM16_NORMED_H

#include "cuda/queue/join.h"

/** An sb_cuda_join: of a root mean square norm of few rows, and a product of what it has made, without nodes behind: of one, or of up
 * to eight by swapped tiles of 64 x 16. */
sb_status sb_gemm16_join_norm(sb_cuda_device *device, const sb_cuda_kernel_task *ahead, const sb_cuda_kernel_task *own,
                              sb_cuda_joined *joined, sb_error *error);

#endif
