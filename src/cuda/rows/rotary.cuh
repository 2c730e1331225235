/* Turning one pair of elements of a head, by the chains of ops/rotary.c. */
#ifndef SB_CUDA_ROWS_ROTARY_CUH
#define SB_CUDA_ROWS_ROTARY_CUH

#include "cuda/common/index.cuh"
#include "cuda/rows/rotary_parameters.h"
#include "numerics/scalar.h"
#include "ops/type_lists.h"

/* A unit of a head whose first element is at x: a pair that is turned, or an element behind them. It goes to the head at y, whose
 * elements are `y_step` bytes apart. */
#define SB_CUDA_TURN(suffix, type, load, store)                                                                        \
    SB_CUDA_FUNCTION void sb_cuda_turn_##suffix(const sb_cuda_rotary *p, int64_t batch, int64_t token, int64_t unit,   \
                                                const char *x, char *y, int64_t y_step) {                              \
        int64_t row = token;                                                                                           \
        if (unit >= p->half) {                                                                                         \
            int64_t at = p->half + unit;                                                                               \
            SB_CUDA_ELEMENT(type, y, at *y_step) = SB_CUDA_CONST_ELEMENT(type, x, at * p->x_steps[3]);                 \
            return;                                                                                                    \
        }                                                                                                              \
        if (p->positions != NULL) {                                                                                    \
            if (batch >= sb_cuda_used(p->used_batch, p->batch) || token >= sb_cuda_used(p->used_tokens, p->tokens))    \
                return;                                                                                                \
            row = SB_CUDA_CONST_ELEMENT(int64_t, p->positions,                                                         \
                                        batch * p->position_steps[0] + token * p->position_steps[1]);                  \
            if (row < 0 || row >= sb_cuda_used(p->used_rows, p->rows)) {                                               \
                *p->fault = SB_FAULT_INDEX;                                                                            \
                return;                                                                                                \
            }                                                                                                          \
        }                                                                                                              \
        const float c = load(SB_CUDA_CONST_ELEMENT(                                                                    \
            type, p->cosines, batch * p->cosine_steps[0] + row * p->cosine_steps[1] + unit * p->cosine_steps[2]));     \
        const float s = load(SB_CUDA_CONST_ELEMENT(                                                                    \
            type, p->sines, batch * p->sine_steps[0] + row * p->sine_steps[1] + unit * p->sine_steps[2]));             \
        const int64_t first = p->interleaved ? 2 * unit : unit;                                                        \
        const int64_t second = p->interleaved ? 2 * unit + 1 : unit + p->half;                                         \
        const float x1 = load(SB_CUDA_CONST_ELEMENT(type, x, first * p->x_steps[3]));                                  \
        const float x2 = load(SB_CUDA_CONST_ELEMENT(type, x, second * p->x_steps[3]));                                 \
        SB_CUDA_ELEMENT(type, y, first *y_step) = store(sb_fma_f32(-s, x2, sb_fma_f32(c, x1, 0.0f)));                  \
        SB_CUDA_ELEMENT(type, y, second *y_step) = store(sb_fma_f32(c, x2, sb_fma_f32(s, x1, 0.0f)));                  \
    }
SB_CUDA_TURN(f16, uint16_t, sb_f16_to_f32, sb_f16_from_f32)
SB_CUDA_TURN(bf16, uint16_t, sb_bf16_to_f32, sb_bf16_from_f32)
SB_CUDA_TURN(f32, float, SB_SAME, SB_SAME)

#endif
