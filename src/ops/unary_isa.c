/* The loops of the element-wise operators of one input, compiled once per instruction set.
 * Formulas: unary_formulas.h. */
#include "ops/unary.h"
#include "ops/unary_formulas.h"

/* Values are always inlined: in a file this large the compiler would otherwise call some of them (Erf: 10.8 ns an element instead
 * of 0.8). `parameters` is a copy, so that the compiler knows that no store changes it. */
#define UNARY_LOOP(name, out_type, in_type, function)                                              \
    static void name(void *opaque, int64_t count, char *const *data, const int64_t *steps) {       \
        const iv_unary_params parameters = *(const iv_unary_params *)opaque;                       \
        if (steps[0] == sizeof(out_type) && steps[1] == sizeof(in_type)) {                         \
            out_type *restrict out = (out_type *)(void *)data[0];                                  \
            const in_type *restrict in = (const in_type *)(const void *)data[1];                   \
            for (int64_t i = 0; i < count; i++)                                                    \
                out[i] = function(in[i], parameters);                                              \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < count; i++)                                                        \
            IV_AT(out_type, data[0], steps[0], i) =                                                \
                function(IV_CONST_AT(in_type, data[1], steps[1], i), parameters);                  \
    }

#define FLOAT_LOOP(dtype, suffix, type, real, real_suffix, load, store, op)                        \
    static IV_HD_HOT type value_##op##_##suffix(type x, iv_unary_params p) {                          \
        return store(iv_unary_##op##_##real_suffix(load(x), (real)p.a, (real)p.b));                \
    }                                                                                              \
    UNARY_LOOP(op##_##suffix, type, type, value_##op##_##suffix)
#define FLOAT_LOOPS_OF(op) IV_FLOAT_TYPES(FLOAT_LOOP, op)
IV_UNARY_FORMULAS(FLOAT_LOOPS_OF)

/* Integers wrap around: the least one is its own negative and its own magnitude. Shrink is computed
 * in f64 and cut back by the rules of Cast. */
#define NEGATIVE(type, wide) ((type)((wide)0 - (wide)x))
#define SIGNED_LOOP(dtype, suffix, type, wide, unused)                                             \
    static IV_HD_HOT type value_Abs_##suffix(type x, iv_unary_params p) {                             \
        return x < 0 ? NEGATIVE(type, wide) : x;                                                   \
    }                                                                                              \
    static IV_HD_HOT type value_Neg_##suffix(type x, iv_unary_params p) {                             \
        return NEGATIVE(type, wide);                                                               \
    }                                                                                              \
    static IV_HD_HOT type value_Sign_##suffix(type x, iv_unary_params p) {                            \
        return (type)((x > 0) - (x < 0));                                                          \
    }                                                                                              \
    static IV_HD_HOT type value_Relu_##suffix(type x, iv_unary_params p) {                            \
        return x < 0 ? 0 : x;                                                                      \
    }                                                                                              \
    UNARY_LOOP(Neg_##suffix, type, type, value_Neg_##suffix)
#define UNSIGNED_LOOP(dtype, suffix, type, wide, unused)                                           \
    static IV_HD_HOT type value_Abs_##suffix(type x, iv_unary_params p) {                             \
        return x;                                                                                  \
    }                                                                                              \
    static IV_HD_HOT type value_Sign_##suffix(type x, iv_unary_params p) {                            \
        return x != 0;                                                                             \
    }                                                                                              \
    static IV_HD_HOT type value_Relu_##suffix(type x, iv_unary_params p) {                            \
        return x;                                                                                  \
    }
#define INTEGER_LOOP(dtype, suffix, type, wide, unused)                                            \
    static IV_HD_HOT type value_Not_##suffix(type x, iv_unary_params p) {                             \
        return (type)~x;                                                                           \
    }                                                                                              \
    static IV_HD_HOT type value_Shrink_##suffix(type x, iv_unary_params p) {                          \
        return CUT_##suffix(iv_unary_Shrink_f64((double)x, (double)p.a, (double)p.b));             \
    }                                                                                              \
    UNARY_LOOP(Abs_##suffix, type, type, value_Abs_##suffix)                                       \
    UNARY_LOOP(Sign_##suffix, type, type, value_Sign_##suffix)                                     \
    UNARY_LOOP(Relu_##suffix, type, type, value_Relu_##suffix)                                     \
    UNARY_LOOP(BitwiseNot_##suffix, type, type, value_Not_##suffix)                                \
    UNARY_LOOP(Shrink_##suffix, type, type, value_Shrink_##suffix)
#define CUT_s8 iv_i8_from_f64
#define CUT_s16 iv_i16_from_f64
#define CUT_s32 iv_i32_from_f64
#define CUT_s64 iv_i64_from_f64
#define CUT_u8 iv_u8_from_f64
#define CUT_u16 iv_u16_from_f64
#define CUT_u32 iv_u32_from_f64
#define CUT_u64 iv_u64_from_f64
IV_SIGNED_TYPES(SIGNED_LOOP, )
IV_UNSIGNED_TYPES(UNSIGNED_LOOP, )
IV_SIGNED_TYPES(INTEGER_LOOP, )
IV_UNSIGNED_TYPES(INTEGER_LOOP, )

/* Questions about floats; a and b say whether IsInf looks for -inf and for +inf. */
#define QUESTION_LOOP(dtype, suffix, type, real, real_suffix, load, store, unused)                 \
    static IV_HD_HOT uint8_t value_IsNaN_##suffix(type x, iv_unary_params p) {                        \
        return iv_bits_is_nan_##real_suffix(load(x)) != 0;                                         \
    }                                                                                              \
    static IV_HD_HOT uint8_t value_IsInf_##suffix(type x, iv_unary_params p) {                        \
        real value = load(x), infinity = iv_infinity_##real_suffix();                              \
        return (p.a != 0 && value == -infinity) || (p.b != 0 && value == infinity);                \
    }                                                                                              \
    UNARY_LOOP(IsNaN_##suffix, uint8_t, type, value_IsNaN_##suffix)                                \
    UNARY_LOOP(IsInf_##suffix, uint8_t, type, value_IsInf_##suffix)
IV_FLOAT_TYPES(QUESTION_LOOP, )

static IV_HD_HOT uint8_t value_Truth(uint8_t x, iv_unary_params p) {
    return x == 0;
}
UNARY_LOOP(Not_bool, uint8_t, uint8_t, value_Truth)

#define PLAIN_LOOPS(op) [IV_UNARY_ROW_##op] = {IV_FLOAT_LOOPS(op)},

iv_walk_row *const IV_ISA_NAME(iv_unary_loops)[IV_UNARY_ROWS][IV_DTYPE_COUNT] = {
    IV_UNARY_PLAIN_OPS(PLAIN_LOOPS)[IV_UNARY_ROW_Abs] = {IV_NUMBER_LOOPS(Abs)},
    [IV_UNARY_ROW_Neg] = {IV_FLOAT_LOOPS(Neg), IV_SIGNED_LOOPS(Neg)},
    [IV_UNARY_ROW_Sign] = {IV_NUMBER_LOOPS(Sign)},
    [IV_UNARY_ROW_Relu] = {IV_NUMBER_LOOPS(Relu)},
    [IV_UNARY_ROW_LeakyRelu] = {IV_FLOAT_LOOPS(LeakyRelu)},
    [IV_UNARY_ROW_ThresholdedRelu] = {IV_FLOAT_LOOPS(ThresholdedRelu)},
    [IV_UNARY_ROW_Elu] = {IV_FLOAT_LOOPS(Elu)},
    [IV_UNARY_ROW_Selu] = {IV_FLOAT_LOOPS(Selu)},
    [IV_UNARY_ROW_Celu] = {IV_FLOAT_LOOPS(Celu)},
    [IV_UNARY_ROW_HardSigmoid] = {IV_FLOAT_LOOPS(HardSigmoid)},
    [IV_UNARY_ROW_Swish] = {IV_FLOAT_LOOPS(Swish)},
    [IV_UNARY_ROW_Shrink] = {IV_NUMBER_LOOPS(Shrink)},
    [IV_UNARY_ROW_Gelu] = {IV_FLOAT_LOOPS(Gelu)},
    [IV_UNARY_ROW_IsNaN] = {IV_FLOAT_LOOPS(IsNaN)},
    [IV_UNARY_ROW_IsInf] = {IV_FLOAT_LOOPS(IsInf)},
    [IV_UNARY_ROW_Not] = {[IV_BOOL] = Not_bool},
    [IV_UNARY_ROW_BitwiseNot] = {IV_INTEGER_LOOPS(BitwiseNot)},
    [IV_UNARY_ROW_GeluTanh] = {IV_FLOAT_LOOPS(GeluTanh)},
};
