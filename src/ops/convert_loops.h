/* Conversion between any two element types but text, by the rules of numerics/convert.h. */
#ifndef SB_OPS_CONVERT_LOOPS_H
#define SB_OPS_CONVERT_LOOPS_H

#include "ops/loops.h"

/** The loop that converts rows (operand 0: `to`, operand 1: `from`); no context. Equal types are
 * copied bit for bit. NULL when one of them is text or no dtype. Pure; any thread. */
sb_walk_row *sb_convert_loop(sb_dtype to, sb_dtype from);

/** The same, compiled for `isa`: equal bits. */
sb_walk_row *sb_convert_loop_for(sb_isa isa, sb_dtype to, sb_dtype from);

/* By [to][from]. Row SB_DTYPE_NONE holds the copies, by the size of an element. */
SB_DECLARE_LOOPS(sb_convert_loops, SB_DTYPE_COUNT)

/** Converts `count` elements that lie `step` bytes apart to packed ones of type `to`. */
void sb_convert_row(sb_dtype to, void *target, sb_dtype from, const void *source, int64_t step, int64_t count);

#endif
