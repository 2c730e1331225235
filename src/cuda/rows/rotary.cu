/* RotaryEmbedding: a thread for each pair of elements, by the chains of ops/rotary.c. */
#include "cuda/common/index.cuh"
#include "cuda/rows/rotary_parameters.h"
#include "numerics/scalar.h"
#include "ops/type_lists.h"

#define ROTARY(suffix, type, load, store)                                                                              \
    SB_CUDA_KERNEL(sb_cuda_rotary_##suffix, sb_cuda_rotary, p) {                                                       \
        const int64_t batch_used = sb_cuda_used(p->used_batch, p->batch);                                              \
        const int64_t tokens_used = sb_cuda_used(p->used_tokens, p->tokens);                                           \
        const int64_t rows_used = sb_cuda_used(p->used_rows, p->rows);                                                 \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t batch = index, unit = sb_cuda_take(&batch, p->units), head = sb_cuda_take(&batch, p->heads);       \
            int64_t token = sb_cuda_take(&batch, p->tokens), row = token;                                              \
            const char *x = p->x + batch * p->x_steps[0] + token * p->x_steps[1] + head * p->x_steps[2];               \
            char *y = p->y + batch * p->y_steps[0] + token * p->y_steps[1] + head * p->y_steps[2];                     \
            if (unit >= p->half) {                                                                                     \
                int64_t at = p->half + unit;                                                                           \
                SB_CUDA_ELEMENT(type, y, at * p->y_steps[3]) = SB_CUDA_CONST_ELEMENT(type, x, at * p->x_steps[3]);     \
                continue;                                                                                              \
            }                                                                                                          \
            if (p->positions != NULL) {                                                                                \
                if (batch >= batch_used || token >= tokens_used)                                                       \
                    continue;                                                                                          \
                row = SB_CUDA_CONST_ELEMENT(int64_t, p->positions,                                                     \
                                            batch * p->position_steps[0] + token * p->position_steps[1]);              \
                if (row < 0 || row >= rows_used) {                                                                     \
                    *p->fault = SB_FAULT_INDEX;                                                                        \
                    continue;                                                                                          \
                }                                                                                                      \
            }                                                                                                          \
            const float c = load(SB_CUDA_CONST_ELEMENT(                                                                \
                type, p->cosines, batch * p->cosine_steps[0] + row * p->cosine_steps[1] + unit * p->cosine_steps[2])); \
            const float s = load(SB_CUDA_CONST_ELEMENT(                                                                \
                type, p->sines, batch * p->sine_steps[0] + row * p->sine_steps[1] + unit * p->sine_steps[2]));         \
            int64_t first = p->interleaved ? 2 * unit : unit;                                                          \
            int64_t second = p->interleaved ? 2 * unit + 1 : unit + p->half;                                           \
            const float x1 = load(SB_CUDA_CONST_ELEMENT(type, x, first * p->x_steps[3]));                              \
            const float x2 = load(SB_CUDA_CONST_ELEMENT(type, x, second * p->x_steps[3]));                             \
            SB_CUDA_ELEMENT(type, y, first * p->y_steps[3]) = store(sb_fma_f32(-s, x2, sb_fma_f32(c, x1, 0.0f)));      \
            SB_CUDA_ELEMENT(type, y, second * p->y_steps[3]) = store(sb_fma_f32(c, x2, sb_fma_f32(s, x1, 0.0f)));      \
        }                                                                                                              \
    }
ROTARY(f16, uint16_t, sb_f16_to_f32, sb_f16_from_f32)
ROTARY(bf16, uint16_t, sb_bf16_to_f32, sb_bf16_from_f32)
ROTARY(f32, float, SB_SAME, SB_SAME)
