/* Rows of updates of a scatter, compiled once per instruction set. Lanes are elements, which have nothing to do with each other. */
#include "cpu/moving/combine_row.h"

/* `how` is a constant, `load` and `store` turn an element into f32 and back. */
#define DEFINE_COMBINE(name, type, load, store)                                                                        \
    static inline void name(sb_scatter_how how, int64_t count, type *restrict to, const type *restrict from) {         \
        for (int64_t i = 0; i < count; i++)                                                                            \
            to[i] = store(sb_scatter_value_f32(how, load(to[i]), load(from[i])));                                      \
    }
#define AS_IT_IS(value) (value)
DEFINE_COMBINE(combine_f32, float, AS_IT_IS, AS_IT_IS)
DEFINE_COMBINE(combine_f16, uint16_t, sb_f16_to_f32, sb_f16_from_f32)
DEFINE_COMBINE(combine_bf16, uint16_t, sb_bf16_to_f32, sb_bf16_from_f32)

static inline void combine(sb_scatter_how how, sb_dtype dtype, int64_t count, void *to, const void *from) {
    if (dtype == SB_F32)
        combine_f32(how, count, to, from);
    else if (dtype == SB_F16)
        combine_f16(how, count, to, from);
    else
        combine_bf16(how, count, to, from);
}

void SB_ISA_NAME(sb_combine_row)(sb_scatter_how how, sb_dtype dtype, int64_t count, void *to, const void *from) {
    switch (how) {
    case SB_SCATTER_ADD:
        combine(SB_SCATTER_ADD, dtype, count, to, from);
        break;
    case SB_SCATTER_MUL:
        combine(SB_SCATTER_MUL, dtype, count, to, from);
        break;
    case SB_SCATTER_MAX:
        combine(SB_SCATTER_MAX, dtype, count, to, from);
        break;
    default:
        combine(SB_SCATTER_MIN, dtype, count, to, from);
        break;
    }
}
