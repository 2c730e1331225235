/* Elements picked by index. Blocks of consecutive elements are moved in words as large as sizes and
 * addresses allow, so that neighbouring threads read neighbouring memory. */
#include "cuda/common/index.cuh"
#include "cuda/moving/gather_parameters.h"
#include "ops/number.h"

/* Whether element `index` of a packed tensor is within the used extents. */
SB_CUDA_FUNCTION int is_used(const sb_cuda_used_axes *axes, int64_t index) {
    int used = 1;
    SB_CUDA_KEEP_LOOP
    for (int i = 0; i < axes->count; i++) {
        int64_t rest = index / axes->inner[i];
        used &= sb_cuda_take(&rest, axes->extents[i]) < *axes->used[i];
    }
    return used;
}

#define WORDS(X) SB_CUDA_SIZES(X) X(128, sb_cuda_16_bytes)

/* Data of any strides: `axis` counts the picks. */
#define GATHER(size, type)                                                                                             \
    SB_CUDA_KERNEL(sb_cuda_gather_##size, sb_cuda_gather_elements, p) {                                                \
        const int64_t extent = sb_cuda_used(p->used_extent, p->extent);                                                \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t rest = index, offset = 0, place = 0;                                                               \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int d = p->rank - 1; d >= 0; d--) {                                                                   \
                int64_t at = d > 0 ? sb_cuda_take(&rest, p->dims[d]) : rest;                                           \
                if (d == p->axis)                                                                                      \
                    at = place = is_used(&p->used, at)                                                                 \
                                     ? sb_cuda_check_index(sb_cuda_index(p->indices, p->wide, at), extent, p->fault)   \
                                     : -1;                                                                             \
                offset += at * p->steps[d];                                                                            \
            }                                                                                                          \
            if (place >= 0)                                                                                            \
                ((type *)(void *)p->out)[index] = SB_CUDA_CONST_ELEMENT(type, p->in, offset);                          \
        }                                                                                                              \
    }
WORDS(GATHER)

#define GATHER_ELEMENTS(size, type)                                                                                    \
    SB_CUDA_KERNEL(sb_cuda_gather_elements_##size, sb_cuda_gather_elements, p) {                                       \
        const int64_t extent = sb_cuda_used(p->used_extent, p->extent);                                                \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t rest = index, offset = 0;                                                                          \
            if (!is_used(&p->used, index))                                                                             \
                continue;                                                                                              \
            int64_t place = sb_cuda_check_index(sb_cuda_index(p->indices, p->wide, index), extent, p->fault);          \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int d = p->rank - 1; d >= 0; d--) {                                                                   \
                int64_t at = d > 0 ? sb_cuda_take(&rest, p->dims[d]) : rest;                                           \
                offset += (d == p->axis ? place : at) * p->steps[d];                                                   \
            }                                                                                                          \
            if (place >= 0)                                                                                            \
                ((type *)(void *)p->out)[index] = SB_CUDA_CONST_ELEMENT(type, p->in, offset);                          \
        }                                                                                                              \
    }
SB_CUDA_SIZES(GATHER_ELEMENTS)

#define GATHER_ND(size, type)                                                                                          \
    SB_CUDA_KERNEL(sb_cuda_gather_nd_##size, sb_cuda_gather_nd, p) {                                                   \
        SB_CUDA_EACH(index, p->words) {                                                                                \
            int64_t tuple = index, at = sb_cuda_take(&tuple, p->block), offset = 0;                                    \
            int64_t batch = tuple;                                                                                     \
            int inside = 1;                                                                                            \
            sb_cuda_take(&batch, p->tuples);                                                                           \
            for (int d = 0; d < p->depth; d++) {                                                                       \
                int64_t place = sb_cuda_check_index(sb_cuda_index(p->indices, p->wide, tuple * p->depth + d),          \
                                                    p->dims[d], p->fault);                                             \
                inside &= place >= 0;                                                                                  \
                offset = offset * p->dims[d] + place;                                                                  \
            }                                                                                                          \
            if (inside)                                                                                                \
                ((type *)(void *)p->out)[index] =                                                                      \
                    ((const type *)(const void *)p->in)[batch * p->inside + offset * p->block + at];                   \
        }                                                                                                              \
    }
WORDS(GATHER_ND)

#define ONE_HOT(size, type)                                                                                            \
    SB_CUDA_KERNEL(sb_cuda_one_hot_##size, sb_cuda_one_hot, p) {                                                       \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t outer = index, inner = sb_cuda_take(&outer, p->inner);                                             \
            int64_t middle = sb_cuda_take(&outer, p->extent);                                                          \
            int64_t hot = sb_i64_from_f64(sb_number_load(p->dtype, p->indices, outer * p->inner + inner));             \
            hot = hot < 0 ? hot + p->extent : hot;                                                                     \
            ((type *)(void *)p->out)[index] = ((const type *)(const void *)p->values)[hot == middle ? 1 : 0];          \
        }                                                                                                              \
    }
SB_CUDA_SIZES(ONE_HOT)
