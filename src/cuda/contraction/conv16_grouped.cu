/* Convolutions of f16 and bf16 in small groups of channels (conv16_grouped.cuh): depthwise ones of up to 12 kernel
 * positions, which are one step, and of any; groups of 4, of 8, and of 16 and its multiples. Compiled for 90a alone.
 * A module for each of bf16, f16. */
#include "cuda/contraction/conv16_grouped.cuh"

#define ALL(suffix, half)                                                                                              \
    GROUPED(sb_cuda_conv16_depthwise_few_##suffix, half, 1, true, 3)                                                   \
    GROUPED(sb_cuda_conv16_depthwise_##suffix, half, 1, false, 2)                                                      \
    GROUPED(sb_cuda_conv16_grouped_4_##suffix, half, 4, false, 3)                                                      \
    GROUPED(sb_cuda_conv16_grouped_8_##suffix, half, 8, false, 4)                                                      \
    GROUPED(sb_cuda_conv16_grouped_16_##suffix, half, 16, false, 4)

#if !defined(SB_MODULE_f16)
ALL(bf16, SB_CUDA_BF16)
#endif
#if !defined(SB_MODULE_bf16)
ALL(f16, SB_CUDA_F16)
#endif
