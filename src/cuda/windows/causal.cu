/* CausalConvWithState: a thread for each element of an output, by the chain of ops/causal_convolution.c. */
#include "cuda/common/index.cuh"
#include "cuda/windows/causal_parameters.h"
#include "numerics/chain.h"
#include "numerics/elementary.h"
#include "ops/type_lists.h"

/* Element `at` of the row, counted from the input's first: before it lies the past. */
#define ELEMENT(type, at)                                                                                              \
    ((at) >= 0         ? SB_CUDA_CONST_ELEMENT(type, x, (at)*p->x_steps[2])                                            \
     : p->past != NULL ? SB_CUDA_CONST_ELEMENT(type, past, ((at) + p->taps - 1) * p->past_steps[2])                    \
                       : (type)0)
#define WEIGHT(type, tap) SB_CUDA_CONST_ELEMENT(type, weights, (tap)*p->weight_steps[1])

#define CHAIN_f32(type)                                                                                                \
    SB_CUDA_KEEP_LOOP                                                                                                  \
    for (int64_t tap = 0; tap < p->taps; tap++)                                                                        \
        sum = sb_fma_f32(ELEMENT(type, time - p->taps + 1 + tap), WEIGHT(type, tap), sum);
#define CHAIN_16(type, suffix)                                                                                         \
    SB_CUDA_KEEP_LOOP                                                                                                  \
    for (int64_t first = 0; first < p->taps; first += SB_CHAIN16_GROUP) {                                              \
        uint16_t left[SB_CHAIN16_GROUP], right[SB_CHAIN16_GROUP];                                                      \
        for (int i = 0; i < SB_CHAIN16_GROUP; i++) {                                                                   \
            int64_t tap = first + i;                                                                                   \
            left[i] = tap < p->taps ? ELEMENT(type, time - p->taps + 1 + tap) : (type)0;                               \
            right[i] = tap < p->taps ? WEIGHT(type, tap) : (type)0;                                                    \
        }                                                                                                              \
        sum = sb_chain16_step_##suffix(left, right, sum);                                                              \
    }
#define CHAIN_f16(type) CHAIN_16(type, f16)
#define CHAIN_bf16(type) CHAIN_16(type, bf16)

#define CAUSAL(suffix, type, load, store)                                                                              \
    SB_CUDA_KERNEL(sb_cuda_causal_##suffix, sb_cuda_causal, p) {                                                       \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t sample = index, time = sb_cuda_take(&sample, p->length);                                           \
            int64_t channel = sb_cuda_take(&sample, p->channels);                                                      \
            const char *x = p->x + sample * p->x_steps[0] + channel * p->x_steps[1];                                   \
            const char *past = p->past + sample * p->past_steps[0] + channel * p->past_steps[1];                       \
            const char *weights = p->weights + channel * p->weight_steps[0];                                           \
            float sum = 0.0f;                                                                                          \
            CHAIN_##suffix(type) if (p->bias != NULL) sum =                                                            \
                sum + load(SB_CUDA_CONST_ELEMENT(type, p->bias, channel * p->bias_step));                              \
            if (p->swish)                                                                                              \
                sum = sum * sb_sigmoid_f32(sum);                                                                       \
            SB_CUDA_ELEMENT(type, p->out, index *(int64_t)sizeof(type)) = store(sum);                                  \
        }                                                                                                              \
    }                                                                                                                  \
    SB_CUDA_KERNEL(sb_cuda_causal_state_##suffix, sb_cuda_causal, p) {                                                 \
        const int64_t length = sb_cuda_used(p->used_length, p->length);                                                \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t sample = index, at = sb_cuda_take(&sample, p->taps - 1) + length - p->taps + 1;                    \
            int64_t channel = sb_cuda_take(&sample, p->channels);                                                      \
            const char *x = p->x + sample * p->x_steps[0] + channel * p->x_steps[1];                                   \
            const char *past = p->past + sample * p->past_steps[0] + channel * p->past_steps[1];                       \
            SB_CUDA_ELEMENT(type, p->out, index *(int64_t)sizeof(type)) = ELEMENT(type, at);                           \
        }                                                                                                              \
    }
CAUSAL(f16, uint16_t, sb_f16_to_f32, sb_f16_from_f32)
CAUSAL(bf16, uint16_t, sb_bf16_to_f32, sb_bf16_from_f32)
CAUSAL(f32, float, SB_SAME, SB_SAME)
