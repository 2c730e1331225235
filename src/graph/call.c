/* What the operators' `eval` functions and the backends' kernels share. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "graph/op.h"

iv_tensor *iv_call_input(const iv_call *call, int index) {
    if (index >= call->input_count - call->node->capture_count ||
        call->inputs[index].kind != IV_KIND_TENSOR)
        return NULL;
    return call->inputs[index].tensor;
}

bool iv_call_wants(const iv_call *call, int index) {
    return index < call->output_count && call->node->outputs[index] != IV_NO_VALUE;
}

iv_status iv_call_fail(const iv_call *call, iv_status status, const char *format, ...) {
    char message[IV_ERROR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return iv_fail(call->error, status, "node %s (%s): %s", call->node->name, call->node->op->name,
                   message);
}

/* Creates output `index`, contiguous; or in the memory order given by `strides`. */
static iv_status create_output(iv_call *call, int index, iv_dtype dtype, int rank,
                               const int64_t *dims, const int64_t *strides, iv_tensor **tensor) {
    int64_t elements;
    iv_status status = iv_count_elements(dtype, rank, dims, &elements, call->error);
    if (status != IV_OK)
        return iv_fail_within(call->error, status, "node %s (%s): output %d: ", call->node->name,
                              call->node->op->name, index);
    size_t bytes = (size_t)elements * iv_dtype_size(dtype);
    iv_storage *storage;
    char *data, text[IV_DIMS_TEXT_BYTES];
    if (call->frame != NULL) {
        status = call->frame->allocate(call->frame, call, index, bytes, &storage, &data);
    } else {
        status = iv_storage_create(bytes, &storage, call->error);
        data = status == IV_OK ? storage->data : NULL;
    }
    if (status != IV_OK)
        return iv_fail_within(call->error, status, "node %s (%s): output %d, %s%s: ", call->node->name,
                              call->node->op->name, index, iv_dtype_name(dtype),
                              iv_dims_text(rank, dims, text));
    if (dtype == IV_STRING)
        memset(data, 0, bytes);
    iv_value_release(&call->outputs[index]);
    status = iv_tensor_over(storage, data, dtype, rank, dims, strides, tensor, call->error);
    iv_storage_release(storage);
    if (status == IV_OK)
        call->outputs[index] = iv_value_of_tensor(*tensor);
    return status;
}

static iv_status concrete_fact(const iv_call *call, int index, int64_t *dims) {
    if (iv_fact_is_concrete(&call->facts[index], dims))
        return IV_OK;
    char text[IV_FACT_TEXT_BYTES];
    return iv_call_fail(call, IV_ERROR_INTERNAL, "output %d was only inferred as %s", index,
                        iv_fact_text(&call->facts[index], text, sizeof text));
}

iv_status iv_call_output(iv_call *call, int index, iv_tensor **tensor) {
    int64_t dims[IV_MAX_RANK];
    IV_TRY(concrete_fact(call, index, dims));
    const iv_fact *fact = &call->facts[index];
    return create_output(call, index, fact->dtype, fact->rank, dims, NULL, tensor);
}

iv_status iv_call_output_ordered(iv_call *call, int index, const int *order, iv_tensor **tensor) {
    int64_t dims[IV_MAX_RANK], strides[IV_MAX_RANK], stride = 1;
    IV_TRY(concrete_fact(call, index, dims));
    const iv_fact *fact = &call->facts[index];
    for (int i = fact->rank - 1; i >= 0; i--) {
        strides[order[i]] = stride;
        stride *= dims[order[i]] != 0 ? dims[order[i]] : 1;
    }
    return create_output(call, index, fact->dtype, fact->rank, dims, strides, tensor);
}

iv_status iv_call_output_shape(iv_call *call, int index, iv_dtype dtype, int rank,
                               const int64_t *dims, iv_tensor **tensor) {
    return create_output(call, index, dtype, rank, dims, NULL, tensor);
}

iv_status iv_call_set_output(iv_call *call, int index, iv_tensor *tensor) {
    iv_value_release(&call->outputs[index]);
    call->outputs[index] = iv_value_of_tensor(tensor);
    return IV_OK;
}

iv_status iv_call_copy(iv_call *call, iv_tensor *to, const iv_tensor *from) {
    if (call->target != NULL)
        return call->frame->copy(call->frame, call, to, from);
    iv_tensor_copy_elements(to, from);
    return IV_OK;
}

/* A contiguous copy in scratch memory of the call's device. */
static iv_status contiguous_on_device(iv_call *call, const iv_tensor *input, iv_tensor **tensor) {
    void *memory;
    IV_TRY(iv_call_scratch(call, (size_t)iv_tensor_elements(input) * iv_dtype_size(input->dtype), &memory));
    IV_TRY(iv_tensor_over(input->storage, memory, input->dtype, input->rank, input->dims, NULL, tensor,
                          call->error));
    iv_status status = iv_call_copy(call, *tensor, input);
    if (status != IV_OK)
        iv_tensor_release(*tensor);
    return status;
}

iv_status iv_call_contiguous(iv_call *call, int index, iv_tensor **tensor) {
    iv_tensor *input = call->inputs[index].tensor;
    if (call->target != NULL && !iv_tensor_is_contiguous(input))
        return contiguous_on_device(call, input, tensor);
    return iv_tensor_contiguous(input, tensor, call->error);
}

iv_status iv_call_scratch(iv_call *call, size_t bytes, void **memory) {
    if (call->frame == NULL)
        return iv_call_fail(call, IV_ERROR_INTERNAL, "scratch memory needs a frame");
    return call->frame->scratch(call->frame, call, bytes, memory);
}

iv_status iv_call_run_graph(iv_call *call, const iv_graph *graph, int input_count,
                            const iv_value *inputs, iv_value *outputs) {
    if (call->frame == NULL)
        return iv_call_fail(call, IV_ERROR_INTERNAL, "a graph of its own needs a frame");
    return call->frame->run_graph(call->frame, call, graph, input_count, inputs, outputs);
}

iv_status iv_call_iterate(iv_call *call, int64_t iteration) {
    if (call->frame == NULL || call->frame->iterate == NULL)
        return IV_OK;
    return call->frame->iterate(call->frame, call, iteration);
}

/* ---- facts equal evaluation ---- */

/* Whether a computed value is one that the fact describes; open extents and ranks allow anything. */
static bool value_fits(const iv_fact *fact, iv_value value) {
    if (value.kind == IV_KIND_NONE)
        return fact->kind == IV_KIND_NONE || fact->optional;
    if (fact->kind != value.kind)
        return fact->kind == IV_KIND_NONE;
    if (value.kind == IV_KIND_SEQUENCE)
        return value.sequence->dtype == fact->dtype || fact->dtype == IV_DTYPE_NONE;
    if (value.tensor->dtype != fact->dtype)
        return false;
    if (fact->rank == IV_RANK_UNKNOWN)
        return true;
    if (value.tensor->rank != fact->rank)
        return false;
    for (int i = 0; i < fact->rank; i++) {
        int64_t extent;
        if (iv_dim_is_constant(fact->dims[i], &extent) && extent != value.tensor->dims[i])
            return false;
    }
    return true;
}

/* A view may show a small tensor so often that nobody finishes reading it: it counts as what it shows. */
static iv_status check_size(const iv_call *call, int index, const iv_tensor *tensor) {
    int64_t bytes = iv_tensor_elements(tensor) * (int64_t)iv_dtype_size(tensor->dtype);
    int64_t limit = iv_memory_budget_limit(NULL);
    if (bytes <= limit)
        return IV_OK;
    char text[IV_DIMS_TEXT_BYTES];
    return iv_call_fail(call, IV_ERROR_OUT_OF_MEMORY,
                        "output %d, %s%s, would have %lld bytes, more than the memory limit of %lld", index,
                        iv_dtype_name(tensor->dtype), iv_dims_text(tensor->rank, tensor->dims, text),
                        (long long)bytes, (long long)limit);
}

/* What the allocator reports does not say for whom it was. */
static iv_status name_node(const iv_call *call, iv_status status) {
    static const char anonymous[] = "out of memory:";
    if (status != IV_ERROR_OUT_OF_MEMORY || call->error == NULL ||
        strncmp(call->error->message, anonymous, sizeof anonymous - 1) != 0)
        return status;
    return iv_fail_within(call->error, status, "node %s (%s): ", call->node->name, call->node->op->name);
}

iv_status iv_call_run(iv_call *call, iv_status (*function)(iv_call *call)) {
    iv_status status = name_node(call, function(call));
    for (int i = 0; i < call->output_count && status == IV_OK; i++) {
        if (call->outputs[i].kind == IV_KIND_TENSOR)
            status = check_size(call, i, call->outputs[i].tensor);
    }
    for (int i = 0; i < call->output_count && status == IV_OK; i++) {
        if (!iv_call_wants(call, i) || value_fits(&call->facts[i], call->outputs[i]))
            continue;
        char fact[IV_FACT_TEXT_BYTES], dims[IV_DIMS_TEXT_BYTES] = "";
        iv_value value = call->outputs[i];
        if (value.kind == IV_KIND_TENSOR)
            iv_dims_text(value.tensor->rank, value.tensor->dims, dims);
        status = iv_call_fail(call, IV_ERROR_INTERNAL, "output %d was inferred as %s but came out as %s%s",
                              i, iv_fact_text(&call->facts[i], fact, sizeof fact),
                              value.kind == IV_KIND_TENSOR     ? iv_dtype_name(value.tensor->dtype)
                              : value.kind == IV_KIND_SEQUENCE ? "a sequence"
                                                               : "nothing",
                              dims);
    }
    if (status != IV_OK) {
        for (int i = 0; i < call->output_count; i++)
            iv_value_release(&call->outputs[i]);
    }
    return status;
}
