/* Products as those of gemm16_general.cu, of tiles that threads fetch into SHARED memory together, by Ampere's chain. */
#define AMPERE_CHAIN
#define TILE_M 128
#define TILE_N 128
#define WARPS_M 2
#define WARPS_N 4
#define STAGES 3
#define BLOCKS 2
#include "cuda/kernels/gemm16_tile.cuh"

LAYOUTS(iv_gemm16_ampere_bf16, bf16, "bf16")
LAYOUTS(iv_gemm16_ampere_f16, f16, "f16")
