/* The element-wise operators of one input on stored elements, for the host and for devices:
 *
 *     sb_unary_value_<op>_<type>(x, a, b)
 *
 * f16 and bf16 are widened, computed in f32 and rounded once. a and b are the operator's parameters. */
#ifndef SB_OPS_UNARY_VALUES_H
#define SB_OPS_UNARY_VALUES_H

#include "ops/type_lists.h"
#include "ops/unary_formulas.h"

#define SB_DEFINE_VALUE(dtype, suffix, type, real, real_suffix, load, store, op)                                       \
    static SB_HD_HOT type sb_unary_value_##op##_##suffix(type x, float a, float b) {                                   \
        return store(sb_unary_##op##_##real_suffix(load(x), (real)a, (real)b));                                        \
    }
#define SB_DEFINE_VALUES(op) SB_FLOAT_TYPES(SB_DEFINE_VALUE, op)
SB_UNARY_FORMULAS(SB_DEFINE_VALUES)
#undef SB_DEFINE_VALUES
#undef SB_DEFINE_VALUE

/* Integers wrap around: the least one is its own negative and its own magnitude. */
#define SB_NEGATIVE(type, wide) ((type)((wide)0 - (wide)x))
#define SB_DEFINE_VALUES(dtype, suffix, type, wide, unused)                                                            \
    static SB_HD_HOT type sb_unary_value_Abs_##suffix(type x, float a, float b) {                                      \
        return x < 0 ? SB_NEGATIVE(type, wide) : x;                                                                    \
    }                                                                                                                  \
    static SB_HD_HOT type sb_unary_value_Neg_##suffix(type x, float a, float b) {                                      \
        return SB_NEGATIVE(type, wide);                                                                                \
    }                                                                                                                  \
    static SB_HD_HOT type sb_unary_value_Sign_##suffix(type x, float a, float b) {                                     \
        return (type)((x > 0) - (x < 0));                                                                              \
    }                                                                                                                  \
    static SB_HD_HOT type sb_unary_value_Relu_##suffix(type x, float a, float b) {                                     \
        return x < 0 ? 0 : x;                                                                                          \
    }
SB_SIGNED_TYPES(SB_DEFINE_VALUES, )
#undef SB_DEFINE_VALUES

#define SB_DEFINE_VALUES(dtype, suffix, type, wide, unused)                                                            \
    static SB_HD_HOT type sb_unary_value_Abs_##suffix(type x, float a, float b) {                                      \
        return x;                                                                                                      \
    }                                                                                                                  \
    static SB_HD_HOT type sb_unary_value_Sign_##suffix(type x, float a, float b) {                                     \
        return x != 0;                                                                                                 \
    }                                                                                                                  \
    static SB_HD_HOT type sb_unary_value_Relu_##suffix(type x, float a, float b) {                                     \
        return x;                                                                                                      \
    }
SB_UNSIGNED_TYPES(SB_DEFINE_VALUES, )
#undef SB_DEFINE_VALUES

/* Shrink is computed in f64 and cut back by the rules of Cast. */
#define SB_CUT_s8 sb_i8_from_f64
#define SB_CUT_s16 sb_i16_from_f64
#define SB_CUT_s32 sb_i32_from_f64
#define SB_CUT_s64 sb_i64_from_f64
#define SB_CUT_u8 sb_u8_from_f64
#define SB_CUT_u16 sb_u16_from_f64
#define SB_CUT_u32 sb_u32_from_f64
#define SB_CUT_u64 sb_u64_from_f64
#define SB_DEFINE_VALUES(dtype, suffix, type, wide, unused)                                                            \
    static SB_HD_HOT type sb_unary_value_BitwiseNot_##suffix(type x, float a, float b) {                               \
        return (type)~x;                                                                                               \
    }                                                                                                                  \
    static SB_HD_HOT type sb_unary_value_Shrink_##suffix(type x, float a, float b) {                                   \
        return SB_CUT_##suffix(sb_unary_Shrink_f64((double)x, (double)a, (double)b));                                  \
    }
SB_SIGNED_TYPES(SB_DEFINE_VALUES, )
SB_UNSIGNED_TYPES(SB_DEFINE_VALUES, )
#undef SB_DEFINE_VALUES

/* Questions about floats; a and b say whether IsInf looks for -inf and for +inf. */
#define SB_DEFINE_VALUES(dtype, suffix, type, real, real_suffix, load, store, unused)                                  \
    static SB_HD_HOT uint8_t sb_unary_value_IsNaN_##suffix(type x, float a, float b) {                                 \
        return sb_bits_is_nan_##real_suffix(load(x)) != 0;                                                             \
    }                                                                                                                  \
    static SB_HD_HOT uint8_t sb_unary_value_IsInf_##suffix(type x, float a, float b) {                                 \
        real value = load(x), infinity = sb_infinity_##real_suffix();                                                  \
        return (a != 0 && value == -infinity) || (b != 0 && value == infinity);                                        \
    }
SB_FLOAT_TYPES(SB_DEFINE_VALUES, )
#undef SB_DEFINE_VALUES

static SB_HD_HOT uint8_t sb_unary_value_Not_bool(uint8_t x, float a, float b) {
    return x == 0;
}

#endif
