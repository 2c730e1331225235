/* Einsum: one thread for each element of the output walks its chain. */
#include "cuda/common/index.cuh"
#include "cuda/contraction/einsum_parameters.h"
#include "ops/real.h"

#define LOAD_f32(p, operand, at) sb_real_load_f32((p)->dtype, (p)->data[operand], at)
#define LOAD_f64(p, operand, at) (((const double *)(p)->data[operand])[at])
#define STORE_f32(p, index, value) sb_real_store_f32((p)->dtype, (p)->out, index, value)
#define STORE_f64(p, index, value) ((double *)(p)->out)[index] = (value)

/* All but the last operand are multiplied from left to right; `step` takes that product and the last
 * operand into the sum. A single operand is added. */
#define EINSUM(suffix, type, load, store, step)                                                                        \
    SB_CUDA_KERNEL(sb_cuda_einsum_##suffix, sb_cuda_einsum, p) {                                                       \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t first[SB_CUDA_EINSUM_OPERANDS], at[SB_CUDA_EINSUM_OPERANDS], rest = index;                         \
            int last = p->operands - 1, innermost = p->outer + p->inner - 1;                                           \
            int64_t length = p->inner > 0 ? p->dims[innermost] : 1;                                                    \
            type sum = (type)0;                                                                                        \
            for (int t = 0; t <= last; t++)                                                                            \
                first[t] = 0;                                                                                          \
            for (int d = p->outer - 1; d >= 0; d--) {                                                                  \
                int64_t place = sb_cuda_take(&rest, p->dims[d]);                                                       \
                for (int t = 0; t <= last; t++)                                                                        \
                    first[t] += place * p->steps[t][d];                                                                \
            }                                                                                                          \
            for (int64_t row = 0; row < p->rows; row++) {                                                              \
                int64_t number = row;                                                                                  \
                for (int t = 0; t <= last; t++)                                                                        \
                    at[t] = first[t];                                                                                  \
                for (int d = innermost - 1; d >= p->outer; d--) {                                                      \
                    int64_t place = sb_cuda_take(&number, p->dims[d]);                                                 \
                    for (int t = 0; t <= last; t++)                                                                    \
                        at[t] += place * p->steps[t][d];                                                               \
                }                                                                                                      \
                for (int64_t i = 0; i < length; i++) {                                                                 \
                    type value = load(p, last, at[last]), product = 0;                                                 \
                    for (int t = 0; t < last; t++)                                                                     \
                        product = t == 0 ? load(p, 0, at[0]) : (type)(product * load(p, t, at[t]));                    \
                    sum = last == 0 ? (type)(sum + value) : step(product, value, sum);                                 \
                    for (int t = 0; t <= last && p->inner > 0; t++)                                                    \
                        at[t] += p->steps[t][innermost];                                                               \
                }                                                                                                      \
            }                                                                                                          \
            store(p, index, sum);                                                                                      \
        }                                                                                                              \
    }
EINSUM(f32, float, LOAD_f32, STORE_f32, sb_fma_f32)
EINSUM(f64, double, LOAD_f64, STORE_f64, sb_fma_f64)

/* Integers modulo 2 to the width, for which signs do not matter; and, with one operand and nothing to
 * sum, elements that move. Narrow types are computed as unsigned, so that nothing overflows. */
#define WRAP(product, value, sum) ((sum) + (product) * (value))
#define INTEGER(size, wide) EINSUM(size, wide, LOAD_##size, STORE_##size, WRAP)
#define LOAD_8(p, operand, at) ((uint32_t)((const uint8_t *)(p)->data[operand])[at])
#define LOAD_16(p, operand, at) ((uint32_t)((const uint16_t *)(p)->data[operand])[at])
#define LOAD_32(p, operand, at) (((const uint32_t *)(p)->data[operand])[at])
#define LOAD_64(p, operand, at) (((const uint64_t *)(p)->data[operand])[at])
#define STORE_8(p, index, value) ((uint8_t *)(p)->out)[index] = (uint8_t)(value)
#define STORE_16(p, index, value) ((uint16_t *)(p)->out)[index] = (uint16_t)(value)
#define STORE_32(p, index, value) ((uint32_t *)(p)->out)[index] = (value)
#define STORE_64(p, index, value) ((uint64_t *)(p)->out)[index] = (value)
INTEGER(8, uint32_t)
INTEGER(16, uint32_t)
INTEGER(32, uint32_t)
INTEGER(64, uint64_t)
