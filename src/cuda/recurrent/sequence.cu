/* RNN, GRU and LSTM by blocks that are not in a cluster, on any device; of 16 bits on those whose tensor cores are not the contract's.
 *
 * A module for each of bf16, f16, f32, f64. */
#include "cuda/recurrent/sequence_chains.cuh"

/* The shared memory that the launch asks for. */
#if defined(__CUDACC__)
#define DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#else
#define DYNAMIC_SHARED(name) unsigned char *const name = host_dynamic_shared_memory()
#endif

#define KERNEL(dtype, suffix, PRODUCTS)                                                                                \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_sequence_##suffix, sb_cuda_sequence, p, THREADS, 1) {                         \
        DYNAMIC_SHARED(memory);                                                                                        \
        run_sequence<SB_##dtype, 1, PRODUCTS>(p, memory);                                                              \
    }

#include "cuda/recurrent/sequence_modules.cuh"
