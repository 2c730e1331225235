/* What the kernels of CausalConvWithState share with its definition. */
#ifndef SB_OPS_CAUSAL_CONVOLUTION_H
#define SB_OPS_CAUSAL_CONVOLUTION_H

#include "graph/op.h"

typedef struct sb_causal_params {
    bool swish; /* behind the bias */
} sb_causal_params;

typedef struct sb_causal_work {
    const sb_tensor *x, *weights, *bias, *past; /* bias and past: NULL where omitted */
    sb_tensor *y, *present;                     /* NULL where nobody wants them */
    int64_t batch, channels, length, taps;
    bool swish;
} sb_causal_work;

/** Describes and checks a call: SHAPE where extents do not fit each other. The outputs are the caller's to set. */
sb_status sb_causal_describe(const sb_call *call, sb_causal_work *work);

/** Bytes of workspace that computing rows takes: a row and what is ahead of it. SHAPE where no machine has so many. */
sb_status sb_causal_workspace(const sb_call *call, const sb_causal_work *work, size_t *bytes);

/** Computes row `row` (a channel of a sample: sample · channels + channel) of both outputs. */
void sb_causal_row(const sb_causal_work *work, int64_t row, void *workspace);

#endif
