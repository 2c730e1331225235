/* Element-wise operators of two f16, bf16, f32 or f64 inputs. */
#include "cuda/elementwise/elementwise.cuh"
#include "ops/binary_list.h"
#include "ops/binary_values.h"

#define COMPARISON(op, suffix, type) SB_CUDA_BINARY(op, suffix, uint8_t, type)
#define KERNELS(dtype, suffix, type, real, real_suffix, load, store, unused)                                           \
    SB_BINARY_LIGHT_FLOATS(SB_CUDA_BINARY, suffix, type, type)                                                         \
    SB_BINARY_HEAVY_FLOATS(SB_CUDA_BINARY_LONG, suffix, type, type)                                                    \
    SB_BINARY_COMPARISONS(COMPARISON, suffix, type)
SB_FLOAT_TYPES(KERNELS, )
