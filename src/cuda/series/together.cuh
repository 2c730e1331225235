/* Kernels whose blocks wait for each other, and what they wait by. On the host: tests/cuda/host_hopper.h. */
#ifndef SB_CUDA_SERIES_TOGETHER_CUH
#define SB_CUDA_SERIES_TOGETHER_CUH

#include "cuda/contraction/hopper.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
/* SB_HOPPER_KERNEL_TOGETHER(name, type, given, threads) { … }: one whose blocks wait for each other, so that all of a launch are there at
 * the same time: no more than there are multiprocessors, with nothing beside them. */
#define SB_HOPPER_KERNEL_TOGETHER(name, type, given, threads)                                                          \
    extern "C" __global__ void __launch_bounds__(threads, 1) name(const __grid_constant__ type given)

/* Bytes of shared memory. */
#define SB_HOPPER_SHARED(name, bytes) __shared__ __align__(64) unsigned char name[bytes]

/* ---- counters in memory, by which blocks of a launch wait for each other ---- */

/* Adds 1 behind all that the thread has written, or knows to be written. */
SB_CUDA_FUNCTION void sb_counter_add(uint32_t *counter) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
}

/* The same, and returns what was there. */
SB_CUDA_FUNCTION uint32_t sb_counter_count(uint32_t *counter) {
    uint32_t before;
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
    return before;
}

/* Until it is `count`: what was written before is seen then. */
SB_CUDA_FUNCTION void sb_counter_wait(const uint32_t *counter, uint32_t count) {
    uint32_t value;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
    } while (value < count);
}

/* What threads write to memory, and what the copy engine reads of it, on either side of a counter. */
SB_CUDA_FUNCTION void sb_memory_written(void) {
    asm volatile("fence.proxy.async.global;" ::: "memory");
}
#endif

#if SB_HOPPER
/* The descriptor of eight lines of k without a swizzle: pieces of 16 bytes, those of a line `leading` bytes apart. */
SB_CUDA_FUNCTION uint64_t sb_plain_descriptor(uint32_t shared, uint32_t leading) {
    return (uint64_t)((shared & 0x3ffffu) >> 4) | (uint64_t)(leading >> 4) << 16 | (uint64_t)(128 >> 4) << 32;
}
#endif

#endif
