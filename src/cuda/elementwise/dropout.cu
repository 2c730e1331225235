/* Dropout in training. */
#include "cuda/elementwise/convert.cuh"
#include "ops/dropout_values.h"

SB_CUDA_FUNCTION uint64_t scaled(int type, uint64_t bits, double ratio) {
    switch (type) {
    case SB_CUDA_TYPE_f16:
        return sb_f16_from_f32(sb_dropout_value_f32(sb_f16_to_f32((uint16_t)bits), ratio));
    case SB_CUDA_TYPE_bf16:
        return sb_bf16_from_f32(sb_dropout_value_f32(sb_bf16_to_f32((uint16_t)bits), ratio));
    case SB_CUDA_TYPE_f64:
        return sb_bits_from_f64(sb_dropout_value_f64(sb_bits_to_f64(bits), ratio));
    default:
        return sb_bits_from_f32(sb_dropout_value_f32(sb_bits_to_f32((uint32_t)bits), ratio));
    }
}

SB_CUDA_KERNEL(sb_cuda_dropout, sb_cuda_drop, p) {
    SB_CUDA_EACH_GROUP(number, &p->box) {
        sb_cuda_group group;
        uint64_t x[SB_CUDA_GROUP], kept[SB_CUDA_GROUP] = {0};
        sb_cuda_group_find(&p->box, number, 3, &group);
        sb_cuda_load_bits(&p->box, &group, 1, p->type.size, x);
        SB_CUDA_KEEP_LOOP
        for (int turn = 0; turn < SB_CUDA_GROUP; turn++) {
            int keeps = sb_dropout_keeps(p->seed, (uint64_t)(group.index + turn), p->ratio);
            uint64_t result = keeps ? scaled(p->type.type, x[0], p->ratio) : 0;
            SB_CUDA_GROUP_TURN(uint64_t, x, result);
            SB_CUDA_GROUP_TURN(uint64_t, kept, keeps ? p->kept : 0);
        }
        if (p->wants_output)
            sb_cuda_store_bits(&p->box, &group, 0, p->type.size, x);
        if (p->wants_mask)
            sb_cuda_store_bits(&p->box, &group, 2, p->mask.size, kept);
    }
}
