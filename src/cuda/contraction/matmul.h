/* A MatMul, Gemm or MatMulF32 as kernels see it. */
#ifndef SB_CUDA_CONTRACTION_MATMUL_H
#define SB_CUDA_CONTRACTION_MATMUL_H

#include "cuda/contraction/epilogue.h"
#include "cuda/contraction/product.h"
#include "kernel/contraction/check.h"
#include "kernel/kernel.h"
#include "ops/matmul.h"

typedef struct sb_cuda_product {
    sb_matmul_geometry geometry;
    const char *a, *b;
    const sb_tensor *a_tensor, *b_tensor; /* whose elements they are */
    const sb_gemm_params *params;         /* NULL for MatMul */
    sb_dtype dtype;                       /* of A and B; y's is the same, or f32 */
    const sb_tensor *y;
    sb_tensor *addend; /* Gemm's C as a view of y's shape, or NULL */
    int64_t rows;      /* of a batch: g->m, unless several of them are one matrix */
    bool merged;       /* batches have become rows */
    bool swapped;      /* rows have become columns, and A is on the right */
    bool gated;        /* SwiGLU of the first half of B's columns and the second is y, which has half of them */
} sb_cuda_product;

/** Gives a product of f16 or bf16 with elements to the quickest schedule of <samebit/gemm.h>, with the nodes behind it that
 * the call's state has, if any: `roles` are those of y's dimensions. Notes in the call which schedule that is. Errors: as
 * sb_gemm_launch. */
sb_status sb_cuda_product_16(sb_call *call, const sb_cuda_product *product, const sb_gemm_used *used,
                             const sb_cuda_epilogue_role *roles);

#endif
