/* Attention of few rows that share keys, by TMA, for heads of up to 64.
 * Compiled for 90a alone. A module for each of bf16, f16. */
#include "cuda/attention/attention16_stream.cuh"

SB_CUDA_ATTENTION16_STREAM(64)
