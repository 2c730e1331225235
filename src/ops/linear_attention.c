/* LinearAttention (docs/numerics.md, section 10): a recurrence over positions whose state is a matrix S [width of keys,
 * width of values] for each head of keys.
 *
 *     S[i, j] = e^decay[i] · S[i, j]                            with a decay
 *     u[j]    = beta · (v[j] - chain over i of S[i, j] · k[i])   with beta; else u = v
 *     S[i, j] = fma(k[i], u[j], S[i, j])
 *     o[j]    = scale · chain over i of q[i] · S[i, j]           for each head of queries that shares S
 *
 * in this order, each operation rounded once in f32, chains of fma from +0 over ascending i. What is of 16 bits is widened,
 * and rounded once when it is stored: the output, and the state behind the last position.
 *
 * Columns j do not see each other, so threads share out heads and a few columns each. */
#include "ops/linear_attention.h"

#include <math.h>
#include <string.h>

#include "base/allocation.h"
#include "numerics/elementary.h"
#include "ops/list.h"
#include "ops/real.h"
#include "rules/counting.h"
#include "rules/question.h"

enum { QUERY, KEY, VALUE, PAST, DECAY, BETA };
enum { OUTPUT, PRESENT };
enum { DECAYS = SB_LINEAR_DECAYS, CORRECTS = SB_LINEAR_CORRECTS };

#define SET_SMALL (SB_SET(SB_F16) | SB_SET(SB_BF16) | SB_SET(SB_F32))
#define TILE 64 /* columns at a time */

typedef sb_linear_params linear_params;

/* ---- attributes ---- */

static sb_status prepare_linear(sb_node *node, sb_error *error) {
    static const struct {
        const char *name;
        int rule;
    } rules[] = {{"linear", 0}, {"gated", DECAYS}, {"delta", CORRECTS}, {"gated_delta", DECAYS | CORRECTS}};
    linear_params *params = node->params;
    const char *rule;
    int found = -1;
    SB_TRY(sb_node_string(node, "update_rule", "gated_delta", &rule, error));
    SB_TRY(sb_node_int(node, "q_num_heads", 0, &params->heads, error));
    SB_TRY(sb_node_int(node, "kv_num_heads", 0, &params->key_heads, error));
    SB_TRY(sb_node_float(node, "scale", 0, &params->scale, error));
    for (int i = 0; i < 4; i++)
        found = strcmp(rule, rules[i].name) == 0 ? i : found;
    if (found < 0)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %s (%s): update_rule is \"%.40s\"; it is linear, gated, delta or gated_delta", node->name,
                       node->op->name, rule);
    params->rule = rules[found].rule;
    if (params->heads < 1 || params->key_heads < 1 || params->heads % params->key_heads != 0)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %s (%s): q_num_heads %lld must be a positive multiple of kv_num_heads %lld", node->name,
                       node->op->name, (long long)params->heads, (long long)params->key_heads);
    if (!isfinite(params->scale))
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (%s): scale must be a finite number", node->name,
                       node->op->name);
    return SB_OK;
}

/* ---- facts ---- */

/* The extents of a packed input [batch, positions, heads · width] as far as they are known; its width becomes *width. */
static sb_status unpack(const sb_infer *infer, int index, const sb_fact *fact, int64_t heads, sb_dim *width) {
    int64_t hidden;
    *width = NULL;
    if (fact->rank == SB_RANK_UNKNOWN)
        return SB_OK;
    if (fact->rank != 3)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d has rank %d where 3 is expected", index, fact->rank);
    if (sb_dim_is_constant(fact->dims[2], &hidden) && hidden % heads != 0)
        return sb_infer_fail(infer, SB_ERROR_SHAPE,
                             "the last extent of input %d, %lld, is no multiple of its %lld heads", index,
                             (long long)hidden, (long long)heads);
    *width = sb_dim_floor_divide(infer->scope, fact->dims[2], sb_dim_constant(infer->scope, heads));
    return SB_OK;
}

static sb_status check_optional(const sb_infer *infer, int index, const char *name, bool wanted, sb_dtype dtype) {
    const sb_fact *fact = sb_infer_input(infer, index);
    if ((fact != NULL) != wanted)
        return sb_infer_fail(infer, SB_ERROR_INVALID_MODEL,
                             wanted ? "its update_rule needs %s" : "its update_rule has no %s", name);
    if (fact == NULL)
        return SB_OK;
    SB_TRY(sb_infer_require(infer, index, SB_SET(dtype), &fact));
    if (fact->rank != 3 && fact->rank != SB_RANK_UNKNOWN)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "%s has rank %d where 3 is expected", name, fact->rank);
    return SB_OK;
}

static sb_status infer_linear(sb_infer *infer) {
    const linear_params *params = infer->node->params;
    const sb_fact *query, *key, *value, *past = sb_infer_input(infer, PAST);
    sb_dim query_width, key_width, value_width;
    SB_TRY(sb_infer_require(infer, QUERY, SET_SMALL, &query));
    SB_TRY(sb_infer_require(infer, KEY, SB_SET(query->dtype), &key));
    SB_TRY(sb_infer_require(infer, VALUE, SB_SET(query->dtype), &value));
    SB_TRY(unpack(infer, QUERY, query, params->heads, &query_width));
    SB_TRY(unpack(infer, KEY, key, params->key_heads, &key_width));
    SB_TRY(unpack(infer, VALUE, value, params->key_heads, &value_width));
    int64_t of_queries, of_keys;
    if (query_width != NULL && key_width != NULL && sb_dim_is_constant(query_width, &of_queries) &&
        sb_dim_is_constant(key_width, &of_keys) && of_queries != of_keys)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "heads of queries have width %lld, those of keys %lld",
                             (long long)of_queries, (long long)of_keys);
    SB_TRY(check_optional(infer, DECAY, "decay", (params->rule & DECAYS) != 0, query->dtype));
    SB_TRY(check_optional(infer, BETA, "beta", (params->rule & CORRECTS) != 0, query->dtype));
    if (past != NULL)
        SB_TRY(sb_infer_require(infer, PAST, SET_SMALL, &past));
    sb_dim batch = query->rank == 3 ? query->dims[0] : sb_infer_fresh(infer, OUTPUT, 0);
    sb_dim positions = query->rank == 3 ? query->dims[1] : sb_infer_fresh(infer, OUTPUT, 1);
    query_width = query_width != NULL ? query_width : sb_infer_fresh(infer, PRESENT, 2);
    value_width = value_width != NULL ? value_width : sb_infer_fresh(infer, PRESENT, 3);
    sb_dim heads = sb_dim_constant(infer->scope, params->heads);
    sb_dim key_heads = sb_dim_constant(infer->scope, params->key_heads);
    if (infer->output_count > OUTPUT)
        sb_fact_set_tensor(&infer->outputs[OUTPUT], query->dtype, 3,
                           (sb_dim[]){batch, positions, sb_dim_multiply(infer->scope, heads, value_width)});
    if (infer->output_count > PRESENT)
        sb_fact_set_tensor(&infer->outputs[PRESENT], past != NULL ? past->dtype : query->dtype, 4,
                           (sb_dim[]){batch, key_heads, query_width, value_width});
    return SB_OK;
}

/* ---- evaluation ---- */

typedef struct recurrence {
    sb_linear_work work;
    int64_t tiles;
    float *states; /* [batch, key heads, tile, width, TILE] */
} recurrence;

/* A column tile of a head. */
typedef struct part {
    const recurrence *run;
    int64_t batch, head, first, columns;
    float *state; /* [width][TILE] */
} part;

/* Element `column` of position `at`, of a packed input. */
static float load(const sb_tensor *tensor, int64_t batch, int64_t at, int64_t column) {
    return sb_real_load_f32(tensor->dtype, tensor->data,
                            batch * tensor->strides[0] + at * tensor->strides[1] + column * tensor->strides[2]);
}

static void decay_state(const part *p, int64_t at) {
    const sb_linear_work *run = &p->run->work;
    bool each = run->decay->dims[2] != run->params->key_heads;
    for (int64_t i = 0; i < run->width; i++) {
        float decay = load(run->decay, p->batch, at, each ? p->head * run->width + i : p->head);
        float factor = sb_exp_f32(decay);
        for (int64_t j = 0; j < p->columns; j++)
            p->state[i * TILE + j] = factor * p->state[i * TILE + j];
    }
}

/* sum[j] = the chain over i of row[i] · S[i, j]. */
static void read_state(const part *p, const sb_tensor *rows, int64_t at, int64_t head, float *sum) {
    memset(sum, 0, TILE * sizeof *sum);
    for (int64_t i = 0; i < p->run->work.width; i++) {
        float factor = load(rows, p->batch, at, head * p->run->work.width + i);
        for (int64_t j = 0; j < p->columns; j++)
            sum[j] = sb_fma_f32(factor, p->state[i * TILE + j], sum[j]);
    }
}

static void correct(const part *p, int64_t at, float *u) {
    const sb_linear_work *run = &p->run->work;
    float known[TILE], rate = load(run->beta, p->batch, at, run->beta->dims[2] != 1 ? p->head : 0);
    read_state(p, run->key, at, p->head, known);
    for (int64_t j = 0; j < p->columns; j++)
        u[j] = rate * (u[j] - known[j]);
}

static void write_state(const part *p, int64_t at, const float *u) {
    for (int64_t i = 0; i < p->run->work.width; i++) {
        float factor = load(p->run->work.key, p->batch, at, p->head * p->run->work.width + i);
        for (int64_t j = 0; j < p->columns; j++)
            p->state[i * TILE + j] = sb_fma_f32(factor, u[j], p->state[i * TILE + j]);
    }
}

static void read_queries(const part *p, int64_t at) {
    const sb_linear_work *run = &p->run->work;
    int64_t group = run->params->heads / run->params->key_heads;
    float sum[TILE];
    for (int64_t head = p->head * group; head < (p->head + 1) * group && run->output != NULL; head++) {
        const sb_tensor *output = run->output;
        read_state(p, run->query, at, head, sum);
        for (int64_t j = 0; j < p->columns; j++) {
            int64_t column = head * run->value_width + p->first + j;
            sb_real_store_f32(output->dtype, output->data,
                              p->batch * output->strides[0] + at * output->strides[1] + column * output->strides[2],
                              run->scale * sum[j]);
        }
    }
}

/* Element [i, first + j] of this head's state in a tensor. */
static int64_t state_index(const part *p, const sb_tensor *state, int64_t i, int64_t j) {
    return p->batch * state->strides[0] + p->head * state->strides[1] + i * state->strides[2] +
           (p->first + j) * state->strides[3];
}

static void run_part(const part *p) {
    const sb_linear_work *run = &p->run->work;
    float u[TILE];
    for (int64_t i = 0; i < run->width && run->past != NULL; i++) {
        for (int64_t j = 0; j < p->columns; j++)
            p->state[i * TILE + j] =
                sb_real_load_f32(run->past->dtype, run->past->data, state_index(p, run->past, i, j));
    }
    for (int64_t at = 0; at < run->positions; at++) {
        if ((run->params->rule & DECAYS) != 0)
            decay_state(p, at);
        for (int64_t j = 0; j < p->columns; j++)
            u[j] = load(run->value, p->batch, at, p->head * run->value_width + p->first + j);
        if ((run->params->rule & CORRECTS) != 0)
            correct(p, at, u);
        write_state(p, at, u);
        read_queries(p, at);
    }
    for (int64_t i = 0; i < run->width && run->present != NULL; i++) {
        for (int64_t j = 0; j < p->columns; j++)
            sb_real_store_f32(run->present->dtype, run->present->data, state_index(p, run->present, i, j),
                              p->state[i * TILE + j]);
    }
}

static void run_parts(void *context, int64_t begin, int64_t end) {
    const recurrence *run = context;
    const sb_linear_work *work = &run->work;
    for (int64_t index = begin; index < end; index++) {
        part p = {.run = run, .first = index % run->tiles * TILE};
        p.head = index / run->tiles % work->params->key_heads;
        p.batch = index / run->tiles / work->params->key_heads;
        p.columns = work->value_width - p.first < TILE ? work->value_width - p.first : TILE;
        p.state = run->states + index * work->width * TILE;
        run_part(&p);
    }
}

static sb_status check_extents(const sb_call *call, int index, const sb_tensor *tensor, int rank,
                               const int64_t *wanted) {
    char have[SB_DIMS_TEXT_BYTES], want[SB_DIMS_TEXT_BYTES];
    if (tensor == NULL || (tensor->rank == rank && memcmp(tensor->dims, wanted, (size_t)rank * sizeof *wanted) == 0))
        return SB_OK;
    return sb_call_fail(call, SB_ERROR_SHAPE, "input %d has shape %s where %s is expected", index,
                        sb_dims_text(tensor->rank, tensor->dims, have), sb_dims_text(rank, wanted, want));
}

static sb_status measure(const sb_call *call, sb_linear_work *work) {
    const linear_params *params = work->params;
    const sb_tensor *query = work->query, *value = work->value, *decay = work->decay, *beta = work->beta;
    if (query->rank != 3 || value->rank != 3 || query->dims[2] % params->heads != 0 ||
        value->dims[2] % params->key_heads != 0)
        return sb_call_fail(call, SB_ERROR_SHAPE, "query and value must be [batch, positions, heads · width]");
    work->batch = query->dims[0];
    work->positions = query->dims[1];
    work->width = query->dims[2] / params->heads;
    work->value_width = value->dims[2] / params->key_heads;
    int64_t keys = work->width * params->key_heads; /* no more than the query has */
    SB_TRY(check_extents(call, KEY, work->key, 3, (int64_t[]){work->batch, work->positions, keys}));
    SB_TRY(check_extents(call, VALUE, value, 3, (int64_t[]){work->batch, work->positions, value->dims[2]}));
    SB_TRY(check_extents(call, PAST, work->past, 4,
                         (int64_t[]){work->batch, params->key_heads, work->width, work->value_width}));
    bool one_each = decay != NULL && decay->rank == 3 && decay->dims[2] == params->key_heads;
    SB_TRY(check_extents(call, DECAY, decay, 3,
                         (int64_t[]){work->batch, work->positions, one_each ? params->key_heads : keys}));
    bool one = beta != NULL && beta->rank == 3 && beta->dims[2] == 1;
    SB_TRY(check_extents(call, BETA, beta, 3, (int64_t[]){work->batch, work->positions, one ? 1 : params->key_heads}));
    work->scale = params->scale;
    if (work->scale == 0)
        work->scale = sb_div_f32(1, sb_sqrt_f32(work->width > 0 ? (float)work->width : 1));
    return SB_OK;
}

sb_status sb_linear_describe(const sb_call *call, sb_linear_work *work) {
    *work = (sb_linear_work){.params = call->node->params,
                             .query = sb_call_input(call, QUERY),
                             .key = sb_call_input(call, KEY),
                             .value = sb_call_input(call, VALUE),
                             .past = sb_call_input(call, PAST),
                             .decay = sb_call_input(call, DECAY),
                             .beta = sb_call_input(call, BETA)};
    return measure(call, work);
}

sb_status sb_linear_make_outputs(sb_call *call, sb_linear_work *work) {
    if (sb_call_wants(call, OUTPUT))
        SB_TRY(sb_call_output(call, OUTPUT, &work->output));
    return sb_call_wants(call, PRESENT) ? sb_call_output(call, PRESENT, &work->present) : SB_OK;
}

static sb_status eval_linear(sb_call *call) {
    recurrence run = {.states = NULL};
    sb_linear_work *work = &run.work;
    SB_TRY(sb_linear_describe(call, work));
    SB_TRY(sb_linear_make_outputs(call, work));
    run.tiles = (work->value_width + TILE - 1) / TILE;
    int64_t parts, floats;
    if (__builtin_mul_overflow(work->batch, work->params->key_heads, &parts) ||
        __builtin_mul_overflow(parts, run.tiles, &parts) || __builtin_mul_overflow(work->width, TILE, &floats))
        return sb_call_fail(call, SB_ERROR_SHAPE, "the states are too large");
    run.states = sb_allocate_array((size_t)parts, (size_t)floats * sizeof(float));
    if (run.states == NULL)
        return sb_fail_memory(call->error, (size_t)parts * (size_t)floats * sizeof(float));
    sb_workers_run(call->workers, parts, 1, run_parts, &run);
    sb_free(run.states);
    return SB_OK;
}

const sb_op sb_ops_linear_attention[] = {
    {.name = "LinearAttention",
     .domain = "",
     .least_inputs = 3,
     .most_inputs = 6,
     .least_outputs = 1,
     .most_outputs = 2,
     .params_size = sizeof(linear_params),
     .prepare = prepare_linear,
     .infer = infer_linear,
     .eval = eval_linear},
    {0},
};

/* ---- axes ---- */

static sb_status linear_axes(const sb_axis_question *question, sb_axis_rule *answer) {
    if (question->axis == 0)
        return sb_axis_independent(question, answer, 0);
    if (question->axis != 1 || question->input == PAST)
        return sb_axis_exact(answer, "heads and their widths are laid out in it");
    sb_axis_bounded(question, answer, SB_AXIS_NONE, "the state goes on from position to position");
    if (answer->output_axes != NULL && question->node->output_count > OUTPUT)
        answer->output_axes[OUTPUT] = 1;
    return SB_OK;
}

const sb_axes_entry sb_axes_linear_attention[] = {
    {.op = {"LinearAttention"},
     .rule = linear_axes,
     .independent = "batch",
     .bounded = "positions",
     .exact = "heads and their widths"},
    {.op = {NULL}},
};

/* ---- cost ---- */

/* Each position reads each state once for each head of queries and writes it; a correction reads it once more, a decay
 * multiplies it. */
static sb_dim linear_flops(const sb_cost_question *question, int64_t number) {
    const linear_params *params = question->node->params;
    const sb_fact *query = sb_cost_input(question, QUERY), *value = sb_cost_input(question, VALUE);
    if (query == NULL || value == NULL || query->rank != 3 || value->rank != 3)
        return NULL;
    sb_scope *scope = question->scope;
    int64_t each = 2 * params->heads + 2 * params->key_heads;
    each += (params->rule & CORRECTS) != 0 ? 2 * params->key_heads : 0;
    each += (params->rule & DECAYS) != 0 ? params->key_heads : 0;
    sb_dim width = sb_dim_floor_divide(scope, query->dims[2], sb_dim_constant(scope, params->heads));
    sb_dim value_width = sb_dim_floor_divide(scope, value->dims[2], sb_dim_constant(scope, params->key_heads));
    sb_dim rows = sb_dim_multiply(scope, query->dims[0], query->dims[1]);
    return sb_cost_times(question, each, sb_dim_multiply(scope, rows, sb_dim_multiply(scope, width, value_width)));
}

static const sb_flops_rule linear_rule = {
    linear_flops,
    "per position and element of a state: 2 for each head of queries that reads it, and 2; 2 more to correct "
    "it, 1 for a decay"};

const sb_cost_entry sb_cost_linear_attention[] = {
    {.op = {"LinearAttention"}, .flops = &linear_rule, .bytes = &sb_bytes_whole},
    {.op = {NULL}},
};
