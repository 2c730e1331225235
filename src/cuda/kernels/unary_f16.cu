/* Element-wise operators of one f16 input. */
#include "cuda/kernels/elementwise.cuh"
#include "ops/unary_values.h"

#define KERNEL(op) IV_CUDA_UNARY(op, f16, uint16_t, uint16_t)
IV_UNARY_FORMULAS(KERNEL)
IV_CUDA_UNARY(IsNaN, f16, uint8_t, uint16_t)
IV_CUDA_UNARY(IsInf, f16, uint8_t, uint16_t)
