/* Blocks of a launch that count themselves in a word of memory, so that the last one can go on with what all of them have written. */
#ifndef SB_CUDA_COMMON_ARRIVAL_CUH
#define SB_CUDA_COMMON_ARRIVAL_CUH

#include "cuda/common/kernel.cuh"

/* One thread of a block says that it has come, behind a barrier of the block: whether it is the last of `count`, which sets the word back
 * to 0. What the others had written before is seen by the last one behind another barrier. */
SB_CUDA_FUNCTION bool sb_cuda_arrives_last(uint32_t *word, uint32_t count) {
#if defined(__CUDA_ARCH__)
    uint32_t before;
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;" : "=r"(before) : "l"(word) : "memory");
    const bool is_last = before + 1 == count;
#else
    const bool is_last = ++*word == count;
#endif
    if (is_last)
        *word = 0;
    return is_last;
}

#endif
