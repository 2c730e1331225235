/* The element-wise functions of one floating-point argument: each formula once, for f32 and f64.
 *
 * SB_UNARY_<op>(T, S) is the value at x of type T; S is the suffix of T's functions in
 * src/numerics; a and b are the op's parameters, converted to T. Every operator and function in a
 * formula rounds once, in the order written. sb_unary_<op>_f32(x, a, b) and sb_unary_<op>_f64(x, a,
 * b) are what reference and faster kernels share. */
#ifndef SB_OPS_UNARY_FORMULAS_H
#define SB_OPS_UNARY_FORMULAS_H

#include "numerics/convert.h"
#include "numerics/elementary.h"
#include "numerics/minmax.h"
#include "ops/unary_list.h"

/* The sign bit cleared; the sign bit flipped. */
#define SB_UNARY_Abs(T, S) sb_abs_##S(x)
#define SB_UNARY_Neg(T, S) (-x)
/* 1, -1, +0 for both zeros; NaN stays NaN. */
#define SB_UNARY_Sign(T, S) (x > 0 ? (T)1 : x < 0 ? (T)-1 : x == 0 ? (T)0 : x)
#define SB_UNARY_Ceil(T, S) sb_ceil_##S(x)
#define SB_UNARY_Floor(T, S) sb_floor_##S(x)
/* To the nearest integer, ties to even. */
#define SB_UNARY_Round(T, S) sb_round_half_even_##S(x)
#define SB_UNARY_Sqrt(T, S) sb_sqrt_##S(x)
#define SB_UNARY_Reciprocal(T, S) sb_div_##S((T)1, x)
#define SB_UNARY_Exp(T, S) sb_exp_##S(x)
#define SB_UNARY_Log(T, S) sb_log_##S(x)
#define SB_UNARY_Sin(T, S) sb_sin_##S(x)
#define SB_UNARY_Cos(T, S) sb_cos_##S(x)
#define SB_UNARY_Tan(T, S) sb_tan_##S(x)
#define SB_UNARY_Asin(T, S) sb_asin_##S(x)
#define SB_UNARY_Acos(T, S) sb_acos_##S(x)
#define SB_UNARY_Atan(T, S) sb_atan_##S(x)
#define SB_UNARY_Sinh(T, S) sb_sinh_##S(x)
#define SB_UNARY_Cosh(T, S) sb_cosh_##S(x)
#define SB_UNARY_Asinh(T, S) sb_asinh_##S(x)
#define SB_UNARY_Acosh(T, S) sb_acosh_##S(x)
#define SB_UNARY_Atanh(T, S) sb_atanh_##S(x)
#define SB_UNARY_Erf(T, S) sb_erf_##S(x)
#define SB_UNARY_Sigmoid(T, S) sb_sigmoid_##S(x)
#define SB_UNARY_Tanh(T, S) sb_tanh_##S(x)
#define SB_UNARY_Softplus(T, S) sb_softplus_##S(x)
/* x / (1 + |x|) */
#define SB_UNARY_Softsign(T, S) sb_div_##S(x, (T)1 + sb_abs_##S(x))
/* x < 0 ? +0 : x, so that NaN and -0 stay. */
#define SB_UNARY_Relu(T, S) (x < 0 ? (T)0 : x)
/* x < 0 ? a x : x */
#define SB_UNARY_LeakyRelu(T, S) (x < 0 ? a * x : x)
/* x > a ? x : +0 */
#define SB_UNARY_ThresholdedRelu(T, S) (x > a ? x : (T)0)
/* x < 0 ? a expm1(x) : x */
#define SB_UNARY_Elu(T, S) (x < 0 ? a * sb_expm1_##S(x) : x)
/* b (x < 0 ? a expm1(x) : x), a = alpha, b = gamma */
#define SB_UNARY_Selu(T, S) (b * (x < 0 ? a * sb_expm1_##S(x) : x))
/* x < 0 ? a expm1(x / a) : x */
#define SB_UNARY_Celu(T, S) (x < 0 ? a * sb_expm1_##S(sb_div_##S(x, a)) : x)
/* clamp(a x + b, 0, 1), the product rounded before the sum; NaN stays. */
#define SB_UNARY_HardSigmoid(T, S) sb_clamp_unit_##S(a *x + b)
/* x clamp(x (1/6) + 1/2, 0, 1) */
#define SB_UNARY_HardSwish(T, S) (x * sb_clamp_unit_##S((T)(1.0 / 6.0) * x + (T)0.5))
/* x sigmoid(a x) */
#define SB_UNARY_Swish(T, S) (x * sb_sigmoid_##S(a * x))
/* x tanh(softplus(x)) */
#define SB_UNARY_Mish(T, S) (x * sb_tanh_##S(sb_softplus_##S(x)))
/* (x / 2) (1 + erf(x / sqrt 2)), the division as a product */
#define SB_UNARY_Gelu(T, S) ((T)0.5 * x * ((T)1 + sb_erf_##S(x * (T)0.70710678118654752440)))
/* (x / 2) (1 + tanh(sqrt(2 / pi) (x + 0.044715 ((x x) x)))) */
#define SB_UNARY_GeluTanh(T, S)                                                                                        \
    ((T)0.5 * x * ((T)1 + sb_tanh_##S((T)0.79788456080286535588 * (x + (T)0.044715 * (x * x * x)))))
/* x < -a ? x + b : x > a ? x - b : +0, a = lambd, b = bias */
#define SB_UNARY_Shrink(T, S) (x < -a ? x + b : x > a ? x - b : (T)0)

static SB_HD_HOT float sb_clamp_unit_f32(float t) {
    float lower = t < 0.0f ? 0.0f : t;
    return lower > 1.0f ? 1.0f : lower;
}

static SB_HD_HOT double sb_clamp_unit_f64(double t) {
    double lower = t < 0.0 ? 0.0 : t;
    return lower > 1.0 ? 1.0 : lower;
}

/* X(op): all of the above. */
#define SB_UNARY_FORMULAS(X) SB_UNARY_LIGHT_FLOATS(SB_UNARY_ALONE, X) SB_UNARY_HEAVY_FLOATS(SB_UNARY_ALONE, X)

#define SB_DEFINE_UNARY(op)                                                                                            \
    static SB_HD_HOT float sb_unary_##op##_f32(float x, float a, float b) {                                            \
        return SB_UNARY_##op(float, f32);                                                                              \
    }                                                                                                                  \
    static SB_HD_HOT double sb_unary_##op##_f64(double x, double a, double b) {                                        \
        return SB_UNARY_##op(double, f64);                                                                             \
    }
SB_UNARY_FORMULAS(SB_DEFINE_UNARY)
#undef SB_DEFINE_UNARY

#endif
