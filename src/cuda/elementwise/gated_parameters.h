/* The struct that the kernels of gated.cu take. */
#ifndef SB_CUDA_ELEMENTWISE_GATED_PARAMETERS_H
#define SB_CUDA_ELEMENTWISE_GATED_PARAMETERS_H

#include "cuda/common/parameters.h"

/* Operand 0 is the output, 1 the gate, 2 the value. */
typedef struct sb_cuda_gated {
    sb_cuda_box box;
    float alpha;
} sb_cuda_gated;

#endif
