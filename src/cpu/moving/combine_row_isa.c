/* Rows of updates of a scatter, compiled once per instruction set. Lanes are elements, which have nothing to do with each other. */
#include "cpu/moving/combine_row.h"

static inline void combine(sb_scatter_how how, int64_t count, float *restrict to, const float *restrict from) {
    for (int64_t i = 0; i < count; i++)
        to[i] = sb_scatter_value_f32(how, to[i], from[i]);
}

void SB_ISA_NAME(sb_combine_row)(sb_scatter_how how, int64_t count, float *to, const float *from) {
    switch (how) {
    case SB_SCATTER_ADD:
        combine(SB_SCATTER_ADD, count, to, from);
        break;
    case SB_SCATTER_MUL:
        combine(SB_SCATTER_MUL, count, to, from);
        break;
    case SB_SCATTER_MAX:
        combine(SB_SCATTER_MAX, count, to, from);
        break;
    default:
        combine(SB_SCATTER_MIN, count, to, from);
        break;
    }
}
