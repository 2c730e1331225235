/* Products of 8-bit integers with AVX-VNNI: 16 columns per tile. */
#include <immintrin.h>

#define LANES 8
#define VECTORS 2
typedef __m256i integers;
typedef __m256 floats;
#define i_load(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define i_store(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define i_set(x) _mm256_set1_epi32(x)
#define i_add _mm256_add_epi32
#define i_abs _mm256_abs_epi32
#define i_sub _mm256_sub_epi32
#define i_from_bits _mm256_castps_si256
#define i_store_bytes(p, v) store_bytes(p, v)
#define i_dot _mm256_dpbusd_avx_epi32
#define f_from_i _mm256_cvtepi32_ps
#define f_load(p) _mm256_loadu_ps(p)
#define f_store(p, v) _mm256_storeu_ps(p, v)
#define f_set(x) _mm256_set1_ps(x)
#define f_add _mm256_add_ps
#define f_sub _mm256_sub_ps
#define f_mul _mm256_mul_ps
#define f_div _mm256_div_ps
#define f_fma _mm256_fmadd_ps
#define f_min _mm256_min_ps
#define f_max _mm256_max_ps
#define f_abs(x) _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x)
#define f_any_not_above(x, y) (_mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_NGT_UQ)) != 0)

/* The lowest byte of each of eight integers. */
static inline void store_bytes(void *to, __m256i v) {
    const __m256i lowest = _mm256_set1_epi32(0x0c080400);
    __m256i fours = _mm256_shuffle_epi8(v, lowest);
    _mm_storel_epi64(to, _mm_unpacklo_epi32(_mm256_castsi256_si128(fours), _mm256_extracti128_si256(fours, 1)));
}

#include "cpu/contraction/integer_product_vector.h"

const sb_integer_kernels sb_integer_kernels_avx2 = {TILE_COLUMNS, convert, compute};
