/* The attributes of LpNormalization and LRN, for their definitions and for kernels; those of
 * MeanVarianceNormalization are an iv_axes. */
#ifndef IV_OPS_NORMALIZATION_H
#define IV_OPS_NORMALIZATION_H

#include "ops/axes.h"

typedef struct iv_lp_params {
    int64_t axis, p;
} iv_lp_params;

typedef struct iv_lrn_params {
    float alpha, beta, bias;
    int64_t size;
} iv_lrn_params;

#endif
