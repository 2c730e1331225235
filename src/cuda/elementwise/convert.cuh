/* Elements whose types are known only when a kernel runs: bits, and what they stand for. */
#ifndef SB_CUDA_ELEMENTWISE_CONVERT_CUH
#define SB_CUDA_ELEMENTWISE_CONVERT_CUH

#include "cuda/common/box.cuh"
#include "cuda/elementwise/convert_parameters.h"

/* The bits of a group's elements, without a sign. */
SB_CUDA_FUNCTION void sb_cuda_load_bits(const sb_cuda_box *box, const sb_cuda_group *group, int operand, int size,
                                        uint64_t *bits) {
#define LOAD(type)                                                                                                     \
    do {                                                                                                               \
        type values[SB_CUDA_GROUP] = {0};                                                                              \
        SB_CUDA_GROUP_LOAD(type, box, group, operand, values);                                                         \
        SB_CUDA_UNROLL                                                                                                 \
        for (int j = 0; j < SB_CUDA_GROUP; j++)                                                                        \
            bits[j] = values[j];                                                                                       \
    } while (0)
    if (size == 4)
        LOAD(uint32_t);
    else if (size == 2)
        LOAD(uint16_t);
    else if (size == 1)
        LOAD(uint8_t);
    else
        LOAD(uint64_t);
#undef LOAD
}

SB_CUDA_FUNCTION void sb_cuda_store_bits(const sb_cuda_box *box, const sb_cuda_group *group, int operand, int size,
                                         const uint64_t *bits) {
#define STORE(type)                                                                                                    \
    do {                                                                                                               \
        type values[SB_CUDA_GROUP];                                                                                    \
        SB_CUDA_UNROLL                                                                                                 \
        for (int j = 0; j < SB_CUDA_GROUP; j++)                                                                        \
            values[j] = (type)bits[j];                                                                                 \
        SB_CUDA_GROUP_STORE(type, box, group, operand, values);                                                        \
    } while (0)
    if (size == 4)
        STORE(uint32_t);
    else if (size == 2)
        STORE(uint16_t);
    else if (size == 1)
        STORE(uint8_t);
    else
        STORE(uint64_t);
#undef STORE
}

/* What bits stand for. */
#define SB_CUDA_BITS_float(bits) sb_bits_to_f32((uint32_t)(bits))
#define SB_CUDA_BITS_double(bits) sb_bits_to_f64(bits)
#define SB_CUDA_BITS_uint8_t(bits) ((uint8_t)(bits))
#define SB_CUDA_BITS_uint16_t(bits) ((uint16_t)(bits))
#define SB_CUDA_BITS_uint32_t(bits) ((uint32_t)(bits))
#define SB_CUDA_BITS_uint64_t(bits) (bits)
#define SB_CUDA_BITS_int8_t(bits) ((int8_t)(bits))
#define SB_CUDA_BITS_int16_t(bits) ((int16_t)(bits))
#define SB_CUDA_BITS_int32_t(bits) ((int32_t)(bits))
#define SB_CUDA_BITS_int64_t(bits) ((int64_t)(bits))

/* to_type sb_cuda_<to>_from_any(int type, uint64_t bits): Cast. */
#define SB_CUDA_FROM_CASE(from, from_type, kind, load, to, to_type)                                                    \
    case SB_CUDA_TYPE_##from:                                                                                          \
        return (to_type)SB_TO_##to##_FROM_##kind(SB_FROM_##kind(load(SB_CUDA_BITS_##from_type(bits))));
#define SB_CUDA_DEFINE_FROM_ANY(to, to_type)                                                                           \
    SB_CUDA_FUNCTION to_type sb_cuda_##to##_from_any(int type, uint64_t bits) {                                        \
        switch (type) {                                                                                                \
            SB_CONVERT_SOURCES(SB_CUDA_FROM_CASE, to, to_type)                                                         \
            SB_CONVERT_SMALL(SB_CUDA_FROM_CASE, to, to_type)                                                           \
        default:                                                                                                       \
            return 0;                                                                                                  \
        }                                                                                                              \
    }

/* A small float from f32, or f8e8m0. */
SB_CUDA_FUNCTION uint8_t sb_cuda_small_from_f32(int type, float value, int saturate, int round) {
#define SMALL_CASE(name, dtype, mantissa, bias, largest, beyond, nan, bits, unused)                                    \
    case SB_CUDA_TYPE_##name:                                                                                          \
        return sb_##name##_from_f32(value, saturate);
    switch (type) {
        SB_SMALL_FLOATS(SMALL_CASE, )
    default:
        return sb_f8e8m0_from_f32(value, saturate, round);
    }
#undef SMALL_CASE
}

#endif
