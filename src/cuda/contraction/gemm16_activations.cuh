/* Activations of results in registers, several at a time. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_ACTIVATIONS_CUH
#define SB_CUDA_CONTRACTION_GEMM16_ACTIVATIONS_CUH

#include "cuda/common/halves.cuh"
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
    const float h = sb_gemm16_power_estimate(sb_silu_estimate_argument(x));
    return sb_silu_estimate(x, h, sb_gemm16_reciprocal_estimate(sb_silu_estimate_sum(h)));
}

/* Two numbers rounded to 16 bits, of which negative ones are +0. */
SB_CUDA_FUNCTION uint32_t sb_gemm16_round_magnitudes(int32_t dtype, float low, float high) {
#if defined(__CUDA_ARCH__)
    uint32_t pair;
    if (dtype == SB_BF16)
        asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    else
        asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
#else
    low = low < 0.0f ? 0.0f : low;
    high = high < 0.0f ? 0.0f : high;
    return dtype == SB_BF16 ? sb_round_pair_bf16(low, high) : sb_round_pair_f16(low, high);
#endif
}

/* `count` chains, an even number, as nodes of their own of `dtype`, C's, would give them on (sb_gemm_epilogue.rounds). */
SB_CUDA_FUNCTION void sb_gemm16_round_chains(const sb_gemm_epilogue *epilogue, int32_t dtype, int count,
                                             float *chains) {
    if (!epilogue->rounds)
        return;
    const bool is_bf16 = dtype == SB_BF16;
    SB_CUDA_UNROLL
    for (int i = 0; i < count; i += 2) {
        const uint32_t pair =
            is_bf16 ? sb_round_pair_bf16(chains[i], chains[i + 1]) : sb_round_pair_f16(chains[i], chains[i + 1]);
        if (is_bf16)
            sb_cuda_widen_pair<SB_CUDA_BF16>(pair, &chains[i], &chains[i + 1]);
        else
            sb_cuda_widen_pair<SB_CUDA_F16>(pair, &chains[i], &chains[i + 1]);
    }
}

/* The definition's SiLU, times its factor, of those of `count` numbers whose half word in `differs` is not zero: one by one, since
 * there are few. */
SB_CUDA_FUNCTION void sb_gemm16_silu_where(const uint32_t *differs, int count, const float *given, const float *factors,
                                           float *results) {
    uint32_t wanted = 0;
    SB_CUDA_UNROLL
    for (int i = 0; i < count; i++)
        wanted |= (differs[i / 2] >> i % 2 * 16 & 0xffffu) != 0 ? 1u << i : 0;
    SB_CUDA_KEEP_LOOP
    while (wanted != 0) {
        const uint32_t one = wanted & (0u - wanted);
        float x = given[0], factor = factors ? factors[0] : 1.0f;
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
        wanted ^= one;
    }
}

/* SiLU of `count` results, an even number up to 8, times factors if there are any: numbers that round to `dtype`, of 16 bits, as the
 * definition's do. Sixteen instructions each, where the definition takes some sixty. */
SB_CUDA_FUNCTION void sb_gemm16_silu_to_round(int32_t dtype, int count, float *results, const float *factors) {
    float given[8], bounds[8];
    uint32_t differs[4], any = 0;
    SB_CUDA_UNROLL
    for (int i = 0; i < count; i++) {
        given[i] = results[i];
        results[i] = sb_gemm16_silu_estimate(given[i]);
        if (factors)
            results[i] = results[i] * factors[i];
        bounds[i] = sb_silu_estimate_bound(given[i], results[i], factors ? factors[i] : 1.0f);
    }
    SB_CUDA_UNROLL
    for (int i = 0; i < count; i += 2) {
        const float low = __builtin_fabsf(results[i]), high = __builtin_fabsf(results[i + 1]);
        differs[i / 2] = sb_gemm16_round_magnitudes(dtype, low - bounds[i], high - bounds[i + 1]) ^
                         sb_gemm16_round_magnitudes(dtype, low + bounds[i], high + bounds[i + 1]);
        any |= differs[i / 2];
    }
    if (SB_CUDA_SELDOM(any != 0))
        sb_gemm16_silu_where(differs, count, given, factors, results);
}

#define SB_GEMM16_ACTIVATE(kind)                                                                                       \
    case kind:                                                                                                         \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < count; i++)                                                                                \
            results[i] = sb_gemm_activate(kind, results[i]);                                                           \
        break;
/* The epilogue's activation of `count` results, times factors if there are any (gates, by their values). */
SB_CUDA_FUNCTION void sb_gemm16_activate_exactly(const sb_gemm_epilogue *epilogue, int count, float *results,
                                                 const float *factors) {
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

/* The same. If nothing but C's rounding is behind that, results may be others that round to the same. */
SB_CUDA_FUNCTION void sb_gemm16_activate_results(const sb_gemm_epilogue *epilogue, int count, float *results,
                                                 const float *factors) {
    if (epilogue->activation == SB_ACTIVATION_SILU && epilogue->dtype != SB_F32 && !epilogue->residual.data)
        sb_gemm16_silu_to_round(epilogue->dtype, count, results, factors);
    else
        sb_gemm16_activate_exactly(epilogue, count, results, factors);
}
#endif

#endif
