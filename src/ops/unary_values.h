/* The element-wise operators of one input on stored elements, for the host and for devices:
 *
 *     iv_unary_value_<op>_<type>(x, a, b)
 *
 * f16 and bf16 are widened, computed in f32 and rounded once. a and b are the operator's
 * parameters. */
#ifndef IV_OPS_UNARY_VALUES_H
#define IV_OPS_UNARY_VALUES_H

#include "ops/type_lists.h"
#include "ops/unary_formulas.h"

#define IV_DEFINE_VALUE(dtype, suffix, type, real, real_suffix, load, store, op)                   \
    static IV_HD_HOT type iv_unary_value_##op##_##suffix(type x, float a, float b) {               \
        return store(iv_unary_##op##_##real_suffix(load(x), (real)a, (real)b));                    \
    }
#define IV_DEFINE_VALUES(op) IV_FLOAT_TYPES(IV_DEFINE_VALUE, op)
IV_UNARY_FORMULAS(IV_DEFINE_VALUES)
#undef IV_DEFINE_VALUES
#undef IV_DEFINE_VALUE

/* Integers wrap around: the least one is its own negative and its own magnitude. */
#define IV_NEGATIVE(type, wide) ((type)((wide)0 - (wide)x))
#define IV_DEFINE_VALUES(dtype, suffix, type, wide, unused)                                        \
    static IV_HD_HOT type iv_unary_value_Abs_##suffix(type x, float a, float b) {                  \
        return x < 0 ? IV_NEGATIVE(type, wide) : x;                                                \
    }                                                                                              \
    static IV_HD_HOT type iv_unary_value_Neg_##suffix(type x, float a, float b) {                  \
        return IV_NEGATIVE(type, wide);                                                            \
    }                                                                                              \
    static IV_HD_HOT type iv_unary_value_Sign_##suffix(type x, float a, float b) {                 \
        return (type)((x > 0) - (x < 0));                                                          \
    }                                                                                              \
    static IV_HD_HOT type iv_unary_value_Relu_##suffix(type x, float a, float b) {                 \
        return x < 0 ? 0 : x;                                                                      \
    }
IV_SIGNED_TYPES(IV_DEFINE_VALUES, )
#undef IV_DEFINE_VALUES

#define IV_DEFINE_VALUES(dtype, suffix, type, wide, unused)                                        \
    static IV_HD_HOT type iv_unary_value_Abs_##suffix(type x, float a, float b) {                  \
        return x;                                                                                  \
    }                                                                                              \
    static IV_HD_HOT type iv_unary_value_Sign_##suffix(type x, float a, float b) {                 \
        return x != 0;                                                                             \
    }                                                                                              \
    static IV_HD_HOT type iv_unary_value_Relu_##suffix(type x, float a, float b) {                 \
        return x;                                                                                  \
    }
IV_UNSIGNED_TYPES(IV_DEFINE_VALUES, )
#undef IV_DEFINE_VALUES

/* Shrink is computed in f64 and cut back by the rules of Cast. */
#define IV_CUT_s8 iv_i8_from_f64
#define IV_CUT_s16 iv_i16_from_f64
#define IV_CUT_s32 iv_i32_from_f64
#define IV_CUT_s64 iv_i64_from_f64
#define IV_CUT_u8 iv_u8_from_f64
#define IV_CUT_u16 iv_u16_from_f64
#define IV_CUT_u32 iv_u32_from_f64
#define IV_CUT_u64 iv_u64_from_f64
#define IV_DEFINE_VALUES(dtype, suffix, type, wide, unused)                                        \
    static IV_HD_HOT type iv_unary_value_BitwiseNot_##suffix(type x, float a, float b) {           \
        return (type)~x;                                                                           \
    }                                                                                              \
    static IV_HD_HOT type iv_unary_value_Shrink_##suffix(type x, float a, float b) {               \
        return IV_CUT_##suffix(iv_unary_Shrink_f64((double)x, (double)a, (double)b));              \
    }
IV_SIGNED_TYPES(IV_DEFINE_VALUES, )
IV_UNSIGNED_TYPES(IV_DEFINE_VALUES, )
#undef IV_DEFINE_VALUES

/* Questions about floats; a and b say whether IsInf looks for -inf and for +inf. */
#define IV_DEFINE_VALUES(dtype, suffix, type, real, real_suffix, load, store, unused)              \
    static IV_HD_HOT uint8_t iv_unary_value_IsNaN_##suffix(type x, float a, float b) {             \
        return iv_bits_is_nan_##real_suffix(load(x)) != 0;                                         \
    }                                                                                              \
    static IV_HD_HOT uint8_t iv_unary_value_IsInf_##suffix(type x, float a, float b) {             \
        real value = load(x), infinity = iv_infinity_##real_suffix();                              \
        return (a != 0 && value == -infinity) || (b != 0 && value == infinity);                    \
    }
IV_FLOAT_TYPES(IV_DEFINE_VALUES, )
#undef IV_DEFINE_VALUES

static IV_HD_HOT uint8_t iv_unary_value_Not_bool(uint8_t x, float a, float b) {
    return x == 0;
}

#endif
