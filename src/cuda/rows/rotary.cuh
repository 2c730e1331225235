/* Turning one pair of elements of a head, by the chains of ops/rotary.c. */
#ifndef SB_CUDA_ROWS_ROTARY_CUH
#define SB_CUDA_ROWS_ROTARY_CUH

#include "cuda/common/halves.cuh"
#include "cuda/common/index.cuh"
#include "cuda/rows/rotary_parameters.h"
#include "numerics/scalar.h"
#include "ops/type_lists.h"

/* The elements of a pair, turned. */
SB_CUDA_FUNCTION float sb_cuda_turned_first(float x1, float x2, float cosine, float sine) {
    return sb_fma_f32(-sine, x2, sb_fma_f32(cosine, x1, 0.0f));
}

SB_CUDA_FUNCTION float sb_cuda_turned_second(float x1, float x2, float cosine, float sine) {
    return sb_fma_f32(cosine, x2, sb_fma_f32(sine, x1, 0.0f));
}

/* The first or the second elements of eight pairs of 16 bits, turned. */
template <int HALF>
SB_CUDA_FUNCTION sb_cuda_eight sb_cuda_turned_eight(const float *first, const float *second, const float *cosines,
                                                    const float *sines, bool is_second) {
    float turned[SB_CUDA_EIGHT];
    SB_CUDA_UNROLL
    for (int j = 0; j < SB_CUDA_EIGHT; j++)
        turned[j] = is_second ? sb_cuda_turned_second(first[j], second[j], cosines[j], sines[j])
                              : sb_cuda_turned_first(first[j], second[j], cosines[j], sines[j]);
    return sb_cuda_round_eight<HALF>(turned);
}

/* What a unit of a head is made of: a pair that is turned, or an element behind them. */
enum { SB_CUDA_UNIT_MOVES, SB_CUDA_UNIT_TURNS, SB_CUDA_UNIT_IS_BEHIND, SB_CUDA_UNIT_IS_ASTRAY };
typedef struct sb_cuda_unit {
    int kind;                          /* IS_BEHIND: of a token behind the used ones. IS_ASTRAY: its position is none */
    float first, second, cosine, sine; /* of a pair that turns */
} sb_cuda_unit;

/* Fetching a unit of a head whose first element is at x asks for all that it can at once: its elements and its position, and then
 * cosine and sine. Storing it to the head at y, whose elements are `y_step` bytes apart, waits for them. What else a caller has to
 * find out it asks for in between. */
#define SB_CUDA_TURN(suffix, type, load, store)                                                                        \
    SB_CUDA_FUNCTION sb_cuda_unit sb_cuda_fetch_unit_##suffix(const sb_cuda_rotary *p, int64_t batch, int64_t token,   \
                                                              int64_t unit, const char *x) {                           \
        sb_cuda_unit found = {SB_CUDA_UNIT_TURNS, 0, 0, 0, 0};                                                         \
        if (unit >= p->half) {                                                                                         \
            found.kind = SB_CUDA_UNIT_MOVES;                                                                           \
            return found;                                                                                              \
        }                                                                                                              \
        int64_t row = token;                                                                                           \
        if (p->positions != NULL) {                                                                                    \
            if (batch >= sb_cuda_used(p->used_batch, p->batch) || token >= sb_cuda_used(p->used_tokens, p->tokens)) {  \
                found.kind = SB_CUDA_UNIT_IS_BEHIND;                                                                   \
                return found;                                                                                          \
            }                                                                                                          \
            row = SB_CUDA_CONST_ELEMENT(int64_t, p->positions,                                                         \
                                        batch * p->position_steps[0] + token * p->position_steps[1]);                  \
        }                                                                                                              \
        const int64_t first = p->interleaved ? 2 * unit : unit;                                                        \
        const int64_t second = p->interleaved ? 2 * unit + 1 : unit + p->half;                                         \
        found.first = load(SB_CUDA_CONST_ELEMENT(type, x, first * p->x_steps[3]));                                     \
        found.second = load(SB_CUDA_CONST_ELEMENT(type, x, second * p->x_steps[3]));                                   \
        if (p->positions != NULL && (row < 0 || row >= sb_cuda_used(p->used_rows, p->rows))) {                         \
            found.kind = SB_CUDA_UNIT_IS_ASTRAY;                                                                       \
            return found;                                                                                              \
        }                                                                                                              \
        found.cosine = load(SB_CUDA_CONST_ELEMENT(                                                                     \
            type, p->cosines, batch * p->cosine_steps[0] + row * p->cosine_steps[1] + unit * p->cosine_steps[2]));     \
        found.sine = load(SB_CUDA_CONST_ELEMENT(                                                                       \
            type, p->sines, batch * p->sine_steps[0] + row * p->sine_steps[1] + unit * p->sine_steps[2]));             \
        return found;                                                                                                  \
    }                                                                                                                  \
    SB_CUDA_FUNCTION void sb_cuda_store_unit_##suffix(const sb_cuda_rotary *p, const sb_cuda_unit *found,              \
                                                      int64_t unit, const char *x, char *y, int64_t y_step) {          \
        if (found->kind == SB_CUDA_UNIT_MOVES) {                                                                       \
            int64_t at = p->half + unit;                                                                               \
            SB_CUDA_ELEMENT(type, y, at *y_step) = SB_CUDA_CONST_ELEMENT(type, x, at * p->x_steps[3]);                 \
            return;                                                                                                    \
        }                                                                                                              \
        if (found->kind == SB_CUDA_UNIT_IS_ASTRAY)                                                                     \
            *p->fault = SB_FAULT_INDEX;                                                                                \
        if (found->kind != SB_CUDA_UNIT_TURNS)                                                                         \
            return;                                                                                                    \
        const int64_t first = p->interleaved ? 2 * unit : unit;                                                        \
        const int64_t second = p->interleaved ? 2 * unit + 1 : unit + p->half;                                         \
        const float x1 = found->first, x2 = found->second, c = found->cosine, s = found->sine;                         \
        SB_CUDA_ELEMENT(type, y, first *y_step) = store(sb_cuda_turned_first(x1, x2, c, s));                           \
        SB_CUDA_ELEMENT(type, y, second *y_step) = store(sb_cuda_turned_second(x1, x2, c, s));                         \
    }                                                                                                                  \
    SB_CUDA_FUNCTION void sb_cuda_turn_##suffix(const sb_cuda_rotary *p, int64_t batch, int64_t token, int64_t unit,   \
                                                const char *x, char *y, int64_t y_step) {                              \
        const sb_cuda_unit found = sb_cuda_fetch_unit_##suffix(p, batch, token, unit, x);                              \
        sb_cuda_store_unit_##suffix(p, &found, unit, x, y, y_step);                                                    \
    }
SB_CUDA_TURN(f16, uint16_t, sb_f16_to_f32, sb_f16_from_f32)
SB_CUDA_TURN(bf16, uint16_t, sb_bf16_to_f32, sb_bf16_from_f32)
SB_CUDA_TURN(f32, float, SB_SAME, SB_SAME)

#endif
