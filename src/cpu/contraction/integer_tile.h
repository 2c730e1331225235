/* Register tiles of integer products, for the sources that say what vectors are: SB_ISA_avx512 or SB_ISA_avx2, or plain integers; and
 * SB_INTEGER_FOURS where one instruction adds up four products of 8 bits. Lanes are columns; a word of a row is broadcast, multiplied
 * with the words of a panel's columns and added up, so that the sums of a tile stay in registers for all of k. */
#include <string.h>

#include "cpu/contraction/integer.h"

/* Elements of a word. */
#if defined(SB_INTEGER_FOURS)
#define TOGETHER 4
#else
#define TOGETHER 2
#endif

#if defined(SB_ISA_avx512)
#include <immintrin.h>
#define LANES 16
#define VECTORS 2
#define ROWS 12
typedef __m512i vector;
static inline vector load(const uint8_t *from) {
    return _mm512_loadu_si512(from);
}
static inline vector broadcast(int32_t word) {
    return _mm512_set1_epi32(word);
}
static inline void store(void *to, vector value) {
    _mm512_storeu_si512(to, value);
}
#define add _mm512_add_epi32
#if defined(SB_INTEGER_FOURS)
#define load_columns load
#define add_products _mm512_dpbusd_epi32
#else
static inline vector load_columns(const uint8_t *from) {
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)from));
}
static inline vector add_products(vector sum, vector a, vector b) {
    return add(sum, _mm512_madd_epi16(a, b));
}
#endif
#elif defined(SB_ISA_avx2)
#include <immintrin.h>
#define LANES 8
#define VECTORS 2
#define ROWS 6
typedef __m256i vector;
static inline vector load(const uint8_t *from) {
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}
static inline vector broadcast(int32_t word) {
    return _mm256_set1_epi32(word);
}
static inline void store(void *to, vector value) {
    _mm256_storeu_si256(to, value);
}
#define add _mm256_add_epi32
#if defined(SB_INTEGER_FOURS)
#define load_columns load
#define add_products _mm256_dpbusd_avx_epi32
#else
static inline vector load_columns(const uint8_t *from) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)from));
}
static inline vector add_products(vector sum, vector a, vector b) {
    return add(sum, _mm256_madd_epi16(a, b));
}
#endif
#else
#define LANES 1
#define VECTORS 32
#define ROWS 1
typedef uint32_t vector;
static inline vector load_columns(const uint8_t *from) {
    return (uint16_t)(int8_t)from[0] | (vector)(uint16_t)(int8_t)from[1] << 16;
}
static inline vector broadcast(int32_t word) {
    return (vector)word;
}
static inline void store(void *to, vector value) {
    memcpy(to, &value, sizeof value);
}
static inline vector add(vector a, vector b) {
    return a + b;
}
static inline vector add_products(vector sum, vector a, vector b) {
    int32_t low = (int16_t)a * (int16_t)b, high = (int16_t)(a >> 16) * (int16_t)(b >> 16);
    return sum + (uint32_t)low + (uint32_t)high;
}
#endif

#define COLUMNS (VECTORS * LANES)
#define EACH_UNROLLED _Pragma("GCC unroll 32")

/* Sums wait for the instruction before, so that fewer than 8 of them leave it idle: few rows have several of each. */
#define CHAINS(rows) ((rows)*4 <= ROWS && (rows) == 1 ? 4 : (rows)*2 <= ROWS && (rows) <= 3 ? 2 : 1)

/* The products of word `w` of `rows` rows, which is a constant, with those of the columns. */
static inline __attribute__((always_inline)) void add_word(const uint8_t *a, const uint8_t *panel, int64_t words,
                                                           int64_t w, const int rows, vector (*sums)[VECTORS]) {
    vector b[VECTORS];
    EACH_UNROLLED for (int v = 0; v < VECTORS; v++) b[v] = load_columns(panel + TOGETHER * (COLUMNS * w + LANES * v));
    EACH_UNROLLED for (int r = 0; r < rows; r++) {
        int32_t word;
        memcpy(&word, a + 4 * (r * words + w), sizeof word);
        const vector one = broadcast(word);
        EACH_UNROLLED for (int v = 0; v < VECTORS; v++) sums[r][v] = add_products(sums[r][v], one, b[v]);
    }
}

/* `rows` is a constant, at most ROWS; out gets [rows][COLUMNS]. */
static inline __attribute__((always_inline)) void multiply_rows(const uint8_t *a, const uint8_t *panel, int64_t words,
                                                                const int rows, uint32_t *out) {
    vector sums[ROWS][VECTORS];
    const int chains = CHAINS(rows);
    int64_t w = 0;
    EACH_UNROLLED for (int s = 0; s < chains * rows; s++) {
        EACH_UNROLLED for (int v = 0; v < VECTORS; v++) sums[s][v] = broadcast(0);
    }
    for (; w + chains <= words; w += chains) {
        EACH_UNROLLED for (int c = 0; c < chains; c++) add_word(a, panel, words, w + c, rows, sums + c * rows);
    }
    for (; w < words; w++)
        add_word(a, panel, words, w, rows, sums);
    EACH_UNROLLED for (int r = 0; r < rows; r++) {
        EACH_UNROLLED for (int v = 0; v < VECTORS; v++) {
            EACH_UNROLLED for (int c = 1; c < chains; c++) sums[r][v] = add(sums[r][v], sums[c * rows + r][v]);
            store(out + r * COLUMNS + v * LANES, sums[r][v]);
        }
    }
}

/* Takes the zero points off: of the columns, times the sum of the row, and of the row, times the sums of the columns. */
static inline void finish_row(const uint32_t *out, const sb_integer_tile *tile, const uint32_t *column_sums,
                              int64_t row) {
    const uint32_t sum = tile->sums[row], zero = (uint32_t)tile->zeros[row];
    int32_t *c = tile->c + row * tile->c_stride;
    for (int64_t j = 0; j < tile->columns; j++)
        c[j] = (int32_t)(out[j] - sum * (uint32_t)tile->column_zeros[j] - zero * column_sums[j]);
}

static void multiply_tile(const uint8_t *a, const uint8_t *panel, int64_t words, int64_t rows, uint32_t *out) {
#define CASE(count)                                                                                                    \
    case count:                                                                                                        \
        multiply_rows(a, panel, words, count <= ROWS ? count : ROWS, out);                                             \
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
static void multiply(const sb_integer_tile *tile) {
    _Alignas(64) uint32_t out[ROWS * COLUMNS], column_sums[COLUMNS];
    const int64_t tiles = (tile->rows + ROWS - 1) / ROWS;
    memcpy(column_sums, tile->panel + tile->words * TOGETHER * COLUMNS, sizeof column_sums);
    for (int64_t t = 0, row = 0, rows; t < tiles; t++, row += rows) {
        rows = (tile->rows - row) / (tiles - t);
        multiply_tile(tile->a + 4 * row * tile->words, tile->panel, tile->words, rows, out);
        for (int64_t r = 0; r < rows; r++)
            finish_row(out + r * COLUMNS, tile, column_sums, row + r);
    }
}
