/* Attention of 128 rows at a time by warpgroups, of keys on pages, for heads of up to 64.
 * Compiled for 90a alone. A module for each of bf16, f16. */
#include "cuda/attention/attention16_prefill.cuh"

SB_CUDA_ATTENTION16_PREFILL(sb_cuda_attention16_prefill_paged_64, 64, true)
