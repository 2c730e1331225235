/* Loops over rows without gaps, which vectorise; rows of other steps go through them by pieces,
 * so that every formula is compiled once. */
#ifndef SB_OPS_DENSE_LOOPS_H
#define SB_OPS_DENSE_LOOPS_H

#include "ops/row_pieces.h"

#define SB_DENSE_PIECES(name, out_type, in_type, input_count)                                                          \
    do {                                                                                                               \
        const sb_row_pieces how = {.dense = name,                                                                      \
                                   .context = opaque,                                                                  \
                                   .inputs = input_count,                                                              \
                                   .in_size = sizeof(in_type),                                                         \
                                   .out_size = sizeof(out_type)};                                                      \
        sb_run_pieces(&how, count, data, steps);                                                                       \
        return;                                                                                                        \
    } while (0)

/* The function `name`, an sb_walk_row, with out = value(in). */
#define SB_DENSE_UNARY(name, out_type, in_type, value)                                                                 \
    void name(void *opaque, int64_t count, char *const *data, const int64_t *steps) {                                  \
        if (steps[0] != sizeof(out_type) || steps[1] != sizeof(in_type))                                               \
            SB_DENSE_PIECES(name, out_type, in_type, 1);                                                               \
        out_type *restrict out = (out_type *)(void *)data[0];                                                          \
        const in_type *restrict in = (const in_type *)(const void *)data[1];                                           \
        for (int64_t i = 0; i < count; i++)                                                                            \
            out[i] = (out_type)value(in[i]);                                                                           \
    }

/* The same for out = value(left, right), of inputs of one type. */
#define SB_DENSE_BINARY(name, out_type, in_type, value)                                                                \
    void name(void *opaque, int64_t count, char *const *data, const int64_t *steps) {                                  \
        if (steps[0] != sizeof(out_type) || steps[1] != sizeof(in_type) || steps[2] != sizeof(in_type))                \
            SB_DENSE_PIECES(name, out_type, in_type, 2);                                                               \
        out_type *restrict out = (out_type *)(void *)data[0];                                                          \
        const in_type *restrict left = (const in_type *)(const void *)data[1];                                         \
        const in_type *restrict right = (const in_type *)(const void *)data[2];                                        \
        for (int64_t i = 0; i < count; i++)                                                                            \
            out[i] = value(left[i], right[i]);                                                                         \
    }

#endif
