/* The reductions' attributes, for their definition and for kernels. */
#ifndef SB_OPS_REDUCE_H
#define SB_OPS_REDUCE_H

#include "ops/axes.h"
#include "ops/rows.h"

typedef struct sb_reduce_params {
    bool keep;
    sb_axes axes;
} sb_reduce_params;

/** The rows that a call of a reduction reduces, and the shape of its output (`dims` has room for SB_MAX_RANK), of which
 * element i is that of row i. INVALID_ARGUMENT for the mean of no integers. */
sb_status sb_reduce_describe(sb_call *call, sb_rows *rows, int *rank, int64_t *dims);

#endif
