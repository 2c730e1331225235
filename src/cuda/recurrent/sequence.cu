/* RNN, GRU and LSTM by blocks that are not in a cluster, on any device; of 16 bits on those whose tensor cores are not the contract's.
 *
 * A module for each of bf16, f16, f32, f64. */
#include "cuda/common/dynamic_shared.cuh"
#include "cuda/recurrent/sequence_chains.cuh"

#define KERNEL(dtype, suffix, PRODUCTS)                                                                                \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_sequence_##suffix, sb_cuda_sequence, p, THREADS, 1) {                         \
        SB_CUDA_DYNAMIC_SHARED(memory);                                                                                \
        run_sequence<SB_##dtype, 1, PRODUCTS>(p, memory);                                                              \
    }

#include "cuda/recurrent/sequence_modules.cuh"
