/* Logits of 16-bit products, reduced where they are: tiles of 128 by 256.
 * Compiled for 90a alone. A module for each of bf16, f16. */
#define SB_GEMM_N 256
#define SB_GEMM_GROUPS 2
#define SB_GEMM_BOXES 1
#define SB_GEMM_STAGES 4
#define SB_GEMM_CLUSTER 2
#define SB_GEMM_LOGITS
#define SB_GEMM_KERNEL(layout) sb_gemm16_logits_128x256_##layout
#define SB_GEMM_A_K_MAJOR
#include "cuda/contraction/gemm16_logits.cuh"

/* Last: it makes kernels of what is defined above. */
#include "cuda/contraction/gemm16_hopper_layouts.cuh"
