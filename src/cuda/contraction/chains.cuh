/* Chains of products as operators are defined by them (ops/contraction.h), one product at a time, for
 * kernels in which a thread computes an element.
 *
 * For each suffix of SB_FLOAT_TYPES: sb_cuda_chain_<suffix> with _start, _push and _end, which gives
 * the sum in the type of computation. f16 and bf16 keep up to 16 pairs until a step takes them. */
#ifndef SB_CUDA_CONTRACTION_CHAINS_CUH
#define SB_CUDA_CONTRACTION_CHAINS_CUH

#include "cuda/common/kernel.cuh"
#include "numerics/chain.h"

#define SB_CUDA_CHAIN(suffix, type)                                                                                    \
    typedef struct sb_cuda_chain_##suffix {                                                                            \
        type sum;                                                                                                      \
    } sb_cuda_chain_##suffix;                                                                                          \
    SB_CUDA_FUNCTION void sb_cuda_chain_start_##suffix(sb_cuda_chain_##suffix *chain) {                                \
        chain->sum = 0;                                                                                                \
    }                                                                                                                  \
    SB_CUDA_FUNCTION void sb_cuda_chain_push_##suffix(sb_cuda_chain_##suffix *chain, type left, type right) {          \
        chain->sum = sb_fma_##suffix(left, right, chain->sum);                                                         \
    }                                                                                                                  \
    SB_CUDA_FUNCTION type sb_cuda_chain_end_##suffix(sb_cuda_chain_##suffix *chain) {                                  \
        return chain->sum;                                                                                             \
    }
SB_CUDA_CHAIN(f32, float)
SB_CUDA_CHAIN(f64, double)

#define SB_CUDA_CHAIN16(suffix)                                                                                        \
    typedef struct sb_cuda_chain_##suffix {                                                                            \
        uint16_t left[SB_CHAIN16_GROUP], right[SB_CHAIN16_GROUP];                                                      \
        int count;                                                                                                     \
        float sum;                                                                                                     \
    } sb_cuda_chain_##suffix;                                                                                          \
    SB_CUDA_FUNCTION void sb_cuda_chain_start_##suffix(sb_cuda_chain_##suffix *chain) {                                \
        chain->count = 0;                                                                                              \
        chain->sum = 0;                                                                                                \
    }                                                                                                                  \
    SB_CUDA_FUNCTION void sb_cuda_chain_push_##suffix(sb_cuda_chain_##suffix *chain, uint16_t left, uint16_t right) {  \
        chain->left[chain->count] = left;                                                                              \
        chain->right[chain->count] = right;                                                                            \
        if (++chain->count == SB_CHAIN16_GROUP) {                                                                      \
            chain->sum = sb_chain16_step_##suffix(chain->left, chain->right, chain->sum);                              \
            chain->count = 0;                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    SB_CUDA_FUNCTION float sb_cuda_chain_end_##suffix(sb_cuda_chain_##suffix *chain) {                                 \
        while (chain->count != 0)                                                                                      \
            sb_cuda_chain_push_##suffix(chain, 0, 0);                                                                  \
        return chain->sum;                                                                                             \
    }
SB_CUDA_CHAIN16(f16)
SB_CUDA_CHAIN16(bf16)

#endif
