/* Rows brought to mean 0 and variance 1, or to a norm of 1: the formulas of ops/moments.h,
 * ops/row_normalization.c and ops/normalization.c. Threads meet at every SB_CUDA_BARRIER.
 *
 * Teams take what models are full of and keep the row in registers: moments and root mean squares
 * of short rows whose elements are equally far apart, with factors of the input's type. Blocks take
 * all else, and read the row again for each sum, from caches mostly. Unrolled, the general case
 * takes more than half a minute to compile. */
#include "cuda/rows/normalize.cuh"

#define TEAM(suffix, type, real, real_suffix, load, store)                                                             \
    SB_CUDA_BLOCK_KERNEL(sb_cuda_normalize_team_##suffix, sb_cuda_normalization, p) {                                  \
        const sb_cuda_rows *rows = &p->rows;                                                                           \
        SB_CUDA_TEAMS(rows) {                                                                                          \
            SB_CUDA_TEAM_ROW(rows);                                                                                    \
            ROW_POINTERS;                                                                                              \
            real values[SB_CUDA_TEAM_VALUES], mean = 0, total;                                                         \
            SB_CUDA_TEAM_EACH(i, at) {                                                                                 \
                values[i] = load(SB_CUDA_CONST_ELEMENT(type, in, NEAR(SB_CUDA_ROW_IN, at)));                           \
            }                                                                                                          \
            if (p->kind == SB_CUDA_NORM_MOMENTS) {                                                                     \
                SB_CUDA_TEAM_REDUCE(mean, SUM, SUM, real, real_suffix, values[i]);                                     \
                mean = sb_div_##real_suffix(mean, (real)used_length);                                                  \
                SB_CUDA_TEAM_EACH(i, at) {                                                                             \
                    values[i] = values[i] - mean;                                                                      \
                }                                                                                                      \
            }                                                                                                          \
            SB_CUDA_TEAM_REDUCE(total, SQUARES, SUM, real, real_suffix, values[i]);                                    \
            real inverse = sb_rsqrt_##real_suffix(sb_div_##real_suffix(total, (real)used_length) + (real)p->epsilon);  \
            if (t == 0 && base + threadIdx.x / (unsigned)team < used_rows)                                             \
                note_##real_suffix(p, row, mean, inverse);                                                             \
            if (out != NULL) {                                                                                         \
                SB_CUDA_TEAM_EACH(i, at) {                                                                             \
                    real result = values[i] * inverse;                                                                 \
                    result = result * load(SB_CUDA_CONST_ELEMENT(type, scale, NEAR(SB_CUDA_ROW_SCALE, at)));           \
                    if (bias != NULL)                                                                                  \
                        result = result + load(SB_CUDA_CONST_ELEMENT(type, bias, NEAR(SB_CUDA_ROW_BIAS, at)));         \
                    SB_CUDA_ELEMENT(type, out, NEAR(SB_CUDA_ROW_OUT, at)) = store(result);                             \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

#define BLOCK(code, suffix, type, real, real_suffix, load, store)                                                      \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_normalize_block_##suffix, sb_cuda_normalization, p, 1024, 1) {                \
        SB_CUDA_SHARED real lanes[SB_CUDA_WAVES * SB_CUDA_WAVE];                                                       \
        SB_CUDA_SHARED real parts[SB_CUDA_WAVES];                                                                      \
        const sb_cuda_rows *rows = &p->rows;                                                                           \
        int64_t length = SB_CUDA_ROWS_LENGTH(rows), count = SB_CUDA_ROWS_COUNT(rows), begin = 0;                       \
        for (int64_t row = blockIdx.x; row < count; row += gridDim.x) {                                                \
            ROW_POINTERS;                                                                                              \
            real mean = 0, total;                                                                                      \
            if (HAS_MEAN(p)) {                                                                                         \
                SB_CUDA_BLOCK_REDUCE(mean, SUM, SUM, real, real_suffix, begin, length, VALUE_AT(type, load, at));      \
                mean = sb_div_##real_suffix(mean, (real)length);                                                       \
                SB_CUDA_BLOCK_REDUCE(total, SQUARES, SUM, real, real_suffix, begin, length,                            \
                                     VALUE_AT(type, load, at) - mean);                                                 \
            } else if (p->kind == SB_CUDA_NORM_L1) {                                                                   \
                SB_CUDA_BLOCK_REDUCE(total, SUM, SUM, real, real_suffix, begin, length,                                \
                                     sb_abs_##real_suffix(VALUE_AT(type, load, at)));                                  \
            } else {                                                                                                   \
                SB_CUDA_BLOCK_REDUCE(total, SQUARES, SUM, real, real_suffix, begin, length, VALUE_AT(type, load, at)); \
            }                                                                                                          \
            real norm = norm_##real_suffix(p, total);                                                                  \
            if (threadIdx.x == 0)                                                                                      \
                note_##real_suffix(p, row, mean, norm);                                                                \
            for (int64_t at = threadIdx.x; at < length && out != NULL; at += blockDim.x) {                             \
                real value = VALUE_AT(type, load, at);                                                                 \
                STORE_ELEMENT(code, type, real, real_suffix, load, store, HAS_MEAN(p) ? value - mean : value);         \
            }                                                                                                          \
        }                                                                                                              \
    }

#define KERNELS(dtype, suffix, type, real, real_suffix, load, store, unused)                                           \
    TEAM(suffix, type, real, real_suffix, load, store)                                                                 \
    BLOCK(SB_##dtype, suffix, type, real, real_suffix, load, store)
SB_FLOAT_TYPES(KERNELS, )
