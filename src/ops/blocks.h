/* What the kernels of CenterCropPad, ReverseSequence and Trilu share with their definitions. */
#ifndef IV_OPS_BLOCKS_H
#define IV_OPS_BLOCKS_H

#include "graph/op.h"

typedef struct iv_trilu_params {
    int64_t upper;
} iv_trilu_params;

/* ReverseSequence. */
typedef struct iv_reverse_params {
    int batch_axis, time_axis;
} iv_reverse_params;

#endif
