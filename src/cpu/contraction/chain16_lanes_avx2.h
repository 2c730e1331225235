/* Vectors of AVX2, as the chain's kernels name what is done to them: i_ to lanes of 32-bit integers, h_ to halves of those, b_ to
 * bytes, f_ to f32. */
#ifndef SB_CPU_CONTRACTION_CHAIN16_LANES_AVX2_H
#define SB_CPU_CONTRACTION_CHAIN16_LANES_AVX2_H

#include <immintrin.h>

#define LANES 8
/* The first register of a packed row holds columns 0 to 7 in its low halves and 16 to 23 in the
 * high ones, the second 8 to 15 and 24 to 31; the second register's drops take the odd bytes. */
#define LOW_VECTOR(half) (half)
#define HIGH_VECTOR(half) (2 + (half))
#define HALF_OF(q) ((q)&1)
#define DROP_BYTE(q) (q)

typedef __m256i integers;
typedef __m256 floats;

#define i_load(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define i_store(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define i_set(x) _mm256_set1_epi32(x)
#define i_add _mm256_add_epi32
#define i_sub _mm256_sub_epi32
#define i_and _mm256_and_si256
#define i_or _mm256_or_si256
#define i_xor _mm256_xor_si256
#define i_max _mm256_max_epi32
#define i_max_unsigned _mm256_max_epu32
#define i_shift_left _mm256_slli_epi32
#define i_shift_right _mm256_srli_epi32
#define i_shift_right_signed _mm256_srai_epi32
#define i_truncated _mm256_cvttps_epi32
#define i_from_bits _mm256_castps_si256
/* Unsigned v >= limit + 1, as there is no unsigned comparison. */
#define i_outside_mask(v, limit)                                                                                       \
    ((unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(                                                                 \
        _mm256_cmpeq_epi32(_mm256_max_epu32(v, _mm256_set1_epi32((int)((unsigned)(limit) + 1))), v))))
#define h_max _mm256_max_epu16
#define h_min _mm256_min_epu16
#define h_sub _mm256_sub_epi16
#define h_sub_saturated _mm256_subs_epu16
#define h_any_equal(v, w) (_mm256_movemask_epi8(_mm256_cmpeq_epi16(v, w)) != 0)
#define h_shift_right _mm256_srli_epi16
#define h_or_255_where_zero(v, test)                                                                                   \
    _mm256_or_si256(v, _mm256_srli_epi16(_mm256_cmpeq_epi16(test, _mm256_setzero_si256()), 8))
#define b_broadcast(x) _mm256_set1_epi8((char)(x))
#define b_add_saturated _mm256_adds_epu8
#define b_min _mm256_min_epu8
#define f_load(p) _mm256_loadu_ps(p)
#define f_store(p, v) _mm256_storeu_ps(p, v)
#define f_broadcast(x) _mm256_set1_ps(x)
#define f_set(x) _mm256_set1_ps(x)
#define f_add _mm256_add_ps
#define f_mul _mm256_mul_ps
#define h_add _mm256_add_epi16
/* The lower halves of `low`, the upper ones of `high`. */
#define h_blend(low, high) _mm256_blend_epi16(low, high, 0xaa)
#define i_unequal_mask(v, w) (0xffu ^ (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(v, w))))
#define f_sub _mm256_sub_ps
#define f_fma _mm256_fmadd_ps
#define f_sqrt _mm256_sqrt_ps
#define f_magnitude(v) _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v)
/* `yes` where `test` is not 0, else `no`. */
#define f_choose(test, yes, no)                                                                                        \
    _mm256_blendv_ps(yes, no, _mm256_castsi256_ps(_mm256_cmpeq_epi32(test, _mm256_setzero_si256())))
#define f_from_bits _mm256_castsi256_ps
#define f_from_i_truncated(v) truncated_float(v)

/* There is no embedded rounding. Clearing the bit under the last place of a magnitude of more than 24 bits
 * leaves less than half a unit below it, so that rounding to nearest truncates; magnitude >> 24 has that bit set
 * and nothing above it. */
static inline __m256 truncated_float(__m256i v) {
    __m256i magnitude = _mm256_abs_epi32(v);
    __m256i kept = _mm256_andnot_si256(_mm256_srli_epi32(magnitude, 24), magnitude);
    return _mm256_cvtepi32_ps(_mm256_sign_epi32(kept, v));
}

#endif
