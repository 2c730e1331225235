/* Kernels of QuantizeLinear and DequantizeLinear with types of 8 and 16 bits. */
#include <stdio.h>
#include <string.h>

#include "cpu/elementwise/quantize_rows.h"
#include "cpu/list.h"
#include "cpu/spread.h"
#include "ops/element_type.h"

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

/* The quantized types that the rows know: integers of 8 and 16 bits, each of which takes its own space. */
static bool is_quantized(sb_dtype dtype) {
    return dtype == SB_U8 || dtype == SB_S8 || dtype == SB_U16 || dtype == SB_S16;
}

static bool supports_quantize(const sb_kernel_query *query, char *why) {
    sb_dtype input = query->inputs[0]->dtype, scale = query->inputs[1]->dtype, output = query->outputs[0].dtype;
    sb_dtype precision;
    if (sb_node_element_type(query->node, "precision", SB_F32, &precision, NULL) != SB_OK || precision != SB_F32) {
        snprintf(why, SB_WHY_BYTES, "a precision other than f32 has no kernel");
        return false;
    }
    if (is_narrow_float(input) && is_narrow_float(scale) && is_quantized(output))
        return true;
    snprintf(why, SB_WHY_BYTES,
             "quantizing %s with a scale of %s to %s has no kernel; floats to integers of 8 and 16 bits have",
             sb_dtype_name(input), sb_dtype_name(scale), sb_dtype_name(output));
    return false;
}

static bool supports_dequantize(const sb_kernel_query *query, char *why) {
    sb_dtype input = query->inputs[0]->dtype, scale = query->inputs[1]->dtype, output = query->outputs[0].dtype;
    if (is_quantized(input) && scale == SB_F32 && output == SB_F32)
        return true;
    snprintf(why, SB_WHY_BYTES,
             "dequantizing %s to %s with a scale of %s has no kernel; integers of 8 and 16 bits to f32 have",
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
    run_part(call, rows_for(call->isa)->quantize, types->output, types, operands);
    return SB_OK;
}

static sb_status dequantize_part(sb_call *call, const sb_quantize_types *types, const sb_tensor *const operands[4]) {
    run_part(call, rows_for(call->isa)->dequantize, types->input, types, operands);
    return SB_OK;
}

static sb_status launch_quantize(sb_call *call) {
    return sb_quantize_parts(call, quantize_part);
}

static sb_status launch_dequantize(sb_call *call) {
    return sb_quantize_parts(call, dequantize_part);
}

const sb_kernel sb_cpu_kernels_quantize[] = {
    {.op = "QuantizeLinear", .name = "quantize", .supports = supports_quantize, .launch = launch_quantize},
    {.op = "DequantizeLinear", .name = "dequantize", .supports = supports_dequantize, .launch = launch_dequantize},
    {0},
};
