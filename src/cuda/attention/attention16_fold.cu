/* What splits have come to, folded (docs/numerics.md, section 10, 6 and 7).
 * Compiled for 90a alone. A module for each of bf16, f16. */
#include "cuda/attention/attention16_fold.cuh"

/* A block of threads for each row, a column each at a time. */
template <int HALF, bool PAGED> SB_CUDA_FUNCTION void fold_rows(const sb_cuda_attention *p) {
    const int64_t count = p->batch * p->heads * p->part_rows;
    SB_CUDA_KEEP_LOOP
    for (int64_t row = blockIdx.x; row < count; row += gridDim.x) {
        sb_attention_place at;
        int64_t first;
        if (PAGED) {
            sb_attention_sequence found;
            int64_t number = row;
            const int64_t head = sb_cuda_take(&number, p->heads);
            at = sb_attention_paged_row(p, head, number, &found);
            if (!at.used)
                return;
            first = found.behind - found.begin;
        } else {
            at = sb_attention_row(p, row);
            first = at.batch * p->heads * p->part_rows;
        }
        SB_CUDA_KEEP_LOOP
        for (int64_t column = threadIdx.x; at.used && column < p->value_width; column += THREADS) {
            sb_attention16_column begun = sb_attention16_begin_column(&at, column);
            sb_attention16_fold_columns<typename sb_attention16_element<HALF>::type, 1>(p, first, &begun);
        }
    }
}

#define FOLD(name, half)                                                                                               \
    SB_CUDA_KERNEL_BOUNDED(sb_cuda_attention16_fold_##name, sb_cuda_attention, p, THREADS, 4) {                        \
        fold_rows<half, false>(p);                                                                                     \
    }                                                                                                                  \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_attention16_fold_##name##_paged, sb_cuda_attention, p, THREADS, 4) {          \
        fold_rows<half, true>(p);                                                                                      \
    }
/* The host has both modules in one. */
#if defined(SB_MODULE_f16) || !defined(__CUDACC__)
FOLD(f16, SB_CUDA_F16)
#endif
#if defined(SB_MODULE_bf16) || !defined(__CUDACC__)
FOLD(bf16, SB_CUDA_BF16)
#endif
