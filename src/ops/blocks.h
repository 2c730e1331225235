/* What the kernels of CenterCropPad, ReverseSequence and Trilu share with their definitions. */
#ifndef SB_OPS_BLOCKS_H
#define SB_OPS_BLOCKS_H

#include "graph/op.h"

typedef struct sb_trilu_params {
    int64_t upper;
} sb_trilu_params;

/* ReverseSequence. */
typedef struct sb_reverse_params {
    int batch_axis, time_axis;
} sb_reverse_params;

#endif
