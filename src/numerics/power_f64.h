/* pow in f64 with the special cases of IEEE 754, at most 1 ulp. */
#ifndef IV_NUMERICS_POWER_F64_H
#define IV_NUMERICS_POWER_F64_H

#include "extended_exp_log.h"
#include "power.h"

/* x^y. The logarithm is good to 2^-70 and |y log x| stays below 800, so the power is good to 2^-60.
 */
static IV_HD double iv_pow_f64(double x, double y) {
    double result;
    int negate;
    if (iv_power_special(x, y, &result, &negate)) {
        return result;
    }
    iv_dd logarithm = iv_extended_log(iv_dd_make(iv_abs_f64(x), 0.0));
    double estimate = logarithm.high * y;
    if (estimate > 800.0) {
        result = iv_infinity_f64();
    } else if (estimate < -800.0) {
        result = 0.0;
    } else {
        result = iv_extended_exp_round(iv_dd_multiply_double(logarithm, y), 0);
    }
    return negate ? -result : result;
}

#endif
