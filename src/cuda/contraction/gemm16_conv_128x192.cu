/* Convolutions of 16 bits by TMA and wgmma, in tiles of 128 positions by 192 outputs.
 * Compiled for 90a alone. A module for each of bf16, f16. */
#define SB_GEMM_N 192
#define SB_GEMM_GROUPS 2
#define SB_GEMM_BOXES 1
#define SB_GEMM_STAGES 4
#define SB_GEMM_CLUSTER 1
#define SB_GEMM_CONV
#define SB_GEMM_KERNEL(layout) sb_gemm16_conv_128x192_##layout
#define SB_GEMM_A_K_MAJOR
#define SB_GEMM_B_K_MAJOR
#include "cuda/contraction/gemm16_conv.cuh"
#include "cuda/contraction/gemm16_hopper_layouts.cuh"
