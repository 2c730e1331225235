/* What kernels over rows take, for the host and for devices. */
#ifndef IV_CUDA_KERNELS_ROWS_PARAMETERS_H
#define IV_CUDA_KERNELS_ROWS_PARAMETERS_H

#include "cuda/kernels/parameters.h"

enum { IV_CUDA_ROW_OUT, IV_CUDA_ROW_IN, IV_CUDA_ROW_SCALE, IV_CUDA_ROW_BIAS, IV_CUDA_ROW_OPERANDS };

/* Lanes that a thread of a team holds: 32 threads have all 256 of numerics/reduce.h. */
#define IV_CUDA_TEAM_LANES 8
/* Elements of a row that a thread of a team keeps, so that short rows are read once. */
#define IV_CUDA_TEAM_VALUES 32
/* The longest row that a team takes. */
#define IV_CUDA_TEAM_LENGTH (32 * IV_CUDA_TEAM_VALUES)
/* Threads that together have the 256 lanes, one each; a block has up to 4 such waves. */
#define IV_CUDA_WAVE 256
#define IV_CUDA_WAVES 4

/* Rows of up to 4 tensors. Outer dimensions number the rows, inner ones the elements of a row, both
 * row-major; each list has at least one. Steps are in bytes, and 0 where an operand is repeated. */
typedef struct iv_cuda_rows {
    int64_t count, length;
    int32_t outer_rank, inner_rank;
    int64_t outer_dims[IV_CUDA_RANK], inner_dims[IV_CUDA_RANK];
    int64_t outer_steps[IV_CUDA_ROW_OPERANDS][IV_CUDA_RANK];
    int64_t inner_steps[IV_CUDA_ROW_OPERANDS][IV_CUDA_RANK];
    char *data[IV_CUDA_ROW_OPERANDS]; /* NULL where an operand is not there */
    /* Threads for a row, a power of 2 up to 32: less than 32 only for rows of up to 8 elements per
     * thread. Kernels for long rows take a block for each, of whole waves. */
    int32_t team;
} iv_cuda_rows;

/* What becomes of a finished total. */
typedef enum iv_cuda_finish {
    IV_CUDA_FINISH_TOTAL,
    IV_CUDA_FINISH_MEAN,        /* divided by the number of elements */
    IV_CUDA_FINISH_ROOT,
    IV_CUDA_FINISH_LOG,
    IV_CUDA_FINISH_LOG_SHIFTED /* log(total) + the row's highest element */
} iv_cuda_finish;

/* Reductions of rows to one element each. */
typedef struct iv_cuda_row_reduction {
    iv_cuda_rows rows;
    int64_t parts;       /* blocks of 4096 that each row of long ones is cut into; 1: it stays whole */
    char *totals;        /* with more than 1 part, what each came to, in the computing type */
    const char *highest; /* of exponentials: each row's largest element, packed */
    float exponent;      /* of powers */
    int32_t finish;      /* iv_cuda_finish */
    int32_t kind;        /* of integers: iv_cuda_integer_reduction */
    int32_t dtype;       /* where the kernel is not for one alone: iv_dtype */
} iv_cuda_row_reduction;

typedef enum iv_cuda_integer_reduction {
    IV_CUDA_INTEGER_SUM,
    IV_CUDA_INTEGER_MEAN,
    IV_CUDA_INTEGER_MAX,
    IV_CUDA_INTEGER_MIN,
    IV_CUDA_INTEGER_PROD,
    IV_CUDA_INTEGER_L1,
    IV_CUDA_INTEGER_SQUARES
} iv_cuda_integer_reduction;

/* Softmax and LogSoftmax. */
typedef struct iv_cuda_softmax {
    iv_cuda_rows rows;
    int32_t log;
} iv_cuda_softmax;

typedef enum iv_cuda_norm {
    IV_CUDA_NORM_MOMENTS,   /* ((x - mean) r) scale + bias, r = 1 / sqrt(variance + epsilon) */
    IV_CUDA_NORM_RMS,       /* (x r) scale, r = 1 / sqrt(mean of squares + epsilon) */
    IV_CUDA_NORM_DEVIATION, /* (x - mean) / (sqrt(variance) + 1e-9) */
    IV_CUDA_NORM_L1,        /* x / sum of |x|, +0 where that is 0 */
    IV_CUDA_NORM_L2         /* x / sqrt(sum of squares), likewise */
} iv_cuda_norm;

typedef struct iv_cuda_normalization {
    iv_cuda_rows rows;
    int32_t kind; /* iv_cuda_norm */
    float epsilon;
    int32_t scale_dtype, bias_dtype; /* iv_dtype */
    int32_t note_dtype;              /* of means and inverses */
    char *means, *inverses;          /* one element a row, packed; may be NULL */
} iv_cuda_normalization;

/* Local response normalisation: rows are columns of channels. */
typedef struct iv_cuda_lrn {
    iv_cuda_rows rows;
    float alpha, beta, bias;
    int64_t size;
} iv_cuda_lrn;

#endif
