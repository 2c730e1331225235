/* The attributes of Softmax, LogSoftmax and Hardmax, for their definition and for kernels. */
#ifndef SB_OPS_SOFTMAX_H
#define SB_OPS_SOFTMAX_H

#include "graph/op.h"

typedef struct sb_softmax_params {
    int64_t axis;
    bool flatten; /* the row is everything from the axis on */
} sb_softmax_params;

/** The dimensions that make a row of an input of that rank, as a bit set. */
uint32_t sb_softmax_axes(const sb_softmax_params *params, int rank);

#endif
