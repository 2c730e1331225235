#include "cpu/chain16_repair.h"

void iv_chain16_repair(iv_dtype dtype, const iv_chain16_a *a, const iv_chain16_b *tile,
                       uint64_t lanes, const float *before, float *after) {
    if (tile->valid < IV_CHAIN16_PANEL)
        lanes &= ((uint64_t)1 << tile->valid) - 1;
    for (; lanes != 0; lanes &= lanes - 1) {
        int column = __builtin_ctzll(lanes);
        /* A column of zeros, from a pruned channel for example, comes here in every group, because
         * its sum never leaves zero. */
        if (tile->top[column] == IV_CHAIN16_TOP_ZERO && a->top < IV_CHAIN16_TOP_EXCEPTIONAL) {
            after[column] = before[column] + 0.0f;
            continue;
        }
        uint16_t right[IV_CHAIN16_GROUP];
        for (int k = 0; k < IV_CHAIN16_GROUP; k++)
            right[k] = tile->raw[k * IV_CHAIN16_PANEL + iv_chain16_place(column)];
        after[column] = dtype == IV_BF16 ? iv_chain16_step_bf16(a->raw, right, before[column])
                                         : iv_chain16_step_f16(a->raw, right, before[column]);
    }
}
