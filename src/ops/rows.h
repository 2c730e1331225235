/* A tensor as a set of rows: some of its dimensions are the row, the others say which row. What
 * reductions, softmax and the normalisations have in common. */
#ifndef IV_OPS_ROWS_H
#define IV_OPS_ROWS_H

#include "graph/op.h"

typedef struct iv_rows {
    const iv_tensor *tensor;
    int64_t count;  /* of rows: in row-major order of the outer dimensions */
    int64_t length; /* of a row: in row-major order of the inner dimensions */
    int outer_rank, inner_rank;
    int64_t outer_dims[IV_MAX_RANK], outer_steps[IV_MAX_RANK]; /* steps in bytes */
    int64_t inner_dims[IV_MAX_RANK], inner_steps[IV_MAX_RANK];
} iv_rows;

/** Describes `tensor` (borrowed, any strides, not text) with the dimensions in the bit set `inner`
 * as the row. */
void iv_rows_start(iv_rows *rows, const iv_tensor *tensor, uint32_t inner);

/** Copies elements [begin, begin + count) of row `row` to `target`, converted to `dtype` by the
 * rules of Cast. */
void iv_rows_load(const iv_rows *rows, int64_t row, int64_t begin, int64_t count, iv_dtype dtype,
                  void *target);

/** The reverse: writes `count` values of `dtype` to the row, converted to the tensor's type. */
void iv_rows_store(const iv_rows *rows, int64_t row, int64_t begin, int64_t count, iv_dtype dtype,
                   const void *source);

/** Computes every row of `to` from the same row of `from`: loads it, calls the function of the
 * computing type (f32 or f64) on the packed values, stores them. Both describe tensors of one
 * shape. Rows of no elements are left out. */
iv_status iv_rows_transform(const iv_rows *from, const iv_rows *to, iv_dtype computed,
                            void (*f32)(void *context, int64_t row, float *values, int64_t count),
                            void (*f64)(void *context, int64_t row, double *values, int64_t count),
                            void *context, iv_error *error);

/** The elements of `tensor` in row-major order as packed values of `dtype`: `*values` is the
 * caller's to iv_free. */
iv_status iv_load_all(const iv_tensor *tensor, iv_dtype dtype, void **values, iv_error *error);

/** The type in which values of `dtype` are computed: f32 for f16 and bf16, else the type itself. */
iv_dtype iv_computing_dtype(iv_dtype dtype);

#endif
