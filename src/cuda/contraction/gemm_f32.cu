/* Matrix products in f32, one kernel for each shape of tiles. Threads of a block fetch tiles
 * together and meet at each SB_CUDA_BARRIER. */
#include "cuda/contraction/gemm_f32.cuh"

#define SB_TILE_CONVOLUTION 0
#define SB_TILE_BOUNDED 0
#define SB_TILE_SHAPE(m, n) sb_cuda_matmul_f32_##m##x##n
#include "cuda/contraction/tile_kernels.cuh"
