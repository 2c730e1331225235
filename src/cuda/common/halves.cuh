/* Eight neighbours of f16 or bf16 in one access of 16 bytes, and pairs of them as f32 and back.
 *
 * HALF says which: SB_CUDA_F16 or SB_CUDA_BF16. The bits are those of numerics/convert.h, but that a NaN keeps any payload
 * until sb_cuda_canonical_pair: for what is computed with, which one it is does not matter. */
#ifndef SB_CUDA_COMMON_HALVES_CUH
#define SB_CUDA_COMMON_HALVES_CUH

#include "cuda/common/words.cuh"
#include "numerics/convert.h"

enum { SB_CUDA_F16, SB_CUDA_BF16 };

/* Elements of 16 bytes, in pairs: the even one in the low half of a word. */
#define SB_CUDA_EIGHT 8
typedef struct sb_cuda_eight {
    uint32_t pairs[SB_CUDA_EIGHT / 2];
} sb_cuda_eight;

SB_CUDA_FUNCTION sb_cuda_eight sb_cuda_load_eight(const char *at) {
    sb_cuda_words4 words = *(const sb_cuda_words4 *)(const void *)at;
    sb_cuda_eight eight = {{words.x, words.y, words.z, words.w}};
    return eight;
}

SB_CUDA_FUNCTION void sb_cuda_store_eight(char *at, sb_cuda_eight eight) {
    sb_cuda_words4 words = {eight.pairs[0], eight.pairs[1], eight.pairs[2], eight.pairs[3]};
    *(sb_cuda_words4 *)(void *)at = words;
}

/* Element j, and one element eight times. */
SB_CUDA_FUNCTION uint16_t sb_cuda_of_eight(sb_cuda_eight eight, int j) {
    return (uint16_t)(eight.pairs[j / 2] >> 16 * (j % 2));
}

SB_CUDA_FUNCTION sb_cuda_eight sb_cuda_eight_times(uint16_t half) {
    uint32_t pair = half * UINT32_C(0x10001);
    sb_cuda_eight eight = {{pair, pair, pair, pair}};
    return eight;
}

template <int HALF> SB_CUDA_FUNCTION void sb_cuda_widen_pair(uint32_t pair, float *low, float *high) {
#if defined(__CUDA_ARCH__)
    if (HALF == SB_CUDA_F16) {
        asm("{\n\t.reg .b16 l, h;\n\tmov.b32 {l, h}, %2;\n\tcvt.f32.f16 %0, l;\n\tcvt.f32.f16 %1, h;\n\t}"
            : "=f"(*low), "=f"(*high)
            : "r"(pair));
        return;
    }
#else
    if (HALF == SB_CUDA_F16) {
        *low = sb_f16_to_f32((uint16_t)pair);
        *high = sb_f16_to_f32((uint16_t)(pair >> 16));
        return;
    }
#endif
    *low = sb_bits_to_f32(pair << 16);
    *high = sb_bits_to_f32(pair & 0xffff0000u);
}

template <int HALF> SB_CUDA_FUNCTION uint32_t sb_cuda_round_pair(float low, float high) {
#if defined(__CUDA_ARCH__)
    uint32_t pair;
    if (HALF == SB_CUDA_F16)
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    else
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
#else
    /* Another NaN than the contract's, as on a device. */
    uint32_t first = low == low ? HALF == SB_CUDA_F16 ? sb_f16_from_f32(low) : sb_bf16_from_f32(low) : 0x7fff;
    uint32_t second = high == high ? HALF == SB_CUDA_F16 ? sb_f16_from_f32(high) : sb_bf16_from_f32(high) : 0x7fff;
    return first | second << 16;
#endif
}

/* Makes NaNs of a pair that sb_cuda_round_pair gave those of the contract: its own are 0x7fff. */
template <int HALF> SB_CUDA_FUNCTION uint32_t sb_cuda_canonical_pair(uint32_t pair) {
    const uint32_t nan = HALF == SB_CUDA_F16 ? 0x7e007e00u : 0x7fc07fc0u;
#if defined(__CUDA_ARCH__)
    uint32_t mask;
    if (HALF == SB_CUDA_F16)
        asm("set.nan.u32.f16x2 %0, %1, %1;" : "=r"(mask) : "r"(pair));
    else
        /* 8.0 has no such comparison: what is no NaN becomes a zero, and the NaN 0x7fff is one of f16 too. */
        asm("set.nan.u32.bf16x2 %0, %1, %1; // 9.0\n\t"
            "// 8.0: {.reg .b32 zero; mov.b32 zero, 0; max.NaN.bf16x2 %0, %1, zero; min.NaN.bf16x2 %0, %0, zero; "
            "set.nan.u32.f16x2 %0, %0, %0;}"
            : "=r"(mask)
            : "r"(pair));
    return (pair & ~mask) | (nan & mask);
#else
    uint32_t low = (pair & 0xffffu) == 0x7fffu ? nan & 0xffffu : pair & 0xffffu;
    uint32_t high = pair >> 16 == 0x7fffu ? nan & 0xffff0000u : pair & 0xffff0000u;
    return low | high;
#endif
}

template <int HALF> SB_CUDA_FUNCTION void sb_cuda_widen_eight(sb_cuda_eight eight, float *values) {
    SB_CUDA_UNROLL
    for (int pair = 0; pair < SB_CUDA_EIGHT / 2; pair++)
        sb_cuda_widen_pair<HALF>(eight.pairs[pair], &values[2 * pair], &values[2 * pair + 1]);
}

/* Eight values, each rounded once, as they are stored. */
template <int HALF> SB_CUDA_FUNCTION sb_cuda_eight sb_cuda_round_eight(const float *values) {
    sb_cuda_eight eight;
    SB_CUDA_UNROLL
    for (int pair = 0; pair < SB_CUDA_EIGHT / 2; pair++)
        eight.pairs[pair] =
            sb_cuda_canonical_pair<HALF>(sb_cuda_round_pair<HALF>(values[2 * pair], values[2 * pair + 1]));
    return eight;
}

#endif
