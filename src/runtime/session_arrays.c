/* Runs on memory of the caller's, without tensors of his: what bindings to other languages call. */
#include <string.h>

#include "runtime/model.h"
#include "runtime/session_internal.h"
#include "tensor/tensor.h"

static const char *input_name(const sb_session *session, int index) {
    return session->entry->descriptions[index].name;
}

/* A tensor over the caller's memory for as long as the run takes. */
static sb_status look_at(const sb_session *session, int index, const sb_array *array, sb_value *value,
                         sb_error *error) {
    sb_tensor *tensor;
    if (array->dtype == SB_DTYPE_NONE)
        return SB_OK;
    if (array->dtype == SB_STRING)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "input %s is text, which is no plain memory: use sb_session_run",
                       input_name(session, index));
    sb_status status =
        sb_tensor_wrap(array->dtype, array->rank, array->dims, array->strides, array->data, NULL, NULL, &tensor, error);
    if (status != SB_OK)
        return sb_fail_within(error, status, "input %s: ", input_name(session, index));
    *value = sb_value_of_tensor(tensor);
    return SB_OK;
}

/* Whether a result shows memory of an input, which is the caller's to write again. */
static bool shows_input(const sb_session *session, const sb_value *inputs, const sb_tensor *result) {
    for (int i = 0; i < session->entry->input_count; i++) {
        if (inputs[i].kind == SB_KIND_TENSOR && inputs[i].tensor->storage == result->storage)
            return true;
    }
    return false;
}

static sb_status copy(sb_tensor **tensor, sb_error *error) {
    sb_tensor *own;
    SB_TRY(sb_tensor_create_uninitialised((*tensor)->dtype, (*tensor)->rank, (*tensor)->dims, &own, error));
    sb_tensor_copy_elements(own, *tensor);
    sb_tensor_release(*tensor);
    *tensor = own;
    return SB_OK;
}

/* Hands a result over. */
static sb_status give(const sb_session *session, int index, const sb_value *inputs, sb_value *result, sb_array *array,
                      sb_error *error) {
    if (result->kind == SB_KIND_NONE)
        return SB_OK;
    if (result->kind == SB_KIND_SEQUENCE)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "output %s is a sequence: use sb_session_run",
                       session->entry->descriptions[session->entry->input_count + index].name);
    if (shows_input(session, inputs, result->tensor))
        SB_TRY(copy(&result->tensor, error));
    sb_tensor *tensor = result->tensor;
    *array = (sb_array){.dtype = tensor->dtype,
                        .rank = tensor->rank,
                        .contiguous = sb_tensor_is_contiguous(tensor),
                        .data = tensor->data,
                        .tensor = tensor};
    memcpy(array->dims, tensor->dims, (size_t)tensor->rank * sizeof *tensor->dims);
    memcpy(array->strides, tensor->strides, (size_t)tensor->rank * sizeof *tensor->strides);
    *result = (sb_value){0};
    return SB_OK;
}

/* Takes the tensors away from the caller's memory. Nothing of the session may look at it behind the run. */
static sb_status look_away(const sb_session *session, sb_value *inputs, sb_status status, sb_error *error) {
    for (int i = 0; i < session->entry->input_count; i++) {
        if (inputs[i].kind != SB_KIND_TENSOR)
            continue;
        sb_storage *storage = sb_storage_retain(inputs[i].tensor->storage);
        sb_value_release(&inputs[i]);
        if (atomic_load_explicit(&storage->references, memory_order_acquire) != 1 && status == SB_OK)
            status = sb_fail(error, SB_ERROR_INTERNAL, "something still looks at input %s behind its run",
                             input_name(session, i));
        sb_storage_release(storage);
    }
    return status;
}

static void no_outputs(const sb_session *session, sb_array *outputs) {
    for (int i = 0; i < session->entry->output_count; i++) {
        sb_tensor_release(outputs[i].tensor);
        outputs[i].dtype = SB_DTYPE_NONE;
        outputs[i].tensor = NULL;
    }
}

static sb_status run(sb_session *session, const sb_array *inputs, sb_array *outputs, sb_error *error) {
    int input_count = session->entry->input_count, output_count = session->entry->output_count;
    sb_value *values = session->operands, *results = values + input_count;
    sb_status status = SB_OK;
    memset(values, 0, (size_t)input_count * sizeof *values);
    for (int i = 0; i < input_count && status == SB_OK; i++)
        status = look_at(session, i, &inputs[i], &values[i], error);
    if (status == SB_OK) {
        status = sb_session_run(session, values, results, error);
        for (int i = 0; i < output_count && status == SB_OK; i++)
            status = give(session, i, values, &results[i], &outputs[i], error);
        for (int i = 0; i < output_count; i++)
            sb_value_release(&results[i]);
    }
    return look_away(session, values, status, error);
}

sb_status sb_session_run_arrays(sb_session *session, const sb_array *inputs, sb_array *outputs, sb_error *error) {
    for (int i = 0; i < session->entry->output_count; i++)
        outputs[i].tensor = NULL;
    no_outputs(session, outputs);
    sb_memory_budget *outer = sb_memory_budget_enter(session->budget);
    sb_tensor_pool *outer_tensors = sb_tensor_pool_enter(session->tensors);
    sb_status status = run(session, inputs, outputs, error);
    if (status != SB_OK)
        no_outputs(session, outputs);
    sb_tensor_pool_enter(outer_tensors);
    sb_memory_budget_enter(outer);
    return status;
}
