/* Elementary functions against MPFR on samples: at most 1 unit in the last place, in f32 and f64.
 * The f32 functions are covered completely by `exhaustive`. */
#include "convert.h"
#include "elementary.h"
#include "functions.h"
#include "reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Samples per function and kind; SB_TEST_SAMPLES raises it for a longer run. */
static long sample_count(void) {
    const char *text = getenv("SB_TEST_SAMPLES");
    long count = text != NULL ? strtol(text, NULL, 10) : 0;
    return count > 0 ? count : 4000;
}

typedef struct case_f32 {
    const char *name;
    float (*function)(float);
    sb_reference_function reference;
    double lowest;
    double highest;
} case_f32;

typedef struct case_f64 {
    const char *name;
    double (*function)(double);
    sb_reference_function reference;
    double lowest;
    double highest;
} case_f64;

#define CASE_F32(name, reference, lowest, highest) {#name, sb_##name##_f32, reference, lowest, highest},
#define CASE_F64(name, reference, lowest, highest) {#name, sb_##name##_f64, reference, lowest, highest},

static const case_f32 CASES_F32[] = {SB_TEST_FUNCTIONS(CASE_F32)};
static const case_f64 CASES_F64[] = {SB_TEST_FUNCTIONS(CASE_F64)};

/* Kinds of sample: any bit pattern, uniform over the interesting range, near 1, powers of two times
 * a random significand near 0. */
enum { SAMPLE_KINDS = 4 };

static double uniform(uint64_t *state) {
    return (double)(sb_test_random(state) >> 11) * 0x1p-53;
}

static double sample(int kind, double lowest, double highest, uint64_t *state) {
    double fraction = uniform(state);
    if (kind == 0) {
        return sb_bits_to_f64(sb_test_random(state));
    }
    if (kind == 1) {
        return lowest + (highest - lowest) * fraction;
    }
    if (kind == 2) {
        double magnitude = ldexp(fraction - 0.5, -(int)(sb_test_random(state) % 50));
        return 1.0 + magnitude;
    }
    double small = ldexp(1.0 + fraction, -(int)(sb_test_random(state) % 60));
    return (sb_test_random(state) & 1) != 0 ? small : -small;
}

static const double SPECIAL[] = {0.0,
                                 -0.0,
                                 INFINITY,
                                 -INFINITY,
                                 NAN,
                                 1.0,
                                 -1.0,
                                 0.5,
                                 -0.5,
                                 2.0,
                                 -2.0,
                                 0x1p-149,
                                 -0x1p-149,
                                 0x1p-126,
                                 0x1p-1074,
                                 -0x1p-1074,
                                 0x1p-1022,
                                 0x1.fffffep127,
                                 0x1.fffffffffffffp1023,
                                 -0x1.fffffep127,
                                 3.0,
                                 1024.0,
                                 -1075.0,
                                 -150.0,
                                 128.0,
                                 -0x1.fffffffffffffp1023,
                                 709.782712893384,
                                 709.78271289338409,
                                 -745.13321910194122};
enum { SPECIAL_COUNT = sizeof SPECIAL / sizeof SPECIAL[0] };

static int check_f32(const case_f32 *item, float x, double *worst, float *worst_at) {
    double error = sb_reference_error_of_f32(item->reference, x, item->function(x));
    if (error > *worst) {
        *worst = error;
        *worst_at = x;
    }
    return error <= SB_TEST_ALLOWED_ERROR(item->name);
}

static void test_f32_against_mpfr(void **unused) {
    (void)unused;
    long count = sample_count();
    int failures = 0;
    for (size_t index = 0; index < sizeof CASES_F32 / sizeof CASES_F32[0]; index++) {
        const case_f32 *item = &CASES_F32[index];
        uint64_t state = index;
        double worst = 0.0;
        float worst_at = 0.0f;
        int right = 1;
        for (int special = 0; special < SPECIAL_COUNT; special++) {
            right &= check_f32(item, (float)SPECIAL[special], &worst, &worst_at);
        }
        for (long trial = 0; trial < count; trial++) {
            float any = sb_bits_to_f32((uint32_t)sb_test_random(&state));
            right &= check_f32(item, any, &worst, &worst_at);
            for (int kind = 1; kind < SAMPLE_KINDS; kind++) {
                float x = (float)sample(kind, item->lowest, item->highest, &state);
                right &= check_f32(item, x, &worst, &worst_at);
            }
        }
        printf("%-10s f32 largest error %.4f ulp at %a\n", item->name, worst, (double)worst_at);
        failures += !right;
    }
    assert_int_equal(failures, 0);
}

static int check_f64(const case_f64 *item, double x, double *worst, double *worst_at) {
    double error = sb_reference_error_of_f64(item->reference, x, item->function(x));
    if (error > *worst) {
        *worst = error;
        *worst_at = x;
    }
    return error <= SB_TEST_ALLOWED_ERROR(item->name);
}

static void test_f64_against_mpfr(void **unused) {
    (void)unused;
    long count = sample_count();
    int failures = 0;
    for (size_t index = 0; index < sizeof CASES_F64 / sizeof CASES_F64[0]; index++) {
        const case_f64 *item = &CASES_F64[index];
        uint64_t state = index + 1000;
        double worst = 0.0;
        double worst_at = 0.0;
        int right = 1;
        for (int special = 0; special < SPECIAL_COUNT; special++) {
            right &= check_f64(item, SPECIAL[special], &worst, &worst_at);
        }
        for (long trial = 0; trial < count; trial++) {
            for (int kind = 0; kind < SAMPLE_KINDS; kind++) {
                double x = sample(kind, item->lowest, item->highest, &state);
                right &= check_f64(item, x, &worst, &worst_at);
            }
        }
        printf("%-10s f64 largest error %.4f ulp at %a\n", item->name, worst, worst_at);
        failures += !right;
    }
    assert_int_equal(failures, 0);
}

/* Multiples of pi/2 are where the reduction of trigonometric arguments can lose everything. */
static void test_trigonometric_near_multiples_of_half_pi(void **unused) {
    (void)unused;
    uint64_t state = 7;
    mpfr_t angle;
    mpfr_init2(angle, 1200);
    double hard[] = {0x1.6ac5b262ca1ffp849, 0x1.921fb54442d18p0, 0x1.921fb54442d18p1};
    for (int trial = 0; trial < 3000; trial++) {
        double x = hard[trial % 3];
        if (trial >= 3) {
            mpfr_const_pi(angle, MPFR_RNDN);
            mpfr_div_2ui(angle, angle, 1, MPFR_RNDN);
            double multiple = floor(ldexp(1.0 + uniform(&state), (int)(sb_test_random(&state) % 80)));
            mpfr_mul_d(angle, angle, multiple, MPFR_RNDN);
            x = mpfr_get_d(angle, MPFR_RNDN);
        }
        assert_true(sb_reference_error_of_f64(mpfr_sin, x, sb_sin_f64(x)) <= 1.0);
        assert_true(sb_reference_error_of_f64(mpfr_cos, x, sb_cos_f64(x)) <= 1.0);
        assert_true(sb_reference_error_of_f64(mpfr_tan, x, sb_tan_f64(x)) <= 1.0);
    }
    mpfr_clear(angle);
}

static double pow_error_f32(float x, float y) {
    mpfr_t a, b, exact;
    mpfr_init2(a, 24);
    mpfr_init2(b, 24);
    mpfr_init2(exact, 160);
    mpfr_set_flt(a, x, MPFR_RNDN);
    mpfr_set_flt(b, y, MPFR_RNDN);
    mpfr_pow(exact, a, b, MPFR_RNDN);
    double error = sb_reference_error_f32(sb_pow_f32(x, y), exact);
    mpfr_clears(a, b, exact, (mpfr_ptr)0);
    return error;
}

static double pow_error_f64(double x, double y) {
    mpfr_t a, b, exact;
    mpfr_init2(a, 53);
    mpfr_init2(b, 53);
    mpfr_init2(exact, 160);
    mpfr_set_d(a, x, MPFR_RNDN);
    mpfr_set_d(b, y, MPFR_RNDN);
    mpfr_pow(exact, a, b, MPFR_RNDN);
    double error = sb_reference_error_f64(sb_pow_f64(x, y), exact);
    mpfr_clears(a, b, exact, (mpfr_ptr)0);
    return error;
}

/* Every pair of special values, against MPFR, which follows IEEE 754. */
static void test_pow_special_values(void **unused) {
    (void)unused;
    double values[] = {0.0,
                       -0.0,
                       1.0,
                       -1.0,
                       2.0,
                       -2.0,
                       3.0,
                       -3.0,
                       0.5,
                       -0.5,
                       1.5,
                       -1.5,
                       1e30,
                       -1e30,
                       1e-30,
                       -1e-30,
                       16777215.0,
                       -16777215.0,
                       16777216.0,
                       0x1p-149,
                       -0x1p-149,
                       INFINITY,
                       -INFINITY,
                       NAN,
                       0.999999,
                       1.000001,
                       9007199254740991.0,
                       -9007199254740991.0,
                       1e300,
                       -1e300,
                       5e-324};
    int count = (int)(sizeof values / sizeof values[0]);
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < count; j++) {
            assert_true(pow_error_f32((float)values[i], (float)values[j]) <= 1.0);
            assert_true(pow_error_f64(values[i], values[j]) <= 1.0);
        }
    }
}

static void test_pow_against_mpfr(void **unused) {
    (void)unused;
    long count = sample_count();
    uint64_t state = 99;
    double worst_f32 = 0.0, worst_f64 = 0.0;
    for (long trial = 0; trial < 4 * count; trial++) {
        float x32 = sb_bits_to_f32((uint32_t)sb_test_random(&state) & 0x7fffffffu);
        float y32 = (float)((uniform(&state) - 0.5) * 300.0 / fabs(log2((double)x32)));
        double x64 = sb_bits_to_f64(sb_test_random(&state) & 0x7fffffffffffffffu);
        double y64 = (uniform(&state) - 0.5) * 2150.0 / fabs(log2(x64));
        if (trial % 4 == 1) {
            x32 = 0.5f + (float)uniform(&state);
            y32 = (float)(sb_test_random(&state) % 41) - 20.0f;
            x64 = 0.5 + uniform(&state);
            y64 = (uniform(&state) - 0.5) * 4000.0;
        }
        double error_f32 = pow_error_f32(x32, y32);
        double error_f64 = pow_error_f64(x64, y64);
        worst_f32 = error_f32 > worst_f32 ? error_f32 : worst_f32;
        worst_f64 = error_f64 > worst_f64 ? error_f64 : worst_f64;
    }
    printf("pow        f32 largest error %.4f ulp, f64 %.4f ulp\n", worst_f32, worst_f64);
    assert_true(worst_f32 <= 1.0);
    assert_true(worst_f64 <= 1.0);
}

static void test_powers_of_two_are_exact(void **unused) {
    (void)unused;
    for (int exponent = -149; exponent <= 127; exponent++) {
        assert_true(sb_exp2_f32((float)exponent) == ldexpf(1.0f, exponent));
        assert_true(sb_log2_f32(ldexpf(1.0f, exponent)) == (float)exponent);
    }
    for (int exponent = -1074; exponent <= 1023; exponent++) {
        assert_true(sb_exp2_f64((double)exponent) == ldexp(1.0, exponent));
        assert_true(sb_log2_f64(ldexp(1.0, exponent)) == (double)exponent);
    }
}

static void test_round_half_even(void **unused) {
    (void)unused;
    uint64_t state = 5;
    for (int trial = 0; trial < 200000; trial++) {
        float x = sb_bits_to_f32((uint32_t)sb_test_random(&state));
        float y = ldexpf((float)(int)(sb_test_random(&state) % 2001) - 1000.0f, -1);
        double z = sb_bits_to_f64(sb_test_random(&state));
        if (x == x) {
            assert_int_equal(sb_bits_from_f32(sb_round_half_even_f32(x)), sb_bits_from_f32(rintf(x)));
        }
        assert_int_equal(sb_bits_from_f32(sb_round_half_even_f32(y)), sb_bits_from_f32(rintf(y)));
        if (z == z) {
            assert_int_equal(sb_bits_from_f64(sb_round_half_even_f64(z)), sb_bits_from_f64(rint(z)));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f32_against_mpfr),
        cmocka_unit_test(test_f64_against_mpfr),
        cmocka_unit_test(test_trigonometric_near_multiples_of_half_pi),
        cmocka_unit_test(test_pow_special_values),
        cmocka_unit_test(test_pow_against_mpfr),
        cmocka_unit_test(test_powers_of_two_are_exact),
        cmocka_unit_test(test_round_half_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
