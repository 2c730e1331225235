/* Conversions between scalar types: every 16-bit pattern, every rounding boundary, and random
 * values against an evaluation by scaling and rint. */
#include "convert.h"
#include "minmax.h"
#include "reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>

/* A 16-bit format: 1 sign bit, then exponent and fraction. */
typedef struct format {
    int fraction_bits;
    int bias;
    uint16_t infinity;
    uint16_t nan;
} format;

static const format F16 = {10, 15, 0x7c00, 0x7e00};
static const format BF16 = {7, 127, 0x7f80, 0x7fc0};

/* The value of a pattern, by definition. */
static double value_of(uint16_t bits, format form) {
    int magnitude = bits & 0x7fff;
    double sign = (bits & 0x8000) ? -1.0 : 1.0;
    if (magnitude >= form.infinity) {
        return magnitude == form.infinity ? sign * INFINITY : NAN;
    }
    int stored = magnitude >> form.fraction_bits;
    int fraction = magnitude & ((1 << form.fraction_bits) - 1);
    int significand = stored > 0 ? fraction + (1 << form.fraction_bits) : fraction;
    int exponent = (stored > 0 ? stored : 1) - form.bias - form.fraction_bits;
    return sign * ldexp((double)significand, exponent);
}

/* The pattern nearest to a value: scale so that the unit in the last place is 1, and use rint. */
static uint16_t nearest(double value, format form) {
    if (isnan(value)) {
        return form.nan;
    }
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double magnitude = fabs(value);
    if (magnitude == 0.0 || isinf(magnitude)) {
        return (uint16_t)(sign | (magnitude == 0.0 ? 0 : form.infinity));
    }
    int exponent = ilogb(magnitude);
    exponent = exponent < 1 - form.bias ? 1 - form.bias : exponent;
    exponent = exponent > form.bias + 2 ? form.bias + 2 : exponent;
    double units = rint(ldexp(magnitude, form.fraction_bits - exponent));
    double limit = ldexp(1.0, form.bias + 1);
    if (ldexp(units, exponent - form.fraction_bits) >= limit) {
        return (uint16_t)(sign | form.infinity);
    }
    /* Adding the units to the exponent field carries as the encoding does. */
    int field = (exponent + form.bias - 1) << form.fraction_bits;
    return (uint16_t)(sign | (field + (int)units));
}

static void assert_same_f32(float actual, double expected) {
    assert_int_equal(sb_bits_canonical_f32(actual), sb_bits_canonical_f32((float)expected));
}

static void test_every_16_bit_pattern_loads_exactly(void **unused) {
    (void)unused;
    for (uint32_t bits = 0; bits <= 0xffff; bits++) {
        uint16_t pattern = (uint16_t)bits;
        assert_same_f32(sb_f16_to_f32(pattern), value_of(pattern, F16));
        assert_same_f32(sb_bf16_to_f32(pattern), value_of(pattern, BF16));
        assert_int_equal(sb_f16_from_f32(sb_f16_to_f32(pattern)), sb_bits_canonical_f16(pattern));
        assert_int_equal(sb_bf16_from_f32(sb_bf16_to_f32(pattern)), sb_bits_canonical_bf16(pattern));
    }
}

static void check_store_f64(double x) {
    assert_int_equal(sb_f16_from_f64(x), nearest(x, F16));
    assert_int_equal(sb_bf16_from_f64(x), nearest(x, BF16));
}

static void check_store(float x) {
    assert_int_equal(sb_f16_from_f32(x), nearest((double)x, F16));
    assert_int_equal(sb_bf16_from_f32(x), nearest((double)x, BF16));
    check_store_f64((double)x);
}

/* Around every midpoint between neighbours, where the tie rule and double rounding show. */
static void check_boundaries(format form) {
    for (uint32_t bits = 0; bits < form.infinity; bits++) {
        double low = value_of((uint16_t)bits, form);
        double high = bits + 1u == form.infinity ? ldexp(1.0, form.bias + 1) : value_of((uint16_t)(bits + 1), form);
        double middle = 0.5 * low + 0.5 * high;
        float narrow = (float)middle;
        check_store(narrow);
        check_store(-narrow);
        check_store(nextafterf(narrow, 0.0f));
        check_store(nextafterf(narrow, INFINITY));
        check_store_f64(nextafter(middle, 0.0));
        check_store_f64(-nextafter(middle, INFINITY));
    }
}

static void test_every_rounding_boundary(void **unused) {
    (void)unused;
    check_boundaries(F16);
    check_boundaries(BF16);
}

static void test_random_stores(void **unused) {
    (void)unused;
    uint64_t state = 1;
    for (int trial = 0; trial < 1000000; trial++) {
        uint64_t bits = sb_test_random(&state);
        check_store(sb_bits_to_f32((uint32_t)bits));
        check_store_f64(sb_bits_to_f64(bits));
        /* Exponents of the f16 range. */
        check_store_f64(ldexp(1.0 + (double)(bits >> 12) * 0x1p-52, (int)(bits % 48) - 28));
    }
}

/* Integers to 16-bit floats round once, also beyond 2^53. */
static void test_wide_integers_round_once(void **unused) {
    (void)unused;
    /* 2^60 + 2^52 is a tie for bf16; one more must round up, which a stop at f64 or f32 would lose. */
    int64_t tie = ((int64_t)1 << 60) + ((int64_t)1 << 52);
    assert_int_equal(sb_bf16_from_i64(tie), 0x5d80);
    assert_int_equal(sb_bf16_from_i64(tie + 1), 0x5d81);
    assert_int_equal(sb_bf16_from_i64(-tie - 1), 0xdd81);
    assert_int_equal(sb_bf16_from_u64((uint64_t)tie * 8 + 1), 0x5f01);
    assert_int_equal(sb_f16_from_i64(2049), 0x6800);
    assert_int_equal(sb_f16_from_i64(2051), 0x6802);
    assert_int_equal(sb_f16_from_i64(65519), 0x7bff);
    assert_int_equal(sb_f16_from_i64(65520), 0x7c00);
    assert_int_equal(sb_f16_from_i64(INT64_MIN), 0xfc00);
    assert_int_equal(sb_f16_from_u64(UINT64_MAX), 0x7c00);
    assert_int_equal(sb_bf16_from_u64(UINT64_MAX), 0x5f80);
    assert_int_equal(sb_f16_from_i64(0), 0);
    uint64_t state = 2;
    for (int trial = 0; trial < 200000; trial++) {
        int64_t small = (int64_t)(sb_test_random(&state) >> 11) >> (sb_test_random(&state) % 50);
        assert_int_equal(sb_f16_from_i64(-small), nearest((double)-small + 0.0, F16));
        assert_int_equal(sb_bf16_from_u64((uint64_t)small), nearest((double)small, BF16));
    }
}

static void test_floats_to_integers(void **unused) {
    (void)unused;
    assert_int_equal(sb_i8_from_f32(127.9f), 127);
    assert_int_equal(sb_i8_from_f32(128.0f), 127);
    assert_int_equal(sb_i8_from_f32(-128.9f), -128);
    assert_int_equal(sb_i8_from_f32(-1e9f), -128);
    assert_int_equal(sb_i8_from_f32(-0.99f), 0);
    assert_int_equal(sb_u8_from_f32(-0.99f), 0);
    assert_int_equal(sb_u8_from_f32(-5.0f), 0);
    assert_int_equal(sb_u8_from_f32(255.99f), 255);
    assert_int_equal(sb_u8_from_f32(INFINITY), 255);
    assert_int_equal(sb_i16_from_f32(40000.0f), 32767);
    assert_int_equal(sb_u16_from_f32(70000.0f), 65535);
    assert_int_equal(sb_i32_from_f32(2147483648.0f), INT32_MAX);
    assert_int_equal(sb_i32_from_f64(2147483646.9), 2147483646);
    assert_int_equal(sb_i32_from_f32(-INFINITY), INT32_MIN);
    assert_int_equal(sb_u32_from_f32(4294967296.0f), UINT32_MAX);
    assert_true(sb_i64_from_f32(9223372036854775808.0f) == INT64_MAX);
    assert_true(sb_i64_from_f64(-9223372036854775808.0) == INT64_MIN);
    assert_true(sb_i64_from_f64(9223372036854774784.0) == 9223372036854774784);
    assert_true(sb_i64_from_f64(-1.5) == -1);
    assert_true(sb_u64_from_f64(18446744073709551616.0) == UINT64_MAX);
    assert_true(sb_u64_from_f64(18446744073709549568.0) == 18446744073709549568u);
    assert_true(sb_u64_from_f64(9223372036854775808.0) == 9223372036854775808u);
    assert_true(sb_u64_from_f64(-0.5) == 0 && sb_u64_from_f64(-7.0) == 0);
    assert_true(sb_i64_from_f32(NAN) == 0 && sb_u64_from_f32(NAN) == 0);
    assert_int_equal(sb_i32_from_f32(NAN), 0);
    assert_int_equal(sb_u32_from_f64(NAN), 0);
    assert_int_equal(sb_i8_from_f64(NAN), 0);
    assert_int_equal(sb_bool_from_f32(NAN), 1);
    assert_int_equal(sb_bool_from_f32(-0.0f), 0);
    assert_int_equal(sb_bool_from_f32(0x1p-149f), 1);
}

static void test_random_floats_to_integers(void **unused) {
    (void)unused;
    uint64_t state = 3;
    for (int trial = 0; trial < 500000; trial++) {
        double x = ldexp((double)(int64_t)sb_test_random(&state), -(int)(sb_test_random(&state) % 80));
        double whole = trunc(x);
        assert_true(sb_i64_from_f64(x) == (whole >= 0x1p63 ? INT64_MAX : (int64_t)whole));
        assert_true((double)sb_i32_from_f64(x) == fmin(fmax(whole, -2147483648.0), 2147483647.0));
        assert_true((double)sb_i16_from_f64(x) == fmin(fmax(whole, -32768.0), 32767.0));
        assert_true((double)sb_u8_from_f64(x) == fmin(fmax(whole, 0.0), 255.0));
    }
}

static void test_maximum_and_minimum(void **unused) {
    (void)unused;
    const float ascending[] = {-INFINITY, -1.0f, -0x1p-149f, -0.0f, 0.0f, 0x1p-149f, 1.0f, INFINITY};
    int count = (int)(sizeof ascending / sizeof ascending[0]);
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < count; j++) {
            float larger = ascending[i > j ? i : j];
            float smaller = ascending[i < j ? i : j];
            float a = ascending[i], b = ascending[j];
            assert_int_equal(sb_bits_from_f32(sb_max_f32(a, b)), sb_bits_from_f32(larger));
            assert_int_equal(sb_bits_from_f32(sb_min_f32(a, b)), sb_bits_from_f32(smaller));
            double max = sb_max_f64((double)a, (double)b), min = sb_min_f64((double)a, (double)b);
            assert_true(sb_bits_from_f64(max) == sb_bits_from_f64((double)larger));
            assert_true(sb_bits_from_f64(min) == sb_bits_from_f64((double)smaller));
            assert_int_equal(sb_argmax_beats_f32(a, 5, b, 9), i >= j);
            assert_int_equal(sb_argmax_beats_f32(a, 9, b, 5), i > j);
            assert_int_equal(sb_argmin_beats_f64((double)a, 5, (double)b, 9), i <= j);
            assert_int_equal(sb_argmin_beats_f32(a, 9, b, 5), i < j);
        }
        float nan = sb_bits_to_f32(0xffc12345u);
        assert_int_equal(sb_bits_from_f32(sb_max_f32(nan, ascending[i])), 0x7fc00000);
        assert_int_equal(sb_bits_from_f32(sb_max_f32(ascending[i], nan)), 0x7fc00000);
        assert_int_equal(sb_bits_from_f32(sb_min_f32(nan, ascending[i])), 0x7fc00000);
        assert_int_equal(sb_bits_from_f32(sb_min_f32(ascending[i], nan)), 0x7fc00000);
        assert_true(isnan(sb_max_f64(NAN, (double)ascending[i])));
        assert_true(isnan(sb_min_f64((double)ascending[i], NAN)));
        assert_int_equal(sb_argmax_beats_f32(nan, 9, ascending[i], 5), 1);
        assert_int_equal(sb_argmin_beats_f32(nan, 9, ascending[i], 5), 1);
        assert_int_equal(sb_argmax_beats_f64(NAN, 9, NAN, 5), 0);
        assert_int_equal(sb_argmin_beats_f64(NAN, 5, NAN, 9), 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_16_bit_pattern_loads_exactly),
        cmocka_unit_test(test_every_rounding_boundary),
        cmocka_unit_test(test_random_stores),
        cmocka_unit_test(test_wide_integers_round_once),
        cmocka_unit_test(test_floats_to_integers),
        cmocka_unit_test(test_random_floats_to_integers),
        cmocka_unit_test(test_maximum_and_minimum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
