/* Walking over the elements of several tensors of one shape at once, whatever their strides.
 *
 * A walk first drops extents of 1, orders the dimensions and merges those that lie behind each other in every operand,
 * so that contiguous operands come as one long row. Rows are handed to a callback with a byte step per operand. */
#ifndef SB_TENSOR_WALK_H
#define SB_TENSOR_WALK_H

#include "tensor/tensor.h"

#define SB_WALK_OPERANDS 16

typedef struct sb_walk {
    int rank; /* after merging; at least 1 */
    int operands;
    int64_t elements;
    int64_t dims[SB_MAX_RANK];
    int64_t steps[SB_WALK_OPERANDS][SB_MAX_RANK]; /* in bytes */
    char *data[SB_WALK_OPERANDS];
} sb_walk;

/** A row: `count` elements, operand i at data[i], data[i] + steps[i], … (bytes). */
typedef void sb_walk_row(void *context, int64_t count, char *const *data, const int64_t *steps);

/** Sets up a walk over `dims`. Operand i has `tensors[i]`'s data and strides, broadcast by numpy's rule to `dims`
 * (the caller has checked that this works). Visiting order is unspecified, but each element is visited once. */
void sb_walk_start(sb_walk *walk, int rank, const int64_t *dims, int operands, const sb_tensor *const *tensors);

/** As sb_walk_start, keeping row-major order of `dims` (only merges, never reorders). */
void sb_walk_start_ordered(sb_walk *walk, int rank, const int64_t *dims, int operands, const sb_tensor *const *tensors);

/** Visits all elements. */
void sb_walk_run(const sb_walk *walk, sb_walk_row *row, void *context);

/** Visits elements [begin, end) of the walk's own order, so that threads can share one walk. */
void sb_walk_run_range(const sb_walk *walk, int64_t begin, int64_t end, sb_walk_row *row, void *context);

#endif
