/* Convolutions of 16 bits by TMA and wgmma, in tiles of 128 positions by 256 outputs.
 * Compiled for 90a alone. */
#define SB_GEMM_N 256
#define SB_GEMM_GROUPS 2
#define SB_GEMM_BOXES 1
#define SB_GEMM_STAGES 4
#define SB_GEMM_CLUSTER 2
#define SB_GEMM_CONV
#define SB_GEMM_NAME sb_gemm16_conv_128x256
#define SB_GEMM_A_K_MAJOR
#define SB_GEMM_B_K_MAJOR
#include "cuda/contraction/gemm16_hopper.cuh"
