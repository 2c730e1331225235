/* Pow where base and exponent are converted first: to f32, f64 or s64. */
#include "cuda/elementwise/convert.cuh"
#include "ops/power_formula.h"

SB_CUDA_DEFINE_FROM_ANY(f32, float)
SB_CUDA_DEFINE_FROM_ANY(f64, double)
SB_CUDA_DEFINE_FROM_ANY(s64, int64_t)

/* The result's bits, which has the base's type: a float for f32, f64 or an integer for f64. */
SB_CUDA_FUNCTION uint64_t bits_of_f32(int type, float value) {
    return type == SB_CUDA_TYPE_f16    ? sb_f16_from_f32(value)
           : type == SB_CUDA_TYPE_bf16 ? sb_bf16_from_f32(value)
                                       : sb_bits_from_f32(value);
}

SB_CUDA_FUNCTION uint64_t bits_of_f64(int type, double value) {
    return type == SB_CUDA_TYPE_f64   ? sb_bits_from_f64(value)
           : type == SB_CUDA_TYPE_s32 ? (uint64_t)(uint32_t)sb_i32_from_f64(value)
                                      : (uint64_t)sb_i64_from_f64(value);
}

#define POWER(name, real, value)                                                                                       \
    SB_CUDA_KERNEL(sb_cuda_power_##name, sb_cuda_power, p) {                                                           \
        SB_CUDA_EACH_GROUP(number, &p->box) {                                                                          \
            sb_cuda_group group;                                                                                       \
            uint64_t bases[SB_CUDA_GROUP], exponents[SB_CUDA_GROUP];                                                   \
            sb_cuda_group_find(&p->box, number, 3, &group);                                                            \
            sb_cuda_load_bits(&p->box, &group, 1, p->base.size, bases);                                                \
            sb_cuda_load_bits(&p->box, &group, 2, p->exponent.size, exponents);                                        \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int turn = 0; turn < SB_CUDA_GROUP; turn++) {                                                         \
                real x = sb_cuda_##name##_from_any(p->base.type, bases[0]);                                            \
                real y = sb_cuda_##name##_from_any(p->exponent.type, exponents[0]);                                    \
                uint64_t result = value;                                                                               \
                SB_CUDA_GROUP_TURN(uint64_t, bases, result);                                                           \
                SB_CUDA_GROUP_TURN(uint64_t, exponents, exponents[0]);                                                 \
            }                                                                                                          \
            sb_cuda_store_bits(&p->box, &group, 0, p->base.size, bases);                                               \
        }                                                                                                              \
    }
POWER(f32, float, bits_of_f32(p->base.type, sb_power_f32(x, y)))
POWER(f64, double, bits_of_f64(p->base.type, sb_power_f64(x, y)))
POWER(s64, int64_t, (uint64_t)sb_power_s64(x, y, p->exponent.type != SB_CUDA_TYPE_u64, p->fault, SB_FAULT_DIVISION))
