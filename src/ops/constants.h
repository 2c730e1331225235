/* What the kernels of ConstantOfShape, EyeLike and Range share with their definitions. */
#ifndef IV_OPS_CONSTANTS_H
#define IV_OPS_CONSTANTS_H

#include "graph/op.h"
#include "ops/range_values.h"

/* ConstantOfShape. */
typedef struct iv_fill_params {
    iv_dtype dtype;
    iv_tensor *value; /* one element; NULL for f32 zero */
} iv_fill_params;

/* EyeLike. */
typedef struct iv_eye_params {
    iv_dtype dtype; /* NONE: the input's */
    int64_t diagonal;
} iv_eye_params;

/** The bits of 1 in `dtype`, in the low bytes. */
uint64_t iv_bits_of_one(iv_dtype dtype);

/** What inputs 0 to 2 of Range, which lie on the host, ask for. SHAPE when they are no scalars or
 * the range does not end. */
iv_status iv_range_read(const iv_call *call, iv_range *range);

#endif
