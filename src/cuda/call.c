#include "cuda/call.h"

#include <stdio.h>
#include <string.h>

#include "cuda/compute.h"
#include "tensor/walk.h"

void iv_cuda_work_touches(iv_cuda_work *work, const void *address, size_t bytes, bool written) {
    /* One more than there is room for is counted, and refused by the launch. */
    if (work->range_count < IV_CUDA_WORK_RANGES)
        work->ranges[work->range_count] =
            (iv_cuda_range){(CUdeviceptr)(uintptr_t)address, bytes, written};
    work->range_count++;
}

static void touch_tensor(iv_cuda_work *work, const iv_tensor *tensor, bool written) {
    if (tensor == NULL)
        return;
    iv_cuda_range range = iv_cuda_tensor_range(tensor, written);
    iv_cuda_work_touches(work, (const void *)(uintptr_t)range.address, range.bytes, written);
}

void iv_cuda_work_reads(iv_cuda_work *work, const iv_tensor *tensor) {
    touch_tensor(work, tensor, false);
}

void iv_cuda_work_writes(iv_cuda_work *work, const iv_tensor *tensor) {
    touch_tensor(work, tensor, true);
}

uint32_t *iv_cuda_work_fault(iv_cuda_work *work, const iv_call *call) {
    uint32_t *word = (uint32_t *)(uintptr_t)call->target->fault;
    iv_cuda_work_touches(work, word, sizeof *word, true);
    return word;
}

iv_status iv_cuda_call_launch(iv_call *call, const iv_cuda_work *work) {
    const iv_cuda_queue *queue = call->target->queue;
    const iv_cuda_kernel *kernel;
    if (work->blocks == 0)
        return IV_OK;
    if (work->range_count > IV_CUDA_WORK_RANGES)
        return iv_call_fail(call, IV_ERROR_INTERNAL, "kernel %s names %d ranges of memory where %d fit",
                            work->kernel, work->range_count, IV_CUDA_WORK_RANGES);
    iv_status status = iv_cuda_kernel_find(queue->stream->device, work->module, work->kernel,
                                           work->parameter_bytes, &kernel, call->error);
    if (status == IV_OK) {
        iv_cuda_task task = {
            .kind = IV_CUDA_KERNEL,
            .step = call->target->step,
            .kernel = {.kernel = kernel,
                       .grid = {work->blocks, 1, 1},
                       .block = {work->threads, 1, 1},
                       .shared_bytes = work->shared_bytes,
                       .parameters = work->parameters,
                       .range_count = work->range_count,
                       .ranges = work->ranges},
        };
        status = iv_cuda_launch(queue, &task, call->error);
    }
    if (status == IV_OK)
        return IV_OK;
    return iv_fail_within(call->error, status, "node %s (%s): ", call->node->name, call->node->op->name);
}

unsigned iv_cuda_call_blocks(const iv_call *call, int64_t wanted) {
    return iv_cuda_queue_blocks(call->target->queue, wanted);
}

void iv_cuda_box_fill(iv_cuda_box *box, const iv_tensor *out, int inputs,
                      const iv_tensor *const *tensors) {
    const iv_tensor *operands[IV_CUDA_OPERANDS] = {out};
    memcpy(operands + 1, tensors, (size_t)inputs * sizeof *tensors);
    iv_walk walk;
    iv_walk_start(&walk, out->rank, out->dims, 1 + inputs, operands);
    iv_cuda_box_of_walk(box, &walk, operands);
}

const char *iv_cuda_fault_text(uint32_t kind) {
    switch (kind) {
    case IV_CUDA_FAULT_DIVISION:
        return "integer division by zero";
    case IV_CUDA_FAULT_INDEX:
        return "an index lies outside its dimension";
    default:
        return "the kernel reports a fault that has no name";
    }
}

iv_status iv_cuda_fault_status(uint32_t kind) {
    return kind == IV_CUDA_FAULT_INDEX ? IV_ERROR_SHAPE : IV_ERROR_INVALID_ARGUMENT;
}

bool iv_cuda_takes(const iv_kernel_query *query, const iv_fact *fact, uint32_t dtypes, char *why) {
    if ((dtypes >> fact->dtype & 1) != 0)
        return true;
    snprintf(why, IV_WHY_BYTES, "%s of %s has no GPU kernel", query->node->op->name,
             iv_dtype_name(fact->dtype));
    return false;
}
