/* Elements that are moved, left out, repeated or made: one kernel for each size of an element. */
#include "cuda/kernels/moving_parameters.h"
#include "cuda/kernels/index.cuh"

#define FILL(size, type)                                                                           \
    IV_CUDA_KERNEL(iv_cuda_fill_##size, iv_cuda_fill, p) {                                         \
        IV_CUDA_EACH(index, p->elements)                                                           \
            ((type *)(void *)p->out)[index] = (type)p->bits;                                       \
    }
IV_CUDA_SIZES(FILL)

#define EYE(size, type)                                                                            \
    IV_CUDA_KERNEL(iv_cuda_eye_##size, iv_cuda_eye, p) {                                           \
        IV_CUDA_EACH(index, p->elements) {                                                         \
            int64_t row = index, column = iv_cuda_take(&row, p->columns);                          \
            ((type *)(void *)p->out)[index] = (type)(column - row == p->diagonal ? p->one : 0);    \
        }                                                                                          \
    }
IV_CUDA_SIZES(EYE)

IV_CUDA_KERNEL(iv_cuda_range, iv_cuda_range_fill, p) {
    IV_CUDA_EACH(index, p->range.count)
        iv_range_store(&p->range, p->out, index);
}

#define TRILU(size, type)                                                                          \
    IV_CUDA_KERNEL(iv_cuda_trilu_##size, iv_cuda_trilu, p) {                                       \
        IV_CUDA_EACH(index, p->elements) {                                                         \
            int64_t row = index, column = iv_cuda_take(&row, p->columns);                          \
            int64_t above = column - iv_cuda_take(&row, p->rows) - p->diagonal;                    \
            int kept = p->upper ? above >= 0 : above <= 0;                                         \
            ((type *)(void *)p->out)[index] =                                                      \
                kept ? ((const type *)(const void *)p->in)[index] : (type)0;                       \
        }                                                                                          \
    }
IV_CUDA_SIZES(TRILU)

#define REVERSE(size, type)                                                                        \
    IV_CUDA_KERNEL(iv_cuda_reverse_##size, iv_cuda_reverse, p) {                                   \
        IV_CUDA_EACH(index, p->elements) {                                                         \
            int64_t outer = index, inner = iv_cuda_take(&outer, p->inner);                         \
            int64_t middle = iv_cuda_take(&outer, p->middle);                                      \
            int64_t time = p->time_first ? outer : middle, batch = p->time_first ? middle : outer; \
            int64_t extent = p->time_first ? p->outer : p->middle;                                 \
            int64_t length = iv_cuda_index(p->lengths, p->wide_lengths, batch);                    \
            if (length < 0 || length > extent) {                                                   \
                *p->fault = IV_CUDA_FAULT_INDEX;                                                   \
                length = 0;                                                                        \
            }                                                                                      \
            if (time < length)                                                                     \
                time = length - 1 - time;                                                          \
            int64_t from = p->time_first ? time * p->middle + middle : outer * p->middle + time;   \
            ((type *)(void *)p->out)[index] =                                                      \
                ((const type *)(const void *)p->in)[from * p->inner + inner];                      \
        }                                                                                          \
    }
IV_CUDA_SIZES(REVERSE)

#define PAD(size, type)                                                                            \
    IV_CUDA_KERNEL(iv_cuda_pad_##size, iv_cuda_pad, p) {                                           \
        IV_CUDA_EACH(index, p->elements) {                                                         \
            int64_t rest = index, offset = 0;                                                      \
            int inside = 1;                                                                        \
            IV_CUDA_KEEP_LOOP                                                                      \
            for (int d = p->rank - 1; d >= 0; d--) {                                               \
                int64_t at = d > 0 ? iv_cuda_take(&rest, p->dims[d]) : rest;                       \
                int64_t from = iv_pad_look(p->mode, at - p->before[d], p->extents[d]);             \
                inside &= from >= 0;                                                               \
                offset += from * p->steps[d];                                                      \
            }                                                                                      \
            ((type *)(void *)p->out)[index] =                                                      \
                inside ? IV_CUDA_CONST_ELEMENT(type, p->in, offset) : (type)p->constant;           \
        }                                                                                          \
    }
IV_CUDA_SIZES(PAD)
