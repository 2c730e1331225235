/* Register tiles of integer products, for the sources that define SB_INTEGER_MULTIPLY, the function's name, and what vectors are:
 * SB_ISA_avx512 or SB_ISA_avx2, or plain integers; and SB_INTEGER_VNNI where one instruction multiplies and adds. Lanes are columns; a pair
 * of a row is broadcast, multiplied with the pairs of a panel's columns and added up, so that the sums of a tile stay in registers for all of k. */
#include <stdbool.h>
#include <string.h>

#include "cpu/contraction/integer.h"

#if defined(SB_ISA_avx512)
#include <immintrin.h>
#define LANES 16
#define ROWS 12
typedef __m512i vector;
static inline vector load(const uint8_t *from, bool has_sign) {
    const __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)from);
    return has_sign ? _mm512_cvtepi8_epi16(bytes) : _mm512_cvtepu8_epi16(bytes);
}
static inline vector broadcast(int32_t pair) {
    return _mm512_set1_epi32(pair);
}
static inline vector add_pairs(vector sum, vector a, vector b) {
#if defined(SB_INTEGER_VNNI)
    return _mm512_dpwssd_epi32(sum, a, b);
#else
    return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
#endif
}
static inline void store(void *to, vector value) {
    _mm512_storeu_si512(to, value);
}
static inline vector nothing(void) {
    return _mm512_setzero_si512();
}
#elif defined(SB_ISA_avx2)
#include <immintrin.h>
#define LANES 8
#define ROWS 2
typedef __m256i vector;
static inline vector load(const uint8_t *from, bool has_sign) {
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)from);
    return has_sign ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
}
static inline vector broadcast(int32_t pair) {
    return _mm256_set1_epi32(pair);
}
static inline vector add_pairs(vector sum, vector a, vector b) {
#if defined(SB_INTEGER_VNNI)
    return _mm256_dpwssd_avx_epi32(sum, a, b);
#else
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
#endif
}
static inline void store(void *to, vector value) {
    _mm256_storeu_si256(to, value);
}
static inline vector nothing(void) {
    return _mm256_setzero_si256();
}
#else
#define LANES 1
#define ROWS 1
typedef uint32_t vector;
static inline vector load(const uint8_t *from, bool has_sign) {
    const uint16_t low = has_sign ? (uint16_t)(int8_t)from[0] : from[0];
    const uint16_t high = has_sign ? (uint16_t)(int8_t)from[1] : from[1];
    return low | (vector)high << 16;
}
static inline vector broadcast(int32_t pair) {
    return (vector)pair;
}
static inline vector add_pairs(vector sum, vector a, vector b) {
    int32_t low = (int16_t)a * (int16_t)b, high = (int16_t)(a >> 16) * (int16_t)(b >> 16);
    return sum + (uint32_t)low + (uint32_t)high;
}
static inline void store(void *to, vector value) {
    memcpy(to, &value, sizeof value);
}
static inline vector nothing(void) {
    return 0;
}
#endif

#define VECTORS (SB_INTEGER_PANEL / LANES)

/* `rows` is a constant, at most ROWS; out gets [rows][SB_INTEGER_PANEL]. */
static inline __attribute__((always_inline)) void multiply_rows(const int16_t *a, const uint8_t *panel, int64_t pairs,
                                                                const int rows, const bool has_sign, int32_t *out) {
    vector sums[ROWS][VECTORS];
#pragma GCC unroll 32
    for (int r = 0; r < rows; r++) {
#pragma GCC unroll 32
        for (int v = 0; v < VECTORS; v++)
            sums[r][v] = nothing();
    }
    for (int64_t p = 0; p < pairs; p++, panel += 2 * SB_INTEGER_PANEL) {
        vector b[VECTORS];
#pragma GCC unroll 32
        for (int v = 0; v < VECTORS; v++)
            b[v] = load(panel + 2 * LANES * v, has_sign);
#pragma GCC unroll 32
        for (int r = 0; r < rows; r++) {
            int32_t pair;
            memcpy(&pair, a + 2 * (r * pairs + p), sizeof pair);
            const vector one = broadcast(pair);
#pragma GCC unroll 32
            for (int v = 0; v < VECTORS; v++)
                sums[r][v] = add_pairs(sums[r][v], one, b[v]);
        }
    }
#pragma GCC unroll 32
    for (int r = 0; r < rows; r++) {
#pragma GCC unroll 32
        for (int v = 0; v < VECTORS; v++)
            store(out + r * SB_INTEGER_PANEL + v * LANES, sums[r][v]);
    }
}

/* Takes the columns' zero points off, times the sum of the row. */
static inline void finish_row(const int32_t *out, const sb_integer_tile *tile, int64_t row) {
    const uint32_t sum = (uint32_t)tile->sums[row];
    int32_t *c = tile->c + row * tile->c_stride;
    for (int64_t j = 0; j < tile->columns; j++)
        c[j] = (int32_t)((uint32_t)out[j] - sum * (uint32_t)tile->zeros[j]);
}

/* `has_sign` is a constant. */
static inline __attribute__((always_inline)) void multiply_tile(const int16_t *a, const uint8_t *panel, int64_t pairs,
                                                                int64_t rows, const bool has_sign, int32_t *out) {
#define CASE(count)                                                                                                    \
    case count:                                                                                                        \
        multiply_rows(a, panel, pairs, count <= ROWS ? count : ROWS, has_sign, out);                                   \
        break;
    switch (rows) {
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
        CASE(7)
        CASE(8)
        CASE(9)
        CASE(10)
        CASE(11)
        CASE(12)
    default:
        break;
    }
#undef CASE
}

/* Rows are shared out evenly, as 10 rows five times take less time than 12 four times and 2. */
void SB_INTEGER_MULTIPLY(const sb_integer_tile *tile) {
    _Alignas(64) int32_t out[ROWS * SB_INTEGER_PANEL];
    const int64_t tiles = (tile->rows + ROWS - 1) / ROWS;
    for (int64_t t = 0, row = 0, rows; t < tiles; t++, row += rows) {
        const int16_t *a = tile->a + 2 * row * tile->pairs;
        rows = (tile->rows - row) / (tiles - t);
        if (tile->dtype == SB_S8)
            multiply_tile(a, tile->panel, tile->pairs, rows, true, out);
        else
            multiply_tile(a, tile->panel, tile->pairs, rows, false, out);
        for (int64_t r = 0; r < rows; r++)
            finish_row(out + r * SB_INTEGER_PANEL, tile, row + r);
    }
}
