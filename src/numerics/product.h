/* The order in which n values are multiplied: that of sums (reduce.h), with products for additions.
 * The product of nothing is 1. */
#ifndef SB_NUMERICS_PRODUCT_H
#define SB_NUMERICS_PRODUCT_H

#include "reduce.h"

/* Defines `static type name(const type *data, int64_t stride, int64_t count)`: the product of
 * `count` values `stride` elements apart. */
#define SB_DEFINE_PRODUCT(name, type)                                                                                  \
    static SB_HD type name(const type *data, int64_t stride, int64_t count) {                                          \
        type total = (type)1;                                                                                          \
        for (int64_t start = 0; start < count; start += SB_REDUCE_BLOCK) {                                             \
            int64_t left = count - start;                                                                              \
            int size = left < SB_REDUCE_BLOCK ? (int)left : SB_REDUCE_BLOCK;                                           \
            int present = size < SB_REDUCE_LANES ? size : SB_REDUCE_LANES;                                             \
            type lanes[SB_REDUCE_LANES];                                                                               \
            for (int lane = 0; lane < present; lane++) {                                                               \
                lanes[lane] = data[(start + lane) * stride];                                                           \
            }                                                                                                          \
            for (int index = SB_REDUCE_LANES; index < size; index++) {                                                 \
                lanes[index % SB_REDUCE_LANES] *= data[(start + index) * stride];                                      \
            }                                                                                                          \
            for (int half = SB_REDUCE_LANES / 2; half > 0; half /= 2) {                                                \
                for (int lane = 0; lane < half && lane + half < present; lane++) {                                     \
                    lanes[lane] *= lanes[lane + half];                                                                 \
                }                                                                                                      \
                present = present < half ? present : half;                                                             \
            }                                                                                                          \
            total = start == 0 ? lanes[0] : total * lanes[0];                                                          \
        }                                                                                                              \
        return total;                                                                                                  \
    }

SB_DEFINE_PRODUCT(sb_product_f32, float)
SB_DEFINE_PRODUCT(sb_product_f64, double)

#endif
