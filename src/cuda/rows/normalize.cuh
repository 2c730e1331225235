/* What kernels that normalise rows share: the formulas of ops/moments.h, ops/row_normalization.c and ops/normalization.c
 * once a row's sums are known. */
#ifndef SB_CUDA_ROWS_NORMALIZE_CUH
#define SB_CUDA_ROWS_NORMALIZE_CUH

#include "cuda/rows/rows.cuh"
#include "ops/number.h"
#include "ops/type_lists.h"

/* Scale and bias may be of another type, and are then converted; so may the result of 16 bits, which then does not round to them. */
#define FACTOR(type, real, load, dtype_code, factor_dtype, address)                                                    \
    ((factor_dtype) == (dtype_code) ? load(SB_CUDA_CONST_ELEMENT(type, address, 0))                                    \
                                    : (real)sb_number_load((sb_dtype)(factor_dtype), (address), 0))

/* What rows have in common once the sums are known. `norm` is the row's norm for the norms, its
 * deviation for MeanVarianceNormalization, and 1 / deviation else. */
#define DEFINE_NORM(real, suffix)                                                                                      \
    SB_CUDA_FUNCTION real norm_##suffix(const sb_cuda_normalization *p, real total) {                                  \
        switch (p->kind) {                                                                                             \
        case SB_CUDA_NORM_L1:                                                                                          \
            return total;                                                                                              \
        case SB_CUDA_NORM_L2:                                                                                          \
            return sb_sqrt_##suffix(total);                                                                            \
        case SB_CUDA_NORM_DEVIATION:                                                                                   \
            return sb_sqrt_##suffix(sb_div_##suffix(total, (real)SB_CUDA_ROWS_LENGTH(&p->rows))) + (real)1e-9;         \
        default:                                                                                                       \
            return sb_rsqrt_##suffix(sb_div_##suffix(total, (real)SB_CUDA_ROWS_LENGTH(&p->rows)) + (real)p->epsilon);  \
        }                                                                                                              \
    }                                                                                                                  \
    SB_CUDA_FUNCTION real normalised_##suffix(const sb_cuda_normalization *p, real value, real norm) {                 \
        switch (p->kind) {                                                                                             \
        case SB_CUDA_NORM_L1:                                                                                          \
        case SB_CUDA_NORM_L2:                                                                                          \
            return norm == 0 ? 0 : sb_div_##suffix(value, norm);                                                       \
        case SB_CUDA_NORM_DEVIATION:                                                                                   \
            return sb_div_##suffix(value, norm);                                                                       \
        default:                                                                                                       \
            return value * norm;                                                                                       \
        }                                                                                                              \
    }                                                                                                                  \
    SB_CUDA_FUNCTION void note_##suffix(const sb_cuda_normalization *p, int64_t row, real mean, real inverse) {        \
        if (p->means != NULL)                                                                                          \
            sb_number_store((sb_dtype)p->note_dtype, p->means, row, (double)mean);                                     \
        if (p->inverses != NULL)                                                                                       \
            sb_number_store((sb_dtype)p->note_dtype, p->inverses, row, (double)inverse);                               \
    }
DEFINE_NORM(float, f32)
DEFINE_NORM(double, f64)

#define HAS_MEAN(p) ((p)->kind == SB_CUDA_NORM_MOMENTS || (p)->kind == SB_CUDA_NORM_DEVIATION)

#define STORE_ELEMENT(suffix_code, type, real, real_suffix, load, store, value)                                        \
    do {                                                                                                               \
        real result = normalised_##real_suffix(p, (value), norm);                                                      \
        if (scale != NULL)                                                                                             \
            result = result * FACTOR(type, real, load, suffix_code, p->scale_dtype,                                    \
                                     scale + SB_CUDA_ROW_OFFSET(rows, SB_CUDA_ROW_SCALE, at));                         \
        if (bias != NULL)                                                                                              \
            result = result + FACTOR(type, real, load, suffix_code, p->bias_dtype,                                     \
                                     bias + SB_CUDA_ROW_OFFSET(rows, SB_CUDA_ROW_BIAS, at));                           \
        char *to = out + SB_CUDA_ROW_OFFSET(rows, SB_CUDA_ROW_OUT, at);                                                \
        if (p->out_dtype == (suffix_code))                                                                             \
            SB_CUDA_ELEMENT(type, to, 0) = store(result);                                                              \
        else                                                                                                           \
            sb_number_store((sb_dtype)p->out_dtype, to, 0, (double)result);                                            \
    } while (0)

#define ROW_POINTERS                                                                                                   \
    const char *in = SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_IN, row);                                                     \
    const char *scale =                                                                                                \
        rows->data[SB_CUDA_ROW_SCALE] != NULL ? SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_SCALE, row) : NULL;                \
    const char *bias = rows->data[SB_CUDA_ROW_BIAS] != NULL ? SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_BIAS, row) : NULL;   \
    char *out = rows->data[SB_CUDA_ROW_OUT] != NULL ? SB_CUDA_ROW_FIRST(rows, SB_CUDA_ROW_OUT, row) : NULL

#define VALUE_AT(type, load, at) load(SB_CUDA_CONST_ELEMENT(type, in, SB_CUDA_ROW_OFFSET(rows, SB_CUDA_ROW_IN, at)))

/* Where element `at` of a row lies, in rows of one dimension. */
#define NEAR(operand, at) ((at)*rows->inner_steps[operand][0])

#endif
