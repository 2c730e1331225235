/* ChooseTokens and PendingTokens: a language model's next tokens, chosen where its logits are, and taken up by its next step. Samebit's own.
 *
 *     slots      s64 [slots]      tokens that wait for a step
 *     logits     f32 [..., vocabulary]: rows of them
 *     integers   s64 [choices, 6] row, slot, top_k, seed, request, position
 *     reals      f32 [choices, 3] temperature, top_p, min_p; or [choices, 1], the temperature, where no choice leaves tokens out: top_p is 1,
 *                min_p 0, and top_k has to be 0
 *
 * Each choice is section 11 of docs/numerics.md for the logits of its row: the token goes to its slot (of two choices for a slot the later
 * one's), and stands in `chosen`, f64 [choices, 2], with its log-probability (section 9, t = 1). Where none can be chosen, or the choice
 * has no row, no slot or settings out of their ranges, a number below 0 says why (sb_choose_failed), the log-probability is NaN, and the slot,
 * if there is one, gets token 0, so that a step that is on its way already has a token.
 *
 * PendingTokens(tokens, slots) is tokens, in which −1 − s, for a slot s, is replaced by what that slot has. */
#include "ops/choose.h"

#include <stdlib.h>

#include "base/allocation.h"
#include "numerics/logp_block.h"
#include "ops/list.h"
#include "ops/moving.h"
#include "rules/counting.h"
#include "rules/question.h"

/* ---- ChooseTokens: inference ---- */

static sb_status infer_integers(const sb_infer *infer, const sb_fact *list) {
    int64_t found;
    if (list->rank == SB_RANK_UNKNOWN)
        return SB_OK;
    if (list->rank != 2 || (sb_dim_is_constant(list->dims[1], &found) && found != SB_CHOOSE_INTEGER_COLUMNS))
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "integers must be [choices,%d]", SB_CHOOSE_INTEGER_COLUMNS);
    return SB_OK;
}

static bool are_columns(int64_t reals) {
    return reals == SB_CHOOSE_REAL_COLUMNS || reals == SB_CHOOSE_COLUMNS_OF_ALL;
}

static sb_status infer_reals(const sb_infer *infer, const sb_fact *list) {
    int64_t found;
    if (list->rank == SB_RANK_UNKNOWN)
        return SB_OK;
    if (list->rank != 2 || (sb_dim_is_constant(list->dims[1], &found) && !are_columns(found)))
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "reals must be [choices,%d] or [choices,%d]",
                             SB_CHOOSE_REAL_COLUMNS, SB_CHOOSE_COLUMNS_OF_ALL);
    return SB_OK;
}

static bool has_tokens(int64_t vocabulary) {
    return vocabulary >= 1 && vocabulary <= SB_CHOOSE_MOST_TOKENS;
}

static sb_status infer_logits(const sb_infer *infer, const sb_fact *logits) {
    int64_t vocabulary;
    if (logits->rank == 0)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "logits are a scalar: they need an axis of tokens");
    if (logits->rank != SB_RANK_UNKNOWN && sb_dim_is_constant(logits->dims[logits->rank - 1], &vocabulary) &&
        !has_tokens(vocabulary))
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "there are %lld tokens to choose from: 1 to 2^24 are possible",
                             (long long)vocabulary);
    return SB_OK;
}

static sb_status infer_choose(sb_infer *infer) {
    const sb_fact *slots, *logits, *integers, *reals;
    SB_TRY(sb_infer_require(infer, SB_CHOOSE_SLOTS, SB_SET(SB_S64), &slots));
    SB_TRY(sb_infer_require(infer, SB_CHOOSE_LOGITS, SB_SET(SB_F32), &logits));
    SB_TRY(sb_infer_require(infer, SB_CHOOSE_INTEGERS, SB_SET(SB_S64), &integers));
    SB_TRY(sb_infer_require(infer, SB_CHOOSE_REALS, SB_SET(SB_F32), &reals));
    SB_TRY(infer_integers(infer, integers));
    SB_TRY(infer_reals(infer, reals));
    if (slots->rank != SB_RANK_UNKNOWN && slots->rank != 1)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "slots have rank %d where 1 is expected", slots->rank);
    SB_TRY(infer_logits(infer, logits));
    if (integers->rank == 2 && reals->rank == 2 && sb_dims_clash(integers->dims[0], reals->dims[0]))
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "integers and reals must be of the same choices");
    sb_infer_shape_of(infer, SB_CHOOSE_SLOTS, slots, SB_S64);
    if (integers->rank != 2) {
        sb_fact_set_tensor(&infer->outputs[SB_CHOOSE_CHOSEN], SB_F64, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    const sb_dim dims[] = {integers->dims[0], sb_dim_constant(infer->scope, SB_CHOOSE_CHOSEN_COLUMNS)};
    sb_fact_set_tensor(&infer->outputs[SB_CHOOSE_CHOSEN], SB_F64, 2, dims);
    return SB_OK;
}

sb_status sb_choose_check(const sb_call *call) {
    const sb_tensor *slots = sb_call_input(call, SB_CHOOSE_SLOTS), *logits = sb_call_input(call, SB_CHOOSE_LOGITS);
    const sb_tensor *integers = sb_call_input(call, SB_CHOOSE_INTEGERS), *reals = sb_call_input(call, SB_CHOOSE_REALS);
    if (slots->rank != 1 || logits->rank < 1 || integers->rank != 2 || reals->rank != 2 ||
        integers->dims[1] != SB_CHOOSE_INTEGER_COLUMNS || !are_columns(reals->dims[1]) ||
        integers->dims[0] != reals->dims[0])
        return sb_call_fail(call, SB_ERROR_SHAPE,
                            "integers must be [choices,%d], and reals [choices,%d] or [choices,%d]",
                            SB_CHOOSE_INTEGER_COLUMNS, SB_CHOOSE_REAL_COLUMNS, SB_CHOOSE_COLUMNS_OF_ALL);
    int64_t vocabulary = logits->dims[logits->rank - 1];
    if (has_tokens(vocabulary))
        return SB_OK;
    return sb_call_fail(call, SB_ERROR_SHAPE, "there are %lld tokens to choose from: 1 to 2^24 are possible",
                        (long long)vocabulary);
}

/* ---- ChooseTokens: the definition ---- */

static int larger_first(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a > b ? -1 : a < b;
}

/* The first token in the order of logits, where all of them can be chosen from. */
static int64_t find_first(const float *logits, int64_t vocabulary) {
    uint64_t best = 0;
    for (int64_t i = 0; i < vocabulary; i++) {
        if (!(logits[i] < sb_infinity_f32()))
            return sb_choose_failed(logits[i] > 0 ? SB_CHOOSE_INFINITE : SB_CHOOSE_NAN, i);
        uint64_t key = sb_choose_key(logits[i], i);
        best = key > best ? key : best;
    }
    int64_t token = sb_choose_token(best);
    return logits[token] > -sb_infinity_f32() ? token : sb_choose_failed(SB_CHOOSE_NOTHING, 0);
}

/* `scaled` and `keys` have room for all tokens. */
static int64_t choose(const float *logits, int64_t vocabulary, const sb_choose_settings *by, float *scaled,
                      uint64_t *keys) {
    int64_t first = find_first(logits, vocabulary);
    if (first < 0 || by->temperature == 0)
        return first;
    float factor = sb_div_f32(1.0f, by->temperature);
    for (int64_t i = 0; i < vocabulary; i++) {
        scaled[i] = logits[i] * factor;
        keys[i] = sb_choose_key(scaled[i], i);
    }
    qsort(keys, (size_t)vocabulary, sizeof *keys, larger_first);
    return sb_choose_draw(scaled, keys, sb_choose_cut(scaled, keys, vocabulary, by), by);
}

/* Of none that is NaN. */
static float logp(const float *logits, int64_t vocabulary, int64_t token) {
    sb_logp_scale scale = sb_logp_scale_of(1.0f);
    int32_t maximum = INT32_MIN;
    int64_t units = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < vocabulary; i += SB_LOGP_BLOCK) {
            int64_t count = vocabulary - i < SB_LOGP_BLOCK ? vocabulary - i : SB_LOGP_BLOCK;
            sb_logp_pair pair = sb_logp_reduce_block(logits + i, count, scale);
            if (pass == 0)
                maximum = pair.maximum > maximum ? pair.maximum : maximum;
            else
                units += sb_logp_units(pair, maximum);
        }
    }
    return sb_logp_value(SB_LOGP_TARGET_VALID, logits[token], scale, sb_logp_row(maximum, units, 0), units);
}

static void make_choices(const sb_tensor *logits, const sb_tensor *integers, const sb_tensor *reals, sb_tensor *slots,
                         double *chosen, float *scaled, uint64_t *keys) {
    int64_t vocabulary = logits->dims[logits->rank - 1], rows = sb_tensor_elements(logits) / vocabulary;
    int64_t *places = (int64_t *)(void *)slots->data, columns = reals->dims[1];
    for (int64_t c = 0; c < integers->dims[0]; c++, chosen += SB_CHOOSE_CHOSEN_COLUMNS) {
        const int64_t *whole = (const int64_t *)(const void *)integers->data + c * SB_CHOOSE_INTEGER_COLUMNS;
        const float *real = (const float *)(const void *)reals->data + c * columns;
        const sb_choose_settings by = sb_choose_read(whole, real, columns);
        int64_t token = sb_choose_failed(SB_CHOOSE_UNFIT, 0), slot = whole[SB_CHOOSE_SLOT];
        chosen[SB_CHOOSE_LOGP] = sb_nan_f64();
        if (sb_choose_is_fit(whole, real, columns, rows, slots->dims[0])) {
            const float *row = (const float *)(const void *)logits->data + whole[SB_CHOOSE_ROW] * vocabulary;
            token = choose(row, vocabulary, &by, scaled, keys);
            if (token >= 0)
                chosen[SB_CHOOSE_LOGP] = (double)logp(row, vocabulary, token);
        }
        chosen[SB_CHOOSE_TOKEN] = (double)token;
        if (slot >= 0 && slot < slots->dims[0])
            places[slot * slots->strides[0]] = token >= 0 ? token : 0;
    }
}

static sb_status eval_choose(sb_call *call) {
    static const int lists[] = {SB_CHOOSE_LOGITS, SB_CHOOSE_INTEGERS, SB_CHOOSE_REALS};
    sb_tensor *given[3] = {NULL}, *slots, *chosen;
    SB_TRY(sb_choose_check(call));
    SB_TRY(sb_call_output(call, SB_CHOOSE_SLOTS, &slots));
    SB_TRY(sb_call_output(call, SB_CHOOSE_CHOSEN, &chosen));
    sb_tensor_copy_elements(slots, sb_call_input(call, SB_CHOOSE_SLOTS));
    if (sb_tensor_elements(chosen) == 0)
        return SB_OK;
    const sb_tensor *logits = sb_call_input(call, SB_CHOOSE_LOGITS);
    size_t vocabulary = (size_t)logits->dims[logits->rank - 1], bytes = vocabulary * (sizeof(uint64_t) + sizeof(float));
    uint64_t *keys = sb_allocate(bytes);
    sb_status status = keys != NULL ? SB_OK : sb_fail_memory(call->error, bytes);
    for (int i = 0; i < 3 && status == SB_OK; i++)
        status = sb_call_contiguous(call, lists[i], &given[i]);
    if (status == SB_OK)
        make_choices(given[0], given[1], given[2], slots, (double *)(void *)chosen->data,
                     (float *)(void *)(keys + vocabulary), keys);
    for (int i = 0; i < 3; i++)
        sb_tensor_release(given[i]);
    sb_free(keys);
    return status;
}

/* ---- PendingTokens ---- */

static sb_status infer_pending(sb_infer *infer) {
    const sb_fact *tokens, *slots;
    SB_TRY(sb_infer_require(infer, 0, SB_SET(SB_S64), &tokens));
    SB_TRY(sb_infer_require(infer, 1, SB_SET(SB_S64), &slots));
    if (slots->rank != SB_RANK_UNKNOWN && slots->rank != 1)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "slots have rank %d where 1 is expected", slots->rank);
    sb_infer_shape_of(infer, 0, tokens, SB_S64);
    return SB_OK;
}

static sb_status eval_pending(sb_call *call) {
    const sb_tensor *slots = sb_call_input(call, 1);
    sb_tensor *tokens, *output;
    if (slots->rank != 1)
        return sb_call_fail(call, SB_ERROR_SHAPE, "slots have rank %d where 1 is expected", slots->rank);
    SB_TRY(sb_call_output(call, 0, &output));
    SB_TRY(sb_call_contiguous(call, 0, &tokens));
    const int64_t *from = (const int64_t *)(const void *)tokens->data;
    int64_t *to = (int64_t *)(void *)output->data, count = sb_tensor_elements(tokens);
    for (int64_t i = 0; i < count; i++)
        to[i] =
            sb_choose_pending(from[i], (const int64_t *)(const void *)slots->data, slots->strides[0], slots->dims[0]);
    sb_tensor_release(tokens);
    return SB_OK;
}

const sb_op sb_ops_choose[] = {
    {.name = "ChooseTokens",
     .domain = "samebit",
     .least_inputs = SB_CHOOSE_INPUTS,
     .most_inputs = SB_CHOOSE_INPUTS,
     .least_outputs = SB_CHOOSE_OUTPUTS,
     .most_outputs = SB_CHOOSE_OUTPUTS,
     .infer = infer_choose,
     .eval = eval_choose},
    {.name = "PendingTokens",
     .domain = "samebit",
     .least_inputs = 2,
     .most_inputs = 2,
     .least_outputs = 1,
     .most_outputs = 1,
     .infer = infer_pending,
     .eval = eval_pending},
    {0},
};

/* ---- rules ---- */

static sb_status axes_of_choose(const sb_axis_question *question, sb_axis_rule *answer) {
    (void)question;
    return sb_axis_exact(answer, "rows are read, and slots written, where the choices say");
}

static sb_status axes_of_pending(const sb_axis_question *question, sb_axis_rule *answer) {
    return question->input == 0 ? sb_axis_independent(question, answer, question->axis)
                                : sb_axis_exact(answer, "slots are read where the tokens say");
}

const sb_axes_entry sb_axes_choose[] = {
    {.op = {"ChooseTokens", "samebit"}, .rule = axes_of_choose, .exact = "every axis"},
    {.op = {"PendingTokens", "samebit"},
     .rule = axes_of_pending,
     .independent = "every axis of the tokens",
     .exact = "slots"},
    {.op = {NULL}},
};

const sb_cost_entry sb_cost_choose[] = {
    {.op = {"ChooseTokens", "samebit"}, .flops = &sb_flops_uncounted, .bytes = &sb_bytes_whole},
    {.op = {"PendingTokens", "samebit"}, .flops = &sb_flops_none, .bytes = &sb_bytes_whole},
    {.op = {NULL}},
};
