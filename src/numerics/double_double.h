/* Double-double arithmetic: a value is the unevaluated sum high + low with |low| at most half a
 * unit in the last place of high, about 106 significant bits. The inside of the f64 elementary
 * functions. */
#ifndef IV_NUMERICS_DOUBLE_DOUBLE_H
#define IV_NUMERICS_DOUBLE_DOUBLE_H

#include "scalar.h"

typedef struct iv_dd {
    double high;
    double low;
} iv_dd;

static IV_HD iv_dd iv_dd_make(double high, double low) {
    iv_dd result;
    result.high = high;
    result.low = low;
    return result;
}

/* Exact sum, for |a| >= |b| or a = 0 (Dekker). */
static IV_HD iv_dd iv_dd_ordered_sum(double a, double b) {
    double high = a + b;
    return iv_dd_make(high, b - (high - a));
}

/* Exact sum of any two (Knuth). */
static IV_HD iv_dd iv_dd_sum(double a, double b) {
    double high = a + b;
    double b_part = high - a;
    return iv_dd_make(high, (a - (high - b_part)) + (b - b_part));
}

/* Exact product. */
static IV_HD iv_dd iv_dd_product(double a, double b) {
    double high = a * b;
    return iv_dd_make(high, iv_fma_f64(a, b, -high));
}

static IV_HD iv_dd iv_dd_negate(iv_dd a) {
    return iv_dd_make(-a.high, -a.low);
}

/* Multiplication by a power of two. */
static IV_HD iv_dd iv_dd_scale(iv_dd a, double power) {
    return iv_dd_make(a.high * power, a.low * power);
}

static IV_HD iv_dd iv_dd_add(iv_dd a, iv_dd b) {
    iv_dd high = iv_dd_sum(a.high, b.high);
    iv_dd low = iv_dd_sum(a.low, b.low);
    high = iv_dd_ordered_sum(high.high, high.low + low.high);
    return iv_dd_ordered_sum(high.high, high.low + low.low);
}

static IV_HD iv_dd iv_dd_add_double(iv_dd a, double b) {
    iv_dd high = iv_dd_sum(a.high, b);
    return iv_dd_ordered_sum(high.high, high.low + a.low);
}

static IV_HD iv_dd iv_dd_subtract(iv_dd a, iv_dd b) {
    return iv_dd_add(a, iv_dd_negate(b));
}

static IV_HD iv_dd iv_dd_multiply(iv_dd a, iv_dd b) {
    iv_dd product = iv_dd_product(a.high, b.high);
    double cross = iv_fma_f64(a.high, b.low, a.low * b.high);
    return iv_dd_ordered_sum(product.high, product.low + cross);
}

static IV_HD iv_dd iv_dd_multiply_double(iv_dd a, double b) {
    iv_dd product = iv_dd_product(a.high, b);
    return iv_dd_ordered_sum(product.high, iv_fma_f64(a.low, b, product.low));
}

/* a / b to about 2^-102: one quotient, one correction from the remainder. */
static IV_HD iv_dd iv_dd_divide(iv_dd a, iv_dd b) {
    double quotient = iv_div_f64(a.high, b.high);
    iv_dd remainder = iv_dd_subtract(a, iv_dd_multiply_double(b, quotient));
    return iv_dd_ordered_sum(quotient, iv_div_f64(remainder.high, b.high));
}

/* Square root; the root of zero is zero. */
static IV_HD iv_dd iv_dd_sqrt(iv_dd a) {
    double root = iv_sqrt_f64(a.high);
    iv_dd remainder = iv_dd_subtract(a, iv_dd_product(root, root));
    double correction = root > 0.0 ? iv_div_f64(remainder.high, root + root) : 0.0;
    return iv_dd_ordered_sum(root, correction);
}

/* c + a * b: the step of Horner's rule. */
static IV_HD iv_dd iv_dd_horner(iv_dd a, iv_dd b, double c_high, double c_low) {
    return iv_dd_add(iv_dd_make(c_high, c_low), iv_dd_multiply(a, b));
}

#endif
