/* Chains of products as operators are defined by them (ops/contraction.h), one product at a time, for
 * kernels in which a thread computes an element.
 *
 * For each suffix of IV_FLOAT_TYPES: iv_cuda_chain_<suffix> with _start, _push and _end, which gives
 * the sum in the type of computation. f16 and bf16 keep up to 16 pairs until a step takes them. */
#ifndef IV_CUDA_KERNELS_CHAINS_CUH
#define IV_CUDA_KERNELS_CHAINS_CUH

#include "cuda/kernels/kernel.cuh"
#include "numerics/chain.h"

#define IV_CUDA_CHAIN(suffix, type)                                                                \
    typedef struct iv_cuda_chain_##suffix {                                                        \
        type sum;                                                                                  \
    } iv_cuda_chain_##suffix;                                                                      \
    IV_CUDA_FUNCTION void iv_cuda_chain_start_##suffix(iv_cuda_chain_##suffix *chain) {            \
        chain->sum = 0;                                                                            \
    }                                                                                              \
    IV_CUDA_FUNCTION void iv_cuda_chain_push_##suffix(iv_cuda_chain_##suffix *chain, type left,    \
                                                      type right) {                                \
        chain->sum = iv_fma_##suffix(left, right, chain->sum);                                     \
    }                                                                                              \
    IV_CUDA_FUNCTION type iv_cuda_chain_end_##suffix(iv_cuda_chain_##suffix *chain) {              \
        return chain->sum;                                                                         \
    }
IV_CUDA_CHAIN(f32, float)
IV_CUDA_CHAIN(f64, double)

#define IV_CUDA_CHAIN16(suffix)                                                                    \
    typedef struct iv_cuda_chain_##suffix {                                                        \
        uint16_t left[IV_CHAIN16_GROUP], right[IV_CHAIN16_GROUP];                                  \
        int count;                                                                                 \
        float sum;                                                                                 \
    } iv_cuda_chain_##suffix;                                                                      \
    IV_CUDA_FUNCTION void iv_cuda_chain_start_##suffix(iv_cuda_chain_##suffix *chain) {            \
        chain->count = 0;                                                                          \
        chain->sum = 0;                                                                            \
    }                                                                                              \
    IV_CUDA_FUNCTION void iv_cuda_chain_push_##suffix(iv_cuda_chain_##suffix *chain,               \
                                                      uint16_t left, uint16_t right) {             \
        chain->left[chain->count] = left;                                                          \
        chain->right[chain->count] = right;                                                        \
        if (++chain->count == IV_CHAIN16_GROUP) {                                                  \
            chain->sum = iv_chain16_step_##suffix(chain->left, chain->right, chain->sum);          \
            chain->count = 0;                                                                      \
        }                                                                                          \
    }                                                                                              \
    IV_CUDA_FUNCTION float iv_cuda_chain_end_##suffix(iv_cuda_chain_##suffix *chain) {             \
        while (chain->count != 0)                                                                  \
            iv_cuda_chain_push_##suffix(chain, 0, 0);                                              \
        return chain->sum;                                                                         \
    }
IV_CUDA_CHAIN16(f16)
IV_CUDA_CHAIN16(bf16)

#endif
