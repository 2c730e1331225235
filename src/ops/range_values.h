/* The elements of Range. For the host and for devices. */
#ifndef IV_OPS_RANGE_VALUES_H
#define IV_OPS_RANGE_VALUES_H

#include <invar/dtype.h>

#include "numerics/convert.h"

typedef struct iv_range {
    iv_dtype dtype;
    int64_t count;
    double start, delta;               /* of the float dtypes */
    uint64_t whole_start, whole_delta; /* of the others */
} iv_range;

/** Stores element `index` at `data`: start + index * delta, for floats a product and a sum, each
 * rounded to f32 (f64 for f64), and for f16 and bf16 one more rounding to store; integers wrap
 * around. */
static IV_HD void iv_range_store(const iv_range *range, void *data, int64_t index) {
    float value = (float)range->start + (float)index * (float)range->delta;
    uint64_t whole = range->whole_start + (uint64_t)index * range->whole_delta;
    switch (range->dtype) {
    case IV_F16:
        ((uint16_t *)data)[index] = iv_f16_from_f32(value);
        break;
    case IV_BF16:
        ((uint16_t *)data)[index] = iv_bf16_from_f32(value);
        break;
    case IV_F32:
        ((float *)data)[index] = value;
        break;
    case IV_F64:
        ((double *)data)[index] = range->start + (double)index * range->delta;
        break;
    case IV_S16:
        ((uint16_t *)data)[index] = (uint16_t)whole;
        break;
    case IV_S32:
        ((uint32_t *)data)[index] = (uint32_t)whole;
        break;
    default:
        ((uint64_t *)data)[index] = whole;
        break;
    }
}

#endif
