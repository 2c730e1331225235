/* Conversion between any two element types but text, by the rules of numerics/convert.h and numerics/small.h. */
#ifndef SB_OPS_CONVERT_LOOPS_H
#define SB_OPS_CONVERT_LOOPS_H

#include "ops/loops.h"

/* What a conversion does. The last two matter to small types alone. */
typedef struct sb_conversion {
    sb_dtype to, from;
    int saturate; /* or else overflow becomes an infinity or NaN */
    int round;    /* SB_ROUND_…, of f8e8m0 */
} sb_conversion;

/** The conversion that Cast is without attributes: saturating, f8e8m0 rounded up. */
sb_conversion sb_conversion_of(sb_dtype to, sb_dtype from);

/** Converts a row (operand 0: `to`, operand 1: `from`); the context is an sb_conversion between any types but text.
 * Equal types are copied bit for bit. Pure; any thread. */
void sb_convert_elements(void *conversion, int64_t count, char *const *data, const int64_t *steps);

/** The loop that does so for two types neither of which is small; no context. NULL for others. Pure; any thread. */
sb_walk_row *sb_convert_loop(sb_dtype to, sb_dtype from);

/** The same, compiled for `isa`: equal bits. For small types too, but text: then the context is an sb_conversion. */
sb_walk_row *sb_convert_loop_for(sb_isa isa, sb_dtype to, sb_dtype from);

/* By [to][from]. Row SB_DTYPE_NONE holds the copies, by the size of an element. Of the small types, there are floats
 * from and to f32 (to them, the context is an sb_conversion or NULL, which is the default), and integers from
 * and to s8, and from s32: what the other ways of converting them are made of. */
SB_DECLARE_LOOPS(sb_convert_loops, SB_DTYPE_COUNT)

/** What a node of Cast or CastLike does with elements of type `from`. */
sb_conversion sb_cast_conversion(const sb_node *node, sb_dtype to, sb_dtype from);

/** Converts `count` elements that lie `step` bytes apart to packed ones of type `to`, as sb_conversion_of says. */
void sb_convert_row(sb_dtype to, void *target, sb_dtype from, const void *source, int64_t step, int64_t count);

#endif
