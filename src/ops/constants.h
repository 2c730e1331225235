/* What the kernels of ConstantOfShape, EyeLike and Range share with their definitions. */
#ifndef SB_OPS_CONSTANTS_H
#define SB_OPS_CONSTANTS_H

#include "graph/op.h"
#include "ops/range_values.h"

/* ConstantOfShape. */
typedef struct sb_fill_params {
    sb_dtype dtype;
    sb_tensor *value; /* one element; NULL for f32 zero */
} sb_fill_params;

/* EyeLike. */
typedef struct sb_eye_params {
    sb_dtype dtype; /* NONE: the input's */
    int64_t diagonal;
} sb_eye_params;

/** The bits of 1 in `dtype`, in the low bytes. */
uint64_t sb_bits_of_one(sb_dtype dtype);

/** What inputs 0 to 2 of Range, which lie on the host, ask for. SHAPE when they are no scalars or
 * the range does not end. */
sb_status sb_range_read(const sb_call *call, sb_range *range);

#endif
