/* Convolutions of f16 and bf16 of any kind, in tiles of 64 outputs.
 * Compiled for 90a by itself. A module for each of bf16, f16. */
#define TILE_N 64
#define WARPS_M 4
#define WARPS_N 2
#include "cuda/contraction/conv16_tile.cuh"

#if !defined(SB_MODULE_f16)
CONVOLUTION(sb_cuda_conv16_bf16, bf16, "bf16")
#endif
#if !defined(SB_MODULE_bf16)
CONVOLUTION(sb_cuda_conv16_f16, f16, "f16")
#endif
