/* Sums of powers of magnitudes, and their roots: GlobalLpPool with any p. By blocks alone, since
 * pow is long and such models are rare. Threads meet at every IV_CUDA_BARRIER. */
#include "cuda/kernels/reduce.cuh"
#include "ops/type_lists.h"

#define MAP_f32(value, shift, p) iv_pow_f32(iv_abs_f32(value), (p)->exponent)
#define MAP_f64(value, shift, p) iv_pow_f64(iv_abs_f64(value), (double)(p)->exponent)
#define ROOT_f32(p, total) iv_pow_f32((total), iv_div_f32(1.0f, (p)->exponent))
#define ROOT_f64(p, total) iv_pow_f64((total), iv_div_f64(1.0, (double)(p)->exponent))

#define LOAD_f16(p, data, index) iv_f16_to_f32(((const uint16_t *)(const void *)(data))[index])
#define LOAD_bf16(p, data, index) iv_bf16_to_f32(((const uint16_t *)(const void *)(data))[index])
#define LOAD_f32(p, data, index) (((const float *)(const void *)(data))[index])
#define LOAD_f64(p, data, index) (((const double *)(const void *)(data))[index])
#define STORE_f16(p, data, value)                                                                  \
    (*(uint16_t *)(void *)(data) = iv_f16_from_f32(ROOT_f32(p, value)))
#define STORE_bf16(p, data, value)                                                                 \
    (*(uint16_t *)(void *)(data) = iv_bf16_from_f32(ROOT_f32(p, value)))
#define STORE_f32(p, data, value) (*(float *)(void *)(data) = ROOT_f32(p, value))
#define STORE_f64(p, data, value) (*(double *)(void *)(data) = ROOT_f64(p, value))

#define KERNELS(dtype, suffix, type, real, real_suffix, load, store, unused)                       \
    IV_CUDA_REDUCTION_OF_LONG_ROWS(powers, SUM, SUM, suffix, real, real_suffix, LOAD_##suffix,     \
                                   STORE_##suffix, MAP_##real_suffix, IV_CUDA_SHIFT_NONE)
IV_FLOAT_TYPES(KERNELS, )
