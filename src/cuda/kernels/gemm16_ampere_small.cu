/* Products as those of gemm16_general_small.cu, of tiles that threads fetch into SHARED memory together, by Ampere's chain. */
#define AMPERE_CHAIN
#define TILE_M 64
#define TILE_N 64
#define WARPS_M 2
#define WARPS_N 2
#define STAGES 4
#define BLOCKS 4
#include "cuda/kernels/gemm16_tile.cuh"

LAYOUTS(iv_gemm16_ampere_small_bf16, bf16, "bf16")
LAYOUTS(iv_gemm16_ampere_small_f16, f16, "f16")
