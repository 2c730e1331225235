/* Reductions of f16, bf16, f32 and f64 rows. Threads meet at every SB_CUDA_BARRIER. */
#include "cuda/rows/reduce.cuh"
#include "ops/type_lists.h"

#define MAP_SAME_f32(value, shift, p) (value)
#define MAP_SAME_f64(value, shift, p) (value)
#define MAP_ABS_f32(value, shift, p) sb_abs_f32(value)
#define MAP_ABS_f64(value, shift, p) sb_abs_f64(value)
#define MAP_EXP_f32(value, shift, p) sb_exp_f32((value) - (shift))
#define MAP_EXP_f64(value, shift, p) sb_exp_f64((value) - (shift))

#define LOAD_f16(p, data, index) sb_f16_to_f32(((const uint16_t *)(const void *)(data))[index])
#define LOAD_bf16(p, data, index) sb_bf16_to_f32(((const uint16_t *)(const void *)(data))[index])
#define LOAD_f32(p, data, index) (((const float *)(const void *)(data))[index])
#define LOAD_f64(p, data, index) (((const double *)(const void *)(data))[index])
#define STORE_f16(p, data, value) (*(uint16_t *)(void *)(data) = sb_f16_from_f32(value))
#define STORE_bf16(p, data, value) (*(uint16_t *)(void *)(data) = sb_bf16_from_f32(value))
#define STORE_f32(p, data, value) (*(float *)(void *)(data) = (value))
#define STORE_f64(p, data, value) (*(double *)(void *)(data) = (value))

#define KERNELS(dtype, suffix, type, real, real_suffix, load, store, unused)                                           \
    SB_CUDA_REDUCTION(sum, SUM, SUM, 0, suffix, real, real_suffix, LOAD_##suffix, STORE_##suffix,                      \
                      MAP_SAME_##real_suffix, SB_CUDA_SHIFT_NONE)                                                      \
    SB_CUDA_REDUCTION(magnitudes, SUM, SUM, 0, suffix, real, real_suffix, LOAD_##suffix, STORE_##suffix,               \
                      MAP_ABS_##real_suffix, SB_CUDA_SHIFT_NONE)                                                       \
    SB_CUDA_REDUCTION(squares, SQUARES, SUM, 0, suffix, real, real_suffix, LOAD_##suffix, STORE_##suffix,              \
                      MAP_SAME_##real_suffix, SB_CUDA_SHIFT_NONE)                                                      \
    SB_CUDA_REDUCTION(exponentials, SUM, SUM, 0, suffix, real, real_suffix, LOAD_##suffix, STORE_##suffix,             \
                      MAP_EXP_##real_suffix, SB_CUDA_SHIFT_HIGHEST)                                                    \
    SB_CUDA_REDUCTION(product, PROD, PROD, 1, suffix, real, real_suffix, LOAD_##suffix, STORE_##suffix,                \
                      MAP_SAME_##real_suffix, SB_CUDA_SHIFT_NONE)                                                      \
    SB_CUDA_REDUCTION(max, MAX, MAX, -sb_infinity_##real_suffix(), suffix, real, real_suffix, LOAD_##suffix,           \
                      STORE_##suffix, MAP_SAME_##real_suffix, SB_CUDA_SHIFT_NONE)                                      \
    SB_CUDA_REDUCTION(min, MIN, MIN, sb_infinity_##real_suffix(), suffix, real, real_suffix, LOAD_##suffix,            \
                      STORE_##suffix, MAP_SAME_##real_suffix, SB_CUDA_SHIFT_NONE)
SB_FLOAT_TYPES(KERNELS, )
