/* Exact values from MPFR and distances from them in units in the last place. Not thread-safe: the
 * working variables are shared. */
#ifndef SB_TESTS_NUMERICS_REFERENCE_H
#define SB_TESTS_NUMERICS_REFERENCE_H

#include <mpfr.h>
#include <stdint.h>

typedef int (*sb_reference_function)(mpfr_t result, const mpfr_t x, mpfr_rnd_t rounding);

/* 1 / (1 + e^-x), log(1 + e^x) and 1 / sqrt(x) with the sign rules of IEEE 754 (MPFR's has its own
 * for -0), to the precision of `result`. */
int sb_reference_sigmoid(mpfr_t result, const mpfr_t x, mpfr_rnd_t rounding);
int sb_reference_softplus(mpfr_t result, const mpfr_t x, mpfr_rnd_t rounding);
int sb_reference_rsqrt(mpfr_t result, const mpfr_t x, mpfr_rnd_t rounding);

/* The distance between a result and the exact value, in units in the last place of the exact value
 * (of the format's subnormals at least). 0 where both are NaN, where the exact value overflows to
 * the infinity that was returned, or where both are zero with equal signs; infinity where they
 * disagree in kind. */
double sb_reference_error_f32(float result, const mpfr_t exact);
double sb_reference_error_f64(double result, const mpfr_t exact);

/* The same for function(x). */
double sb_reference_error_of_f32(sb_reference_function function, float x, float result);
double sb_reference_error_of_f64(sb_reference_function function, double x, double result);

/* A reproducible stream of 64-bit words (splitmix64). */
uint64_t sb_test_random(uint64_t *state);

#endif
