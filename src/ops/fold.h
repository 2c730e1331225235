/* What the kernels of Col2Im share with its definition. */
#ifndef SB_OPS_FOLD_H
#define SB_OPS_FOLD_H

#include "graph/op.h"

typedef struct sb_fold_params {
    int count; /* of image dimensions, as the attributes have them; 0: none has any */
    int64_t dilations[SB_MAX_RANK], pads[2 * SB_MAX_RANK], strides[SB_MAX_RANK];
} sb_fold_params;

typedef struct sb_fold {
    int rank;
    int64_t image[SB_MAX_RANK], block[SB_MAX_RANK], places[SB_MAX_RANK];
    int64_t pixels, area, count; /* products of the three */
} sb_fold;

/** What inputs 1 and 2, which lie on the host, ask for. SHAPE when `input` does not fit them. */
sb_status sb_fold_plan(const sb_call *call, const sb_tensor *input, sb_fold *plan);

#endif
