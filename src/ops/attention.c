/* Attention (docs/numerics.md, section 10): attributes, facts, rules, and the arrays that ops/attention_run.c computes on.
 *
 * Queries, keys and values are [batch, heads, positions, widths], or [batch, positions, heads · widths]. The keys are those
 * of past_key and behind them those of K; present_key and present_value hold both, always with an axis of heads. */
#include "ops/attention.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ops/list.h"
#include "rules/counting.h"
#include "rules/question.h"

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, LENGTHS };
enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES };

/* ONNX's number of f64. */
#define PRECISION_F64 11

typedef struct attention_params {
    int64_t heads, key_heads; /* 0: not given */
    int64_t stage, precision;
    int64_t left, right;
    bool causal, scaled;
    float scale, cap;
} attention_params;

/* ---- attributes ---- */

static sb_status check_attributes(const sb_node *node, const attention_params *params, int64_t causal,
                                  sb_error *error) {
    const char *wrong = NULL;
    if (params->heads < 0 || params->key_heads < 0)
        wrong = "q_num_heads and kv_num_heads must be at least 1";
    else if (causal != 0 && causal != 1)
        wrong = "is_causal must be 0 or 1";
    else if (params->stage < SB_ATTENTION_SCORE || params->stage > SB_ATTENTION_PROBABILITY)
        wrong = "qk_matmul_output_mode must be 0, 1, 2 or 3";
    else if (params->precision != 0 && params->precision != 1 && params->precision != 10 &&
             params->precision != PRECISION_F64 && params->precision != 16)
        wrong = "softmax_precision must be 1 (f32), 10 (f16), 11 (f64) or 16 (bf16)";
    else if (params->left < -1 || params->right < -1)
        wrong = "left_window_size and right_window_size must be -1 or more";
    else if (!(params->cap >= 0) || isinf(params->cap))
        wrong = "softcap must be 0 or a positive finite number";
    else if (params->scaled && !isfinite(params->scale))
        wrong = "scale must be a finite number";
    if (wrong == NULL)
        return SB_OK;
    return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (%s): %s", node->name, node->op->name, wrong);
}

static sb_status prepare_attention(sb_node *node, sb_error *error) {
    attention_params *params = node->params;
    int64_t causal;
    SB_TRY(sb_node_int(node, "q_num_heads", 0, &params->heads, error));
    SB_TRY(sb_node_int(node, "kv_num_heads", 0, &params->key_heads, error));
    SB_TRY(sb_node_int(node, "is_causal", 0, &causal, error));
    SB_TRY(sb_node_int(node, "qk_matmul_output_mode", 0, &params->stage, error));
    SB_TRY(sb_node_int(node, "softmax_precision", 0, &params->precision, error));
    SB_TRY(sb_node_float(node, "softcap", 0, &params->cap, error));
    SB_TRY(sb_node_float(node, "scale", 0, &params->scale, error));
    params->causal = causal != 0;
    params->scaled = sb_node_has(node, "scale");
    params->left = params->right = -1;
    if (node->version >= 25) {
        SB_TRY(sb_node_int(node, "left_window_size", -1, &params->left, error));
        SB_TRY(sb_node_int(node, "right_window_size", -1, &params->right, error));
    }
    return check_attributes(node, params, causal, error);
}

/* ---- facts ---- */

/* The extents [batch, heads, positions, width] of Q, K or V; all NULL where the rank is not known. */
static sb_status spread(const sb_infer *infer, int index, const sb_fact *fact, int64_t heads, const char *attribute,
                        sb_dim dims[4]) {
    sb_scope *scope = infer->scope;
    int64_t hidden, extent;
    for (int d = 0; d < 4; d++)
        dims[d] = fact->rank == 4 ? fact->dims[d] : NULL;
    if (fact->rank == SB_RANK_UNKNOWN)
        return SB_OK;
    if (fact->rank != 3 && fact->rank != 4)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d has rank %d where 3 or 4 is expected", index, fact->rank);
    if (fact->rank == 4) {
        if (heads != 0 && sb_dim_is_constant(dims[1], &extent) && extent != heads)
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d has %lld heads where %s is %lld", index,
                                 (long long)extent, attribute, (long long)heads);
        return SB_OK;
    }
    if (heads == 0)
        return sb_infer_fail(infer, SB_ERROR_INVALID_MODEL, "input %d has rank 3, for which %s is needed", index,
                             attribute);
    if (sb_dim_is_constant(fact->dims[2], &hidden) && hidden % heads != 0)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the last extent of input %d, %lld, is no multiple of %s, %lld",
                             index, (long long)hidden, attribute, (long long)heads);
    dims[0] = fact->dims[0];
    dims[1] = sb_dim_constant(scope, heads);
    dims[2] = fact->dims[1];
    dims[3] = sb_dim_floor_divide(scope, fact->dims[2], dims[1]);
    return SB_OK;
}

/* Checks that two extents, where both are numbers, are equal. */
static sb_status agree(const sb_infer *infer, const char *what, sb_dim left, sb_dim right) {
    int64_t first, second;
    if (left == NULL || right == NULL || !sb_dim_is_constant(left, &first) || !sb_dim_is_constant(right, &second) ||
        first == second)
        return SB_OK;
    return sb_infer_fail(infer, SB_ERROR_SHAPE, "%s: %lld and %lld, which must be equal", what, (long long)first,
                         (long long)second);
}

static sb_status check_heads(const sb_infer *infer, sb_dim heads, sb_dim key_heads) {
    int64_t many, few;
    if (heads == NULL || key_heads == NULL || !sb_dim_is_constant(heads, &many) || !sb_dim_is_constant(key_heads, &few))
        return SB_OK;
    if (few == 0 ? many == 0 : many % few == 0)
        return SB_OK;
    return sb_infer_fail(infer, SB_ERROR_SHAPE, "%lld heads of queries are no multiple of %lld heads of keys",
                         (long long)many, (long long)few);
}

/* Checks a cache of rank 4, and adds the positions that it has to *total (NULL: not known). */
static sb_status check_past(const sb_infer *infer, int index, sb_dtype dtype, const sb_dim *dims, sb_dim *total) {
    const sb_fact *past;
    static const char *const names[] = {"batches of keys and of the past", "heads of keys and of the past", "",
                                        "widths of keys and of the past"};
    SB_TRY(sb_infer_require(infer, index, SB_SET(dtype), &past));
    if (past->rank != 4 && past->rank != SB_RANK_UNKNOWN)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d has rank %d where 4 is expected", index, past->rank);
    bool known = past->rank == 4 && dims[2] != NULL;
    *total = known ? sb_dim_add(infer->scope, past->dims[2], dims[2]) : NULL;
    for (int d = 0; d < 4 && past->rank == 4; d++) {
        if (d != 2)
            SB_TRY(agree(infer, names[d], dims[d], past->dims[d]));
    }
    return SB_OK;
}

static sb_status check_options(const sb_infer *infer, sb_dtype dtype, sb_dim batch) {
    const sb_fact *mask = sb_infer_input(infer, MASK), *lengths = sb_infer_input(infer, LENGTHS);
    bool past_key = sb_infer_input(infer, PAST_KEY) != NULL, past_value = sb_infer_input(infer, PAST_VALUE) != NULL;
    if (past_key != past_value)
        return sb_infer_fail(infer, SB_ERROR_INVALID_MODEL, "past_key and past_value must be given together");
    if (past_key && lengths != NULL)
        return sb_infer_fail(infer, SB_ERROR_INVALID_MODEL, "nonpad_kv_seqlen cannot be given together with past_key");
    if (mask != NULL) {
        SB_TRY(sb_infer_require(infer, MASK, SB_SET(SB_BOOL) | SB_SET(dtype), &mask));
        if (mask->rank != SB_RANK_UNKNOWN && (mask->rank < 1 || mask->rank > 4))
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "the mask has rank %d where 1 to 4 is expected", mask->rank);
    }
    if (lengths == NULL)
        return SB_OK;
    SB_TRY(sb_infer_require(infer, LENGTHS, SB_SET(SB_S64), &lengths));
    if (lengths->rank != SB_RANK_UNKNOWN && lengths->rank != 1)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "nonpad_kv_seqlen has rank %d where 1 is expected", lengths->rank);
    return lengths->rank == 1 ? agree(infer, "samples and entries of nonpad_kv_seqlen", batch, lengths->dims[0])
                              : SB_OK;
}

#define MASK_WHY_BYTES 128

/* Whether a mask can be broadcast to [batch, heads, queries, keys], but for the keys, of which it may have fewer. Extents that are
 * not known are negative. */
static bool mask_fits(int version, int rank, const int64_t *dims, const int64_t *wanted, char *why) {
    for (int d = 0; d < rank - 1; d++) {
        int64_t extent = wanted[4 - rank + d];
        if (dims[d] == 1 || dims[d] == extent || dims[d] < 0 || extent < 0)
            continue;
        snprintf(why, MASK_WHY_BYTES, "the mask has extent %lld in dimension %d, which %lld cannot be broadcast from",
                 (long long)dims[d], d, (long long)extent);
        return false;
    }
    if (wanted[3] < 0 || dims[rank - 1] <= wanted[3] || (version < 24 && dims[rank - 1] == 1))
        return true;
    snprintf(why, MASK_WHY_BYTES, "the mask is for %lld keys, of which there are %lld", (long long)dims[rank - 1],
             (long long)wanted[3]);
    return false;
}

static int64_t number_or_none(sb_dim dim) {
    int64_t number;
    return dim != NULL && sb_dim_is_constant(dim, &number) ? number : -1;
}

static sb_status check_mask(const sb_infer *infer, const sb_dim *queries, sb_dim total) {
    const sb_fact *mask = sb_infer_input(infer, MASK);
    int64_t dims[4], wanted[4];
    char why[MASK_WHY_BYTES];
    if (mask == NULL || mask->rank == SB_RANK_UNKNOWN)
        return SB_OK;
    for (int d = 0; d < mask->rank; d++)
        dims[d] = number_or_none(mask->dims[d]);
    for (int d = 0; d < 4; d++)
        wanted[d] = number_or_none(d < 3 ? queries[d] : total);
    return mask_fits(infer->node->version, mask->rank, dims, wanted, why)
               ? SB_OK
               : sb_infer_fail(infer, SB_ERROR_SHAPE, "%s", why);
}

static void publish(sb_infer *infer, int output, sb_dtype dtype, const sb_dim *dims) {
    if (output >= infer->output_count)
        return;
    sb_dim filled[4];
    for (int d = 0; d < 4; d++)
        filled[d] = dims[d] != NULL ? dims[d] : sb_infer_fresh(infer, output, d);
    sb_fact_set_tensor(&infer->outputs[output], dtype, 4, filled);
}

static sb_status infer_attention(sb_infer *infer) {
    const attention_params *params = infer->node->params;
    const sb_fact *q, *k, *v;
    sb_dim queries[4], keys[4], values[4], total, value_total;
    SB_TRY(sb_infer_require(infer, Q, SB_SET_FLOAT, &q));
    SB_TRY(sb_infer_require(infer, K, SB_SET(q->dtype), &k));
    SB_TRY(sb_infer_require(infer, V, SB_SET(q->dtype), &v));
    SB_TRY(spread(infer, Q, q, params->heads, "q_num_heads", queries));
    SB_TRY(spread(infer, K, k, params->key_heads, "kv_num_heads", keys));
    SB_TRY(spread(infer, V, v, params->key_heads, "kv_num_heads", values));
    bool known = q->rank != SB_RANK_UNKNOWN && k->rank != SB_RANK_UNKNOWN && v->rank != SB_RANK_UNKNOWN;
    if (known && (q->rank != k->rank || q->rank != v->rank))
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "Q, K and V have ranks %d, %d and %d, which must be equal", q->rank,
                             k->rank, v->rank);
    SB_TRY(agree(infer, "batches of Q and K", queries[0], keys[0]));
    SB_TRY(agree(infer, "batches of K and V", keys[0], values[0]));
    SB_TRY(agree(infer, "heads of K and V", keys[1], values[1]));
    SB_TRY(agree(infer, "positions of K and V", keys[2], values[2]));
    SB_TRY(agree(infer, "widths of heads of Q and K", queries[3], keys[3]));
    SB_TRY(check_heads(infer, queries[1], keys[1]));
    SB_TRY(check_options(infer, q->dtype, queries[0]));
    total = keys[2];
    value_total = values[2];
    if (sb_infer_input(infer, PAST_KEY) != NULL) {
        SB_TRY(check_past(infer, PAST_KEY, q->dtype, keys, &total));
        SB_TRY(check_past(infer, PAST_VALUE, q->dtype, values, &value_total));
        SB_TRY(agree(infer, "positions of past_key and past_value with those of K and V", total, value_total));
    }
    SB_TRY(check_mask(infer, queries, total));
    if (!known && infer->output_count > Y)
        sb_fact_set_tensor(&infer->outputs[Y], q->dtype, SB_RANK_UNKNOWN, NULL);
    else if (q->rank == 3 && infer->output_count > Y)
        sb_fact_set_tensor(&infer->outputs[Y], q->dtype, 3,
                           (sb_dim[]){queries[0], queries[2], sb_dim_multiply(infer->scope, queries[1], values[3])});
    else
        publish(infer, Y, q->dtype, (sb_dim[]){queries[0], queries[1], queries[2], values[3]});
    publish(infer, PRESENT_KEY, q->dtype, (sb_dim[]){keys[0], keys[1], total, keys[3]});
    publish(infer, PRESENT_VALUE, q->dtype, (sb_dim[]){values[0], values[1], value_total, values[3]});
    publish(infer, SCORES, q->dtype, (sb_dim[]){queries[0], queries[1], queries[2], total});
    return SB_OK;
}

/* ---- evaluation ---- */

/* A shape as [batch, heads, positions, width]. */
static void spread_dims(const sb_tensor *tensor, int64_t heads, int64_t dims[4]) {
    if (tensor->rank == 4) {
        memcpy(dims, tensor->dims, 4 * sizeof *dims);
    } else {
        dims[0] = tensor->dims[0];
        dims[1] = heads;
        dims[2] = tensor->dims[1];
        dims[3] = heads > 0 ? tensor->dims[2] / heads : 0;
    }
}

static sb_status misfit(const sb_call *call, int index, const int64_t *dims, const int64_t *wanted) {
    char have[SB_DIMS_TEXT_BYTES], want[SB_DIMS_TEXT_BYTES];
    return sb_call_fail(call, SB_ERROR_SHAPE, "input %d has batch, heads, positions and width %s where %s is expected",
                        index, sb_dims_text(4, dims, have), sb_dims_text(4, wanted, want));
}

/* Checks what inference may have had to leave open, and fills in extents. */
static sb_status measure(const sb_call *call, sb_attention_work *work) {
    const attention_params *params = call->node->params;
    const sb_tensor *q = sb_call_input(call, Q), *k = sb_call_input(call, K), *v = sb_call_input(call, V);
    const sb_tensor *old_k = sb_call_input(call, PAST_KEY), *old_v = sb_call_input(call, PAST_VALUE);
    int64_t queries[4], keys[4], values[4];
    if (q->rank != k->rank || q->rank != v->rank)
        return sb_call_fail(call, SB_ERROR_SHAPE, "Q, K and V have ranks %d, %d and %d, which must be equal", q->rank,
                            k->rank, v->rank);
    spread_dims(q, params->heads, queries);
    spread_dims(k, params->key_heads, keys);
    spread_dims(v, params->key_heads, values);
    const int64_t wanted_keys[] = {queries[0], keys[1], keys[2], queries[3]};
    const int64_t wanted_values[] = {queries[0], keys[1], keys[2], values[3]};
    if (memcmp(keys, wanted_keys, sizeof keys) != 0)
        return misfit(call, K, keys, wanted_keys);
    if (memcmp(values, wanted_values, sizeof values) != 0)
        return misfit(call, V, values, wanted_values);
    if (keys[1] == 0 ? queries[1] != 0 : queries[1] % keys[1] != 0)
        return sb_call_fail(call, SB_ERROR_SHAPE, "%lld heads of queries are no multiple of %lld heads of keys",
                            (long long)queries[1], (long long)keys[1]);
    if (old_k != NULL) {
        work->past = old_k->dims[2];
        const int64_t past_keys[] = {queries[0], keys[1], work->past, queries[3]};
        const int64_t past_values[] = {queries[0], keys[1], work->past, values[3]};
        if (memcmp(old_k->dims, past_keys, sizeof past_keys) != 0)
            return misfit(call, PAST_KEY, old_k->dims, past_keys);
        if (memcmp(old_v->dims, past_values, sizeof past_values) != 0)
            return misfit(call, PAST_VALUE, old_v->dims, past_values);
    }
    work->batch = queries[0];
    work->heads = queries[1];
    work->queries = queries[2];
    work->width = queries[3];
    work->key_heads = keys[1];
    work->value_width = values[3];
    int64_t rows;
    if (__builtin_add_overflow(work->past, keys[2], &work->keys))
        return sb_call_fail(call, SB_ERROR_SHAPE, "%lld keys behind %lld in the past are too many", (long long)keys[2],
                            (long long)work->past);
    if (__builtin_mul_overflow(work->batch, work->heads, &rows) || __builtin_mul_overflow(rows, work->queries, &rows))
        return sb_call_fail(call, SB_ERROR_SHAPE, "%lld samples of %lld heads of %lld queries are too many",
                            (long long)work->batch, (long long)work->heads, (long long)work->queries);
    return SB_OK;
}

/* The mask, broadcast but for the keys: those behind its last are masked. */
static sb_status take_mask(const sb_call *call, sb_attention_work *work) {
    const sb_tensor *mask = sb_call_input(call, MASK);
    if (mask == NULL)
        return SB_OK;
    const int64_t wanted[] = {work->batch, work->heads, work->queries, work->keys};
    int64_t strides[4] = {0};
    char why[MASK_WHY_BYTES];
    if (!mask_fits(call->node->version, mask->rank, mask->dims, wanted, why))
        return sb_call_fail(call, SB_ERROR_SHAPE, "%s", why);
    for (int d = 0; d < mask->rank - 1; d++)
        strides[4 - mask->rank + d] = mask->dims[d] != 1 ? mask->strides[d] : 0;
    work->mask_keys = mask->dims[mask->rank - 1];
    strides[3] = mask->strides[mask->rank - 1];
    if (call->node->version < 24 && work->mask_keys == 1) {
        work->mask_keys = work->keys; /* before it could be short, an extent of 1 could only be repeated */
        strides[3] = 0;
    }
    static char nothing[8];
    work->mask = (sb_attention_array){
        mask->data != NULL ? mask->data : nothing, mask->dtype, strides[0], strides[1], strides[2], strides[3]};
    return SB_OK;
}

static sb_status take_lengths(const sb_call *call, sb_attention_work *work) {
    const sb_tensor *lengths = sb_call_input(call, LENGTHS);
    if (lengths == NULL)
        return SB_OK;
    if (lengths->dims[0] != work->batch)
        return sb_call_fail(call, SB_ERROR_SHAPE, "nonpad_kv_seqlen has %lld entries for %lld samples",
                            (long long)lengths->dims[0], (long long)work->batch);
    work->lengths = lengths->data;
    work->lengths_stride = lengths->strides[0];
    return SB_OK;
}

/* Writes what there is of the past and behind it what is new, as [batch, heads, positions, width]. */
static sb_status present(sb_call *call, int output, int past, int fresh, const sb_attention_work *work, int64_t width) {
    const attention_params *params = call->node->params;
    const sb_tensor *old = sb_call_input(call, past), *source = sb_call_input(call, fresh);
    sb_tensor *target, *from = NULL, *to = NULL;
    if (!sb_call_wants(call, output))
        return SB_OK;
    SB_TRY(sb_call_output(call, output, &target));
    sb_attention_array array = sb_attention_array_of(source, params->key_heads);
    const int64_t dims[] = {work->batch, work->key_heads, work->keys - work->past, width};
    const int64_t strides[] = {array.batch, array.head, array.row, array.column};
    if (old != NULL) {
        SB_TRY(sb_tensor_slice(target, 2, 0, work->past, 1, &to, call->error));
        sb_status status = sb_call_copy(call, to, old);
        sb_tensor_release(to);
        SB_TRY(status);
    }
    SB_TRY(sb_tensor_slice(target, 2, work->past, dims[2], 1, &to, call->error));
    sb_status status =
        sb_tensor_over(source->storage, source->data, source->dtype, 4, dims, strides, &from, call->error);
    if (status == SB_OK)
        status = sb_call_copy(call, to, from);
    sb_tensor_release(from);
    sb_tensor_release(to);
    return status;
}

bool sb_attention_is_wide(const sb_node *node, sb_dtype dtype) {
    const attention_params *params = node->params;
    return dtype == SB_F64 || params->precision == PRECISION_F64;
}

sb_status sb_attention_describe(const sb_call *call, sb_attention_work *work) {
    const attention_params *params = call->node->params;
    const sb_tensor *q = sb_call_input(call, Q);
    *work = (sb_attention_work){.dtype = q->dtype,
                                .wide = sb_attention_is_wide(call->node, q->dtype),
                                .causal = params->causal,
                                .left = params->left,
                                .right = params->right,
                                .cap = params->cap,
                                .stage = (sb_attention_stage)params->stage};
    SB_TRY(measure(call, work));
    SB_TRY(take_mask(call, work));
    SB_TRY(take_lengths(call, work));
    work->scale = params->scaled ? params->scale : sb_attention_default_scale(work->dtype, work->width);
    work->q = sb_attention_array_of(q, params->heads);
    work->k = sb_attention_array_of(sb_call_input(call, K), params->key_heads);
    work->v = sb_attention_array_of(sb_call_input(call, V), params->key_heads);
    work->past_k = sb_attention_array_of(sb_call_input(call, PAST_KEY), 0);
    work->past_v = sb_attention_array_of(sb_call_input(call, PAST_VALUE), 0);
    return SB_OK;
}

sb_status sb_attention_evaluate(sb_call *call, sb_attention_describer *describe, sb_attention_runner *run) {
    sb_attention_work work;
    sb_tensor *y, *scores;
    SB_TRY(describe(call, &work));
    if (sb_call_wants(call, Y)) {
        SB_TRY(sb_call_output(call, Y, &y));
        work.y = sb_attention_array_of(y, work.heads);
    }
    if (sb_call_wants(call, SCORES)) {
        SB_TRY(sb_call_output(call, SCORES, &scores));
        work.scores = sb_attention_array_of(scores, 0);
    }
    SB_TRY(present(call, PRESENT_KEY, PAST_KEY, K, &work, work.width));
    SB_TRY(present(call, PRESENT_VALUE, PAST_VALUE, V, &work, work.value_width));
    return run(call, &work);
}

static sb_status eval_attention(sb_call *call) {
    return sb_attention_evaluate(call, sb_attention_describe, sb_attention_run_defined);
}

const sb_op sb_ops_attention[] = {
    {.name = "Attention",
     .domain = "",
     .least_inputs = 3,
     .most_inputs = 7,
     .least_outputs = 1,
     .most_outputs = 4,
     .params_size = sizeof(attention_params),
     .prepare = prepare_attention,
     .infer = infer_attention,
     .eval = eval_attention},
    {0},
};

/* ---- axes ---- */

/* Sends the axis to these axes of Y, present_key, present_value and the scores. */
static sb_status send(const sb_axis_question *question, sb_axis_rule *answer, int y, int key, int value, int scores) {
    const int axes[] = {y, key, value, scores};
    for (int i = 0; answer->output_axes != NULL && i < question->node->output_count && i <= SCORES; i++)
        answer->output_axes[i] = axes[i];
    return SB_OK;
}

static const char summed[] = "scores and values are summed over it";

/* Of Q or the mask. */
static sb_status query_axis(const sb_axis_question *question, sb_axis_rule *answer) {
    const attention_params *params = question->node->params;
    const sb_fact *q = sb_axis_input(question, Q);
    bool from_end =
        sb_axis_input(question, LENGTHS) != NULL && (params->causal || params->left >= 0 || params->right >= 0);
    if (from_end)
        sb_axis_bounded(question, answer, SB_AXIS_NONE, "positions are counted from the last query");
    else
        sb_axis_independent(question, answer, SB_AXIS_NONE);
    return send(question, answer, q->rank - 2, SB_AXIS_NONE, SB_AXIS_NONE, 2);
}

static sb_status batch_axis(const sb_axis_question *question, sb_axis_rule *answer) {
    return sb_axis_independent(question, answer, 0);
}

static sb_status key_axis(const sb_axis_question *question, sb_axis_rule *answer) {
    bool is_key = question->input == K || question->input == PAST_KEY;
    sb_axis_bounded(question, answer, SB_AXIS_NONE, summed);
    return is_key ? send(question, answer, SB_AXIS_NONE, 2, SB_AXIS_NONE, 3)
                  : send(question, answer, SB_AXIS_NONE, SB_AXIS_NONE, 2, SB_AXIS_NONE);
}

static sb_status width_axis(const sb_axis_question *question, sb_axis_rule *answer) {
    bool value = question->input == V || question->input == PAST_VALUE;
    bool key = question->input == K || question->input == PAST_KEY;
    const sb_fact *q = sb_axis_input(question, Q);
    if (q == NULL || q->rank == 3)
        return sb_axis_exact(answer, "Q, K and V have heads and their widths in one axis");
    if (value) {
        sb_axis_independent(question, answer, SB_AXIS_NONE);
        return send(question, answer, 3, SB_AXIS_NONE, 3, SB_AXIS_NONE);
    }
    sb_axis_bounded(question, answer, SB_AXIS_NONE, summed);
    return send(question, answer, SB_AXIS_NONE, key ? 3 : SB_AXIS_NONE, SB_AXIS_NONE, SB_AXIS_NONE);
}

/* Axes of the mask: all but the keys' are broadcast. */
static sb_status mask_axis(const sb_axis_question *question, sb_axis_rule *answer) {
    int axis = 4 - sb_axis_asked(question)->rank + question->axis;
    const sb_fact *q = sb_axis_input(question, Q);
    int64_t number;
    if (axis == 3)
        return sb_axis_bounded(question, answer, SB_AXIS_NONE, summed);
    if (axis == 1 || q == NULL)
        return sb_axis_exact(answer, "heads share keys by their number");
    sb_dim extent = q->dims[axis == 0 ? 0 : q->rank - 2];
    if (!sb_dim_equal(sb_axis_extent(question), extent)) {
        bool one = sb_dim_is_constant(sb_axis_extent(question), &number) && number == 1;
        return one ? sb_axis_exact(answer, "its only row is repeated")
                   : sb_axis_unknown(answer, "whether its only row is repeated depends on the extent");
    }
    return axis == 0 ? batch_axis(question, answer) : query_axis(question, answer);
}

static sb_status attention_axes(const sb_axis_question *question, sb_axis_rule *answer) {
    bool is_flat = sb_axis_asked(question)->rank == 3;
    if (question->input == MASK)
        return mask_axis(question, answer);
    if (question->axis == 0)
        return batch_axis(question, answer);
    if (question->axis == (is_flat ? 1 : 2))
        return question->input == Q ? query_axis(question, answer) : key_axis(question, answer);
    if (question->axis == 3)
        return width_axis(question, answer);
    return sb_axis_exact(answer, "heads share keys by their number");
}

const sb_axes_entry sb_axes_attention[] = {
    {.op = {"Attention"},
     .rule = attention_axes,
     .independent = "batch, queries, widths of values",
     .bounded = "keys, widths of keys; queries, where positions are counted from the last",
     .exact = "heads; widths, where heads and they are one axis"},
    {.op = {NULL}},
};

/* ---- cost ---- */

/* As many elements as scores, as a formula: q has `width` elements for each row. */
static sb_dim attention_flops(const sb_cost_question *question, int64_t number) {
    const sb_fact *q = sb_cost_input(question, Q), *k = sb_cost_input(question, K), *v = sb_cost_input(question, V);
    const sb_fact *past = sb_cost_input(question, PAST_KEY);
    const attention_params *params = question->node->params;
    if (q == NULL || k == NULL || v == NULL || q->rank < 3 || k->rank != q->rank || v->rank != q->rank)
        return NULL;
    sb_scope *scope = question->scope;
    bool flat = q->rank == 3;
    sb_dim heads = flat ? sb_dim_constant(scope, params->heads) : q->dims[1];
    sb_dim keys = k->dims[flat ? 1 : 2];
    sb_dim width = flat ? sb_dim_floor_divide(scope, q->dims[2], heads) : q->dims[3];
    sb_dim value_width =
        flat ? sb_dim_floor_divide(scope, v->dims[2], sb_dim_constant(scope, params->key_heads)) : v->dims[3];
    if (past != NULL)
        keys = past->rank == 4 ? sb_dim_add(scope, past->dims[2], keys) : NULL;
    sb_dim scores = sb_dim_multiply(scope, sb_dim_multiply(scope, q->dims[0], heads),
                                    sb_dim_multiply(scope, q->dims[flat ? 1 : 2], keys));
    sb_dim each = sb_dim_add(scope, sb_cost_times(question, 2, sb_dim_add(scope, width, value_width)),
                             sb_dim_constant(scope, number));
    return keys != NULL ? sb_dim_multiply(scope, scores, each) : NULL;
}

static const sb_flops_rule attention_rule = {
    attention_flops, "per query, head and key: 2 for each width of a key and a value, and #; masked keys count too"};

const sb_cost_entry sb_cost_attention[] = {
    {.op = {"Attention"}, .flops = &attention_rule, .number = 4, .bytes = &sb_bytes_whole},
    {.op = {NULL}},
};
