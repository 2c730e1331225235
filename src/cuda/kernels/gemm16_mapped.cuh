/* Products whose k is cut into the groups of a row map, 16 rows or what a sample has left of them: four groups make a stage of 64
 * k. Where they follow each other in memory they are fetched as others are, else one by one; rows that groups lack are overwritten
 * with zeros in shared memory, where some others' lie. */
#ifndef IV_CUDA_KERNELS_GEMM16_MAPPED_CUH
#define IV_CUDA_KERNELS_GEMM16_MAPPED_CUH

#include "cuda/kernels/gemm16_hopper_tile.cuh"

#if IV_HOPPER
#define IV_GEMM16_WHOLE_GROUPS 0x10101010u

/* The groups of a stage. */
typedef struct iv_gemm16_stage_groups {
    int row[4];            /* where each begins; where there is none, behind all rows, where TMA finds zeros */
    uint32_t counts;       /* of their rows, a byte each; 16 where there is none */
    int follow_each_other; /* 16 rows apart */
} iv_gemm16_stage_groups;

IV_CUDA_FUNCTION iv_gemm16_stage_groups iv_gemm16_stage_groups_of(const iv_gemm16 *p, int block) {
    iv_gemm16_stage_groups found;
    found.counts = 0;
    found.follow_each_other = 1;
    IV_CUDA_UNROLL
    for (int g = 0; g < 4; g++) {
        const int64_t index = (int64_t)block * 4 + g;
        const bool is_there = index < p->group_count;
        found.row[g] = is_there ? (int)p->groups[index].row : (int)p->k;
        found.counts |= (is_there ? (uint32_t)p->groups[index].count : 16u) << 8 * g;
        found.follow_each_other &= found.row[g] == found.row[0] + 16 * g;
    }
    return found;
}

/* A warpgroup makes zeros of the rows that groups lack, of 64 lines. */
IV_CUDA_FUNCTION void iv_gemm16_clear_rows(uint32_t chunk, uint32_t counts) {
    IV_CUDA_KEEP_LOOP
    for (int g = 0; g < 4; g++) {
        const int count = (int)(counts >> 8 * g & 0xffu);
        /* Rows of 128 bytes, 16 bytes a thread; the swizzle turns pieces within rows only. */
        const int piece = (int)threadIdx.x % 128;
        if (piece < (16 - count) * 8)
            asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(chunk + (uint32_t)((16 * g + count) * 128 + piece * 16)),
                         "r"(0)
                         : "memory");
    }
}
#else
/* The same by the definition, for the host. */
#if defined(__CUDACC__)
#define IV_GEMM16_DEFINE_MAPPED(suffix)                                                                                        \
    IV_CUDA_FUNCTION void iv_gemm16_define_mapped_##suffix(const iv_gemm16 *p) {                                                \
        __trap();                                                                                                              \
    }
#else
#define IV_GEMM16_DEFINE_MAPPED(suffix)                                                                                        \
    IV_CUDA_FUNCTION void iv_gemm16_define_mapped_##suffix(const iv_gemm16 *p) {                                                \
        const iv_gemm16_output *c = &p->c;                                                                                     \
        IV_CUDA_EACH(index, p->batches *p->m *p->n) {                                                                          \
            const int64_t column = index % p->n, row = index / p->n % p->m, batch = index / p->n / p->m;                       \
            const int64_t at = batch * c->batch_stride + row * c->row_stride + column * c->column_stride;                      \
            const uint16_t *a = p->a.data + batch * p->a.batch_stride + row * p->a.line_stride;                                \
            const uint16_t *b = p->b.data + batch * p->b.batch_stride + column * p->b.line_stride;                             \
            float chain = c->accumulate ? ((const float *)c->data)[at] : 0.0f;                                                 \
            for (int64_t g = 0; g < p->group_count; g++)                                                                       \
                chain = iv_chain16_##suffix(a + p->groups[g].row * p->a.k_stride, p->a.k_stride,                               \
                                            b + p->groups[g].row * p->b.k_stride, p->b.k_stride, p->groups[g].count, chain);   \
            iv_gemm_store(&p->epilogue, c->data, at, iv_gemm_finish(&p->epilogue, batch, row, column, chain, 0.0f));           \
        }                                                                                                                      \
    }
#endif
IV_GEMM16_DEFINE_MAPPED(bf16)
IV_GEMM16_DEFINE_MAPPED(f16)
#define IV_GEMM16_MAPPED_KERNEL(name) IV_CUDA_KERNEL(name, iv_gemm16_mapped, p)
#endif

#endif
