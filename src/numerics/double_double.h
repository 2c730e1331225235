/* Double-double arithmetic: a value is the unevaluated sum high + low with |low| at most half a unit in the last place
 * of high, about 106 significant bits. The inside of the f64 elementary functions. */
#ifndef SB_NUMERICS_DOUBLE_DOUBLE_H
#define SB_NUMERICS_DOUBLE_DOUBLE_H

#include "scalar.h"

typedef struct sb_dd {
    double high;
    double low;
} sb_dd;

static SB_HD sb_dd sb_dd_make(double high, double low) {
    sb_dd result;
    result.high = high;
    result.low = low;
    return result;
}

/* Exact sum, for |a| >= |b| or a = 0 (Dekker). */
static SB_HD sb_dd sb_dd_ordered_sum(double a, double b) {
    double high = a + b;
    return sb_dd_make(high, b - (high - a));
}

/* Exact sum of any two (Knuth). */
static SB_HD sb_dd sb_dd_sum(double a, double b) {
    double high = a + b;
    double b_part = high - a;
    return sb_dd_make(high, (a - (high - b_part)) + (b - b_part));
}

/* Exact product. */
static SB_HD sb_dd sb_dd_product(double a, double b) {
    double high = a * b;
    return sb_dd_make(high, sb_fma_f64(a, b, -high));
}

static SB_HD sb_dd sb_dd_negate(sb_dd a) {
    return sb_dd_make(-a.high, -a.low);
}

/* Multiplication by a power of two. */
static SB_HD sb_dd sb_dd_scale(sb_dd a, double power) {
    return sb_dd_make(a.high * power, a.low * power);
}

static SB_HD sb_dd sb_dd_add(sb_dd a, sb_dd b) {
    sb_dd high = sb_dd_sum(a.high, b.high);
    sb_dd low = sb_dd_sum(a.low, b.low);
    high = sb_dd_ordered_sum(high.high, high.low + low.high);
    return sb_dd_ordered_sum(high.high, high.low + low.low);
}

static SB_HD sb_dd sb_dd_add_double(sb_dd a, double b) {
    sb_dd high = sb_dd_sum(a.high, b);
    return sb_dd_ordered_sum(high.high, high.low + a.low);
}

static SB_HD sb_dd sb_dd_subtract(sb_dd a, sb_dd b) {
    return sb_dd_add(a, sb_dd_negate(b));
}

static SB_HD sb_dd sb_dd_multiply(sb_dd a, sb_dd b) {
    sb_dd product = sb_dd_product(a.high, b.high);
    double cross = sb_fma_f64(a.high, b.low, a.low * b.high);
    return sb_dd_ordered_sum(product.high, product.low + cross);
}

static SB_HD sb_dd sb_dd_multiply_double(sb_dd a, double b) {
    sb_dd product = sb_dd_product(a.high, b);
    return sb_dd_ordered_sum(product.high, sb_fma_f64(a.low, b, product.low));
}

/* a / b to about 2^-102: one quotient, one correction from the remainder. */
static SB_HD sb_dd sb_dd_divide(sb_dd a, sb_dd b) {
    double quotient = sb_div_f64(a.high, b.high);
    sb_dd remainder = sb_dd_subtract(a, sb_dd_multiply_double(b, quotient));
    return sb_dd_ordered_sum(quotient, sb_div_f64(remainder.high, b.high));
}

/* Square root; the root of zero is zero. */
static SB_HD sb_dd sb_dd_sqrt(sb_dd a) {
    double root = sb_sqrt_f64(a.high);
    sb_dd remainder = sb_dd_subtract(a, sb_dd_product(root, root));
    double correction = root > 0.0 ? sb_div_f64(remainder.high, root + root) : 0.0;
    return sb_dd_ordered_sum(root, correction);
}

/* c + a * b: the step of Horner's rule. */
static SB_HD sb_dd sb_dd_horner(sb_dd a, sb_dd b, double c_high, double c_low) {
    return sb_dd_add(sb_dd_make(c_high, c_low), sb_dd_multiply(a, b));
}

#endif
