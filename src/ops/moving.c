#include "ops/moving.h"

#include "base/allocation.h"
#include "tensor/walk.h"

sb_status sb_move_output(sb_call *call, int index, sb_dtype dtype, int rank, const int64_t *dims, sb_tensor **tensor) {
    if (dtype == SB_STRING)
        return sb_tensor_create_uninitialised(dtype, rank, dims, tensor, call->error);
    return sb_call_output_shape(call, index, dtype, rank, dims, tensor);
}

sb_status sb_move_output_fact(sb_call *call, int index, sb_tensor **tensor) {
    const sb_fact *fact = &call->facts[index];
    int64_t dims[SB_MAX_RANK];
    if (fact->dtype == SB_STRING && sb_fact_is_concrete(fact, dims))
        return sb_move_output(call, index, fact->dtype, fact->rank, dims, tensor);
    return sb_call_output(call, index, tensor);
}

sb_status sb_move_finish(sb_call *call, int index, sb_tensor *tensor, sb_status status) {
    if (tensor == NULL || tensor->dtype != SB_STRING)
        return status;
    sb_tensor *copy = NULL;
    if (status == SB_OK)
        status = sb_tensor_from_strings(tensor->rank, tensor->dims, (const sb_string *)(const void *)tensor->data,
                                        &copy, call->error);
    sb_tensor_release(tensor);
    return status == SB_OK ? sb_call_set_output(call, index, copy) : status;
}

static int64_t integer_at(const sb_tensor *tensor, int64_t offset) {
    return tensor->dtype == SB_S32 ? ((const int32_t *)(const void *)tensor->data)[offset]
                                   : ((const int64_t *)(const void *)tensor->data)[offset];
}

sb_status sb_move_integers(const sb_call *call, int index, int limit, int64_t *values, int *count) {
    const sb_tensor *tensor = sb_call_input(call, index);
    if (tensor == NULL || (SB_SET(tensor->dtype) & SB_SET_INDEX) == 0 || tensor->rank > 1)
        return sb_call_fail(call, SB_ERROR_SHAPE, "input %d must be a list of s32 or s64 integers", index);
    int64_t length = tensor->rank == 0 ? 1 : tensor->dims[0];
    if (length > limit)
        return sb_call_fail(call, SB_ERROR_SHAPE, "input %d lists %lld integers; at most %d make sense", index,
                            (long long)length, limit);
    for (int64_t i = 0; i < length; i++)
        values[i] = integer_at(tensor, tensor->rank == 0 ? 0 : i * tensor->strides[0]);
    *count = (int)length;
    return SB_OK;
}

typedef struct index_reader {
    int64_t *to;
    sb_dtype dtype;
} index_reader;

static void read_row(void *context, int64_t count, char *const *data, const int64_t *steps) {
    index_reader *reader = context;
    const char *from = data[0];
    for (int64_t i = 0; i < count; i++, from += steps[0])
        *reader->to++ =
            reader->dtype == SB_S32 ? *(const int32_t *)(const void *)from : *(const int64_t *)(const void *)from;
}

sb_status sb_move_indices(const sb_call *call, const sb_tensor *tensor, int64_t **values, int64_t *count) {
    *count = sb_tensor_elements(tensor);
    *values = sb_allocate_array((size_t)*count, sizeof **values);
    if (*values == NULL)
        return sb_fail_memory(call->error, (size_t)*count * sizeof **values);
    index_reader reader = {*values, tensor->dtype};
    sb_walk walk;
    sb_walk_start_ordered(&walk, tensor->rank, tensor->dims, 1, &tensor);
    sb_walk_run(&walk, read_row, &reader);
    return SB_OK;
}

sb_status sb_move_check(const sb_call *call, int axis, int64_t index, int64_t extent, int64_t *position) {
    if (index < -extent || index >= extent)
        return sb_call_fail(call, SB_ERROR_SHAPE, "index %lld is outside extent %lld of axis %d", (long long)index,
                            (long long)extent, axis);
    *position = index < 0 ? index + extent : index;
    return SB_OK;
}

sb_status sb_move_axis(const sb_call *call, int64_t axis, int rank, int *normalised) {
    if (axis < -rank || axis >= rank)
        return sb_call_fail(call, SB_ERROR_SHAPE, "axis %lld is outside [-%d, %d)", (long long)axis, rank, rank);
    *normalised = (int)(axis < 0 ? axis + rank : axis);
    return SB_OK;
}

int64_t sb_move_product(const int64_t *dims, int from, int to) {
    int64_t product = 1;
    for (int i = from; i < to; i++)
        product *= dims[i];
    return product;
}

sb_dim sb_dim_product(sb_scope *scope, const sb_dim *dims, int from, int to) {
    sb_dim product = sb_dim_constant(scope, 1);
    for (int i = from; i < to; i++)
        product = sb_dim_multiply(scope, product, dims[i]);
    return product;
}

bool sb_dims_clash(sb_dim left, sb_dim right) {
    int64_t first, second;
    return sb_dim_is_constant(left, &first) && sb_dim_is_constant(right, &second) && first != second;
}

void sb_infer_open(sb_infer *infer, int output, sb_dtype dtype, int rank) {
    sb_dim dims[SB_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dims[i] = sb_infer_fresh(infer, output, i);
    sb_fact_set_tensor(&infer->outputs[output], dtype, rank, dims);
}
