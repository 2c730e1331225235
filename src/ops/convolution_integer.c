/* ConvInteger and QLinearConv: exact sums modulo 2^32 of products of 8-bit integers less their zero
 * points; the padding holds the zero point of the input.
 *
 * QLinearConv's element of channel c is round((f32)(sum + bias[c]) * ((x_scale * w_scale[c]) /
 * y_scale))
 * + y_zero_point, saturated; each of the three float operations rounds once. */
#include <string.h>

#include "base/allocation.h"
#include "ops/contraction.h"
#include "ops/convolution.h"
#include "ops/list.h"
#include "ops/quantized.h"

/* Checks a scale or zero point: one number, or (for the weights) one per output channel. */
static iv_status check_scale(const iv_infer *infer, int index, uint32_t dtypes, iv_dim channels) {
    const iv_fact *fact;
    int64_t have, want;
    if (iv_infer_input(infer, index) == NULL)
        return IV_OK;
    IV_TRY(iv_infer_require(infer, index, dtypes, &fact));
    if (fact->rank == IV_RANK_UNKNOWN || fact->rank == 0)
        return IV_OK;
    bool known = iv_dim_is_constant(fact->dims[0], &have);
    if (fact->rank == 1 && (!known || have == 1))
        return IV_OK;
    if (fact->rank == 1 && channels != NULL &&
        (!iv_dim_is_constant(channels, &want) || have == want))
        return IV_OK;
    return iv_infer_fail(infer, IV_ERROR_SHAPE, "input %d is neither one number%s", index,
                         channels != NULL ? " nor one per output channel" : "");
}

/* Element `index` of a list, or its only element. */
static int64_t list_offset(const iv_tensor *list, int64_t index) {
    return list->rank == 0 || list->dims[0] == 1 ? 0 : index * list->strides[0];
}

static float scale_at(const iv_tensor *scale, int64_t channel) {
    return ((const float *)(const void *)scale->data)[list_offset(scale, channel)];
}

/* ---- the integer convolution ---- */

/* The zero point of the weights as [M, 1, …], which broadcasts to their shape. */
static iv_status weight_zero_points(iv_tensor *zero, const iv_tensor *w, iv_tensor **aligned,
                                    iv_error *error) {
    if (zero == NULL || zero->rank == 0) {
        *aligned = iv_tensor_retain(zero);
        return IV_OK;
    }
    int64_t dims[IV_MAX_RANK] = {zero->dims[0]};
    for (int d = 1; d < w->rank; d++)
        dims[d] = 1;
    return iv_tensor_reshape(zero, w->rank, dims, aligned, error);
}

static iv_status convolve(iv_call *call, const iv_conv_extents *shape, iv_tensor *x, iv_tensor *w,
                          iv_tensor *x_zero, iv_tensor *w_zero, iv_conv_finish *finish,
                          void *context) {
    size_t x_elements = (size_t)iv_tensor_elements(x), w_elements = (size_t)iv_tensor_elements(w);
    int64_t x_strides[IV_MAX_RANK], w_strides[IV_MAX_RANK];
    iv_row_major_strides(x->rank, x->dims, x_strides);
    iv_row_major_strides(w->rank, w->dims, w_strides);
    int32_t *wide_x = iv_allocate_array(x_elements, sizeof *wide_x);
    int32_t *wide_w = iv_allocate_array(w_elements, sizeof *wide_w);
    iv_tensor *aligned = NULL;
    iv_status status = IV_OK;
    if (wide_x == NULL || wide_w == NULL)
        status = iv_fail_memory(call->error, (x_elements + w_elements) * sizeof *wide_x);
    if (status == IV_OK)
        status = weight_zero_points(w_zero, w, &aligned, call->error);
    if (status == IV_OK)
        status = iv_quantized_widen(x, x_zero, wide_x, call->error);
    if (status == IV_OK)
        status = iv_quantized_widen(w, aligned, wide_w, call->error);
    if (status == IV_OK)
        status =
            iv_conv_reference(shape, IV_S32, (iv_conv_operand){wide_x, x_strides},
                              (iv_conv_operand){wide_w, w_strides}, finish, context, call->error);
    iv_tensor_release(aligned);
    iv_free(wide_x);
    iv_free(wide_w);
    return status;
}

static iv_status infer_conv_integer(iv_infer *infer) {
    const iv_fact *x, *w;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_QUANTIZED, &x));
    IV_TRY(iv_infer_require(infer, 1, IV_SET_QUANTIZED, &w));
    IV_TRY(iv_conv_infer(infer, x, w, IV_S32));
    iv_dim channels = w->rank != IV_RANK_UNKNOWN ? w->dims[0] : NULL;
    IV_TRY(check_scale(infer, 2, IV_SET(x->dtype), NULL));
    return check_scale(infer, 3, IV_SET(w->dtype), channels);
}

typedef struct integer_output {
    const iv_conv_extents *shape;
    iv_tensor *y;
    /* QLinearConv only. */
    const iv_tensor *x_scale, *w_scale, *y_scale, *y_zero, *bias;
} integer_output;

static int64_t first_element(const integer_output *output, int64_t batch, int64_t channel,
                             int64_t position) {
    return (batch * output->y->dims[1] + channel) * output->shape->positions + position;
}

static void store_sums(void *context, int64_t batch, int64_t channel, int64_t position,
                       void *sums) {
    const integer_output *output = context;
    int64_t first = first_element(output, batch, channel, position);
    iv_contraction_store(IV_S32, output->shape->group_outputs, sums,
                         output->y->data + first * (int64_t)sizeof(int32_t),
                         output->shape->positions);
}

static iv_status eval_conv_integer(iv_call *call) {
    iv_tensor *x = iv_call_input(call, 0), *w = iv_call_input(call, 1), *y;
    iv_conv_extents shape;
    IV_TRY(iv_call_output(call, 0, &y));
    iv_conv_extents_of(call->node->params, x, w, y->dims, &shape);
    integer_output output = {.shape = &shape, .y = y};
    return convolve(call, &shape, x, w, iv_call_input(call, 2), iv_call_input(call, 3), store_sums,
                    &output);
}

enum { X, X_SCALE, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, BIAS };

static iv_status infer_qlinear_conv(iv_infer *infer) {
    const iv_fact *x, *w, *y_zero;
    IV_TRY(iv_infer_require(infer, X, IV_SET_QUANTIZED, &x));
    IV_TRY(iv_infer_require(infer, W, IV_SET_QUANTIZED, &w));
    IV_TRY(iv_infer_require(infer, Y_ZERO, IV_SET_QUANTIZED, &y_zero));
    IV_TRY(iv_conv_infer(infer, x, w, y_zero->dtype));
    iv_dim channels = w->rank != IV_RANK_UNKNOWN ? w->dims[0] : NULL;
    IV_TRY(check_scale(infer, X_SCALE, IV_SET(IV_F32), NULL));
    IV_TRY(check_scale(infer, X_ZERO, IV_SET(x->dtype), NULL));
    IV_TRY(check_scale(infer, W_SCALE, IV_SET(IV_F32), channels));
    IV_TRY(check_scale(infer, W_ZERO, IV_SET(w->dtype), channels));
    IV_TRY(check_scale(infer, Y_SCALE, IV_SET(IV_F32), NULL));
    IV_TRY(check_scale(infer, Y_ZERO, IV_SET(y_zero->dtype), NULL));
    return iv_conv_infer_bias(infer, BIAS, IV_S32, channels);
}

static void store_rescaled(void *context, int64_t batch, int64_t channel, int64_t position,
                           void *sums) {
    const integer_output *output = context;
    int64_t at = first_element(output, batch, channel, position);
    int32_t zero = iv_quantized_load(output->y->dtype, output->y_zero->data, 0);
    float x_scale = scale_at(output->x_scale, 0), y_scale = scale_at(output->y_scale, 0);
    for (int64_t i = 0; i < output->shape->group_outputs; i++) {
        uint32_t sum = ((const uint32_t *)sums)[i];
        if (output->bias != NULL)
            sum += ((const uint32_t *)(const void *)
                        output->bias->data)[(channel + i) * output->bias->strides[0]];
        float multiplier = (x_scale * scale_at(output->w_scale, channel + i)) / y_scale;
        iv_quantized_store(output->y->data, at + i * output->shape->positions,
                           iv_quantized_rescale(output->y->dtype, (int32_t)sum, multiplier, zero));
    }
}

static iv_status eval_qlinear_conv(iv_call *call) {
    iv_tensor *x = iv_call_input(call, X), *w = iv_call_input(call, W), *y;
    iv_conv_extents shape;
    IV_TRY(iv_call_output(call, 0, &y));
    iv_conv_extents_of(call->node->params, x, w, y->dims, &shape);
    integer_output output = {.shape = &shape,
                             .y = y,
                             .x_scale = iv_call_input(call, X_SCALE),
                             .w_scale = iv_call_input(call, W_SCALE),
                             .y_scale = iv_call_input(call, Y_SCALE),
                             .y_zero = iv_call_input(call, Y_ZERO),
                             .bias = iv_call_input(call, BIAS)};
    return convolve(call, &shape, x, w, iv_call_input(call, X_ZERO), iv_call_input(call, W_ZERO),
                    store_rescaled, &output);
}

const iv_op iv_ops_convolution_integer[] = {
    {.name = "ConvInteger",
     .domain = "",
     .least_inputs = 2,
     .most_inputs = 4,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(iv_conv_params),
     .prepare = iv_conv_prepare,
     .infer = infer_conv_integer,
     .eval = eval_conv_integer},
    {.name = "QLinearConv",
     .domain = "",
     .least_inputs = 8,
     .most_inputs = 9,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(iv_conv_params),
     .prepare = iv_conv_prepare,
     .infer = infer_qlinear_conv,
     .eval = eval_qlinear_conv},
    {0},
};
