/* The element-wise operators of two inputs on stored elements, for the host and for devices:
 *
 *     sb_binary_value_<op>_<type>(x, y)
 *
 * f16 and bf16 are widened, computed in f32 and rounded once. Integers wrap around. Comparisons
 * give 0 or 1. */
#ifndef SB_OPS_BINARY_VALUES_H
#define SB_OPS_BINARY_VALUES_H

#include "numerics/elementary.h"
#include "numerics/minmax.h"
#include "ops/power_formula.h"
#include "ops/type_lists.h"

/* ---- floats: one rounding each ---- */

/* r = fmod(x, y), which is exact; +-0 with the sign of y where r is 0; r + y where r and y have different signs. */
static SB_HD_HOT float sb_floored_remainder_f32(float x, float y) {
    float rest = sb_fmod_f32(x, y);
    float moved = (rest < 0) != (y < 0) ? rest + y : rest;
    return rest == 0 ? sb_copysign_f32(0.0f, y) : rest == rest ? moved : rest;
}

static SB_HD_HOT double sb_floored_remainder_f64(double x, double y) {
    double rest = sb_fmod_f64(x, y);
    double moved = (rest < 0) != (y < 0) ? rest + y : rest;
    return rest == 0 ? sb_copysign_f64(0.0, y) : rest == rest ? moved : rest;
}

#define SB_DEFINE_VALUE(op, suffix, type, value)                                                                       \
    static SB_HD_HOT type sb_binary_value_##op##_##suffix(type left, type right) {                                     \
        return value;                                                                                                  \
    }
/* Comparisons with NaN are false, +0 equals -0. */
#define SB_DEFINE_COMPARISON(op, operator, suffix, type, load)                                                         \
    static SB_HD_HOT uint8_t sb_binary_value_##op##_##suffix(type left, type right) {                                  \
        return load(left) operator load(right);                                                                        \
    }
#define SB_DEFINE_COMPARISONS(suffix, type, load)                                                                      \
    SB_DEFINE_COMPARISON(Equal, ==, suffix, type, load)                                                                \
    SB_DEFINE_COMPARISON(Greater, >, suffix, type, load)                                                               \
    SB_DEFINE_COMPARISON(Less, <, suffix, type, load)                                                                  \
    SB_DEFINE_COMPARISON(GreaterOrEqual, >=, suffix, type, load)                                                       \
    SB_DEFINE_COMPARISON(LessOrEqual, <=, suffix, type, load)
#define SB_DEFINE_VALUES(dtype, suffix, type, real, real_suffix, load, store, unused)                                  \
    SB_DEFINE_VALUE(Add, suffix, type, store(load(left) + load(right)))                                                \
    SB_DEFINE_VALUE(Sub, suffix, type, store(load(left) - load(right)))                                                \
    SB_DEFINE_VALUE(Mul, suffix, type, store(load(left) * load(right)))                                                \
    SB_DEFINE_VALUE(Div, suffix, type, store(sb_div_##real_suffix(load(left), load(right))))                           \
    /* x < 0 ? y x : x */                                                                                              \
    SB_DEFINE_VALUE(PRelu, suffix, type, store(load(left) < 0 ? load(right) * load(left) : load(left)))                \
    SB_DEFINE_VALUE(Mod, suffix, type, store(sb_floored_remainder_##real_suffix(load(left), load(right))))             \
    SB_DEFINE_VALUE(Fmod, suffix, type, store(sb_fmod_##real_suffix(load(left), load(right))))                         \
    /* A NaN wins, +0 > -0. */                                                                                         \
    SB_DEFINE_VALUE(Max, suffix, type, store(sb_max_##real_suffix(load(left), load(right))))                           \
    SB_DEFINE_VALUE(Min, suffix, type, store(sb_min_##real_suffix(load(left), load(right))))                           \
    SB_DEFINE_VALUE(Pow, suffix, type, store(sb_power_##real_suffix(load(left), load(right))))                         \
    SB_DEFINE_COMPARISONS(suffix, type, load)
SB_FLOAT_TYPES(SB_DEFINE_VALUES, )
#undef SB_DEFINE_VALUES

/* ---- integers: modulo 2^bits ---- */

#define SB_DEFINE_VALUES(dtype, suffix, type, wide, unused)                                                                \
    SB_DEFINE_VALUE(Add, suffix, type, (type)((wide)left + (wide)right))                                                   \
    SB_DEFINE_VALUE(Sub, suffix, type, (type)((wide)left - (wide)right))                                                   \
    SB_DEFINE_VALUE(Mul, suffix, type, (type)((wide)left * (wide)right))                                                   \
    SB_DEFINE_VALUE(BitwiseAnd, suffix, type, left &right)                                                                 \
    SB_DEFINE_VALUE(BitwiseOr, suffix, type, left | right)                                                                 \
    SB_DEFINE_VALUE(BitwiseXor, suffix, type, left ^ right)                                                                \
    SB_DEFINE_VALUE(Max, suffix, type, left > right ? left : right)                                                        \
    SB_DEFINE_VALUE(Min, suffix, type, left < right ? left : right)                                                        \
    /* Shifts by the width or more push every bit out, and so do those by less than 0. To the right, the sign moves in:  \
     * gcc, clang and nvcc all shift signed numbers so. */ \
    SB_DEFINE_VALUE(ShiftLeft, suffix, type, (wide)right < 8 * sizeof(type) ? (type)((wide)left << right) : 0)             \
    SB_DEFINE_VALUE(ShiftRight, suffix, type,                                                                              \
                    (wide)right < 8 * sizeof(type) ? (type)(left >> right)                                                 \
                                                   : (type)(left >> (8 * sizeof(type) - 1) >> 1))                          \
    SB_DEFINE_COMPARISONS(suffix, type, SB_SAME)
SB_SIGNED_TYPES(SB_DEFINE_VALUES, )
SB_UNSIGNED_TYPES(SB_DEFINE_VALUES, )
#undef SB_DEFINE_VALUES

/* Quotients are truncated toward zero. The least integer divided by -1 wraps around to itself. A
 * divisor of 0, which the caller has to notice since it is an error, gives 0. */
#define SB_DEFINE_VALUES(dtype, suffix, type, wide, unused)                                                            \
    SB_DEFINE_VALUE(Div, suffix, type,                                                                                 \
                    right == 0    ? 0                                                                                  \
                    : right == -1 ? (type)((wide)0 - (wide)left)                                                       \
                                  : (type)(left / right))                                                              \
    SB_DEFINE_VALUE(Fmod, suffix, type, right == 0 || right == -1 ? 0 : (type)(left % right))                          \
    static SB_HD_HOT type sb_binary_value_Mod_##suffix(type left, type right) {                                        \
        type rest = sb_binary_value_Fmod_##suffix(left, right);                                                        \
        return rest != 0 && (rest < 0) != (right < 0) ? (type)(rest + right) : rest;                                   \
    }                                                                                                                  \
    SB_DEFINE_VALUE(PRelu, suffix, type, left < 0 ? (type)((wide)left * (wide)right) : left)
SB_SIGNED_TYPES(SB_DEFINE_VALUES, )
#undef SB_DEFINE_VALUES

#define SB_DEFINE_VALUES(dtype, suffix, type, wide, unused)                                                            \
    SB_DEFINE_VALUE(Div, suffix, type, right == 0 ? 0 : (type)(left / right))                                          \
    SB_DEFINE_VALUE(Fmod, suffix, type, right == 0 ? 0 : (type)(left % right))                                         \
    SB_DEFINE_VALUE(Mod, suffix, type, right == 0 ? 0 : (type)(left % right))                                          \
    SB_DEFINE_VALUE(PRelu, suffix, type, left)
SB_UNSIGNED_TYPES(SB_DEFINE_VALUES, )
#undef SB_DEFINE_VALUES

/* ---- truth values, which are 0 or 1 ---- */

SB_DEFINE_VALUE(And, bool, uint8_t, left &right)
SB_DEFINE_VALUE(Or, bool, uint8_t, left | right)
SB_DEFINE_VALUE(Xor, bool, uint8_t, left ^ right)
SB_DEFINE_COMPARISON(Equal, ==, bool, uint8_t, SB_SAME)

#undef SB_DEFINE_COMPARISONS
#undef SB_DEFINE_COMPARISON
#undef SB_DEFINE_VALUE

#endif
