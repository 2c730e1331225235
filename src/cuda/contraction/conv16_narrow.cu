/* Convolutions of f16 and bf16 whose groups have few outputs, depthwise ones among them: in tiles of 16 outputs.
 * Compiled for 90a by itself. A module for each of bf16, f16. */
#define TILE_N 16
#define WARPS_M 8
#define WARPS_N 1
#include "cuda/contraction/conv16_tile.cuh"

#if !defined(SB_MODULE_f16)
CONVOLUTION(sb_cuda_conv16_narrow_bf16, bf16, "bf16")
#endif
#if !defined(SB_MODULE_bf16)
CONVOLUTION(sb_cuda_conv16_narrow_f16, f16, "f16")
#endif
