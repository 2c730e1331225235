/* What the tests of f32 kernels share: awkward values, exact comparison, the machine's instruction sets. */
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
#include "cpu/contraction/gemm_kernels.h"
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

/* The instruction sets of this machine; returns how many. */
static inline int machine_kernels(const sb_gemm_kernels *kernels[3]) {
    static const sb_isa isas[] = {SB_ISA_SCALAR, SB_ISA_AVX2, SB_ISA_AVX512};
    int count = 0;
    for (int i = 0; i < 3; i++) {
        sb_isa isa;
        if (sb_isa_resolve(isas[i], &isa, NULL) == SB_OK)
            kernels[count++] = sb_gemm_f32_kernels(isa);
    }
    return count;
}

/* Something for SB_EPILOGUE_CALL that shows wrong positions and wrong order of steps. */
static inline void scale_by_position(void *context, float *row, int64_t m, int64_t n, int64_t count) {
    const float factor = *(const float *)context;
    for (int64_t i = 0; i < count; i++)
        row[i] = row[i] * factor + (float)(m * 3 + (n + i));
}

/* A random epilogue on an m × n result; its operands go to *operands, which the caller frees. */
static inline sb_epilogue random_epilogue(random_source *source, distribution kind, int64_t m, int64_t n,
                                          float **operands) {
    static float factor = 0.75f;
    const int64_t longest = m > n ? m : n, matrix = m * n * 2;
    float *vectors = random_values(source, kind, 2 * longest + matrix + 1);
    *operands = vectors;
    sb_epilogue epilogue = {.count = (int)random_between(source, 0, 4)};
    for (int s = 0; s < epilogue.count; s++) {
        sb_epilogue_step *step = &epilogue.steps[s];
        *step = (sb_epilogue_step){.kind = (sb_epilogue_kind)random_between(source, 0, SB_EPILOGUE_CALL),
                                   .vector = vectors,
                                   .shift = vectors + longest,
                                   .scalar = random_value(source, kind),
                                   .high = random_value(source, kind),
                                   .call = scale_by_position,
                                   .context = &factor};
        if (step->kind == SB_EPILOGUE_ADD_MATRIX) {
            step->vector = vectors + 2 * longest;
            step->column_stride = random_between(source, 1, 2);
            step->row_stride = n * step->column_stride;
        }
    }
    return epilogue;
}

#endif
