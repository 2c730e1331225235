/* Loops of running sums and products, compiled once per instruction set: vectors are lines side by side. */
#include "cpu/rows/cumulative.h"

/* Lines whose running values stay near. */
#define TOGETHER 64

/* `width` lines from `from` on, a constant for whole vectors. Arithmetic is in `wide`, so that nothing overflows on the way. */
#define DEFINE_RUN(name, type, wide, operation, neutral)                                                               \
    static inline void name##_lines(const sb_cumulative_lines *lines, int64_t from, int64_t width) {                   \
        const sb_cumulative_params *params = lines->params;                                                            \
        const int64_t step = params->reverse ? -lines->inner : lines->inner;                                           \
        int64_t at = from + (params->reverse ? (lines->count - 1) * lines->inner : 0);                                 \
        type running[TOGETHER];                                                                                        \
        for (int64_t i = 0; i < lines->count; i++, at += step) {                                                       \
            const type *x = (const type *)lines->x + at;                                                               \
            type *y = (type *)lines->y + at;                                                                           \
            if (i == 0) {                                                                                              \
                for (int64_t j = 0; j < width; j++) {                                                                  \
                    running[j] = x[j];                                                                                 \
                    y[j] = params->exclusive ? (type)(neutral) : running[j];                                           \
                }                                                                                                      \
            } else if (params->exclusive) {                                                                            \
                for (int64_t j = 0; j < width; j++) {                                                                  \
                    const type joined = (type)((wide)running[j] operation x[j]);                                       \
                    y[j] = running[j];                                                                                 \
                    running[j] = joined;                                                                               \
                }                                                                                                      \
            } else {                                                                                                   \
                for (int64_t j = 0; j < width; j++) {                                                                  \
                    running[j] = (type)((wide)running[j] operation x[j]);                                              \
                    y[j] = running[j];                                                                                 \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void name(const sb_cumulative_lines *lines) {                                                               \
        int64_t from = 0;                                                                                              \
        for (; from + TOGETHER <= lines->inner; from += TOGETHER)                                                      \
            name##_lines(lines, from, TOGETHER);                                                                       \
        for (; from + 8 <= lines->inner; from += 8)                                                                    \
            name##_lines(lines, from, 8);                                                                              \
        for (; from < lines->inner; from++)                                                                            \
            name##_lines(lines, from, 1);                                                                              \
    }
DEFINE_RUN(sum_f32, float, float, +, 0)
DEFINE_RUN(sum_f64, double, double, +, 0)
DEFINE_RUN(sum_u8, uint8_t, unsigned, +, 0)
DEFINE_RUN(sum_u16, uint16_t, unsigned, +, 0)
DEFINE_RUN(sum_u32, uint32_t, uint32_t, +, 0)
DEFINE_RUN(sum_u64, uint64_t, uint64_t, +, 0)
DEFINE_RUN(product_f32, float, float, *, 1)
DEFINE_RUN(product_f64, double, double, *, 1)
DEFINE_RUN(product_u8, uint8_t, unsigned, *, 1)
DEFINE_RUN(product_u16, uint16_t, unsigned, *, 1)
DEFINE_RUN(product_u32, uint32_t, uint32_t, *, 1)
DEFINE_RUN(product_u64, uint64_t, uint64_t, *, 1)

sb_cumulative_run *const SB_ISA_NAME(sb_cumulative_loops)[2][SB_CUMULATIVE_TYPES] = {
    {sum_f32, sum_f64, sum_u8, sum_u16, sum_u32, sum_u64},
    {product_f32, product_f64, product_u8, product_u16, product_u32, product_u64},
};
