/* ConvInteger and QLinearConv: exact sums modulo 2^32 of products of 8-bit integers less their zero points; the padding
 * holds the zero point of the input.
 *
 * QLinearConv's element of channel c is
 *
 *     round((f32)(sum + bias[c]) * ((x_scale * w_scale[c]) / y_scale)) + y_zero_point
 *
 * saturated; each of the three float operations rounds once. */
#include <string.h>

#include "base/allocation.h"
#include "ops/contraction.h"
#include "ops/convolution.h"
#include "ops/list.h"
#include "ops/quantized.h"

/* Checks a scale or zero point: one number, or (for the weights) one per output channel. */
static sb_status check_scale(const sb_infer *infer, int index, uint32_t dtypes, sb_dim channels) {
    const sb_fact *fact;
    int64_t have, want;
    if (sb_infer_input(infer, index) == NULL)
        return SB_OK;
    SB_TRY(sb_infer_require(infer, index, dtypes, &fact));
    if (fact->rank == SB_RANK_UNKNOWN || fact->rank == 0)
        return SB_OK;
    bool known = sb_dim_is_constant(fact->dims[0], &have);
    if (fact->rank == 1 && (!known || have == 1))
        return SB_OK;
    if (fact->rank == 1 && channels != NULL && (!sb_dim_is_constant(channels, &want) || have == want))
        return SB_OK;
    return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d is neither one number%s", index,
                         channels != NULL ? " nor one per output channel" : "");
}

/* Element `index` of a list, or its only element. */
static int64_t list_offset(const sb_tensor *list, int64_t index) {
    return list->rank == 0 || list->dims[0] == 1 ? 0 : index * list->strides[0];
}

static float scale_at(const sb_tensor *scale, int64_t channel) {
    return ((const float *)(const void *)scale->data)[list_offset(scale, channel)];
}

/* ---- the integer convolution ---- */

/* The zero point of the weights as [M, 1, …], which broadcasts to their shape. */
static sb_status weight_zero_points(sb_tensor *zero, const sb_tensor *w, sb_tensor **aligned, sb_error *error) {
    if (zero == NULL || zero->rank == 0) {
        *aligned = sb_tensor_retain(zero);
        return SB_OK;
    }
    int64_t dims[SB_MAX_RANK] = {zero->dims[0]};
    for (int d = 1; d < w->rank; d++)
        dims[d] = 1;
    return sb_tensor_reshape(zero, w->rank, dims, aligned, error);
}

static sb_status convolve(sb_call *call, const sb_conv_extents *shape, sb_tensor *x, sb_tensor *w, sb_tensor *x_zero,
                          sb_tensor *w_zero, sb_conv_store *store, void *context) {
    size_t x_elements = (size_t)sb_tensor_elements(x), w_elements = (size_t)sb_tensor_elements(w);
    int64_t x_strides[SB_MAX_RANK], w_strides[SB_MAX_RANK];
    sb_row_major_strides(x->rank, x->dims, x_strides);
    sb_row_major_strides(w->rank, w->dims, w_strides);
    int32_t *wide_x = sb_allocate_array(x_elements, sizeof *wide_x);
    int32_t *wide_w = sb_allocate_array(w_elements, sizeof *wide_w);
    sb_tensor *aligned = NULL;
    sb_status status = SB_OK;
    if (wide_x == NULL || wide_w == NULL)
        status = sb_fail_memory(call->error, (x_elements + w_elements) * sizeof *wide_x);
    if (status == SB_OK)
        status = weight_zero_points(w_zero, w, &aligned, call->error);
    if (status == SB_OK)
        status = sb_quantized_widen(x, x_zero, wide_x, call->error);
    if (status == SB_OK)
        status = sb_quantized_widen(w, aligned, wide_w, call->error);
    if (status == SB_OK)
        status = sb_conv_reference(shape, SB_S32, (sb_conv_operand){wide_x, x_strides},
                                   (sb_conv_operand){wide_w, w_strides}, store, context, call->error);
    sb_tensor_release(aligned);
    sb_free(wide_x);
    sb_free(wide_w);
    return status;
}

static sb_status infer_conv_integer(sb_infer *infer) {
    const sb_fact *x, *w;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_QUANTIZED, &x));
    SB_TRY(sb_infer_require(infer, 1, SB_SET_QUANTIZED, &w));
    SB_TRY(sb_conv_infer(infer, x, w, SB_S32));
    sb_dim channels = w->rank != SB_RANK_UNKNOWN ? w->dims[0] : NULL;
    SB_TRY(check_scale(infer, 2, SB_SET(x->dtype), NULL));
    return check_scale(infer, 3, SB_SET(w->dtype), channels);
}

typedef struct integer_output {
    const sb_conv_extents *shape;
    sb_tensor *y;
    /* QLinearConv only. */
    const sb_tensor *x_scale, *w_scale, *y_scale, *y_zero, *bias;
} integer_output;

static int64_t first_element(const integer_output *output, int64_t batch, int64_t channel, int64_t position) {
    return (batch * output->y->dims[1] + channel) * output->shape->positions + position;
}

static void store_sums(void *context, int64_t batch, int64_t channel, int64_t position, void *sums) {
    const integer_output *output = context;
    int64_t first = first_element(output, batch, channel, position);
    sb_contraction_store(SB_S32, output->shape->group_outputs, sums, output->y->data + first * (int64_t)sizeof(int32_t),
                         output->shape->positions);
}

static sb_status eval_conv_integer(sb_call *call) {
    sb_tensor *x = sb_call_input(call, 0), *w = sb_call_input(call, 1), *y;
    sb_conv_extents shape;
    SB_TRY(sb_call_output(call, 0, &y));
    sb_conv_extents_of(call->node->params, x, w, y->dims, &shape);
    integer_output output = {.shape = &shape, .y = y};
    return convolve(call, &shape, x, w, sb_call_input(call, 2), sb_call_input(call, 3), store_sums, &output);
}

enum { X, X_SCALE, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, BIAS };

static sb_status infer_qlinear_conv(sb_infer *infer) {
    const sb_fact *x, *w, *y_zero;
    SB_TRY(sb_infer_require(infer, X, SB_SET_QUANTIZED, &x));
    SB_TRY(sb_infer_require(infer, W, SB_SET_QUANTIZED, &w));
    SB_TRY(sb_infer_require(infer, Y_ZERO, SB_SET_QUANTIZED, &y_zero));
    SB_TRY(sb_conv_infer(infer, x, w, y_zero->dtype));
    sb_dim channels = w->rank != SB_RANK_UNKNOWN ? w->dims[0] : NULL;
    SB_TRY(check_scale(infer, X_SCALE, SB_SET(SB_F32), NULL));
    SB_TRY(check_scale(infer, X_ZERO, SB_SET(x->dtype), NULL));
    SB_TRY(check_scale(infer, W_SCALE, SB_SET(SB_F32), channels));
    SB_TRY(check_scale(infer, W_ZERO, SB_SET(w->dtype), channels));
    SB_TRY(check_scale(infer, Y_SCALE, SB_SET(SB_F32), NULL));
    SB_TRY(check_scale(infer, Y_ZERO, SB_SET(y_zero->dtype), NULL));
    return sb_conv_infer_bias(infer, BIAS, SB_S32, channels);
}

static void store_rescaled(void *context, int64_t batch, int64_t channel, int64_t position, void *sums) {
    const integer_output *output = context;
    int64_t at = first_element(output, batch, channel, position);
    int32_t zero = sb_quantized_load(output->y->dtype, output->y_zero->data, 0);
    float x_scale = scale_at(output->x_scale, 0), y_scale = scale_at(output->y_scale, 0);
    for (int64_t i = 0; i < output->shape->group_outputs; i++) {
        uint32_t sum = ((const uint32_t *)sums)[i];
        if (output->bias != NULL)
            sum += ((const uint32_t *)(const void *)output->bias->data)[(channel + i) * output->bias->strides[0]];
        float multiplier = (x_scale * scale_at(output->w_scale, channel + i)) / y_scale;
        sb_quantized_store(output->y->data, at + i * output->shape->positions,
                           sb_quantized_rescale(output->y->dtype, (int32_t)sum, multiplier, zero));
    }
}

static sb_status eval_qlinear_conv(sb_call *call) {
    sb_tensor *x = sb_call_input(call, X), *w = sb_call_input(call, W), *y;
    sb_conv_extents shape;
    SB_TRY(sb_call_output(call, 0, &y));
    sb_conv_extents_of(call->node->params, x, w, y->dims, &shape);
    integer_output output = {.shape = &shape,
                             .y = y,
                             .x_scale = sb_call_input(call, X_SCALE),
                             .w_scale = sb_call_input(call, W_SCALE),
                             .y_scale = sb_call_input(call, Y_SCALE),
                             .y_zero = sb_call_input(call, Y_ZERO),
                             .bias = sb_call_input(call, BIAS)};
    return convolve(call, &shape, x, w, sb_call_input(call, X_ZERO), sb_call_input(call, W_ZERO), store_rescaled,
                    &output);
}

const sb_op sb_ops_convolution_integer[] = {
    {.name = "ConvInteger",
     .domain = "",
     .least_inputs = 2,
     .most_inputs = 4,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(sb_conv_params),
     .prepare = sb_conv_prepare,
     .infer = infer_conv_integer,
     .eval = eval_conv_integer},
    {.name = "QLinearConv",
     .domain = "",
     .least_inputs = 8,
     .most_inputs = 9,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(sb_conv_params),
     .prepare = sb_conv_prepare,
     .infer = infer_qlinear_conv,
     .eval = eval_qlinear_conv},
    {0},
};
