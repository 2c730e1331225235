/* Conversion between any two element types but text, by the rules of numerics/convert.h. */
#ifndef IV_OPS_CONVERT_LOOPS_H
#define IV_OPS_CONVERT_LOOPS_H

#include "ops/loops.h"

/** The loop that converts rows (operand 0: `to`, operand 1: `from`); no context. Equal types are
 * copied bit for bit. NULL when one of them is text or no dtype. Pure; any thread. */
iv_walk_row *iv_convert_loop(iv_dtype to, iv_dtype from);

/** The same, compiled for `isa`: equal bits. */
iv_walk_row *iv_convert_loop_for(iv_isa isa, iv_dtype to, iv_dtype from);

/* By [to][from]. Row IV_DTYPE_NONE holds the copies, by the size of an element. */
IV_DECLARE_LOOPS(iv_convert_loops, IV_DTYPE_COUNT)

/** Converts `count` elements that lie `step` bytes apart to packed ones of type `to`. */
void iv_convert_row(iv_dtype to, void *target, iv_dtype from, const void *source, int64_t step,
                    int64_t count);

#endif
