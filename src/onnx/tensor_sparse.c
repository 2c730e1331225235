/* Sparse tensors, made dense. */
#include <inttypes.h>
#include <string.h>

#include "onnx/tensor.h"

/* Where non-zero number `i` goes in the dense tensor; false when that is outside of it. `indices`
 * is [count] or [count, rank]. */
static bool dense_index(const sb_tensor *indices, int rank, const int64_t *dims, int64_t elements, int64_t i,
                        int64_t *index) {
    const int64_t *data = (const int64_t *)(const void *)indices->data;
    if (indices->rank == 1) {
        *index = data[i];
        return *index >= 0 && *index < elements;
    }
    *index = 0;
    for (int d = 0; d < rank; d++) {
        int64_t at = data[i * rank + d];
        if (at < 0 || at >= dims[d])
            return false;
        *index = *index * dims[d] + at;
    }
    return true;
}

static sb_status scatter(const sb_tensor *values, const sb_tensor *indices, sb_tensor *dense, sb_error *error) {
    size_t size = sb_dtype_size(values->dtype);
    int64_t elements = sb_tensor_elements(dense), previous = -1;
    for (int64_t i = 0; i < values->dims[0]; i++) {
        int64_t index;
        if (!dense_index(indices, dense->rank, dense->dims, elements, i, &index) || index <= previous)
            return sb_fail(error, SB_ERROR_INVALID_MODEL,
                           "index %" PRId64 " lies outside of the tensor or is not in order", i);
        memcpy(dense->data + (size_t)index * size, values->data + (size_t)i * size, size);
        previous = index;
    }
    return SB_OK;
}

static sb_status check_form(const sb_tensor *values, const sb_tensor *indices, size_t rank, sb_error *error) {
    if (values->dtype == SB_STRING)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "sparse tensors of text are not supported");
    bool fits = values->rank == 1 && indices->dtype == SB_S64 &&
                (indices->rank == 1 || (indices->rank == 2 && (size_t)indices->dims[1] == rank)) &&
                indices->dims[0] == values->dims[0];
    if (!fits || rank > SB_MAX_RANK)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "values, indices and the %zu dimensions do not fit each other",
                       rank);
    return SB_OK;
}

static sb_status make_dense(const sb_tensor *values, const sb_tensor *indices, size_t n_dims, const int64_t *dims,
                            size_t *budget, sb_tensor **tensor, sb_error *error) {
    SB_TRY(check_form(values, indices, n_dims, error));
    int rank = (int)n_dims;
    int64_t elements;
    sb_status status = sb_count_elements(values->dtype, rank, dims, &elements, error);
    if (status != SB_OK)
        return sb_fail_within(error, SB_ERROR_INVALID_MODEL, "its shape is bad: ");
    size_t bytes = (size_t)elements * sb_dtype_size(values->dtype);
    if (bytes > *budget)
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "it takes %zu bytes when dense, and such tensors may take %zu more: store it "
                       "as a dense tensor",
                       bytes, *budget);
    *budget -= bytes;
    sb_tensor *dense;
    SB_TRY(sb_tensor_create(values->dtype, rank, dims, &dense, error));
    status = scatter(values, indices, dense, error);
    if (status != SB_OK) {
        sb_tensor_release(dense);
        return status;
    }
    *tensor = dense;
    return SB_OK;
}

sb_status sb_onnx_tensor_of_sparse(Onnx__SparseTensorProto *proto, sb_external *external, size_t *budget,
                                   sb_tensor **tensor, sb_error *error) {
    if (proto->values == NULL || proto->indices == NULL)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "a sparse tensor lacks its values or indices");
    sb_tensor *values, *indices;
    SB_TRY(sb_onnx_tensor_of_proto(proto->values, NULL, external, &values, error));
    sb_status status = sb_onnx_tensor_of_proto(proto->indices, NULL, external, &indices, error);
    if (status == SB_OK) {
        status = make_dense(values, indices, proto->n_dims, proto->dims, budget, tensor, error);
        sb_tensor_release(indices);
    }
    sb_tensor_release(values);
    if (status != SB_OK)
        return sb_fail_within(error, status,
                              "sparse tensor '%.200s': ", proto->values->name != NULL ? proto->values->name : "");
    return SB_OK;
}
