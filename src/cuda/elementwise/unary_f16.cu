/* Element-wise operators of one f16 input. */
#include "cuda/contraction/epilogue_parameters.h"
#include "cuda/elementwise/elementwise.cuh"
#include "ops/unary_values.h"

#define LIGHT(op) SB_CUDA_UNARY(op, f16, uint16_t, uint16_t)
#define HEAVY(op) SB_CUDA_UNARY_LONG(op, f16, uint16_t, uint16_t)
SB_CUDA_EPILOGUE_LIGHT_UNARY(LIGHT)
SB_CUDA_EPILOGUE_HEAVY_UNARY(HEAVY)
#define QUESTION(op, unused) SB_CUDA_UNARY(op, f16, uint8_t, uint16_t)
SB_UNARY_QUESTIONS(QUESTION, )
