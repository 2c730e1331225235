/* Turning the pairs of a head, compiled once per instruction set: plain loops that the compiler turns into vectors. */
#include "base/isa.h"
#include "cpu/rows/rotary.h"
#include "numerics/scalar.h"

/* As sb_rotary has it (ops/rotary.c). */
static inline void turn_pair(float c, float s, float x1, float x2, float *y1, float *y2) {
    *y1 = sb_fma_f32(-s, x2, sb_fma_f32(c, x1, 0.0f));
    *y2 = sb_fma_f32(c, x2, sb_fma_f32(s, x1, 0.0f));
}

void SB_ISA_NAME(sb_rotary_turn)(bool interleaved, int64_t half, const float *restrict c, const float *restrict s,
                                 const float *restrict x, float *restrict y) {
    if (interleaved) {
        for (int64_t i = 0; i < half; i++)
            turn_pair(c[i], s[i], x[2 * i], x[2 * i + 1], &y[2 * i], &y[2 * i + 1]);
    } else {
        for (int64_t i = 0; i < half; i++)
            turn_pair(c[i], s[i], x[i], x[half + i], &y[i], &y[half + i]);
    }
}
