/* Row kernels, compiled once per instruction set: plain loops that the compiler turns into vectors. */
#include "base/isa.h"
#include "cpu/rows/normalize.h"
#include "cpu/simd.h"
#include "numerics/elementary.h"
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
static float fold(float *lanes, int present) {
    for (int half = SB_REDUCE_LANES / 2; half > 0; half /= 2) {
        if (present <= half)
            continue;
        add_lanes(lanes, half, present - half);
        present = half;
    }
    return lanes[0];
}

/* The two reductions differ in how a value starts a lane and joins it. */
#define DEFINE_BLOCK_SUM(name, FIRST, NEXT)                                                                            \
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
        return fold(lanes, present);                                                                                   \
    }
DEFINE_BLOCK_SUM(block_sum, SB_REDUCE_FIRST_SUM, SB_REDUCE_NEXT_SUM_f32)
DEFINE_BLOCK_SUM(block_sum_of_squares, SB_REDUCE_FIRST_SQUARES, SB_REDUCE_NEXT_SQUARES_f32)

#define DEFINE_ROW_SUM(name, block)                                                                                    \
    static float name(const float *x, int64_t n) {                                                                     \
        float total = 0;                                                                                               \
        for (int64_t start = 0; start < n; start += SB_REDUCE_BLOCK) {                                                 \
            int64_t left = n - start;                                                                                  \
            float part = block(x + start, left < SB_REDUCE_BLOCK ? (int)left : SB_REDUCE_BLOCK);                       \
            total = start == 0 ? part : total + part;                                                                  \
        }                                                                                                              \
        return total;                                                                                                  \
    }
DEFINE_ROW_SUM(row_sum, block_sum)
DEFINE_ROW_SUM(row_sum_of_squares, block_sum_of_squares)

/* The maximum has no order: any number of lanes will do. Four vectors,
 * as a maximum waits some cycles for the last one. */
static float row_max(const float *x, int64_t n) {
    float lanes[SB_VF_LANES], best = x[0];
    int64_t i = 0;
    if (n >= SB_VF_LANES) {
        vf most[4];
        for (int v = 0; v < 4; v++)
            most[v] = vf_load(x);
        for (; i + 4 * SB_VF_LANES <= n; i += 4 * SB_VF_LANES) {
            for (int v = 0; v < 4; v++)
                most[v] = vf_max(most[v], vf_load(x + i + v * SB_VF_LANES));
        }
        for (; i + SB_VF_LANES <= n; i += SB_VF_LANES)
            most[0] = vf_max(most[0], vf_load(x + i));
        vf_store(lanes, vf_max(vf_max(most[0], most[1]), vf_max(most[2], most[3])));
        for (int half = SB_VF_LANES / 2; half > 0; half /= 2) {
            for (int lane = 0; lane < half; lane++)
                lanes[lane] = sb_max_f32(lanes[lane], lanes[lane + half]);
        }
        best = lanes[0];
    }
    for (; i < n; i++)
        best = sb_max_f32(best, x[i]);
    return best;
}

static void softmax(const float *x, float *y, int64_t n) {
    if (n == 0)
        return;
    float max = row_max(x, n);
    for (int64_t i = 0; i < n; i++)
        y[i] = sb_exp_f32(x[i] - max);
    float sum = row_sum(y, n);
    for (int64_t i = 0; i < n; i++)
        y[i] = sb_div_f32(y[i], sum);
}

static void log_softmax(const float *x, float *y, int64_t n, float *workspace) {
    if (n == 0)
        return;
    float max = row_max(x, n);
    for (int64_t i = 0; i < n; i++)
        workspace[i] = sb_exp_f32(x[i] - max);
    float logarithm = sb_log_f32(row_sum(workspace, n));
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - max) - logarithm;
}

static void layer_norm(const float *x, float *y, int64_t n, const float *restrict scale, const float *restrict bias,
                       float epsilon, float *mean_out, float *inverse_out) {
    float mean = sb_div_f32(row_sum(x, n), (float)n);
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] - mean;
    float variance = sb_div_f32(row_sum_of_squares(y, n), (float)n);
    float inverse = sb_div_f32(1.0f, sb_sqrt_f32(variance + epsilon));
    if (bias != NULL) {
        for (int64_t i = 0; i < n; i++)
            y[i] = y[i] * inverse * scale[i] + bias[i];
    } else {
        for (int64_t i = 0; i < n; i++)
            y[i] = y[i] * inverse * scale[i];
    }
    *mean_out = mean;
    *inverse_out = inverse;
}

extern const sb_row_kernels SB_ISA_NAME(sb_row_kernels);
const sb_row_kernels SB_ISA_NAME(sb_row_kernels) = {row_sum, softmax, log_softmax, layer_norm};
