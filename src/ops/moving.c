#include "ops/moving.h"

#include "base/allocation.h"
#include "tensor/walk.h"

iv_status iv_move_output(iv_call *call, int index, iv_dtype dtype, int rank, const int64_t *dims,
                         iv_tensor **tensor) {
    if (dtype == IV_STRING)
        return iv_tensor_create_uninitialised(dtype, rank, dims, tensor, call->error);
    return iv_call_output_shape(call, index, dtype, rank, dims, tensor);
}

iv_status iv_move_output_fact(iv_call *call, int index, iv_tensor **tensor) {
    const iv_fact *fact = &call->facts[index];
    int64_t dims[IV_MAX_RANK];
    if (fact->dtype == IV_STRING && iv_fact_is_concrete(fact, dims))
        return iv_move_output(call, index, fact->dtype, fact->rank, dims, tensor);
    return iv_call_output(call, index, tensor);
}

iv_status iv_move_finish(iv_call *call, int index, iv_tensor *tensor, iv_status status) {
    if (tensor == NULL || tensor->dtype != IV_STRING)
        return status;
    iv_tensor *copy = NULL;
    if (status == IV_OK)
        status = iv_tensor_from_strings(tensor->rank, tensor->dims,
                                        (const iv_string *)(const void *)tensor->data, &copy,
                                        call->error);
    iv_tensor_release(tensor);
    return status == IV_OK ? iv_call_set_output(call, index, copy) : status;
}

static int64_t integer_at(const iv_tensor *tensor, int64_t offset) {
    return tensor->dtype == IV_S32 ? ((const int32_t *)(const void *)tensor->data)[offset]
                                   : ((const int64_t *)(const void *)tensor->data)[offset];
}

iv_status iv_move_integers(const iv_call *call, int index, int limit, int64_t *values, int *count) {
    const iv_tensor *tensor = iv_call_input(call, index);
    if (tensor == NULL || (IV_SET(tensor->dtype) & IV_SET_INDEX) == 0 || tensor->rank > 1)
        return iv_call_fail(call, IV_ERROR_SHAPE, "input %d must be a list of s32 or s64 integers",
                            index);
    int64_t length = tensor->rank == 0 ? 1 : tensor->dims[0];
    if (length > limit)
        return iv_call_fail(call, IV_ERROR_SHAPE,
                            "input %d lists %lld integers; at most %d make sense", index,
                            (long long)length, limit);
    for (int64_t i = 0; i < length; i++)
        values[i] = integer_at(tensor, tensor->rank == 0 ? 0 : i * tensor->strides[0]);
    *count = (int)length;
    return IV_OK;
}

typedef struct index_reader {
    int64_t *to;
    iv_dtype dtype;
} index_reader;

static void read_row(void *context, int64_t count, char *const *data, const int64_t *steps) {
    index_reader *reader = context;
    const char *from = data[0];
    for (int64_t i = 0; i < count; i++, from += steps[0])
        *reader->to++ = reader->dtype == IV_S32 ? *(const int32_t *)(const void *)from
                                                : *(const int64_t *)(const void *)from;
}

iv_status iv_move_indices(const iv_call *call, const iv_tensor *tensor, int64_t **values,
                          int64_t *count) {
    *count = iv_tensor_elements(tensor);
    *values = iv_allocate_array((size_t)*count, sizeof **values);
    if (*values == NULL)
        return iv_fail_memory(call->error, (size_t)*count * sizeof **values);
    index_reader reader = {*values, tensor->dtype};
    iv_walk walk;
    iv_walk_start_ordered(&walk, tensor->rank, tensor->dims, 1, &tensor);
    iv_walk_run(&walk, read_row, &reader);
    return IV_OK;
}

iv_status iv_move_check(const iv_call *call, int axis, int64_t index, int64_t extent,
                        int64_t *position) {
    if (index < -extent || index >= extent)
        return iv_call_fail(call, IV_ERROR_SHAPE, "index %lld is outside extent %lld of axis %d",
                            (long long)index, (long long)extent, axis);
    *position = index < 0 ? index + extent : index;
    return IV_OK;
}

iv_status iv_move_axis(const iv_call *call, int64_t axis, int rank, int *normalised) {
    if (axis < -rank || axis >= rank)
        return iv_call_fail(call, IV_ERROR_SHAPE, "axis %lld is outside [-%d, %d)", (long long)axis,
                            rank, rank);
    *normalised = (int)(axis < 0 ? axis + rank : axis);
    return IV_OK;
}

int64_t iv_move_product(const int64_t *dims, int from, int to) {
    int64_t product = 1;
    for (int i = from; i < to; i++)
        product *= dims[i];
    return product;
}

iv_dim iv_dim_product(iv_scope *scope, const iv_dim *dims, int from, int to) {
    iv_dim product = iv_dim_constant(scope, 1);
    for (int i = from; i < to; i++)
        product = iv_dim_multiply(scope, product, dims[i]);
    return product;
}

void iv_infer_open(iv_infer *infer, int output, iv_dtype dtype, int rank) {
    iv_dim dims[IV_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dims[i] = iv_infer_fresh(infer, output, i);
    iv_fact_set_tensor(&infer->outputs[output], dtype, rank, dims);
}
