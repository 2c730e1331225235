/* Matrix products by numpy's rules, as the reference and the kernels see them. */
#ifndef SB_OPS_MATMUL_H
#define SB_OPS_MATMUL_H

#include "graph/op.h"

/* A[batch…, m, k] times B[batch…, k, n]; strides in elements, 0 where a batch extent is repeated. */
typedef struct sb_matmul_geometry {
    int batch_rank;
    int64_t batch_dims[SB_MAX_RANK];
    int64_t a_batch_strides[SB_MAX_RANK], b_batch_strides[SB_MAX_RANK];
    int64_t batches, m, n, k;
    int64_t a_row_stride, a_k_stride, b_k_stride, b_column_stride;
} sb_matmul_geometry;

/** The geometry of two tensors of rank 1 or more whose shapes `sb_matmul_infer` accepted. A vector
 * on the left is a row, one on the right a column. */
void sb_matmul_geometry_of(const sb_tensor *a, const sb_tensor *b, sb_matmul_geometry *geometry);

/** The offsets, in elements, of batch `batch` in A and B. */
void sb_matmul_batch_offsets(const sb_matmul_geometry *geometry, int64_t batch, int64_t *a, int64_t *b);

/** Several left matrices over one right matrix are one taller matrix, when their rows are evenly spaced: makes the geometry
 * that of one product then, and says whether it is; else it stays as it was. */
bool sb_matmul_merge_batches(sb_matmul_geometry *geometry);

/** Infers output 0 of a product of `a` and `b`, with `dtype`. SHAPE when the shapes do not fit. */
sb_status sb_matmul_infer(sb_infer *infer, const sb_fact *a, const sb_fact *b, sb_dtype dtype);

/* Gemm: y = (alpha * (A' B')) + (beta * C), each step rounded, steps with a factor of 1 left out. */
typedef struct sb_gemm_params {
    float alpha, beta;
    bool transpose_a, transpose_b;
} sb_gemm_params;

/** Applies Gemm's alpha, beta and C to `count` finished sums of f32. `c` may be NULL; its elements
 * are of `c_dtype` (f16, bf16 or f32), `c_stride` elements apart. */
void sb_gemm_scale_and_add_f32(const sb_gemm_params *params, int64_t count, float *acc, sb_dtype c_dtype, const void *c,
                               int64_t c_stride);

#endif
