/* Small types: every code's value from its fields; every f16, every bf16 and the numbers around each boundary of rounding
 * against a search for the nearest code; random f64 for the one rounding; f8e8m0 against powers of two. */
#include "minmax.h"
#include "reference.h"
#include "small.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdbool.h>

/* A small float: how many bits its fields have, and which magnitudes stand for no number. */
typedef struct format {
    const char *name;
    int exponent_bits, fraction_bits, bias;
    int largest, infinity; /* magnitudes; -1: there is no infinity */
    int nan;               /* the one that conversions give; of a type without NaN, -0 */
    bool has_nan, has_minus_zero;
    float (*load)(uint8_t code);
    uint8_t (*store)(float value, int saturate);
} format;

#define FUNCTIONS(type, name, mantissa, bias, largest, beyond, nan, bits, unused)                                      \
    static float load_##type(uint8_t code) {                                                                           \
        return sb_##type##_to_f32(code);                                                                               \
    }                                                                                                                  \
    static uint8_t store_##type(float value, int saturate) {                                                           \
        return sb_##type##_from_f32(value, saturate);                                                                  \
    }
SB_SMALL_FLOATS(FUNCTIONS, )

/* From the formats' own descriptions: "FP8 Formats for Deep Learning", "8-bit Numerical Formats for Deep Neural
 * Networks", and OCP's "Microscaling Formats". */
static const format formats[] = {
    {"f8e4m3fn", 4, 3, 7, 0x7e, -1, 0x7f, true, true, load_f8e4m3fn, store_f8e4m3fn},
    {"f8e4m3fnuz", 4, 3, 8, 0x7f, -1, 0x80, true, false, load_f8e4m3fnuz, store_f8e4m3fnuz},
    {"f8e5m2", 5, 2, 15, 0x7b, 0x7c, 0x7e, true, true, load_f8e5m2, store_f8e5m2},
    {"f8e5m2fnuz", 5, 2, 16, 0x7f, -1, 0x80, true, false, load_f8e5m2fnuz, store_f8e5m2fnuz},
    {"f6e2m3", 2, 3, 1, 0x1f, -1, 0x20, false, true, load_f6e2m3, store_f6e2m3},
    {"f6e3m2", 3, 2, 3, 0x1f, -1, 0x20, false, true, load_f6e3m2, store_f6e3m2},
    {"f4e2m1", 2, 1, 1, 0x07, -1, 0x08, false, true, load_f4e2m1, store_f4e2m1},
};
enum { FORMATS = sizeof formats / sizeof *formats };

static int sign_bit(const format *form) {
    return 1 << (form->exponent_bits + form->fraction_bits);
}

/* The value of a code, by definition. */
static double value_of(const format *form, int code) {
    int magnitude = code & (sign_bit(form) - 1);
    double sign = (code & sign_bit(form)) != 0 ? -1.0 : 1.0;
    if (!form->has_minus_zero && magnitude == 0 && sign < 0)
        return NAN;
    if (magnitude == form->infinity)
        return sign * INFINITY;
    if (magnitude > form->largest)
        return NAN;
    int stored = magnitude >> form->fraction_bits, fraction = magnitude & ((1 << form->fraction_bits) - 1);
    int significand = stored > 0 ? fraction + (1 << form->fraction_bits) : fraction;
    return sign * ldexp((double)significand, (stored > 0 ? stored : 1) - form->bias - form->fraction_bits);
}

/* The nearest code: of two as near, the even one. Behind the largest one more is thought, to round to. */
static int nearest(const format *form, double value, bool saturate) {
    if (isnan(value))
        return form->nan;
    double magnitude = fabs(value);
    int best = 0;
    double step = value_of(form, form->largest) - value_of(form, form->largest - 1);
    for (int code = 1; code <= form->largest + 1 && magnitude != 0.0; code++) {
        double here = code <= form->largest ? value_of(form, code) : value_of(form, form->largest) + step;
        double before = value_of(form, code - 1), middle = (before + here) / 2;
        if (magnitude > middle || (magnitude == middle && code % 2 == 0))
            best = code;
    }
    int sign = signbit(value) ? sign_bit(form) : 0;
    if (best > form->largest) {
        if (saturate || !form->has_nan)
            return form->largest | sign;
        return form->infinity >= 0 ? form->infinity | sign : form->nan;
    }
    return best == 0 && !form->has_minus_zero ? 0 : best | sign;
}

static void check_store(const format *form, float value) {
    for (int saturate = 0; saturate < 2; saturate++) {
        int found = form->store(value, saturate), wanted = nearest(form, value, saturate != 0);
        if (found != wanted)
            fail_msg("%s of %a, saturate %d: %#x, not %#x", form->name, value, saturate, found, wanted);
    }
}

static void test_every_code_loads_exactly(void **state) {
    for (int f = 0; f < FORMATS; f++) {
        const format *form = &formats[f];
        for (int code = 0; code < 256; code++) {
            /* The bits above those of the type count for nothing. */
            double wanted = value_of(form, code & (2 * sign_bit(form) - 1));
            assert_int_equal(sb_bits_canonical_f32(form->load((uint8_t)code)), sb_bits_canonical_f32((float)wanted));
            if (code < 2 * sign_bit(form) && !isnan(wanted) && !isinf(wanted))
                assert_int_equal(form->store(form->load((uint8_t)code), 0), code);
        }
    }
}

static void test_every_half_is_rounded_once(void **state) {
    for (int f = 0; f < FORMATS; f++) {
        for (uint32_t bits = 0; bits <= 0xffff; bits++) {
            check_store(&formats[f], sb_f16_to_f32((uint16_t)bits));
            check_store(&formats[f], sb_bf16_to_f32((uint16_t)bits));
        }
    }
}

/* Each number and each middle of two, and the f32 on either side, with both signs; what f32 has at its ends. */
static void test_boundaries(void **state) {
    static const float ends[] = {0.0f, 0x1p-149f, 0x1p-126f, 0x1.fffffep127f, INFINITY, NAN};
    for (int f = 0; f < FORMATS; f++) {
        const format *form = &formats[f];
        for (int code = 0; code <= form->largest; code++) {
            double here = value_of(form, code);
            double next = code < form->largest ? value_of(form, code + 1) : 2 * here - value_of(form, code - 1);
            float points[2] = {(float)here, (float)((here + next) / 2)};
            for (int i = 0; i < 6; i++) {
                float point = points[i / 3];
                float near = i % 3 == 0   ? nextafterf(point, -INFINITY)
                             : i % 3 == 1 ? point
                                          : nextafterf(point, INFINITY);
                check_store(form, near);
                check_store(form, -near);
            }
        }
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
            check_store(form, ends[i]);
            check_store(form, -ends[i]);
        }
    }
}

/* From f64 by way of f32 rounded to odd: a number that f32 would round to the middle of two codes. */
static void test_no_double_rounding(void **state) {
    for (int f = 0; f < FORMATS; f++) {
        const format *form = &formats[f];
        for (int code = 0; code < form->largest; code++) {
            double middle = (value_of(form, code) + value_of(form, code + 1)) / 2;
            for (int side = -1; side <= 1; side++) {
                double value = middle * (1 + side * 0x1p-50);
                assert_int_equal(form->store(sb_f32_from_f64_to_odd(value), 1), nearest(form, value, true));
            }
        }
    }
}

/* ---- f8e8m0 ---- */

static int power_of_two(double value, bool saturate, int round) {
    double magnitude = fabs(value);
    if (isnan(value))
        return 0xff;
    if (magnitude > 0x1p127)
        return saturate ? 0xfe : 0xff;
    if (magnitude < 0x1p-127)
        return saturate ? 0 : 0xff;
    int below = ilogb(magnitude);
    double low = ldexp(1.0, below);
    bool up = round == SB_ROUND_UP        ? magnitude != low
              : round == SB_ROUND_NEAREST ? magnitude - low >= 2 * low - magnitude
                                          : false;
    return below + 127 + up;
}

static void check_power(float value) {
    for (int rule = 0; rule < 6; rule++) {
        int found = sb_f8e8m0_from_f32(value, rule % 2, rule / 2);
        int wanted = power_of_two(value, rule % 2 == 1, rule / 2);
        if (found != wanted)
            fail_msg("%a, saturate %d, rounding %d: %#x, not %#x", value, rule % 2, rule / 2, found, wanted);
    }
}

static void test_powers_of_two(void **state) {
    for (int code = 0; code < 255; code++) {
        float power = sb_f8e8m0_to_f32((uint8_t)code);
        assert_true(power == ldexpf(1.0f, code - 127));
        float points[] = {power, 1.5f * power};
        for (int i = 0; i < 6; i++) {
            float point = points[i / 3];
            float near = i % 3 == 0 ? nextafterf(point, 0) : i % 3 == 1 ? point : nextafterf(point, INFINITY);
            check_power(near);
            check_power(-near);
        }
    }
    assert_true(isnan(sb_f8e8m0_to_f32(0xff)));
    check_power(0.0f);
    check_power(0x1p-149f);
    check_power(INFINITY);
    check_power(NAN);
    for (uint32_t bits = 0; bits <= 0xffff; bits++) {
        check_power(sb_f16_to_f32((uint16_t)bits));
        check_power(sb_bf16_to_f32((uint16_t)bits));
    }
}

/* ---- integers ---- */

static void test_integers(void **state) {
    for (int code = 0; code < 256; code++) {
        int four = code & 15, two = code & 3;
        assert_int_equal(sb_s4_to_s8((uint8_t)code), four > 7 ? four - 16 : four);
        assert_int_equal(sb_u4_to_s8((uint8_t)code), four);
        assert_int_equal(sb_s2_to_s8((uint8_t)code), two > 1 ? two - 4 : two);
        assert_int_equal(sb_u2_to_s8((uint8_t)code), two);
        assert_int_equal(sb_s4_from_s8((int8_t)code), four);
        assert_int_equal(sb_u4_from_s8((int8_t)code), four);
        assert_int_equal(sb_s2_from_s8((int8_t)code), two);
        assert_int_equal(sb_u2_from_s8((int8_t)code), two);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_loads_exactly),
        cmocka_unit_test(test_every_half_is_rounded_once),
        cmocka_unit_test(test_boundaries),
        cmocka_unit_test(test_no_double_rounding),
        cmocka_unit_test(test_powers_of_two),
        cmocka_unit_test(test_integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
