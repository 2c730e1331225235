#include "cpu/recurrent/recurrent_products.h"

#include "cpu/contraction/chain16.h"

size_t sb_recurrent_packed_bytes(sb_isa isa, sb_dtype dtype, int64_t k, int64_t n) {
    const size_t bytes =
        dtype == SB_F32 ? sb_gemm_f32_packed_bytes(sb_gemm_f32_kernels(isa), k, n) : sb_chain16_packed_bytes(k, n);
    return bytes <= SIZE_MAX - 63 ? (bytes + 63) / 64 * 64 : 0;
}

void sb_recurrent_pack(sb_isa isa, sb_dtype dtype, int64_t k, int64_t n, const void *b, int64_t k_stride,
                       int64_t n_stride, void *packed) {
    if (dtype == SB_F32)
        sb_gemm_f32_pack_b(sb_gemm_f32_kernels(isa), k, n, b, k_stride, n_stride, 0, n, packed);
    else
        sb_chain16_pack_b(k, n, b, k_stride, n_stride, 0, n, packed);
}

static sb_gemm_args args_f32(const sb_recurrent_product *p) {
    return (sb_gemm_args){.m = p->m,
                          .n = p->n,
                          .k = p->k,
                          .a = p->a,
                          .a_row_stride = p->a_row_stride,
                          .a_column_stride = p->a_column_stride,
                          .packed_b = p->packed_b,
                          .c = p->c,
                          .c_row_stride = p->c_row_stride,
                          .c_column_stride = 1};
}

static sb_chain16_args args_16(const sb_recurrent_product *p) {
    return (sb_chain16_args){.dtype = p->dtype,
                             .m = p->m,
                             .n = p->n,
                             .k = p->k,
                             .a = p->a,
                             .a_row_stride = p->a_row_stride,
                             .a_column_stride = p->a_column_stride,
                             .packed_b = p->packed_b,
                             .c = p->c,
                             .c_dtype = SB_F32,
                             .c_row_stride = p->c_row_stride,
                             .c_column_stride = 1};
}

size_t sb_recurrent_product_bytes(const sb_recurrent_product *product) {
    if (product->dtype == SB_F32) {
        const sb_gemm_args args = args_f32(product);
        return sb_gemm_f32_workspace_bytes(sb_gemm_f32_kernels(product->isa), &args);
    }
    const sb_chain16_args args = args_16(product);
    return sb_chain16_workspace_bytes(&args);
}

sb_gemm_split sb_recurrent_product_split(const sb_recurrent_product *product, int threads) {
    if (product->dtype == SB_F32)
        return sb_gemm_f32_split(sb_gemm_f32_kernels(product->isa), product->m, product->n, product->k, threads);
    return sb_chain16_split(product->m, product->n, threads);
}

int64_t sb_recurrent_product_pass(const sb_recurrent_product *product) {
    return product->dtype == SB_F32 ? 4 * sb_gemm_f32_panel(sb_gemm_f32_kernels(product->isa)) : 2 * SB_CHAIN16_PANEL;
}

void sb_recurrent_product_run(const sb_recurrent_product *product, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                              void *workspace) {
    if (product->dtype == SB_F32) {
        const sb_gemm_args args = args_f32(product);
        sb_gemm_f32_run(sb_gemm_f32_kernels(product->isa), &args, m0, m1, n0, n1, workspace);
        return;
    }
    const sb_chain16_args args = args_16(product);
    sb_chain16_run(sb_chain16_kernels_of(product->isa), &args, m0, m1, n0, n1, workspace);
}
