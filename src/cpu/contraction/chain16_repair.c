#include "cpu/contraction/chain16_repair.h"

void sb_chain16_repair(sb_dtype dtype, const sb_chain16_a *a, const sb_chain16_b *tile, uint64_t lanes,
                       const float *before, float *after) {
    if (tile->valid < SB_CHAIN16_PANEL)
        lanes &= ((uint64_t)1 << tile->valid) - 1;
    for (; lanes != 0; lanes &= lanes - 1) {
        int column = __builtin_ctzll(lanes);
        /* A column of zeros, from a pruned channel for example, comes here in every group, because
         * its sum never leaves zero. */
        if (tile->top[column] == SB_CHAIN16_TOP_ZERO && a->top < SB_CHAIN16_TOP_EXCEPTIONAL) {
            after[column] = before[column] + 0.0f;
            continue;
        }
        uint16_t right[SB_CHAIN16_GROUP];
        for (int k = 0; k < SB_CHAIN16_GROUP; k++)
            right[k] = tile->raw[k * SB_CHAIN16_PANEL + sb_chain16_place(column)];
        after[column] = dtype == SB_BF16 ? sb_chain16_step_bf16(a->raw, right, before[column])
                                         : sb_chain16_step_f16(a->raw, right, before[column]);
    }
}
