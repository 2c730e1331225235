/* Activations of results in registers, several at a time. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_ACTIVATIONS_CUH
#define SB_CUDA_CONTRACTION_GEMM16_ACTIVATIONS_CUH

#include "cuda/contraction/gemm16_hopper_tile.cuh"
#include "numerics/silu_estimate.h"

#if SB_HOPPER
/* 2^x and 1 / x, as near as silu_estimate.h asks for. */
SB_CUDA_FUNCTION float sb_gemm16_power_estimate(float x) {
#if defined(__CUDA_ARCH__)
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return sb_exp2_f32(x);
#endif
}

SB_CUDA_FUNCTION float sb_gemm16_reciprocal_estimate(float x) {
#if defined(__CUDA_ARCH__)
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return 1.0f / x;
#endif
}

SB_CUDA_FUNCTION float sb_gemm16_silu_estimate(float x) {
    const float power = sb_gemm16_power_estimate(sb_silu_estimate_exponent(x));
    return x * sb_gemm16_reciprocal_estimate(sb_silu_estimate_sum(power));
}

SB_CUDA_FUNCTION uint32_t sb_gemm16_round_pair(int32_t dtype, float low, float high) {
    return dtype == SB_BF16 ? sb_round_pair_bf16(low, high) : sb_round_pair_f16(low, high);
}

/* SiLU of `count` results, an even number up to 8, times factors if there are any: numbers that round to `dtype`, of 16 bits, as the
 * definition's do. Those of which the estimate does not say that are evaluated one by one: of bf16 one in some 500. */
SB_CUDA_FUNCTION void sb_gemm16_silu_to_round(int32_t dtype, int count, float *results, const float *factors) {
    float given[8];
    uint32_t unsure = 0;
    SB_CUDA_UNROLL
    for (int i = 0; i < count; i += 2) {
        SB_CUDA_UNROLL
        for (int j = i; j < i + 2; j++) {
            given[j] = results[j];
            results[j] = sb_gemm16_silu_estimate(given[j]);
            if (factors)
                results[j] = results[j] * factors[j];
        }
        const uint32_t differs = sb_gemm16_round_pair(dtype, results[i] * SB_SILU_ESTIMATE_LOWER,
                                                      results[i + 1] * SB_SILU_ESTIMATE_LOWER) ^
                                 sb_gemm16_round_pair(dtype, results[i] * SB_SILU_ESTIMATE_UPPER,
                                                      results[i + 1] * SB_SILU_ESTIMATE_UPPER);
        if ((differs & 0xffffu) != 0 || !sb_silu_can_be_estimated(given[i]))
            unsure |= 1u << i;
        if (differs >> 16 != 0 || !sb_silu_can_be_estimated(given[i + 1]))
            unsure |= 2u << i;
    }
    SB_CUDA_KEEP_LOOP
    while (unsure != 0) {
        const uint32_t one = unsure & (0u - unsure);
        float x = given[0], factor = factors ? factors[0] : 0.0f;
        SB_CUDA_UNROLL
        for (int i = 1; i < count; i++) {
            x = one == 1u << i ? given[i] : x;
            if (factors)
                factor = one == 1u << i ? factors[i] : factor;
        }
        float y = sb_gemm_activate(SB_ACTIVATION_SILU, x);
        if (factors)
            y = y * factor;
        SB_CUDA_UNROLL
        for (int i = 0; i < count; i++)
            results[i] = one == 1u << i ? y : results[i];
        unsure ^= one;
    }
}

#define SB_GEMM16_ACTIVATE(kind)                                                                                       \
    case kind:                                                                                                         \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < count; i++)                                                                                \
            results[i] = sb_gemm_activate(kind, results[i]);                                                           \
        break;
/* The epilogue's activation of `count` results, times factors if there are any (gates, by their values). If nothing but C's
 * rounding is behind that, results may be others that round to the same. */
SB_CUDA_FUNCTION void sb_gemm16_activate_results(const sb_gemm_epilogue *epilogue, int count, float *results,
                                                 const float *factors) {
    if (epilogue->activation == SB_ACTIVATION_SILU && epilogue->dtype != SB_F32 && !epilogue->residual.data) {
        sb_gemm16_silu_to_round(epilogue->dtype, count, results, factors);
        return;
    }
    switch (epilogue->activation) {
        SB_GEMM16_ACTIVATE(SB_ACTIVATION_RELU)
        SB_GEMM16_ACTIVATE(SB_ACTIVATION_SILU)
        SB_GEMM16_ACTIVATE(SB_ACTIVATION_GELU)
        SB_GEMM16_ACTIVATE(SB_ACTIVATION_GELU_TANH)
    }
    if (factors) {
        SB_CUDA_UNROLL
        for (int i = 0; i < count; i++)
            results[i] = results[i] * factors[i];
    }
}
#undef SB_GEMM16_ACTIVATE
#endif

#endif
