/* Kernels of chain16_near.h over AVX-512 F, BW, DQ and VL. The files that include it define
 *
 *     PARTS                       into how many a pair of elements is cut to be multiplied
 *     part_of(pairs, part)        what is multiplied
 *     multiply_add(sum, a, b)     sum + the products, rounded behind each */
#include <immintrin.h>

#include "cpu/contraction/chain16_near.h"

#define PANEL SB_CHAIN16_PANEL
#define GROUP SB_CHAIN16_GROUP
#define VECTORS (PANEL / 16)
#define EACH_VECTOR _Pragma("GCC unroll 4") for (int v = 0; v < VECTORS; v++)
#define EACH_K _Pragma("GCC unroll 16") for (int k = 0; k < GROUP; k++)

typedef __m512i integers;
typedef __m512 floats;

static inline integers load(const void *from) {
    return _mm512_loadu_si512(from);
}

static inline floats bits_to_floats(integers bits) {
    return _mm512_castsi512_ps(bits);
}

static inline integers absolute_halves(integers halves) {
    return _mm512_and_si512(halves, _mm512_set1_epi32(0x7fff7fff));
}

/* ---- measures ---- */

/* Elements (k, j) and (k + 1, j) side by side, from two rows of half a panel, where columns j and j + 16 are. */
static inline void pair_rows(const uint16_t *row, integers pairs[2]) {
    const integers even = load(row), odd = load(row + PANEL);
    const __mmask32 high = 0xaaaaaaaau;
    pairs[0] = _mm512_mask_blend_epi16(high, even, _mm512_slli_epi32(odd, 16));
    pairs[1] = _mm512_mask_blend_epi16(high, _mm512_srli_epi32(even, 16), odd);
}

/* The larger one's power of two, as f32, of each pair of magnitudes. */
static inline floats top_of(integers largest) {
    const integers both = _mm512_max_epu16(largest, _mm512_srli_epi32(largest, 16));
    return bits_to_floats(_mm512_slli_epi32(_mm512_and_si512(both, _mm512_set1_epi32(0x7f80)), 16));
}

static void measure(const uint16_t *panel, int64_t groups, sb_chain16_measures *measures, uint16_t *pairs) {
    floats tops[VECTORS], norms[VECTORS];
    integers any[VECTORS];
    EACH_VECTOR {
        tops[v] = _mm512_load_ps(measures->tops + v * 16);
        norms[v] = _mm512_load_ps(measures->norms + v * 16);
        any[v] = load(measures->any + v * 16);
    }
    for (int64_t group = 0; group < groups; group++, panel += GROUP * PANEL) {
        integers largest[VECTORS];
        floats squares[VECTORS];
        EACH_VECTOR {
            largest[v] = _mm512_setzero_si512();
            squares[v] = _mm512_setzero_ps();
        }
        _Pragma("GCC unroll 8") for (int k = 0; k < GROUP; k += 2) {
            integers pair[VECTORS];
            pair_rows(panel + k * PANEL, pair);
            pair_rows(panel + k * PANEL + PANEL / 2, pair + 2);
            EACH_VECTOR {
                if (pairs != NULL)
                    _mm512_store_si512(pairs + (group * GROUP + k) * PANEL + v * 32, pair[v]);
                largest[v] = _mm512_max_epu16(largest[v], absolute_halves(pair[v]));
                _Pragma("GCC unroll 2") for (int part = 0; part < PARTS; part++) squares[v] =
                    multiply_add(squares[v], part_of(pair[v], part), part_of(pair[v], part));
                norms[v] = _mm512_add_ps(norms[v], squares[v]);
                if (k % (GROUP / 2) == GROUP / 2 - 2) {
                    norms[v] = _mm512_fmadd_ps(squares[v], _mm512_set1_ps(0.5f), norms[v]);
                    squares[v] = _mm512_setzero_ps();
                }
            }
        }
        EACH_VECTOR {
            const floats top = top_of(largest[v]);
            tops[v] = _mm512_fmadd_ps(top, top, tops[v]);
            any[v] = _mm512_or_si512(any[v], largest[v]);
        }
    }
    EACH_VECTOR {
        _mm512_store_ps(measures->tops + v * 16, tops[v]);
        _mm512_store_ps(measures->norms + v * 16, norms[v]);
        _mm512_store_si512(measures->any + v * 16, any[v]);
    }
}

static void finish(sb_chain16_measures *measures) {
    const floats floor = _mm512_set1_ps(SB_CHAIN16_NEAR_FLOOR);
    EACH_VECTOR {
        const integers any = load(measures->any + v * 16);
        const __mmask16 nonzero = _mm512_test_epi32_mask(any, any);
        const floats tops = _mm512_sqrt_ps(_mm512_load_ps(measures->tops + v * 16));
        const floats norms = _mm512_load_ps(measures->norms + v * 16);
        const floats twice = _mm512_sqrt_ps(_mm512_add_ps(norms, norms));
        _mm512_store_ps(measures->tops + v * 16, _mm512_maskz_add_ps(nonzero, tops, floor));
        _mm512_store_ps(measures->norms + v * 16, _mm512_maskz_add_ps(nonzero, twice, floor));
    }
}

/* ---- quick sums ---- */

/* Rows whose sums stay in registers, two of each, of half a group. */
#define TOGETHER 3
#define EACH_SUM                                                                                                       \
    _Pragma("GCC unroll 3") for (int r = 0; r < rows; r++) _Pragma("GCC unroll 4") for (int v = 0; v < VECTORS; v++)

static inline __attribute__((always_inline)) void sum_rows(const uint16_t *const *a, int64_t first, int rows,
                                                           const uint16_t *pairs, int64_t groups, float *sums,
                                                           float *passed) {
    for (int64_t group = 0; group < groups; group++, first += GROUP, pairs += GROUP * PANEL) {
        floats own[2][TOGETHER][VECTORS];
        EACH_SUM own[0][r][v] = own[1][r][v] = _mm512_setzero_ps();
        for (int k = 0; k < GROUP / 2; k += 2) {
            _Pragma("GCC unroll 2") for (int half = 0; half < 2; half++) {
                const int at = half * GROUP / 2 + k;
                _Pragma("GCC unroll 2") for (int part = 0; part < PARTS; part++) {
                    integers right[VECTORS];
                    EACH_VECTOR right[v] = part_of(load(pairs + at * PANEL + v * 32), part);
                    _Pragma("GCC unroll 3") for (int r = 0; r < rows; r++) {
                        int32_t pair;
                        memcpy(&pair, a[r] + first + at, sizeof pair);
                        const integers left = part_of(_mm512_set1_epi32(pair), part);
                        EACH_VECTOR own[half][r][v] = multiply_add(own[half][r][v], left, right[v]);
                    }
                }
            }
        }
        EACH_SUM {
            float *sum = sums + r * PANEL + v * 16, *all = passed + r * PANEL + v * 16;
            const floats behind = _mm512_add_ps(_mm512_load_ps(sum), _mm512_add_ps(own[0][r][v], own[1][r][v]));
            _mm512_store_ps(sum, behind);
            _mm512_store_ps(all, _mm512_add_ps(_mm512_load_ps(all), _mm512_abs_ps(behind)));
        }
    }
}

static void sum(const uint16_t *const *a, int64_t first, int64_t rows, const uint16_t *pairs, int64_t groups,
                float *sums, float *passed) {
    for (; rows >= TOGETHER; rows -= TOGETHER) {
        sum_rows(a, first, TOGETHER, pairs, groups, sums, passed);
        a += TOGETHER;
        sums += TOGETHER * PANEL;
        passed += TOGETHER * PANEL;
    }
    if (rows == 2)
        sum_rows(a, first, 2, pairs, groups, sums, passed);
    else if (rows == 1)
        sum_rows(a, first, 1, pairs, groups, sums, passed);
}

/* ---- what is certain ---- */

static void bound(const float *sums, const float *passed, float top, float norm, const sb_chain16_measures *columns,
                  float *low, float *high) {
    const float unit = 0x1p-25f * 1.02f;
    EACH_VECTOR {
        const floats sum = _mm512_load_ps(sums + v * 16), all = _mm512_load_ps(passed + v * 16);
        floats off = _mm512_mul_ps(_mm512_set1_ps(24 * unit), all);
        off = _mm512_fmadd_ps(_mm512_set1_ps(16 * unit * top), _mm512_load_ps(columns->tops + v * 16), off);
        off = _mm512_fmadd_ps(_mm512_set1_ps(2 * unit * norm), _mm512_load_ps(columns->norms + v * 16), off);
        _mm512_store_ps(low + v * 16, _mm512_sub_ps(sum, off));
        _mm512_store_ps(high + v * 16, _mm512_add_ps(sum, off));
    }
}

/* What is left of a number's bits when it is rounded to bf16, in the upper half of a lane. A NaN stays one. */
static inline integers rounded(floats values) {
    const integers bits = _mm512_castps_si512(values);
    const integers odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const integers up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    return _mm512_and_si512(up, _mm512_set1_epi32((int)0xffff0000u));
}

static uint64_t differ(const float *low, const float *high) {
    uint64_t columns = 0;
    EACH_VECTOR {
        const integers a = rounded(_mm512_load_ps(low + v * 16)), b = rounded(_mm512_load_ps(high + v * 16));
        columns |= (uint64_t)_mm512_cmpneq_epi32_mask(a, b) << (16 * v);
    }
    return columns;
}

/* ---- chains of lanes ---- */

/* Of 64 elements of a row of a panel those that `places` name. */
static inline integers choose(const uint16_t *row, integers places) {
    return _mm512_permutex2var_epi16(load(row), places, load(row + 32));
}

/* Half of the lanes: those of the low or of the high halves of words. */
typedef struct half_lanes {
    floats acc;
    __mmask16 strange;
} half_lanes;

static inline floats widen(integers halves, bool high) {
    return bits_to_floats(high ? _mm512_and_si512(halves, _mm512_set1_epi32((int)0xffff0000u))
                               : _mm512_slli_epi32(halves, 16));
}

/* The lanes of half of the words that have a product other than zero. */
static __attribute__((noinline)) __mmask16 lanes_with_products(const integers *a, const integers *b, bool high) {
    const integers half = _mm512_set1_epi32(high ? 0x7fff0000 : 0x7fff);
    __mmask16 lanes = 0;
    for (int k = 0; k < GROUP; k++)
        lanes |= _mm512_mask_test_epi32_mask(_mm512_test_epi32_mask(a[k], half), b[k], half);
    return lanes;
}

/* What a group's exponents make of half of the lanes. */
typedef struct half_step {
    floats scale, back;
    integers sum; /* of the products, in units of 2^(E - 25) */
    __mmask16 outside;
} half_step;

/* `fields` are the largest sums of two exponent fields of the format. Those of products with a zero are among them, and of subnormals
 * count as 0 in place of 1: below T's limit neither is within what is ordinary, nor do they hide what is. */
static inline half_step begin_step(integers fields, floats acc) {
    const integers products = _mm512_sub_epi32(fields, _mm512_set1_epi32(127));
    const integers bits = _mm512_castps_si512(acc);
    const integers field = _mm512_max_epi32(products, _mm512_srli_epi32(_mm512_slli_epi32(bits, 1), 24));
    const integers offset = _mm512_sub_epi32(field, _mm512_set1_epi32(SB_CHAIN16_FIELD_LOW));
    const integers span = _mm512_set1_epi32(SB_CHAIN16_FIELD_HIGH - SB_CHAIN16_FIELD_LOW);
    const integers shifted = _mm512_slli_epi32(field, 23);
    const integers whole = _mm512_set1_epi32((int)((uint32_t)(25 + 127 + 127) << 23));
    const half_step step = {bits_to_floats(_mm512_sub_epi32(whole, shifted)),
                            bits_to_floats(_mm512_sub_epi32(shifted, _mm512_set1_epi32(25 << 23))),
                            _mm512_setzero_si512(), _mm512_cmpgt_epu32_mask(offset, span)};
    return step;
}

static inline void add_product(half_step *step, integers a, integers b, bool high) {
    const floats product = _mm512_mul_ps(widen(a, high), widen(b, high));
    step->sum = _mm512_add_epi32(step->sum, _mm512_cvttps_epi32(_mm512_mul_ps(product, step->scale)));
}

static inline void end_step(const half_step *step, const integers *a, const integers *b, bool high, half_lanes *lanes) {
    const integers term = _mm512_cvttps_epi32(_mm512_mul_ps(lanes->acc, step->scale));
    const integers all = _mm512_add_epi32(step->sum, term);
    /* The sum of the products stays within int32; with the accumulator it may wrap. */
    const integers wrapped = _mm512_and_si512(_mm512_xor_si512(step->sum, all), _mm512_xor_si512(term, all));
    const floats result = _mm512_cvt_roundepi32_ps(all, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    __mmask16 works = 0xffff;
    /* A group of zeros changes nothing, as at the edges of images. */
    if (__builtin_expect(step->outside != 0, 0))
        works = lanes_with_products(a, b, high);
    lanes->strange |= works & (step->outside | _mm512_movepi32_mask(wrapped));
    lanes->acc = _mm512_mask_mul_ps(lanes->acc, works, result, step->back);
}

/* A group's elements of 32 lanes. */
typedef struct chosen {
    integers a[GROUP], b[GROUP], fields;
} chosen;

/* Where lanes find theirs. */
typedef struct choosing {
    const uint16_t *row_panel, *panel; /* of a group */
    integers rows, columns;
} choosing;

static inline void choose_k(const choosing *from, int k, chosen *to) {
    const integers exponents = _mm512_set1_epi32(0x7f807f80);
    const integers a = choose(from->row_panel + k * PANEL, from->rows);
    const integers b = choose(from->panel + k * PANEL, from->columns);
    const integers both = _mm512_add_epi16(_mm512_and_si512(a, exponents), _mm512_and_si512(b, exponents));
    to->a[k] = a;
    to->b[k] = b;
    to->fields = _mm512_max_epu16(to->fields, both);
}

/* A group of 32 lanes, while the elements of those that come next are chosen: what waits for what leaves half of the time otherwise. */
static inline __attribute__((always_inline)) void step_and_choose(const chosen *now, float *found, uint32_t *strange,
                                                                  const choosing *from, chosen *next) {
    half_lanes low = {_mm512_load_ps(found), 0}, high = {_mm512_load_ps(found + 16), 0};
    half_step low_step = begin_step(_mm512_srli_epi32(_mm512_slli_epi32(now->fields, 16), 23), low.acc);
    half_step high_step = begin_step(_mm512_srli_epi32(now->fields, 23), high.acc);
    next->fields = _mm512_setzero_si512();
    EACH_K {
        choose_k(from, k, next);
        add_product(&low_step, now->a[k], now->b[k], false);
        add_product(&high_step, now->a[k], now->b[k], true);
    }
    end_step(&low_step, now->a, now->b, false, &low);
    end_step(&high_step, now->a, now->b, true, &high);
    _mm512_store_ps(found, low.acc);
    _mm512_store_ps(found + 16, high.acc);
    *strange |= (uint32_t)low.strange | (uint32_t)high.strange << 16;
}

static inline choosing choosing_of(const uint16_t *row_panel, const uint16_t *panel, const sb_chain16_lanes *lanes,
                                   int64_t i) {
    const choosing from = {row_panel, panel, load(lanes->rows + i * SB_CHAIN16_NEAR_LANES),
                           load(lanes->columns + i * SB_CHAIN16_NEAR_LANES)};
    return from;
}

/* Group by group for all of them, so that panels are read once. */
static void chains(const uint16_t *row_panel, const uint16_t *panel, int64_t groups, sb_chain16_lanes *lanes,
                   int64_t count) {
    memset(lanes->found, 0, (size_t)count * SB_CHAIN16_NEAR_LANES * sizeof(float));
    memset(lanes->strange, 0, (size_t)count * sizeof *lanes->strange);
    chosen both[2];
    const choosing first = choosing_of(row_panel, panel, lanes, 0);
    both[0].fields = _mm512_setzero_si512();
    for (int k = 0; k < GROUP && count > 0; k++)
        choose_k(&first, k, &both[0]);
    int turn = 0;
    for (int64_t group = 0; group < groups; group++) {
        for (int64_t i = 0; i < count; i++, turn ^= 1) {
            const int64_t ahead = i + 1 < count || group + 1 == groups ? 0 : GROUP * PANEL;
            const choosing from = choosing_of(row_panel + ahead, panel + ahead, lanes, i + 1 < count ? i + 1 : 0);
            step_and_choose(&both[turn], lanes->found + i * SB_CHAIN16_NEAR_LANES, lanes->strange + i, &from,
                            &both[turn ^ 1]);
        }
        row_panel += GROUP * PANEL;
        panel += GROUP * PANEL;
    }
}

#define KERNELS                                                                                                        \
    { .measure = measure, .finish = finish, .sum = sum, .bound = bound, .differ = differ, .chains = chains }
