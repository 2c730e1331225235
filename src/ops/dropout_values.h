/* Which elements Dropout keeps, for the host and for devices. */
#ifndef IV_OPS_DROPOUT_VALUES_H
#define IV_OPS_DROPOUT_VALUES_H

#include "numerics/philox.h"

/* Whether element `index`, in row-major order, stays. */
static IV_HD_HOT int iv_dropout_keeps(uint64_t seed, uint64_t index, double ratio) {
    iv_philox_block counter = {{(uint32_t)index, (uint32_t)(index >> 32), 0, 0}};
    iv_philox_block random = iv_philox4x32_10(counter, (uint32_t)seed, (uint32_t)(seed >> 32));
    return (double)iv_uniform_f32(random.word[0]) >= ratio;
}

/* What it becomes then; else +0. */
static IV_HD_HOT float iv_dropout_value_f32(float x, double ratio) {
    return x * iv_div_f32(1.0f, 1.0f - (float)ratio);
}

static IV_HD_HOT double iv_dropout_value_f64(double x, double ratio) {
    return x * (1.0 / (1.0 - ratio));
}

#endif
