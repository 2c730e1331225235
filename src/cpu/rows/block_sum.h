/* One block of a sum in the order of numerics/reduce.h, over adjacent values, and the maximum of a row: for the sources that are
 * compiled once per instruction set.
 *
 * The 256 lanes of the order are vectors. Lanes without an element hold -0, which changes no sum, so that a row of any length is
 * whole vectors: rows are often short, and a row of 64 took as long for folding its last lanes one by one as for all else. */
#ifndef SB_CPU_ROWS_BLOCK_SUM_H
#define SB_CPU_ROWS_BLOCK_SUM_H

#include "cpu/simd.h"
#include "numerics/reduce.h"

#define SB_BLOCK_VECTORS (SB_REDUCE_LANES / SB_VF_LANES)

/* How a vector of elements starts lanes, and how a later one joins them. */
#define SB_BLOCK_FIRST_SUM(value) (value)
#define SB_BLOCK_NEXT_SUM(value, lanes) vf_add(lanes, value)
#define SB_BLOCK_FIRST_SQUARES(value) vf_mul(value, value)
#define SB_BLOCK_NEXT_SQUARES(value, lanes) vf_fma(value, value, lanes)
#define SB_BLOCK_FIRST_ABSOLUTE(value) vf_abs(value)
#define SB_BLOCK_NEXT_ABSOLUTE(value, lanes) vf_add(lanes, vf_abs(value))

/* Adds the upper half of the vectors that are present to the lower half until one is left, and then its lanes. */
SB_VF_INLINE float sb_block_fold(vf *lanes, int present) {
    for (int half = SB_BLOCK_VECTORS / 2; half > 0; half /= 2) {
        if (present <= half)
            continue;
        for (int v = 0; v + half < present; v++)
            lanes[v] = vf_add(lanes[v], lanes[v + half]);
        present = half;
    }
    return vf_fold_add(lanes[0]);
}

/* static float name(x, size): reductions differ in how a value starts a lane and joins it. 1 <= size <= SB_REDUCE_BLOCK. */
#define SB_DEFINE_BLOCK_SUM(name, kind)                                                                                \
    static float name(const float *x, int size) {                                                                      \
        const vf nothing = vf_set(-0.0f);                                                                              \
        vf lanes[SB_BLOCK_VECTORS];                                                                                    \
        int whole = size / SB_VF_LANES, left = size % SB_VF_LANES, v = 0;                                              \
        for (; v < whole && v < SB_BLOCK_VECTORS; v++)                                                                 \
            lanes[v] = SB_BLOCK_FIRST_##kind(vf_load(x + v * SB_VF_LANES));                                            \
        if (v < SB_BLOCK_VECTORS) {                                                                                    \
            if (left > 0)                                                                                              \
                lanes[v++] = SB_BLOCK_FIRST_##kind(vf_load_first_or(x + size - left, left, nothing));                  \
            return sb_block_fold(lanes, v);                                                                            \
        }                                                                                                              \
        for (; v + SB_BLOCK_VECTORS <= whole; v += SB_BLOCK_VECTORS) {                                                 \
            for (int lane = 0; lane < SB_BLOCK_VECTORS; lane++)                                                        \
                lanes[lane] = SB_BLOCK_NEXT_##kind(vf_load(x + (v + lane) * SB_VF_LANES), lanes[lane]);                \
        }                                                                                                              \
        vf *rest = lanes;                                                                                              \
        for (; v < whole; v++, rest++)                                                                                 \
            *rest = SB_BLOCK_NEXT_##kind(vf_load(x + v * SB_VF_LANES), *rest);                                         \
        if (left > 0)                                                                                                  \
            *rest = SB_BLOCK_NEXT_##kind(vf_load_first_or(x + size - left, left, nothing), *rest);                     \
        return sb_block_fold(lanes, SB_BLOCK_VECTORS);                                                                 \
    }

/* The contract's maximum of n >= 0 values times `signs`: -infinity of none. It has no order, so any number of lanes will do: four
 * vectors, as a maximum waits some cycles for the last one. */
SB_VF_INLINE float sb_row_extreme(const float *x, int64_t n, vf signs) {
    const vf least = vf_set(-sb_infinity_f32());
    vf most[4] = {least, least, least, least};
    int64_t i = 0;
    for (; i + 4 * SB_VF_LANES <= n; i += 4 * SB_VF_LANES) {
        for (int v = 0; v < 4; v++)
            most[v] = vf_max(most[v], vf_mul(vf_load(x + i + v * SB_VF_LANES), signs));
    }
    SB_UNROLL
    for (int v = 0; v < 3; v++) {
        if (i + SB_VF_LANES <= n) {
            most[v] = vf_max(most[v], vf_mul(vf_load(x + i), signs));
            i += SB_VF_LANES;
        }
    }
    if (i < n)
        most[3] = vf_max(most[3], vf_mul(vf_load_first_or(x + i, n - i, vf_mul(least, signs)), signs));
    return vf_fold_max(vf_max(vf_max(most[0], most[1]), vf_max(most[2], most[3])));
}

#endif
