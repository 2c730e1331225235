/* Elements whose types are known only when a kernel runs: bits, and what they stand for. */
#ifndef IV_CUDA_KERNELS_CONVERT_CUH
#define IV_CUDA_KERNELS_CONVERT_CUH

#include "cuda/kernels/box.cuh"
#include "cuda/kernels/convert_parameters.h"

/* The bits of a group's elements, without a sign. */
IV_CUDA_FUNCTION void iv_cuda_load_bits(const iv_cuda_box *box, const iv_cuda_group *group,
                                        int operand, int size, uint64_t *bits) {
#define LOAD(type)                                                                                 \
    do {                                                                                           \
        type values[IV_CUDA_GROUP] = {0};                                                          \
        IV_CUDA_GROUP_LOAD(type, box, group, operand, values);                                     \
        IV_CUDA_UNROLL                                                                             \
        for (int j = 0; j < IV_CUDA_GROUP; j++)                                                    \
            bits[j] = values[j];                                                                   \
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

IV_CUDA_FUNCTION void iv_cuda_store_bits(const iv_cuda_box *box, const iv_cuda_group *group,
                                         int operand, int size, const uint64_t *bits) {
#define STORE(type)                                                                                \
    do {                                                                                           \
        type values[IV_CUDA_GROUP];                                                                \
        IV_CUDA_UNROLL                                                                             \
        for (int j = 0; j < IV_CUDA_GROUP; j++)                                                    \
            values[j] = (type)bits[j];                                                             \
        IV_CUDA_GROUP_STORE(type, box, group, operand, values);                                    \
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
#define IV_CUDA_BITS_float(bits) iv_bits_to_f32((uint32_t)(bits))
#define IV_CUDA_BITS_double(bits) iv_bits_to_f64(bits)
#define IV_CUDA_BITS_uint8_t(bits) ((uint8_t)(bits))
#define IV_CUDA_BITS_uint16_t(bits) ((uint16_t)(bits))
#define IV_CUDA_BITS_uint32_t(bits) ((uint32_t)(bits))
#define IV_CUDA_BITS_uint64_t(bits) (bits)
#define IV_CUDA_BITS_int8_t(bits) ((int8_t)(bits))
#define IV_CUDA_BITS_int16_t(bits) ((int16_t)(bits))
#define IV_CUDA_BITS_int32_t(bits) ((int32_t)(bits))
#define IV_CUDA_BITS_int64_t(bits) ((int64_t)(bits))

/* to_type iv_cuda_<to>_from_any(int type, uint64_t bits): Cast. */
#define IV_CUDA_FROM_CASE(from, from_type, kind, load, to, to_type)                                \
    case IV_CUDA_TYPE_##from:                                                                      \
        return (to_type)IV_TO_##to##_FROM_##kind(                                                  \
            IV_FROM_##kind(load(IV_CUDA_BITS_##from_type(bits))));
#define IV_CUDA_DEFINE_FROM_ANY(to, to_type)                                                       \
    IV_CUDA_FUNCTION to_type iv_cuda_##to##_from_any(int type, uint64_t bits) {                    \
        switch (type) {                                                                            \
            IV_CONVERT_SOURCES(IV_CUDA_FROM_CASE, to, to_type)                                     \
        default:                                                                                   \
            return 0;                                                                              \
        }                                                                                          \
    }

#endif
