/* RNN, GRU and LSTM: attributes and facts. The evaluation is in recurrent_eval.c. */
#include "ops/recurrent.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "ops/list.h"
#include "ops/recurrent_eval.h"

/* ---- attributes ---- */

static const struct {
    const char *name;
    bool takes_alpha, takes_beta;
    float alpha, beta; /* when the model gives none */
} activation_table[IV_ACTIVATION_COUNT] = {
    [IV_ACTIVATION_AFFINE] = {"Affine", true, true, 1, 0},
    [IV_ACTIVATION_ELU] = {"Elu", true, false, 1, 0},
    [IV_ACTIVATION_HARD_SIGMOID] = {"HardSigmoid", true, true, 0.2f, 0.5f},
    [IV_ACTIVATION_LEAKY_RELU] = {"LeakyRelu", true, false, 0.01f, 0},
    [IV_ACTIVATION_RELU] = {"Relu", false, false, 0, 0},
    [IV_ACTIVATION_SCALED_TANH] = {"ScaledTanh", true, true, 1, 1},
    [IV_ACTIVATION_SIGMOID] = {"Sigmoid", false, false, 0, 0},
    [IV_ACTIVATION_SOFTPLUS] = {"Softplus", false, false, 0, 0},
    [IV_ACTIVATION_SOFTSIGN] = {"Softsign", false, false, 0, 0},
    [IV_ACTIVATION_TANH] = {"Tanh", false, false, 0, 0},
    [IV_ACTIVATION_THRESHOLDED_RELU] = {"ThresholdedRelu", true, false, 1, 0},
};

static iv_status find_activation(const iv_node *node, const char *name, iv_activation_kind *kind,
                                 iv_error *error) {
    for (int i = 0; i < IV_ACTIVATION_COUNT; i++) {
        if (strcasecmp(name, activation_table[i].name) == 0) {
            *kind = (iv_activation_kind)i;
            return IV_OK;
        }
    }
    return iv_fail(error, IV_ERROR_INVALID_MODEL,
                   "node %s (%s): there is no activation \"%.40s\" in the standard", node->name,
                   node->op->name, name);
}

/* Alphas and betas are handed out in order to those activations that take one. */
static iv_status read_activations(const iv_node *node, iv_recurrent_params *params,
                                  iv_error *error) {
    static const iv_activation_kind defaults[3][3] = {
        [IV_RECURRENT_RNN] = {IV_ACTIVATION_TANH},
        [IV_RECURRENT_GRU] = {IV_ACTIVATION_SIGMOID, IV_ACTIVATION_TANH},
        [IV_RECURRENT_LSTM] = {IV_ACTIVATION_SIGMOID, IV_ACTIVATION_TANH, IV_ACTIVATION_TANH}};
    const iv_attribute *names = iv_attributes_find(&node->attributes, "activations");
    int64_t alpha_count, beta_count, alpha = 0, beta = 0;
    const float *alphas, *betas;
    IV_TRY(iv_node_floats(node, "activation_alpha", &alpha_count, &alphas, error));
    IV_TRY(iv_node_floats(node, "activation_beta", &beta_count, &betas, error));
    int wanted = params->functions * params->directions;
    if (names != NULL && names->count != 0 &&
        (names->kind != IV_ATTRIBUTE_STRINGS || names->count < wanted))
        return iv_fail(error, IV_ERROR_INVALID_MODEL,
                       "node %s (%s): activations must list %d names", node->name, node->op->name,
                       wanted);
    for (int i = 0; i < wanted; i++) {
        int direction = i / params->functions, function = i % params->functions;
        iv_activation *activation = &params->activations[direction][function];
        activation->kind = defaults[params->kind][function];
        if (names != NULL && names->count != 0)
            IV_TRY(find_activation(node, names->strings[i], &activation->kind, error));
        activation->alpha = activation_table[activation->kind].alpha;
        activation->beta = activation_table[activation->kind].beta;
        if (activation_table[activation->kind].takes_alpha && alpha < alpha_count)
            activation->alpha = alphas[alpha++];
        if (activation_table[activation->kind].takes_beta && beta < beta_count)
            activation->beta = betas[beta++];
    }
    return IV_OK;
}

static iv_status read_direction(const iv_node *node, iv_recurrent_params *params, iv_error *error) {
    const char *direction;
    IV_TRY(iv_node_string(node, "direction", "forward", &direction, error));
    params->directions = 1;
    if (strcasecmp(direction, "reverse") == 0)
        params->backward = true;
    else if (strcasecmp(direction, "bidirectional") == 0)
        params->directions = 2;
    else if (strcasecmp(direction, "forward") != 0)
        return iv_fail(error, IV_ERROR_INVALID_MODEL,
                       "node %s (%s): direction is \"%.40s\"; it is forward, reverse or "
                       "bidirectional",
                       node->name, node->op->name, direction);
    return IV_OK;
}

static iv_status prepare_recurrent(iv_node *node, iv_error *error) {
    iv_recurrent_params *params = node->params;
    int64_t layout, input_forget, linear_before_reset;
    params->kind = strcmp(node->op->name, "LSTM") == 0  ? IV_RECURRENT_LSTM
                   : strcmp(node->op->name, "GRU") == 0 ? IV_RECURRENT_GRU
                                                        : IV_RECURRENT_RNN;
    params->gates = (int[]){1, 3, 4}[params->kind];
    params->functions = (int[]){1, 2, 3}[params->kind];
    IV_TRY(read_direction(node, params, error));
    IV_TRY(read_activations(node, params, error));
    IV_TRY(iv_node_int(node, "hidden_size", 0, &params->hidden, error));
    IV_TRY(iv_node_int(node, "layout", 0, &layout, error));
    IV_TRY(iv_node_int(node, "input_forget", 0, &input_forget, error));
    IV_TRY(iv_node_int(node, "linear_before_reset", 0, &linear_before_reset, error));
    IV_TRY(iv_node_float(node, "clip", 0, &params->clip, error));
    params->batch_first = layout != 0;
    params->input_forget = input_forget != 0;
    params->linear_before_reset = linear_before_reset != 0;
    params->clips = iv_node_has(node, "clip");
    if (params->hidden < 0 || params->hidden > INT32_MAX || layout < 0 || layout > 1 ||
        (params->clips && !(params->clip > 0)))
        return iv_fail(
            error, IV_ERROR_INVALID_MODEL,
            "node %s (%s): hidden_size %lld, layout %lld and clip %g must be positive, 0 "
            "or 1, and positive",
            node->name, node->op->name, (long long)params->hidden, (long long)layout,
            (double)params->clip);
    return IV_OK;
}

/* ---- facts ---- */

/* Checks that input `index`, if it is there, has these extents (NULL: not known). */
static iv_status check_shape(const iv_infer *infer, int index, uint32_t dtypes, int rank,
                             const iv_dim *dims) {
    const iv_fact *fact;
    if (iv_infer_input(infer, index) == NULL)
        return IV_OK;
    IV_TRY(iv_infer_require(infer, index, dtypes, &fact));
    if (fact->rank == IV_RANK_UNKNOWN)
        return IV_OK;
    if (fact->rank != rank)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "input %d has rank %d where %d is expected",
                             index, fact->rank, rank);
    for (int d = 0; d < rank; d++) {
        int64_t have, want;
        if (dims[d] != NULL && iv_dim_is_constant(dims[d], &want) &&
            iv_dim_is_constant(fact->dims[d], &have) && have != want)
            return iv_infer_fail(infer, IV_ERROR_SHAPE,
                                 "input %d has extent %lld in dimension %d where %lld is expected",
                                 index, (long long)have, d, (long long)want);
    }
    return IV_OK;
}

/* The number of state elements: from the attribute, R, W, or an initial state. */
static iv_dim hidden_extent(iv_infer *infer, const iv_fact *w, const iv_fact *r) {
    const iv_recurrent_params *params = infer->node->params;
    const iv_fact *initial = iv_infer_input(infer, IV_RECURRENT_H);
    if (params->hidden != 0)
        return iv_dim_constant(infer->scope, params->hidden);
    if (r->rank == 3)
        return r->dims[2];
    if (w->rank == 3)
        return iv_dim_floor_divide(infer->scope, w->dims[1],
                                   iv_dim_constant(infer->scope, params->gates));
    if (initial != NULL && initial->rank == 3)
        return initial->dims[2];
    return iv_infer_fresh(infer, 0, 3);
}

static iv_status check_inputs(iv_infer *infer, iv_dtype dtype, iv_dim batch, iv_dim inputs,
                              iv_dim hidden) {
    const iv_recurrent_params *params = infer->node->params;
    iv_scope *scope = infer->scope;
    iv_dim directions = iv_dim_constant(scope, params->directions);
    iv_dim rows = iv_dim_multiply(scope, hidden, iv_dim_constant(scope, params->gates));
    iv_dim w[] = {directions, rows, inputs}, r[] = {directions, rows, hidden};
    iv_dim b[] = {directions, iv_dim_multiply(scope, rows, iv_dim_constant(scope, 2))};
    iv_dim p[] = {directions, iv_dim_multiply(scope, hidden, iv_dim_constant(scope, 3))};
    iv_dim state[] = {params->batch_first ? batch : directions,
                      params->batch_first ? directions : batch, hidden};
    uint32_t set = IV_SET(dtype);
    IV_TRY(check_shape(infer, IV_RECURRENT_W, set, 3, w));
    IV_TRY(check_shape(infer, IV_RECURRENT_R, set, 3, r));
    IV_TRY(check_shape(infer, IV_RECURRENT_B, set, 2, b));
    IV_TRY(check_shape(infer, IV_RECURRENT_LENGTHS, IV_SET(IV_S32), 1, &batch));
    IV_TRY(check_shape(infer, IV_RECURRENT_H, set, 3, state));
    if (params->kind != IV_RECURRENT_LSTM)
        return IV_OK;
    IV_TRY(check_shape(infer, IV_RECURRENT_C, set, 3, state));
    return check_shape(infer, IV_RECURRENT_P, set, 2, p);
}

static iv_status infer_recurrent(iv_infer *infer) {
    const iv_recurrent_params *params = infer->node->params;
    const iv_fact *x, *w, *r;
    IV_TRY(iv_infer_require(infer, IV_RECURRENT_X, IV_SET_FLOAT, &x));
    IV_TRY(iv_infer_require(infer, IV_RECURRENT_W, IV_SET(x->dtype), &w));
    IV_TRY(iv_infer_require(infer, IV_RECURRENT_R, IV_SET(x->dtype), &r));
    if (x->rank != 3 && x->rank != IV_RANK_UNKNOWN)
        return iv_infer_fail(infer, IV_ERROR_SHAPE,
                             "input 0 has rank %d; steps, batch and features are expected",
                             x->rank);
    iv_dim hidden = hidden_extent(infer, w, r);
    iv_dim directions = iv_dim_constant(infer->scope, params->directions);
    iv_dim steps, batch, inputs = NULL;
    if (x->rank == 3) {
        steps = x->dims[params->batch_first ? 1 : 0];
        batch = x->dims[params->batch_first ? 0 : 1];
        inputs = x->dims[2];
    } else {
        steps = iv_infer_fresh(infer, 0, params->batch_first ? 1 : 0);
        batch = iv_infer_fresh(infer, 0, params->batch_first ? 0 : 2);
    }
    IV_TRY(check_inputs(infer, x->dtype, batch, inputs, hidden));
    iv_dim all[] = {steps, directions, batch, hidden}, last[] = {directions, batch, hidden};
    iv_dim all_batch_first[] = {batch, steps, directions, hidden};
    iv_dim last_batch_first[] = {batch, directions, hidden};
    for (int i = 0; i < infer->output_count; i++) {
        if (i == 0)
            iv_fact_set_tensor(&infer->outputs[i], x->dtype, 4,
                               params->batch_first ? all_batch_first : all);
        else
            iv_fact_set_tensor(&infer->outputs[i], x->dtype, 3,
                               params->batch_first ? last_batch_first : last);
    }
    return IV_OK;
}

/* ---- extents ---- */

void iv_recurrent_extents_of(const iv_recurrent_params *params, const iv_tensor *x,
                             const iv_tensor *r, iv_recurrent_extents *extents) {
    int step = params->batch_first ? 1 : 0, batch = params->batch_first ? 0 : 1;
    iv_recurrent_extents e = {.steps = x->dims[step],
                              .batch = x->dims[batch],
                              .inputs = x->dims[2],
                              .hidden = r->dims[2],
                              .x_step = x->strides[step],
                              .x_batch = x->strides[batch],
                              .x_feature = x->strides[2]};
    if (params->batch_first) {
        e.y_direction = e.hidden;
        e.y_step = e.hidden * params->directions;
        e.y_batch = e.y_step * e.steps;
        e.state_direction = e.hidden;
        e.state_batch = e.hidden * params->directions;
    } else {
        e.y_batch = e.hidden;
        e.y_direction = e.hidden * e.batch;
        e.y_step = e.y_direction * params->directions;
        e.state_batch = e.hidden;
        e.state_direction = e.hidden * e.batch;
    }
    *extents = e;
}

const char *iv_recurrent_state_row(const iv_recurrent_params *params, const iv_tensor *state,
                                   int direction, int64_t batch, int64_t *stride) {
    if (state == NULL)
        return NULL;
    int direction_axis = params->batch_first ? 1 : 0;
    *stride = state->strides[2];
    return state->data + (direction * state->strides[direction_axis] +
                          batch * state->strides[1 - direction_axis]) *
                             (int64_t)iv_dtype_size(state->dtype);
}

iv_status iv_recurrent_length(const iv_call *call, const iv_recurrent_extents *extents,
                              int64_t batch, int64_t *length) {
    const iv_tensor *lengths = iv_call_input(call, IV_RECURRENT_LENGTHS);
    *length = extents->steps;
    if (lengths == NULL)
        return IV_OK;
    *length = ((const int32_t *)(const void *)lengths->data)[batch * lengths->strides[0]];
    if (*length < 0 || *length > extents->steps)
        return iv_call_fail(call, IV_ERROR_SHAPE,
                            "sequence_lens has %lld for batch row %lld of %lld steps",
                            (long long)*length, (long long)batch, (long long)extents->steps);
    return IV_OK;
}

#define RECURRENT_OP(op_name, inputs, outputs)                                                     \
    {                                                                                              \
        .name = op_name, .domain = "", .least_inputs = 3, .most_inputs = inputs,                   \
        .least_outputs = 0, .most_outputs = outputs, .params_size = sizeof(iv_recurrent_params),   \
        .prepare = prepare_recurrent, .infer = infer_recurrent, .eval = iv_recurrent_eval          \
    }

const iv_op iv_ops_recurrent[] = {
    RECURRENT_OP("RNN", 6, 2),
    RECURRENT_OP("GRU", 6, 2),
    RECURRENT_OP("LSTM", 8, 3),
    {0},
};
