/* Kernels of chain16_near.h over AVX-512 F, BW, DQ and VL. The files that include it define
 *
 *     PARTS                       into how many a pair of elements is cut to be multiplied
 *     part_of(pairs, part)        what is multiplied
 *     multiply_add(sum, a, b)     sum + the products, rounded behind each */
#include <immintrin.h>

#include "cpu/contraction/chain16_near.h"

#define PANEL SB_CHAIN16_PANEL
#define GROUP SB_CHAIN16_GROUP
#define LEVELS SB_CHAIN16_NEAR_LEVELS
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

/* The larger one of each pair of halves. */
static inline integers larger_half(integers halves) {
    return _mm512_and_si512(_mm512_max_epu16(halves, _mm512_srli_epi32(halves, 16)), _mm512_set1_epi32(0xffff));
}

/* A power of two of the exponent of a magnitude of bf16, as f32. */
static inline floats top_of(integers magnitude) {
    return bits_to_floats(_mm512_slli_epi32(_mm512_and_si512(magnitude, _mm512_set1_epi32(0x7f80)), 16));
}

/* How many groups say how large elements are. */
#define LOOKED_AT 4

static void begin(const uint16_t *panel, int64_t groups, sb_chain16_measures *measures) {
    memset(measures, 0, sizeof *measures);
    floats squares[VECTORS] = {_mm512_setzero_ps()};
    EACH_VECTOR squares[v] = _mm512_setzero_ps();
    groups = groups < LOOKED_AT ? groups : LOOKED_AT;
    for (int64_t k = 0; k < groups * GROUP; k += 2) {
        integers pair[VECTORS];
        pair_rows(panel + k * PANEL, pair);
        pair_rows(panel + k * PANEL + PANEL / 2, pair + 2);
        for (int part = 0; part < PARTS; part++)
            EACH_VECTOR squares[v] = multiply_add(squares[v], part_of(pair[v], part), part_of(pair[v], part));
    }
    /* A level is two octaves below the root mean square and less, which of normal numbers leaves 38 % to the first and 10 to the last. */
    const floats count = _mm512_set1_ps(groups > 0 ? 1.0f / (float)(groups * GROUP) : 0);
    EACH_VECTOR {
        const integers root = _mm512_castps_si512(_mm512_sqrt_ps(_mm512_mul_ps(squares[v], count)));
        const integers level = _mm512_sub_epi32(_mm512_srli_epi32(root, 23), _mm512_set1_epi32(2));
        _mm512_store_si512(measures->levels + v * 16, _mm512_max_epi32(level, _mm512_set1_epi32(LEVELS)));
    }
}

/* Magnitudes of halves that are below a level, less 1. */
static inline integers below_level(const sb_chain16_measures *measures, int v, int level) {
    const integers field = _mm512_sub_epi32(load(measures->levels + v * 16), _mm512_set1_epi32(level - 1));
    const integers limit = _mm512_sub_epi32(_mm512_slli_epi32(field, 7), _mm512_set1_epi32(1));
    return _mm512_or_si512(limit, _mm512_slli_epi32(limit, 16));
}

static inline void add_counts(integers counts, float *to) {
    const integers both = _mm512_add_epi32(_mm512_and_si512(counts, _mm512_set1_epi32(0xffff)),
                                           _mm512_srli_epi32(counts, 16));
    _mm512_store_ps(to, _mm512_add_ps(_mm512_load_ps(to), _mm512_cvtepi32_ps(both)));
}

/* Of 16 columns: half of a panel has 32. */
static inline __attribute__((always_inline)) void measure_vector(const uint16_t *panel, int64_t groups, int v,
                                                                 sb_chain16_measures *measures, uint16_t *pairs) {
    const integers one = _mm512_set1_epi16(1), limits[] = {below_level(measures, v, 0), below_level(measures, v, 1),
                                                           below_level(measures, v, 2)};
    floats tops = _mm512_load_ps(measures->tops + v * 16), norms = _mm512_load_ps(measures->norms + v * 16);
    integers most = load(measures->largest + v * 16);
    integers counts[LEVELS] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
    panel += v / 2 * (PANEL / 2);
    for (int64_t group = 0; group < groups; group++, panel += GROUP * PANEL) {
        integers largest = _mm512_setzero_si512();
        floats squares = _mm512_setzero_ps();
        _Pragma("GCC unroll 8") for (int k = 0; k < GROUP; k += 2) {
            integers pair[2];
            pair_rows(panel + k * PANEL, pair);
            const integers own = pair[v % 2], magnitude = absolute_halves(own);
            if (pairs != NULL)
                _mm512_store_si512(pairs + (group * GROUP + k) * PANEL + v * 32, own);
            largest = _mm512_max_epu16(largest, magnitude);
            const integers less = _mm512_sub_epi16(magnitude, one); /* of a zero the largest */
            _Pragma("GCC unroll 3") for (int i = 0; i < LEVELS; i++) counts[i] = _mm512_mask_add_epi16(
                counts[i], _mm512_cmplt_epu16_mask(less, limits[i]), counts[i], one);
            _Pragma("GCC unroll 2") for (int part = 0; part < PARTS; part++)
                squares = multiply_add(squares, part_of(own, part), part_of(own, part));
            norms = _mm512_add_ps(norms, squares);
            if (k % (GROUP / 2) == GROUP / 2 - 2) {
                norms = _mm512_fmadd_ps(squares, _mm512_set1_ps(0.5f), norms);
                squares = _mm512_setzero_ps();
            }
        }
        largest = larger_half(largest);
        const floats top = top_of(largest);
        tops = _mm512_fmadd_ps(top, top, tops);
        most = _mm512_max_epu32(most, largest);
    }
    _mm512_store_ps(measures->tops + v * 16, tops);
    _mm512_store_ps(measures->norms + v * 16, norms);
    _mm512_store_si512(measures->largest + v * 16, most);
    for (int i = 0; i < LEVELS; i++)
        add_counts(counts[i], measures->small[i] + v * 16);
}

static void measure(const uint16_t *panel, int64_t groups, sb_chain16_measures *measures, uint16_t *pairs) {
    EACH_VECTOR measure_vector(panel, groups, v, measures, pairs);
}

static void finish(sb_chain16_measures *measures) {
    const floats floor = _mm512_set1_ps(SB_CHAIN16_NEAR_FLOOR);
    EACH_VECTOR {
        const integers largest = load(measures->largest + v * 16);
        const __mmask16 nonzero = _mm512_test_epi32_mask(largest, largest);
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

static inline __attribute__((always_inline)) void sum_rows(const uint16_t *a, int64_t pitch, int rows,
                                                           const uint16_t *pairs, int64_t groups,
                                                           sb_chain16_sums *sums) {
    for (int64_t group = 0; group < groups; group++, a += GROUP, pairs += GROUP * PANEL) {
        floats own[2][TOGETHER][VECTORS];
        /* Else gcc keeps what is in memory in registers, which are needed for the sums: 115 GMAC/s, and 180. */
        __asm__("" : "+r"(sums));
        EACH_SUM own[0][r][v] = own[1][r][v] = _mm512_setzero_ps();
        for (int k = 0; k < GROUP / 2; k += 2) {
            _Pragma("GCC unroll 2") for (int half = 0; half < 2; half++) {
                const int at = half * GROUP / 2 + k;
                _Pragma("GCC unroll 2") for (int part = 0; part < PARTS; part++) {
                    integers right[VECTORS];
                    EACH_VECTOR right[v] = part_of(load(pairs + at * PANEL + v * 32), part);
                    _Pragma("GCC unroll 3") for (int r = 0; r < rows; r++) {
                        int32_t pair;
                        memcpy(&pair, a + r * pitch + at, sizeof pair);
                        const integers left = part_of(_mm512_set1_epi32(pair), part);
                        EACH_VECTOR own[half][r][v] = multiply_add(own[half][r][v], left, right[v]);
                    }
                }
            }
        }
        EACH_SUM {
            float *now = sums[r].now + v * 16, *passed = sums[r].passed + v * 16, *most = sums[r].most + v * 16;
            const floats behind = _mm512_add_ps(_mm512_load_ps(now), _mm512_add_ps(own[0][r][v], own[1][r][v]));
            const floats magnitude = _mm512_abs_ps(behind);
            _mm512_store_ps(now, behind);
            _mm512_store_ps(passed, _mm512_add_ps(_mm512_load_ps(passed), magnitude));
            _mm512_store_ps(most, _mm512_max_ps(_mm512_load_ps(most), magnitude));
        }
    }
}

static void sum(const uint16_t *a, int64_t pitch, int64_t rows, const uint16_t *pairs, int64_t groups,
                sb_chain16_sums *sums) {
    int64_t r = 0;
    for (; r + TOGETHER <= rows; r += TOGETHER)
        sum_rows(a + r * pitch, pitch, TOGETHER, pairs, groups, sums + r);
    if (rows - r == 2)
        sum_rows(a + r * pitch, pitch, 2, pairs, groups, sums + r);
    else if (rows - r == 1)
        sum_rows(a + r * pitch, pitch, 1, pairs, groups, sums + r);
}

/* ---- what is certain ---- */

/* The least number of products that can be truncated, where the sums of levels of both must be at most `room`: C(a, α) + C(b, β). */
static inline floats find_truncated(const sb_chain16_measures *rows, int64_t r, const sb_chain16_measures *columns,
                                    int v, integers room) {
    floats least = _mm512_set1_ps(0x1p100f);
    _Pragma("GCC unroll 3") for (int i = 0; i < LEVELS; i++) {
        const integers left = _mm512_sub_epi32(room, _mm512_set1_epi32(i));
        floats count = _mm512_load_ps(columns->small[0] + v * 16);
        _Pragma("GCC unroll 2") for (int j = 1; j < LEVELS; j++) count = _mm512_mask_load_ps(
            count, _mm512_cmpge_epi32_mask(left, _mm512_set1_epi32(j)), columns->small[j] + v * 16);
        count = _mm512_add_ps(count, _mm512_set1_ps(rows->small[i][r]));
        least = _mm512_mask_min_ps(least, _mm512_cmpge_epi32_mask(left, _mm512_setzero_si512()), least, count);
    }
    return least;
}

static void bound(const sb_chain16_sums *sums, int64_t r, const sb_chain16_measures *rows,
                  const sb_chain16_measures *columns, float *low, float *high) {
    const floats unit = _mm512_set1_ps(0x1p-25f * 1.02f);
    const floats row_top = top_of(_mm512_set1_epi32((int)rows->largest[r]));
    EACH_VECTOR {
        const floats sum = _mm512_load_ps(sums->now + v * 16), passed = _mm512_load_ps(sums->passed + v * 16);
        const floats tops = _mm512_mul_ps(_mm512_set1_ps(rows->tops[r]), _mm512_load_ps(columns->tops + v * 16));
        const floats norms = _mm512_mul_ps(_mm512_set1_ps(rows->norms[r]), _mm512_load_ps(columns->norms + v * 16));
        /* F, and how far α and β may be below the first levels together: their fields, less the bias, add up to F - 13 + room. */
        const floats largest = _mm512_max_ps(_mm512_mul_ps(_mm512_load_ps(sums->most + v * 16), _mm512_set1_ps(1.01f)),
                                             _mm512_mul_ps(row_top, top_of(load(columns->largest + v * 16))));
        const integers field = _mm512_srli_epi32(_mm512_castps_si512(largest), 23);
        const integers first = _mm512_add_epi32(load(columns->levels + v * 16), _mm512_set1_epi32(rows->levels[r]));
        const integers room = _mm512_sub_epi32(_mm512_sub_epi32(first, field), _mm512_set1_epi32(127 - 13));
        const floats power = bits_to_floats(_mm512_slli_epi32(field, 23));
        const floats counted = _mm512_fmadd_ps(find_truncated(rows, r, columns, v, room), power, tops);
        const floats all = _mm512_mul_ps(_mm512_set1_ps(16), _mm512_add_ps(passed, tops));
        floats off = _mm512_fmadd_ps(_mm512_set1_ps(8), passed, _mm512_min_ps(counted, all));
        off = _mm512_mul_ps(_mm512_fmadd_ps(_mm512_set1_ps(2), norms, off), unit);
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
            const choosing from =
                choosing_of(row_panel + ahead, panel + ahead, lanes, i + 1 < count ? i + 1 : 0);
            step_and_choose(&both[turn], lanes->found + i * SB_CHAIN16_NEAR_LANES, lanes->strange + i, &from,
                            &both[turn ^ 1]);
        }
        row_panel += GROUP * PANEL;
        panel += GROUP * PANEL;
    }
}

#define KERNELS                                                                                                        \
    { .begin = begin, .measure = measure, .finish = finish, .sum = sum, .bound = bound, .differ = differ, .chains = chains }
