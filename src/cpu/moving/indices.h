/* Lists of indices as kernels read them: where they lie if they lie in order, else copied. */
#ifndef SB_CPU_MOVING_INDICES_H
#define SB_CPU_MOVING_INDICES_H

#include "base/allocation.h"
#include "ops/moving.h"

typedef struct sb_indices {
    const int64_t *values;
    int64_t count;
    int64_t *copy; /* NULL: the values are the tensor's own */
} sb_indices;

/** All elements of an s32 or s64 tensor in row-major order, until sb_indices_release, and no longer than the tensor. */
static inline sb_status sb_indices_read(const sb_call *call, const sb_tensor *tensor, sb_indices *indices) {
    *indices = (sb_indices){.values = (const int64_t *)(const void *)tensor->data, .count = sb_tensor_elements(tensor)};
    if (tensor->dtype == SB_S64 && sb_tensor_is_contiguous(tensor))
        return SB_OK;
    SB_TRY(sb_move_indices(call, tensor, &indices->copy, &indices->count));
    indices->values = indices->copy;
    return SB_OK;
}

static inline void sb_indices_release(sb_indices *indices) {
    sb_free(indices->copy);
}

/** An index counted from the end when negative, as sb_move_check; false: it is outside of the extent. */
static inline bool sb_index_place(int64_t index, int64_t extent, int64_t *position) {
    *position = index + (index < 0 ? extent : 0);
    return (uint64_t)*position < (uint64_t)extent;
}

#endif
