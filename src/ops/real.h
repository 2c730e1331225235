/* Elements of the float dtypes as numbers to compute with: f16, bf16 and f32 as f32, f64 as f64.
 * For the host and for devices. */
#ifndef SB_OPS_REAL_H
#define SB_OPS_REAL_H

#include <samebit/dtype.h>

#include "numerics/convert.h"

/** Element `index` of f16, bf16 or f32 elements at `data`, exactly. */
static SB_HD float sb_real_load_f32(sb_dtype dtype, const void *data, int64_t index) {
    if (dtype == SB_F32)
        return ((const float *)data)[index];
    uint16_t half = ((const uint16_t *)data)[index];
    return dtype == SB_F16 ? sb_f16_to_f32(half) : sb_bf16_to_f32(half);
}

/** Stores a number as element `index`, rounded once. */
static SB_HD void sb_real_store_f32(sb_dtype dtype, void *data, int64_t index, float value) {
    if (dtype == SB_F32)
        ((float *)data)[index] = value;
    else
        ((uint16_t *)data)[index] = dtype == SB_F16 ? sb_f16_from_f32(value) : sb_bf16_from_f32(value);
}

/** What a number becomes by being stored. */
static SB_HD float sb_real_round_f32(sb_dtype dtype, float value) {
    if (dtype == SB_F32)
        return value;
    return dtype == SB_F16 ? sb_f16_to_f32(sb_f16_from_f32(value)) : sb_bf16_to_f32(sb_bf16_from_f32(value));
}

#endif
