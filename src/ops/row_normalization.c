/* LayerNormalization, RMSNormalization, InstanceNormalization and GroupNormalization: rows brought to mean 0 and
 * variance 1, then scaled and shifted.
 *
 *     y = ((x - mean) r) scale + bias        r = 1 / sqrt(variance + epsilon)        (moments: moments.h)
 *
 * RMSNormalization:
 *
 *     y = (x r) scale                        r = 1 / sqrt(q + epsilon)               q = (sum of squares) / (float)n
 *
 * Every operation rounds once, 1 / sqrt twice. f16 and bf16 are computed in f32 and rounded once, when y is stored; f64
 * in f64, whatever stash_type says. */
#include "ops/row_normalization.h"

#include <string.h>

#include "base/allocation.h"
#include "numerics/scalar.h"
#include "ops/convert_loops.h"
#include "ops/element_type.h"
#include "ops/list.h"
#include "ops/moments.h"
#include "ops/rows.h"

enum { LAYER, RMS, INSTANCE, GROUP };

/* How a row is normalised. Element i of a row has scale and bias number (row % period) advance + i / repeat. */
typedef struct norm_context {
    float epsilon;
    bool by_rms;
    const void *scale, *bias; /* packed, of the computing type; bias may be NULL */
    int64_t period, advance, repeat;
    sb_tensor *mean, *inverse; /* row-major, one element a row; may be NULL */
} norm_context;

static void note(sb_tensor *tensor, int64_t row, sb_dtype dtype, const void *value) {
    if (tensor != NULL)
        sb_convert_row(tensor->dtype, tensor->data + row * (int64_t)sb_dtype_size(tensor->dtype), dtype, value, 0, 1);
}

void sb_norm_note_nothing(sb_tensor *tensor) {
    const double nothing = sb_nan_f64();
    for (int64_t row = 0; tensor != NULL && row < sb_tensor_elements(tensor); row++)
        note(tensor, row, SB_F64, &nothing);
}

#define NORMALIZE(type, suffix, dtype)                                                                                 \
    static void normalize_##suffix(void *opaque, int64_t row, type *values, int64_t count) {                           \
        const norm_context *context = opaque;                                                                          \
        const type *scale = context->scale, *bias = context->bias;                                                     \
        type mean = 0, variance;                                                                                       \
        if (context->by_rms)                                                                                           \
            variance = sb_div_##suffix(sb_sum_of_squares_##suffix(values, 1, count), (type)count);                     \
        else                                                                                                           \
            variance = sb_centre_row_##suffix(values, count, &mean);                                                   \
        type inverse = sb_rsqrt_##suffix(variance + (type)context->epsilon);                                           \
        note(context->mean, row, dtype, &mean);                                                                        \
        note(context->inverse, row, dtype, &inverse);                                                                  \
        int64_t first = row % context->period * context->advance;                                                      \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            int64_t at = first + i / context->repeat;                                                                  \
            type value = values[i] * inverse * scale[at];                                                              \
            values[i] = bias != NULL ? value + bias[at] : value;                                                       \
        }                                                                                                              \
    }
NORMALIZE(float, f32, SB_F32)
NORMALIZE(double, f64, SB_F64)

/* ---- attributes and facts ---- */

static sb_status prepare_norm(sb_node *node, sb_error *error) {
    sb_norm_params *params = node->params;
    SB_TRY(sb_node_float(node, "epsilon", 1e-5f, &params->epsilon, error));
    SB_TRY(sb_node_int(node, "axis", -1, &params->axis, error));
    SB_TRY(sb_node_int(node, "num_groups", 0, &params->groups, error));
    SB_TRY(sb_node_element_type(node, "stash_type", SB_F32, &params->stash, error));
    if (!sb_dtype_is_float(params->stash))
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (%s): stash_type %s is no float", node->name,
                       node->op->name, sb_dtype_name(params->stash));
    if (node->op == &sb_ops_row_normalization[GROUP] && params->groups < 1)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (%s): num_groups is %lld; it must be at least 1",
                       node->name, node->op->name, (long long)params->groups);
    return SB_OK;
}

static sb_status require_all(const sb_infer *infer, const sb_fact **input) {
    const sb_fact *other;
    for (int i = 1; i < 3; i++) {
        if (sb_infer_input(infer, i) != NULL)
            SB_TRY(sb_infer_require(infer, i, SB_SET_FLOAT, &other));
    }
    return sb_infer_require(infer, 0, SB_SET_FLOAT, input);
}

/* LayerNormalization and RMSNormalization. */
static sb_status infer_layer(sb_infer *infer) {
    const sb_norm_params *params = infer->node->params;
    const sb_fact *input;
    SB_TRY(require_all(infer, &input));
    bool rms = infer->node->op == &sb_ops_row_normalization[RMS];
    sb_infer_shape_of(infer, 0, input, rms ? infer->inputs[1]->dtype : input->dtype);
    int axis = 0;
    if (input->rank != SB_RANK_UNKNOWN)
        SB_TRY(sb_infer_axis(infer, params->axis, input->rank, &axis));
    for (int o = 1; o < infer->output_count; o++) {
        sb_dim dims[SB_MAX_RANK];
        for (int d = 0; d < input->rank; d++)
            dims[d] = d < axis ? input->dims[d] : sb_dim_constant(infer->scope, 1);
        sb_fact_set_tensor(&infer->outputs[o], params->stash, input->rank, dims);
    }
    return SB_OK;
}

static sb_status infer_channels(sb_infer *infer) {
    const sb_fact *input;
    SB_TRY(require_all(infer, &input));
    if (input->rank != SB_RANK_UNKNOWN && input->rank < 2)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "input 0 has rank %d where N, C, … is expected", input->rank);
    sb_infer_shape_of(infer, 0, input, input->dtype);
    return SB_OK;
}

/* ---- evaluation ---- */

static sb_status transform(sb_call *call, const sb_tensor *from, const sb_tensor *to, uint32_t inner, sb_dtype computed,
                           norm_context *context) {
    sb_rows from_rows, to_rows;
    sb_rows_start(&from_rows, from, inner);
    sb_rows_start(&to_rows, to, inner);
    context->epsilon = ((const sb_norm_params *)call->node->params)->epsilon;
    return sb_rows_transform(&from_rows, &to_rows, computed, normalize_f32, normalize_f64, context, call->error);
}

/* A borrowed view of `tensor` broadcast to the dimensions of `like`; false where it does not fit.
 * Dimensions before `first` that it repeats along are left out. */
static bool broadcast_to(const sb_tensor *tensor, const sb_tensor *like, int first, sb_tensor *view) {
    int missing = like->rank - tensor->rank;
    memcpy(view, tensor, sizeof *view);
    if (missing < 0)
        return false;
    bool repeats = true;
    view->rank = like->rank;
    for (int d = 0; d < like->rank; d++) {
        int64_t extent = d < missing ? 1 : tensor->dims[d - missing];
        if (extent != 1 && extent != like->dims[d])
            return false;
        view->dims[d] = like->dims[d];
        view->strides[d] = extent == 1 ? 0 : tensor->strides[d - missing];
        repeats = repeats && (d >= first || extent == 1);
    }
    for (int d = 0; d < first && repeats; d++)
        view->dims[d] = 1;
    return true;
}

/* Scale or bias of LayerNormalization as packed values, one per element of a row, or one per
 * element of the input where it differs from row to row (*every). */
static sb_status load_layer_factor(sb_call *call, int index, int axis, sb_dtype computed, bool every, void **values) {
    const sb_tensor *input = sb_call_input(call, 0), *factor = sb_call_input(call, index);
    sb_tensor view;
    if (factor == NULL)
        return SB_OK;
    if (!broadcast_to(factor, input, every ? 0 : axis, &view)) {
        char given[SB_DIMS_TEXT_BYTES], shape[SB_DIMS_TEXT_BYTES];
        return sb_call_fail(call, SB_ERROR_SHAPE, "input %d of shape %s does not broadcast to %s", index,
                            sb_dims_text(factor->rank, factor->dims, given),
                            sb_dims_text(input->rank, input->dims, shape));
    }
    return sb_load_all(&view, computed, values, call->error);
}

static bool varies(const sb_tensor *factor, const sb_tensor *input, int axis) {
    if (factor == NULL)
        return false;
    for (int d = 0; d < factor->rank - (input->rank - axis); d++) {
        if (factor->dims[d] != 1)
            return true;
    }
    return false;
}

static sb_status eval_layer(sb_call *call) {
    const sb_norm_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    int axis = (int)(params->axis < 0 ? params->axis + input->rank : params->axis);
    int64_t count = 1, length = 1;
    for (int d = 0; d < input->rank; d++)
        *(d < axis ? &count : &length) *= input->dims[d];
    bool every = varies(sb_call_input(call, 1), input, axis) || varies(sb_call_input(call, 2), input, axis);
    sb_dtype computed = sb_computing_dtype(input->dtype);
    norm_context context = {.by_rms = call->node->op == &sb_ops_row_normalization[RMS],
                            .period = every && count != 0 ? count : 1,
                            .advance = length,
                            .repeat = 1};
    sb_tensor *outputs[3] = {NULL};
    for (int o = 0; o < 3; o++) {
        if (sb_call_wants(call, o))
            SB_TRY(sb_call_output(call, o, &outputs[o]));
    }
    context.mean = outputs[1];
    context.inverse = outputs[2];
    if (length == 0) {
        sb_norm_note_nothing(outputs[1]);
        sb_norm_note_nothing(outputs[2]);
    }
    /* Somebody may want the moments alone. */
    sb_tensor *spare = NULL;
    if (outputs[0] == NULL) {
        SB_TRY(sb_tensor_create_uninitialised(input->dtype, input->rank, input->dims, &spare, call->error));
        outputs[0] = spare;
    }
    void *scale = NULL, *bias = NULL;
    sb_status status = load_layer_factor(call, 1, axis, computed, every, &scale);
    if (status == SB_OK)
        status = load_layer_factor(call, 2, axis, computed, every, &bias);
    context.scale = scale;
    context.bias = bias;
    uint32_t inner = ((UINT32_C(1) << input->rank) - 1) & ~((UINT32_C(1) << axis) - 1);
    if (status == SB_OK)
        status = transform(call, input, outputs[0], inner, computed, &context);
    sb_tensor_release(spare);
    sb_free(scale);
    sb_free(bias);
    return status;
}

/* Scale and bias with `expected` values each. */
static sb_status load_channel_factors(sb_call *call, int64_t expected, sb_dtype computed, void **scale, void **bias) {
    for (int i = 1; i < 3; i++) {
        const sb_tensor *factor = sb_call_input(call, i);
        if (factor->rank != 1 || factor->dims[0] != expected)
            return sb_call_fail(call, SB_ERROR_SHAPE, "input %d must be a list of %lld values", i, (long long)expected);
    }
    SB_TRY(sb_load_all(sb_call_input(call, 1), computed, scale, call->error));
    return sb_load_all(sb_call_input(call, 2), computed, bias, call->error);
}

void sb_norm_split_channels(const sb_tensor *tensor, int64_t groups, sb_tensor *split) {
    memcpy(split, tensor, sizeof *split);
    for (int d = tensor->rank; d > 2; d--) {
        split->dims[d] = tensor->dims[d - 1];
        split->strides[d] = tensor->strides[d - 1];
    }
    split->rank = tensor->rank + 1;
    split->dims[1] = groups;
    split->dims[2] = tensor->dims[1] / groups;
    split->strides[1] = tensor->strides[1] * split->dims[2];
    split->strides[2] = tensor->strides[1];
}

/* InstanceNormalization is GroupNormalization with groups of one channel. */
static sb_status eval_groups(sb_call *call) {
    const sb_norm_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    bool instance = call->node->op == &sb_ops_row_normalization[INSTANCE];
    int64_t channels = input->dims[1], groups = instance ? channels : params->groups;
    sb_dtype computed = sb_computing_dtype(input->dtype);
    sb_tensor *output, split[2];
    SB_TRY(sb_call_output(call, 0, &output));
    if (sb_tensor_elements(input) == 0)
        return SB_OK;
    if (channels % groups != 0 || input->rank == SB_MAX_RANK)
        return sb_call_fail(call, SB_ERROR_SHAPE, "%lld channels do not split into %lld groups", (long long)channels,
                            (long long)groups);
    sb_norm_split_channels(input, groups, &split[0]);
    sb_norm_split_channels(output, groups, &split[1]);
    int64_t spatial = 1;
    for (int d = 2; d < input->rank; d++)
        spatial *= input->dims[d];
    /* Before operator set 21 a group has one scale and one bias. */
    bool by_group = !instance && call->node->version < 21;
    int64_t in_group = channels / groups;
    norm_context context = {
        .period = groups, .advance = by_group ? 1 : in_group, .repeat = by_group ? in_group * spatial : spatial};
    void *scale = NULL, *bias = NULL;
    sb_status status = load_channel_factors(call, by_group ? groups : channels, computed, &scale, &bias);
    context.scale = scale;
    context.bias = bias;
    uint32_t inner = ((UINT32_C(1) << split[0].rank) - 1) & ~UINT32_C(3);
    if (status == SB_OK)
        status = transform(call, &split[0], &split[1], inner, computed, &context);
    sb_free(scale);
    sb_free(bias);
    return status;
}

/* clang-format off */
const sb_op sb_ops_row_normalization[] = {
    [LAYER] = {.name = "LayerNormalization", .domain = "", .least_inputs = 2, .most_inputs = 3,
               .least_outputs = 1, .most_outputs = 3, .params_size = sizeof(sb_norm_params),
               .prepare = prepare_norm, .infer = infer_layer, .eval = eval_layer},
    [RMS] = {.name = "RMSNormalization", .domain = "", .least_inputs = 2, .most_inputs = 2,
             .least_outputs = 1, .most_outputs = 1, .params_size = sizeof(sb_norm_params),
             .prepare = prepare_norm, .infer = infer_layer, .eval = eval_layer},
    [INSTANCE] = {.name = "InstanceNormalization", .domain = "", .least_inputs = 3,
                  .most_inputs = 3, .least_outputs = 1, .most_outputs = 1,
                  .params_size = sizeof(sb_norm_params), .prepare = prepare_norm,
                  .infer = infer_channels, .eval = eval_groups},
    [GROUP] = {.name = "GroupNormalization", .domain = "", .least_inputs = 3, .most_inputs = 3,
               .least_outputs = 1, .most_outputs = 1, .params_size = sizeof(sb_norm_params),
               .prepare = prepare_norm, .infer = infer_channels, .eval = eval_groups},
    {0},
};
/* clang-format on */
