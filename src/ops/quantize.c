/* QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear.
 *
 * Quantizing to integers: q = round(x / scale), ties to even, and y = clamp(q + zero point) to the range of y, the sum
 * exact; NaN counts as q = 0. To small floats: x / scale, plus the zero point if there is one, as Cast converts it.
 * Dequantizing: y = (float)(x - zero point) scale, the difference of integers exact, rounded to f32 first and multiplied
 * then. All in f32; f16 and bf16 round once when stored. Where `precision` is f16 or bf16, x, scale and their quotient
 * are rounded to it. */
#include "ops/quantize.h"

#include <string.h>

#include "numerics/minmax.h"
#include "ops/convert_loops.h"
#include "ops/element_type.h"
#include "ops/list.h"
#include "ops/loops.h"
#include "ops/quantize_values.h"

#define SET_INTEGER (SB_SET(SB_U8) | SB_SET(SB_S8) | SB_SET(SB_U16) | SB_SET(SB_S16) | SB_SET_SMALL_INTEGER)
#define SET_QUANTIZED (SET_INTEGER | SB_SET_SMALL_FLOAT)
#define SET_SINGLE (SB_SET(SB_F32) | SB_SET(SB_F16) | SB_SET(SB_BF16))
#define SET_SCALE (SET_SINGLE | SB_SET(SB_F8E8M0))
#define CHUNK 256

typedef struct quantize_params {
    int64_t axis, block;
    sb_dtype output; /* SB_DTYPE_NONE: what the inputs say */
    sb_dtype precision;
    int64_t saturate;
} quantize_params;

static sb_status prepare_quantize(sb_node *node, sb_error *error) {
    quantize_params *params = node->params;
    SB_TRY(sb_node_int(node, "axis", 1, &params->axis, error));
    SB_TRY(sb_node_int(node, "block_size", 0, &params->block, error));
    if (params->block < 0)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (%s): block_size is %lld; it may not be negative",
                       node->name, node->op->name, (long long)params->block);
    SB_TRY(sb_node_int(node, "saturate", 1, &params->saturate, error));
    SB_TRY(sb_node_element_type(node, "precision", SB_F32, &params->precision, error));
    if ((SET_SINGLE & SB_SET(params->precision)) == 0)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "node %s (%s): precision %s is none of f32, f16 and bf16",
                       node->name, node->op->name, sb_dtype_name(params->precision));
    return sb_node_element_type(node, "output_dtype", SB_DTYPE_NONE, &params->output, error);
}

/* ---- facts ---- */

/* Checks that the zero point, if there is one, has the element type. */
static sb_status check_zero_point(sb_infer *infer, uint32_t dtypes, sb_dtype *dtype) {
    const sb_fact *zero = sb_infer_input(infer, 2);
    if (zero == NULL)
        return SB_OK;
    SB_TRY(sb_infer_require(infer, 2, dtypes, &zero));
    if (*dtype != SB_DTYPE_NONE && *dtype != zero->dtype)
        return sb_infer_fail(infer, SB_ERROR_INVALID_MODEL, "the zero point has dtype %s where %s is expected",
                             sb_dtype_name(zero->dtype), sb_dtype_name(*dtype));
    *dtype = zero->dtype;
    return SB_OK;
}

static sb_status infer_quantize(sb_infer *infer) {
    const sb_fact *input, *scale;
    sb_dtype dtype = ((const quantize_params *)infer->node->params)->output;
    SB_TRY(sb_infer_require(infer, 0, SET_SINGLE | SB_SET(SB_S32), &input));
    SB_TRY(sb_infer_require(infer, 1, SET_SCALE | SB_SET(SB_S32), &scale));
    SB_TRY(check_zero_point(infer, SET_QUANTIZED, &dtype));
    sb_infer_shape_of(infer, 0, input, dtype != SB_DTYPE_NONE ? dtype : SB_U8);
    if ((SET_QUANTIZED & SB_SET(infer->outputs[0].dtype)) == 0)
        return sb_infer_fail(infer, SB_ERROR_UNSUPPORTED,
                             "output_dtype %s is neither an integer of up to 16 bits nor a small float",
                             sb_dtype_name(infer->outputs[0].dtype));
    return SB_OK;
}

static sb_status infer_dequantize(sb_infer *infer) {
    const sb_fact *input, *scale;
    sb_dtype asked = ((const quantize_params *)infer->node->params)->output;
    SB_TRY(sb_infer_require(infer, 0, SET_QUANTIZED | SB_SET(SB_S32), &input));
    SB_TRY(sb_infer_require(infer, 1, SET_SCALE, &scale));
    sb_dtype dtype = input->dtype;
    SB_TRY(check_zero_point(infer, SET_QUANTIZED | SB_SET(SB_S32), &dtype));
    sb_infer_shape_of(infer, 0, input, asked != SB_DTYPE_NONE ? asked : scale->dtype);
    if ((SET_SINGLE & SB_SET(infer->outputs[0].dtype)) == 0)
        return sb_infer_fail(
            infer, SB_ERROR_UNSUPPORTED, "the output would be %s, as %s: say output_dtype f32, f16 or bf16",
            sb_dtype_name(infer->outputs[0].dtype), asked != SB_DTYPE_NONE ? "output_dtype says" : "the scale is");
    return SB_OK;
}

/* ---- scales and zero points, spread over the input ---- */

/* Makes *view a borrowed view of `values` (a scale or zero point) that broadcasts to the shape `of`: a scalar; one
 * value per index of `axis`; or one per block along `axis`, of which `piece` is chosen. */
static sb_status spread(const sb_call *call, const sb_tensor *of, const sb_tensor *values, int axis, int64_t piece,
                        sb_tensor *view) {
    const quantize_params *params = call->node->params;
    memcpy(view, values, sizeof *view);
    if (sb_tensor_elements(values) == 1 && values->rank <= 1) {
        view->rank = 0;
        return SB_OK;
    }
    if (params->block > 0 && values->rank == of->rank) {
        bool fits = true;
        for (int d = 0; d < of->rank; d++) {
            int64_t blocks = of->dims[d] / params->block + (of->dims[d] % params->block != 0);
            fits = fits && values->dims[d] == (d == axis ? blocks : of->dims[d]);
        }
        view->data += piece * view->strides[axis] * (int64_t)sb_dtype_size(view->dtype);
        view->dims[axis] = 1;
        if (fits)
            return SB_OK;
    } else if (params->block == 0 && values->rank == 1 && of->rank > 0 && values->dims[0] == of->dims[axis]) {
        view->rank = of->rank - axis;
        for (int d = 1; d < view->rank; d++) {
            view->dims[d] = 1;
            view->strides[d] = 0;
        }
        return SB_OK;
    }
    char shape[SB_DIMS_TEXT_BYTES], given[SB_DIMS_TEXT_BYTES];
    return sb_call_fail(call, SB_ERROR_SHAPE,
                        "scale or zero point of shape %s does not fit input %s with axis %d and block size %lld",
                        sb_dims_text(values->rank, values->dims, given), sb_dims_text(of->rank, of->dims, shape), axis,
                        (long long)params->block);
}

sb_status sb_quantize_parts(sb_call *call, sb_status (*run)(sb_call *call, const sb_quantize_types *types,
                                                            const sb_tensor *const operands[4])) {
    const quantize_params *params = call->node->params;
    const sb_quantize_types types = sb_quantize_types_of(call);
    const sb_tensor *input = sb_call_input(call, 0), *scale = sb_call_input(call, 1);
    const sb_tensor *zero = sb_call_input(call, 2);
    sb_tensor *output;
    SB_TRY(sb_call_output(call, 0, &output));
    int64_t axis = params->axis < 0 ? params->axis + input->rank : params->axis;
    bool by_axis = sb_tensor_elements(scale) != 1 || scale->rank > 1;
    if (by_axis && (axis < 0 || axis >= input->rank))
        return sb_call_fail(call, SB_ERROR_SHAPE, "axis %lld is outside [-%d, %d)", (long long)params->axis,
                            input->rank, input->rank);
    bool blocked = by_axis && params->block > 0;
    int64_t extent = blocked ? input->dims[axis] : 1, step = blocked ? params->block : 1;
    for (int64_t start = 0, piece = 0; start < extent; start += step, piece++) {
        sb_tensor part[2], spread_scale, spread_zero;
        memcpy(&part[0], output, sizeof part[0]);
        memcpy(&part[1], input, sizeof part[1]);
        SB_TRY(spread(call, input, scale, (int)axis, piece, &spread_scale));
        if (zero != NULL)
            SB_TRY(spread(call, input, zero, (int)axis, piece, &spread_zero));
        for (int i = 0; i < 2 && blocked; i++) {
            part[i].data += start * part[i].strides[axis] * (int64_t)sb_dtype_size(part[i].dtype);
            part[i].dims[axis] = extent - start < step ? extent - start : step;
        }
        SB_TRY(run(call, &types,
                   (const sb_tensor *const[]){&part[0], &part[1], &spread_scale, zero != NULL ? &spread_zero : NULL}));
    }
    return SB_OK;
}

/* ---- rows ---- */

static void store_chunk(const sb_quantize_types *types, char *target, int64_t step, sb_dtype from, void *values,
                        int64_t count) {
    sb_conversion conversion = sb_conversion_of(types->output, from);
    conversion.saturate = types->saturate;
    char *const operands[2] = {target, values};
    int64_t steps[2] = {step, (int64_t)sb_dtype_size(from)};
    sb_convert_elements(&conversion, count, operands, steps);
}

static void quantize_row(void *opaque, int64_t count, char *const *data, const int64_t *steps) {
    const sb_quantize_types *types = opaque;
    float values[CHUNK], scales[CHUNK];
    int64_t zeros[CHUNK];
    for (int64_t start = 0; start < count; start += CHUNK) {
        int64_t size = count - start < CHUNK ? count - start : CHUNK;
        sb_convert_row(SB_F32, values, types->input, data[1] + start * steps[1], steps[1], size);
        sb_convert_row(SB_F32, scales, types->scale, data[2] + start * steps[2], steps[2], size);
        sb_convert_row(SB_S64, zeros, types->output, data[3] + start * steps[3], steps[3], size);
        for (int64_t i = 0; i < size; i++)
            zeros[i] = sb_quantize_value(sb_quantize_quotient(values[i], scales[i], types->precision), zeros[i],
                                         types->least, types->most);
        store_chunk(types, data[0] + start * steps[0], steps[0], SB_S64, zeros, size);
    }
}

static void quantize_to_floats(void *opaque, int64_t count, char *const *data, const int64_t *steps) {
    const sb_quantize_types *types = opaque;
    float values[CHUNK], scales[CHUNK], zeros[CHUNK];
    for (int64_t start = 0; start < count; start += CHUNK) {
        int64_t size = count - start < CHUNK ? count - start : CHUNK;
        sb_convert_row(SB_F32, values, types->input, data[1] + start * steps[1], steps[1], size);
        sb_convert_row(SB_F32, scales, types->scale, data[2] + start * steps[2], steps[2], size);
        sb_convert_row(SB_F32, zeros, types->output, data[3] + start * steps[3], steps[3], size);
        for (int64_t i = 0; i < size; i++) {
            values[i] = sb_quantize_quotient(values[i], scales[i], types->precision);
            values[i] = types->has_zero ? values[i] + zeros[i] : values[i];
        }
        store_chunk(types, data[0] + start * steps[0], steps[0], SB_F32, values, size);
    }
}

static void dequantize_row(void *opaque, int64_t count, char *const *data, const int64_t *steps) {
    const sb_quantize_types *types = opaque;
    float scales[CHUNK];
    int64_t values[CHUNK], zeros[CHUNK];
    for (int64_t start = 0; start < count; start += CHUNK) {
        int64_t size = count - start < CHUNK ? count - start : CHUNK;
        sb_convert_row(SB_S64, values, types->input, data[1] + start * steps[1], steps[1], size);
        sb_convert_row(SB_F32, scales, types->scale, data[2] + start * steps[2], steps[2], size);
        sb_convert_row(SB_S64, zeros, types->input, data[3] + start * steps[3], steps[3], size);
        for (int64_t i = 0; i < size; i++)
            scales[i] = sb_dequantize_value(values[i], scales[i], zeros[i]);
        store_chunk(types, data[0] + start * steps[0], steps[0], SB_F32, scales, size);
    }
}

static void dequantize_floats(void *opaque, int64_t count, char *const *data, const int64_t *steps) {
    const sb_quantize_types *types = opaque;
    float values[CHUNK], scales[CHUNK], zeros[CHUNK];
    for (int64_t start = 0; start < count; start += CHUNK) {
        int64_t size = count - start < CHUNK ? count - start : CHUNK;
        sb_convert_row(SB_F32, values, types->input, data[1] + start * steps[1], steps[1], size);
        sb_convert_row(SB_F32, scales, types->scale, data[2] + start * steps[2], steps[2], size);
        sb_convert_row(SB_F32, zeros, types->input, data[3] + start * steps[3], steps[3], size);
        for (int64_t i = 0; i < size; i++)
            values[i] = sb_dequantize_float(values[i], scales[i], zeros[i]);
        store_chunk(types, data[0] + start * steps[0], steps[0], SB_F32, values, size);
    }
}

static bool is_small_float(sb_dtype dtype) {
    return (SB_SET_SMALL_FLOAT & SB_SET(dtype)) != 0;
}

static sb_quantize_types quantized_range(sb_dtype dtype) {
    switch (dtype) {
    case SB_S4:
        return (sb_quantize_types){.output = dtype, .least = -8, .most = 7};
    case SB_U4:
        return (sb_quantize_types){.output = dtype, .least = 0, .most = 15};
    case SB_S2:
        return (sb_quantize_types){.output = dtype, .least = -2, .most = 1};
    case SB_U2:
        return (sb_quantize_types){.output = dtype, .least = 0, .most = 3};
    case SB_S8:
        return (sb_quantize_types){.output = dtype, .least = INT8_MIN, .most = INT8_MAX};
    case SB_U16:
        return (sb_quantize_types){.output = dtype, .least = 0, .most = UINT16_MAX};
    case SB_S16:
        return (sb_quantize_types){.output = dtype, .least = INT16_MIN, .most = INT16_MAX};
    default:
        return (sb_quantize_types){.output = dtype, .least = 0, .most = UINT8_MAX};
    }
}

sb_quantize_types sb_quantize_types_of(const sb_call *call) {
    const quantize_params *params = call->node->params;
    sb_quantize_types types = quantized_range(call->facts[0].dtype);
    types.input = sb_call_input(call, 0)->dtype;
    types.scale = sb_call_input(call, 1)->dtype;
    types.precision = params->precision;
    types.saturate = params->saturate != 0;
    types.has_zero = sb_call_input(call, 2) != NULL;
    return types;
}

/* The value of a constant of one element, as f32 has it; those of 16 bits and less lose nothing. */
static bool is_one_constant(const sb_fact *fact, float *value) {
    if (fact == NULL || fact->constant == NULL || fact->constant->rank > 1 || sb_tensor_elements(fact->constant) != 1)
        return false;
    sb_convert_row(SB_F32, value, fact->constant->dtype, fact->constant->data, 0, 1);
    return true;
}

/* What is known of a value that a node reads. */
static const sb_fact *fact_of(const sb_graph *graph, const sb_fact *const *inputs, sb_value_id value) {
    if (inputs == NULL)
        return &graph->values[value].fact;
    for (size_t i = 0; i < graph->input_count; i++) {
        if (graph->inputs[i] == value)
            return inputs[i];
    }
    return NULL;
}

bool sb_quantize_is_single(const sb_graph *graph, const sb_fact *const *inputs, const sb_node *node,
                           sb_quantize_single *single) {
    const bool quantizes = strcmp(node->op->name, "QuantizeLinear") == 0;
    const bool has_zero = node->input_count > 2 && node->inputs[2] != SB_NO_VALUE;
    const sb_dtype from = graph->values[node->inputs[0]].fact.dtype, to = graph->values[node->outputs[0]].fact.dtype;
    const sb_dtype integer = quantizes ? to : from;
    const sb_fact *scale = fact_of(graph, inputs, node->inputs[1]);
    float zero = 0;
    if (!(integer == SB_U8 || integer == SB_S8 || integer == SB_U16 || integer == SB_S16) ||
        (quantizes ? from : to) != SB_F32 || ((const quantize_params *)node->params)->precision != SB_F32 ||
        !is_one_constant(scale, &single->scale) || scale->dtype != SB_F32 ||
        (has_zero && !is_one_constant(fact_of(graph, inputs, node->inputs[2]), &zero)))
        return false;
    sb_quantize_types range = quantized_range(integer);
    single->zero = (int32_t)zero;
    single->least = (int32_t)range.least;
    single->most = (int32_t)range.most;
    return true;
}

static void run_rows(sb_walk_row *row, const sb_quantize_types *types, const sb_tensor *const given[4]) {
    static const int64_t nothing = 0;
    bool quantizes = row == quantize_row || row == quantize_to_floats;
    sb_tensor absent = {.dtype = quantizes ? types->output : types->input, .data = (char *)(uintptr_t)&nothing};
    const sb_tensor *operands[4] = {given[0], given[1], given[2], given[3] != NULL ? given[3] : &absent};
    sb_quantize_types copy = *types;
    sb_walk walk;
    sb_walk_start(&walk, given[0]->rank, given[0]->dims, 4, operands);
    sb_walk_run(&walk, row, &copy);
}

static sb_status quantize_part(sb_call *call, const sb_quantize_types *types, const sb_tensor *const operands[4]) {
    run_rows(is_small_float(types->output) ? quantize_to_floats : quantize_row, types, operands);
    return SB_OK;
}

static sb_status dequantize_part(sb_call *call, const sb_quantize_types *types, const sb_tensor *const operands[4]) {
    run_rows(is_small_float(types->input) ? dequantize_floats : dequantize_row, types, operands);
    return SB_OK;
}

static sb_status eval_quantize(sb_call *call) {
    return sb_quantize_parts(call, quantize_part);
}

static sb_status eval_dequantize(sb_call *call) {
    return sb_quantize_parts(call, dequantize_part);
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
        float value = SB_CONST_AT(float, data[0], steps[0], i);
        context->least = sb_min_f32(context->least, value);
        context->most = sb_max_f32(context->most, value);
    }
}

static sb_status infer_dynamic(sb_infer *infer) {
    const sb_fact *input;
    SB_TRY(sb_infer_require(infer, 0, SB_SET(SB_F32), &input));
    sb_infer_shape_of(infer, 0, input, SB_U8);
    sb_fact_set_tensor(&infer->outputs[1], SB_F32, 0, NULL);
    sb_fact_set_tensor(&infer->outputs[2], SB_U8, 0, NULL);
    return SB_OK;
}

static sb_status store_scalar(sb_call *call, int index, const void *value) {
    sb_tensor *output;
    if (!sb_call_wants(call, index))
        return SB_OK;
    SB_TRY(sb_call_output(call, index, &output));
    memcpy(output->data, value, sb_dtype_size(output->dtype));
    return SB_OK;
}

sb_status sb_quantize_store_range(sb_call *call, float least, float most, float *scale, uint8_t *zero) {
    sb_quantize_range(least, most, scale, zero);
    SB_TRY(store_scalar(call, 1, scale));
    return store_scalar(call, 2, zero);
}

static sb_status eval_dynamic(sb_call *call) {
    const sb_tensor *input = sb_call_input(call, 0);
    range_context range = {0, 0};
    sb_walk walk;
    sb_walk_start(&walk, input->rank, input->dims, 1, &input);
    sb_walk_run(&walk, range_row, &range);
    float scale;
    uint8_t zero;
    SB_TRY(sb_quantize_store_range(call, range.least, range.most, &scale, &zero));
    if (!sb_call_wants(call, 0))
        return SB_OK;
    sb_tensor *output;
    SB_TRY(sb_call_output(call, 0, &output));
    sb_quantize_types types = quantized_range(SB_U8);
    types.input = SB_F32;
    types.scale = SB_F32;
    types.precision = SB_F32;
    sb_tensor scales = {.dtype = SB_F32, .data = (char *)&scale};
    sb_tensor zeros = {.dtype = SB_U8, .data = (char *)&zero};
    run_rows(quantize_row, &types, (const sb_tensor *const[]){output, input, &scales, &zeros});
    return SB_OK;
}

/* clang-format off */
const sb_op sb_ops_quantize[] = {
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
