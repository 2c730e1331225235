/* Rows brought to mean 0 and variance 1, or to a norm of 1: the formulas of ops/moments.h,
 * ops/row_normalization.c and ops/normalization.c. Threads meet at every IV_CUDA_BARRIER.
 *
 * Teams take what models are full of and keep the row in registers: moments and root mean squares
 * of short rows whose elements are equally far apart, with factors of the input's type. Blocks take
 * all else, and read the row again for each sum, from caches mostly. Unrolled, the general case
 * takes more than half a minute to compile. */
#include "cuda/kernels/rows.cuh"
#include "ops/number.h"
#include "ops/type_lists.h"

/* Scale and bias may be of another type, and are then converted. */
#define FACTOR(type, real, load, dtype_code, factor_dtype, address)                                \
    ((factor_dtype) == (dtype_code)                                                                \
         ? load(IV_CUDA_CONST_ELEMENT(type, address, 0))                                           \
         : (real)iv_number_load((iv_dtype)(factor_dtype), (address), 0))

/* What rows have in common once the sums are known. `norm` is the row's norm for the norms, its
 * deviation for MeanVarianceNormalization, and 1 / deviation else. */
#define DEFINE_NORM(real, suffix)                                                                  \
    IV_CUDA_FUNCTION real norm_##suffix(const iv_cuda_normalization *p, real total) {              \
        switch (p->kind) {                                                                         \
        case IV_CUDA_NORM_L1:                                                                      \
            return total;                                                                          \
        case IV_CUDA_NORM_L2:                                                                      \
            return iv_sqrt_##suffix(total);                                                        \
        case IV_CUDA_NORM_DEVIATION:                                                               \
            return iv_sqrt_##suffix(iv_div_##suffix(total, (real)p->rows.length)) + (real)1e-9;    \
        default:                                                                                   \
            return iv_rsqrt_##suffix(iv_div_##suffix(total, (real)p->rows.length) +                \
                                     (real)p->epsilon);                                            \
        }                                                                                          \
    }                                                                                              \
    IV_CUDA_FUNCTION real normalised_##suffix(const iv_cuda_normalization *p, real value,          \
                                              real norm) {                                         \
        switch (p->kind) {                                                                         \
        case IV_CUDA_NORM_L1:                                                                      \
        case IV_CUDA_NORM_L2:                                                                      \
            return norm == 0 ? 0 : iv_div_##suffix(value, norm);                                   \
        case IV_CUDA_NORM_DEVIATION:                                                               \
            return iv_div_##suffix(value, norm);                                                   \
        default:                                                                                   \
            return value * norm;                                                                   \
        }                                                                                          \
    }                                                                                              \
    IV_CUDA_FUNCTION void note_##suffix(const iv_cuda_normalization *p, int64_t row, real mean,    \
                                        real inverse) {                                            \
        if (p->means != NULL)                                                                      \
            iv_number_store((iv_dtype)p->note_dtype, p->means, row, (double)mean);                 \
        if (p->inverses != NULL)                                                                   \
            iv_number_store((iv_dtype)p->note_dtype, p->inverses, row, (double)inverse);           \
    }
DEFINE_NORM(float, f32)
DEFINE_NORM(double, f64)

#define HAS_MEAN(p) ((p)->kind == IV_CUDA_NORM_MOMENTS || (p)->kind == IV_CUDA_NORM_DEVIATION)

#define STORE_ELEMENT(suffix_code, type, real, real_suffix, load, store, value)                    \
    do {                                                                                           \
        real result = normalised_##real_suffix(p, (value), norm);                                  \
        if (scale != NULL)                                                                         \
            result = result * FACTOR(type, real, load, suffix_code, p->scale_dtype,                \
                                     scale + IV_CUDA_ROW_OFFSET(rows, IV_CUDA_ROW_SCALE, at));     \
        if (bias != NULL)                                                                          \
            result = result + FACTOR(type, real, load, suffix_code, p->bias_dtype,                 \
                                     bias + IV_CUDA_ROW_OFFSET(rows, IV_CUDA_ROW_BIAS, at));       \
        IV_CUDA_ELEMENT(type, out, IV_CUDA_ROW_OFFSET(rows, IV_CUDA_ROW_OUT, at)) = store(result); \
    } while (0)

#define ROW_POINTERS                                                                               \
    const char *in = IV_CUDA_ROW_FIRST(rows, IV_CUDA_ROW_IN, row);                                 \
    const char *scale = rows->data[IV_CUDA_ROW_SCALE] != NULL                                      \
                            ? IV_CUDA_ROW_FIRST(rows, IV_CUDA_ROW_SCALE, row)                      \
                            : NULL;                                                                \
    const char *bias = rows->data[IV_CUDA_ROW_BIAS] != NULL                                        \
                           ? IV_CUDA_ROW_FIRST(rows, IV_CUDA_ROW_BIAS, row)                        \
                           : NULL;                                                                 \
    char *out =                                                                                    \
        rows->data[IV_CUDA_ROW_OUT] != NULL ? IV_CUDA_ROW_FIRST(rows, IV_CUDA_ROW_OUT, row) : NULL

#define VALUE_AT(type, load, at)                                                                   \
    load(IV_CUDA_CONST_ELEMENT(type, in, IV_CUDA_ROW_OFFSET(rows, IV_CUDA_ROW_IN, at)))

/* Where element `at` of a row lies, in rows of one dimension. */
#define NEAR(operand, at) ((at)*rows->inner_steps[operand][0])

#define TEAM(suffix, type, real, real_suffix, load, store)                                         \
    IV_CUDA_KERNEL(iv_cuda_normalize_team_##suffix, iv_cuda_normalization, p) {                    \
        const iv_cuda_rows *rows = &p->rows;                                                       \
        IV_CUDA_TEAMS(rows) {                                                                      \
            IV_CUDA_TEAM_ROW(rows);                                                                \
            ROW_POINTERS;                                                                          \
            real values[IV_CUDA_TEAM_VALUES], mean = 0, total;                                     \
            IV_CUDA_TEAM_EACH(i, at) {                                                             \
                values[i] = load(IV_CUDA_CONST_ELEMENT(type, in, NEAR(IV_CUDA_ROW_IN, at)));       \
            }                                                                                      \
            if (p->kind == IV_CUDA_NORM_MOMENTS) {                                                 \
                IV_CUDA_TEAM_REDUCE(mean, SUM, SUM, real, real_suffix, values[i]);                 \
                mean = iv_div_##real_suffix(mean, (real)rows->length);                             \
                IV_CUDA_TEAM_EACH(i, at) {                                                         \
                    values[i] = values[i] - mean;                                                  \
                }                                                                                  \
            }                                                                                      \
            IV_CUDA_TEAM_REDUCE(total, SQUARES, SUM, real, real_suffix, values[i]);                \
            real inverse = iv_rsqrt_##real_suffix(                                                 \
                iv_div_##real_suffix(total, (real)rows->length) + (real)p->epsilon);               \
            if (t == 0 && length != 0)                                                             \
                note_##real_suffix(p, row, mean, inverse);                                         \
            if (out != NULL) {                                                                     \
                IV_CUDA_TEAM_EACH(i, at) {                                                         \
                    real result = values[i] * inverse;                                             \
                    result = result * load(IV_CUDA_CONST_ELEMENT(type, scale,                      \
                                                                 NEAR(IV_CUDA_ROW_SCALE, at)));    \
                    if (bias != NULL)                                                              \
                        result = result + load(IV_CUDA_CONST_ELEMENT(type, bias,                   \
                                                                     NEAR(IV_CUDA_ROW_BIAS, at))); \
                    IV_CUDA_ELEMENT(type, out, NEAR(IV_CUDA_ROW_OUT, at)) = store(result);         \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

#define BLOCK(code, suffix, type, real, real_suffix, load, store)                                  \
    IV_CUDA_KERNEL_BOUNDED(iv_cuda_normalize_block_##suffix, iv_cuda_normalization, p, 1024, 1) {  \
        IV_CUDA_SHARED real lanes[IV_CUDA_WAVES * IV_CUDA_WAVE];                                   \
        IV_CUDA_SHARED real parts[IV_CUDA_WAVES];                                                  \
        const iv_cuda_rows *rows = &p->rows;                                                       \
        int64_t length = rows->length, begin = 0;                                                  \
        for (int64_t row = blockIdx.x; row < rows->count; row += gridDim.x) {                      \
            ROW_POINTERS;                                                                          \
            real mean = 0, total;                                                                  \
            if (HAS_MEAN(p)) {                                                                     \
                IV_CUDA_BLOCK_REDUCE(mean, SUM, SUM, real, real_suffix, begin, length,             \
                                     VALUE_AT(type, load, at));                                    \
                mean = iv_div_##real_suffix(mean, (real)length);                                   \
                IV_CUDA_BLOCK_REDUCE(total, SQUARES, SUM, real, real_suffix, begin, length,        \
                                     VALUE_AT(type, load, at) - mean);                             \
            } else if (p->kind == IV_CUDA_NORM_L1) {                                               \
                IV_CUDA_BLOCK_REDUCE(total, SUM, SUM, real, real_suffix, begin, length,            \
                                     iv_abs_##real_suffix(VALUE_AT(type, load, at)));              \
            } else {                                                                               \
                IV_CUDA_BLOCK_REDUCE(total, SQUARES, SUM, real, real_suffix, begin, length,        \
                                     VALUE_AT(type, load, at));                                    \
            }                                                                                      \
            real norm = norm_##real_suffix(p, total);                                              \
            if (threadIdx.x == 0)                                                                  \
                note_##real_suffix(p, row, mean, norm);                                            \
            for (int64_t at = threadIdx.x; at < length && out != NULL; at += blockDim.x) {         \
                real value = VALUE_AT(type, load, at);                                             \
                STORE_ELEMENT(code, type, real, real_suffix, load, store,                          \
                              HAS_MEAN(p) ? value - mean : value);                                 \
            }                                                                                      \
        }                                                                                          \
    }

#define KERNELS(dtype, suffix, type, real, real_suffix, load, store, unused)                       \
    TEAM(suffix, type, real, real_suffix, load, store)                                             \
    BLOCK(IV_##dtype, suffix, type, real, real_suffix, load, store)
IV_FLOAT_TYPES(KERNELS, )
