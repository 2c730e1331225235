/* What the operators that move elements share: outputs that may hold text, lists of integers among
 * the inputs, and products of extents. */
#ifndef SB_OPS_MOVING_H
#define SB_OPS_MOVING_H

#include <string.h>

#include "graph/op.h"

/** Makes output `index` for elements that are copied from inputs. As sb_call_output_shape, but for text `*tensor` is a
 * table of empty entries which may borrow the text of inputs until sb_move_finish. An output that is there already is
 * taken, but for text. */
sb_status sb_move_output(sb_call *call, int index, sb_dtype dtype, int rank, const int64_t *dims, sb_tensor **tensor);
/** The same with the shape that the fact of the output says. */
sb_status sb_move_output_fact(sb_call *call, int index, sb_tensor **tensor);
/** Ends what sb_move_output began, and returns `status` or the failure of doing so: text is copied
 * into a storage of the output's own, and the table is released in any case. */
sb_status sb_move_finish(sb_call *call, int index, sb_tensor *tensor, sb_status status);

/** Reads input `index`, a list (rank 0 or 1) of s32 or s64 integers with at most `limit` entries. */
sb_status sb_move_integers(const sb_call *call, int index, int limit, int64_t *values, int *count);
/** All elements of an s32 or s64 tensor in row-major order, as s64: `*values` is the caller's to sb_free. */
sb_status sb_move_indices(const sb_call *call, const sb_tensor *tensor, int64_t **values, int64_t *count);
/** Element `index` of axis `axis` counted from the end when negative; SHAPE, naming both, when outside `extent`. */
sb_status sb_move_check(const sb_call *call, int axis, int64_t index, int64_t extent, int64_t *position);
/** An axis in [-rank, rank) as one in [0, rank); SHAPE otherwise. */
sb_status sb_move_axis(const sb_call *call, int64_t axis, int rank, int *normalised);

/** The product of dims[from] … dims[to - 1]; 1 for none. */
int64_t sb_move_product(const int64_t *dims, int from, int to);
/** The same of formulas. */
sb_dim sb_dim_product(sb_scope *scope, const sb_dim *dims, int from, int to);
/** Whether two extents are numbers, and not the same. */
bool sb_dims_clash(sb_dim left, sb_dim right);
/** A tensor fact of rank `rank` whose extents only the data decide. */
void sb_infer_open(sb_infer *infer, int output, sb_dtype dtype, int rank);

/** Copies one element of `size` bytes. */
static inline void sb_move_element(char *to, const char *from, size_t size) {
    switch (size) {
    case 1:
        *to = *from;
        break;
    case 2:
        memcpy(to, from, 2);
        break;
    case 4:
        memcpy(to, from, 4);
        break;
    case 8:
        memcpy(to, from, 8);
        break;
    default:
        memcpy(to, from, size);
        break;
    }
}

/** Advances a row-major index over `dims`; false after the last one. */
static inline bool sb_move_next(int rank, const int64_t *dims, int64_t *index) {
    for (int d = rank - 1; d >= 0; d--) {
        if (++index[d] < dims[d])
            return true;
        index[d] = 0;
    }
    return false;
}

#endif
