/* What the kernels of DeformConv share with its definition. */
#ifndef IV_OPS_CONVOLUTION_DEFORMABLE_H
#define IV_OPS_CONVOLUTION_DEFORMABLE_H

#include "ops/convolution.h"

typedef struct iv_deform_params {
    iv_conv_params conv;
    int64_t offset_group;
} iv_deform_params;

#endif
