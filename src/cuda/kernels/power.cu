/* Pow where base and exponent are converted first: to f32, f64 or s64. */
#include "cuda/kernels/convert.cuh"
#include "ops/power_formula.h"

IV_CUDA_DEFINE_FROM_ANY(f32, float)
IV_CUDA_DEFINE_FROM_ANY(f64, double)
IV_CUDA_DEFINE_FROM_ANY(s64, int64_t)

/* The result's bits, which has the base's type: a float for f32, f64 or an integer for f64. */
IV_CUDA_FUNCTION uint64_t bits_of_f32(int type, float value) {
    return type == IV_CUDA_TYPE_f16    ? iv_f16_from_f32(value)
           : type == IV_CUDA_TYPE_bf16 ? iv_bf16_from_f32(value)
                                       : iv_bits_from_f32(value);
}

IV_CUDA_FUNCTION uint64_t bits_of_f64(int type, double value) {
    return type == IV_CUDA_TYPE_f64   ? iv_bits_from_f64(value)
           : type == IV_CUDA_TYPE_s32 ? (uint64_t)(uint32_t)iv_i32_from_f64(value)
                                      : (uint64_t)iv_i64_from_f64(value);
}

#define POWER(name, real, value)                                                                   \
    IV_CUDA_KERNEL(iv_cuda_power_##name, iv_cuda_power, p) {                                       \
        IV_CUDA_EACH_GROUP(number, &p->box) {                                                      \
            iv_cuda_group group;                                                                   \
            uint64_t bases[IV_CUDA_GROUP], exponents[IV_CUDA_GROUP];                               \
            iv_cuda_group_find(&p->box, number, 3, &group);                                        \
            iv_cuda_load_bits(&p->box, &group, 1, p->base.size, bases);                            \
            iv_cuda_load_bits(&p->box, &group, 2, p->exponent.size, exponents);                    \
            IV_CUDA_KEEP_LOOP                                                                      \
            for (int turn = 0; turn < IV_CUDA_GROUP; turn++) {                                     \
                real x = iv_cuda_##name##_from_any(p->base.type, bases[0]);                        \
                real y = iv_cuda_##name##_from_any(p->exponent.type, exponents[0]);                \
                uint64_t result = value;                                                           \
                IV_CUDA_GROUP_TURN(uint64_t, bases, result);                                       \
                IV_CUDA_GROUP_TURN(uint64_t, exponents, exponents[0]);                             \
            }                                                                                      \
            iv_cuda_store_bits(&p->box, &group, 0, p->base.size, bases);                           \
        }                                                                                          \
    }
POWER(f32, float, bits_of_f32(p->base.type, iv_power_f32(x, y)))
POWER(f64, double, bits_of_f64(p->base.type, iv_power_f64(x, y)))
POWER(s64, int64_t,
      (uint64_t)iv_power_s64(x, y, p->exponent.type != IV_CUDA_TYPE_u64, p->fault, IV_CUDA_FAULT_DIVISION))
