/* Dropout: its input again, or what training leaves of it. */
#include "ops/dropout.h"

#include "cuda/common/compute.h"
#include "cuda/common/elements.h"
#include "cuda/common/typed.h"
#include "cuda/list.h"
#include "ops/convert_loops.h"
#include "tensor/walk.h"

/* The bits of a mask's 1. */
static uint64_t kept_bits(sb_dtype dtype) {
    uint8_t truth = 1;
    uint64_t bits = 0;
    sb_convert_row(dtype, &bits, SB_BOOL, &truth, 1, 1);
    return bits;
}

static sb_status launch_training(sb_call *call, double ratio, sb_tensor *mask) {
    const sb_tensor *input = sb_call_input(call, 0);
    sb_tensor *out = NULL;
    if (sb_call_wants(call, 0))
        SB_TRY(sb_call_output(call, 0, &out));
    if (out == NULL && mask == NULL)
        return SB_OK;
    /* What is not wanted is described as the input, and left alone. */
    const sb_tensor *operands[3] = {out != NULL ? out : input, input, mask != NULL ? mask : input};
    sb_cuda_drop parameters = {.ratio = ratio,
                               .seed = (uint64_t)((const sb_dropout_params *)call->node->params)->seed,
                               .kept = kept_bits(operands[2]->dtype),
                               .type = sb_cuda_typed_of(input->dtype),
                               .mask = sb_cuda_typed_of(operands[2]->dtype),
                               .wants_output = out != NULL,
                               .wants_mask = mask != NULL};
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_walk walk;
    sb_walk_start_ordered(&walk, input->rank, input->dims, 3, operands);
    sb_cuda_box_of_walk(&parameters.box, &walk, operands);
    sb_cuda_work_writes(&work, out);
    sb_cuda_work_writes(&work, mask);
    sb_cuda_work_reads(&work, input);
    return sb_cuda_launch_groups(call, &work, "dropout", "sb_cuda_dropout", NULL, parameters.box.elements);
}

static sb_status launch_dropout(sb_call *call) {
    sb_tensor *mask = NULL;
    double ratio;
    SB_TRY(sb_dropout_ratio(call, &ratio));
    if (sb_call_wants(call, 1))
        SB_TRY(sb_call_output(call, 1, &mask));
    if (ratio != 0)
        return launch_training(call, ratio, mask);
    if (mask != NULL)
        SB_TRY(sb_cuda_call_fill(call, mask, kept_bits(mask->dtype)));
    if (!sb_call_wants(call, 0))
        return SB_OK;
    return sb_call_set_output(call, 0, sb_tensor_retain(sb_call_input(call, 0)));
}

const sb_kernel sb_cuda_kernels_dropout[] = {
    {.op = "Dropout",
     .name = "dropout",
     .supports = sb_cuda_supports_all,
     .host_inputs = 6, /* ratio and mode */
     .launch = launch_dropout},
    {0},
};
