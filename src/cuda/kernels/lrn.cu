/* LRN by the formula of ops/normalization.c: a thread for each element, neighbours being neighbours
 * of one channel. */
#include "cuda/kernels/rows.cuh"
#include "numerics/power.h"
#include "numerics/power_f64.h"
#include "ops/type_lists.h"

#define VALUE(type, load, c)                                                                       \
    load(IV_CUDA_CONST_ELEMENT(type, in, (c)*rows->inner_steps[IV_CUDA_ROW_IN][0]))

#define KERNELS(dtype, suffix, type, real, real_suffix, load, store, unused)                       \
    IV_CUDA_KERNEL(iv_cuda_lrn_##suffix, iv_cuda_lrn, p) {                                         \
        const iv_cuda_rows *rows = &p->rows;                                                       \
        real weight = iv_div_##real_suffix((real)p->alpha, (real)p->size);                         \
        int64_t before = (p->size - 1) / 2, after = p->size - 1 - before, count = rows->length;    \
        IV_CUDA_EACH(index, rows->count * rows->length) {                                          \
            int64_t c = index / rows->count, row = index - c * rows->count;                        \
            const char *in = IV_CUDA_ROW_FIRST(rows, IV_CUDA_ROW_IN, row);                         \
            int64_t first = c > before ? c - before : 0;                                           \
            int64_t last = after < count - 1 - c ? c + after : count - 1;                          \
            real sum = 0;                                                                          \
            for (int64_t i = first; i <= last; i++) {                                              \
                real value = VALUE(type, load, i);                                                 \
                sum = iv_fma_##real_suffix(value, value, sum);                                     \
            }                                                                                      \
            real base = (real)p->bias + weight * sum;                                              \
            IV_CUDA_ELEMENT(type, IV_CUDA_ROW_FIRST(rows, IV_CUDA_ROW_OUT, row),                   \
                            c * rows->inner_steps[IV_CUDA_ROW_OUT][0]) =                           \
                store(iv_div_##real_suffix(VALUE(type, load, c),                                   \
                                           iv_pow_##real_suffix(base, (real)p->beta)));            \
        }                                                                                          \
    }
IV_FLOAT_TYPES(KERNELS, )
