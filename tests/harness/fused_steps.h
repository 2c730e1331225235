/* Random element-wise nodes for graphs that are fused. */
#ifndef HARNESS_FUSED_STEPS_H
#define HARNESS_FUSED_STEPS_H

#include "harness/graphs.h"

/* A shape, and those of inputs that broadcast to it. */
typedef struct fused_shape {
    int rank;
    int64_t dims[4];
} fused_shape;

/** An input of the shape with some extents set to 1 and some leading ones left out, in any layout. */
sb_value_id add_broadcast_input(harness *h, builder *b, sb_dtype dtype, const fused_shape *shape, sb_tensor **tensors);
sb_value_id add_cast(builder *b, sb_value_id value, sb_dtype to);
/** A random step of a chain on `value` of a float dtype that has three operands to choose from; `heavy`: or one of
 * elementary functions, powers, questions and casts. */
sb_value_id add_fused_step(harness *h, builder *b, sb_value_id value, sb_dtype dtype, const sb_value_id *operands,
                           bool heavy);
/** A chain of so many sums of an f32, of which each is read again in reverse order, so that all have to be kept. */
sb_value_id add_kept_values(builder *b, sb_value_id value, int count);

#endif
