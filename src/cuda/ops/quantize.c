/* QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear. */
#include "ops/quantize.h"

#include <string.h>

#include "cuda/list.h"
#include "cuda/ops/elements.h"
#include "cuda/ops/typed.h"

#define RANGE_THREADS 256 /* of kernels/quantize.cu */
/* More blocks would only leave more for the last one to fold. */
#define RANGE_BLOCKS 512

/* Gives one part to a kernel. The zero point may be missing. */
static iv_status launch_part(iv_call *call, const char *kernel, const iv_quantize_types *types,
                             const iv_tensor *const operands[4]) {
    const iv_tensor *inputs[3] = {operands[1], operands[2],
                                  operands[3] != NULL ? operands[3] : operands[2]};
    iv_cuda_quantization parameters = {.output = iv_cuda_typed_of(operands[0]->dtype),
                                       .input = iv_cuda_typed_of(operands[1]->dtype),
                                       .scale = iv_cuda_typed_of(operands[2]->dtype),
                                       .zero = iv_cuda_typed_of(inputs[2]->dtype),
                                       .has_zero = operands[3] != NULL,
                                       .least = types->least,
                                       .most = types->most};
    iv_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    iv_cuda_box_fill(&parameters.box, operands[0], 3, inputs);
    iv_cuda_work_writes(&work, operands[0]);
    for (int i = 0; i < 3; i++)
        iv_cuda_work_reads(&work, inputs[i]);
    return iv_cuda_launch_groups(call, &work, "quantize", kernel, NULL, parameters.box.elements);
}

static iv_status quantize_part(iv_call *call, const iv_quantize_types *types,
                               const iv_tensor *const operands[4]) {
    return launch_part(call, "iv_cuda_quantize", types, operands);
}

static iv_status dequantize_part(iv_call *call, const iv_quantize_types *types,
                                 const iv_tensor *const operands[4]) {
    return launch_part(call, "iv_cuda_dequantize", types, operands);
}

static iv_status launch_quantize(iv_call *call) {
    return iv_quantize_parts(call, quantize_part);
}

static iv_status launch_dequantize(iv_call *call) {
    return iv_quantize_parts(call, dequantize_part);
}

/* ---- DynamicQuantizeLinear ---- */

/* Scalar output `index`, or one in scratch memory where nobody wants it. */
static iv_status make_scalar(iv_call *call, int index, iv_dtype dtype, iv_tensor *scalar) {
    iv_tensor *output;
    void *memory;
    *scalar = (iv_tensor){.dtype = dtype};
    if (iv_call_wants(call, index)) {
        IV_TRY(iv_call_output(call, index, &output));
        scalar->data = output->data;
        return IV_OK;
    }
    IV_TRY(iv_call_scratch(call, iv_dtype_size(dtype), &memory));
    scalar->data = memory;
    return IV_OK;
}

/* Scale and zero point of the whole input. */
static iv_status launch_range(iv_call *call, const iv_tensor *input, const iv_tensor *scale,
                              const iv_tensor *zero) {
    iv_cuda_range_search parameters = {.scale = (float *)(void *)scale->data,
                                       .zero = (uint8_t *)zero->data};
    iv_cuda_work search = {.module = "quantize",
                           .kernel = "iv_cuda_range_partial",
                           .parameters = &parameters,
                           .parameter_bytes = sizeof parameters,
                           .threads = RANGE_THREADS};
    iv_cuda_work finish = search;
    void *partial;
    iv_cuda_box_fill(&parameters.box, input, 0, &input);
    int64_t per_block = RANGE_THREADS * IV_CUDA_GROUP;
    int64_t wanted = (parameters.box.elements + per_block - 1) / per_block;
    unsigned blocks = iv_cuda_call_blocks(call, wanted < RANGE_BLOCKS ? wanted : RANGE_BLOCKS);
    size_t bytes = 2 * sizeof(float) * (size_t)(blocks + 1);
    IV_TRY(iv_call_scratch(call, bytes, &partial));
    parameters.partial = partial;
    parameters.blocks = (int32_t)blocks;
    search.blocks = blocks;
    iv_cuda_work_reads(&search, input);
    iv_cuda_work_touches(&search, partial, bytes, true);
    IV_TRY(iv_cuda_call_launch(call, &search));
    finish.kernel = "iv_cuda_range_scale";
    finish.blocks = 1;
    iv_cuda_work_touches(&finish, partial, bytes, false);
    iv_cuda_work_writes(&finish, scale);
    iv_cuda_work_writes(&finish, zero);
    return iv_cuda_call_launch(call, &finish);
}

static iv_status launch_dynamic(iv_call *call) {
    const iv_tensor *input = iv_call_input(call, 0);
    iv_tensor scale, zero, *out;
    IV_TRY(make_scalar(call, 1, IV_F32, &scale));
    IV_TRY(make_scalar(call, 2, IV_U8, &zero));
    IV_TRY(launch_range(call, input, &scale, &zero));
    if (!iv_call_wants(call, 0))
        return IV_OK;
    iv_quantize_types types = {.least = 0, .most = UINT8_MAX};
    IV_TRY(iv_call_output(call, 0, &out));
    return quantize_part(call, &types, (const iv_tensor *const[]){out, input, &scale, &zero});
}

const iv_kernel iv_cuda_kernels_quantize[] = {
    {.op = "QuantizeLinear",
     .name = "quantize",
     .supports = iv_cuda_supports_all,
     .launch = launch_quantize},
    {.op = "DequantizeLinear",
     .name = "dequantize",
     .supports = iv_cuda_supports_all,
     .launch = launch_dequantize},
    {.op = "DynamicQuantizeLinear",
     .name = "dynamic-quantize",
     .supports = iv_cuda_supports_all,
     .launch = launch_dynamic},
    {0},
};
