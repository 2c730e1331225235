/* RotaryEmbedding: pairs of elements of each head turned by an angle that the token's position chooses from two tables.
 *
 *     y1 = fma(-s, x2, fma(c, x1, +0))
 *     y2 = fma( c, x2, fma(s, x1, +0))
 *
 * in f32, rounded once when stored. Pair i of the first `rotary_embedding_dim` elements is (i, i + half), interleaved
 * (2i, 2i + 1); c and s are entry i of the token's row. Elements behind keep their bits. */
#include "ops/rotary.h"

#include <string.h>

#include "numerics/scalar.h"
#include "ops/list.h"
#include "ops/moving.h"
#include "ops/real.h"
#include "rules/counting.h"
#include "rules/question.h"

static sb_status prepare_rotary(sb_node *node, sb_error *error) {
    sb_rotary_params *params = node->params;
    int64_t interleaved;
    SB_TRY(sb_node_int(node, "num_heads", 0, &params->heads, error));
    SB_TRY(sb_node_int(node, "rotary_embedding_dim", 0, &params->rotated, error));
    SB_TRY(sb_node_int(node, "interleaved", 0, &interleaved, error));
    params->interleaved = interleaved != 0;
    if (params->heads < 0 || params->rotated < 0 || params->rotated % 2 != 0)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %s (RotaryEmbedding): num_heads %lld must not be negative, and rotary_embedding_dim %lld "
                       "must be even and not negative",
                       node->name, (long long)params->heads, (long long)params->rotated);
    return SB_OK;
}

/* Extents of the tables and positions, as far as they are known. */
static sb_status infer_extents(const sb_infer *infer, const sb_fact *x, const sb_fact *positions) {
    const sb_rotary_params *params = infer->node->params;
    sb_dim tokens = x->dims[x->rank == 4 ? 2 : 1];
    int64_t width, rotated = params->rotated, pairs;
    char given[SB_FACT_TEXT_BYTES], input[SB_FACT_TEXT_BYTES];
    bool fits = true;
    if (sb_dim_is_constant(x->dims[x->rank - 1], &width)) {
        int64_t head = x->rank == 4 ? width : width / params->heads;
        rotated = rotated == 0 ? head : rotated;
        fits = (x->rank == 4 || width % params->heads == 0) && rotated % 2 == 0 && rotated <= head;
    }
    sb_fact_text(x, input, sizeof input);
    if (!fits)
        return sb_infer_fail(infer, SB_ERROR_SHAPE,
                             "%s does not consist of %lld heads of which an even number of elements, %lld, is turned",
                             input, (long long)(x->rank == 4 ? 1 : params->heads), (long long)rotated);
    for (int i = 1; i < 3; i++) {
        const sb_fact *table = sb_infer_input(infer, i);
        if (table->rank == SB_RANK_UNKNOWN)
            continue;
        fits = rotated == 0 || !sb_dim_is_constant(table->dims[table->rank - 1], &pairs) || pairs == rotated / 2;
        if (positions == NULL)
            fits = fits && !sb_dims_clash(table->dims[0], x->dims[0]) && !sb_dims_clash(table->dims[1], tokens);
        if (!fits)
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d, %s, does not fit the tokens of %s with %lld pairs",
                                 i, sb_fact_text(table, given, sizeof given), input, (long long)rotated / 2);
    }
    if (positions != NULL && positions->rank != SB_RANK_UNKNOWN &&
        (sb_dims_clash(positions->dims[0], x->dims[0]) || sb_dims_clash(positions->dims[1], tokens)))
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "position_ids %s do not fit the tokens of %s",
                             sb_fact_text(positions, given, sizeof given), input);
    return SB_OK;
}

static sb_status infer_rotary(sb_infer *infer) {
    const sb_rotary_params *params = infer->node->params;
    const sb_fact *x, *table, *positions = NULL;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_FLOAT & ~SB_SET(SB_F64), &x));
    if (sb_infer_input(infer, 3) != NULL)
        SB_TRY(sb_infer_require(infer, 3, SB_SET(SB_S64), &positions));
    for (int i = 1; i < 3; i++) {
        SB_TRY(sb_infer_require(infer, i, SB_SET(x->dtype), &table));
        int expected = positions != NULL ? 2 : 3;
        if (table->rank != SB_RANK_UNKNOWN && table->rank != expected)
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d has rank %d; %s position_ids it has %d", i,
                                 table->rank, positions != NULL ? "with" : "without", expected);
    }
    if (positions != NULL && positions->rank != SB_RANK_UNKNOWN && positions->rank != 2)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "position_ids have rank %d where batch and tokens are expected",
                             positions->rank);
    if (x->rank != SB_RANK_UNKNOWN && x->rank != 3 && x->rank != 4)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "input 0 has rank %d where 3 or 4 is expected", x->rank);
    if (x->rank == 3 && params->heads == 0)
        return sb_infer_fail(infer, SB_ERROR_INVALID_MODEL, "an input of three axes needs the attribute num_heads");
    sb_infer_shape_of(infer, 0, x, x->dtype);
    return x->rank == SB_RANK_UNKNOWN ? SB_OK : infer_extents(infer, x, positions);
}

/* ---- evaluation ---- */

/* [batch, tokens, heads, head_size] of an input [batch, heads, tokens, head_size] or [batch, tokens, all heads]. */
static void describe_steps(const sb_tensor *tensor, int64_t head_size, int64_t steps[4]) {
    bool apart = tensor->rank == 4;
    int last = tensor->rank - 1;
    steps[0] = tensor->strides[0];
    steps[1] = tensor->strides[apart ? 2 : 1];
    steps[2] = apart ? tensor->strides[1] : head_size * tensor->strides[last];
    steps[3] = tensor->strides[last];
}

static sb_status check_tables(const sb_call *call, const sb_rotary *rotary) {
    for (int i = 1; i < 3; i++) {
        const sb_tensor *table = sb_call_input(call, i);
        bool fits = table->dims[table->rank - 1] == rotary->half;
        if (rotary->positions == NULL)
            fits = fits && table->dims[0] == rotary->batch && table->dims[1] == rotary->tokens;
        else
            fits = fits && table->dims[0] == sb_call_input(call, 1)->dims[0];
        char shape[SB_DIMS_TEXT_BYTES];
        if (!fits)
            return sb_call_fail(call, SB_ERROR_SHAPE,
                                "input %d %s does not fit %lld batch rows of %lld tokens with %lld pairs to be turned",
                                i, sb_dims_text(table->rank, table->dims, shape), (long long)rotary->batch,
                                (long long)rotary->tokens, (long long)rotary->half);
    }
    return SB_OK;
}

static int64_t position_of(const sb_rotary *rotary, int64_t batch, int64_t token) {
    const sb_tensor *positions = rotary->positions;
    return (
        (const int64_t *)(const void *)positions->data)[batch * positions->strides[0] + token * positions->strides[1]];
}

static sb_status check_position_shape(const sb_call *call, const sb_rotary *rotary) {
    const sb_tensor *positions = rotary->positions;
    char shape[SB_DIMS_TEXT_BYTES];
    if (positions == NULL || (positions->dims[0] == rotary->batch && positions->dims[1] == rotary->tokens))
        return SB_OK;
    return sb_call_fail(call, SB_ERROR_SHAPE, "position_ids %s do not fit %lld batch rows of %lld tokens",
                        sb_dims_text(positions->rank, positions->dims, shape), (long long)rotary->batch,
                        (long long)rotary->tokens);
}

sb_status sb_rotary_describe(const sb_call *call, sb_tensor *y, sb_rotary *rotary) {
    const sb_rotary_params *params = call->node->params;
    const sb_tensor *x = sb_call_input(call, 0);
    bool apart = x->rank == 4;
    int64_t width = x->dims[x->rank - 1];
    *rotary = (sb_rotary){.x = x,
                          .y = y,
                          .cosines = sb_call_input(call, 1),
                          .sines = sb_call_input(call, 2),
                          .positions = sb_call_input(call, 3),
                          .batch = x->dims[0],
                          .tokens = x->dims[apart ? 2 : 1],
                          .heads = apart ? x->dims[1] : params->heads,
                          .interleaved = params->interleaved};
    rotary->head_size = apart ? width : width / rotary->heads;
    int64_t rotated = params->rotated != 0 ? params->rotated : rotary->head_size;
    rotary->half = rotated / 2;
    if ((!apart && width % rotary->heads != 0) || rotated % 2 != 0 || rotated > rotary->head_size)
        return sb_call_fail(call, SB_ERROR_SHAPE,
                            "%lld elements do not make %lld heads of which an even number of elements, %lld, is turned",
                            (long long)width, (long long)(apart ? 1 : rotary->heads), (long long)rotated);
    describe_steps(x, rotary->head_size, rotary->x_steps);
    describe_steps(y, rotary->head_size, rotary->y_steps);
    SB_TRY(check_tables(call, rotary));
    return check_position_shape(call, rotary);
}

sb_status sb_rotary_check(const sb_call *call, const sb_rotary *rotary) {
    for (int64_t i = 0; rotary->positions != NULL && i < rotary->batch * rotary->tokens; i++) {
        int64_t position = position_of(rotary, i / rotary->tokens, i % rotary->tokens);
        if (position < 0 || position >= rotary->cosines->dims[0])
            return sb_call_fail(call, SB_ERROR_SHAPE, "position %lld is outside of the tables' %lld rows",
                                (long long)position, (long long)rotary->cosines->dims[0]);
    }
    return SB_OK;
}

/* One head of a token, whose rows of the tables are given as f32 elements or 16-bit ones. */
static void turn_head(const sb_rotary *rotary, const char *x, char *y, const char *cosines, const char *sines) {
    sb_dtype dtype = rotary->y->dtype;
    int64_t size = (int64_t)sb_dtype_size(dtype), x_step = rotary->x_steps[3], y_step = rotary->y_steps[3];
    int64_t cosine_step = rotary->cosines->strides[rotary->cosines->rank - 1];
    int64_t sine_step = rotary->sines->strides[rotary->sines->rank - 1];
    for (int64_t i = 0; i < rotary->half; i++) {
        int64_t first = rotary->interleaved ? 2 * i : i;
        int64_t second = rotary->interleaved ? 2 * i + 1 : i + rotary->half;
        float c = sb_real_load_f32(dtype, cosines, i * cosine_step), s = sb_real_load_f32(dtype, sines, i * sine_step);
        float x1 = sb_real_load_f32(dtype, x, first * x_step), x2 = sb_real_load_f32(dtype, x, second * x_step);
        float y1 = sb_fma_f32(-s, x2, sb_fma_f32(c, x1, 0.0f));
        float y2 = sb_fma_f32(c, x2, sb_fma_f32(s, x1, 0.0f));
        sb_real_store_f32(dtype, y, first * y_step, y1);
        sb_real_store_f32(dtype, y, second * y_step, y2);
    }
    for (int64_t i = 2 * rotary->half; i < rotary->head_size; i++)
        memcpy(y + i * y_step * size, x + i * x_step * size, (size_t)size);
}

const char *sb_rotary_row(const sb_rotary *rotary, const sb_tensor *table, int64_t batch, int64_t token) {
    int64_t offset = rotary->positions != NULL ? position_of(rotary, batch, token) * table->strides[0]
                                               : batch * table->strides[0] + token * table->strides[1];
    return table->data + offset * (int64_t)sb_dtype_size(table->dtype);
}

void sb_rotary_tokens(const sb_rotary *rotary, int64_t begin, int64_t end) {
    int64_t size = (int64_t)sb_dtype_size(rotary->y->dtype);
    for (int64_t i = begin; i < end; i++) {
        int64_t batch = i / rotary->tokens, token = i % rotary->tokens;
        const char *cosines = sb_rotary_row(rotary, rotary->cosines, batch, token);
        const char *sines = sb_rotary_row(rotary, rotary->sines, batch, token);
        for (int64_t head = 0; head < rotary->heads; head++) {
            int64_t from = batch * rotary->x_steps[0] + token * rotary->x_steps[1] + head * rotary->x_steps[2];
            int64_t to = batch * rotary->y_steps[0] + token * rotary->y_steps[1] + head * rotary->y_steps[2];
            turn_head(rotary, rotary->x->data + from * size, rotary->y->data + to * size, cosines, sines);
        }
    }
}

static sb_status eval_rotary(sb_call *call) {
    sb_tensor *y;
    sb_rotary rotary;
    SB_TRY(sb_call_output(call, 0, &y));
    SB_TRY(sb_rotary_describe(call, y, &rotary));
    SB_TRY(sb_rotary_check(call, &rotary));
    if (sb_tensor_elements(y) != 0)
        sb_rotary_tokens(&rotary, 0, rotary.batch * rotary.tokens);
    return SB_OK;
}

const sb_op sb_ops_rotary[] = {
    {.name = "RotaryEmbedding",
     .domain = "",
     .least_inputs = 3,
     .most_inputs = 4,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(sb_rotary_params),
     .prepare = prepare_rotary,
     .infer = infer_rotary,
     .eval = eval_rotary},
    {0},
};

/* ---- rules: x [batch, heads, tokens, head] or [batch, tokens, heads and head], tables [batch, tokens, pairs] or
 * [positions, pairs], positions [batch, tokens] ---- */

#define HEAD "its extent says which elements make a pair"

static sb_status axes_of_rotary(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_fact *x = sb_axis_input(question, 0);
    if (x == NULL)
        return sb_axis_unknown(answer, "the rank of an input is not known");
    int tokens = x->rank == 4 ? 2 : 1;
    bool last = question->input < 3 && question->axis == sb_axis_asked(question)->rank - 1;
    if (last)
        return sb_axis_exact(answer, HEAD);
    if (question->input == 0)
        return sb_axis_independent(question, answer, question->axis);
    if (question->input < 3 && sb_axis_asked(question)->rank == 2)
        return sb_axis_bounded(question, answer, SB_AXIS_NONE, "positions are checked against it");
    return sb_axis_independent(question, answer, question->axis == 0 ? 0 : tokens);
}

const sb_axes_entry sb_axes_rotary[] = {
    {.op = {"RotaryEmbedding"},
     .rule = axes_of_rotary,
     .checked = 8,
     .independent = "batch, tokens, heads of four axes",
     .bounded = "positions that the tables have",
     .exact = "elements of a head, pairs"},
    {.op = {NULL}},
};

/* Of tables that positions choose from, the rows that they choose. */
static void bytes_of_rotary(const sb_cost_question *question, sb_dim *read, sb_dim *written) {
    const sb_fact *x = sb_cost_input(question, 0), *table = sb_cost_input(question, 1);
    const sb_fact *positions = sb_cost_input(question, 3);
    sb_bytes_whole.count(question, read, written);
    if (question->node->input_count < 4 || question->node->inputs[3] == SB_NO_VALUE)
        return;
    *read = NULL;
    if (x == NULL || table == NULL || table->rank != 2 || positions == NULL)
        return;
    sb_dim pairs = sb_dim_multiply(question->scope, sb_cost_extents(question, positions, 0), table->dims[1]);
    sb_dim rows = sb_cost_times(question, 2 * (int64_t)sb_dtype_size(table->dtype), pairs);
    sb_dim others = sb_dim_add(question->scope, sb_cost_bytes(question, x), sb_cost_bytes(question, positions));
    *read = sb_dim_add(question->scope, others, rows);
}

static const sb_bytes_rule rotary_bytes = {bytes_of_rotary, "x, positions, the rows that they choose, and the output"};

const sb_cost_entry sb_cost_rotary[] = {
    {.op = {"RotaryEmbedding"}, .flops = &sb_flops_per_output, .number = 4, .bytes = &rotary_bytes},
    {.op = {NULL}},
};
