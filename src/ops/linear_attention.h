/* What the kernels of LinearAttention share with its definition. */
#ifndef SB_OPS_LINEAR_ATTENTION_H
#define SB_OPS_LINEAR_ATTENTION_H

#include "graph/op.h"

/* What a step does beside adding k and v. */
enum { SB_LINEAR_DECAYS = 1, SB_LINEAR_CORRECTS = 2 };

typedef struct sb_linear_params {
    int64_t heads, key_heads; /* of queries; of keys, values and states */
    int rule;                 /* SB_LINEAR_DECAYS, SB_LINEAR_CORRECTS */
    float scale;              /* 0: from the width of keys */
} sb_linear_params;

typedef struct sb_linear_work {
    const sb_linear_params *params;
    const sb_tensor *query, *key, *value, *past, *decay, *beta; /* past, decay and beta: NULL where omitted */
    sb_tensor *output, *present;                                /* NULL where nobody wants them */
    int64_t batch, positions, width, value_width;
    float scale;
} sb_linear_work;

/** Describes and checks a call, but for its outputs; follows no address. Errors: SHAPE where extents do not fit each other. */
sb_status sb_linear_describe(const sb_call *call, sb_linear_work *work);

/** Makes the outputs that are wanted. Errors: those of sb_call_output. */
sb_status sb_linear_make_outputs(sb_call *call, sb_linear_work *work);

#endif
