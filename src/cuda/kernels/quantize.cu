/* QuantizeLinear, DequantizeLinear, and the range that DynamicQuantizeLinear quantizes by. */
#include "cuda/kernels/convert.cuh"
#include "numerics/minmax.h"
#include "ops/quantize_values.h"

IV_CUDA_DEFINE_FROM_ANY(f32, float)
IV_CUDA_DEFINE_FROM_ANY(s64, int64_t)

IV_CUDA_FUNCTION void load_zeros(const iv_cuda_quantization *p, const iv_cuda_group *group,
                                 uint64_t *zeros) {
    IV_CUDA_UNROLL
    for (int j = 0; j < IV_CUDA_GROUP; j++)
        zeros[j] = 0;
    if (p->has_zero)
        iv_cuda_load_bits(&p->box, group, 3, p->zero.size, zeros);
}

#define QUANTIZE(name, value)                                                                      \
    IV_CUDA_KERNEL(iv_cuda_##name, iv_cuda_quantization, p) {                                      \
        IV_CUDA_EACH_GROUP(number, &p->box) {                                                      \
            iv_cuda_group group;                                                                   \
            uint64_t x[IV_CUDA_GROUP], scales[IV_CUDA_GROUP], zeros[IV_CUDA_GROUP];                \
            iv_cuda_group_find(&p->box, number, 4, &group);                                        \
            iv_cuda_load_bits(&p->box, &group, 1, p->input.size, x);                               \
            iv_cuda_load_bits(&p->box, &group, 2, p->scale.size, scales);                          \
            load_zeros(p, &group, zeros);                                                          \
            IV_CUDA_KEEP_LOOP                                                                      \
            for (int turn = 0; turn < IV_CUDA_GROUP; turn++) {                                     \
                float scale = iv_cuda_f32_from_any(p->scale.type, scales[0]);                      \
                int64_t zero = iv_cuda_s64_from_any(p->zero.type, zeros[0]);                       \
                uint64_t result = value;                                                           \
                IV_CUDA_GROUP_TURN(uint64_t, x, result);                                           \
                IV_CUDA_GROUP_TURN(uint64_t, scales, scales[0]);                                   \
                IV_CUDA_GROUP_TURN(uint64_t, zeros, zeros[0]);                                     \
            }                                                                                      \
            iv_cuda_store_bits(&p->box, &group, 0, p->output.size, x);                             \
        }                                                                                          \
    }

/* The result's bits: f32, f16 or bf16. */
IV_CUDA_FUNCTION uint64_t float_bits(int type, float value) {
    return type == IV_CUDA_TYPE_f16    ? iv_f16_from_f32(value)
           : type == IV_CUDA_TYPE_bf16 ? iv_bf16_from_f32(value)
                                       : iv_bits_from_f32(value);
}

QUANTIZE(quantize, (uint64_t)iv_quantize_value(iv_cuda_f32_from_any(p->input.type, x[0]), scale,
                                               zero, p->least, p->most))
QUANTIZE(dequantize,
         float_bits(p->output.type,
                    iv_dequantize_value(iv_cuda_s64_from_any(p->input.type, x[0]), scale, zero)))

/* ---- the range: neither maximum nor minimum depends on an order ---- */

#define THREADS 256

/* Folds the block's values by halves; the result is thread 0's. */
#define FOLD(values, operation)                                                                    \
    for (int half = THREADS / 2; half > 0; half /= 2) {                                            \
        IV_CUDA_BARRIER();                                                                         \
        if ((int)threadIdx.x < half)                                                               \
            values[threadIdx.x] = operation(values[threadIdx.x], values[threadIdx.x + half]);      \
    }

IV_CUDA_KERNEL(iv_cuda_range_partial, iv_cuda_range_search, p) {
    IV_CUDA_SHARED float least[THREADS], most[THREADS];
    float low = 0, high = 0;
    IV_CUDA_EACH_GROUP(number, &p->box) {
        iv_cuda_group group;
        float x[IV_CUDA_GROUP] = {0};
        iv_cuda_group_find(&p->box, number, 1, &group);
        IV_CUDA_GROUP_LOAD(float, &p->box, &group, 0, x);
        IV_CUDA_UNROLL
        for (int j = 0; j < IV_CUDA_GROUP; j++) {
            low = iv_min_f32(low, x[j]);
            high = iv_max_f32(high, x[j]);
        }
    }
    least[threadIdx.x] = low;
    most[threadIdx.x] = high;
    FOLD(least, iv_min_f32)
    FOLD(most, iv_max_f32)
    if (threadIdx.x == 0) {
        p->partial[2 * blockIdx.x] = least[0];
        p->partial[2 * blockIdx.x + 1] = most[0];
    }
}

/* One block. */
IV_CUDA_KERNEL(iv_cuda_range_scale, iv_cuda_range_search, p) {
    IV_CUDA_SHARED float least[THREADS], most[THREADS];
    float low = 0, high = 0;
    for (int i = (int)threadIdx.x; i < p->blocks; i += THREADS) {
        low = iv_min_f32(low, p->partial[2 * i]);
        high = iv_max_f32(high, p->partial[2 * i + 1]);
    }
    least[threadIdx.x] = low;
    most[threadIdx.x] = high;
    FOLD(least, iv_min_f32)
    FOLD(most, iv_max_f32)
    if (threadIdx.x == 0)
        iv_quantize_range(least[0], most[0], p->scale, p->zero);
}
