/* Batch normalisation that is not element-wise: in training, and in f64. */
#include <string.h>

#include "cuda/common/compute.h"
#include "cuda/common/elements.h"
#include "cuda/common/typed.h"
#include "cuda/elementwise/batch_parameters.h"
#include "cuda/list.h"
#include "ops/batch_normalization.h"
#include "tensor/walk.h"

/* Channel 0 of a tensor: everything but dimension 1. */
static void first_channel(const sb_tensor *tensor, sb_tensor *part) {
    memcpy(part, tensor, sizeof *part);
    if (tensor->rank < 2)
        return;
    part->rank = tensor->rank - 1;
    for (int d = 1; d < part->rank; d++) {
        part->dims[d] = tensor->dims[d + 1];
        part->strides[d] = tensor->strides[d + 1];
    }
}

static int64_t channel_step(const sb_tensor *tensor) {
    return tensor->rank > 1 ? tensor->strides[1] * (int64_t)sb_dtype_size(tensor->dtype) : 0;
}

static void describe_list(const sb_tensor *list, sb_cuda_channel_list *described) {
    described->data = list->data;
    described->step = list->strides[0] * (int64_t)sb_dtype_size(list->dtype);
    described->type = sb_cuda_typed_of(list->dtype);
}

static sb_status describe_given(const sb_call *call, sb_cuda_batch *batch, sb_cuda_work *work) {
    for (int i = 0; i < 4; i++) {
        const sb_tensor *list = sb_call_input(call, i + 1);
        if (list->rank != 1 || list->dims[0] != batch->channels)
            return sb_call_fail(call, SB_ERROR_SHAPE, "input %d must be a list of %lld values", i + 1,
                                (long long)batch->channels);
        describe_list(list, &batch->given[i]);
        sb_cuda_work_reads(work, list);
    }
    return SB_OK;
}

static sb_status make_results(sb_call *call, sb_cuda_batch *batch, sb_cuda_work *work) {
    for (int i = 0; i < 4 && batch->trains; i++) {
        sb_tensor *list;
        if (!sb_call_wants(call, i + 1))
            continue;
        SB_TRY(sb_call_output(call, i + 1, &list));
        describe_list(list, &batch->results[i]);
        sb_cuda_work_writes(work, list);
    }
    return SB_OK;
}

static sb_status launch_batch(sb_call *call) {
    const sb_batch_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0), *operands[2];
    sb_tensor *out = NULL, parts[2];
    sb_cuda_batch batch = {.channels = input->rank > 1 ? input->dims[1] : 1,
                           .in_step = channel_step(input),
                           .type = sb_cuda_typed_of(input->dtype),
                           .epsilon = params->epsilon,
                           .momentum = params->momentum,
                           .trains = params->training};
    sb_cuda_work work = {.module = "batch",
                         .kernel = input->dtype == SB_F64 ? "sb_cuda_batch_f64" : "sb_cuda_batch_f32",
                         .parameters = &batch,
                         .parameter_bytes = sizeof batch,
                         .threads = SB_CUDA_BATCH_THREADS};
    SB_TRY(describe_given(call, &batch, &work));
    SB_TRY(make_results(call, &batch, &work));
    if (sb_call_wants(call, 0)) {
        SB_TRY(sb_call_output(call, 0, &out));
        batch.wants_output = 1;
        batch.out_step = channel_step(out);
    }
    /* Where y is not wanted x stands for it, and is left alone. */
    first_channel(out != NULL ? out : input, &parts[0]);
    first_channel(input, &parts[1]);
    operands[0] = &parts[0];
    operands[1] = &parts[1];
    sb_walk walk;
    sb_walk_start_ordered(&walk, parts[0].rank, parts[0].dims, 2, operands);
    sb_cuda_box_of_walk(&batch.box, &walk, operands);
    sb_cuda_work_writes(&work, out);
    sb_cuda_work_reads(&work, input);
    work.blocks = sb_cuda_call_blocks(call, batch.channels);
    return sb_cuda_call_launch(call, &work);
}

const sb_kernel sb_cuda_kernels_batch[] = {
    {.op = "BatchNormalization",
     .name = "batch-normalization",
     .supports = sb_cuda_supports_all,
     .launch = launch_batch},
    {0},
};
