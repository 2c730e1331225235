/* Which elements Dropout keeps, for the host and for devices. */
#ifndef SB_OPS_DROPOUT_VALUES_H
#define SB_OPS_DROPOUT_VALUES_H

#include "numerics/philox.h"

/* Whether element `index`, in row-major order, stays. */
static SB_HD_HOT int sb_dropout_keeps(uint64_t seed, uint64_t index, double ratio) {
    sb_philox_block counter = {{(uint32_t)index, (uint32_t)(index >> 32), 0, 0}};
    sb_philox_block random = sb_philox4x32_10(counter, (uint32_t)seed, (uint32_t)(seed >> 32));
    return (double)sb_uniform_f32(random.word[0]) >= ratio;
}

/* What it becomes then; else +0. */
static SB_HD_HOT float sb_dropout_value_f32(float x, double ratio) {
    return x * sb_div_f32(1.0f, 1.0f - (float)ratio);
}

static SB_HD_HOT double sb_dropout_value_f64(double x, double ratio) {
    return x * (1.0 / (1.0 - ratio));
}

#endif
