/* What kernels over rows take, for the host and for devices. */
#ifndef SB_CUDA_ROWS_ROWS_PARAMETERS_H
#define SB_CUDA_ROWS_ROWS_PARAMETERS_H

#include "cuda/common/parameters.h"

enum { SB_CUDA_ROW_OUT, SB_CUDA_ROW_IN, SB_CUDA_ROW_SCALE, SB_CUDA_ROW_BIAS, SB_CUDA_ROW_OPERANDS };

/* Lanes that a thread of a team holds: 32 threads have all 256 of numerics/reduce.h. */
#define SB_CUDA_TEAM_LANES 8
/* Elements of a row that a thread of a team keeps, so that short rows are read once. */
#define SB_CUDA_TEAM_VALUES 32
/* The longest row that a team takes. */
#define SB_CUDA_TEAM_LENGTH (32 * SB_CUDA_TEAM_VALUES)
/* Threads that together have the 256 lanes, one each; a block has up to 4 such waves. */
#define SB_CUDA_WAVE 256
#define SB_CUDA_WAVES 4

/* Rows of up to 4 tensors. Outer dimensions number the rows, inner ones the elements of a row, both
 * row-major; each list has at least one. Steps are in bytes, and 0 where an operand is repeated. */
typedef struct sb_cuda_rows {
    int64_t count, length;
    int32_t outer_rank, inner_rank;
    int64_t outer_dims[SB_CUDA_RANK], inner_dims[SB_CUDA_RANK];
    int64_t outer_steps[SB_CUDA_ROW_OPERANDS][SB_CUDA_RANK];
    int64_t inner_steps[SB_CUDA_ROW_OPERANDS][SB_CUDA_RANK];
    char *data[SB_CUDA_ROW_OPERANDS]; /* NULL where an operand is not there */
    /* Where it says how much of the first outer and of the first inner dimension is used, and how many rows, or elements
     * of a row, each of its places has; NULL: all. Kernels that are bounded take rows and elements up to there. */
    const int64_t *used_count, *used_length;
    int64_t count_step, length_step;
    /* Threads for a row, a power of 2 up to 32: less than 32 only for rows of up to 8 elements per
     * thread. Kernels for long rows take a block for each, of whole waves. */
    int32_t team;
} sb_cuda_rows;

/* What becomes of a finished total. */
typedef enum sb_cuda_finish {
    SB_CUDA_FINISH_TOTAL,
    SB_CUDA_FINISH_MEAN, /* divided by the number of elements */
    SB_CUDA_FINISH_ROOT,
    SB_CUDA_FINISH_LOG,
    SB_CUDA_FINISH_LOG_SHIFTED /* log(total) + the row's highest element */
} sb_cuda_finish;

/* Reductions of rows to one element each. */
typedef struct sb_cuda_row_reduction {
    sb_cuda_rows rows;
    int64_t parts;       /* blocks of 4096 that each row of long ones is cut into; 1: it stays whole */
    char *totals;        /* with more than 1 part, what each came to, in the computing type */
    const char *highest; /* of exponentials: each row's largest element, packed */
    float exponent;      /* of powers */
    int32_t finish;      /* sb_cuda_finish */
    int32_t kind;        /* of integers: sb_cuda_integer_reduction */
    int32_t dtype;       /* where the kernel is not for one alone: sb_dtype */
} sb_cuda_row_reduction;

typedef enum sb_cuda_integer_reduction {
    SB_CUDA_INTEGER_SUM,
    SB_CUDA_INTEGER_MEAN,
    SB_CUDA_INTEGER_MAX,
    SB_CUDA_INTEGER_MIN,
    SB_CUDA_INTEGER_PROD,
    SB_CUDA_INTEGER_L1,
    SB_CUDA_INTEGER_SQUARES
} sb_cuda_integer_reduction;

/* Softmax and LogSoftmax. */
typedef struct sb_cuda_softmax {
    sb_cuda_rows rows;
    int32_t log;
} sb_cuda_softmax;

typedef enum sb_cuda_norm {
    SB_CUDA_NORM_MOMENTS,   /* ((x - mean) r) scale + bias, r = 1 / sqrt(variance + epsilon) */
    SB_CUDA_NORM_RMS,       /* (x r) scale, r = 1 / sqrt(mean of squares + epsilon) */
    SB_CUDA_NORM_DEVIATION, /* (x - mean) / (sqrt(variance) + 1e-9) */
    SB_CUDA_NORM_L1,        /* x / sum of |x|, +0 where that is 0 */
    SB_CUDA_NORM_L2         /* x / sqrt(sum of squares), likewise */
} sb_cuda_norm;

typedef struct sb_cuda_normalization {
    sb_cuda_rows rows;
    int32_t kind; /* sb_cuda_norm */
    float epsilon;
    int32_t scale_dtype, bias_dtype; /* sb_dtype */
    int32_t note_dtype;              /* of means and inverses */
    int32_t out_dtype;
    char *means, *inverses; /* one element a row, packed; may be NULL */
} sb_cuda_normalization;

/* Normalisation of long rows, each of which is cut into parts of 4096 elements for many blocks. The first two kernels
 * take rows of the input alone, whose dimensions are fewer then. */
typedef struct sb_cuda_long_normalization {
    sb_cuda_normalization base;
    int64_t parts;
    /* What each part came to, in the computing type: its elements where there is a mean, and what is left of them. */
    char *sums, *totals;
} sb_cuda_long_normalization;

/* Local response normalisation: rows are columns of channels. */
typedef struct sb_cuda_lrn {
    sb_cuda_rows rows;
    float alpha, beta, bias;
    int64_t size;
} sb_cuda_lrn;

#endif
