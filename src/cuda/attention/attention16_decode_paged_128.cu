/* Attention of up to 16 rows at a time, for heads of up to 128, of keys on pages.
 * Compiled for 90a alone. A module for each of bf16, f16. */
#include "cuda/attention/attention16_decode.cuh"

SB_CUDA_ATTENTION16_DECODE(attention16_decode_paged_128, 128, 2, true)
