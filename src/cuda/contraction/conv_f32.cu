/* Convolutions in f32 as products, one kernel for each shape of tiles. Threads of a block fetch
 * tiles together and meet at each SB_CUDA_BARRIER. */
#include "cuda/contraction/patch.cuh"
#include "numerics/scalar.h"

#define SB_TILE_CONVOLUTION 1
#define SB_TILE_BOUNDED 0
#define SB_TILE_SHAPE(m, n) sb_cuda_conv_f32_##m##x##n
#include "cuda/contraction/tile_kernels.cuh"
