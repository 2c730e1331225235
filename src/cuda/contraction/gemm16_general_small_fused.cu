/* Products of f16 and bf16 matrices of any kind with the nodes behind them: small tiles, which threads fetch into SHARED
 * memory together.
 * Compiled for 90a by itself. A module for each of bf16, f16. */
#define TILE_M 64
#define TILE_N 64
#define WARPS_M 2
#define WARPS_N 2
#define STAGES 4
#define BLOCKS 4
#define SB_GEMM_FUSED
#include "cuda/contraction/gemm16_tile.cuh"

#if !defined(SB_MODULE_f16)
LAYOUTS(sb_gemm16_general_small_fused_bf16, bf16, "bf16")
#endif
#if !defined(SB_MODULE_bf16)
LAYOUTS(sb_gemm16_general_small_fused_f16, f16, "f16")
#endif
