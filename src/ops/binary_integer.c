/* The loops of the element-wise operators of two integers. Formulas: binary_values.h. */
#include "ops/binary.h"
#include "ops/binary_values.h"
#include "ops/dense_loops.h"
#include "ops/integer_loops.h"

/* A divisor of 0 is noted, and reported once the walk is over. */
#define DIVISION(op, suffix, type)                                                                                     \
    void sb_binary_##op##_##suffix(void *opaque, int64_t count, char *const *data, const int64_t *steps) {             \
        sb_binary_context *context = opaque;                                                                           \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            type left = SB_CONST_AT(type, data[1], steps[1], i);                                                       \
            type right = SB_CONST_AT(type, data[2], steps[2], i);                                                      \
            context->divided_by_zero |= right == 0;                                                                    \
            SB_AT(type, data[0], steps[0], i) = sb_binary_value_##op##_##suffix(left, right);                          \
        }                                                                                                              \
    }
#define LOOP(op, suffix, out_type, type)                                                                               \
    SB_DENSE_BINARY(sb_binary_##op##_##suffix, out_type, type, sb_binary_value_##op##_##suffix)
#define LOOPS(dtype, suffix, type, wide, unused)                                                                       \
    LOOP(Add, suffix, type, type)                                                                                      \
    LOOP(Sub, suffix, type, type)                                                                                      \
    LOOP(Mul, suffix, type, type)                                                                                      \
    LOOP(PRelu, suffix, type, type)                                                                                    \
    LOOP(BitwiseAnd, suffix, type, type)                                                                               \
    LOOP(BitwiseOr, suffix, type, type)                                                                                \
    LOOP(BitwiseXor, suffix, type, type)                                                                               \
    LOOP(Max, suffix, type, type)                                                                                      \
    LOOP(Min, suffix, type, type)                                                                                      \
    LOOP(Equal, suffix, uint8_t, type)                                                                                 \
    LOOP(Greater, suffix, uint8_t, type)                                                                               \
    LOOP(Less, suffix, uint8_t, type)                                                                                  \
    LOOP(GreaterOrEqual, suffix, uint8_t, type)                                                                        \
    LOOP(LessOrEqual, suffix, uint8_t, type)                                                                           \
    DIVISION(Div, suffix, type)                                                                                        \
    DIVISION(Mod, suffix, type)                                                                                        \
    DIVISION(Fmod, suffix, type)
#define SHIFTS(dtype, suffix, type, wide, unused)                                                                      \
    LOOP(ShiftLeft, suffix, type, type)                                                                                \
    LOOP(ShiftRight, suffix, type, type)
SB_SIGNED_TYPES(LOOPS, )
SB_UNSIGNED_TYPES(LOOPS, )
SB_UNSIGNED_TYPES(SHIFTS, )
