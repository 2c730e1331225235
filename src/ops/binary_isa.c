/* The loops of the element-wise operators of two inputs, compiled once per instruction set. */
#include "numerics/elementary.h"
#include "numerics/minmax.h"
#include "ops/binary.h"
#include "ops/power_formula.h"

/* Floats: one rounding each. Comparisons with NaN are false, +0 equals -0. */
#define FLOAT_Add(x, y) ((x) + (y))
#define FLOAT_Sub(x, y) ((x) - (y))
#define FLOAT_Mul(x, y) ((x) * (y))
#define FLOAT_Div(x, y) ((x) / (y))
/* x < 0 ? y x : x */
#define FLOAT_PRelu(x, y) ((x) < 0 ? (y) * (x) : (x))
#define ANY_Equal(x, y) ((x) == (y))
#define ANY_Greater(x, y) ((x) > (y))
#define ANY_Less(x, y) ((x) < (y))
#define ANY_GreaterOrEqual(x, y) ((x) >= (y))
#define ANY_LessOrEqual(x, y) ((x) <= (y))

/* The remainder of the truncated quotient: exact, so every correct fmod gives these bits. */
static inline float truncated_remainder_f32(float x, float y) {
    return __builtin_fmodf(x, y);
}
static inline double truncated_remainder_f64(double x, double y) {
    return __builtin_fmod(x, y);
}
/* r = fmod(x, y); +-0 with the sign of y where r is 0; r + y where r and y have different signs. */
static inline float floored_remainder_f32(float x, float y) {
    float rest = truncated_remainder_f32(x, y);
    float moved = (rest < 0) != (y < 0) ? rest + y : rest;
    return rest == 0 ? iv_copysign_f32(0.0f, y) : rest == rest ? moved : rest;
}
static inline double floored_remainder_f64(double x, double y) {
    double rest = truncated_remainder_f64(x, y);
    double moved = (rest < 0) != (y < 0) ? rest + y : rest;
    return rest == 0 ? iv_copysign_f64(0.0, y) : rest == rest ? moved : rest;
}

#define FLOAT_FUNCTION(op, suffix, type, load, store, value)                                       \
    static inline type op##_of_##suffix(type left, type right) {                                   \
        return store(value);                                                                       \
    }                                                                                              \
    IV_BINARY_LOOP(op##_##suffix, iv_binary_context, type, type, type, op##_of_##suffix)
#define FLOAT_QUESTION(op, suffix, type, load)                                                     \
    static inline uint8_t op##_of_##suffix(type left, type right) {                                \
        return ANY_##op(load(left), load(right));                                                  \
    }                                                                                              \
    IV_BINARY_LOOP(op##_##suffix, iv_binary_context, uint8_t, type, type, op##_of_##suffix)
#define FLOAT_LOOPS(dtype, suffix, type, real, real_suffix, load, store, unused)                   \
    FLOAT_FUNCTION(Add, suffix, type, load, store, FLOAT_Add(load(left), load(right)))             \
    FLOAT_FUNCTION(Sub, suffix, type, load, store, FLOAT_Sub(load(left), load(right)))             \
    FLOAT_FUNCTION(Mul, suffix, type, load, store, FLOAT_Mul(load(left), load(right)))             \
    FLOAT_FUNCTION(Div, suffix, type, load, store, FLOAT_Div(load(left), load(right)))             \
    FLOAT_FUNCTION(PRelu, suffix, type, load, store, FLOAT_PRelu(load(left), load(right)))         \
    FLOAT_FUNCTION(Mod, suffix, type, load, store,                                                 \
                   floored_remainder_##real_suffix(load(left), load(right)))                       \
    FLOAT_FUNCTION(Fmod, suffix, type, load, store,                                                \
                   truncated_remainder_##real_suffix(load(left), load(right)))                     \
    FLOAT_QUESTION(Equal, suffix, type, load)                                                      \
    FLOAT_QUESTION(Greater, suffix, type, load)                                                    \
    FLOAT_QUESTION(Less, suffix, type, load)                                                       \
    FLOAT_QUESTION(GreaterOrEqual, suffix, type, load)                                             \
    FLOAT_QUESTION(LessOrEqual, suffix, type, load)
IV_FLOAT_TYPES(FLOAT_LOOPS, )

/* Integers: modulo 2^bits. */
#define INTEGER_LOOPS(dtype, suffix, type, wide, unused)                                           \
    static inline type Add_of_##suffix(type x, type y) {                                           \
        return (type)((wide)x + (wide)y);                                                          \
    }                                                                                              \
    static inline type Sub_of_##suffix(type x, type y) {                                           \
        return (type)((wide)x - (wide)y);                                                          \
    }                                                                                              \
    static inline type Mul_of_##suffix(type x, type y) {                                           \
        return (type)((wide)x * (wide)y);                                                          \
    }                                                                                              \
    static inline type And_of_##suffix(type x, type y) {                                           \
        return x & y;                                                                              \
    }                                                                                              \
    static inline type Or_of_##suffix(type x, type y) {                                            \
        return x | y;                                                                              \
    }                                                                                              \
    static inline type Xor_of_##suffix(type x, type y) {                                           \
        return x ^ y;                                                                              \
    }                                                                                              \
    IV_BINARY_LOOP(Add_##suffix, iv_binary_context, type, type, type, Add_of_##suffix)             \
    IV_BINARY_LOOP(Sub_##suffix, iv_binary_context, type, type, type, Sub_of_##suffix)             \
    IV_BINARY_LOOP(Mul_##suffix, iv_binary_context, type, type, type, Mul_of_##suffix)             \
    IV_BINARY_LOOP(BitwiseAnd_##suffix, iv_binary_context, type, type, type, And_of_##suffix)      \
    IV_BINARY_LOOP(BitwiseOr_##suffix, iv_binary_context, type, type, type, Or_of_##suffix)        \
    IV_BINARY_LOOP(BitwiseXor_##suffix, iv_binary_context, type, type, type, Xor_of_##suffix)      \
    IV_BINARY_LOOP(Equal_##suffix, iv_binary_context, uint8_t, type, type, ANY_Equal)              \
    IV_BINARY_LOOP(Greater_##suffix, iv_binary_context, uint8_t, type, type, ANY_Greater)          \
    IV_BINARY_LOOP(Less_##suffix, iv_binary_context, uint8_t, type, type, ANY_Less)                \
    IV_BINARY_LOOP(GreaterOrEqual_##suffix, iv_binary_context, uint8_t, type, type,                \
                   ANY_GreaterOrEqual)                                                             \
    IV_BINARY_LOOP(LessOrEqual_##suffix, iv_binary_context, uint8_t, type, type, ANY_LessOrEqual)

IV_SIGNED_TYPES(INTEGER_LOOPS, )
IV_UNSIGNED_TYPES(INTEGER_LOOPS, )

/* Quotients are truncated toward zero. A divisor of 0 is noted, and reported once the walk is over.
 * The least integer divided by -1 wraps around to itself. */
#define DIVISION_LOOP(name, type, function)                                                        \
    static void name(void *opaque, int64_t count, char *const *data, const int64_t *steps) {       \
        for (int64_t i = 0; i < count; i++)                                                        \
            IV_AT(type, data[0], steps[0], i) =                                                    \
                function(IV_CONST_AT(type, data[1], steps[1], i),                                  \
                         IV_CONST_AT(type, data[2], steps[2], i), (iv_binary_context *)opaque);    \
    }
#define DIVISION_LOOPS(suffix, type)                                                               \
    DIVISION_LOOP(Div_##suffix, type, divide_##suffix)                                             \
    DIVISION_LOOP(Mod_##suffix, type, floored_##suffix)                                            \
    DIVISION_LOOP(Fmod_##suffix, type, truncated_##suffix)                                         \
    IV_BINARY_LOOP(PRelu_##suffix, iv_binary_context, type, type, type, prelu_##suffix)
#define SIGNED_DIVISION(dtype, suffix, type, wide, unused)                                         \
    static inline type divide_##suffix(type x, type y, iv_binary_context *context) {               \
        context->divided_by_zero |= y == 0;                                                        \
        return y == 0 ? 0 : y == -1 ? (type)((wide)0 - (wide)x) : (type)(x / y);                   \
    }                                                                                              \
    static inline type truncated_##suffix(type x, type y, iv_binary_context *context) {            \
        context->divided_by_zero |= y == 0;                                                        \
        return y == 0 || y == -1 ? 0 : (type)(x % y);                                              \
    }                                                                                              \
    static inline type floored_##suffix(type x, type y, iv_binary_context *context) {              \
        type rest = truncated_##suffix(x, y, context);                                             \
        return rest != 0 && (rest < 0) != (y < 0) ? (type)(rest + y) : rest;                       \
    }                                                                                              \
    static inline type prelu_##suffix(type x, type y) {                                            \
        return x < 0 ? (type)((wide)x * (wide)y) : x;                                              \
    }                                                                                              \
    DIVISION_LOOPS(suffix, type)
#define UNSIGNED_DIVISION(dtype, suffix, type, wide, unused)                                       \
    static inline type divide_##suffix(type x, type y, iv_binary_context *context) {               \
        context->divided_by_zero |= y == 0;                                                        \
        return y == 0 ? 0 : (type)(x / y);                                                         \
    }                                                                                              \
    static inline type truncated_##suffix(type x, type y, iv_binary_context *context) {            \
        context->divided_by_zero |= y == 0;                                                        \
        return y == 0 ? 0 : (type)(x % y);                                                         \
    }                                                                                              \
    static inline type floored_##suffix(type x, type y, iv_binary_context *context) {              \
        return truncated_##suffix(x, y, context);                                                  \
    }                                                                                              \
    static inline type prelu_##suffix(type x, type y) {                                            \
        return x;                                                                                  \
    }                                                                                              \
    /* Shifts by the width or more push every bit out. */                                          \
    static inline type left_##suffix(type x, type y) {                                             \
        return y < 8 * sizeof(type) ? (type)((wide)x << y) : 0;                                    \
    }                                                                                              \
    static inline type right_##suffix(type x, type y) {                                            \
        return y < 8 * sizeof(type) ? (type)((wide)x >> y) : 0;                                    \
    }                                                                                              \
    IV_BINARY_LOOP(ShiftLeft_##suffix, iv_binary_context, type, type, type, left_##suffix)         \
    IV_BINARY_LOOP(ShiftRight_##suffix, iv_binary_context, type, type, type, right_##suffix)       \
    DIVISION_LOOPS(suffix, type)
IV_SIGNED_TYPES(SIGNED_DIVISION, )
IV_UNSIGNED_TYPES(UNSIGNED_DIVISION, )

/* Truth values, which are 0 or 1. */
#define TRUTH_And(x, y) ((x) & (y))
#define TRUTH_Or(x, y) ((x) | (y))
#define TRUTH_Xor(x, y) ((x) ^ (y))
IV_BINARY_LOOP(And_bool, iv_binary_context, uint8_t, uint8_t, uint8_t, TRUTH_And)
IV_BINARY_LOOP(Or_bool, iv_binary_context, uint8_t, uint8_t, uint8_t, TRUTH_Or)
IV_BINARY_LOOP(Xor_bool, iv_binary_context, uint8_t, uint8_t, uint8_t, TRUTH_Xor)
IV_BINARY_LOOP(Equal_bool, iv_binary_context, uint8_t, uint8_t, uint8_t, ANY_Equal)

/* Of two: a NaN wins, +0 > -0. Powers: power_formula.h. */
#define EXTREME_FLOATS(dtype, suffix, type, real, real_suffix, load, store, unused)                \
    FLOAT_FUNCTION(Max, suffix, type, load, store, iv_max_##real_suffix(load(left), load(right)))  \
    FLOAT_FUNCTION(Min, suffix, type, load, store, iv_min_##real_suffix(load(left), load(right)))  \
    FLOAT_FUNCTION(Pow, suffix, type, load, store, iv_power_##real_suffix(load(left), load(right)))
#define LARGER(x, y) ((x) > (y) ? (x) : (y))
#define SMALLER(x, y) ((x) < (y) ? (x) : (y))
#define EXTREME_INTEGERS(dtype, suffix, type, wide, unused)                                        \
    IV_BINARY_LOOP(Max_##suffix, iv_binary_context, type, type, type, LARGER)                      \
    IV_BINARY_LOOP(Min_##suffix, iv_binary_context, type, type, type, SMALLER)
IV_FLOAT_TYPES(EXTREME_FLOATS, )
IV_SIGNED_TYPES(EXTREME_INTEGERS, )
IV_UNSIGNED_TYPES(EXTREME_INTEGERS, )

iv_walk_row *const IV_ISA_NAME(iv_binary_loops)[IV_BINARY_ROWS][IV_DTYPE_COUNT] = {
    [IV_BINARY_ROW_Add] = {IV_NUMBER_LOOPS(Add)},
    [IV_BINARY_ROW_Sub] = {IV_NUMBER_LOOPS(Sub)},
    [IV_BINARY_ROW_Mul] = {IV_NUMBER_LOOPS(Mul)},
    [IV_BINARY_ROW_Div] = {IV_NUMBER_LOOPS(Div)},
    [IV_BINARY_ROW_Mod] = {IV_NUMBER_LOOPS(Mod)},
    [IV_BINARY_ROW_Fmod] = {IV_NUMBER_LOOPS(Fmod)},
    [IV_BINARY_ROW_PRelu] = {IV_NUMBER_LOOPS(PRelu)},
    [IV_BINARY_ROW_And] = {[IV_BOOL] = And_bool},
    [IV_BINARY_ROW_Or] = {[IV_BOOL] = Or_bool},
    [IV_BINARY_ROW_Xor] = {[IV_BOOL] = Xor_bool},
    [IV_BINARY_ROW_Equal] = {IV_NUMBER_LOOPS(Equal), [IV_BOOL] = Equal_bool},
    [IV_BINARY_ROW_Greater] = {IV_NUMBER_LOOPS(Greater)},
    [IV_BINARY_ROW_Less] = {IV_NUMBER_LOOPS(Less)},
    [IV_BINARY_ROW_GreaterOrEqual] = {IV_NUMBER_LOOPS(GreaterOrEqual)},
    [IV_BINARY_ROW_LessOrEqual] = {IV_NUMBER_LOOPS(LessOrEqual)},
    [IV_BINARY_ROW_BitShift] = {IV_UNSIGNED_LOOPS(ShiftLeft)},
    [IV_BINARY_ROW_ShiftRight] = {IV_UNSIGNED_LOOPS(ShiftRight)},
    [IV_BINARY_ROW_BitwiseAnd] = {IV_INTEGER_LOOPS(BitwiseAnd)},
    [IV_BINARY_ROW_BitwiseOr] = {IV_INTEGER_LOOPS(BitwiseOr)},
    [IV_BINARY_ROW_BitwiseXor] = {IV_INTEGER_LOOPS(BitwiseXor)},
    [IV_BINARY_ROW_Max] = {IV_NUMBER_LOOPS(Max)},
    [IV_BINARY_ROW_Min] = {IV_NUMBER_LOOPS(Min)},
    [IV_BINARY_ROW_Pow] = {IV_FLOAT_LOOPS(Pow)},
};
