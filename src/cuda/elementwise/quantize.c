/* QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear. */
#include "ops/quantize.h"

#include <string.h>

#include "cuda/common/elements.h"
#include "cuda/common/typed.h"
#include "cuda/list.h"

#define RANGE_THREADS 256 /* of kernels/quantize.cu */
/* More blocks would only leave more for the last one to fold. */
#define RANGE_BLOCKS 512

/* Gives one part to a kernel. The zero point may be missing. */
static sb_status launch_part(sb_call *call, const char *kernel, const sb_quantize_types *types,
                             const sb_tensor *const operands[4]) {
    const sb_tensor *inputs[3] = {operands[1], operands[2], operands[3] != NULL ? operands[3] : operands[2]};
    sb_cuda_quantization parameters = {.output = sb_cuda_typed_of(operands[0]->dtype),
                                       .input = sb_cuda_typed_of(operands[1]->dtype),
                                       .scale = sb_cuda_typed_of(operands[2]->dtype),
                                       .zero = sb_cuda_typed_of(operands[3] != NULL ? operands[3]->dtype : SB_U8),
                                       .has_zero = operands[3] != NULL,
                                       .saturate = types->saturate,
                                       .precision = (int32_t)types->precision,
                                       .mask = UINT32_C(0xffffffff) >> (32 - sb_dtype_bits(operands[0]->dtype)),
                                       .least = types->least,
                                       .most = types->most};
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    sb_cuda_box_fill(&parameters.box, operands[0], 3, inputs);
    sb_cuda_work_writes(&work, operands[0]);
    for (int i = 0; i < 3; i++)
        sb_cuda_work_reads(&work, inputs[i]);
    return sb_cuda_launch_groups(call, &work, "quantize", kernel, NULL, parameters.box.elements);
}

static bool is_small_float(sb_dtype dtype) {
    return (SB_SET(dtype) & SB_SET_SMALL_FLOAT) != 0;
}

static sb_status quantize_part(sb_call *call, const sb_quantize_types *types, const sb_tensor *const operands[4]) {
    return launch_part(call, is_small_float(types->output) ? "sb_cuda_quantize_float" : "sb_cuda_quantize", types,
                       operands);
}

static sb_status dequantize_part(sb_call *call, const sb_quantize_types *types, const sb_tensor *const operands[4]) {
    return launch_part(call, is_small_float(types->input) ? "sb_cuda_dequantize_float" : "sb_cuda_dequantize", types,
                       operands);
}

static sb_status launch_quantize(sb_call *call) {
    return sb_quantize_parts(call, quantize_part);
}

static sb_status launch_dequantize(sb_call *call) {
    return sb_quantize_parts(call, dequantize_part);
}

/* ---- DynamicQuantizeLinear ---- */

/* Scalar output `index`, or one in workspace where nobody wants it. */
static sb_status make_scalar(sb_call *call, int index, sb_dtype dtype, sb_tensor *scalar) {
    sb_tensor *output;
    void *memory;
    *scalar = (sb_tensor){.dtype = dtype};
    if (sb_call_wants(call, index)) {
        SB_TRY(sb_call_output(call, index, &output));
        scalar->data = output->data;
        return SB_OK;
    }
    SB_TRY(sb_call_workspace(call, sb_dtype_size(dtype), &memory));
    scalar->data = memory;
    return SB_OK;
}

/* Scale and zero point of the whole input. */
static sb_status launch_range(sb_call *call, const sb_tensor *input, const sb_tensor *scale, const sb_tensor *zero) {
    sb_cuda_range_search parameters = {.scale = (float *)(void *)scale->data, .zero = (uint8_t *)zero->data};
    sb_cuda_work search = {.module = "quantize",
                           .kernel = "sb_cuda_range_partial",
                           .parameters = &parameters,
                           .parameter_bytes = sizeof parameters,
                           .threads = RANGE_THREADS};
    sb_cuda_work finish = search;
    void *partial;
    sb_cuda_box_fill(&parameters.box, input, 0, &input);
    int64_t per_block = RANGE_THREADS * SB_CUDA_GROUP;
    int64_t wanted = (parameters.box.elements + per_block - 1) / per_block;
    unsigned blocks = sb_cuda_call_blocks(call, wanted < RANGE_BLOCKS ? wanted : RANGE_BLOCKS);
    size_t bytes = 2 * sizeof(float) * (size_t)(blocks + 1);
    SB_TRY(sb_call_workspace(call, bytes, &partial));
    parameters.partial = partial;
    parameters.blocks = (int32_t)blocks;
    search.blocks = blocks;
    sb_cuda_work_reads(&search, input);
    sb_cuda_work_touches(&search, partial, bytes, true);
    SB_TRY(sb_cuda_call_launch(call, &search));
    finish.kernel = "sb_cuda_range_scale";
    finish.blocks = 1;
    sb_cuda_work_touches(&finish, partial, bytes, false);
    sb_cuda_work_writes(&finish, scale);
    sb_cuda_work_writes(&finish, zero);
    return sb_cuda_call_launch(call, &finish);
}

static sb_status launch_dynamic(sb_call *call) {
    const sb_tensor *input = sb_call_input(call, 0);
    sb_tensor scale, zero, *out;
    SB_TRY(make_scalar(call, 1, SB_F32, &scale));
    SB_TRY(make_scalar(call, 2, SB_U8, &zero));
    SB_TRY(launch_range(call, input, &scale, &zero));
    if (!sb_call_wants(call, 0))
        return SB_OK;
    sb_quantize_types types = {.output = SB_U8, .precision = SB_F32, .least = 0, .most = UINT8_MAX};
    SB_TRY(sb_call_output(call, 0, &out));
    return quantize_part(call, &types, (const sb_tensor *const[]){out, input, &scale, &zero});
}

const sb_kernel sb_cuda_kernels_quantize[] = {
    {.op = "QuantizeLinear", .name = "quantize", .supports = sb_cuda_supports_all, .launch = launch_quantize},
    {.op = "DequantizeLinear", .name = "dequantize", .supports = sb_cuda_supports_all, .launch = launch_dequantize},
    {.op = "DynamicQuantizeLinear",
     .name = "dynamic-quantize",
     .supports = sb_cuda_supports_all,
     .launch = launch_dynamic},
    {0},
};
