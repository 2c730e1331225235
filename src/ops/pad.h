/* What the kernels of Pad share with its definition. */
#ifndef SB_OPS_PAD_H
#define SB_OPS_PAD_H

#include "graph/op.h"
#include "ops/pad_values.h"

typedef struct sb_pad_params {
    sb_pad_mode mode;
    bool has_pads; /* pads and value are attributes (before opset 11) */
    float value;
    int count;
    int64_t pads[2 * SB_MAX_RANK];
} sb_pad_params;

/** The elements added before each axis of input 0 (negative: taken off) and the extents of the
 * output, both [rank], from attributes or inputs 1 and 3. SHAPE when they do not fit. */
sb_status sb_pad_extents(const sb_call *call, int64_t *before, int64_t *dims);

/** The bits of the constant, the rest of sizeof(sb_string) bytes 0: input 2, the attribute (of the
 * float dtypes), or zero. */
sb_status sb_pad_constant(const sb_call *call, char *bits);

#endif
