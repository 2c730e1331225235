/* Loops for f16 and bf16 made of the loop for f32: pieces of a row are widened, computed and
 * rounded by the loops of Cast. The bits are those of one loop that does all three to each element.
 * For the sources that are compiled once per instruction set. */
#ifndef SB_OPS_HALF_LOOPS_H
#define SB_OPS_HALF_LOOPS_H

#include "ops/convert_loops.h"
#include "ops/row_pieces.h"

#define SB_HALF_PIECES(op, suffix, dtype, input_count, result_size, result_loop)                                       \
    static void op##_##suffix(void *opaque, int64_t count, char *const *data, const int64_t *steps) {                  \
        const sb_row_pieces how = {.dense = op##_f32,                                                                  \
                                   .context = opaque,                                                                  \
                                   .inputs = input_count,                                                              \
                                   .in_size = sizeof(float),                                                           \
                                   .out_size = result_size,                                                            \
                                   .load = SB_ISA_NAME(sb_convert_loops)[SB_F32][dtype],                               \
                                   .store = result_loop};                                                              \
        sb_run_pieces(&how, count, data, steps);                                                                       \
    }
/* <op>_<suffix> from <op>_f32, for `input_count` inputs of `dtype`. */
#define SB_HALF_LOOP(op, suffix, dtype, input_count)                                                                   \
    SB_HALF_PIECES(op, suffix, dtype, input_count, sizeof(float), SB_ISA_NAME(sb_convert_loops)[dtype][SB_F32])
/* The same where the result is a bool. */
#define SB_HALF_QUESTION(op, suffix, dtype, input_count)                                                               \
    SB_HALF_PIECES(op, suffix, dtype, input_count, sizeof(uint8_t), NULL)

#endif
