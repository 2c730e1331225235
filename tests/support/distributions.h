/* Random elements for tests of kernels and definitions: what sums, comparisons and conversions get wrong first. */
#ifndef SB_TESTS_DISTRIBUTIONS_H
#define SB_TESTS_DISTRIBUTIONS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "numerics/minmax.h"
#include "ops/real.h"
#include "support/random.h"
#include "tensor/tensor.h"

/* What the elements of a tensor of floats are like. The last two are for tensors of the harness: its make_tensor and number_tensor. */
typedef enum distribution {
    ORDINARY,  /* -1 to 1: sums round at every step */
    CANCELING, /* small integers and zeros of both signs: exact cancellation, sign of zero */
    WIDE,      /* every finite magnitude: overflow, subnormals */
    TINY,      /* subnormals and products that vanish */
    SPECIAL,   /* ordinary ones with a few NaN and infinities */
    DISTRIBUTIONS,
    AWKWARD =
        DISTRIBUTIONS, /* few different values, every magnitude, infinities, NaN, zeros of both signs, subnormals */
    NUMBERS            /* -4 to 4 */
} distribution;

static inline float random_value(random_source *source, distribution kind) {
    uint32_t bits = (uint32_t)random_bits(source);
    float ordinary = (float)(int32_t)bits * 0x1p-31f;
    switch (kind) {
    case CANCELING: {
        static const float values[8] = {0.0f, -0.0f, 1.0f, -1.0f, 2.0f, -2.0f, 0.5f, -0.0f};
        return values[bits % 8];
    }
    case WIDE:
        return isfinite(sb_bits_to_f32(bits)) ? sb_bits_to_f32(bits) : ordinary;
    case TINY:
        return sb_bits_to_f32((bits & 0x807fffffu) | (bits >> 8 & 1 ? 0x20000000u : 0));
    case SPECIAL: {
        static const float values[4] = {INFINITY, -INFINITY, NAN, -0.0f};
        return random_between(source, 0, 40) == 0 ? values[bits % 4] : ordinary;
    }
    default:
        return ordinary;
    }
}

/* Elements of one of the first five; integers are any bits, and truth values 0 or 1. */
static inline void fill_random(random_source *source, distribution kind, sb_tensor *tensor) {
    int64_t count = sb_tensor_elements(tensor);
    for (int64_t i = 0; i < count; i++) {
        float value = random_value(source, kind);
        if (tensor->dtype == SB_F64)
            ((double *)(void *)tensor->data)[i] = (double)value * (1.0 + (double)(random_bits(source) >> 40) * 0x1p-40);
        else if (sb_dtype_is_float(tensor->dtype))
            sb_real_store_f32(tensor->dtype, tensor->data, i, value);
        else
            memcpy(tensor->data + (size_t)i * sb_dtype_size(tensor->dtype),
                   &(uint64_t){random_bits(source) & (tensor->dtype == SB_BOOL ? 1 : UINT64_MAX)},
                   sb_dtype_size(tensor->dtype));
    }
}

#endif
