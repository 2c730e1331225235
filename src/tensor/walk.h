/* Walking over the elements of several tensors of one shape at once, whatever their strides.
 *
 * A walk first drops extents of 1, orders the dimensions and merges those that lie behind each other in every operand, so that
 * contiguous operands come as one long row. Rows are handed to a callback with a byte step per operand. */
#ifndef IV_TENSOR_WALK_H
#define IV_TENSOR_WALK_H

#include "tensor/tensor.h"

#define IV_WALK_OPERANDS 16

typedef struct iv_walk {
    int rank; /* after merging; at least 1 */
    int operands;
    int64_t elements;
    int64_t dims[IV_MAX_RANK];
    int64_t steps[IV_WALK_OPERANDS][IV_MAX_RANK]; /* in bytes */
    char *data[IV_WALK_OPERANDS];
} iv_walk;

/** A row: `count` elements, operand i at data[i], data[i] + steps[i], … (bytes). */
typedef void iv_walk_row(void *context, int64_t count, char *const *data, const int64_t *steps);

/** Sets up a walk over `dims`. Operand i has `tensors[i]`'s data and strides, broadcast by numpy's rule to `dims`
 * (the caller has checked that this works). Visiting order is unspecified, but each element is visited once. */
void iv_walk_start(iv_walk *walk, int rank, const int64_t *dims, int operands,
                   const iv_tensor *const *tensors);

/** As iv_walk_start, keeping row-major order of `dims` (only merges, never reorders). */
void iv_walk_start_ordered(iv_walk *walk, int rank, const int64_t *dims, int operands,
                           const iv_tensor *const *tensors);

/** Visits all elements. */
void iv_walk_run(const iv_walk *walk, iv_walk_row *row, void *context);

/** Visits elements [begin, end) of the walk's own order, so that threads can share one walk. */
void iv_walk_run_range(const iv_walk *walk, int64_t begin, int64_t end, iv_walk_row *row,
                       void *context);

#endif
