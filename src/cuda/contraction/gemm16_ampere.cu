/* The products of gemm16_general.cu, whose tiles threads fetch into SHARED memory together, by Ampere's chain. */
#define AMPERE_CHAIN
#include "cuda/contraction/gemm16_general.cu"
