/* Random numbers by seed and index. For the host and for devices. */
#ifndef SB_OPS_RANDOM_VALUES_H
#define SB_OPS_RANDOM_VALUES_H

#include "numerics/elementary.h"
#include "numerics/minmax.h"
#include "numerics/philox.h"
#include "ops/number.h"

/* As many dimensions as a tensor can have. */
#define SB_RANDOM_RANK 12

typedef struct sb_random_params {
    sb_dtype dtype; /* NONE: the input's */
    uint32_t key[2];
    float first, second; /* low and high, or mean and scale */
    int64_t sample_size;
    int rank;
    int64_t shape[SB_RANDOM_RANK];
} sb_random_params;

static SB_HD sb_philox_block sb_random_block(const sb_random_params *params, int64_t index, int64_t category) {
    sb_philox_block counter = {{(uint32_t)index, (uint32_t)((uint64_t)index >> 32), (uint32_t)category, 0}};
    return sb_philox4x32_10(counter, params->key[0], params->key[1]);
}

/* first + u·(second - first), each operation rounded; u has 24 bits (53 for f64). */
static SB_HD double sb_random_uniform(const sb_random_params *params, sb_dtype dtype, int64_t index) {
    sb_philox_block block = sb_random_block(params, index, 0);
    if (dtype == SB_F64) {
        double span = (double)params->second - (double)params->first;
        return (double)params->first + sb_uniform_f64(block.word[0], block.word[1]) * span;
    }
    float span = params->second - params->first;
    return params->first + sb_uniform_f32(block.word[0]) * span;
}

/* Box and Muller's transform: first + second·(sqrt(-2 ln u)·cos(2π v)), in f32 (f64 for f64). */
static SB_HD double sb_random_normal(const sb_random_params *params, sb_dtype dtype, int64_t index) {
    sb_philox_block block = sb_random_block(params, index, 0);
    if (dtype == SB_F64) {
        /* 53 bits and a half, so that the logarithm is finite. */
        double u = sb_uniform_f64(block.word[0], block.word[1]) + 5.5511151231257827e-17;
        double v = sb_uniform_f64(block.word[2], block.word[3]);
        double radius = sb_sqrt_f64(-2.0 * sb_log_f64(u));
        return (double)params->first + (double)params->second * (radius * sb_cos_f64(6.283185307179586 * v));
    }
    float radius = sb_sqrt_f32(-2.0f * sb_log_f32(sb_uniform_open_f32(block.word[0])));
    float angle = 6.2831853f * sb_uniform_f32(block.word[1]);
    return params->first + params->second * (radius * sb_cos_f32(angle));
}

/* 1 where u < p, else 0; u has 24 bits, so that a probability of 1 always gives 1. */
static SB_HD double sb_random_bernoulli(const sb_random_params *params, double p, int64_t index) {
    return (double)sb_uniform_f32(sb_random_block(params, index, 0).word[0]) < p ? 1.0 : 0.0;
}

/* The class that maximises logit - ln(-ln u), u being the class's own number (Gumbel-max): no sum
 * over the classes, so no order of one. In f32; ties go to the lower class. */
static SB_HD int64_t sb_random_class(const sb_random_params *params, sb_dtype dtype, const void *logits,
                                     int64_t classes, int64_t row, int64_t index) {
    int64_t best = 0;
    float best_score = 0.0f;
    for (int64_t c = 0; c < classes; c++) {
        float u = sb_uniform_open_f32(sb_random_block(params, index, c).word[0]);
        float logit = (float)sb_number_load(dtype, logits, row * classes + c);
        float score = logit - sb_log_f32(-sb_log_f32(u));
        if (c == 0 || sb_argmax_beats_f32(score, c, best_score, best)) {
            best = c;
            best_score = score;
        }
    }
    return best;
}

#endif
