/* What every kernel of 16-bit products takes, for the host and for the device. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_PARAMETERS_H
#define SB_CUDA_CONTRACTION_GEMM16_PARAMETERS_H

#include <stdint.h>

#include "cuda/contraction/gemm16_nodes_parameters.h"
#include "kernel/contraction/batches.h"
#include "kernel/contraction/epilogue.h"
#include "kernel/contraction/row_map.h"

/* An operand of a product, as lines of k: rows of A, columns of B. Element k of line l lies l * line_stride + k * k_stride
 * elements behind its matrix's first one. Of batches with one step or two, matrix `batch` begins
 * batch % inner * batch_stride + batch / inner * outer_stride elements behind `data`. */
typedef struct sb_gemm16_operand {
    const uint16_t *data;
    int64_t line_stride, k_stride, batch_stride, outer_stride; /* in elements */
} sb_gemm16_operand;

/* Where the results go. */
typedef struct sb_gemm16_output {
    void *data;
    int64_t row_stride, column_stride, batch_stride; /* in elements */
    int32_t dtype;                                   /* sb_dtype: SB_F32, or that of A and B */
    int32_t accumulate;                              /* whether chains begin with what is there, which is f32 then */
} sb_gemm16_output;

/* A product C[m][n] = epilogue(chain over k of A[m][k] * B[k][n]). Contained, as the first member, in the structs of
 * kernels that need more. Data are addresses of the device; every extent is at least 0. */
typedef struct sb_gemm16 {
    int64_t m, n, k, batches; /* n: columns of C; B has 2 n of them in a gated product */
    int64_t inner;            /* batches of one outer step of A and B; C's and addends' are evenly spaced */
    sb_gemm16_operand a, b;
    sb_gemm16_output c;
    const sb_row_group *groups;              /* how k is cut; NULL: into 16 from 0 */
    int64_t group_count;                     /* steps of a chain, also where `groups` is NULL */
    const int64_t *used_m, *used_n, *used_k; /* how many are used, in memory of the device; NULL: all */
    int32_t gate;                            /* sb_gate: how B's columns are paired */
    int32_t has_epilogue;                    /* whether anything happens between the chain and the rounding */
    sb_gemm_epilogue epilogue;
} sb_gemm16;

/* What the general kernel takes: gemm16_general.cu. */
typedef struct sb_gemm16_general {
    sb_gemm16 product;
    sb_gemm_batches batches;         /* of A and B, of any rank */
    int64_t row_tiles, column_tiles; /* of one matrix */
    int64_t tiles;                   /* of all batches */
    int32_t a_width, b_width;        /* elements side by side that may be read at once: 1, 2 or 8 */
} sb_gemm16_general;

/* The same with the nodes behind: gemm16_general_fused.cu. There are no gates and no activation. */
typedef struct sb_gemm16_general_fused {
    sb_gemm16_general product;
    sb_gemm16_nodes program;
} sb_gemm16_general_fused;

#endif
