/* What the operators' `eval` functions and the backends' kernels share. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "graph/op.h"

sb_tensor *sb_call_input(const sb_call *call, int index) {
    if (index >= call->input_count - call->node->capture_count || call->inputs[index].kind != SB_KIND_TENSOR)
        return NULL;
    return call->inputs[index].tensor;
}

bool sb_call_wants(const sb_call *call, int index) {
    return index < call->output_count && call->node->outputs[index] != SB_NO_VALUE;
}

sb_status sb_call_fail(const sb_call *call, sb_status status, const char *format, ...) {
    char message[SB_ERROR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return sb_fail(call->error, status, "node %s (%s): %s", call->node->name, call->node->op->name, message);
}

/* Takes the output that whoever calls has placed, if there is one. */
static sb_status take_placed(const sb_call *call, int index, sb_dtype dtype, int rank, const int64_t *dims,
                             sb_tensor **tensor) {
    char have[SB_DIMS_TEXT_BYTES], want[SB_DIMS_TEXT_BYTES];
    sb_tensor *placed = call->outputs[index].kind == SB_KIND_TENSOR ? call->outputs[index].tensor : NULL;
    *tensor = placed;
    if (placed == NULL || (placed->dtype == dtype && placed->rank == rank &&
                           memcmp(placed->dims, dims, (size_t)rank * sizeof *dims) == 0))
        return SB_OK;
    return sb_call_fail(call, SB_ERROR_INTERNAL, "output %d was placed as %s%s but is %s%s", index,
                        sb_dtype_name(placed->dtype), sb_dims_text(placed->rank, placed->dims, have),
                        sb_dtype_name(dtype), sb_dims_text(rank, dims, want));
}

/* Creates output `index`, contiguous; or in the memory order given by `strides`. */
static sb_status create_output(sb_call *call, int index, sb_dtype dtype, int rank, const int64_t *dims,
                               const int64_t *strides, sb_tensor **tensor) {
    int64_t elements;
    sb_status status = sb_count_elements(dtype, rank, dims, &elements, call->error);
    if (status != SB_OK)
        return sb_fail_within(call->error, status, "node %s (%s): output %d: ", call->node->name, call->node->op->name,
                              index);
    size_t bytes = (size_t)elements * sb_dtype_size(dtype);
    sb_storage *storage;
    char *data, text[SB_DIMS_TEXT_BYTES];
    if (call->frame != NULL) {
        status = call->frame->allocate(call->frame, call, index, bytes, &storage, &data);
    } else {
        status = sb_storage_create(bytes, &storage, call->error);
        data = status == SB_OK ? storage->data : NULL;
    }
    if (status != SB_OK)
        return sb_fail_within(call->error, status, "node %s (%s): output %d, %s%s: ", call->node->name,
                              call->node->op->name, index, sb_dtype_name(dtype), sb_dims_text(rank, dims, text));
    if (dtype == SB_STRING)
        memset(data, 0, bytes);
    sb_value_release(&call->outputs[index]);
    status = sb_tensor_over(storage, data, dtype, rank, dims, strides, tensor, call->error);
    sb_storage_release(storage);
    if (status == SB_OK)
        call->outputs[index] = sb_value_of_tensor(*tensor);
    return status;
}

static sb_status concrete_fact(const sb_call *call, int index, int64_t *dims) {
    if (sb_fact_is_concrete(&call->facts[index], dims))
        return SB_OK;
    char text[SB_FACT_TEXT_BYTES];
    return sb_call_fail(call, SB_ERROR_INTERNAL, "output %d was only inferred as %s", index,
                        sb_fact_text(&call->facts[index], text, sizeof text));
}

sb_status sb_call_output(sb_call *call, int index, sb_tensor **tensor) {
    int64_t dims[SB_MAX_RANK];
    SB_TRY(concrete_fact(call, index, dims));
    const sb_fact *fact = &call->facts[index];
    return sb_call_output_shape(call, index, fact->dtype, fact->rank, dims, tensor);
}

sb_status sb_call_output_ordered(sb_call *call, int index, const int *order, sb_tensor **tensor) {
    int64_t dims[SB_MAX_RANK], strides[SB_MAX_RANK], stride = 1;
    SB_TRY(concrete_fact(call, index, dims));
    const sb_fact *fact = &call->facts[index];
    for (int i = fact->rank - 1; i >= 0; i--) {
        strides[order[i]] = stride;
        stride *= dims[order[i]] != 0 ? dims[order[i]] : 1;
    }
    return create_output(call, index, fact->dtype, fact->rank, dims, strides, tensor);
}

sb_status sb_call_output_shape(sb_call *call, int index, sb_dtype dtype, int rank, const int64_t *dims,
                               sb_tensor **tensor) {
    SB_TRY(take_placed(call, index, dtype, rank, dims, tensor));
    return *tensor != NULL ? SB_OK : create_output(call, index, dtype, rank, dims, NULL, tensor);
}

sb_status sb_call_set_output(sb_call *call, int index, sb_tensor *tensor) {
    sb_value_release(&call->outputs[index]);
    call->outputs[index] = sb_value_of_tensor(tensor);
    return SB_OK;
}

sb_status sb_call_copy(sb_call *call, sb_tensor *to, const sb_tensor *from) {
    if (call->target != NULL)
        return call->frame->copy(call->frame, call, to, from);
    sb_tensor_copy_elements(to, from);
    return SB_OK;
}

/* A contiguous copy in workspace of the call's device. */
static sb_status contiguous_on_device(sb_call *call, const sb_tensor *input, sb_tensor **tensor) {
    void *memory;
    SB_TRY(sb_call_workspace(call, (size_t)sb_tensor_elements(input) * sb_dtype_size(input->dtype), &memory));
    SB_TRY(sb_tensor_over(input->storage, memory, input->dtype, input->rank, input->dims, NULL, tensor, call->error));
    sb_status status = sb_call_copy(call, *tensor, input);
    if (status != SB_OK)
        sb_tensor_release(*tensor);
    return status;
}

sb_status sb_call_contiguous(sb_call *call, int index, sb_tensor **tensor) {
    sb_tensor *input = call->inputs[index].tensor;
    if (call->target != NULL && !sb_tensor_is_contiguous(input))
        return contiguous_on_device(call, input, tensor);
    return sb_tensor_contiguous(input, tensor, call->error);
}

sb_status sb_call_workspace(sb_call *call, size_t bytes, void **memory) {
    if (call->frame == NULL)
        return sb_call_fail(call, SB_ERROR_INTERNAL, "a workspace needs a frame");
    return call->frame->workspace(call->frame, call, bytes, memory);
}

sb_status sb_call_read(sb_call *call, void *to, const void *workspace, size_t bytes) {
    if (call->frame == NULL || call->frame->read == NULL || call->target == NULL)
        return sb_call_fail(call, SB_ERROR_INTERNAL, "there is no device to read from");
    return call->frame->read(call->frame, call, to, workspace, bytes);
}

sb_status sb_call_run_graph(sb_call *call, const sb_graph *graph, int input_count, const sb_value *inputs,
                            sb_value *outputs) {
    if (call->frame == NULL)
        return sb_call_fail(call, SB_ERROR_INTERNAL, "a graph of its own needs a frame");
    return call->frame->run_graph(call->frame, call, graph, input_count, inputs, outputs);
}

const int64_t *sb_call_used(const sb_call *call, int input, int axis) {
    if (call->frame == NULL || call->frame->used == NULL || call->target == NULL)
        return NULL;
    return call->frame->used(call->frame, call, input, axis);
}

const int64_t *sb_call_known(const sb_call *call, int input) {
    if (call->frame == NULL || call->frame->known == NULL || call->target == NULL)
        return NULL;
    return call->frame->known(call->frame, call, input);
}

sb_status sb_call_iterate(sb_call *call, int64_t iteration) {
    if (call->frame == NULL || call->frame->iterate == NULL)
        return SB_OK;
    return call->frame->iterate(call->frame, call, iteration);
}

/* ---- facts equal evaluation ---- */

/* Whether a computed value is one that the fact describes; open extents and ranks allow anything. */
static bool value_fits(const sb_fact *fact, sb_value value) {
    if (value.kind == SB_KIND_NONE)
        return fact->kind == SB_KIND_NONE || fact->optional;
    if (fact->kind != value.kind)
        return fact->kind == SB_KIND_NONE;
    if (value.kind == SB_KIND_SEQUENCE)
        return value.sequence->dtype == fact->dtype || fact->dtype == SB_DTYPE_NONE;
    if (value.tensor->dtype != fact->dtype)
        return false;
    if (fact->rank == SB_RANK_UNKNOWN)
        return true;
    if (value.tensor->rank != fact->rank)
        return false;
    for (int i = 0; i < fact->rank; i++) {
        int64_t extent;
        if (sb_dim_is_constant(fact->dims[i], &extent) && extent != value.tensor->dims[i])
            return false;
    }
    return true;
}

/* A view may show a small tensor so often that nobody finishes reading it: it counts as what it shows. */
static sb_status check_size(const sb_call *call, int index, const sb_tensor *tensor) {
    int64_t bytes = sb_tensor_elements(tensor) * (int64_t)sb_dtype_size(tensor->dtype);
    int64_t limit = sb_memory_budget_limit(NULL);
    if (bytes <= limit)
        return SB_OK;
    char text[SB_DIMS_TEXT_BYTES];
    return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY,
                        "output %d, %s%s, would have %lld bytes, more than the memory limit of %lld", index,
                        sb_dtype_name(tensor->dtype), sb_dims_text(tensor->rank, tensor->dims, text), (long long)bytes,
                        (long long)limit);
}

/* What the allocator reports does not say for whom it was. */
static sb_status name_node(const sb_call *call, sb_status status) {
    static const char anonymous[] = "out of memory:";
    if (status != SB_ERROR_OUT_OF_MEMORY || call->error == NULL ||
        strncmp(call->error->message, anonymous, sizeof anonymous - 1) != 0)
        return status;
    return sb_fail_within(call->error, status, "node %s (%s): ", call->node->name, call->node->op->name);
}

sb_status sb_call_run(sb_call *call, sb_status (*function)(sb_call *call)) {
    sb_status status = name_node(call, function(call));
    for (int i = 0; i < call->output_count && status == SB_OK; i++) {
        if (call->outputs[i].kind == SB_KIND_TENSOR)
            status = check_size(call, i, call->outputs[i].tensor);
    }
    for (int i = 0; i < call->output_count && status == SB_OK; i++) {
        if (!sb_call_wants(call, i) || value_fits(&call->facts[i], call->outputs[i]))
            continue;
        char fact[SB_FACT_TEXT_BYTES], dims[SB_DIMS_TEXT_BYTES] = "";
        sb_value value = call->outputs[i];
        if (value.kind == SB_KIND_TENSOR)
            sb_dims_text(value.tensor->rank, value.tensor->dims, dims);
        status = sb_call_fail(call, SB_ERROR_INTERNAL, "output %d was inferred as %s but came out as %s%s", i,
                              sb_fact_text(&call->facts[i], fact, sizeof fact),
                              value.kind == SB_KIND_TENSOR     ? sb_dtype_name(value.tensor->dtype)
                              : value.kind == SB_KIND_SEQUENCE ? "a sequence"
                                                               : "nothing",
                              dims);
    }
    if (status != SB_OK) {
        for (int i = 0; i < call->output_count; i++)
            sb_value_release(&call->outputs[i]);
    }
    return status;
}
