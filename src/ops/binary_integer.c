/* The loops of the element-wise operators of two integers. Formulas: binary_values.h. */
#include "ops/binary.h"
#include "ops/binary_values.h"
#include "ops/dense_loops.h"
#include "ops/integer_loops.h"

/* A divisor of 0 is noted, and reported once the walk is over. */
#define QUOTIENT(op, suffix, type)                                                                                     \
    void sb_binary_##op##_##suffix(void *opaque, int64_t count, char *const *data, const int64_t *steps) {             \
        sb_binary_context *context = opaque;                                                                           \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            type left = SB_CONST_AT(type, data[1], steps[1], i);                                                       \
            type right = SB_CONST_AT(type, data[2], steps[2], i);                                                      \
            context->divided_by_zero |= right == 0;                                                                    \
            SB_AT(type, data[0], steps[0], i) = sb_binary_value_##op##_##suffix(left, right);                          \
        }                                                                                                              \
    }
#define LOOP(op, suffix, type) SB_DENSE_BINARY(sb_binary_##op##_##suffix, type, type, sb_binary_value_##op##_##suffix)
#define COMPARISON(op, suffix, type)                                                                                   \
    SB_DENSE_BINARY(sb_binary_##op##_##suffix, uint8_t, type, sb_binary_value_##op##_##suffix)
#define LOOPS(dtype, suffix, type, wide, unused)                                                                       \
    SB_BINARY_INTEGERS(LOOP, suffix, type)                                                                             \
    SB_BINARY_INTEGER_QUOTIENTS(QUOTIENT, suffix, type)                                                                \
    SB_BINARY_COMPARISONS(COMPARISON, suffix, type)
SB_SIGNED_TYPES(LOOPS, )
SB_UNSIGNED_TYPES(LOOPS, )
