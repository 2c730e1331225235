/* Dropout: its input again, or what training leaves of it. */
#include "ops/dropout.h"

#include "cuda/compute.h"
#include "cuda/list.h"
#include "cuda/ops/elements.h"
#include "cuda/ops/typed.h"
#include "ops/convert_loops.h"
#include "tensor/walk.h"

/* The bits of a mask's 1. */
static uint64_t kept_bits(iv_dtype dtype) {
    uint8_t truth = 1;
    uint64_t bits = 0;
    iv_convert_row(dtype, &bits, IV_BOOL, &truth, 1, 1);
    return bits;
}

static iv_status launch_training(iv_call *call, double ratio, iv_tensor *mask) {
    const iv_tensor *input = iv_call_input(call, 0);
    iv_tensor *out = NULL;
    if (iv_call_wants(call, 0))
        IV_TRY(iv_call_output(call, 0, &out));
    if (out == NULL && mask == NULL)
        return IV_OK;
    /* What is not wanted is described as the input, and left alone. */
    const iv_tensor *operands[3] = {out != NULL ? out : input, input, mask != NULL ? mask : input};
    iv_cuda_drop parameters = {
        .ratio = ratio,
        .seed = (uint64_t)((const iv_dropout_params *)call->node->params)->seed,
        .kept = kept_bits(operands[2]->dtype),
        .type = iv_cuda_typed_of(input->dtype),
        .mask = iv_cuda_typed_of(operands[2]->dtype),
        .wants_output = out != NULL,
        .wants_mask = mask != NULL};
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    iv_walk walk;
    iv_walk_start_ordered(&walk, input->rank, input->dims, 3, operands);
    iv_cuda_box_of_walk(&parameters.box, &walk, operands);
    iv_cuda_work_writes(&work, out);
    iv_cuda_work_writes(&work, mask);
    iv_cuda_work_reads(&work, input);
    return iv_cuda_launch_groups(call, &work, "dropout", "iv_cuda_dropout", NULL,
                                 parameters.box.elements);
}

static iv_status launch_dropout(iv_call *call) {
    iv_tensor *mask = NULL;
    double ratio;
    IV_TRY(iv_dropout_ratio(call, &ratio));
    if (iv_call_wants(call, 1))
        IV_TRY(iv_call_output(call, 1, &mask));
    if (ratio != 0)
        return launch_training(call, ratio, mask);
    if (mask != NULL)
        IV_TRY(iv_cuda_call_fill(call, mask, kept_bits(mask->dtype)));
    if (!iv_call_wants(call, 0))
        return IV_OK;
    return iv_call_set_output(call, 0, iv_tensor_retain(iv_call_input(call, 0)));
}

const iv_kernel iv_cuda_kernels_dropout[] = {
    {.op = "Dropout",
     .name = "dropout",
     .supports = iv_cuda_supports_all,
     .host_inputs = 6, /* ratio and mode */
     .launch = launch_dropout},
    {0},
};
