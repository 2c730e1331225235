/* PagedAppend: paged_append.cuh. */
#include "cuda/moving/paged_append.cuh"

#define PAGED_APPEND(suffix)                                                                                           \
    SB_CUDA_KERNEL(sb_cuda_paged_append_##suffix, sb_cuda_paged_append, p) {                                           \
        SB_CUDA_EACH(index, sb_cuda_append_count(p)) {                                                                 \
            sb_cuda_append_##suffix(p, index);                                                                         \
        }                                                                                                              \
    }
PAGED_APPEND(f16)
PAGED_APPEND(bf16)
PAGED_APPEND(f32)
