/* Cast between f16, bf16 and f32 of packed elements: a thread takes eight at once. */
#include "cuda/common/halves.cuh"
#include "cuda/elementwise/convert_parameters.h"

enum { CAST_F32 = SB_CUDA_BF16 + 1 };

template <int TYPE> SB_CUDA_FUNCTION float cast_load(const char *from, int64_t index) {
    if (TYPE == CAST_F32)
        return ((const float *)(const void *)from)[index];
    const uint16_t half = ((const uint16_t *)(const void *)from)[index];
    return TYPE == SB_CUDA_F16 ? sb_f16_to_f32(half) : sb_bf16_to_f32(half);
}

template <int TYPE> SB_CUDA_FUNCTION void cast_store(char *to, int64_t index, float value) {
    if (TYPE == CAST_F32)
        ((float *)(void *)to)[index] = value;
    else
        ((uint16_t *)(void *)to)[index] = TYPE == SB_CUDA_F16 ? sb_f16_from_f32(value) : sb_bf16_from_f32(value);
}

template <int TYPE> SB_CUDA_FUNCTION void cast_load_eight(const char *from, int64_t index, float *values) {
    if constexpr (TYPE == CAST_F32) {
        sb_cuda_load_four(from + 4 * index, 4, values);
        sb_cuda_load_four(from + 4 * index + 16, 4, values + 4);
    } else {
        sb_cuda_widen_eight<TYPE>(sb_cuda_load_eight(from + 2 * index), values);
    }
}

template <int TYPE> SB_CUDA_FUNCTION void cast_store_eight(char *to, int64_t index, float *values) {
    if constexpr (TYPE == CAST_F32) {
        SB_CUDA_UNROLL
        for (int j = 0; j < SB_CUDA_EIGHT; j++)
            values[j] = values[j] == values[j] ? values[j] : sb_nan_f32();
        sb_cuda_store_four(to + 4 * index, 4, values);
        sb_cuda_store_four(to + 4 * index + 16, 4, values + 4);
    } else {
        sb_cuda_store_eight(to + 2 * index, sb_cuda_round_eight<TYPE>(values));
    }
}

template <int FROM, int TO> SB_CUDA_FUNCTION void cast_packed(const sb_cuda_cast *p) {
    const char *from = p->box.data[1];
    char *to = p->box.data[0];
    const int64_t elements = p->box.elements;
    SB_CUDA_EACH(group, (elements + SB_CUDA_EIGHT - 1) / SB_CUDA_EIGHT) {
        const int64_t index = group * SB_CUDA_EIGHT;
        float values[SB_CUDA_EIGHT];
        if (elements - index >= SB_CUDA_EIGHT) {
            cast_load_eight<FROM>(from, index, values);
            cast_store_eight<TO>(to, index, values);
            continue;
        }
        SB_CUDA_KEEP_LOOP
        for (int64_t i = index; i < elements; i++)
            cast_store<TO>(to, i, cast_load<FROM>(from, i));
    }
}

#define KERNEL(from, to, FROM, TO)                                                                                     \
    SB_CUDA_KERNEL(sb_cuda_cast_##from##_##to, sb_cuda_cast, p) {                                                      \
        cast_packed<FROM, TO>(p);                                                                                      \
    }
KERNEL(f16, f32, SB_CUDA_F16, CAST_F32)
KERNEL(bf16, f32, SB_CUDA_BF16, CAST_F32)
KERNEL(f32, f16, CAST_F32, SB_CUDA_F16)
KERNEL(f32, bf16, CAST_F32, SB_CUDA_BF16)
KERNEL(f16, bf16, SB_CUDA_F16, SB_CUDA_BF16)
KERNEL(bf16, f16, SB_CUDA_BF16, SB_CUDA_F16)
