/* The attributes of Softmax, LogSoftmax and Hardmax, for their definition and for kernels. */
#ifndef IV_OPS_SOFTMAX_H
#define IV_OPS_SOFTMAX_H

#include "graph/op.h"

typedef struct iv_softmax_params {
    int64_t axis;
    bool flatten; /* the row is everything from the axis on */
} iv_softmax_params;

/** The dimensions that make a row of an input of that rank, as a bit set. */
uint32_t iv_softmax_axes(const iv_softmax_params *params, int rank);

#endif
