/* The products of recurrent layers, whose sums stay in f32: f32 by cpu/contraction/gemm.h, f16 and bf16 by chains of 16
 * (cpu/contraction/chain16.h). */
#ifndef SB_CPU_RECURRENT_RECURRENT_PRODUCTS_H
#define SB_CPU_RECURRENT_RECURRENT_PRODUCTS_H

#include <samebit/dtype.h>

#include "cpu/contraction/gemm.h"

/* c[m, n] = a[m, k] · B, packed; strides in elements. */
typedef struct sb_recurrent_product {
    sb_isa isa;
    sb_dtype dtype; /* of a and B: SB_F32, SB_F16 or SB_BF16 */
    int64_t m, n, k;
    const void *a;
    int64_t a_row_stride, a_column_stride;
    const void *packed_b; /* of sb_recurrent_pack */
    float *c;
    int64_t c_row_stride;
} sb_recurrent_product;

/** Bytes of a packed B, a multiple of 64; 0 when that overflows. */
size_t sb_recurrent_packed_bytes(sb_isa isa, sb_dtype dtype, int64_t k, int64_t n);

/** Packs B, whose strides are in elements and may be anything; `packed` is aligned to 64. */
void sb_recurrent_pack(sb_isa isa, sb_dtype dtype, int64_t k, int64_t n, const void *b, int64_t k_stride,
                       int64_t n_stride, void *packed);

/** Bytes of workspace for any rectangle; 0 when that overflows. Reads the extents and strides. */
size_t sb_recurrent_product_bytes(const sb_recurrent_product *product);

/** Rectangles for threads, as the product likes them. */
sb_gemm_split sb_recurrent_product_split(const sb_recurrent_product *product, int threads);

/** So many columns, from a multiple of them on, are as quick in a call of their own as within a longer one. */
int64_t sb_recurrent_product_pass(const sb_recurrent_product *product);

/** Rows [m0, m1) and columns [n0, n1). `workspace` is for this call alone and aligned to 64. */
void sb_recurrent_product_run(const sb_recurrent_product *product, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                              void *workspace);

#endif
