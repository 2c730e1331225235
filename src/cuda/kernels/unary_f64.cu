/* Element-wise operators of one f64 input. */
#include "cuda/kernels/elementwise.cuh"
#include "ops/unary_values.h"

#define KERNEL(op) IV_CUDA_UNARY(op, f64, double, double)
IV_UNARY_FORMULAS(KERNEL)
IV_CUDA_UNARY(IsNaN, f64, uint8_t, double)
IV_CUDA_UNARY(IsInf, f64, uint8_t, double)
