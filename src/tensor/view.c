/* Views: new extents and strides over the same storage. */
#include <string.h>

#include "tensor/tensor.h"

static sb_status view(sb_tensor *tensor, char *data, int rank, const int64_t *dims, const int64_t *strides,
                      sb_tensor **result, sb_error *error) {
    return sb_tensor_over(tensor->storage, data, tensor->dtype, rank, dims, strides, result, error);
}

/* Finds strides for `dims` that visit the tensor's elements in the same row-major order.
 *
 * Both shapes are cut into the smallest matching groups of dimensions with equal products; a group
 * of the old shape must be laid out like one dimension, and the new dimensions of the group divide
 * that one. False if one is not. */
static bool reshape_strides(const sb_tensor *tensor, int rank, const int64_t *dims, int64_t *strides) {
    int old = 0, now = 0;
    while (old < tensor->rank || now < rank) {
        int old_start = old, now_start = now;
        int64_t old_product = 1, now_product = 1;
        if (old < tensor->rank)
            old_product = tensor->dims[old++];
        if (now < rank)
            now_product = dims[now++];
        while (old_product != now_product) {
            if (old_product < now_product && old < tensor->rank)
                old_product *= tensor->dims[old++];
            else if (now < rank)
                now_product *= dims[now++];
            else
                return false;
        }
        /* The stride of the group's last old dimension that is not 1, and the check that the others continue it. */
        int64_t stride = 1, next = 0;
        bool first = true;
        for (int i = old - 1; i >= old_start; i--) {
            if (tensor->dims[i] == 1)
                continue;
            if (!first && tensor->strides[i] != next)
                return false;
            if (first)
                stride = tensor->strides[i];
            first = false;
            next = tensor->strides[i] * tensor->dims[i];
        }
        for (int i = now - 1; i >= now_start; i--) {
            strides[i] = stride;
            stride *= dims[i];
        }
    }
    return true;
}

sb_status sb_tensor_reshape(sb_tensor *tensor, int rank, const int64_t *dims, sb_tensor **result, sb_error *error) {
    int64_t elements;
    SB_TRY(sb_count_elements(tensor->dtype, rank, dims, &elements, error));
    if (elements != sb_tensor_elements(tensor)) {
        char from[SB_DIMS_TEXT_BYTES], to[SB_DIMS_TEXT_BYTES];
        return sb_fail(error, SB_ERROR_SHAPE, "cannot reshape %s to %s: the numbers of elements differ",
                       sb_dims_text(tensor->rank, tensor->dims, from), sb_dims_text(rank, dims, to));
    }
    if (elements == 0 || sb_tensor_is_contiguous(tensor))
        return view(tensor, tensor->data, rank, dims, NULL, result, error);
    int64_t strides[SB_MAX_RANK] = {0};
    if (!reshape_strides(tensor, rank, dims, strides)) {
        char from[SB_DIMS_TEXT_BYTES], to[SB_DIMS_TEXT_BYTES];
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "a view of %s with these strides cannot have the shape %s: make it contiguous first",
                       sb_dims_text(tensor->rank, tensor->dims, from), sb_dims_text(rank, dims, to));
    }
    return view(tensor, tensor->data, rank, dims, strides, result, error);
}

sb_status sb_tensor_transpose(sb_tensor *tensor, const int *permutation, sb_tensor **result, sb_error *error) {
    int64_t dims[SB_MAX_RANK], strides[SB_MAX_RANK];
    bool seen[SB_MAX_RANK] = {false};
    for (int i = 0; i < tensor->rank; i++) {
        int from = permutation[i];
        if (from < 0 || from >= tensor->rank || seen[from])
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                           "the permutation names dimension %d of %d twice or out of range", from, tensor->rank);
        seen[from] = true;
        dims[i] = tensor->dims[from];
        strides[i] = tensor->strides[from];
    }
    return view(tensor, tensor->data, tensor->rank, dims, strides, result, error);
}

sb_status sb_tensor_slice(sb_tensor *tensor, int axis, int64_t start, int64_t count, int64_t step, sb_tensor **result,
                          sb_error *error) {
    if (axis < 0 || axis >= tensor->rank)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "axis %d is not below rank %d", axis, tensor->rank);
    int64_t extent = tensor->dims[axis], reach = 0, last = 0;
    if (count < 0 || step == 0 ||
        (count > 0 && (start < 0 || start >= extent || __builtin_mul_overflow(count - 1, step, &reach) ||
                       __builtin_add_overflow(start, reach, &last) || last < 0 || last >= extent)))
        return sb_fail(error, SB_ERROR_SHAPE,
                       "%lld elements from %lld by %lld do not lie inside extent %lld of axis %d", (long long)count,
                       (long long)start, (long long)step, (long long)extent, axis);
    int64_t dims[SB_MAX_RANK], strides[SB_MAX_RANK];
    memcpy(dims, tensor->dims, sizeof dims);
    memcpy(strides, tensor->strides, sizeof strides);
    char *data = tensor->data;
    dims[axis] = count;
    /* An empty tensor may have no memory to point into. */
    if (count > 0 && sb_tensor_elements(tensor) != 0)
        data += start * strides[axis] * (int64_t)sb_dtype_size(tensor->dtype);
    /* A step that leaves one element may be huge: its stride is never used and would overflow. */
    strides[axis] = count > 1 ? strides[axis] * step : 0;
    return view(tensor, data, tensor->rank, dims, strides, result, error);
}

sb_status sb_tensor_broadcast(sb_tensor *tensor, int rank, const int64_t *dims, sb_tensor **result, sb_error *error) {
    int64_t elements, strides[SB_MAX_RANK];
    SB_TRY(sb_count_elements(tensor->dtype, rank, dims, &elements, error));
    int missing = rank - tensor->rank;
    for (int i = 0; i < rank; i++) {
        int from = i - missing;
        if (from >= 0 && tensor->dims[from] == dims[i]) {
            strides[i] = tensor->strides[from];
        } else if (from < 0 || tensor->dims[from] == 1) {
            strides[i] = 0;
        } else {
            missing = -1;
            break;
        }
    }
    if (missing < 0) {
        char from[SB_DIMS_TEXT_BYTES], to[SB_DIMS_TEXT_BYTES];
        return sb_fail(error, SB_ERROR_SHAPE, "cannot broadcast %s to %s",
                       sb_dims_text(tensor->rank, tensor->dims, from), sb_dims_text(rank, dims, to));
    }
    return view(tensor, tensor->data, rank, dims, strides, result, error);
}
