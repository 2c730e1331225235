#include "strided.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void free_memory(void *context) {
    free(context);
}

/* The strides (in elements) of a layout with the first dimension innermost and every second element unused. */
static int64_t odd_strides(int rank, const int64_t *dims, int64_t *strides) {
    int64_t stride = 2;
    for (int d = 0; d < rank; d++) {
        strides[d] = stride;
        stride *= dims[d] > 0 ? dims[d] : 1;
    }
    return stride;
}

static sb_status strided_tensor(sb_tensor *tensor, sb_tensor **strided, sb_error *error) {
    int rank = sb_tensor_rank(tensor);
    const int64_t *dims = sb_tensor_dims(tensor);
    size_t size = sb_dtype_size(sb_tensor_dtype(tensor));
    int64_t strides[SB_MAX_RANK + 1], index[SB_MAX_RANK + 1] = {0};
    size_t bytes = (size_t)odd_strides(rank, dims, strides) * size;
    sb_tensor *contiguous;
    sb_status status = sb_tensor_contiguous(tensor, &contiguous, error);
    if (status != SB_OK)
        return status;
    char *memory = malloc(bytes), *base = memory;
    if (memory == NULL) {
        sb_tensor_release(contiguous);
        snprintf(error->message, sizeof error->message, "out of memory");
        return error->status = SB_ERROR_OUT_OF_MEMORY;
    }
    memset(memory, 0xa5, bytes); /* what must never be read */
    if (rank > 0 && dims[rank - 1] > 0) {
        base += (dims[rank - 1] - 1) * strides[rank - 1] * (int64_t)size;
        strides[rank - 1] = -strides[rank - 1];
    }
    const char *source = sb_tensor_data(contiguous);
    for (int64_t i = sb_tensor_elements(contiguous); i > 0; i--, source += size) {
        char *target = base;
        for (int d = 0; d < rank; d++)
            target += index[d] * strides[d] * (int64_t)size;
        memcpy(target, source, size);
        for (int d = rank - 1; d >= 0 && ++index[d] == dims[d]; d--)
            index[d] = 0;
    }
    sb_tensor_release(contiguous);
    status = sb_tensor_wrap(sb_tensor_dtype(tensor), rank, dims, strides, base, free_memory, memory, strided, error);
    if (status != SB_OK)
        free(memory);
    return status;
}

static sb_status strided_sequence(sb_value *value, sb_error *error) {
    int64_t count = sb_sequence_count(value->sequence);
    sb_value *items = calloc((size_t)count + 1, sizeof *items), fresh;
    if (items == NULL)
        return error->status = SB_ERROR_OUT_OF_MEMORY;
    sb_status status = SB_OK;
    for (int64_t i = 0; i < count && status == SB_OK; i++) {
        items[i] = sb_value_retain(sb_sequence_item(value->sequence, i));
        status = make_strided(&items[i], error);
    }
    if (status == SB_OK)
        status = sb_value_of_sequence(sb_sequence_dtype(value->sequence), count, items, &fresh, error);
    for (int64_t i = 0; i < count; i++)
        sb_value_release(&items[i]);
    free(items);
    if (status == SB_OK) {
        sb_value_release(value);
        *value = fresh;
    }
    return status;
}

sb_status make_strided(sb_value *value, sb_error *error) {
    if (value->kind == SB_KIND_SEQUENCE)
        return strided_sequence(value, error);
    if (value->kind == SB_KIND_NONE || sb_tensor_dtype(value->tensor) == SB_STRING)
        return SB_OK;
    sb_tensor *strided;
    sb_status status = strided_tensor(value->tensor, &strided, error);
    if (status != SB_OK)
        return status;
    sb_value_release(value);
    *value = sb_value_of_tensor(strided);
    return SB_OK;
}
