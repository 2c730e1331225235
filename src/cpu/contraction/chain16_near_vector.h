/* Kernels of chain16_near.h, over the vectors of chain16_lanes_avx2.h or _avx512.h and, of the source that includes them all:
 *
 *     PARTS                       into how many a pair of elements is cut to be multiplied
 *     part_of(pairs, part)        what is multiplied
 *     multiply_add(sum, a, b)     sum + the products, rounded behind each
 *     SUM_VECTORS                 vectors of columns whose sums stay in registers, twice for three rows */
#include <string.h>

#include "cpu/contraction/chain16_near.h"

#define PANEL SB_CHAIN16_PANEL
#define GROUP SB_CHAIN16_GROUP
#define VECTORS (PANEL / LANES)
#define EACH_VECTOR _Pragma("GCC unroll 8") for (int v = 0; v < VECTORS; v++)
#define EACH_PART _Pragma("GCC unroll 2") for (int part = 0; part < PARTS; part++)
/* Which vector of columns the low and the high halves of words number q of a panel's row are. */
#define LOW_COLUMNS(q) ((q) / 2 * 4 + LOW_VECTOR((q) % 2))
#define HIGH_COLUMNS(q) ((q) / 2 * 4 + HIGH_VECTOR((q) % 2))

/* ---- measures ---- */

/* What is measured of a vector of columns. */
typedef struct measured {
    floats tops, norms;
    integers any;
} measured;

static inline measured measured_of(const sb_chain16_measures *m, int v) {
    const measured own = {f_load(m->tops + v * LANES), f_load(m->norms + v * LANES), i_load(m->any + v * LANES)};
    return own;
}

static inline void store_measured(const measured *own, int v, sb_chain16_measures *m) {
    f_store(m->tops + v * LANES, own->tops);
    f_store(m->norms + v * LANES, own->norms);
    i_store(m->any + v * LANES, own->any);
}

/* The largest exponent of each pair of magnitudes, as a power of two. */
static inline floats top_of(integers largest) {
    const integers both = h_max(largest, i_shift_right(largest, 16));
    return f_from_bits(i_shift_left(i_and(both, i_set(0x7f80)), 16));
}

/* Of a group whose pairs so far these are: its largest magnitudes, and its half's sum of squares. */
typedef struct group_measures {
    integers largest;
    floats squares;
} group_measures;

static inline void measure_pair(integers pair, group_measures *group, measured *own) {
    group->largest = h_max(group->largest, i_and(pair, i_set(0x7fff7fff)));
    EACH_PART group->squares = multiply_add(group->squares, part_of(pair, part), part_of(pair, part));
    own->norms = f_add(own->norms, group->squares);
}

static inline void end_half(group_measures *group, measured *own) {
    own->norms = f_fma(group->squares, f_set(0.5f), own->norms);
    group->squares = f_set(0);
}

static inline void end_group(const group_measures *group, measured *own) {
    const floats top = top_of(group->largest);
    own->tops = f_fma(top, top, own->tops);
    own->any = i_or(own->any, group->largest);
}

/* The two vectors of columns of words number q. */
static inline __attribute__((always_inline)) void measure_words(const uint16_t *panel, int64_t groups, int q,
                                                                sb_chain16_measures *measures, uint16_t *pairs) {
    measured low = measured_of(measures, LOW_COLUMNS(q)), high = measured_of(measures, HIGH_COLUMNS(q));
    panel += q * 2 * LANES;
    for (int64_t group = 0; group < groups; group++, panel += GROUP * PANEL) {
        group_measures group_low = {i_set(0), f_set(0)}, group_high = group_low;
        _Pragma("GCC unroll 8") for (int k = 0; k < GROUP; k += 2) {
            const integers even = i_load(panel + k * PANEL), odd = i_load(panel + (k + 1) * PANEL);
            const integers low_pair = h_blend(even, i_shift_left(odd, 16));
            const integers high_pair = h_blend(i_shift_right(even, 16), odd);
            if (pairs != NULL) {
                uint16_t *to = pairs + (group * GROUP + k) * PANEL;
                i_store(to + LOW_COLUMNS(q) * 2 * LANES, low_pair);
                i_store(to + HIGH_COLUMNS(q) * 2 * LANES, high_pair);
            }
            measure_pair(low_pair, &group_low, &low);
            measure_pair(high_pair, &group_high, &high);
            if (k % (GROUP / 2) == GROUP / 2 - 2) {
                end_half(&group_low, &low);
                end_half(&group_high, &high);
            }
        }
        end_group(&group_low, &low);
        end_group(&group_high, &high);
    }
    store_measured(&low, LOW_COLUMNS(q), measures);
    store_measured(&high, HIGH_COLUMNS(q), measures);
}

static void measure(const uint16_t *panel, int64_t groups, sb_chain16_measures *measures, uint16_t *pairs) {
    for (int q = 0; q < VECTORS / 2; q++)
        measure_words(panel, groups, q, measures, pairs);
}

static void finish(sb_chain16_measures *measures) {
    const floats floor = f_set(SB_CHAIN16_NEAR_FLOOR);
    EACH_VECTOR {
        measured own = measured_of(measures, v);
        own.tops = f_choose(own.any, f_add(f_sqrt(own.tops), floor), f_set(0));
        own.norms = f_choose(own.any, f_add(f_sqrt(f_add(own.norms, own.norms)), floor), f_set(0));
        store_measured(&own, v, measures);
    }
}

/* ---- quick sums ---- */

/* Rows whose sums stay in registers, two of each, of half a group. */
#define TOGETHER 3
#define EACH_SUM                                                                                                       \
    _Pragma("GCC unroll 3") for (int r = 0; r < rows; r++) _Pragma("GCC unroll 4") for (int v = 0; v < SUM_VECTORS; v++)

/* The columns of SUM_VECTORS vectors, from where `pairs`, `sums` and `passed` begin. */
static inline __attribute__((always_inline)) void sum_tile(const uint16_t *const *a, int64_t first, int rows,
                                                           const uint16_t *pairs, int64_t groups, float *sums,
                                                           float *passed) {
    for (int64_t group = 0; group < groups; group++, first += GROUP, pairs += GROUP * PANEL) {
        floats own[2][TOGETHER][SUM_VECTORS];
        EACH_SUM own[0][r][v] = own[1][r][v] = f_set(0);
        for (int k = 0; k < GROUP / 2; k += 2) {
            _Pragma("GCC unroll 2") for (int half = 0; half < 2; half++) {
                const int at = half * GROUP / 2 + k;
                EACH_PART {
                    integers right[SUM_VECTORS];
                    _Pragma("GCC unroll 4") for (int v = 0; v < SUM_VECTORS; v++) right[v] =
                        part_of(i_load(pairs + at * PANEL + v * 2 * LANES), part);
                    _Pragma("GCC unroll 3") for (int r = 0; r < rows; r++) {
                        int32_t pair;
                        memcpy(&pair, a[r] + first + at, sizeof pair);
                        const integers left = part_of(i_set(pair), part);
                        _Pragma("GCC unroll 4") for (int v = 0; v < SUM_VECTORS; v++) own[half][r][v] =
                            multiply_add(own[half][r][v], left, right[v]);
                    }
                }
            }
        }
        EACH_SUM {
            float *sum = sums + r * PANEL + v * LANES, *all = passed + r * PANEL + v * LANES;
            const floats behind = f_add(f_load(sum), f_add(own[0][r][v], own[1][r][v]));
            f_store(sum, behind);
            f_store(all, f_add(f_load(all), f_magnitude(behind)));
        }
    }
}

static inline __attribute__((always_inline)) void sum_rows(const uint16_t *const *a, int64_t first, int rows,
                                                           const uint16_t *pairs, int64_t groups, float *sums,
                                                           float *passed) {
    for (int v = 0; v < VECTORS; v += SUM_VECTORS)
        sum_tile(a, first, rows, pairs + v * 2 * LANES, groups, sums + v * LANES, passed + v * LANES);
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
        const floats sum = f_load(sums + v * LANES);
        floats off = f_mul(f_set(24 * unit), f_load(passed + v * LANES));
        off = f_fma(f_set(16 * unit * top), f_load(columns->tops + v * LANES), off);
        off = f_fma(f_set(2 * unit * norm), f_load(columns->norms + v * LANES), off);
        f_store(low + v * LANES, f_sub(sum, off));
        f_store(high + v * LANES, f_add(sum, off));
    }
}

/* What is left of a number's bits when it is rounded to bf16, in the upper half of a lane. */
static inline integers rounded(floats values) {
    const integers bits = i_from_bits(values), odd = i_and(i_shift_right(bits, 16), i_set(1));
    return i_and(i_add(i_add(bits, i_set(0x7fff)), odd), i_set((int)0xffff0000u));
}

static uint64_t differ(const float *low, const float *high) {
    uint64_t columns = 0;
    EACH_VECTOR columns |= (uint64_t)i_unequal_mask(rounded(f_load(low + v * LANES)), rounded(f_load(high + v * LANES)))
                           << (LANES * v);
    return columns;
}

/* ---- elements anywhere in a tile ---- */

/* Of a group, a half of a word each lane. */
typedef struct chosen {
    integers a[GROUP], b[GROUP];
    integers fields; /* the largest sums of two exponent fields, where bf16 has them */
} chosen;

static inline void take_fields(integers a, integers b, chosen *to) {
    const integers exponents = i_set(0x7f807f80);
    to->fields = h_max(to->fields, h_add(i_and(a, exponents), i_and(b, exponents)));
}
