/* Concat, for kernels that join inputs of which not all rows are used, and Tile. */
#ifndef SB_OPS_JOINS_H
#define SB_OPS_JOINS_H

#include "graph/op.h"

/** The axis along which a Concat joins inputs of that rank. Errors: SHAPE. */
sb_status sb_concat_axis(const sb_call *call, int *axis);
/** Checks that the inputs fit along `axis`, and makes the output, to which sb_concat_copy brings them; sb_move_finish
 * ends what this began. With `order` (NULL: row-major) its dimensions lie in memory in that order, outermost first, where
 * its extents are known and nobody has placed it. Errors: SHAPE, and those of sb_move_output. */
sb_status sb_concat_output(sb_call *call, int axis, const int *order, sb_tensor **output);
/** Whether `input` is the part of `output` that starts at `start` along `axis`: the output has been placed over it. */
bool sb_concat_is_there(const sb_tensor *output, int axis, int64_t start, const sb_tensor *input);
/** Copies `input` to the part of `output` that starts at `start` along `axis`, unless it lies there already. */
sb_status sb_concat_copy(sb_call *call, sb_tensor *output, int axis, int64_t start, const sb_tensor *input);

/** The extents of a Tile's output, by the repeats of the call. Errors: SHAPE. */
sb_status sb_tile_extents(sb_call *call, int64_t *dims);

#endif
