/* Element-wise programs of 16 bits without an interpreter: those of fixed_programs.h.
 * A module for each of bf16, f16. */
#include "cuda/elementwise/fixed.cuh"

#define KERNEL(name, suffix, HALF)                                                                                     \
    SB_CUDA_KERNEL_BOUNDED(sb_cuda_fixed_##name##_##suffix, sb_cuda_fixed, p, SB_CUDA_FIXED_THREADS, 3) {              \
        fixed_run<program_##name, HALF>(p);                                                                            \
    }
#define PROGRAM(name, inputs, count, ...)                                                                              \
    struct program_##name {                                                                                            \
        static constexpr sb_cuda_fixed_program program = {inputs, count, {__VA_ARGS__}};                               \
    };
#define KERNEL_F16(name, inputs, count, ...) KERNEL(name, f16, SB_CUDA_F16)
#define KERNEL_BF16(name, inputs, count, ...) KERNEL(name, bf16, SB_CUDA_BF16)

SB_CUDA_FIXED_PROGRAMS(PROGRAM)
/* The host has both modules in one. */
#if defined(SB_MODULE_f16) || !defined(__CUDACC__)
SB_CUDA_FIXED_PROGRAMS(KERNEL_F16)
#endif
#if defined(SB_MODULE_bf16) || !defined(__CUDACC__)
SB_CUDA_FIXED_PROGRAMS(KERNEL_BF16)
#endif
