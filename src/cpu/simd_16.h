/* Vectors of floats from elements of 16 bits, which f32 holds exactly. */
#ifndef SB_CPU_SIMD_16_H
#define SB_CPU_SIMD_16_H

#include "cpu/simd.h"
#include "numerics/convert.h"

#if defined(SB_ISA_avx512)
SB_VF_INLINE vf vf_load_f16(const uint16_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
SB_VF_INLINE vf vf_load_bf16(const uint16_t *p) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
#elif defined(SB_ISA_avx2)
SB_VF_INLINE vf vf_load_f16(const uint16_t *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
SB_VF_INLINE vf vf_load_bf16(const uint16_t *p) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
#else
SB_VF_INLINE vf vf_load_f16(const uint16_t *p) {
    float lanes[SB_VF_LANES];
    for (int i = 0; i < SB_VF_LANES; i++)
        lanes[i] = sb_f16_to_f32(p[i]);
    return vf_load(lanes);
}
SB_VF_INLINE vf vf_load_bf16(const uint16_t *p) {
    float lanes[SB_VF_LANES];
    for (int i = 0; i < SB_VF_LANES; i++)
        lanes[i] = sb_bf16_to_f32(p[i]);
    return vf_load(lanes);
}
#endif

/* The first `count` lanes (1 to SB_VF_LANES); lanes past them read as +0 and touch no memory. `dtype`, f16 or bf16, is a constant. */
SB_VF_INLINE vf vf_load_first_16(sb_dtype dtype, const uint16_t *p, int count) {
    uint16_t lanes[SB_VF_LANES] = {0};
#if defined(SB_ISA_avx512)
    const __m256i first = _mm256_maskz_loadu_epi16((__mmask16)((1u << count) - 1), p);
    _mm256_storeu_si256((__m256i *)(void *)lanes, first);
#else
    memcpy(lanes, p, (size_t)count * sizeof *lanes);
#endif
    return dtype == SB_F16 ? vf_load_f16(lanes) : vf_load_bf16(lanes);
}

/* Element `index` and those behind it of f32, f16 or bf16, `count` of them, as above. `dtype` is a constant. */
SB_VF_INLINE vf vf_load_as(sb_dtype dtype, const void *data, int64_t index, int count) {
    if (dtype == SB_F32) {
        const float *from = (const float *)data + index;
        return count == SB_VF_LANES ? vf_load(from) : vf_load_first(from, count);
    }
    const uint16_t *from = (const uint16_t *)data + index;
    if (count != SB_VF_LANES)
        return vf_load_first_16(dtype, from, count);
    return dtype == SB_F16 ? vf_load_f16(from) : vf_load_bf16(from);
}

#endif
