/* Kernels of QuantizeLinear and DequantizeLinear with integers of 2 to 16 bits and small floats. */
#include <stdio.h>
#include <string.h>

#include "cpu/elementwise/quantize_rows.h"
#include "cpu/list.h"
#include "cpu/spread.h"

static const sb_quantize_rows *rows_for(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    if (isa == SB_ISA_AVX512)
        return &sb_quantize_rows_avx512;
    if (isa == SB_ISA_AVX2)
        return &sb_quantize_rows_avx2;
#endif
    (void)isa;
    return &sb_quantize_rows_scalar;
}

static bool is_narrow_float(sb_dtype dtype) {
    return dtype == SB_F32 || dtype == SB_F16 || dtype == SB_BF16;
}

static bool is_scale(sb_dtype dtype) {
    return is_narrow_float(dtype) || dtype == SB_F8E8M0;
}

static bool is_small_float(sb_dtype dtype) {
    return (SB_SET(dtype) & SB_SET_SMALL_FLOAT) != 0;
}

static bool supports_quantize(const sb_kernel_query *query, char *why) {
    sb_dtype input = query->inputs[0]->dtype, scale = query->inputs[1]->dtype;
    if (is_narrow_float(input) && is_scale(scale))
        return true;
    snprintf(why, SB_WHY_BYTES, "quantizing %s with a scale of %s has no kernel; floats have", sb_dtype_name(input),
             sb_dtype_name(scale));
    return false;
}

static bool supports_dequantize(const sb_kernel_query *query, char *why) {
    sb_dtype input = query->inputs[0]->dtype, scale = query->inputs[1]->dtype, output = query->outputs[0].dtype;
    if (input != SB_S32 && is_scale(scale) && output == SB_F32)
        return true;
    snprintf(why, SB_WHY_BYTES, "dequantizing %s to %s with a scale of %s has no kernel; up to 16 bits to f32 have",
             sb_dtype_name(input), sb_dtype_name(output), sb_dtype_name(scale));
    return false;
}

static void run_part(sb_call *call, sb_walk_row *row, sb_dtype zero_dtype, const sb_quantize_types *types,
                     const sb_tensor *const operands[4]) {
    static const int64_t nothing = 0;
    sb_tensor absent = {.dtype = zero_dtype, .data = (char *)(uintptr_t)&nothing}, copies[4];
    sb_quantize_types context = *types;
    for (int i = 0; i < 4; i++)
        memcpy(&copies[i], operands[i] != NULL ? operands[i] : &absent, sizeof copies[i]);
    sb_spread_run(call, row, &context, &copies[0], 3, (sb_tensor *const[]){&copies[1], &copies[2], &copies[3]});
}

static sb_status quantize_part(sb_call *call, const sb_quantize_types *types, const sb_tensor *const operands[4]) {
    const sb_quantize_rows *rows = rows_for(call->isa);
    run_part(call, is_small_float(types->output) ? rows->quantize_to_floats : rows->quantize, types->output, types,
             operands);
    return SB_OK;
}

static sb_status dequantize_part(sb_call *call, const sb_quantize_types *types, const sb_tensor *const operands[4]) {
    const sb_quantize_rows *rows = rows_for(call->isa);
    run_part(call, is_small_float(types->input) ? rows->dequantize_floats : rows->dequantize, types->input, types,
             operands);
    return SB_OK;
}

/* Makes the output in the input's order in memory, so that heads of an attention, which are views, are one long row. */
static sb_status make_output(sb_call *call) {
    sb_tensor *input = (sb_tensor *)(uintptr_t)sb_call_input(call, 0), *output;
    return sb_spread_output(call, 1, &input, &output);
}

static sb_status launch_quantize(sb_call *call) {
    SB_TRY(make_output(call));
    return sb_quantize_parts(call, quantize_part);
}

static sb_status launch_dequantize(sb_call *call) {
    SB_TRY(make_output(call));
    return sb_quantize_parts(call, dequantize_part);
}

const sb_kernel sb_cpu_kernels_quantize[] = {
    {.op = "QuantizeLinear", .name = "quantize", .supports = supports_quantize, .launch = launch_quantize},
    {.op = "DequantizeLinear", .name = "dequantize", .supports = supports_dequantize, .launch = launch_dequantize},
    {0},
};
