/* RNN, GRU and LSTM of so many hidden units that shared memory has no room for the R of one: blocks have memory of the device in its place.
 *
 * A module for each of bf16, f16, f32, f64. */
#define SEQUENCE_IN_MEMORY
#include "cuda/recurrent/sequence_chains.cuh"

#define KERNEL(dtype, suffix, PRODUCTS)                                                                                \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_sequence_in_memory_##suffix, sb_cuda_sequence, p, THREADS, 1) {               \
        run_sequence<SB_##dtype, 1, PRODUCTS>(p, (unsigned char *)p->memory + blockIdx.x * p->at.bytes);               \
    }

#include "cuda/recurrent/sequence_modules.cuh"
