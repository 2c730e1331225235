/* Loops over rows of functions whose formula has branches, but none for arguments that are common: these are computed
 * side by side, and what is not common again, one by one. The bits are those of the formula for each element. For the
 * sources that are compiled once per instruction set. */
#ifndef SB_OPS_COMMON_LOOPS_H
#define SB_OPS_COMMON_LOOPS_H

#include <string.h>

#include "ops/dense_loops.h"

#define SB_COMMON_PIECE 256

/* The function `name`, an sb_walk_row over floats, with out = value(in, a, b), which is common(in) where is_common(in). The
 * output may lie on the input, so a piece is complete before it is written. */
#define SB_COMMON_UNARY(name, value, is_common, common)                                                                \
    static void name(void *opaque, int64_t count, char *const *data, const int64_t *steps) {                           \
        if (steps[0] != sizeof(float) || steps[1] != sizeof(float))                                                    \
            SB_DENSE_PIECES(name, float, float, 1);                                                                    \
        const float *in = (const float *)(const void *)data[1];                                                        \
        for (int64_t start = 0; start < count; start += SB_COMMON_PIECE) {                                             \
            int64_t size = count - start < SB_COMMON_PIECE ? count - start : SB_COMMON_PIECE;                          \
            float results[SB_COMMON_PIECE];                                                                            \
            int32_t others = 0;                                                                                        \
            for (int64_t i = 0; i < size; i++) {                                                                       \
                results[i] = common(in[start + i]);                                                                    \
                others += !is_common(in[start + i]);                                                                   \
            }                                                                                                          \
            for (int64_t i = 0; others > 0 && i < size; i++)                                                           \
                if (!is_common(in[start + i]))                                                                         \
                    results[i] = value(in[start + i], 0.0f, 0.0f);                                                     \
            memcpy(data[0] + start * (int64_t)sizeof(float), results, (size_t)size * sizeof(float));                   \
        }                                                                                                              \
    }

/* The same for out = value(left, right), where a piece may also have one of two shortcuts: if wants_first(right) holds for all
 * of a piece, the value is first(left), and second(left) likewise. */
#define SB_COMMON_BINARY(name, value, is_common, common, wants_first, first, wants_second, second)                     \
    static void name(void *opaque, int64_t count, char *const *data, const int64_t *steps) {                           \
        if (steps[0] != sizeof(float) || steps[1] != sizeof(float) || steps[2] != sizeof(float))                       \
            SB_DENSE_PIECES(name, float, float, 2);                                                                    \
        for (int64_t start = 0; start < count; start += SB_COMMON_PIECE) {                                             \
            int64_t size = count - start < SB_COMMON_PIECE ? count - start : SB_COMMON_PIECE;                          \
            const float *left = (const float *)(const void *)data[1] + start;                                          \
            const float *right = (const float *)(const void *)data[2] + start;                                         \
            float results[SB_COMMON_PIECE];                                                                            \
            int32_t others = 0, not_first = 0, not_second = 0;                                                         \
            for (int64_t i = 0; i < size; i++) {                                                                       \
                not_first += !wants_first(right[i]);                                                                   \
                not_second += !wants_second(right[i]);                                                                 \
            }                                                                                                          \
            for (int64_t i = 0; not_first == 0 && i < size; i++)                                                       \
                results[i] = first(left[i]);                                                                           \
            for (int64_t i = 0; not_second == 0 && i < size; i++)                                                      \
                results[i] = second(left[i]);                                                                          \
            for (int64_t i = 0; not_first != 0 && not_second != 0 && i < size; i++) {                                  \
                results[i] = common(left[i], right[i]);                                                                \
                others += !is_common(left[i], right[i]);                                                               \
            }                                                                                                          \
            for (int64_t i = 0; others > 0 && i < size; i++)                                                           \
                if (!is_common(left[i], right[i]))                                                                     \
                    results[i] = value(left[i], right[i]);                                                             \
            memcpy(data[0] + start * (int64_t)sizeof(float), results, (size_t)size * sizeof(float));                   \
        }                                                                                                              \
    }

#endif
