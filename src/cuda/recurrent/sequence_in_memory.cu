/* RNN, GRU and LSTM of so many hidden units that shared memory has no room for the R of one: blocks have memory of the device in its place.
 *
 * A module for each of bf16, f16, f32, f64. */
#define SEQUENCE_IN_MEMORY
#include "cuda/recurrent/sequence_chains.cuh"

#define KERNEL(dtype, suffix, PRODUCTS)                                                                                \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_sequence_in_memory_##suffix, sb_cuda_sequence, p, THREADS, 1) {               \
        run_sequence<SB_##dtype, 1, PRODUCTS>(p, (unsigned char *)p->memory + blockIdx.x * p->at.bytes);               \
    }

/* The host has all modules in one. */
#if defined(SB_MODULE_f16) || !defined(__CUDACC__)
KERNEL(F16, f16, sequence_chains16<SB_F16>)
#endif
#if defined(SB_MODULE_bf16) || !defined(__CUDACC__)
KERNEL(BF16, bf16, sequence_chains16<SB_BF16>)
#endif
#if defined(SB_MODULE_f32) || !defined(__CUDACC__)
KERNEL(F32, f32, sequence_chains<float>)
#endif
#if defined(SB_MODULE_f64) || !defined(__CUDACC__)
KERNEL(F64, f64, sequence_chains<double>)
#endif
