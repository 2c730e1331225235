/* pow in f64 with the special cases of IEEE 754, at most 1 ulp. */
#ifndef SB_NUMERICS_POWER_F64_H
#define SB_NUMERICS_POWER_F64_H

#include "extended_exp_log.h"
#include "power.h"

/* x^y. The logarithm is good to 2^-70 and |y log x| stays below 800, so the power is good to 2^-60. */
static SB_HD double sb_pow_f64(double x, double y) {
    double result;
    int negate;
    if (sb_power_special(x, y, &result, &negate)) {
        return result;
    }
    sb_dd logarithm = sb_extended_log(sb_dd_make(sb_abs_f64(x), 0.0));
    double estimate = logarithm.high * y;
    if (estimate > 800.0) {
        result = sb_infinity_f64();
    } else if (estimate < -800.0) {
        result = 0.0;
    } else {
        result = sb_extended_exp_round(sb_dd_multiply_double(logarithm, y), 0);
    }
    return negate ? -result : result;
}

#endif
