/* Attention of few rows by clusters and the PagedAppend of one row right ahead of it, in one kernel (attention16_few_append.cuh). */
#ifndef SB_CUDA_ATTENTION_ATTENTION16_APPEND_H
#define SB_CUDA_ATTENTION_ATTENTION16_APPEND_H

#include "cuda/queue/join.h"

/** sb_cuda_join of a kernel of attention16_few.cuh. */
sb_status sb_cuda_attention16_join_append(sb_cuda_device *device, const sb_cuda_kernel_task *ahead,
                                          const sb_cuda_kernel_task *own, sb_cuda_joined *joined, sb_error *error);

#endif
