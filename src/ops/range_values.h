/* The elements of Range. For the host and for devices. */
#ifndef SB_OPS_RANGE_VALUES_H
#define SB_OPS_RANGE_VALUES_H

#include <samebit/dtype.h>

#include "numerics/convert.h"

typedef struct sb_range {
    sb_dtype dtype;
    int64_t count;
    double start, delta;               /* of the float dtypes */
    uint64_t whole_start, whole_delta; /* of the others */
    int64_t whole_limit;
} sb_range;

/** How many elements a range of integers has: max(0, ceil((limit - start) / delta)), which is below 2^64. `delta` is not 0. */
static SB_HD uint64_t sb_range_length(int64_t start, int64_t limit, int64_t delta) {
    bool ends = delta > 0 ? limit <= start : limit >= start;
    uint64_t span = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    uint64_t step = delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta;
    return ends ? 0 : (span - 1) / step + 1;
}

/** Stores element `index` at `data`: start + index * delta, for floats a product and a sum, each rounded to f32 (f64
 * for f64), and for f16 and bf16 one more rounding to store; integers wrap around. */
static SB_HD_HOT void sb_range_store(const sb_range *range, void *data, int64_t index) {
    float value = (float)range->start + (float)index * (float)range->delta;
    uint64_t whole = range->whole_start + (uint64_t)index * range->whole_delta;
    switch (range->dtype) {
    case SB_F16:
        ((uint16_t *)data)[index] = sb_f16_from_f32(value);
        break;
    case SB_BF16:
        ((uint16_t *)data)[index] = sb_bf16_from_f32(value);
        break;
    case SB_F32:
        ((float *)data)[index] = value;
        break;
    case SB_F64:
        ((double *)data)[index] = range->start + (double)index * range->delta;
        break;
    case SB_S16:
        ((uint16_t *)data)[index] = (uint16_t)whole;
        break;
    case SB_S32:
        ((uint32_t *)data)[index] = (uint32_t)whole;
        break;
    default:
        ((uint64_t *)data)[index] = whole;
        break;
    }
}

#endif
