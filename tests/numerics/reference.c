#include "reference.h"

#include <math.h>

enum { PRECISION = 160 };

typedef struct format {
    long lowest_exponent; /* of normal numbers, as 2^e */
    long fraction_bits;
    double largest; /* finite number */
} format;

static const format FORMAT_F32 = {-126, 23, 0x1.fffffep127};
static const format FORMAT_F64 = {-1022, 52, 0x1.fffffffffffffp1023};

int sb_reference_sigmoid(mpfr_t result, const mpfr_t x, mpfr_rnd_t rounding) {
    mpfr_t work;
    mpfr_init2(work, mpfr_get_prec(result) + 64);
    mpfr_neg(work, x, MPFR_RNDN);
    mpfr_exp(work, work, MPFR_RNDN);
    mpfr_add_ui(work, work, 1, MPFR_RNDN);
    int inexact = mpfr_ui_div(result, 1, work, rounding);
    mpfr_clear(work);
    return inexact;
}

int sb_reference_softplus(mpfr_t result, const mpfr_t x, mpfr_rnd_t rounding) {
    /* Beyond this the correction is far below the working precision, and e^x may overflow MPFR. */
    if (mpfr_cmp_ui(x, 1000) > 0) {
        return mpfr_set(result, x, rounding);
    }
    mpfr_t work;
    mpfr_init2(work, mpfr_get_prec(result) + 64);
    mpfr_exp(work, x, MPFR_RNDN);
    int inexact = mpfr_log1p(result, work, rounding);
    mpfr_clear(work);
    return inexact;
}

int sb_reference_rsqrt(mpfr_t result, const mpfr_t x, mpfr_rnd_t rounding) {
    if (mpfr_zero_p(x)) {
        mpfr_set_inf(result, mpfr_signbit(x) ? -1 : 1);
        return 0;
    }
    return mpfr_rec_sqrt(result, x, rounding);
}

/* Compares what is not an ordinary number. Returns whether *error is settled. */
static int compare_kinds(double result, const mpfr_t exact, format form, double *error) {
    *error = INFINITY;
    if (mpfr_nan_p(exact) || isnan(result)) {
        *error = mpfr_nan_p(exact) && isnan(result) ? 0.0 : INFINITY;
        return 1;
    }
    if (isinf(result)) {
        /* An infinity is right when the exact value rounds to it; half a unit more is the tolerance. */
        int same_sign = (result > 0) == (mpfr_sgn(exact) > 0);
        if (same_sign &&
            (mpfr_inf_p(exact) || mpfr_cmp_d(exact, form.largest) >= 0 || mpfr_cmp_d(exact, -form.largest) <= 0)) {
            *error = 0.0;
        }
        return 1;
    }
    if (mpfr_inf_p(exact)) {
        return 1;
    }
    if (mpfr_zero_p(exact)) {
        int same_sign = (signbit(result) != 0) == (mpfr_signbit(exact) != 0);
        *error = result == 0.0 && same_sign ? 0.0 : INFINITY;
        return 1;
    }
    return 0;
}

static double error_in_units(double result, const mpfr_t exact, format form) {
    double error;
    if (compare_kinds(result, exact, form, &error)) {
        return error;
    }
    mpfr_t difference;
    mpfr_init2(difference, PRECISION + 64);
    mpfr_sub_d(difference, exact, result, MPFR_RNDN);
    long exponent = (long)mpfr_get_exp(exact) - 1;
    exponent = exponent < form.lowest_exponent ? form.lowest_exponent : exponent;
    mpfr_mul_2si(difference, difference, form.fraction_bits - exponent, MPFR_RNDN);
    error = fabs(mpfr_get_d(difference, MPFR_RNDA));
    mpfr_clear(difference);
    /* A result with the wrong sign is wrong, however small. */
    return (signbit(result) != 0) == (mpfr_signbit(exact) != 0) ? error : INFINITY;
}

double sb_reference_error_f32(float result, const mpfr_t exact) {
    return error_in_units((double)result, exact, FORMAT_F32);
}

double sb_reference_error_f64(double result, const mpfr_t exact) {
    return error_in_units(result, exact, FORMAT_F64);
}

double sb_reference_error_of_f32(sb_reference_function function, float x, float result) {
    mpfr_t argument, exact;
    mpfr_init2(argument, 24);
    mpfr_init2(exact, PRECISION);
    mpfr_set_flt(argument, x, MPFR_RNDN);
    function(exact, argument, MPFR_RNDN);
    double error = sb_reference_error_f32(result, exact);
    mpfr_clears(argument, exact, (mpfr_ptr)0);
    return error;
}

double sb_reference_error_of_f64(sb_reference_function function, double x, double result) {
    mpfr_t argument, exact;
    mpfr_init2(argument, 53);
    mpfr_init2(exact, PRECISION);
    mpfr_set_d(argument, x, MPFR_RNDN);
    function(exact, argument, MPFR_RNDN);
    double error = sb_reference_error_f64(result, exact);
    mpfr_clears(argument, exact, (mpfr_ptr)0);
    return error;
}

uint64_t sb_test_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
