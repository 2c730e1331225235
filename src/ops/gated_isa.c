/* The loops of SwiGLU, compiled once per instruction set, and their table. */
#include "ops/dense_loops.h"
#include "ops/gated.h"
#include "ops/gated_values.h"
#include "ops/half_loops.h"

/* Long, so once each: rows of other steps go by pieces. `alpha` is a copy, so that no store is seen to change it. */
#define LOOP(suffix, type)                                                                                             \
    static void gated_##suffix(void *opaque, int64_t count, char *const *data, const int64_t *steps) {                 \
        const float alpha = ((const sb_gated_params *)opaque)->alpha;                                                  \
        if (steps[0] != sizeof(type) || steps[1] != sizeof(type) || steps[2] != sizeof(type))                          \
            SB_DENSE_PIECES(gated_##suffix, type, type, 2);                                                            \
        type *restrict out = (type *)(void *)data[0];                                                                  \
        const type *restrict gate = (const type *)(const void *)data[1];                                               \
        const type *restrict value = (const type *)(const void *)data[2];                                              \
        for (int64_t i = 0; i < count; i++)                                                                            \
            out[i] = sb_gated_value_##suffix(gate[i], value[i], alpha);                                                \
    }
LOOP(f32, float)
LOOP(f64, double)
SB_HALF_LOOP(gated, f16, SB_F16, 2)
SB_HALF_LOOP(gated, bf16, SB_BF16, 2)

sb_walk_row *const SB_ISA_NAME(sb_gated_loops)[1][SB_DTYPE_COUNT] = {{SB_FLOAT_LOOPS(gated)}};
