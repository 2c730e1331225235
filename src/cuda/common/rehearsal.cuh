/* Rehearsals. The first time that a kernel goes through an interpreter its instructions and constants come from far away, one line after the
 * other: a body of a few steps over a few thousand elements added 4 to 5 us to a network where a sum by itself adds 1 (H200). So where
 * a kernel is launched while the one ahead still runs (kernel.cuh), one warp of each block goes through the program once before it
 * waits: without touching memory that others write, and without a result. */
#ifndef SB_CUDA_COMMON_REHEARSAL_CUH
#define SB_CUDA_COMMON_REHEARSAL_CUH

#include "cuda/common/kernel.cuh"

/* Whether the thread rehearses; else it has waited. Blocks behind those that begin at once find everything near. */
#if defined(__CUDA_ARCH__)
#define SB_CUDA_REHEARSAL_BLOCKS 264
SB_CUDA_FUNCTION bool sb_cuda_rehearses(void) {
    const bool rehearses = threadIdx.x < 32 && blockIdx.x < SB_CUDA_REHEARSAL_BLOCKS;
    if (!rehearses)
        SB_CUDA_AWAIT();
    return rehearses;
}

/* What has been rehearsed counts as used. Then the thread waits. */
template <int WIDTH> SB_CUDA_FUNCTION void sb_cuda_end_rehearsal(const float *values) {
    SB_CUDA_UNROLL
    for (int j = 0; j < WIDTH; j++)
        asm volatile("" ::"f"(values[j]));
    SB_CUDA_AWAIT();
}

/* What is read in place of an operand, 16 bytes at a time. */
static __device__ const uint64_t sb_cuda_rehearsed_operand[2] __attribute__((aligned(16))) = {0, 0};
#else
SB_CUDA_FUNCTION bool sb_cuda_rehearses(void) {
    return false;
}

template <int WIDTH> SB_CUDA_FUNCTION void sb_cuda_end_rehearsal(const float *values) {
    (void)values;
}

static const uint64_t sb_cuda_rehearsed_operand[2] = {0, 0};
#endif

#endif
