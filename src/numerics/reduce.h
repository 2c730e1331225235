/* The order in which n values are added (sum, sum of squares, mean, softmax denominator).
 *
 * Values are cut into blocks of 4096. Inside a block, lane j of 256 adds elements j, j+256, j+512,
 * ... in ascending order, starting from the first one; then lanes fold by halves: lane[j] +=
 * lane[j+128], then 64, 32, 16, 8, 4, 2, 1. A lane or a fold partner that has no element is
 * skipped, not added as zero. Block results are added in ascending order. The sum of nothing is +0.
 * A square enters by fma(x, x, lane), the first one as the rounded product x*x. The mean is the sum
 * divided by (float)n; the mean of nothing is NaN.
 *
 * 256 lanes are 16 registers of 16 floats, a warp with 16-byte loads of bf16, or 256 threads: all
 * give these bits. The f64 flavour is the same order in double.
 *
 * SB_DEFINE_SUM makes a reduction of transformed values: `load` is a function or macro (context,
 * index) -> type, called once per element. */
#ifndef SB_NUMERICS_REDUCE_H
#define SB_NUMERICS_REDUCE_H

#include "scalar.h"

#define SB_REDUCE_BLOCK 4096
#define SB_REDUCE_LANES 256

/* Folds the first `present` lanes (1 to 256) by halves into lane 0. The other lanes are not read. */
static SB_HD float sb_reduce_fold_f32(float *lanes, int present) {
    for (int half = SB_REDUCE_LANES / 2; half > 0; half /= 2) {
        for (int lane = 0; lane < half && lane + half < present; lane++) {
            lanes[lane] += lanes[lane + half];
        }
        present = present < half ? present : half;
    }
    return lanes[0];
}

static SB_HD double sb_reduce_fold_f64(double *lanes, int present) {
    for (int half = SB_REDUCE_LANES / 2; half > 0; half /= 2) {
        for (int lane = 0; lane < half && lane + half < present; lane++) {
            lanes[lane] += lanes[lane + half];
        }
        present = present < half ? present : half;
    }
    return lanes[0];
}

/* How an element starts a lane, and how a later one joins it. */
#define SB_REDUCE_FIRST_SUM(value) (value)
#define SB_REDUCE_NEXT_SUM_f32(value, lane) ((lane) + (value))
#define SB_REDUCE_NEXT_SUM_f64(value, lane) ((lane) + (value))
#define SB_REDUCE_FIRST_SQUARES(value) ((value) * (value))
#define SB_REDUCE_NEXT_SQUARES_f32(value, lane) sb_fma_f32((value), (value), (lane))
#define SB_REDUCE_NEXT_SQUARES_f64(value, lane) sb_fma_f64((value), (value), (lane))

#define SB_DEFINE_REDUCTION(name, type, suffix, kind, context_type, load)                                              \
    static SB_HD type name(context_type context, int64_t count) {                                                      \
        type total = (type)0;                                                                                          \
        for (int64_t start = 0; start < count; start += SB_REDUCE_BLOCK) {                                             \
            int64_t left = count - start;                                                                              \
            int size = left < SB_REDUCE_BLOCK ? (int)left : SB_REDUCE_BLOCK;                                           \
            int present = size < SB_REDUCE_LANES ? size : SB_REDUCE_LANES;                                             \
            type lanes[SB_REDUCE_LANES];                                                                               \
            for (int lane = 0; lane < present; lane++) {                                                               \
                type value = load(context, start + lane);                                                              \
                lanes[lane] = SB_REDUCE_FIRST_##kind(value);                                                           \
            }                                                                                                          \
            for (int base = SB_REDUCE_LANES; base < size; base += SB_REDUCE_LANES) {                                   \
                for (int lane = 0; lane < SB_REDUCE_LANES && base + lane < size; lane++) {                             \
                    type value = load(context, start + base + lane);                                                   \
                    lanes[lane] = SB_REDUCE_NEXT_##kind##_##suffix(value, lanes[lane]);                                \
                }                                                                                                      \
            }                                                                                                          \
            type block = sb_reduce_fold_##suffix(lanes, present);                                                      \
            total = start == 0 ? block : total + block;                                                                \
        }                                                                                                              \
        return total;                                                                                                  \
    }

/* Defines `static type name(context_type context, int64_t count)`, type float (suffix f32) or
 * double (f64): the sum, or the sum of squares, of load(context, 0) ... load(context, count - 1) in
 * the order above. */
#define SB_DEFINE_SUM_F32(name, context_type, load) SB_DEFINE_REDUCTION(name, float, f32, SUM, context_type, load)
#define SB_DEFINE_SUM_F64(name, context_type, load) SB_DEFINE_REDUCTION(name, double, f64, SUM, context_type, load)
#define SB_DEFINE_SUM_OF_SQUARES_F32(name, context_type, load)                                                         \
    SB_DEFINE_REDUCTION(name, float, f32, SQUARES, context_type, load)
#define SB_DEFINE_SUM_OF_SQUARES_F64(name, context_type, load)                                                         \
    SB_DEFINE_REDUCTION(name, double, f64, SQUARES, context_type, load)

/* A strided run of values; the stride is in elements and may be zero or negative. */
typedef struct sb_strided_f32 {
    const float *data;
    int64_t stride;
} sb_strided_f32;

typedef struct sb_strided_f64 {
    const double *data;
    int64_t stride;
} sb_strided_f64;

static SB_HD float sb_strided_load_f32(sb_strided_f32 values, int64_t index) {
    return values.data[index * values.stride];
}

static SB_HD double sb_strided_load_f64(sb_strided_f64 values, int64_t index) {
    return values.data[index * values.stride];
}

SB_DEFINE_SUM_F32(sb_strided_sum_f32, sb_strided_f32, sb_strided_load_f32)
SB_DEFINE_SUM_F64(sb_strided_sum_f64, sb_strided_f64, sb_strided_load_f64)
SB_DEFINE_SUM_OF_SQUARES_F32(sb_strided_sum_of_squares_f32, sb_strided_f32, sb_strided_load_f32)
SB_DEFINE_SUM_OF_SQUARES_F64(sb_strided_sum_of_squares_f64, sb_strided_f64, sb_strided_load_f64)

/* Sum of `count` values `stride` elements apart. */
static SB_HD float sb_sum_f32(const float *data, int64_t stride, int64_t count) {
    sb_strided_f32 values = {data, stride};
    return sb_strided_sum_f32(values, count);
}

static SB_HD double sb_sum_f64(const double *data, int64_t stride, int64_t count) {
    sb_strided_f64 values = {data, stride};
    return sb_strided_sum_f64(values, count);
}

static SB_HD float sb_sum_of_squares_f32(const float *data, int64_t stride, int64_t count) {
    sb_strided_f32 values = {data, stride};
    return sb_strided_sum_of_squares_f32(values, count);
}

static SB_HD double sb_sum_of_squares_f64(const double *data, int64_t stride, int64_t count) {
    sb_strided_f64 values = {data, stride};
    return sb_strided_sum_of_squares_f64(values, count);
}

/* The mean of nothing is 0/0 = NaN. */
static SB_HD float sb_mean_f32(const float *data, int64_t stride, int64_t count) {
    return sb_div_f32(sb_sum_f32(data, stride, count), (float)count);
}

static SB_HD double sb_mean_f64(const double *data, int64_t stride, int64_t count) {
    return sb_div_f64(sb_sum_f64(data, stride, count), (double)count);
}

#endif
