/* RNN, GRU and LSTM by clusters of blocks, and of 16 bits by single ones too: there chains are those of Hopper's tensor cores.
 *
 * Compiled for 90a alone. A module for each of bf16, f16, f32, f64. */
#define SEQUENCE_CLUSTERS
#include "cuda/recurrent/sequence_chains.cuh"
#include "cuda/recurrent/sequence_groups.cuh"

#define KERNEL(dtype, suffix, PRODUCTS, cluster)                                                                       \
    SB_HOPPER_KERNEL(sb_cuda_sequence_cluster_##cluster##_##suffix, sb_cuda_sequence, given, cluster, THREADS) {       \
        SB_CUDA_DYNAMIC_SHARED(memory);                                                                                \
        SB_CUDA_DEPEND();                                                                                              \
        run_sequence<SB_##dtype, cluster, PRODUCTS>(&given, memory);                                                   \
    }
#define CLUSTERS(dtype, suffix, PRODUCTS)                                                                              \
    KERNEL(dtype, suffix, PRODUCTS, 2)                                                                                 \
    KERNEL(dtype, suffix, PRODUCTS, 4)                                                                                 \
    KERNEL(dtype, suffix, PRODUCTS, 8)

/* The host has all modules in one. */
#if defined(SB_MODULE_f16) || !defined(__CUDACC__)
KERNEL(F16, f16, sequence_groups<SB_CUDA_F16>, 1)
CLUSTERS(F16, f16, sequence_groups<SB_CUDA_F16>)
#endif
#if defined(SB_MODULE_bf16) || !defined(__CUDACC__)
KERNEL(BF16, bf16, sequence_groups<SB_CUDA_BF16>, 1)
CLUSTERS(BF16, bf16, sequence_groups<SB_CUDA_BF16>)
#endif
#if defined(SB_MODULE_f32) || !defined(__CUDACC__)
CLUSTERS(F32, f32, sequence_chains<float>)
#endif
#if defined(SB_MODULE_f64) || !defined(__CUDACC__)
CLUSTERS(F64, f64, sequence_chains<double>)
#endif
