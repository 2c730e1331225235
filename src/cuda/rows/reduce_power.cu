/* Sums of powers of magnitudes, and their roots: GlobalLpPool with any p. By blocks alone, since
 * pow is long and such models are rare. Threads meet at every SB_CUDA_BARRIER. */
#include "cuda/rows/reduce.cuh"
#include "ops/type_lists.h"

#define MAP_f32(value, shift, p) sb_pow_f32(sb_abs_f32(value), (p)->exponent)
#define MAP_f64(value, shift, p) sb_pow_f64(sb_abs_f64(value), (double)(p)->exponent)
#define ROOT_f32(p, total) sb_pow_f32((total), sb_div_f32(1.0f, (p)->exponent))
#define ROOT_f64(p, total) sb_pow_f64((total), sb_div_f64(1.0, (double)(p)->exponent))

#define LOAD_f16(p, data, index) sb_f16_to_f32(((const uint16_t *)(const void *)(data))[index])
#define LOAD_bf16(p, data, index) sb_bf16_to_f32(((const uint16_t *)(const void *)(data))[index])
#define LOAD_f32(p, data, index) (((const float *)(const void *)(data))[index])
#define LOAD_f64(p, data, index) (((const double *)(const void *)(data))[index])
#define STORE_f16(p, data, value) (*(uint16_t *)(void *)(data) = sb_f16_from_f32(ROOT_f32(p, value)))
#define STORE_bf16(p, data, value) (*(uint16_t *)(void *)(data) = sb_bf16_from_f32(ROOT_f32(p, value)))
#define STORE_f32(p, data, value) (*(float *)(void *)(data) = ROOT_f32(p, value))
#define STORE_f64(p, data, value) (*(double *)(void *)(data) = ROOT_f64(p, value))

#define KERNELS(dtype, suffix, type, real, real_suffix, load, store, unused)                                           \
    SB_CUDA_REDUCTION_OF_LONG_ROWS(powers, SUM, SUM, 0, suffix, real, real_suffix, LOAD_##suffix, STORE_##suffix,      \
                                   MAP_##real_suffix, SB_CUDA_SHIFT_NONE)
SB_FLOAT_TYPES(KERNELS, )
