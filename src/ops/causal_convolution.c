/* CausalConvWithState: each channel convolved with a kernel of its own that sees the past alone.
 *
 *     row  = past state (zeros without one), then the input
 *     y[t] = the chain over taps j ascending of weight[j] and row[t + j], then + bias, then x · sigmoid(x) if it is asked for
 *
 * The chain is that of contractions (f16 and bf16: the 16-bit one, taps in groups of 16), all behind it is f32, and is
 * rounded once when stored. The present state is the end of the row. */
#include "ops/causal_convolution.h"

#include <string.h>

#include "base/allocation.h"
#include "numerics/elementary.h"
#include "ops/contraction.h"
#include "ops/list.h"
#include "ops/moving.h"
#include "ops/real.h"
#include "rules/counting.h"
#include "rules/question.h"

static sb_status prepare_causal(sb_node *node, sb_error *error) {
    const char *activation;
    SB_TRY(sb_node_string(node, "activation", "none", &activation, error));
    bool swish = strcmp(activation, "silu") == 0 || strcmp(activation, "swish") == 0;
    if (!swish && strcmp(activation, "none") != 0)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %s (CausalConvWithState): activation is \"%s\"; it may be none, silu or swish", node->name,
                       activation);
    ((sb_causal_params *)node->params)->swish = swish;
    return SB_OK;
}

/* Extents as far as they are known. */
static sb_status infer_extents(const sb_infer *infer, const sb_fact *const *facts) {
    const sb_fact *x = facts[0], *weights = facts[1], *bias = facts[2], *past = facts[3];
    int64_t middle, taps = 0, before;
    char first[SB_FACT_TEXT_BYTES], second[SB_FACT_TEXT_BYTES];
    sb_fact_text(weights, first, sizeof first);
    if (sb_dims_clash(weights->dims[0], x->dims[1]) || (sb_dim_is_constant(weights->dims[1], &middle) && middle != 1) ||
        (sb_dim_is_constant(weights->dims[2], &taps) && taps < 1))
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "weights %s are not one kernel for each channel of %s", first,
                             sb_fact_text(x, second, sizeof second));
    if (bias != NULL && bias->rank == 1 && sb_dims_clash(bias->dims[0], x->dims[1]))
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the bias %s has no number for each channel of %s",
                             sb_fact_text(bias, first, sizeof first), sb_fact_text(x, second, sizeof second));
    if (past != NULL && past->rank == 3 &&
        (sb_dims_clash(past->dims[0], x->dims[0]) || sb_dims_clash(past->dims[1], x->dims[1]) ||
         (taps > 0 && sb_dim_is_constant(past->dims[2], &before) && before != taps - 1)))
        return sb_infer_fail(
            infer, SB_ERROR_SHAPE,
            "the past state %s must have the batch and channels of the input, and one element less than "
            "the kernel %s",
            sb_fact_text(past, second, sizeof second), first);
    return SB_OK;
}

static sb_status infer_causal(sb_infer *infer) {
    const sb_fact *facts[4] = {NULL};
    const int ranks[4] = {3, 3, 1, 3};
    SB_TRY(sb_infer_require(infer, 0, SB_SET_FLOAT & ~SB_SET(SB_F64), &facts[0]));
    for (int i = 0; i < 4; i++) {
        if (i > 1 && sb_infer_input(infer, i) == NULL)
            continue;
        SB_TRY(sb_infer_require(infer, i, SB_SET(facts[0]->dtype), &facts[i]));
        if (facts[i]->rank != SB_RANK_UNKNOWN && facts[i]->rank != ranks[i])
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d has rank %d, not %d", i, facts[i]->rank, ranks[i]);
    }
    const sb_fact *x = facts[0], *weights = facts[1];
    sb_infer_shape_of(infer, 0, x, x->dtype);
    if (x->rank != SB_RANK_UNKNOWN && weights->rank != SB_RANK_UNKNOWN)
        SB_TRY(infer_extents(infer, facts));
    if (infer->output_count < 2)
        return SB_OK;
    if (x->rank == SB_RANK_UNKNOWN || weights->rank == SB_RANK_UNKNOWN) {
        sb_infer_open(infer, 1, x->dtype, 3);
        return SB_OK;
    }
    sb_dim before = sb_dim_subtract(infer->scope, weights->dims[2], sb_dim_constant(infer->scope, 1));
    sb_dim dims[3] = {x->dims[0], x->dims[1], before};
    sb_fact_set_tensor(&infer->outputs[1], x->dtype, 3, dims);
    return SB_OK;
}

/* ---- evaluation ---- */

sb_status sb_causal_describe(const sb_call *call, sb_causal_work *work) {
    const sb_tensor *x = sb_call_input(call, 0), *weights = sb_call_input(call, 1);
    *work = (sb_causal_work){.x = x,
                             .weights = weights,
                             .bias = sb_call_input(call, 2),
                             .past = sb_call_input(call, 3),
                             .batch = x->dims[0],
                             .channels = x->dims[1],
                             .length = x->dims[2],
                             .taps = weights->dims[2],
                             .swish = ((const sb_causal_params *)call->node->params)->swish};
    char shape[SB_DIMS_TEXT_BYTES];
    if (weights->dims[0] != work->channels || weights->dims[1] != 1 || work->taps < 1)
        return sb_call_fail(call, SB_ERROR_SHAPE, "weights %s are not one kernel for each of %lld channels",
                            sb_dims_text(3, weights->dims, shape), (long long)work->channels);
    if (work->bias != NULL && work->bias->dims[0] != work->channels)
        return sb_call_fail(call, SB_ERROR_SHAPE, "the bias has %lld numbers for %lld channels",
                            (long long)work->bias->dims[0], (long long)work->channels);
    const sb_tensor *past = work->past;
    if (past != NULL &&
        (past->dims[0] != work->batch || past->dims[1] != work->channels || past->dims[2] != work->taps - 1))
        return sb_call_fail(call, SB_ERROR_SHAPE, "the past state %s must be [%lld,%lld,%lld]",
                            sb_dims_text(3, past->dims, shape), (long long)work->batch, (long long)work->channels,
                            (long long)work->taps - 1);
    return SB_OK;
}

sb_status sb_causal_workspace(const sb_call *call, const sb_causal_work *work, size_t *bytes) {
    int64_t elements = 0;
    if (__builtin_add_overflow(work->length, work->taps - 1, &elements) ||
        __builtin_mul_overflow((size_t)elements, sb_dtype_size(work->x->dtype), bytes))
        return sb_call_fail(call, SB_ERROR_SHAPE, "no machine has room for a row of %lld elements and %lld ahead of it",
                            (long long)work->length, (long long)work->taps - 1);
    return SB_OK;
}

static const char *at(const sb_tensor *tensor, int64_t first, int64_t second) {
    return tensor->data +
           (first * tensor->strides[0] + second * tensor->strides[1]) * (int64_t)sb_dtype_size(tensor->dtype);
}

static void store(const sb_causal_work *work, float sum, int64_t channel, char *to) {
    sb_dtype dtype = work->x->dtype;
    float y = sum;
    if (work->bias != NULL)
        y = y + sb_real_load_f32(dtype, work->bias->data, channel * work->bias->strides[0]);
    if (work->swish)
        y = y * sb_sigmoid_f32(y);
    sb_real_store_f32(dtype, to, 0, y);
}

void sb_causal_row(const sb_causal_work *work, int64_t row, void *workspace) {
    int64_t sample = row / work->channels, channel = row % work->channels, before = work->taps - 1;
    sb_dtype dtype = work->x->dtype;
    int64_t size = (int64_t)sb_dtype_size(dtype);
    char *line = workspace;
    if (work->past != NULL)
        sb_gather_dense((size_t)size, 1, &before, &work->past->strides[2], at(work->past, sample, channel), line);
    else
        memset(line, 0, (size_t)(before * size));
    sb_gather_dense((size_t)size, 1, &work->length, &work->x->strides[2], at(work->x, sample, channel),
                    line + before * size);
    if (work->present != NULL)
        memcpy((char *)(uintptr_t)at(work->present, sample, channel), line + work->length * size,
               (size_t)(before * size));
    const char *weights = at(work->weights, channel, 0);
    for (int64_t t = 0; t < work->length && work->y != NULL; t++) {
        float sum = 0.0f;
        sb_contract_row(dtype, 1, work->taps, line + t * size, 1, weights, work->weights->strides[2], 1, &sum);
        store(work, sum, channel, (char *)(uintptr_t)at(work->y, sample, channel) + t * size);
    }
}

static sb_status eval_causal(sb_call *call) {
    sb_causal_work work;
    size_t bytes;
    SB_TRY(sb_causal_describe(call, &work));
    SB_TRY(sb_causal_workspace(call, &work, &bytes));
    if (sb_call_wants(call, 0))
        SB_TRY(sb_call_output(call, 0, &work.y));
    if (sb_call_wants(call, 1))
        SB_TRY(sb_call_output(call, 1, &work.present));
    void *workspace = sb_allocate(bytes);
    if (workspace == NULL)
        return sb_fail_memory(call->error, bytes);
    for (int64_t row = 0; row < work.batch * work.channels; row++)
        sb_causal_row(&work, row, workspace);
    sb_free(workspace);
    return SB_OK;
}

const sb_op sb_ops_causal_convolution[] = {
    {.name = "CausalConvWithState",
     .domain = "",
     .least_inputs = 2,
     .most_inputs = 4,
     .least_outputs = 1,
     .most_outputs = 2,
     .params_size = sizeof(sb_causal_params),
     .prepare = prepare_causal,
     .infer = infer_causal,
     .eval = eval_causal},
    {0},
};

/* ---- rules: x, past and both outputs [batch, channels, time], weights [channels, 1, taps], bias [channels] ---- */

#define STATE "the present state is its end"

/* No output element sees what comes behind it, but the state is the last elements. */
static sb_status axes_of_causal(const sb_axis_question *question, sb_axis_rule *answer) {
    bool state = question->node->output_count > 1 && question->node->outputs[1] != SB_NO_VALUE;
    if (question->input == 1 || question->input == 2) {
        if (question->axis > 0)
            return sb_axis_exact(answer, "it is the size of the kernel");
        return sb_axis_independent(question, answer, 1);
    }
    if (question->axis < 2)
        return sb_axis_independent(question, answer, question->axis);
    if (question->input == 3)
        return sb_axis_exact(answer, "it is the size of the kernel, less 1");
    if (!state)
        return sb_axis_independent(question, answer, 2);
    sb_axis_bounded(question, answer, SB_AXIS_NONE, STATE);
    if (answer->output_axes != NULL)
        answer->output_axes[0] = 2;
    return SB_OK;
}

const sb_axes_entry sb_axes_causal_convolution[] = {
    {.op = {"CausalConvWithState"},
     .rule = axes_of_causal,
     .independent = "batch, channels; time without a present state",
     .bounded = "time with a present state",
     .exact = "the kernel and the past state's time"},
    {.op = {NULL}},
};

static sb_dim causal_flops(const sb_cost_question *question, int64_t number) {
    const sb_fact *x = sb_cost_input(question, 0), *weights = sb_cost_input(question, 1);
    sb_dim elements = sb_cost_extents(question, x, 0), taps = sb_cost_extents(question, weights, 2);
    if (elements == NULL || taps == NULL)
        return NULL;
    return sb_cost_times(question, number, sb_dim_multiply(question->scope, elements, taps));
}

static const sb_flops_rule causal_rule = {causal_flops, "# per tap and element of the input"};

const sb_cost_entry sb_cost_causal_convolution[] = {
    {.op = {"CausalConvWithState"}, .flops = &causal_rule, .number = 2, .bytes = &sb_bytes_whole},
    {.op = {NULL}},
};
