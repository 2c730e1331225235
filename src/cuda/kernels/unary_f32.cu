/* Element-wise operators of one f32 input. */
#include "cuda/kernels/elementwise.cuh"
#include "ops/unary_values.h"

#define KERNEL(op) IV_CUDA_UNARY(op, f32, float, float)
IV_UNARY_FORMULAS(KERNEL)
IV_CUDA_UNARY(IsNaN, f32, uint8_t, float)
IV_CUDA_UNARY(IsInf, f32, uint8_t, float)
