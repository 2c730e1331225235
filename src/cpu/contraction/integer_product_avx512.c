/* Products of 8-bit integers with AVX-512 VNNI: 64 columns per tile. */
#include <immintrin.h>

#define LANES 16
#define VECTORS 4
typedef __m512i integers;
typedef __m512 floats;
#define i_load(p) _mm512_loadu_si512(p)
#define i_store(p, v) _mm512_storeu_si512(p, v)
#define i_set(x) _mm512_set1_epi32(x)
#define i_add _mm512_add_epi32
#define i_abs _mm512_abs_epi32
#define i_sub _mm512_sub_epi32
#define i_from_bits _mm512_castps_si512
#define i_store_bytes(p, v) _mm_storeu_si128((__m128i *)(void *)(p), _mm512_cvtepi32_epi8(v))
#define i_dot _mm512_dpbusd_epi32
#define f_from_i _mm512_cvtepi32_ps
#define f_load(p) _mm512_loadu_ps(p)
#define f_store(p, v) _mm512_storeu_ps(p, v)
#define f_set(x) _mm512_set1_ps(x)
#define f_add _mm512_add_ps
#define f_sub _mm512_sub_ps
#define f_mul _mm512_mul_ps
#define f_div _mm512_div_ps
#define f_fma _mm512_fmadd_ps
#define f_min _mm512_min_ps
#define f_max _mm512_max_ps
#define f_abs _mm512_abs_ps
#define f_any_not_above(x, y) (_mm512_cmp_ps_mask(x, y, _CMP_NGT_UQ) != 0)

#include "cpu/contraction/integer_product_vector.h"

const sb_integer_kernels sb_integer_kernels_avx512 = {TILE_COLUMNS, convert, compute};
