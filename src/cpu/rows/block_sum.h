/* One block of a sum in the order of numerics/reduce.h, over adjacent values: for the sources that are compiled once per
 * instruction set. */
#ifndef SB_CPU_ROWS_BLOCK_SUM_H
#define SB_CPU_ROWS_BLOCK_SUM_H

#include "cpu/simd.h"
#include "numerics/reduce.h"

/* lanes[lane] += lanes[lane + half] for the first `partners` lanes. */
static inline void add_lanes(float *lanes, int half, int partners) {
    int lane = 0;
    for (; half >= SB_VF_LANES && lane + SB_VF_LANES <= partners; lane += SB_VF_LANES)
        vf_store(lanes + lane, vf_add(vf_load(lanes + lane), vf_load(lanes + lane + half)));
    for (; lane < partners; lane++)
        lanes[lane] += lanes[lane + half];
}

/* Adds the upper half of what is present to the lower half until one lane is left. */
static inline float fold_lanes(float *lanes, int present) {
    for (int half = SB_REDUCE_LANES / 2; half > 0; half /= 2) {
        if (present <= half)
            continue;
        add_lanes(lanes, half, present - half);
        present = half;
    }
    return lanes[0];
}

/* static float name(x, size): reductions differ in how a value starts a lane and joins it. 1 <= size <= SB_REDUCE_BLOCK. */
#define SB_DEFINE_BLOCK_SUM(name, FIRST, NEXT)                                                                         \
    static float name(const float *restrict x, int size) {                                                             \
        _Alignas(64) float lanes[SB_REDUCE_LANES];                                                                     \
        int present = size < SB_REDUCE_LANES ? size : SB_REDUCE_LANES;                                                 \
        for (int lane = 0; lane < present; lane++)                                                                     \
            lanes[lane] = FIRST(x[lane]);                                                                              \
        int base = SB_REDUCE_LANES;                                                                                    \
        for (; base + SB_REDUCE_LANES <= size; base += SB_REDUCE_LANES) {                                              \
            for (int lane = 0; lane < SB_REDUCE_LANES; lane++)                                                         \
                lanes[lane] = NEXT(x[base + lane], lanes[lane]);                                                       \
        }                                                                                                              \
        for (int lane = 0; base + lane < size; lane++)                                                                 \
            lanes[lane] = NEXT(x[base + lane], lanes[lane]);                                                           \
        return fold_lanes(lanes, present);                                                                             \
    }

#endif
