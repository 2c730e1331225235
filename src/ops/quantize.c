/* QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear.
 *
 * Quantizing: q = round(x / scale), ties to even, and y = clamp(q + zero point) to the range of y,
 * the sum exact; NaN counts as q = 0. Dequantizing: y = (float)(x - zero point) scale, the
 * difference exact, rounded to f32 first and multiplied then. All in f32; f16 and bf16 round once
 * when stored. */
#include "ops/quantize.h"

#include <string.h>

#include "numerics/minmax.h"
#include "ops/convert_loops.h"
#include "ops/element_type.h"
#include "ops/list.h"
#include "ops/loops.h"
#include "ops/quantize_values.h"

#define SET_QUANTIZED (IV_SET(IV_U8) | IV_SET(IV_S8) | IV_SET(IV_U16) | IV_SET(IV_S16))
#define SET_SINGLE (IV_SET(IV_F32) | IV_SET(IV_F16) | IV_SET(IV_BF16))
#define CHUNK 256

typedef struct quantize_params {
    int64_t axis, block;
    iv_dtype output; /* IV_DTYPE_NONE: what the inputs say */
} quantize_params;

static iv_status prepare_quantize(iv_node *node, iv_error *error) {
    quantize_params *params = node->params;
    IV_TRY(iv_node_int(node, "axis", 1, &params->axis, error));
    IV_TRY(iv_node_int(node, "block_size", 0, &params->block, error));
    if (params->block < 0)
        return iv_fail(error, IV_ERROR_INVALID_MODEL,
                       "node %s (%s): block_size is %lld; it may not be negative", node->name,
                       node->op->name, (long long)params->block);
    return iv_node_element_type(node, "output_dtype", IV_DTYPE_NONE, &params->output, error);
}

/* ---- facts ---- */

/* Checks that the zero point, if there is one, has the element type. */
static iv_status check_zero_point(iv_infer *infer, uint32_t dtypes, iv_dtype *dtype) {
    const iv_fact *zero = iv_infer_input(infer, 2);
    if (zero == NULL)
        return IV_OK;
    IV_TRY(iv_infer_require(infer, 2, dtypes, &zero));
    if (*dtype != IV_DTYPE_NONE && *dtype != zero->dtype)
        return iv_infer_fail(infer, IV_ERROR_INVALID_MODEL,
                             "the zero point has dtype %s where %s is expected",
                             iv_dtype_name(zero->dtype), iv_dtype_name(*dtype));
    *dtype = zero->dtype;
    return IV_OK;
}

static iv_status infer_quantize(iv_infer *infer) {
    const iv_fact *input, *scale;
    iv_dtype dtype = ((const quantize_params *)infer->node->params)->output;
    IV_TRY(iv_infer_require(infer, 0, SET_SINGLE | IV_SET(IV_S32), &input));
    IV_TRY(iv_infer_require(infer, 1, SET_SINGLE | IV_SET(IV_S32), &scale));
    IV_TRY(check_zero_point(infer, SET_QUANTIZED, &dtype));
    iv_infer_shape_of(infer, 0, input, dtype != IV_DTYPE_NONE ? dtype : IV_U8);
    if ((SET_QUANTIZED & IV_SET(infer->outputs[0].dtype)) == 0)
        return iv_infer_fail(infer, IV_ERROR_UNSUPPORTED,
                             "output_dtype %s is no 8- or 16-bit integer",
                             iv_dtype_name(infer->outputs[0].dtype));
    return IV_OK;
}

static iv_status infer_dequantize(iv_infer *infer) {
    const iv_fact *input, *scale;
    iv_dtype asked = ((const quantize_params *)infer->node->params)->output;
    IV_TRY(iv_infer_require(infer, 0, SET_QUANTIZED | IV_SET(IV_S32), &input));
    IV_TRY(iv_infer_require(infer, 1, SET_SINGLE, &scale));
    iv_dtype dtype = input->dtype;
    IV_TRY(check_zero_point(infer, SET_QUANTIZED | IV_SET(IV_S32), &dtype));
    iv_infer_shape_of(infer, 0, input, asked != IV_DTYPE_NONE ? asked : scale->dtype);
    if ((SET_SINGLE & IV_SET(infer->outputs[0].dtype)) == 0)
        return iv_infer_fail(infer, IV_ERROR_UNSUPPORTED, "output_dtype %s is no float",
                             iv_dtype_name(infer->outputs[0].dtype));
    return IV_OK;
}

/* ---- scales and zero points, spread over the input ---- */

/* Makes *view a borrowed view of `values` (a scale or zero point) that broadcasts to the shape
 * `of`: a scalar; one value per index of `axis`; or one per block along `axis`, of which `piece` is
 * chosen. */
static iv_status spread(const iv_call *call, const iv_tensor *of, const iv_tensor *values, int axis,
                        int64_t piece, iv_tensor *view) {
    const quantize_params *params = call->node->params;
    memcpy(view, values, sizeof *view);
    if (iv_tensor_elements(values) == 1 && values->rank <= 1) {
        view->rank = 0;
        return IV_OK;
    }
    if (params->block > 0 && values->rank == of->rank) {
        bool fits = true;
        for (int d = 0; d < of->rank; d++) {
            int64_t blocks = of->dims[d] / params->block + (of->dims[d] % params->block != 0);
            fits = fits && values->dims[d] == (d == axis ? blocks : of->dims[d]);
        }
        view->data += piece * view->strides[axis] * (int64_t)iv_dtype_size(view->dtype);
        view->dims[axis] = 1;
        if (fits)
            return IV_OK;
    } else if (params->block == 0 && values->rank == 1 && of->rank > 0 &&
               values->dims[0] == of->dims[axis]) {
        view->rank = of->rank - axis;
        for (int d = 1; d < view->rank; d++) {
            view->dims[d] = 1;
            view->strides[d] = 0;
        }
        return IV_OK;
    }
    char shape[IV_DIMS_TEXT_BYTES], given[IV_DIMS_TEXT_BYTES];
    return iv_call_fail(
        call, IV_ERROR_SHAPE,
        "scale or zero point of shape %s does not fit input %s with axis %d and block size %lld",
        iv_dims_text(values->rank, values->dims, given), iv_dims_text(of->rank, of->dims, shape),
        axis, (long long)params->block);
}

iv_status iv_quantize_parts(iv_call *call,
                            iv_status (*run)(iv_call *call, const iv_quantize_types *types,
                                             const iv_tensor *const operands[4])) {
    const quantize_params *params = call->node->params;
    const iv_quantize_types types = iv_quantize_types_of(call);
    const iv_tensor *input = iv_call_input(call, 0), *scale = iv_call_input(call, 1);
    const iv_tensor *zero = iv_call_input(call, 2);
    iv_tensor *output;
    IV_TRY(iv_call_output(call, 0, &output));
    int64_t axis = params->axis < 0 ? params->axis + input->rank : params->axis;
    bool by_axis = iv_tensor_elements(scale) != 1 || scale->rank > 1;
    if (by_axis && (axis < 0 || axis >= input->rank))
        return iv_call_fail(call, IV_ERROR_SHAPE, "axis %lld is outside [-%d, %d)",
                            (long long)params->axis, input->rank, input->rank);
    bool blocked = by_axis && params->block > 0;
    int64_t extent = blocked ? input->dims[axis] : 1, step = blocked ? params->block : 1;
    for (int64_t start = 0, piece = 0; start < extent; start += step, piece++) {
        iv_tensor part[2], spread_scale, spread_zero;
        memcpy(&part[0], output, sizeof part[0]);
        memcpy(&part[1], input, sizeof part[1]);
        IV_TRY(spread(call, input, scale, (int)axis, piece, &spread_scale));
        if (zero != NULL)
            IV_TRY(spread(call, input, zero, (int)axis, piece, &spread_zero));
        for (int i = 0; i < 2 && blocked; i++) {
            part[i].data += start * part[i].strides[axis] * (int64_t)iv_dtype_size(part[i].dtype);
            part[i].dims[axis] = extent - start < step ? extent - start : step;
        }
        IV_TRY(run(call, &types,
                   (const iv_tensor *const[]){&part[0], &part[1], &spread_scale,
                                              zero != NULL ? &spread_zero : NULL}));
    }
    return IV_OK;
}

/* ---- rows ---- */

static void store_chunk(iv_dtype dtype, char *target, int64_t step, iv_dtype from, void *values,
                        int64_t count) {
    char *const operands[2] = {target, values};
    int64_t steps[2] = {step, (int64_t)iv_dtype_size(from)};
    iv_convert_loop(dtype, from)(NULL, count, operands, steps);
}

static void quantize_row(void *opaque, int64_t count, char *const *data, const int64_t *steps) {
    const iv_quantize_types *types = opaque;
    float values[CHUNK], scales[CHUNK];
    int64_t zeros[CHUNK];
    for (int64_t start = 0; start < count; start += CHUNK) {
        int64_t size = count - start < CHUNK ? count - start : CHUNK;
        iv_convert_row(IV_F32, values, types->input, data[1] + start * steps[1], steps[1], size);
        iv_convert_row(IV_F32, scales, types->scale, data[2] + start * steps[2], steps[2], size);
        iv_convert_row(IV_S64, zeros, types->output, data[3] + start * steps[3], steps[3], size);
        for (int64_t i = 0; i < size; i++)
            zeros[i] = iv_quantize_value(values[i], scales[i], zeros[i], types->least, types->most);
        store_chunk(types->output, data[0] + start * steps[0], steps[0], IV_S64, zeros, size);
    }
}

static void dequantize_row(void *opaque, int64_t count, char *const *data, const int64_t *steps) {
    const iv_quantize_types *types = opaque;
    float scales[CHUNK];
    int64_t values[CHUNK], zeros[CHUNK];
    for (int64_t start = 0; start < count; start += CHUNK) {
        int64_t size = count - start < CHUNK ? count - start : CHUNK;
        iv_convert_row(IV_S64, values, types->input, data[1] + start * steps[1], steps[1], size);
        iv_convert_row(IV_F32, scales, types->scale, data[2] + start * steps[2], steps[2], size);
        iv_convert_row(IV_S64, zeros, types->input, data[3] + start * steps[3], steps[3], size);
        for (int64_t i = 0; i < size; i++)
            scales[i] = iv_dequantize_value(values[i], scales[i], zeros[i]);
        store_chunk(types->output, data[0] + start * steps[0], steps[0], IV_F32, scales, size);
    }
}

static iv_quantize_types quantized_range(iv_dtype dtype) {
    switch (dtype) {
    case IV_S8:
        return (iv_quantize_types){.output = dtype, .least = INT8_MIN, .most = INT8_MAX};
    case IV_U16:
        return (iv_quantize_types){.output = dtype, .least = 0, .most = UINT16_MAX};
    case IV_S16:
        return (iv_quantize_types){.output = dtype, .least = INT16_MIN, .most = INT16_MAX};
    default:
        return (iv_quantize_types){.output = dtype, .least = 0, .most = UINT8_MAX};
    }
}

iv_quantize_types iv_quantize_types_of(const iv_call *call) {
    iv_quantize_types types = quantized_range(call->facts[0].dtype);
    types.input = iv_call_input(call, 0)->dtype;
    types.scale = iv_call_input(call, 1)->dtype;
    return types;
}

static void run_rows(iv_walk_row *row, const iv_quantize_types *types,
                     const iv_tensor *const given[4]) {
    static const int64_t nothing = 0;
    iv_tensor absent = {.dtype = row == quantize_row ? types->output : types->input,
                        .data = (char *)(uintptr_t)&nothing};
    const iv_tensor *operands[4] = {given[0], given[1], given[2],
                                    given[3] != NULL ? given[3] : &absent};
    iv_quantize_types copy = *types;
    iv_walk walk;
    iv_walk_start(&walk, given[0]->rank, given[0]->dims, 4, operands);
    iv_walk_run(&walk, row, &copy);
}

static iv_status quantize_part(iv_call *call, const iv_quantize_types *types,
                               const iv_tensor *const operands[4]) {
    run_rows(quantize_row, types, operands);
    return IV_OK;
}

static iv_status dequantize_part(iv_call *call, const iv_quantize_types *types,
                                 const iv_tensor *const operands[4]) {
    run_rows(dequantize_row, types, operands);
    return IV_OK;
}

static iv_status eval_quantize(iv_call *call) {
    return iv_quantize_parts(call, quantize_part);
}

static iv_status eval_dequantize(iv_call *call) {
    return iv_quantize_parts(call, dequantize_part);
}

/* ---- DynamicQuantizeLinear: to u8 by the range of the input, which 0 belongs to ----
 *
 * scale = (max(0, max x) - min(0, min x)) / 255; zero point = clamp(round(0 - min(0, min x) /
 * scale)) to u8; then as QuantizeLinear. */

typedef struct range_context {
    float least, most;
} range_context;

static void range_row(void *opaque, int64_t count, char *const *data, const int64_t *steps) {
    range_context *context = opaque;
    for (int64_t i = 0; i < count; i++) {
        float value = IV_CONST_AT(float, data[0], steps[0], i);
        context->least = iv_min_f32(context->least, value);
        context->most = iv_max_f32(context->most, value);
    }
}

static iv_status infer_dynamic(iv_infer *infer) {
    const iv_fact *input;
    IV_TRY(iv_infer_require(infer, 0, IV_SET(IV_F32), &input));
    iv_infer_shape_of(infer, 0, input, IV_U8);
    iv_fact_set_tensor(&infer->outputs[1], IV_F32, 0, NULL);
    iv_fact_set_tensor(&infer->outputs[2], IV_U8, 0, NULL);
    return IV_OK;
}

static iv_status store_scalar(iv_call *call, int index, const void *value) {
    iv_tensor *output;
    if (!iv_call_wants(call, index))
        return IV_OK;
    IV_TRY(iv_call_output(call, index, &output));
    memcpy(output->data, value, iv_dtype_size(output->dtype));
    return IV_OK;
}

static iv_status eval_dynamic(iv_call *call) {
    const iv_tensor *input = iv_call_input(call, 0);
    range_context range = {0, 0};
    iv_walk walk;
    iv_walk_start(&walk, input->rank, input->dims, 1, &input);
    iv_walk_run(&walk, range_row, &range);
    float scale;
    uint8_t zero;
    iv_quantize_range(range.least, range.most, &scale, &zero);
    IV_TRY(store_scalar(call, 1, &scale));
    IV_TRY(store_scalar(call, 2, &zero));
    if (!iv_call_wants(call, 0))
        return IV_OK;
    iv_tensor *output;
    IV_TRY(iv_call_output(call, 0, &output));
    iv_quantize_types types = quantized_range(IV_U8);
    types.input = IV_F32;
    types.scale = IV_F32;
    iv_tensor scales = {.dtype = IV_F32, .data = (char *)&scale};
    iv_tensor zeros = {.dtype = IV_U8, .data = (char *)&zero};
    run_rows(quantize_row, &types, (const iv_tensor *const[]){output, input, &scales, &zeros});
    return IV_OK;
}

/* clang-format off */
const iv_op iv_ops_quantize[] = {
    {.name = "QuantizeLinear", .domain = "", .least_inputs = 2, .most_inputs = 3,
     .least_outputs = 1, .most_outputs = 1, .params_size = sizeof(quantize_params),
     .prepare = prepare_quantize, .infer = infer_quantize, .eval = eval_quantize},
    {.name = "DequantizeLinear", .domain = "", .least_inputs = 2, .most_inputs = 3,
     .least_outputs = 1, .most_outputs = 1, .params_size = sizeof(quantize_params),
     .prepare = prepare_quantize, .infer = infer_dequantize, .eval = eval_dequantize},
    {.name = "DynamicQuantizeLinear", .domain = "", .least_inputs = 1, .most_inputs = 1,
     .least_outputs = 3, .most_outputs = 3, .infer = infer_dynamic, .eval = eval_dynamic},
    {0},
};
/* clang-format on */
