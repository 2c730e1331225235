#include "strided.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void free_memory(void *context) {
    free(context);
}

/* The strides (in elements) of a layout with the first dimension innermost and every second element
 * unused. */
static int64_t odd_strides(int rank, const int64_t *dims, int64_t *strides) {
    int64_t stride = 2;
    for (int d = 0; d < rank; d++) {
        strides[d] = stride;
        stride *= dims[d] > 0 ? dims[d] : 1;
    }
    return stride;
}

static iv_status strided_tensor(iv_tensor *tensor, iv_tensor **strided, iv_error *error) {
    int rank = iv_tensor_rank(tensor);
    const int64_t *dims = iv_tensor_dims(tensor);
    size_t size = iv_dtype_size(iv_tensor_dtype(tensor));
    int64_t strides[IV_MAX_RANK + 1], index[IV_MAX_RANK + 1] = {0};
    size_t bytes = (size_t)odd_strides(rank, dims, strides) * size;
    iv_tensor *contiguous;
    iv_status status = iv_tensor_contiguous(tensor, &contiguous, error);
    if (status != IV_OK)
        return status;
    char *memory = malloc(bytes), *base = memory;
    if (memory == NULL) {
        iv_tensor_release(contiguous);
        snprintf(error->message, sizeof error->message, "out of memory");
        return error->status = IV_ERROR_OUT_OF_MEMORY;
    }
    memset(memory, 0xa5, bytes); /* what must never be read */
    if (rank > 0 && dims[rank - 1] > 0) {
        base += (dims[rank - 1] - 1) * strides[rank - 1] * (int64_t)size;
        strides[rank - 1] = -strides[rank - 1];
    }
    const char *source = iv_tensor_data(contiguous);
    for (int64_t i = iv_tensor_elements(contiguous); i > 0; i--, source += size) {
        char *target = base;
        for (int d = 0; d < rank; d++)
            target += index[d] * strides[d] * (int64_t)size;
        memcpy(target, source, size);
        for (int d = rank - 1; d >= 0 && ++index[d] == dims[d]; d--)
            index[d] = 0;
    }
    iv_tensor_release(contiguous);
    status = iv_tensor_wrap(iv_tensor_dtype(tensor), rank, dims, strides, base, free_memory, memory,
                            strided, error);
    if (status != IV_OK)
        free(memory);
    return status;
}

static iv_status strided_sequence(iv_value *value, iv_error *error) {
    int64_t count = iv_sequence_count(value->sequence);
    iv_value *items = calloc((size_t)count + 1, sizeof *items), fresh;
    if (items == NULL)
        return error->status = IV_ERROR_OUT_OF_MEMORY;
    iv_status status = IV_OK;
    for (int64_t i = 0; i < count && status == IV_OK; i++) {
        items[i] = iv_value_retain(iv_sequence_item(value->sequence, i));
        status = make_strided(&items[i], error);
    }
    if (status == IV_OK)
        status =
            iv_value_of_sequence(iv_sequence_dtype(value->sequence), count, items, &fresh, error);
    for (int64_t i = 0; i < count; i++)
        iv_value_release(&items[i]);
    free(items);
    if (status == IV_OK) {
        iv_value_release(value);
        *value = fresh;
    }
    return status;
}

iv_status make_strided(iv_value *value, iv_error *error) {
    if (value->kind == IV_KIND_SEQUENCE)
        return strided_sequence(value, error);
    if (value->kind == IV_KIND_NONE || iv_tensor_dtype(value->tensor) == IV_STRING)
        return IV_OK;
    iv_tensor *strided;
    iv_status status = strided_tensor(value->tensor, &strided, error);
    if (status != IV_OK)
        return status;
    iv_value_release(value);
    *value = iv_value_of_tensor(strided);
    return IV_OK;
}
