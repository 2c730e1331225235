/* Attention of one new row of a sequence, which it appends, by clusters, for heads of 64.
 * Compiled for 90a alone. A module for each of bf16, f16. */
#include "cuda/attention/attention16_few.cuh"

SB_CUDA_ATTENTION16_FEW(SB_CUDA_ATTENTION16_FEW_APPENDED_KERNEL, 64)
