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
} activation_table[SB_ACTIVATION_COUNT] = {
    [SB_ACTIVATION_AFFINE] = {"Affine", true, true, 1, 0},
    [SB_ACTIVATION_ELU] = {"Elu", true, false, 1, 0},
    [SB_ACTIVATION_HARD_SIGMOID] = {"HardSigmoid", true, true, 0.2f, 0.5f},
    [SB_ACTIVATION_LEAKY_RELU] = {"LeakyRelu", true, false, 0.01f, 0},
    [SB_ACTIVATION_RELU] = {"Relu", false, false, 0, 0},
    [SB_ACTIVATION_SCALED_TANH] = {"ScaledTanh", true, true, 1, 1},
    [SB_ACTIVATION_SIGMOID] = {"Sigmoid", false, false, 0, 0},
    [SB_ACTIVATION_SOFTPLUS] = {"Softplus", false, false, 0, 0},
    [SB_ACTIVATION_SOFTSIGN] = {"Softsign", false, false, 0, 0},
    [SB_ACTIVATION_TANH] = {"Tanh", false, false, 0, 0},
    [SB_ACTIVATION_THRESHOLDED_RELU] = {"ThresholdedRelu", true, false, 1, 0},
};

static sb_status find_activation(const sb_node *node, const char *name, sb_activation_kind *kind, sb_error *error) {
    for (int i = 0; i < SB_ACTIVATION_COUNT; i++) {
        if (strcasecmp(name, activation_table[i].name) == 0) {
            *kind = (sb_activation_kind)i;
            return SB_OK;
        }
    }
    return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (%s): there is no activation \"%.40s\" in the standard",
                   node->name, node->op->name, name);
}

/* Alphas and betas are handed out in order to those activations that take one. */
static sb_status read_activations(const sb_node *node, sb_recurrent_params *params, sb_error *error) {
    static const sb_activation_kind defaults[3][3] = {
        [SB_RECURRENT_RNN] = {SB_ACTIVATION_TANH},
        [SB_RECURRENT_GRU] = {SB_ACTIVATION_SIGMOID, SB_ACTIVATION_TANH},
        [SB_RECURRENT_LSTM] = {SB_ACTIVATION_SIGMOID, SB_ACTIVATION_TANH, SB_ACTIVATION_TANH}};
    const sb_attribute *names = sb_attributes_find(&node->attributes, "activations");
    int64_t alpha_count, beta_count, alpha = 0, beta = 0;
    const float *alphas, *betas;
    SB_TRY(sb_node_floats(node, "activation_alpha", &alpha_count, &alphas, error));
    SB_TRY(sb_node_floats(node, "activation_beta", &beta_count, &betas, error));
    int wanted = params->functions * params->directions;
    if (names != NULL && names->count != 0 && (names->kind != SB_ATTRIBUTE_STRINGS || names->count < wanted))
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (%s): activations must list %d names", node->name,
                       node->op->name, wanted);
    for (int i = 0; i < wanted; i++) {
        int direction = i / params->functions, function = i % params->functions;
        sb_activation *activation = &params->activations[direction][function];
        activation->kind = defaults[params->kind][function];
        if (names != NULL && names->count != 0)
            SB_TRY(find_activation(node, names->strings[i], &activation->kind, error));
        activation->alpha = activation_table[activation->kind].alpha;
        activation->beta = activation_table[activation->kind].beta;
        if (activation_table[activation->kind].takes_alpha && alpha < alpha_count)
            activation->alpha = alphas[alpha++];
        if (activation_table[activation->kind].takes_beta && beta < beta_count)
            activation->beta = betas[beta++];
    }
    return SB_OK;
}

static sb_status read_direction(const sb_node *node, sb_recurrent_params *params, sb_error *error) {
    const char *direction;
    SB_TRY(sb_node_string(node, "direction", "forward", &direction, error));
    params->directions = 1;
    if (strcasecmp(direction, "reverse") == 0)
        params->backward = true;
    else if (strcasecmp(direction, "bidirectional") == 0)
        params->directions = 2;
    else if (strcasecmp(direction, "forward") != 0)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %s (%s): direction is \"%.40s\"; it is forward, reverse or "
                       "bidirectional",
                       node->name, node->op->name, direction);
    return SB_OK;
}

static sb_status prepare_recurrent(sb_node *node, sb_error *error) {
    sb_recurrent_params *params = node->params;
    int64_t layout, input_forget, linear_before_reset;
    params->kind = strcmp(node->op->name, "LSTM") == 0  ? SB_RECURRENT_LSTM
                   : strcmp(node->op->name, "GRU") == 0 ? SB_RECURRENT_GRU
                                                        : SB_RECURRENT_RNN;
    params->gates = (int[]){1, 3, 4}[params->kind];
    params->functions = (int[]){1, 2, 3}[params->kind];
    SB_TRY(read_direction(node, params, error));
    SB_TRY(read_activations(node, params, error));
    SB_TRY(sb_node_int(node, "hidden_size", 0, &params->hidden, error));
    SB_TRY(sb_node_int(node, "layout", 0, &layout, error));
    SB_TRY(sb_node_int(node, "input_forget", 0, &input_forget, error));
    SB_TRY(sb_node_int(node, "linear_before_reset", 0, &linear_before_reset, error));
    SB_TRY(sb_node_float(node, "clip", 0, &params->clip, error));
    params->batch_first = layout != 0;
    params->input_forget = input_forget != 0;
    params->linear_before_reset = linear_before_reset != 0;
    params->clips = sb_node_has(node, "clip");
    if (params->hidden < 0 || params->hidden > INT32_MAX || layout < 0 || layout > 1 ||
        (params->clips && !(params->clip > 0)))
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %s (%s): hidden_size %lld, layout %lld and clip %g must be positive, 0 "
                       "or 1, and positive",
                       node->name, node->op->name, (long long)params->hidden, (long long)layout, (double)params->clip);
    return SB_OK;
}

/* ---- facts ---- */

/* Checks that input `index`, if it is there, has these extents (NULL: not known). */
static sb_status check_shape(const sb_infer *infer, int index, uint32_t dtypes, int rank, const sb_dim *dims) {
    const sb_fact *fact;
    if (sb_infer_input(infer, index) == NULL)
        return SB_OK;
    SB_TRY(sb_infer_require(infer, index, dtypes, &fact));
    if (fact->rank == SB_RANK_UNKNOWN)
        return SB_OK;
    if (fact->rank != rank)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d has rank %d where %d is expected", index, fact->rank,
                             rank);
    for (int d = 0; d < rank; d++) {
        int64_t have, want;
        if (dims[d] != NULL && sb_dim_is_constant(dims[d], &want) && sb_dim_is_constant(fact->dims[d], &have) &&
            have != want)
            return sb_infer_fail(infer, SB_ERROR_SHAPE,
                                 "input %d has extent %lld in dimension %d where %lld is expected", index,
                                 (long long)have, d, (long long)want);
    }
    return SB_OK;
}

/* The number of state elements: from the attribute, R, W, or an initial state. */
static sb_dim hidden_extent(sb_infer *infer, const sb_fact *w, const sb_fact *r) {
    const sb_recurrent_params *params = infer->node->params;
    const sb_fact *initial = sb_infer_input(infer, SB_RECURRENT_H);
    if (params->hidden != 0)
        return sb_dim_constant(infer->scope, params->hidden);
    if (r->rank == 3)
        return r->dims[2];
    if (w->rank == 3)
        return sb_dim_floor_divide(infer->scope, w->dims[1], sb_dim_constant(infer->scope, params->gates));
    if (initial != NULL && initial->rank == 3)
        return initial->dims[2];
    return sb_infer_fresh(infer, 0, 3);
}

static sb_status check_inputs(sb_infer *infer, sb_dtype dtype, sb_dim batch, sb_dim inputs, sb_dim hidden) {
    const sb_recurrent_params *params = infer->node->params;
    sb_scope *scope = infer->scope;
    sb_dim directions = sb_dim_constant(scope, params->directions);
    sb_dim rows = sb_dim_multiply(scope, hidden, sb_dim_constant(scope, params->gates));
    sb_dim w[] = {directions, rows, inputs}, r[] = {directions, rows, hidden};
    sb_dim b[] = {directions, sb_dim_multiply(scope, rows, sb_dim_constant(scope, 2))};
    sb_dim p[] = {directions, sb_dim_multiply(scope, hidden, sb_dim_constant(scope, 3))};
    sb_dim state[] = {params->batch_first ? batch : directions, params->batch_first ? directions : batch, hidden};
    uint32_t set = SB_SET(dtype);
    SB_TRY(check_shape(infer, SB_RECURRENT_W, set, 3, w));
    SB_TRY(check_shape(infer, SB_RECURRENT_R, set, 3, r));
    SB_TRY(check_shape(infer, SB_RECURRENT_B, set, 2, b));
    SB_TRY(check_shape(infer, SB_RECURRENT_LENGTHS, SB_SET(SB_S32), 1, &batch));
    SB_TRY(check_shape(infer, SB_RECURRENT_H, set, 3, state));
    if (params->kind != SB_RECURRENT_LSTM)
        return SB_OK;
    SB_TRY(check_shape(infer, SB_RECURRENT_C, set, 3, state));
    return check_shape(infer, SB_RECURRENT_P, set, 2, p);
}

static sb_status infer_recurrent(sb_infer *infer) {
    const sb_recurrent_params *params = infer->node->params;
    const sb_fact *x, *w, *r;
    SB_TRY(sb_infer_require(infer, SB_RECURRENT_X, SB_SET_FLOAT, &x));
    SB_TRY(sb_infer_require(infer, SB_RECURRENT_W, SB_SET(x->dtype), &w));
    SB_TRY(sb_infer_require(infer, SB_RECURRENT_R, SB_SET(x->dtype), &r));
    if (x->rank != 3 && x->rank != SB_RANK_UNKNOWN)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "input 0 has rank %d; steps, batch and features are expected",
                             x->rank);
    sb_dim hidden = hidden_extent(infer, w, r);
    sb_dim directions = sb_dim_constant(infer->scope, params->directions);
    sb_dim steps, batch, inputs = NULL;
    if (x->rank == 3) {
        steps = x->dims[params->batch_first ? 1 : 0];
        batch = x->dims[params->batch_first ? 0 : 1];
        inputs = x->dims[2];
    } else {
        steps = sb_infer_fresh(infer, 0, params->batch_first ? 1 : 0);
        batch = sb_infer_fresh(infer, 0, params->batch_first ? 0 : 2);
    }
    SB_TRY(check_inputs(infer, x->dtype, batch, inputs, hidden));
    sb_dim all[] = {steps, directions, batch, hidden}, last[] = {directions, batch, hidden};
    sb_dim all_batch_first[] = {batch, steps, directions, hidden};
    sb_dim last_batch_first[] = {batch, directions, hidden};
    for (int i = 0; i < infer->output_count; i++) {
        if (i == 0)
            sb_fact_set_tensor(&infer->outputs[i], x->dtype, 4, params->batch_first ? all_batch_first : all);
        else
            sb_fact_set_tensor(&infer->outputs[i], x->dtype, 3, params->batch_first ? last_batch_first : last);
    }
    return SB_OK;
}

/* ---- extents ---- */

void sb_recurrent_extents_of(const sb_recurrent_params *params, const sb_tensor *x, const sb_tensor *r,
                             sb_recurrent_extents *extents) {
    int step = params->batch_first ? 1 : 0, batch = params->batch_first ? 0 : 1;
    sb_recurrent_extents e = {.steps = x->dims[step],
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

const char *sb_recurrent_state_row(const sb_recurrent_params *params, const sb_tensor *state, int direction,
                                   int64_t batch, int64_t *stride) {
    if (state == NULL)
        return NULL;
    int direction_axis = params->batch_first ? 1 : 0;
    *stride = state->strides[2];
    return state->data + (direction * state->strides[direction_axis] + batch * state->strides[1 - direction_axis]) *
                             (int64_t)sb_dtype_size(state->dtype);
}

sb_status sb_recurrent_length(const sb_call *call, const sb_recurrent_extents *extents, int64_t batch,
                              int64_t *length) {
    const sb_tensor *lengths = sb_call_input(call, SB_RECURRENT_LENGTHS);
    *length = extents->steps;
    if (lengths == NULL)
        return SB_OK;
    *length = ((const int32_t *)(const void *)lengths->data)[batch * lengths->strides[0]];
    if (*length < 0 || *length > extents->steps)
        return sb_call_fail(call, SB_ERROR_SHAPE, "sequence_lens has %lld for batch row %lld of %lld steps",
                            (long long)*length, (long long)batch, (long long)extents->steps);
    return SB_OK;
}

#define RECURRENT_OP(op_name, inputs, outputs)                                                                         \
    {                                                                                                                  \
        .name = op_name, .domain = "", .least_inputs = 3, .most_inputs = inputs, .least_outputs = 0,                   \
        .most_outputs = outputs, .params_size = sizeof(sb_recurrent_params), .prepare = prepare_recurrent,             \
        .infer = infer_recurrent, .eval = sb_recurrent_eval                                                            \
    }

const sb_op sb_ops_recurrent[] = {
    RECURRENT_OP("RNN", 6, 2),
    RECURRENT_OP("GRU", 6, 2),
    RECURRENT_OP("LSTM", 8, 3),
    {0},
};
