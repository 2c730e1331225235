/* Vectors of AVX-512 F, BW, DQ and VL, as the chain's kernels name what is done to them: i_ to lanes of 32-bit integers, h_ to halves of those, b_ to
 * bytes, f_ to f32. */
#ifndef SB_CPU_CONTRACTION_CHAIN16_LANES_AVX512_H
#define SB_CPU_CONTRACTION_CHAIN16_LANES_AVX512_H

#include <immintrin.h>

#define LANES 16
/* The first register of a packed row holds columns 0 to 31 (low halves 0 to 15), the second 32 to
 * 63; the second register's drops take the odd bytes. */
#define LOW_VECTOR(half) (2 * (half))
#define HIGH_VECTOR(half) (2 * (half) + 1)
#define HALF_OF(q) ((q) >> 1)
#define DROP_BYTE(q) (((q)&1) * 2 + ((q) >> 1))

typedef __m512i integers;
typedef __m512 floats;

#define i_load(p) _mm512_loadu_si512(p)
#define i_store(p, v) _mm512_storeu_si512(p, v)
#define i_set(x) _mm512_set1_epi32(x)
#define i_add _mm512_add_epi32
#define i_sub _mm512_sub_epi32
#define i_and _mm512_and_si512
#define i_or _mm512_or_si512
#define i_xor _mm512_xor_si512
#define i_max _mm512_max_epi32
#define i_max_unsigned _mm512_max_epu32
#define i_shift_left _mm512_slli_epi32
#define i_shift_right _mm512_srli_epi32
#define i_shift_right_signed _mm512_srai_epi32
#define i_truncated _mm512_cvttps_epi32
#define i_from_bits _mm512_castps_si512
#define i_outside_mask(v, limit) _mm512_cmpgt_epu32_mask(v, _mm512_set1_epi32(limit))
#define h_max _mm512_max_epu16
#define h_min _mm512_min_epu16
#define h_sub _mm512_sub_epi16
#define h_sub_saturated _mm512_subs_epu16
#define h_any_equal(v, w) (_mm512_cmpeq_epi16_mask(v, w) != 0)
#define h_shift_right _mm512_srli_epi16
#define h_or_255_where_zero(v, test)                                                                                   \
    _mm512_mask_mov_epi16(v, _mm512_testn_epi16_mask(test, test), _mm512_set1_epi16(255))
#define b_broadcast(x) _mm512_set1_epi8((char)(x))
#define b_add_saturated _mm512_adds_epu8
#define b_min _mm512_min_epu8
#define f_load(p) _mm512_loadu_ps(p)
#define f_store(p, v) _mm512_storeu_ps(p, v)
#define f_broadcast(x) _mm512_set1_ps(x)
#define f_set(x) _mm512_set1_ps(x)
#define f_add _mm512_add_ps
#define f_mul _mm512_mul_ps
#define h_add _mm512_add_epi16
/* The lower halves of `low`, the upper ones of `high`. */
#define h_blend(low, high) _mm512_mask_blend_epi16(0xaaaaaaaau, low, high)
#define i_unequal_mask(v, w) _mm512_cmpneq_epi32_mask(v, w)
#define f_sub _mm512_sub_ps
#define f_fma _mm512_fmadd_ps
#define f_sqrt _mm512_sqrt_ps
#define f_magnitude(v) _mm512_abs_ps(v)
/* `yes` where `test` is not 0, else `no`. */
#define f_choose(test, yes, no) _mm512_mask_mov_ps(no, _mm512_test_epi32_mask(test, test), yes)
#define f_from_bits _mm512_castsi512_ps
#define f_from_i_truncated(v) _mm512_cvt_roundepi32_ps(v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)

#endif
