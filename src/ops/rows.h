/* A tensor as a set of rows: some of its dimensions are the row, the others say which row. What
 * reductions, softmax and the normalisations have in common. */
#ifndef SB_OPS_ROWS_H
#define SB_OPS_ROWS_H

#include "graph/op.h"
#include "tensor/walk.h"

typedef struct sb_rows {
    const sb_tensor *tensor;
    int64_t count;  /* of rows: in row-major order of the outer dimensions */
    int64_t length; /* of a row: in row-major order of the inner dimensions */
    int outer_rank, inner_rank;
    int64_t outer_dims[SB_MAX_RANK], outer_steps[SB_MAX_RANK]; /* steps in bytes */
    int64_t inner_dims[SB_MAX_RANK], inner_steps[SB_MAX_RANK];
} sb_rows;

/** Describes `tensor` (borrowed, any strides, not text) with the dimensions in the bit set `inner`
 * as the row. */
void sb_rows_start(sb_rows *rows, const sb_tensor *tensor, uint32_t inner);

/** Where row `row` begins. */
char *sb_rows_at(const sb_rows *rows, int64_t row);

/** How many rows lie side by side along the last outer dimension, adjacent, with their own elements apart; 0: none do. */
int64_t sb_rows_side_by_side(const sb_rows *rows);

/** Copies elements [begin, begin + count) of row `row` to `target`, converted to `dtype` by the
 * rules of Cast. */
void sb_rows_load(const sb_rows *rows, int64_t row, int64_t begin, int64_t count, sb_dtype dtype, void *target);

/** The same by a conversion that the caller has chosen for its instruction set: sb_convert_loop_for. */
void sb_rows_load_by(const sb_rows *rows, int64_t row, int64_t begin, int64_t count, sb_walk_row *loop, sb_dtype dtype,
                     void *target);

/** The reverse: writes `count` values of `dtype` to the row, converted to the tensor's type. */
void sb_rows_store(const sb_rows *rows, int64_t row, int64_t begin, int64_t count, sb_dtype dtype, const void *source);

/** The same by a conversion that the caller has chosen for its instruction set. */
void sb_rows_store_by(const sb_rows *rows, int64_t row, int64_t begin, int64_t count, sb_walk_row *loop, sb_dtype dtype,
                      const void *source);

/** Computes every row of `to` from the same row of `from`: loads it, calls the function of the
 * computing type (f32 or f64) on the packed values, stores them. Both describe tensors of one
 * shape. Rows of no elements are left out. */
sb_status sb_rows_transform(const sb_rows *from, const sb_rows *to, sb_dtype computed,
                            void (*f32)(void *context, int64_t row, float *values, int64_t count),
                            void (*f64)(void *context, int64_t row, double *values, int64_t count), void *context,
                            sb_error *error);

/** The elements of `tensor` in row-major order as packed values of `dtype`: `*values` is the
 * caller's to sb_free. */
sb_status sb_load_all(const sb_tensor *tensor, sb_dtype dtype, void **values, sb_error *error);

/** The type in which values of `dtype` are computed: f32 for f16 and bf16, else the type itself. */
sb_dtype sb_computing_dtype(sb_dtype dtype);

#endif
