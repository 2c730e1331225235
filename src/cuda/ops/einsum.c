/* Einsum. */
#include <stdio.h>
#include <string.h>

#include "cuda/kernels/einsum_parameters.h"
#include "cuda/list.h"
#include "cuda/ops/elements.h"
#include "ops/einsum.h"

/* How many labels the loops have. */
static int count_labels(const iv_kernel_query *query) {
    const iv_einsum_params *params = query->node->params;
    bool seen[IV_EINSUM_LABELS] = {false};
    int count = 0, widest = 0;
    for (int t = 0; t < params->count; t++) {
        const iv_einsum_term *term = &params->terms[t];
        int wide = query->inputs[t]->rank - term->count + 1;
        for (int i = 0; i < term->count; i++) {
            if (term->labels[i] == IV_EINSUM_MARK) {
                widest = wide > widest ? wide : widest;
            } else if (!seen[term->labels[i]]) {
                seen[term->labels[i]] = true;
                count++;
            }
        }
    }
    return count + widest;
}

static bool supports_einsum(const iv_kernel_query *query, char *why) {
    const iv_einsum_params *params = query->node->params;
    int labels = count_labels(query);
    if (params->count <= IV_CUDA_EINSUM_OPERANDS && labels <= IV_CUDA_EINSUM_LABELS)
        return true;
    snprintf(why, IV_WHY_BYTES,
             "an Einsum of %d operands and %d labels; the GPU kernel takes at most %d and %d",
             params->count, labels, IV_CUDA_EINSUM_OPERANDS, IV_CUDA_EINSUM_LABELS);
    return false;
}

static void fill_parameters(iv_cuda_einsum *parameters, const iv_einsum_nest *loops,
                            const iv_tensor *output) {
    int labels = loops->outer + loops->inner;
    *parameters = (iv_cuda_einsum){.elements = iv_tensor_elements(output),
                                   .rows = 1,
                                   .operands = loops->operands,
                                   .outer = loops->outer,
                                   .inner = loops->inner,
                                   .dtype = output->dtype,
                                   .out = output->data};
    memcpy(parameters->dims, loops->dims, (size_t)labels * sizeof loops->dims[0]);
    for (int d = loops->outer; d < labels - 1; d++)
        parameters->rows *= loops->dims[d];
    for (int t = 0; t < loops->operands; t++) {
        parameters->data[t] = loops->tensors[t]->data;
        memcpy(parameters->steps[t], loops->steps[t], (size_t)labels * sizeof loops->steps[t][0]);
    }
}

static iv_status launch_einsum(iv_call *call) {
    const iv_einsum_params *params = call->node->params;
    const iv_tensor *tensors[IV_CUDA_EINSUM_OPERANDS];
    int64_t steps[IV_CUDA_EINSUM_OPERANDS][IV_EINSUM_LABELS] = {{0}};
    iv_einsum_nest loops = {.operands = params->count, .tensors = tensors, .steps = steps};
    iv_cuda_einsum parameters;
    iv_tensor *output;
    for (int t = 0; t < params->count; t++)
        tensors[t] = iv_call_input(call, t);
    IV_TRY(iv_einsum_plan(call, &loops));
    IV_TRY(iv_call_output(call, 0, &output));
    fill_parameters(&parameters, &loops, output);
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    iv_cuda_work_writes(&work, output);
    for (int t = 0; t < params->count; t++)
        iv_cuda_work_reads(&work, tensors[t]);
    bool moves = loops.operands == 1 && loops.inner == 0;
    const char *suffix = moves || !iv_dtype_is_float(output->dtype)
                             ? iv_cuda_size_suffix(output->dtype)
                         : output->dtype == IV_F64 ? "f64"
                                                   : "f32";
    return iv_cuda_launch_each(call, &work, "einsum", "iv_cuda_einsum", suffix,
                               parameters.elements);
}

const iv_kernel iv_cuda_kernels_einsum[] = {
    {.op = "Einsum", .name = "einsum", .supports = supports_einsum, .launch = launch_einsum},
    {0},
};
