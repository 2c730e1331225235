/* Values between steps of 16 bits: rounded as numerics/convert.h does, but that any NaN may stay what it is. */
#ifndef SB_CUDA_COMMON_ROUNDING_CUH
#define SB_CUDA_COMMON_ROUNDING_CUH

#include "cuda/common/kernel.cuh"
#include "numerics/convert.h"

#if defined(__CUDA_ARCH__)
SB_CUDA_FUNCTION float sb_cuda_rounded_f16(float value) {
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
}

SB_CUDA_FUNCTION float sb_cuda_rounded_bf16(float value) {
    uint16_t brain;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(brain) : "f"(value));
    return sb_bits_to_f32((uint32_t)brain << 16);
}
#else
SB_CUDA_FUNCTION float sb_cuda_rounded_f16(float value) {
    return sb_f16_to_f32(sb_f16_from_f32(value));
}

SB_CUDA_FUNCTION float sb_cuda_rounded_bf16(float value) {
    return sb_bf16_to_f32(sb_bf16_from_f32(value));
}
#endif

#endif
