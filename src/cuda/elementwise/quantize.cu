/* QuantizeLinear, DequantizeLinear, and the range that DynamicQuantizeLinear quantizes by. */
#include "cuda/elementwise/convert.cuh"
#include "numerics/minmax.h"
#include "ops/quantize_values.h"

SB_CUDA_DEFINE_FROM_ANY(f32, float)
SB_CUDA_DEFINE_FROM_ANY(s64, int64_t)

SB_CUDA_FUNCTION void load_zeros(const sb_cuda_quantization *p, const sb_cuda_group *group, uint64_t *zeros) {
    SB_CUDA_UNROLL
    for (int j = 0; j < SB_CUDA_GROUP; j++)
        zeros[j] = 0;
    if (p->has_zero)
        sb_cuda_load_bits(&p->box, group, 3, p->zero.size, zeros);
}

/* `zero` is of `zero_type`; `value` gives the result's bits. */
#define QUANTIZE(name, zero_name, zero_type, value)                                                                    \
    SB_CUDA_KERNEL(sb_cuda_##name, sb_cuda_quantization, p) {                                                          \
        SB_CUDA_EACH_GROUP(number, &p->box) {                                                                          \
            sb_cuda_group group;                                                                                       \
            uint64_t x[SB_CUDA_GROUP], scales[SB_CUDA_GROUP], zeros[SB_CUDA_GROUP];                                    \
            sb_cuda_group_find(&p->box, number, 4, &group);                                                            \
            sb_cuda_load_bits(&p->box, &group, 1, p->input.size, x);                                                   \
            sb_cuda_load_bits(&p->box, &group, 2, p->scale.size, scales);                                              \
            load_zeros(p, &group, zeros);                                                                              \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int turn = 0; turn < SB_CUDA_GROUP; turn++) {                                                         \
                float scale = sb_cuda_f32_from_any(p->scale.type, scales[0]);                                          \
                zero_type zero = sb_cuda_##zero_name##_from_any(p->zero.type, zeros[0]);                               \
                uint64_t result = value;                                                                               \
                SB_CUDA_GROUP_TURN(uint64_t, x, result);                                                               \
                SB_CUDA_GROUP_TURN(uint64_t, scales, scales[0]);                                                       \
                SB_CUDA_GROUP_TURN(uint64_t, zeros, zeros[0]);                                                         \
            }                                                                                                          \
            sb_cuda_store_bits(&p->box, &group, 0, p->output.size, x);                                                 \
        }                                                                                                              \
    }

/* The result's bits: f32, f16 or bf16. */
SB_CUDA_FUNCTION uint64_t float_bits(int type, float value) {
    return type == SB_CUDA_TYPE_f16    ? sb_f16_from_f32(value)
           : type == SB_CUDA_TYPE_bf16 ? sb_bf16_from_f32(value)
                                       : sb_bits_from_f32(value);
}

SB_CUDA_FUNCTION float quotient(const sb_cuda_quantization *p, uint64_t x, float scale) {
    return sb_quantize_quotient(sb_cuda_f32_from_any(p->input.type, x), scale, (sb_dtype)p->precision);
}

SB_CUDA_FUNCTION uint64_t quantized_float(const sb_cuda_quantization *p, float value, float zero) {
    return sb_cuda_small_from_f32(p->output.type, p->has_zero ? value + zero : value, p->saturate, SB_ROUND_UP);
}

QUANTIZE(quantize, s64, int64_t,
         (uint64_t)sb_quantize_value(quotient(p, x[0], scale), zero, p->least, p->most) & p->mask)
QUANTIZE(quantize_float, f32, float, quantized_float(p, quotient(p, x[0], scale), zero))
QUANTIZE(dequantize, s64, int64_t,
         float_bits(p->output.type, sb_dequantize_value(sb_cuda_s64_from_any(p->input.type, x[0]), scale, zero)))
QUANTIZE(dequantize_float, f32, float,
         float_bits(p->output.type, sb_dequantize_float(sb_cuda_f32_from_any(p->input.type, x[0]), scale, zero)))

/* ---- the range: neither maximum nor minimum depends on an order ---- */

#define THREADS 256

/* Folds the block's values by halves; the result is thread 0's. */
#define FOLD(values, operation)                                                                                        \
    for (int half = THREADS / 2; half > 0; half /= 2) {                                                                \
        SB_CUDA_BARRIER();                                                                                             \
        if ((int)threadIdx.x < half)                                                                                   \
            values[threadIdx.x] = operation(values[threadIdx.x], values[threadIdx.x + half]);                          \
    }

SB_CUDA_BLOCK_KERNEL(sb_cuda_range_partial, sb_cuda_range_search, p) {
    SB_CUDA_SHARED float least[THREADS], most[THREADS];
    float low = 0, high = 0;
    SB_CUDA_EACH_GROUP(number, &p->box) {
        sb_cuda_group group;
        float x[SB_CUDA_GROUP] = {0};
        sb_cuda_group_find(&p->box, number, 1, &group);
        SB_CUDA_GROUP_LOAD(float, &p->box, &group, 0, x);
        SB_CUDA_UNROLL
        for (int j = 0; j < SB_CUDA_GROUP; j++) {
            low = sb_min_f32(low, x[j]);
            high = sb_max_f32(high, x[j]);
        }
    }
    least[threadIdx.x] = low;
    most[threadIdx.x] = high;
    FOLD(least, sb_min_f32)
    FOLD(most, sb_max_f32)
    if (threadIdx.x == 0) {
        p->partial[2 * blockIdx.x] = least[0];
        p->partial[2 * blockIdx.x + 1] = most[0];
    }
}

/* One block. */
SB_CUDA_BLOCK_KERNEL(sb_cuda_range_scale, sb_cuda_range_search, p) {
    SB_CUDA_SHARED float least[THREADS], most[THREADS];
    float low = 0, high = 0;
    for (int i = (int)threadIdx.x; i < p->blocks; i += THREADS) {
        low = sb_min_f32(low, p->partial[2 * i]);
        high = sb_max_f32(high, p->partial[2 * i + 1]);
    }
    least[threadIdx.x] = low;
    most[threadIdx.x] = high;
    FOLD(least, sb_min_f32)
    FOLD(most, sb_max_f32)
    if (threadIdx.x == 0)
        sb_quantize_range(least[0], most[0], p->scale, p->zero);
}
