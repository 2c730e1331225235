/* What the tests of definitions share: awkward values, exact comparison. */
#ifndef SB_TESTS_FLOAT_CASES_H
#define SB_TESTS_FLOAT_CASES_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/allocation.h"
#include "numerics/minmax.h"
#include "support/random.h"

typedef enum distribution {
    ORDINARY,  /* -1 to 1: sums round at every step */
    CANCELING, /* small integers and zeros of both signs: exact cancellation, sign of zero */
    WIDE,      /* every finite magnitude: overflow, subnormals */
    TINY,      /* subnormals and products that vanish */
    SPECIAL,   /* ordinary ones with a few NaN and infinities */
    DISTRIBUTIONS
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

static inline float *random_values(random_source *source, distribution kind, int64_t count) {
    float *values = sb_allocate((size_t)count * sizeof(float));
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++)
        values[i] = random_value(source, kind);
    return values;
}

/* Fails, saying where, unless the `count` floats are the same bits, all NaNs being one. */
static inline void assert_same_floats(const char *what, const float *expected, const float *got, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (sb_bits_canonical_f32(expected[i]) != sb_bits_canonical_f32(got[i]))
            fail_msg("%s: element %lld of %lld is %a, not %a", what, (long long)i, (long long)count, (double)got[i],
                     (double)expected[i]);
}

#endif
