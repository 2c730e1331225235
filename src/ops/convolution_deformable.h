/* What the kernels of DeformConv share with its definition. */
#ifndef SB_OPS_CONVOLUTION_DEFORMABLE_H
#define SB_OPS_CONVOLUTION_DEFORMABLE_H

#include "ops/convolution.h"

typedef struct sb_deform_params {
    sb_conv_params conv;
    int64_t offset_group;
} sb_deform_params;

#endif
