/* Attention of rows that are few, on pages, by clusters, for heads of up to 64.
 * Compiled for 90a alone. A module for each of bf16, f16. */
#include "cuda/attention/attention16_few.cuh"

SB_CUDA_ATTENTION16_FEW(SB_CUDA_ATTENTION16_FEW_PAGED_KERNEL, 64)
