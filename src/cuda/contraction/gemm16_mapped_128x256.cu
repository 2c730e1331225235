/* 16-bit products with a row map by TMA and wgmma, in tiles of 128 by 256: for gradients of weights.
 * Compiled for 90a alone. */
#define SB_GEMM_N 256
#define SB_GEMM_GROUPS 2
#define SB_GEMM_BOXES 1
#define SB_GEMM_STAGES 4
#define SB_GEMM_CLUSTER 2
#define SB_GEMM_NAME sb_gemm16_mapped_128x256
#define SB_GEMM_MAPPED
#include "cuda/contraction/gemm16_hopper.cuh"
