/* The attributes of LpNormalization and LRN, for their definitions and for kernels; those of
 * MeanVarianceNormalization are an sb_axes. */
#ifndef SB_OPS_NORMALIZATION_H
#define SB_OPS_NORMALIZATION_H

#include "ops/axes.h"

typedef struct sb_lp_params {
    int64_t axis, p;
} sb_lp_params;

typedef struct sb_lrn_params {
    float alpha, beta, bias;
    int64_t size;
} sb_lrn_params;

#endif
