/* How kernels are written.
 *
 *     SB_CUDA_KERNEL(sb_name, sb_struct_of_parameters, p) { … p->member … }
 *
 * makes a kernel that takes one struct by value, which is all that launching, recording and replaying it need to know.
 * SB_CUDA_BLOCK_KERNEL says besides that threads of a block depend on each other: that they meet at barriers, share
 * memory or exchange values.
 *
 * The body is the common part of C++17 and CUDA C++: tests compile the same sources with the host's compiler and hold
 * them to the CPU's loops without a GPU (tests/cuda/host_blocks.c). So there are no warp instructions outside of what
 * the headers of src/cuda name. Variants of a kernel are made of one template, always inlined (SB_CUDA_FUNCTION), with
 * constants as its arguments; the names that the host looks up are those of SB_CUDA_KERNEL.
 *
 * Device code is compiled for 9.0, and machine code for 8.0 is made of the same PTX: in assembly, a line that ends in "// 9.0" is left
 * out for 8.0, and what follows "// 8.0: " is for 8.0 alone (cmake/cuda.cmake).
 *
 * The parameters stay where the driver puts them (constant memory), and are never copied to a thread's own. */
#ifndef SB_CUDA_COMMON_KERNEL_CUH
#define SB_CUDA_COMMON_KERNEL_CUH

#include <stdint.h>

/* Dependent launch. Where the host asks for it, a kernel is launched once all blocks of the one ahead have
 * begun, and its own first instructions wait until that one has ended and its writes are seen, so that only the
 * way to the device is saved. Every kernel waits, whether it needs to or not: whoever waits for a kernel then
 * waits for all that came before it. */
#if defined(__CUDA_ARCH__)
#define SB_CUDA_DEPEND()                                                                                               \
    asm volatile("griddepcontrol.launch_dependents; // 9.0\n\tgriddepcontrol.wait; // 9.0" ::: "memory")
/* The two halves of it, for kernels that have something to do in between. */
#define SB_CUDA_LET_FOLLOW() asm volatile("griddepcontrol.launch_dependents; // 9.0" ::: "memory")
#define SB_CUDA_AWAIT() asm volatile("griddepcontrol.wait; // 9.0" ::: "memory")
#else
#define SB_CUDA_DEPEND() (void)0
#define SB_CUDA_LET_FOLLOW() (void)0
#define SB_CUDA_AWAIT() (void)0
#endif

/* A hint that a condition is true less often than not, so that what it guards may lie apart. */
#define SB_CUDA_SELDOM(condition) __builtin_expect((condition), 0)

#if defined(__CUDACC__)
#define SB_CUDA_KERNEL_THAT(name, type, parameters, bounds, begins)                                                    \
    static __device__ __forceinline__ void name##_body(const type *parameters);                                        \
    extern "C" __global__ void bounds name(const __grid_constant__ type given) {                                       \
        begins();                                                                                                      \
        name##_body(&given);                                                                                           \
    }                                                                                                                  \
    static __device__ __forceinline__ void name##_body(const type *parameters)
#define SB_CUDA_KERNEL(name, type, parameters) SB_CUDA_KERNEL_THAT(name, type, parameters, , SB_CUDA_DEPEND)
/* The same for blocks of at most `threads`, of which a multiprocessor shall take `blocks`: what a
 * kernel that waits for memory gives registers up for. */
#define SB_CUDA_KERNEL_BOUNDED(name, type, parameters, threads, blocks)                                                \
    SB_CUDA_KERNEL_THAT(name, type, parameters, __launch_bounds__(threads, blocks), SB_CUDA_DEPEND)
/* … which waits by itself: each thread has to, by SB_CUDA_AWAIT, ahead of its first access to memory. */
#define SB_CUDA_REHEARSED_KERNEL_BOUNDED(name, type, parameters, threads, blocks)                                      \
    SB_CUDA_KERNEL_THAT(name, type, parameters, __launch_bounds__(threads, blocks), SB_CUDA_LET_FOLLOW)
#define SB_CUDA_BLOCK_KERNEL(name, type, parameters) SB_CUDA_KERNEL(name, type, parameters)
#define SB_CUDA_BLOCK_KERNEL_BOUNDED(name, type, parameters, threads, blocks)                                          \
    SB_CUDA_KERNEL_BOUNDED(name, type, parameters, threads, blocks)
#define SB_CUDA_FUNCTION static __device__ __forceinline__
#define SB_CUDA_SHARED __shared__
#define SB_CUDA_BARRIER() __syncthreads()
#define SB_CUDA_KEEP_LOOP _Pragma("unroll 1")
#define SB_CUDA_UNROLL _Pragma("unroll")
#else
#define SB_CUDA_UNROLL
#define SB_CUDA_KERNEL_BOUNDED(name, type, parameters, threads, blocks) SB_CUDA_KERNEL(name, type, parameters)
#define SB_CUDA_REHEARSED_KERNEL_BOUNDED(name, type, parameters, threads, blocks) SB_CUDA_KERNEL(name, type, parameters)
#define SB_CUDA_BLOCK_KERNEL_BOUNDED(name, type, parameters, threads, blocks)                                          \
    SB_CUDA_BLOCK_KERNEL(name, type, parameters)
#endif

/* How many rows of an axis are used (sb_call_used): `extent` where there is no number. To be read in each launch, and
 * to be had before the loops that it ends. */
SB_CUDA_FUNCTION int64_t sb_cuda_used(const int64_t *used, int64_t extent) {
    if (used == NULL)
        return extent;
    const int64_t number = *used;
    return number < 0 ? 0 : number < extent ? number : extent;
}

/* Every thread takes elements a whole grid apart, so any grid covers any number of elements. */
#define SB_CUDA_EACH(index, count)                                                                                     \
    for (int64_t index = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; index < (count);                              \
         index += (int64_t)gridDim.x * blockDim.x)

/* The element `offset` bytes behind the first one of an operand. */
#define SB_CUDA_ELEMENT(type, first, offset) (*(type *)(void *)((first) + (offset)))
#define SB_CUDA_CONST_ELEMENT(type, first, offset) (*(const type *)(const void *)((first) + (offset)))

#endif
