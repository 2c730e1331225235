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
#include "support/distributions.h"

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
