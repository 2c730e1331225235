/* Bernoulli, Multinomial, RandomNormal(Like), RandomUniform(Like). */
#include "cuda/kernels/random_parameters.h"
#include "cuda/list.h"
#include "cuda/ops/elements.h"

/* `reads`: the elements of input 0 take part, not only its shape. */
static iv_status launch_random(iv_call *call, const char *kernel, bool reads) {
    iv_tensor *input = NULL, *output;
    IV_TRY(iv_call_output(call, 0, &output));
    if (reads)
        IV_TRY(iv_call_contiguous(call, 0, &input));
    iv_cuda_random parameters = {.elements = iv_tensor_elements(output),
                                 .params = *(const iv_random_params *)call->node->params,
                                 .dtype = output->dtype,
                                 .out = output->data};
    if (reads) {
        parameters.in_dtype = input->dtype;
        parameters.in = input->data;
        parameters.classes = input->rank > 0 ? input->dims[input->rank - 1] : 1;
    }
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    iv_cuda_work_writes(&work, output);
    iv_cuda_work_reads(&work, input);
    iv_status status =
        iv_cuda_launch_each(call, &work, "random", kernel, NULL, parameters.elements);
    iv_tensor_release(input);
    return status;
}

static iv_status launch_uniform(iv_call *call) {
    return launch_random(call, "iv_cuda_random_uniform", false);
}

static iv_status launch_normal(iv_call *call) {
    return launch_random(call, "iv_cuda_random_normal", false);
}

static iv_status launch_bernoulli(iv_call *call) {
    return launch_random(call, "iv_cuda_random_bernoulli", true);
}

static iv_status launch_multinomial(iv_call *call) {
    const iv_tensor *input = iv_call_input(call, 0);
    if (input->dims[1] == 0 && input->dims[0] != 0)
        return iv_call_fail(call, IV_ERROR_SHAPE, "there is no class to choose");
    return launch_random(call, "iv_cuda_random_class", true);
}

#define RANDOM(op_name, kernel_name, launch_function)                                              \
    {                                                                                              \
        .op = op_name, .name = kernel_name, .supports = iv_cuda_supports_all,                      \
        .launch = launch_function                                                                  \
    }

const iv_kernel iv_cuda_kernels_random[] = {
    RANDOM("Bernoulli", "bernoulli", launch_bernoulli),
    RANDOM("Multinomial", "multinomial", launch_multinomial),
    RANDOM("RandomNormal", "random_normal", launch_normal),
    RANDOM("RandomNormalLike", "random_normal", launch_normal),
    RANDOM("RandomUniform", "random_uniform", launch_uniform),
    RANDOM("RandomUniformLike", "random_uniform", launch_uniform),
    {0},
};
