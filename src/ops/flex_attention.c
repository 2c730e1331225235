/* FlexAttention of ai.onnx.preview (docs/numerics.md, section 10): attention whose scores and probabilities graphs of its own
 * may change.
 *
 * Without graphs it is Attention without mask and cap. score_mod gets the scaled scores of all keys, in the type that
 * softmax_precision names, and what it gives back takes their place. With prob_mod the probabilities are made as Attention
 * gives them out, in that type, and the output is a chain over keys of what the graph gives back. */
#include <math.h>
#include <string.h>

#include "base/allocation.h"
#include "ops/attention.h"
#include "ops/control.h"
#include "ops/list.h"
#include "rules/counting.h"
#include "rules/question.h"

enum { Q, K, V };

typedef struct flex_params {
    sb_control_params control;
    sb_graph *score, *probability; /* NULL: none */
    int64_t precision;             /* ONNX's number of a type; 0: f64 for f64, else f32 */
    bool scaled;
    float scale;
} flex_params;

/* ---- attributes ---- */

static sb_status take_graph(sb_node *node, const char *name, sb_graph **graph, sb_error *error) {
    if (!sb_node_has(node, name))
        return SB_OK;
    SB_TRY(sb_control_prepare(node, name, 1, graph, error));
    if ((*graph)->output_count != 1)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (%s): the graph %s gives %zu values where 1 is expected",
                       node->name, node->op->name, name, (*graph)->output_count);
    return SB_OK;
}

static sb_status prepare_flex(sb_node *node, sb_error *error) {
    flex_params *params = node->params;
    params->control.height = 1;
    SB_TRY(take_graph(node, "score_mod", &params->score, error));
    SB_TRY(take_graph(node, "prob_mod", &params->probability, error));
    SB_TRY(sb_node_int(node, "softmax_precision", 0, &params->precision, error));
    SB_TRY(sb_node_float(node, "scale", 0, &params->scale, error));
    params->scaled = sb_node_has(node, "scale");
    if (params->precision != 0 && params->precision != 1 && params->precision != 10 && params->precision != 11 &&
        params->precision != 16)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %s (%s): softmax_precision must be 1 (f32), 10 (f16), 11 (f64) or 16 (bf16)", node->name,
                       node->op->name);
    if (params->scaled && !isfinite(params->scale))
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (%s): scale must be a finite number", node->name,
                       node->op->name);
    return SB_OK;
}

/* The type of what the graphs see. */
static sb_dtype graph_dtype(const flex_params *params, sb_dtype dtype) {
    switch (params->precision) {
    case 1:
        return SB_F32;
    case 10:
        return SB_F16;
    case 11:
        return SB_F64;
    case 16:
        return SB_BF16;
    default:
        return dtype == SB_F64 ? SB_F64 : SB_F32;
    }
}

/* ---- facts ---- */

static sb_status agree(const sb_infer *infer, const char *what, const sb_fact *left, const sb_fact *right, int axis) {
    int64_t first, second;
    if (left->rank != 4 || right->rank != 4 || !sb_dim_is_constant(left->dims[axis], &first) ||
        !sb_dim_is_constant(right->dims[axis], &second) || first == second)
        return SB_OK;
    return sb_infer_fail(infer, SB_ERROR_SHAPE, "%s: %lld and %lld, which must be equal", what, (long long)first,
                         (long long)second);
}

/* Checks that the graph, given such a tensor, gives one like it. */
static sb_status check_graph(const sb_infer *infer, const sb_graph *graph, const char *name, const sb_fact *given) {
    sb_fact result = {0};
    char text[SB_FACT_TEXT_BYTES];
    if (graph == NULL)
        return SB_OK;
    sb_status status = sb_infer_graph(infer, graph, 1, given, &result);
    bool fits = result.kind == SB_KIND_TENSOR && result.dtype == given->dtype &&
                (result.rank == SB_RANK_UNKNOWN || given->rank == SB_RANK_UNKNOWN || result.rank == given->rank);
    for (int d = 0; fits && d < 4 && result.rank == 4 && given->rank == 4; d++) {
        int64_t first, second;
        fits = !sb_dim_is_constant(given->dims[d], &first) || !sb_dim_is_constant(result.dims[d], &second) ||
               first == second;
    }
    if (status == SB_OK && !fits)
        status = sb_infer_fail(infer, SB_ERROR_SHAPE,
                               "the graph %s gives %s, which is not of the type and shape that it "
                               "is given",
                               name, sb_fact_text(&result, text, sizeof text));
    sb_fact_clear(&result);
    return status;
}

static sb_status infer_flex(sb_infer *infer) {
    const flex_params *params = infer->node->params;
    const sb_fact *inputs[3];
    int64_t heads, key_heads;
    for (int i = 0; i < 3; i++) {
        SB_TRY(sb_infer_require(infer, i, i == 0 ? SB_SET_FLOAT : SB_SET(inputs[0]->dtype), &inputs[i]));
        if (inputs[i]->rank != 4 && inputs[i]->rank != SB_RANK_UNKNOWN)
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d has rank %d where 4 is expected", i, inputs[i]->rank);
    }
    const sb_fact *q = inputs[Q], *k = inputs[K], *v = inputs[V];
    SB_TRY(agree(infer, "batches of Q and K", q, k, 0));
    SB_TRY(agree(infer, "batches of K and V", k, v, 0));
    SB_TRY(agree(infer, "heads of K and V", k, v, 1));
    SB_TRY(agree(infer, "positions of K and V", k, v, 2));
    SB_TRY(agree(infer, "widths of heads of Q and K", q, k, 3));
    if (q->rank == 4 && k->rank == 4 && sb_dim_is_constant(q->dims[1], &heads) &&
        sb_dim_is_constant(k->dims[1], &key_heads) && (key_heads == 0 ? heads != 0 : heads % key_heads != 0))
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "%lld heads of queries are no multiple of %lld heads of keys",
                             (long long)heads, (long long)key_heads);
    sb_fact scores = {0};
    if (q->rank == 4 && k->rank == 4)
        sb_fact_set_tensor(&scores, graph_dtype(params, q->dtype), 4,
                           (sb_dim[]){q->dims[0], q->dims[1], q->dims[2], k->dims[2]});
    else
        sb_fact_set_tensor(&scores, graph_dtype(params, q->dtype), SB_RANK_UNKNOWN, NULL);
    sb_status status = check_graph(infer, params->score, "score_mod", &scores);
    if (status == SB_OK)
        status = check_graph(infer, params->probability, "prob_mod", &scores);
    sb_fact_clear(&scores);
    if (status != SB_OK || infer->output_count == 0)
        return status;
    if (q->rank == 4 && v->rank == 4)
        sb_fact_set_tensor(&infer->outputs[0], q->dtype, 4, (sb_dim[]){q->dims[0], q->dims[1], q->dims[2], v->dims[3]});
    else
        sb_fact_set_tensor(&infer->outputs[0], q->dtype, SB_RANK_UNKNOWN, NULL);
    return SB_OK;
}

/* ---- evaluation ---- */

static sb_status measure(const sb_call *call, sb_attention_work *work) {
    const flex_params *params = call->node->params;
    const sb_tensor *q = sb_call_input(call, Q), *k = sb_call_input(call, K), *v = sb_call_input(call, V);
    bool fits = k->dims[0] == q->dims[0] && v->dims[0] == q->dims[0] && v->dims[1] == k->dims[1] &&
                v->dims[2] == k->dims[2] && k->dims[3] == q->dims[3] &&
                (k->dims[1] == 0 ? q->dims[1] == 0 : q->dims[1] % k->dims[1] == 0);
    char texts[3][SB_DIMS_TEXT_BYTES];
    int64_t rows;
    fits = fits && !__builtin_mul_overflow(q->dims[0], q->dims[1], &rows) &&
           !__builtin_mul_overflow(rows, q->dims[2], &rows);
    if (!fits)
        return sb_call_fail(call, SB_ERROR_SHAPE, "Q %s, K %s and V %s do not fit", sb_dims_text(4, q->dims, texts[0]),
                            sb_dims_text(4, k->dims, texts[1]), sb_dims_text(4, v->dims, texts[2]));
    work->batch = q->dims[0];
    work->heads = q->dims[1];
    work->key_heads = k->dims[1];
    work->queries = q->dims[2];
    work->keys = k->dims[2];
    work->width = q->dims[3];
    work->value_width = v->dims[3];
    work->q = sb_attention_array_of(q, 0);
    work->k = sb_attention_array_of(k, 0);
    work->v = sb_attention_array_of(v, 0);
    work->scale = params->scaled ? params->scale : sb_attention_default_scale(work->dtype, work->width);
    return SB_OK;
}

void sb_flex_attention_graphs(const sb_node *node, const sb_graph **score, const sb_graph **probability) {
    const flex_params *params = node->params;
    *score = params->score;
    *probability = params->probability;
}

sb_dtype sb_flex_attention_between(const sb_node *node, sb_dtype dtype) {
    return graph_dtype(node->params, dtype);
}

sb_status sb_flex_attention_describe(const sb_call *call, sb_attention_work *work, sb_dtype *between) {
    sb_dtype dtype = sb_call_input(call, Q)->dtype;
    *between = graph_dtype(call->node->params, dtype);
    *work = (sb_attention_work){.dtype = dtype, .wide = dtype == SB_F64 || *between == SB_F64, .left = -1, .right = -1};
    return measure(call, work);
}

sb_status sb_flex_attention_check(const sb_call *call, const sb_attention_work *work, sb_dtype dtype, const char *name,
                                  const sb_value *result) {
    const int64_t dims[] = {work->batch, work->heads, work->queries, work->keys};
    const sb_tensor *given = result->kind == SB_KIND_TENSOR ? result->tensor : NULL;
    if (given != NULL && given->dtype == dtype && given->rank == 4 && memcmp(given->dims, dims, sizeof dims) == 0)
        return SB_OK;
    return sb_call_fail(call, SB_ERROR_SHAPE, "the graph %s gives no tensor of the type and shape that it was given",
                        name);
}

/* Computes all scores or probabilities (`work->stage`) into a new tensor, and runs the graph on it. */
static sb_status run_stage(sb_call *call, sb_attention_work work, sb_dtype dtype, const sb_graph *graph,
                           const char *name, sb_value *result) {
    const int64_t dims[] = {work.batch, work.heads, work.queries, work.keys};
    sb_tensor *tensor;
    SB_TRY(sb_tensor_create_uninitialised(dtype, 4, dims, &tensor, call->error));
    work.scores = sb_attention_array_of(tensor, 0);
    work.y = (sb_attention_array){0};
    sb_status status = sb_attention_run(&work, call->workers, call->error);
    sb_value value = sb_value_of_tensor(tensor);
    if (status == SB_OK)
        status = sb_call_run_graph(call, graph, 1, &value, result);
    sb_tensor_release(tensor);
    return status == SB_OK ? sb_flex_attention_check(call, &work, dtype, name, result) : status;
}

static sb_status eval_flex(sb_call *call) {
    const flex_params *params = call->node->params;
    sb_attention_work work;
    sb_dtype between;
    sb_value scores = {0}, probabilities = {0};
    sb_tensor *y;
    SB_TRY(sb_flex_attention_describe(call, &work, &between));
    SB_TRY(sb_call_output(call, 0, &y));
    work.y = sb_attention_array_of(y, 0);
    sb_status status = SB_OK;
    if (params->score != NULL)
        status = run_stage(call, work, between, params->score, "score_mod", &scores);
    if (status == SB_OK && params->score != NULL)
        work.given = sb_attention_array_of(scores.tensor, 0);
    work.stage = SB_ATTENTION_PROBABILITY;
    if (status == SB_OK && params->probability != NULL)
        status = run_stage(call, work, between, params->probability, "prob_mod", &probabilities);
    if (status == SB_OK && params->probability != NULL) {
        sb_attention_array mixed = sb_attention_array_of(probabilities.tensor, 0);
        sb_attention_mix(&work, &mixed, call->workers);
    } else if (status == SB_OK) {
        status = sb_attention_run(&work, call->workers, call->error);
    }
    sb_value_release(&scores);
    sb_value_release(&probabilities);
    return status;
}

const sb_op sb_ops_flex_attention[] = {
    {.name = "FlexAttention",
     .domain = "ai.onnx.preview",
     .least_inputs = 3,
     .most_inputs = 3,
     .least_outputs = 1,
     .most_outputs = 1,
     .flags = SB_OP_CONTROL,
     .params_size = sizeof(flex_params),
     .prepare = prepare_flex,
     .infer = infer_flex,
     .eval = eval_flex},
    {0},
};

/* ---- rules ---- */

static sb_status flex_axes(const sb_axis_question *question, sb_axis_rule *answer) {
    static const char summed[] = "scores and values are summed over it";
    const flex_params *params = question->node->params;
    if (params->score != NULL || params->probability != NULL)
        return sb_axis_unknown(answer, "the operator runs graphs of its own");
    if (question->axis == 1)
        return sb_axis_exact(answer, "heads share keys by their number");
    if (question->axis == 0 || (question->axis == 2 && question->input == Q) ||
        (question->axis == 3 && question->input == V))
        return sb_axis_independent(question, answer, question->axis);
    return sb_axis_bounded(question, answer, SB_AXIS_NONE, summed);
}

const sb_axes_entry sb_axes_flex_attention[] = {
    {.op = {"FlexAttention", "ai.onnx.preview"},
     .rule = flex_axes,
     .independent = "without graphs: batch, queries, widths of values",
     .bounded = "without graphs: keys, widths of keys",
     .exact = "heads; with graphs, every axis"},
    {.op = {NULL}},
};

const sb_cost_entry sb_cost_flex_attention[] = {
    {.op = {"FlexAttention", "ai.onnx.preview"}, .flops = &sb_flops_uncounted, .bytes = &sb_bytes_whole},
    {.op = {NULL}},
};
