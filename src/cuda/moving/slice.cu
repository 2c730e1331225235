/* Slices that begin where only the run knows: one kernel for each size of an element. */
#include "cuda/common/index.cuh"
#include "cuda/moving/slice_parameters.h"

/* Where the slice begins along an axis. */
SB_CUDA_FUNCTION int64_t start_of(const sb_cuda_slice *p, int d) {
    int64_t start = p->known[d] != NULL ? *p->known[d] : p->starts[d];
    return sb_slice_clamp(start, sb_cuda_used(p->used[d], p->extents[d]), p->paces[d] < 0);
}

/* What is behind the used rows of the output may lie outside of the input: it stays as it is. */
#define SLICE(size, type)                                                                                              \
    SB_CUDA_KERNEL(sb_cuda_slice_##size, sb_cuda_slice, p) {                                                           \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t rest = index, offset = 0;                                                                          \
            int inside = 1;                                                                                            \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int d = p->rank - 1; d >= 0; d--) {                                                                   \
                int64_t at = d > 0 ? sb_cuda_take(&rest, p->dims[d]) : rest;                                           \
                int64_t from = start_of(p, d) + at * p->paces[d];                                                      \
                inside &= from >= 0 && from < p->extents[d];                                                           \
                offset += from * p->steps[d];                                                                          \
            }                                                                                                          \
            if (inside)                                                                                                \
                ((type *)(void *)p->out)[index] = SB_CUDA_CONST_ELEMENT(type, p->in, offset);                          \
        }                                                                                                              \
    }
SB_CUDA_SIZES(SLICE)
