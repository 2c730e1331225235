/* The error function in f64, at most 1 ulp. */
#ifndef SB_NUMERICS_ERROR_FUNCTION_F64_H
#define SB_NUMERICS_ERROR_FUNCTION_F64_H

#include "extended_exp_log.h"

/* erf(a) = 1 - e^-t with t = -log(1 - erf(a)) = a * (2/sqrt(pi) + a * S(a)), S a polynomial on [0, 6] whose error is
 * weighted by its effect on erf. Near 0 its first coefficients need extra precision. */
static SB_HD double sb_erf_f64(double x) {
    double a = sb_abs_f64(x);
    if (!(a < 6.0)) {
        return x != x ? x : sb_copysign_f64(1.0, x);
    }
    if (a < 0x1p-28) {
        return sb_fma_f64(x, 0x1.20dd750429b6dp+0, x * 0x1.1ae3a914fed80p-56);
    }
    double tail = -0x1.20bcec46a7109p-53;
    tail = sb_fma_f64(tail, a, 0x1.e581eea7ee5cbp-48);
    tail = sb_fma_f64(tail, a, -0x1.7fef567808fecp-43);
    tail = sb_fma_f64(tail, a, 0x1.7ba598f9eec66p-39);
    tail = sb_fma_f64(tail, a, -0x1.0712851111ac1p-35);
    tail = sb_fma_f64(tail, a, 0x1.0f2d776ed5f67p-32);
    tail = sb_fma_f64(tail, a, -0x1.ae1ce070f1576p-30);
    tail = sb_fma_f64(tail, a, 0x1.0b03b38a106a5p-27);
    tail = sb_fma_f64(tail, a, -0x1.0429607c458eep-25);
    tail = sb_fma_f64(tail, a, 0x1.8687c8725c9d6p-24);
    tail = sb_fma_f64(tail, a, -0x1.a69a87d34779bp-23);
    tail = sb_fma_f64(tail, a, 0x1.f7c2884f205f6p-23);
    tail = sb_fma_f64(tail, a, 0x1.a66fa0a00dc9ap-23);
    tail = sb_fma_f64(tail, a, -0x1.a815a15c4bf16p-20);
    tail = sb_fma_f64(tail, a, 0x1.6858af3bab45cp-19);
    tail = sb_fma_f64(tail, a, 0x1.d83faef9d3d9ep-19);
    tail = sb_fma_f64(tail, a, -0x1.f3c5da102d626p-16);
    tail = sb_fma_f64(tail, a, 0x1.0e9ee3871cf4dp-14);
    tail = sb_fma_f64(tail, a, 0x1.b201291fcea05p-16);
    tail = sb_fma_f64(tail, a, -0x1.3564fa62debdfp-11);
    tail = sb_fma_f64(tail, a, 0x1.bca6744d8c9dp-10);
    tail = sb_fma_f64(tail, a, -0x1.b6b684e0ae6dbp-13);
    sb_dd argument = sb_dd_make(a, 0.0);
    sb_dd sum = sb_dd_make(tail, 0.0);
    sum = sb_dd_horner(argument, sum, -0x1.39668594da3c9p-6, -0x1.465549c72985bp-62);
    sum = sb_dd_horner(argument, sum, 0x1.a4f4e2a1b4787p-4, 0x1.b33affc2b714ap-58);
    sum = sb_dd_horner(argument, sum, 0x1.45f306dc9c884p-1, 0x1.0163e7e825694p-55);
    sum = sb_dd_horner(argument, sum, 0x1.20dd750429b6dp+0, 0x1.1ae3a914fed80p-56);
    sb_dd t = sb_dd_multiply_double(sum, -a);
    return sb_copysign_f64(sb_extended_expm1_value(t).high, x);
}

#endif
