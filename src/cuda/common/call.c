#include "cuda/common/call.h"

#include <stdio.h>
#include <string.h>

#include "cuda/common/compute.h"
#include "tensor/walk.h"

void sb_cuda_work_touches(sb_cuda_work *work, const void *address, size_t bytes, bool written) {
    /* One more than there is room for is counted, and refused by the launch. */
    if (work->range_count < SB_CUDA_WORK_RANGES)
        work->ranges[work->range_count] = (sb_cuda_range){(CUdeviceptr)(uintptr_t)address, bytes, written};
    work->range_count++;
}

static void touch_tensor(sb_cuda_work *work, const sb_tensor *tensor, bool written) {
    if (tensor == NULL)
        return;
    sb_cuda_range range = sb_cuda_tensor_range(tensor, written);
    sb_cuda_work_touches(work, (const void *)(uintptr_t)range.address, range.bytes, written);
}

void sb_cuda_work_reads(sb_cuda_work *work, const sb_tensor *tensor) {
    touch_tensor(work, tensor, false);
}

void sb_cuda_work_writes(sb_cuda_work *work, const sb_tensor *tensor) {
    touch_tensor(work, tensor, true);
}

const int64_t *sb_cuda_work_used(sb_cuda_work *work, const sb_call *call, int input, int axis) {
    const int64_t *used = sb_call_used(call, input, axis);
    if (used != NULL)
        sb_cuda_work_touches(work, used, sizeof *used, false);
    return used;
}

const int64_t *sb_cuda_work_known(sb_cuda_work *work, const sb_call *call, int input) {
    const int64_t *known = sb_call_known(call, input);
    if (known != NULL)
        sb_cuda_work_touches(work, known, (size_t)sb_tensor_elements(sb_call_input(call, input)) * sizeof *known,
                             false);
    return known;
}

uint32_t *sb_cuda_work_fault(sb_cuda_work *work, const sb_call *call) {
    uint32_t *word = sb_call_fault(call);
    sb_cuda_work_touches(work, word, sizeof *word, true);
    return word;
}

sb_status sb_cuda_call_launch(sb_call *call, const sb_cuda_work *work) {
    const sb_cuda_queue *queue = sb_cuda_call_queue(call);
    const sb_cuda_kernel *kernel;
    if (work->blocks == 0)
        return SB_OK;
    if (work->range_count > SB_CUDA_WORK_RANGES)
        return sb_call_fail(call, SB_ERROR_INTERNAL, "kernel %s names %d ranges of memory where %d fit", work->kernel,
                            work->range_count, SB_CUDA_WORK_RANGES);
    sb_status status = sb_cuda_kernel_find(queue->stream->device, work->module, work->kernel, work->parameter_bytes,
                                           &kernel, call->error);
    if (status == SB_OK) {
        sb_cuda_task task = {
            .kind = SB_CUDA_KERNEL,
            .step = call->target->step,
            .kernel = {.kernel = kernel,
                       .grid = {work->blocks, 1, 1},
                       .block = {work->threads, 1, 1},
                       .shared_bytes = work->shared_bytes,
                       .apart = work->apart,
                       .join = work->join,
                       .parameters = work->parameters,
                       .range_count = work->range_count,
                       .ranges = work->ranges},
        };
        status = sb_cuda_launch(queue, &task, call->error);
    }
    if (status == SB_OK)
        return SB_OK;
    return sb_fail_within(call->error, status, "node %s (%s): ", call->node->name, call->node->op->name);
}

unsigned sb_cuda_call_blocks(const sb_call *call, int64_t wanted) {
    return sb_cuda_queue_blocks(sb_cuda_call_queue(call), wanted);
}

void sb_cuda_box_fill(sb_cuda_box *box, const sb_tensor *out, int inputs, const sb_tensor *const *tensors) {
    const sb_tensor *operands[SB_CUDA_OPERANDS] = {out};
    memcpy(operands + 1, tensors, (size_t)inputs * sizeof *tensors);
    sb_walk walk;
    sb_walk_start(&walk, out->rank, out->dims, 1 + inputs, operands);
    sb_cuda_box_of_walk(box, &walk, operands);
}

bool sb_cuda_takes(const sb_kernel_query *query, const sb_fact *fact, uint32_t dtypes, char *why) {
    if ((dtypes >> fact->dtype & 1) != 0)
        return true;
    snprintf(why, SB_WHY_BYTES, "%s of %s has no GPU kernel", query->node->op->name, sb_dtype_name(fact->dtype));
    return false;
}

/* ---- channels last ---- */

void sb_cuda_channels_last_order(int rank, int *order) {
    order[0] = 0;
    for (int d = 1; d < rank - 1; d++)
        order[d] = d + 1;
    order[rank - 1] = 1;
}

bool sb_cuda_has_channels_last(const sb_tensor *tensor) {
    int order[SB_MAX_RANK];
    int64_t step = 1;
    if (tensor->rank < 3 || sb_tensor_is_contiguous(tensor))
        return false;
    sb_cuda_channels_last_order(tensor->rank, order);
    for (int i = tensor->rank - 1; i >= 0; i--) {
        if (tensor->dims[order[i]] != 1 && tensor->strides[order[i]] != step)
            return false;
        step *= tensor->dims[order[i]];
    }
    return true;
}

sb_status sb_cuda_output_channels_last(sb_call *call, int index, sb_tensor **tensor) {
    int order[SB_MAX_RANK];
    if (call->outputs[index].kind == SB_KIND_TENSOR)
        return sb_call_output(call, index, tensor);
    sb_cuda_channels_last_order(call->facts[index].rank, order);
    return sb_call_output_ordered(call, index, order, tensor);
}

static bool has_shape(const sb_tensor *tensor, const sb_fact *fact) {
    int64_t dims[SB_MAX_RANK];
    return tensor->rank == fact->rank && sb_fact_is_concrete(fact, dims) &&
           memcmp(tensor->dims, dims, (size_t)tensor->rank * sizeof dims[0]) == 0;
}

sb_status sb_cuda_output_like(sb_call *call, int index, int count, const sb_tensor *const *inputs, sb_tensor **tensor) {
    const sb_fact *fact = &call->facts[index];
    bool is_short = fact->dtype == SB_F16 || fact->dtype == SB_BF16;
    for (int i = 0; i < count && is_short; i++) {
        if (inputs[i] == NULL || !has_shape(inputs[i], fact))
            continue;
        if (sb_cuda_has_channels_last(inputs[i]))
            return sb_cuda_output_channels_last(call, index, tensor);
        break;
    }
    return sb_call_output(call, index, tensor);
}
