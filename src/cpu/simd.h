/* A vector of floats, as wide as the instruction set that this file is compiled for.
 *
 * Kernels are written once over `vf` and compiled once per instruction set (sources that end in
 * _isa.c). Every function is one rounding per lane at most and the same bits in every lane and for
 * every width, so a kernel's result cannot depend on which width it was compiled for: lanes never
 * mix, but in vf_fold_add and vf_fold_max, whose results say how. The scalar form has one lane; it is
 * what a machine without known vector units runs.
 *
 * SB_VF_LANES     floats in a vf
 * SB_VF_REGISTERS architectural vector registers, from which kernels choose their tile */
#ifndef SB_CPU_SIMD_H
#define SB_CPU_SIMD_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "numerics/minmax.h"

#define SB_VF_INLINE static inline __attribute__((always_inline, unused))

/* Values only live in registers when every loop over them disappears. */
#if defined(__clang__)
#define SB_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SB_UNROLL _Pragma("GCC unroll 32")
#endif

#if defined(SB_ISA_avx512)
#include <immintrin.h>

#define SB_VF_LANES 16
#define SB_VF_REGISTERS 32
typedef __m512 vf;

SB_VF_INLINE vf vf_zero(void) {
    return _mm512_setzero_ps();
}
SB_VF_INLINE vf vf_set(float x) {
    return _mm512_set1_ps(x);
}
SB_VF_INLINE vf vf_load(const float *p) {
    return _mm512_loadu_ps(p);
}
SB_VF_INLINE void vf_store(float *p, vf v) {
    _mm512_storeu_ps(p, v);
}
/* The first `count` lanes (0 to SB_VF_LANES); lanes past them read as +0 and touch no memory. */
SB_VF_INLINE vf vf_load_first(const float *p, int64_t count) {
    return _mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), p);
}
/* Lanes past them read as those of `others`. */
SB_VF_INLINE vf vf_load_first_or(const float *p, int64_t count, vf others) {
    return _mm512_mask_loadu_ps(others, (__mmask16)((1u << count) - 1), p);
}
SB_VF_INLINE void vf_store_first(float *p, vf v, int64_t count) {
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << count) - 1), v);
}
/* a * b + c, rounded once. */
SB_VF_INLINE vf vf_fma(vf a, vf b, vf c) {
    return _mm512_fmadd_ps(a, b, c);
}
SB_VF_INLINE vf vf_add(vf a, vf b) {
    return _mm512_add_ps(a, b);
}
SB_VF_INLINE vf vf_mul(vf a, vf b) {
    return _mm512_mul_ps(a, b);
}
SB_VF_INLINE vf vf_div(vf a, vf b) {
    return _mm512_div_ps(a, b);
}
SB_VF_INLINE vf vf_abs(vf x) {
    return _mm512_abs_ps(x);
}
/* x < least ? least : x. The instruction returns its second operand where the two are equal (zeros of
 * either sign) or unordered (NaN), just as the comparison does. */
SB_VF_INLINE vf vf_at_least(vf least, vf x) {
    return _mm512_max_ps(least, x);
}
/* x > most ? most : x */
SB_VF_INLINE vf vf_at_most(vf most, vf x) {
    return _mm512_min_ps(most, x);
}
/* The maximum in two parts, for many operands: the larger of two, +0 > -0, with anything where one of them is NaN; in which
 * lanes one of two is NaN; both of such sets; and NaN in the lanes of a set. */
typedef __mmask16 vf_lanes;
SB_VF_INLINE vf vf_larger(vf a, vf b) {
    return _mm512_range_ps(a, b, 5);
}
SB_VF_INLINE vf_lanes vf_nans_of(vf a, vf b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
}
SB_VF_INLINE vf_lanes vf_lanes_or(vf_lanes a, vf_lanes b) {
    return _kor_mask16(a, b);
}
SB_VF_INLINE vf vf_with_nans(vf v, vf_lanes nans) {
    return _mm512_mask_mov_ps(v, nans, _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000)));
}
/* Lanes by which a vector is turned by 8, 4, 2 and 1: its other half, and the halves of halves. */
SB_VF_INLINE vf vf_turned(vf v, int lanes) {
    return lanes == 8   ? _mm512_shuffle_f32x4(v, v, 0x4e)
           : lanes == 4 ? _mm512_shuffle_f32x4(v, v, 0xb1)
           : lanes == 2 ? _mm512_permute_ps(v, 0x4e)
                        : _mm512_permute_ps(v, 0xb1);
}
SB_VF_INLINE float vf_lowest(vf v) {
    return _mm512_cvtss_f32(v);
}

#elif defined(SB_ISA_avx2)
#include <immintrin.h>

#define SB_VF_LANES 8
#define SB_VF_REGISTERS 16
typedef __m256 vf;

SB_VF_INLINE vf vf_zero(void) {
    return _mm256_setzero_ps();
}
SB_VF_INLINE vf vf_set(float x) {
    return _mm256_set1_ps(x);
}
SB_VF_INLINE vf vf_load(const float *p) {
    return _mm256_loadu_ps(p);
}
SB_VF_INLINE void vf_store(float *p, vf v) {
    _mm256_storeu_ps(p, v);
}
SB_VF_INLINE __m256i vf_first_mask(int64_t count) {
    static const int32_t ones_then_zeros[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(const void *)(ones_then_zeros + 8 - count));
}
SB_VF_INLINE vf vf_load_first(const float *p, int64_t count) {
    return _mm256_maskload_ps(p, vf_first_mask(count));
}
SB_VF_INLINE vf vf_load_first_or(const float *p, int64_t count, vf others) {
    __m256i mask = vf_first_mask(count);
    return _mm256_blendv_ps(others, _mm256_maskload_ps(p, mask), _mm256_castsi256_ps(mask));
}
SB_VF_INLINE void vf_store_first(float *p, vf v, int64_t count) {
    _mm256_maskstore_ps(p, vf_first_mask(count), v);
}
SB_VF_INLINE vf vf_fma(vf a, vf b, vf c) {
    return _mm256_fmadd_ps(a, b, c);
}
SB_VF_INLINE vf vf_add(vf a, vf b) {
    return _mm256_add_ps(a, b);
}
SB_VF_INLINE vf vf_mul(vf a, vf b) {
    return _mm256_mul_ps(a, b);
}
SB_VF_INLINE vf vf_div(vf a, vf b) {
    return _mm256_div_ps(a, b);
}
SB_VF_INLINE vf vf_abs(vf x) {
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}
SB_VF_INLINE vf vf_at_least(vf least, vf x) {
    return _mm256_max_ps(least, x);
}
SB_VF_INLINE vf vf_at_most(vf most, vf x) {
    return _mm256_min_ps(most, x);
}
/* Of equal operands the instruction returns the second, so `and` makes zeros of both signs +0. */
typedef __m256 vf_lanes;
SB_VF_INLINE vf vf_larger(vf a, vf b) {
    return _mm256_and_ps(_mm256_max_ps(a, b), _mm256_max_ps(b, a));
}
SB_VF_INLINE vf_lanes vf_nans_of(vf a, vf b) {
    return _mm256_cmp_ps(a, b, _CMP_UNORD_Q);
}
SB_VF_INLINE vf_lanes vf_lanes_or(vf_lanes a, vf_lanes b) {
    return _mm256_or_ps(a, b);
}
SB_VF_INLINE vf vf_with_nans(vf v, vf_lanes nans) {
    return _mm256_or_ps(v, nans);
}
SB_VF_INLINE vf vf_turned(vf v, int lanes) {
    return lanes == 4   ? _mm256_permute2f128_ps(v, v, 1)
           : lanes == 2 ? _mm256_permute_ps(v, 0x4e)
                        : _mm256_permute_ps(v, 0xb1);
}
SB_VF_INLINE float vf_lowest(vf v) {
    return _mm256_cvtss_f32(v);
}

#elif defined(__aarch64__)
#include <arm_neon.h>

#define SB_VF_LANES 4
#define SB_VF_REGISTERS 32
typedef float32x4_t vf;

SB_VF_INLINE vf vf_zero(void) {
    return vdupq_n_f32(0.0f);
}
SB_VF_INLINE vf vf_set(float x) {
    return vdupq_n_f32(x);
}
SB_VF_INLINE vf vf_load(const float *p) {
    return vld1q_f32(p);
}
SB_VF_INLINE void vf_store(float *p, vf v) {
    vst1q_f32(p, v);
}
SB_VF_INLINE vf vf_load_first(const float *p, int64_t count) {
    float lanes[SB_VF_LANES] = {0};
    memcpy(lanes, p, (size_t)count * sizeof *p);
    return vld1q_f32(lanes);
}
SB_VF_INLINE vf vf_load_first_or(const float *p, int64_t count, vf others) {
    float lanes[SB_VF_LANES];
    vst1q_f32(lanes, others);
    memcpy(lanes, p, (size_t)count * sizeof *p);
    return vld1q_f32(lanes);
}
SB_VF_INLINE void vf_store_first(float *p, vf v, int64_t count) {
    float lanes[SB_VF_LANES];
    vst1q_f32(lanes, v);
    memcpy(p, lanes, (size_t)count * sizeof *p);
}
SB_VF_INLINE vf vf_fma(vf a, vf b, vf c) {
    return vfmaq_f32(c, a, b);
}
SB_VF_INLINE vf vf_add(vf a, vf b) {
    return vaddq_f32(a, b);
}
SB_VF_INLINE vf vf_mul(vf a, vf b) {
    return vmulq_f32(a, b);
}
SB_VF_INLINE vf vf_div(vf a, vf b) {
    return vdivq_f32(a, b);
}
SB_VF_INLINE vf vf_abs(vf x) {
    return vabsq_f32(x);
}
SB_VF_INLINE vf vf_at_least(vf least, vf x) {
    return vbslq_f32(vcltq_f32(x, least), least, x);
}
SB_VF_INLINE vf vf_at_most(vf most, vf x) {
    return vbslq_f32(vcgtq_f32(x, most), most, x);
}
/* The instruction orders zeros and lets NaN win as the contract does. */
typedef int vf_lanes;
SB_VF_INLINE vf vf_larger(vf a, vf b) {
    return vmaxq_f32(a, b);
}
SB_VF_INLINE vf_lanes vf_nans_of(vf a, vf b) {
    return 0;
}
SB_VF_INLINE vf_lanes vf_lanes_or(vf_lanes a, vf_lanes b) {
    return 0;
}
SB_VF_INLINE vf vf_with_nans(vf v, vf_lanes nans) {
    return v;
}
SB_VF_INLINE vf vf_turned(vf v, int lanes) {
    return lanes == 2 ? vextq_f32(v, v, 2) : vrev64q_f32(v);
}
SB_VF_INLINE float vf_lowest(vf v) {
    return vgetq_lane_f32(v, 0);
}

#else

#define SB_VF_LANES 1
#define SB_VF_REGISTERS 16
typedef float vf;

SB_VF_INLINE vf vf_zero(void) {
    return 0.0f;
}
SB_VF_INLINE vf vf_set(float x) {
    return x;
}
SB_VF_INLINE vf vf_load(const float *p) {
    return *p;
}
SB_VF_INLINE void vf_store(float *p, vf v) {
    *p = v;
}
SB_VF_INLINE vf vf_load_first(const float *p, int64_t count) {
    return count > 0 ? *p : 0.0f;
}
SB_VF_INLINE vf vf_load_first_or(const float *p, int64_t count, vf others) {
    return count > 0 ? *p : others;
}
SB_VF_INLINE void vf_store_first(float *p, vf v, int64_t count) {
    if (count > 0)
        *p = v;
}
SB_VF_INLINE vf vf_fma(vf a, vf b, vf c) {
    return fmaf(a, b, c);
}
SB_VF_INLINE vf vf_add(vf a, vf b) {
    return a + b;
}
SB_VF_INLINE vf vf_mul(vf a, vf b) {
    return a * b;
}
SB_VF_INLINE vf vf_div(vf a, vf b) {
    return a / b;
}
SB_VF_INLINE vf vf_abs(vf x) {
    return fabsf(x);
}
SB_VF_INLINE vf vf_at_least(vf least, vf x) {
    return x < least ? least : x;
}
SB_VF_INLINE vf vf_at_most(vf most, vf x) {
    return x > most ? most : x;
}
typedef int vf_lanes;
SB_VF_INLINE vf vf_larger(vf a, vf b) {
    return sb_max_f32(a, b);
}
SB_VF_INLINE vf_lanes vf_nans_of(vf a, vf b) {
    return 0;
}
SB_VF_INLINE vf_lanes vf_lanes_or(vf_lanes a, vf_lanes b) {
    return 0;
}
SB_VF_INLINE vf vf_with_nans(vf v, vf_lanes nans) {
    return v;
}
SB_VF_INLINE vf vf_turned(vf v, int lanes) {
    return v;
}
SB_VF_INLINE float vf_lowest(vf v) {
    return v;
}

#endif

/* The contract's maximum: NaN wins, +0 > -0. */
SB_VF_INLINE vf vf_max(vf a, vf b) {
    return vf_with_nans(vf_larger(a, b), vf_nans_of(a, b));
}

/* The lanes added by halves: the upper half to the lower one, until one is left. */
SB_VF_INLINE float vf_fold_add(vf v) {
    SB_UNROLL
    for (int half = SB_VF_LANES / 2; half > 0; half /= 2)
        v = vf_add(v, vf_turned(v, half));
    return vf_lowest(v);
}

/* The contract's maximum of the lanes, which has no order. */
SB_VF_INLINE float vf_fold_max(vf v) {
    SB_UNROLL
    for (int half = SB_VF_LANES / 2; half > 0; half /= 2)
        v = vf_max(v, vf_turned(v, half));
    return vf_lowest(v);
}

#endif
