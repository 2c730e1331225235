/* Elements of the float dtypes as numbers to compute with: f16, bf16 and f32 as f32, f64 as f64.
 * For the host and for devices. */
#ifndef IV_OPS_REAL_H
#define IV_OPS_REAL_H

#include <invar/dtype.h>

#include "numerics/convert.h"

/** Element `index` of f16, bf16 or f32 elements at `data`, exactly. */
static IV_HD float iv_real_load_f32(iv_dtype dtype, const void *data, int64_t index) {
    if (dtype == IV_F32)
        return ((const float *)data)[index];
    uint16_t half = ((const uint16_t *)data)[index];
    return dtype == IV_F16 ? iv_f16_to_f32(half) : iv_bf16_to_f32(half);
}

/** Stores a number as element `index`, rounded once. */
static IV_HD void iv_real_store_f32(iv_dtype dtype, void *data, int64_t index, float value) {
    if (dtype == IV_F32)
        ((float *)data)[index] = value;
    else
        ((uint16_t *)data)[index] =
            dtype == IV_F16 ? iv_f16_from_f32(value) : iv_bf16_from_f32(value);
}

/** What a number becomes by being stored. */
static IV_HD float iv_real_round_f32(iv_dtype dtype, float value) {
    if (dtype == IV_F32)
        return value;
    return dtype == IV_F16 ? iv_f16_to_f32(iv_f16_from_f32(value))
                           : iv_bf16_to_f32(iv_bf16_from_f32(value));
}

#endif
