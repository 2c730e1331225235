/* The loops of the element-wise operators of one integer. Formulas: unary_values.h. */
#include "ops/dense_loops.h"
#include "ops/integer_loops.h"
#include "ops/unary.h"
#include "ops/unary_values.h"

#define LOOP(op, suffix, type)                                                                                         \
    void sb_unary_##op##_##suffix(void *opaque, int64_t count, char *const *data, const int64_t *steps) {              \
        const sb_unary_params parameters = *(const sb_unary_params *)opaque;                                           \
        if (steps[0] != sizeof(type) || steps[1] != sizeof(type))                                                      \
            SB_DENSE_PIECES(sb_unary_##op##_##suffix, type, type, 1);                                                  \
        type *restrict out = (type *)(void *)data[0];                                                                  \
        const type *restrict in = (const type *)(const void *)data[1];                                                 \
        for (int64_t i = 0; i < count; i++)                                                                            \
            out[i] = sb_unary_value_##op##_##suffix(in[i], parameters.a, parameters.b);                                \
    }
#define LOOPS(dtype, suffix, type, wide, unused)                                                                       \
    SB_UNARY_LIGHT_INTEGERS(LOOP, suffix, type)                                                                        \
    SB_UNARY_HEAVY_INTEGERS(LOOP, suffix, type)
#define SIGNED_LOOPS(dtype, suffix, type, wide, unused) SB_UNARY_SIGNED(LOOP, suffix, type)
SB_SIGNED_TYPES(LOOPS, )
SB_UNSIGNED_TYPES(LOOPS, )
SB_SIGNED_TYPES(SIGNED_LOOPS, )
