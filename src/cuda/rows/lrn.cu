/* LRN by the formula of ops/normalization.c: a thread for each element, neighbours being neighbours
 * of one channel. */
#include "cuda/rows/rows.cuh"
#include "numerics/power.h"
#include "numerics/power_f64.h"
#include "ops/type_lists.h"

#define VALUE(type, load, c) load(SB_CUDA_CONST_ELEMENT(type, in, (c)*rows->inner_steps[SB_CUDA_ROW_IN][0]))

#define KERNELS(dtype, suffix, type, real, real_suffix, load, store, unused)                                           \
    SB_CUDA_KERNEL(sb_cuda_lrn_##suffix, sb_cuda_lrn, p) {                                                             \
        const sb_cuda_rows *rows = &p->rows;                                                                           \
        real weight = sb_div_##real_suffix((real)p->alpha, (real)p->size);                                             \
        int64_t before = (p->size - 1) / 2, after = p->size - 1 - before, count = rows->length;                        \
        SB_CUDA_EACH(index, rows->count * rows->length) {                                                              \
            int64_t c = index / rows->count, row = index - c * rows->count;                                            \
            const char *in = SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_IN, row);                                             \
            int64_t first = c > before ? c - before : 0;                                                               \
            int64_t last = after < count - 1 - c ? c + after : count - 1;                                              \
            real sum = 0;                                                                                              \
            for (int64_t i = first; i <= last; i++) {                                                                  \
                real value = VALUE(type, load, i);                                                                     \
                sum = sb_fma_##real_suffix(value, value, sum);                                                         \
            }                                                                                                          \
            real base = (real)p->bias + weight * sum;                                                                  \
            SB_CUDA_ELEMENT(type, SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_OUT, row),                                       \
                            c * rows->inner_steps[SB_CUDA_ROW_OUT][0]) =                                               \
                store(sb_div_##real_suffix(VALUE(type, load, c), sb_pow_##real_suffix(base, (real)p->beta)));          \
        }                                                                                                              \
    }
SB_FLOAT_TYPES(KERNELS, )
