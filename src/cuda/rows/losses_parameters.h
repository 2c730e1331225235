/* What the kernels of losses and determinants take, for the host and for devices. */
#ifndef SB_CUDA_ROWS_LOSSES_PARAMETERS_H
#define SB_CUDA_ROWS_LOSSES_PARAMETERS_H

#include "cuda/rows/rows_parameters.h"

/* The loss and the weight of each target. Rows are the classes of one target: SB_CUDA_ROW_IN are
 * scores, SB_CUDA_ROW_SCALE the targets, with one element a row. */
typedef struct sb_cuda_losses {
    sb_cuda_rows rows;
    int32_t wide; /* targets are s64 */
    int32_t ignores;
    int64_t ignored;
    const char *weights;   /* one for each class, of the scores' type; NULL for ones */
    int64_t weight_step;   /* in bytes */
    char *losses, *shares; /* in the computing type; shares may be NULL */
    char *each;            /* losses in the scores' type, for no reduction; else NULL */
    uint32_t *fault;
} sb_cuda_losses;

/* loss = sum of losses, divided by that of shares if there are any. */
typedef struct sb_cuda_loss_total {
    const char *losses, *shares;
    char *out;
} sb_cuda_loss_total;

/* Determinants: rows are matrices of length n * n. */
typedef struct sb_cuda_determinant {
    sb_cuda_rows rows;
    int64_t n;
    int32_t dtype;  /* sb_dtype */
    double *matrix; /* [rows, n, n] to eliminate in */
} sb_cuda_determinant;

#endif
