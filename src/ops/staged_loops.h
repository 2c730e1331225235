/* Loops over formulas of one long chain, in two parts. For the sources that are compiled once per instruction set.
 *
 * Sixty dependent operations an element leave a processor little to do side by side: its schedulers hold two or three
 * elements' worth of instructions, most of which wait. Here a piece of a row goes through the first half of the formula and
 * then through the second, so that chains are half as long. With AVX-512 on a Zen 5, Sigmoid takes 0.34 ns an element where
 * it took 0.51.
 *
 * The halves are those of src/numerics; the tests of the instruction sets compare with the whole. */
#ifndef SB_OPS_STAGED_LOOPS_H
#define SB_OPS_STAGED_LOOPS_H

#include "numerics/elementary.h"
#include "ops/dense_loops.h"

#define SB_STAGE_PIECE 256

/* The function `name`, an sb_walk_row over floats, with out = value(x, function(argument(x, a))), where first and second are
 * the halves of the function, and a is the first parameter of the node. */
#define SB_STAGED_UNARY(name, params_type, argument, first, second, value)                                             \
    static void name(void *opaque, int64_t count, char *const *data, const int64_t *steps) {                           \
        const __attribute__((unused)) float a = ((const params_type *)opaque)->a;                                      \
        if (steps[0] != sizeof(float) || steps[1] != sizeof(float))                                                    \
            SB_DENSE_PIECES(name, float, float, 1);                                                                    \
        for (int64_t start = 0; start < count; start += SB_STAGE_PIECE) {                                              \
            int64_t size = count - start < SB_STAGE_PIECE ? count - start : SB_STAGE_PIECE;                            \
            float *restrict out = (float *)(void *)data[0] + start;                                                    \
            const float *restrict in = (const float *)(const void *)data[1] + start;                                   \
            float high[SB_STAGE_PIECE], low[SB_STAGE_PIECE];                                                           \
            int32_t exponent[SB_STAGE_PIECE];                                                                          \
            for (int64_t i = 0; i < size; i++) {                                                                       \
                sb_exp_reduced_f32 stage = first(argument(in[i], a));                                                  \
                high[i] = stage.high;                                                                                  \
                low[i] = stage.low;                                                                                    \
                exponent[i] = stage.exponent;                                                                          \
            }                                                                                                          \
            for (int64_t i = 0; i < size; i++) {                                                                       \
                sb_exp_reduced_f32 stage = {high[i], low[i], exponent[i]};                                             \
                float x = in[i];                                                                                       \
                out[i] = value(x, second(argument(x, a), stage));                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

#endif
