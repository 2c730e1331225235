/* Dropout in training. */
#include "cuda/kernels/convert.cuh"
#include "ops/dropout_values.h"

IV_CUDA_FUNCTION uint64_t scaled(int type, uint64_t bits, double ratio) {
    switch (type) {
    case IV_CUDA_TYPE_f16:
        return iv_f16_from_f32(iv_dropout_value_f32(iv_f16_to_f32((uint16_t)bits), ratio));
    case IV_CUDA_TYPE_bf16:
        return iv_bf16_from_f32(iv_dropout_value_f32(iv_bf16_to_f32((uint16_t)bits), ratio));
    case IV_CUDA_TYPE_f64:
        return iv_bits_from_f64(iv_dropout_value_f64(iv_bits_to_f64(bits), ratio));
    default:
        return iv_bits_from_f32(iv_dropout_value_f32(iv_bits_to_f32((uint32_t)bits), ratio));
    }
}

IV_CUDA_KERNEL(iv_cuda_dropout, iv_cuda_drop, p) {
    IV_CUDA_EACH_GROUP(number, &p->box) {
        iv_cuda_group group;
        uint64_t x[IV_CUDA_GROUP], kept[IV_CUDA_GROUP] = {0};
        iv_cuda_group_find(&p->box, number, 3, &group);
        iv_cuda_load_bits(&p->box, &group, 1, p->type.size, x);
        IV_CUDA_KEEP_LOOP
        for (int turn = 0; turn < IV_CUDA_GROUP; turn++) {
            int keeps = iv_dropout_keeps(p->seed, (uint64_t)(group.index + turn), p->ratio);
            uint64_t result = keeps ? scaled(p->type.type, x[0], p->ratio) : 0;
            IV_CUDA_GROUP_TURN(uint64_t, x, result);
            IV_CUDA_GROUP_TURN(uint64_t, kept, keeps ? p->kept : 0);
        }
        if (p->wants_output)
            iv_cuda_store_bits(&p->box, &group, 0, p->type.size, x);
        if (p->wants_mask)
            iv_cuda_store_bits(&p->box, &group, 2, p->mask.size, kept);
    }
}
