/* Batch normalisation in training, and in f64: a block takes a channel. Sums have the order of numerics/reduce.h, where
 * thread j is lane j: lanes are folded by halves, and one without a value is left out. */
#include "cuda/elementwise/batch_parameters.h"
#include "cuda/elementwise/convert.cuh"
#include "numerics/reduce.h"
#include "ops/batch_factors_formula.h"

SB_CUDA_DEFINE_FROM_ANY(f32, float)
SB_CUDA_DEFINE_FROM_ANY(f64, double)

SB_CUDA_FUNCTION uint64_t load_bits(const char *at, int size) {
    return size == 8   ? *(const uint64_t *)(const void *)at
           : size == 4 ? *(const uint32_t *)(const void *)at
                       : *(const uint16_t *)(const void *)at;
}

/* By the rules of Cast: to a float of any width. */
SB_CUDA_FUNCTION void store_f64(sb_cuda_typed type, char *at, double value) {
    if (type.type == SB_CUDA_TYPE_f64)
        *(double *)(void *)at = value;
    else if (type.type == SB_CUDA_TYPE_f32)
        *(float *)(void *)at = (float)value;
    else
        *(uint16_t *)(void *)at = type.type == SB_CUDA_TYPE_f16 ? sb_f16_from_f64(value) : sb_bf16_from_f64(value);
}

SB_CUDA_FUNCTION void store_f32(sb_cuda_typed type, char *at, float value) {
    if (type.type == SB_CUDA_TYPE_f32)
        *(float *)(void *)at = value;
    else if (type.type == SB_CUDA_TYPE_f64)
        *(double *)(void *)at = (double)value;
    else
        *(uint16_t *)(void *)at = type.type == SB_CUDA_TYPE_f16 ? sb_f16_from_f32(value) : sb_bf16_from_f32(value);
}

#define factors_f32 sb_batch_normalization_factors
#define factors_f64 sb_batch_normalization_factors_f64

/* Leaves the sum of each element's `value`, which sees x, in `total` of every thread. */
#define SUM(real, suffix, kind, value, total)                                                                          \
    do {                                                                                                               \
        real sum_of_blocks = 0;                                                                                        \
        for (int64_t start = 0; start < p->box.elements; start += SB_REDUCE_BLOCK) {                                   \
            int64_t left = p->box.elements - start;                                                                    \
            int size = left < SB_REDUCE_BLOCK ? (int)left : SB_REDUCE_BLOCK;                                           \
            real sum = 0;                                                                                              \
            for (int at = lane; at < size; at += SB_REDUCE_LANES) {                                                    \
                sb_cuda_place(&p->box, start + at, 2, offsets);                                                        \
                real x = sb_cuda_##suffix##_from_any(p->type.type, load_bits(in + offsets[1], p->type.size));          \
                real term = value;                                                                                     \
                sum = at == lane ? SB_REDUCE_FIRST_##kind(term) : SB_REDUCE_NEXT_##kind##_##suffix(term, sum);         \
            }                                                                                                          \
            lanes[lane] = sum;                                                                                         \
            int present = size < SB_REDUCE_LANES ? size : SB_REDUCE_LANES;                                             \
            for (int half = SB_REDUCE_LANES / 2; half > 0; half /= 2) {                                                \
                SB_CUDA_BARRIER();                                                                                     \
                if (lane < half && lane + half < present)                                                              \
                    lanes[lane] += lanes[lane + half];                                                                 \
                present = present < half ? present : half;                                                             \
            }                                                                                                          \
            SB_CUDA_BARRIER();                                                                                         \
            sum_of_blocks = start == 0 ? lanes[0] : sum_of_blocks + lanes[0];                                          \
            SB_CUDA_BARRIER();                                                                                         \
        }                                                                                                              \
        total = sum_of_blocks;                                                                                         \
    } while (0)

#define GIVEN(suffix, i)                                                                                               \
    sb_cuda_##suffix##_from_any(p->given[i].type.type,                                                                 \
                                load_bits(p->given[i].data + channel * p->given[i].step, p->given[i].type.size))
#define RESULT(suffix, i, value)                                                                                       \
    if (p->results[i].data != NULL)                                                                                    \
    store_##suffix(p->results[i].type, p->results[i].data + channel * p->results[i].step, value)

#define BATCH(real, suffix)                                                                                            \
    SB_CUDA_BLOCK_KERNEL(sb_cuda_batch_##suffix, sb_cuda_batch, p) {                                                   \
        SB_CUDA_SHARED real lanes[SB_REDUCE_LANES];                                                                    \
        int lane = (int)threadIdx.x;                                                                                   \
        int64_t offsets[2];                                                                                            \
        for (int64_t channel = blockIdx.x; channel < p->channels; channel += gridDim.x) {                              \
            const char *in = p->box.data[1] + channel * p->in_step;                                                    \
            real mean = GIVEN(suffix, 2), variance = GIVEN(suffix, 3), a, b;                                           \
            if (p->trains) {                                                                                           \
                real count = (real)p->box.elements, total, given_mean = mean;                                          \
                real momentum = (real)p->momentum, given_variance = variance;                                          \
                SUM(real, suffix, SUM, x, total);                                                                      \
                mean = sb_div_##suffix(total, count);                                                                  \
                SUM(real, suffix, SQUARES, x - mean, total);                                                           \
                variance = sb_div_##suffix(total, count);                                                              \
                if (lane == 0) {                                                                                       \
                    RESULT(suffix, 0, given_mean *momentum + mean * (1 - momentum));                                   \
                    RESULT(suffix, 1, given_variance *momentum + variance * (1 - momentum));                           \
                    RESULT(suffix, 2, mean);                                                                           \
                    RESULT(suffix, 3, variance);                                                                       \
                }                                                                                                      \
            }                                                                                                          \
            factors_##suffix(GIVEN(suffix, 0), GIVEN(suffix, 1), mean, variance, (real)p->epsilon, &a, &b);            \
            for (int64_t at = lane; at < p->box.elements && p->wants_output; at += SB_CUDA_BATCH_THREADS) {            \
                sb_cuda_place(&p->box, at, 2, offsets);                                                                \
                real x = sb_cuda_##suffix##_from_any(p->type.type, load_bits(in + offsets[1], p->type.size));          \
                store_##suffix(p->type, p->box.data[0] + channel * p->out_step + offsets[0],                           \
                               sb_fma_##suffix(x, a, b));                                                              \
            }                                                                                                          \
        }                                                                                                              \
    }
BATCH(float, f32)
BATCH(double, f64)
