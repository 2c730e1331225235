/* Elements that are moved, left out, repeated or made: one kernel for each size of an element. */
#include "cuda/common/index.cuh"
#include "cuda/moving/moving_parameters.h"

#define FILL(size, type)                                                                                               \
    SB_CUDA_KERNEL(sb_cuda_fill_##size, sb_cuda_fill, p) {                                                             \
        SB_CUDA_EACH(index, p->elements)                                                                               \
        ((type *)(void *)p->out)[index] = (type)p->bits;                                                               \
    }
SB_CUDA_SIZES(FILL)

#define EYE(size, type)                                                                                                \
    SB_CUDA_KERNEL(sb_cuda_eye_##size, sb_cuda_eye, p) {                                                               \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t row = index, column = sb_cuda_take(&row, p->columns);                                              \
            ((type *)(void *)p->out)[index] = (type)(column - row == p->diagonal ? p->one : 0);                        \
        }                                                                                                              \
    }
SB_CUDA_SIZES(EYE)

SB_CUDA_KERNEL(sb_cuda_range, sb_cuda_range_fill, p) {
    SB_CUDA_EACH(index, p->range.count)
    sb_range_store(&p->range, p->out, index);
}

SB_CUDA_KERNEL(sb_cuda_range_of_run, sb_cuda_run_range, p) {
    sb_range range = p->planned;
    range.whole_start = p->start != NULL ? (uint64_t)*p->start : range.whole_start;
    range.whole_limit = p->limit != NULL ? *p->limit : range.whole_limit;
    uint64_t length = sb_range_length((int64_t)range.whole_start, range.whole_limit, (int64_t)range.whole_delta);
    range.count = length < (uint64_t)range.count ? (int64_t)length : range.count;
    SB_CUDA_EACH(index, range.count)
    sb_range_store(&range, p->out, index);
}

/* Beyond the matrix, every diagonal is as good as the first one outside. */
SB_CUDA_FUNCTION int64_t diagonal_of(const sb_cuda_trilu *p) {
    int64_t diagonal = p->known != NULL ? *p->known : p->diagonal;
    return diagonal > p->columns ? p->columns : diagonal < -p->rows ? -p->rows : diagonal;
}

#define TRILU(size, type)                                                                                              \
    SB_CUDA_KERNEL(sb_cuda_trilu_##size, sb_cuda_trilu, p) {                                                           \
        const int64_t diagonal = diagonal_of(p);                                                                       \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t row = index, column = sb_cuda_take(&row, p->columns);                                              \
            int64_t above = column - sb_cuda_take(&row, p->rows) - diagonal;                                           \
            int kept = p->upper ? above >= 0 : above <= 0;                                                             \
            ((type *)(void *)p->out)[index] = kept ? ((const type *)(const void *)p->in)[index] : (type)0;             \
        }                                                                                                              \
    }
SB_CUDA_SIZES(TRILU)

#define REVERSE(size, type)                                                                                            \
    SB_CUDA_KERNEL(sb_cuda_reverse_##size, sb_cuda_reverse, p) {                                                       \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t outer = index, inner = sb_cuda_take(&outer, p->inner);                                             \
            int64_t middle = sb_cuda_take(&outer, p->middle);                                                          \
            int64_t time = p->time_first ? outer : middle, batch = p->time_first ? middle : outer;                     \
            int64_t extent = p->time_first ? p->outer : p->middle;                                                     \
            int64_t length = sb_cuda_index(p->lengths, p->wide_lengths, batch);                                        \
            if (length < 0 || length > extent) {                                                                       \
                *p->fault = SB_FAULT_INDEX;                                                                            \
                length = 0;                                                                                            \
            }                                                                                                          \
            if (time < length)                                                                                         \
                time = length - 1 - time;                                                                              \
            int64_t from = p->time_first ? time * p->middle + middle : outer * p->middle + time;                       \
            ((type *)(void *)p->out)[index] = ((const type *)(const void *)p->in)[from * p->inner + inner];            \
        }                                                                                                              \
    }
SB_CUDA_SIZES(REVERSE)

#define PAD(size, type)                                                                                                \
    SB_CUDA_KERNEL(sb_cuda_pad_##size, sb_cuda_pad, p) {                                                               \
        SB_CUDA_EACH(index, p->elements) {                                                                             \
            int64_t rest = index, offset = 0;                                                                          \
            int inside = 1;                                                                                            \
            SB_CUDA_KEEP_LOOP                                                                                          \
            for (int d = p->rank - 1; d >= 0; d--) {                                                                   \
                int64_t at = d > 0 ? sb_cuda_take(&rest, p->dims[d]) : rest;                                           \
                int64_t from = sb_pad_look(p->mode, at - p->before[d], p->extents[d]);                                 \
                inside &= from >= 0;                                                                                   \
                offset += from * p->steps[d];                                                                          \
            }                                                                                                          \
            ((type *)(void *)p->out)[index] = inside ? SB_CUDA_CONST_ELEMENT(type, p->in, offset) : (type)p->constant; \
        }                                                                                                              \
    }
SB_CUDA_SIZES(PAD)
