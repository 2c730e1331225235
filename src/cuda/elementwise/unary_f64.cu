/* Element-wise operators of one f64 input. */
#include "cuda/contraction/epilogue_parameters.h"
#include "cuda/elementwise/elementwise.cuh"
#include "ops/unary_values.h"

#define LIGHT(op) SB_CUDA_UNARY(op, f64, double, double)
#define HEAVY(op) SB_CUDA_UNARY_LONG(op, f64, double, double)
SB_CUDA_EPILOGUE_LIGHT_UNARY(LIGHT)
SB_CUDA_EPILOGUE_HEAVY_UNARY(HEAVY)
#define QUESTION(op, unused) SB_CUDA_UNARY(op, f64, uint8_t, double)
SB_UNARY_QUESTIONS(QUESTION, )
