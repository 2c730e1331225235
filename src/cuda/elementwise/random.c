/* Bernoulli, Multinomial, RandomNormal(Like), RandomUniform(Like). */
#include "cuda/common/elements.h"
#include "cuda/elementwise/random_parameters.h"
#include "cuda/list.h"

/* `reads`: the elements of input 0 take part, not only its shape. */
static sb_status launch_random(sb_call *call, const char *kernel, bool reads) {
    sb_tensor *input = NULL, *output;
    SB_TRY(sb_call_output(call, 0, &output));
    if (reads)
        SB_TRY(sb_call_contiguous(call, 0, &input));
    sb_cuda_random parameters = {.elements = sb_tensor_elements(output),
                                 .params = *(const sb_random_params *)call->node->params,
                                 .dtype = output->dtype,
                                 .out = output->data};
    if (reads) {
        parameters.in_dtype = input->dtype;
        parameters.in = input->data;
        parameters.classes = input->rank > 0 ? input->dims[input->rank - 1] : 1;
    }
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_cuda_work_writes(&work, output);
    sb_cuda_work_reads(&work, input);
    sb_status status = sb_cuda_launch_each(call, &work, "random", kernel, NULL, parameters.elements);
    sb_tensor_release(input);
    return status;
}

static sb_status launch_uniform(sb_call *call) {
    return launch_random(call, "sb_cuda_random_uniform", false);
}

static sb_status launch_normal(sb_call *call) {
    return launch_random(call, "sb_cuda_random_normal", false);
}

static sb_status launch_bernoulli(sb_call *call) {
    return launch_random(call, "sb_cuda_random_bernoulli", true);
}

static sb_status launch_multinomial(sb_call *call) {
    const sb_tensor *input = sb_call_input(call, 0);
    if (input->dims[1] == 0 && input->dims[0] != 0)
        return sb_call_fail(call, SB_ERROR_SHAPE, "there is no class to choose");
    return launch_random(call, "sb_cuda_random_class", true);
}

#define RANDOM(op_name, kernel_name, launch_function)                                                                  \
    { .op = op_name, .name = kernel_name, .supports = sb_cuda_supports_all, .launch = launch_function }

const sb_kernel sb_cuda_kernels_random[] = {
    RANDOM("Bernoulli", "bernoulli", launch_bernoulli),
    RANDOM("Multinomial", "multinomial", launch_multinomial),
    RANDOM("RandomNormal", "random_normal", launch_normal),
    RANDOM("RandomNormalLike", "random_normal", launch_normal),
    RANDOM("RandomUniform", "random_uniform", launch_uniform),
    RANDOM("RandomUniformLike", "random_uniform", launch_uniform),
    {0},
};
