/* MaxPool, AveragePool and LpPool: a thread for each output element, by the formulas of
 * ops/pool_max.c and ops/pool_average.c. */
#include "cuda/common/kernel.cuh"
#include "cuda/windows/pool_parameters.h"
#include "numerics/minmax.h"
#include "numerics/power.h"
#include "numerics/power_f64.h"
#include "ops/type_lists.h"
#include "ops/window_taps.h"

/* The taps of one output element: where the first lies, how many there are along each axis, and how far apart. */
typedef struct window {
    int64_t plane;
    int32_t at[SB_CUDA_POOL_AXES];
    int64_t first[SB_CUDA_POOL_AXES], count[SB_CUDA_POOL_AXES];
    const char *x;
} window;

SB_CUDA_FUNCTION int64_t take(int64_t *index, int64_t extent) {
    int64_t whole = *index;
    *index = whole <= UINT32_MAX && extent <= UINT32_MAX ? (uint32_t)whole / (uint32_t)extent : whole / extent;
    return whole - *index * extent;
}

/* The number of an element in row-major order, by its number in memory. */
SB_CUDA_FUNCTION int64_t find_number(const sb_cuda_pool *p, int64_t place) {
    if (!p->channels_last)
        return place;
    const int64_t positions = p->axis[0].out * p->axis[1].out * p->axis[2].out;
    int64_t channel = take(&place, p->channels), position = take(&place, positions);
    return (place * p->channels + channel) * positions + position;
}

SB_CUDA_FUNCTION void find_window(const sb_cuda_pool *p, int64_t index, window *found) {
    int64_t position[SB_CUDA_POOL_AXES];
    SB_CUDA_UNROLL
    for (int i = SB_CUDA_POOL_AXES - 1; i >= 0; i--)
        position[i] = take(&index, p->axis[i].out);
    found->plane = index;
    int64_t channel = take(&index, p->channels);
    found->x = p->x + index * p->batch_step + channel * p->channel_step;
    SB_CUDA_UNROLL
    for (int i = 0; i < SB_CUDA_POOL_AXES; i++) {
        const sb_cuda_pool_axis *axis = &p->axis[i];
        int64_t start = position[i] * axis->stride - axis->begin, first, last;
        sb_window_taps(axis->in, axis->kernel, axis->dilation, start, &first, &last);
        found->count[i] = last - first;
        found->first[i] = start + first * axis->dilation;
        found->x += found->first[i] * axis->step;
    }
}

/* All taps in row-major order, with `element` their address. */
#define EACH_TAP(w, element)                                                                                           \
    SB_CUDA_KEEP_LOOP                                                                                                  \
    for (int64_t i = 0; i < (w).count[0]; i++)                                                                         \
        SB_CUDA_KEEP_LOOP                                                                                              \
    for (int64_t j = 0; j < (w).count[1]; j++)                                                                         \
        for (int64_t k = 0; k < (w).count[2]; k++)                                                                     \
            for (const char *element = (w).x + i * p->axis[0].dilation * p->axis[0].step +                             \
                                       j * p->axis[1].dilation * p->axis[1].step +                                     \
                                       k * p->axis[2].dilation * p->axis[2].step;                                      \
                 element != NULL; element = NULL)

/* ---- maximum ---- */

/* `order` gives integers that order as elements do; the first of the largest ones is copied. */
#define MAXIMUM(suffix, type, key_type, order, least)                                                                  \
    SB_CUDA_KERNEL_BOUNDED(sb_cuda_pool_max_##suffix, sb_cuda_pool, p, 256, 4) {                                       \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            window w;                                                                                                  \
            find_window(p, find_number(p, index), &w);                                                                 \
            type best = least;                                                                                         \
            key_type best_key = 0;                                                                                     \
            int64_t best_flat = -1;                                                                                    \
            EACH_TAP(w, element) {                                                                                     \
                type value = SB_CUDA_CONST_ELEMENT(type, element, 0);                                                  \
                key_type key = order(value);                                                                           \
                if (best_flat < 0 || key > best_key) {                                                                 \
                    best = value;                                                                                      \
                    best_key = key;                                                                                    \
                    best_flat = (w.first[0] + i * p->axis[0].dilation) * p->axis[0].flat +                             \
                                (w.first[1] + j * p->axis[1].dilation) * p->axis[1].flat +                             \
                                (w.first[2] + k * p->axis[2].dilation) * p->axis[2].flat;                              \
                }                                                                                                      \
            }                                                                                                          \
            ((type *)(void *)p->y)[index] = best;                                                                      \
            if (p->indices != NULL)                                                                                    \
                p->indices[index] = best_flat < 0 ? -1 : w.plane * p->plane + best_flat;                               \
        }                                                                                                              \
    }
#define ORDER_f16(value) sb_bits_order_f32(sb_f16_to_f32(value))
#define ORDER_bf16(value) sb_bits_order_f32(sb_bf16_to_f32(value))
MAXIMUM(f16, uint16_t, int32_t, ORDER_f16, 0xfc00)
MAXIMUM(bf16, uint16_t, int32_t, ORDER_bf16, 0xff80)
MAXIMUM(f32, float, int32_t, sb_bits_order_f32, -sb_infinity_f32())
MAXIMUM(f64, double, int64_t, sb_bits_order_f64, -sb_infinity_f64())
MAXIMUM(s8, int8_t, int32_t, SB_SAME, INT8_MIN)
MAXIMUM(u8, uint8_t, int32_t, SB_SAME, 0)

/* ---- average and norm ---- */

/* Taps inside the padded input. */
SB_CUDA_FUNCTION int64_t padded_taps(const sb_cuda_pool *p, int64_t index) {
    int64_t taps = 1;
    SB_CUDA_UNROLL
    for (int i = SB_CUDA_POOL_AXES - 1; i >= 0; i--) {
        const sb_cuda_pool_axis *axis = &p->axis[i];
        int64_t position = take(&index, axis->out);
        taps *= sb_window_padded_taps(axis->in + axis->end, axis->kernel, axis->dilation,
                                      position * axis->stride - axis->begin);
    }
    return taps;
}

#define AVERAGE(dtype, suffix, type, real, real_suffix, load, store, unused)                                           \
    SB_CUDA_KERNEL_BOUNDED(sb_cuda_pool_average_##suffix, sb_cuda_pool, p, 256, 3) {                                   \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            window w;                                                                                                  \
            find_window(p, find_number(p, index), &w);                                                                 \
            real sum = 0;                                                                                              \
            EACH_TAP(w, element) {                                                                                     \
                sum = sum + load(SB_CUDA_CONST_ELEMENT(type, element, 0));                                             \
            }                                                                                                          \
            int64_t taps =                                                                                             \
                p->count_include_pad ? padded_taps(p, find_number(p, index)) : w.count[0] * w.count[1] * w.count[2];   \
            ((type *)(void *)p->y)[index] = store(sb_div_##real_suffix(sum, (real)taps));                              \
        }                                                                                                              \
    }                                                                                                                  \
    SB_CUDA_KERNEL(sb_cuda_pool_norm_##suffix, sb_cuda_pool, p) {                                                      \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            window w;                                                                                                  \
            find_window(p, find_number(p, index), &w);                                                                 \
            real sum = 0, power = (real)p->p;                                                                          \
            EACH_TAP(w, element) {                                                                                     \
                real value = load(SB_CUDA_CONST_ELEMENT(type, element, 0));                                            \
                if (power == 1)                                                                                        \
                    sum = sum + sb_abs_##real_suffix(value);                                                           \
                else if (power == 2)                                                                                   \
                    sum = sb_fma_##real_suffix(value, value, sum);                                                     \
                else                                                                                                   \
                    sum = sum + sb_pow_##real_suffix(sb_abs_##real_suffix(value), power);                              \
            }                                                                                                          \
            real norm = power == 1   ? sum                                                                             \
                        : power == 2 ? sb_sqrt_##real_suffix(sum)                                                      \
                                     : sb_pow_##real_suffix(sum, sb_div_##real_suffix((real)1, power));                \
            ((type *)(void *)p->y)[index] = store(norm);                                                               \
        }                                                                                                              \
    }
SB_FLOAT_TYPES(AVERAGE, )

/* ---- MaxUnpool ---- */

/* Of several elements with one place the last one stays, as when they are moved one after the
 * other: the largest number is found whatever the order. */
#if defined(__CUDACC__)
SB_CUDA_FUNCTION void raise(uint64_t *winner, uint64_t number) {
    atomicMax((unsigned long long *)winner, (unsigned long long)number);
}
#else
SB_CUDA_FUNCTION void raise(uint64_t *winner, uint64_t number) {
    *winner = *winner < number ? number : *winner;
}
#endif

SB_CUDA_KERNEL(sb_cuda_unpool_mark, sb_cuda_unpool, p) {
    SB_CUDA_EACH(element, p->elements) {
        int64_t index = p->indices[element], place = 0;
        if (index < 0 || index >= p->limit) {
            *p->fault = SB_FAULT_INDEX;
            continue;
        }
        SB_CUDA_KEEP_LOOP
        for (int d = p->rank - 1; d >= 0; d--)
            place += take(&index, p->least[d]) * p->strides[d];
        raise(&p->winners[place], (uint64_t)element + 1);
    }
}

#define PLACE(bits, type)                                                                                              \
    SB_CUDA_KERNEL(sb_cuda_unpool_place_##bits, sb_cuda_unpool, p) {                                                   \
        SB_CUDA_EACH(place, p->places) {                                                                               \
            uint64_t winner = p->winners[place];                                                                       \
            ((type *)(void *)p->y)[place] = winner != 0 ? ((const type *)(const void *)p->x)[winner - 1] : 0;          \
        }                                                                                                              \
    }
PLACE(8, uint8_t)
PLACE(16, uint16_t)
PLACE(32, uint32_t)
PLACE(64, uint64_t)
