/* What the kernels of Col2Im share with its definition. */
#ifndef IV_OPS_FOLD_H
#define IV_OPS_FOLD_H

#include "graph/op.h"

typedef struct iv_fold_params {
    int count; /* of image dimensions, as the attributes have them; 0: none has any */
    int64_t dilations[IV_MAX_RANK], pads[2 * IV_MAX_RANK], strides[IV_MAX_RANK];
} iv_fold_params;

typedef struct iv_fold {
    int rank;
    int64_t image[IV_MAX_RANK], block[IV_MAX_RANK], places[IV_MAX_RANK];
    int64_t pixels, area, count; /* products of the three */
} iv_fold;

/** What inputs 1 and 2, which lie on the host, ask for. SHAPE when `input` does not fit them. */
iv_status iv_fold_plan(const iv_call *call, const iv_tensor *input, iv_fold *plan);

#endif
