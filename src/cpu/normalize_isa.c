/* Row kernels, compiled once per instruction set: plain loops that the compiler turns into vectors. */
#include "base/isa.h"
#include "cpu/normalize.h"
#include "cpu/simd.h"
#include "numerics/elementary.h"
#include "numerics/reduce.h"

/* lanes[lane] += lanes[lane + half] for the first `partners` lanes. */
static inline void add_lanes(float *lanes, int half, int partners) {
    int lane = 0;
    for (; half >= IV_VF_LANES && lane + IV_VF_LANES <= partners; lane += IV_VF_LANES)
        vf_store(lanes + lane, vf_add(vf_load(lanes + lane), vf_load(lanes + lane + half)));
    for (; lane < partners; lane++)
        lanes[lane] += lanes[lane + half];
}

/* Adds the upper half of what is present to the lower half until one lane is left. */
static float fold(float *lanes, int present) {
    for (int half = IV_REDUCE_LANES / 2; half > 0; half /= 2) {
        if (present <= half)
            continue;
        add_lanes(lanes, half, present - half);
        present = half;
    }
    return lanes[0];
}

/* The two reductions differ in how a value starts a lane and joins it. */
#define DEFINE_BLOCK_SUM(name, FIRST, NEXT)                                                        \
    static float name(const float *restrict x, int size) {                                         \
        _Alignas(64) float lanes[IV_REDUCE_LANES];                                                 \
        int present = size < IV_REDUCE_LANES ? size : IV_REDUCE_LANES;                             \
        for (int lane = 0; lane < present; lane++)                                                 \
            lanes[lane] = FIRST(x[lane]);                                                          \
        int base = IV_REDUCE_LANES;                                                                \
        for (; base + IV_REDUCE_LANES <= size; base += IV_REDUCE_LANES) {                          \
            for (int lane = 0; lane < IV_REDUCE_LANES; lane++)                                     \
                lanes[lane] = NEXT(x[base + lane], lanes[lane]);                                   \
        }                                                                                          \
        for (int lane = 0; base + lane < size; lane++)                                             \
            lanes[lane] = NEXT(x[base + lane], lanes[lane]);                                       \
        return fold(lanes, present);                                                               \
    }
DEFINE_BLOCK_SUM(block_sum, IV_REDUCE_FIRST_SUM, IV_REDUCE_NEXT_SUM_f32)
DEFINE_BLOCK_SUM(block_sum_of_squares, IV_REDUCE_FIRST_SQUARES, IV_REDUCE_NEXT_SQUARES_f32)

#define DEFINE_ROW_SUM(name, block)                                                                \
    static float name(const float *x, int64_t n) {                                                 \
        float total = 0;                                                                           \
        for (int64_t start = 0; start < n; start += IV_REDUCE_BLOCK) {                             \
            int64_t left = n - start;                                                              \
            float part = block(x + start, left < IV_REDUCE_BLOCK ? (int)left : IV_REDUCE_BLOCK);   \
            total = start == 0 ? part : total + part;                                              \
        }                                                                                          \
        return total;                                                                              \
    }
DEFINE_ROW_SUM(row_sum, block_sum)
DEFINE_ROW_SUM(row_sum_of_squares, block_sum_of_squares)

/* The maximum has no order: any number of lanes will do. Four vectors, as a maximum waits some cycles for the last one. */
static float row_max(const float *x, int64_t n) {
    float lanes[IV_VF_LANES], best = x[0];
    int64_t i = 0;
    if (n >= IV_VF_LANES) {
        vf most[4];
        for (int v = 0; v < 4; v++)
            most[v] = vf_load(x);
        for (; i + 4 * IV_VF_LANES <= n; i += 4 * IV_VF_LANES) {
            for (int v = 0; v < 4; v++)
                most[v] = vf_max(most[v], vf_load(x + i + v * IV_VF_LANES));
        }
        for (; i + IV_VF_LANES <= n; i += IV_VF_LANES)
            most[0] = vf_max(most[0], vf_load(x + i));
        vf_store(lanes, vf_max(vf_max(most[0], most[1]), vf_max(most[2], most[3])));
        for (int half = IV_VF_LANES / 2; half > 0; half /= 2) {
            for (int lane = 0; lane < half; lane++)
                lanes[lane] = iv_max_f32(lanes[lane], lanes[lane + half]);
        }
        best = lanes[0];
    }
    for (; i < n; i++)
        best = iv_max_f32(best, x[i]);
    return best;
}

static void softmax(const float *x, float *y, int64_t n) {
    if (n == 0)
        return;
    float max = row_max(x, n);
    for (int64_t i = 0; i < n; i++)
        y[i] = iv_exp_f32(x[i] - max);
    float sum = row_sum(y, n);
    for (int64_t i = 0; i < n; i++)
        y[i] = iv_div_f32(y[i], sum);
}

static void log_softmax(const float *x, float *y, int64_t n, float *scratch) {
    if (n == 0)
        return;
    float max = row_max(x, n);
    for (int64_t i = 0; i < n; i++)
        scratch[i] = iv_exp_f32(x[i] - max);
    float logarithm = iv_log_f32(row_sum(scratch, n));
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - max) - logarithm;
}

static void layer_norm(const float *x, float *y, int64_t n, const float *restrict scale,
                       const float *restrict bias, float epsilon, float *mean_out,
                       float *inverse_out) {
    float mean = iv_div_f32(row_sum(x, n), (float)n);
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] - mean;
    float variance = iv_div_f32(row_sum_of_squares(y, n), (float)n);
    float inverse = iv_div_f32(1.0f, iv_sqrt_f32(variance + epsilon));
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

extern const iv_row_kernels IV_ISA_NAME(iv_row_kernels);
const iv_row_kernels IV_ISA_NAME(iv_row_kernels) = {row_sum, softmax, log_softmax, layer_norm};
