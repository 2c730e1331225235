/* Element-wise operators of two f16, bf16, f32 or f64 inputs. */
#include "cuda/elementwise/elementwise.cuh"
#include "ops/binary_values.h"

#define KERNELS(dtype, suffix, type, real, real_suffix, load, store, unused)                                           \
    SB_CUDA_BINARY(Add, suffix, type, type)                                                                            \
    SB_CUDA_BINARY(Sub, suffix, type, type)                                                                            \
    SB_CUDA_BINARY(Mul, suffix, type, type)                                                                            \
    SB_CUDA_BINARY(Div, suffix, type, type)                                                                            \
    SB_CUDA_BINARY(PRelu, suffix, type, type)                                                                          \
    SB_CUDA_BINARY_LONG(Mod, suffix, type, type)                                                                       \
    SB_CUDA_BINARY_LONG(Fmod, suffix, type, type)                                                                      \
    SB_CUDA_BINARY(Max, suffix, type, type)                                                                            \
    SB_CUDA_BINARY(Min, suffix, type, type)                                                                            \
    SB_CUDA_BINARY_LONG(Pow, suffix, type, type)                                                                       \
    SB_CUDA_BINARY(Equal, suffix, uint8_t, type)                                                                       \
    SB_CUDA_BINARY(Greater, suffix, uint8_t, type)                                                                     \
    SB_CUDA_BINARY(Less, suffix, uint8_t, type)                                                                        \
    SB_CUDA_BINARY(GreaterOrEqual, suffix, uint8_t, type)                                                              \
    SB_CUDA_BINARY(LessOrEqual, suffix, uint8_t, type)
SB_FLOAT_TYPES(KERNELS, )
