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
    /* What the only node behind MatMul adds to each row, where it does no more, as the epilogue of <samebit/gemm.h> has it;
     * NULL: there is none, or it is computed as nodes are. */
    const sb_tensor *bias;
    int64_t rows; /* of a batch: g->m, unless several of them are one matrix */
    bool merged;  /* batches have become rows */
    bool swapped; /* rows have become columns, and A is on the right */
    bool gated;   /* SwiGLU of the first half of B's columns and the second is y, which has half of them */
} sb_cuda_product;

/* A product of f16 or bf16 in the terms of <samebit/gemm.h>, which point into each other. */
typedef struct sb_cuda_product16 {
    sb_gemm_batches batches;
    sb_gemm gemm;
    sb_gemm_model model;
    sb_gemm_plan plan;
} sb_cuda_product16;

/** Fills it, but for nodes behind. Errors: as sb_gemm_plan_fill. */
sb_status sb_cuda_product_16_fill(const sb_cuda_product *product, const sb_gemm_used *used, sb_cuda_product16 *to,
                                  sb_error *error);

/** What a filled product takes by the quickest schedule that can, with the nodes behind that the call has, in
 * microseconds; *hopper is whether that is one of Hopper's. */
double sb_cuda_product_16_time(const sb_call *call, const sb_cuda_product *product, const sb_gemm_plan *plan,
                               bool *hopper);

/** Where the copy engine cannot fetch A or B of a product, filled as it lies in `to`, and it is clearly quicker with the
 * time that copying takes: copies them to workspace of the call, where it can, and fills `to` anew. *copied is whether it
 * does. Errors: OUT_OF_MEMORY; DEVICE. */
sb_status sb_cuda_product_16_copy(sb_call *call, const sb_cuda_product *product, const sb_gemm_used *used,
                                  sb_cuda_product16 *to, bool *copied);

/** Gives a product of f16 or bf16 with elements to the quickest schedule of <samebit/gemm.h>, with the nodes behind it that
 * the call's state has, if any: `roles` are those of y's dimensions. Notes in the call which schedule that is. Errors: as
 * sb_gemm_launch. */
sb_status sb_cuda_product_16(sb_call *call, const sb_cuda_product *product, const sb_gemm_used *used,
                             const sb_cuda_epilogue_role *roles);

#endif
