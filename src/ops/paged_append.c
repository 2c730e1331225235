/* What stands between the projections of attention and attention over pages, as one node: queries and keys are turned, and keys
 * and values go into their caches. Samebit's own.
 *
 *     key_cache, value_cache   [pages, rows of a page, width]
 *     queries                  [1, rows, q_num_heads · head]
 *     keys, values             [1, rows, width]
 *     starts, begins, table    as PagedScatter has them
 *     cosines, sines           [positions, pairs]
 *     positions                s64 [1, rows]
 *
 * It is RotaryEmbedding of queries and of keys, and PagedScatter of the turned keys and of the values, bit for bit: with the
 * attributes rotary_embedding_dim and interleaved, and q_num_heads and kv_num_heads for num_heads. Outputs are both caches and the turned
 * queries. On a GPU four small kernels are one. */
#include "ops/paged_append.h"

#include <string.h>

#include "ops/list.h"
#include "ops/moving.h"
#include "ops/paged.h"
#include "ops/rotary.h"
#include "rules/counting.h"
#include "rules/question.h"

typedef struct append_params {
    sb_rotary_params queries, keys;
} append_params;

static const int rotation_inputs[] = {SB_APPEND_COSINES, SB_APPEND_SINES, SB_APPEND_POSITIONS};
static const int scatter_inputs[] = {SB_APPEND_STARTS, SB_APPEND_BEGINS, SB_APPEND_TABLE};

static sb_status prepare_append(sb_node *node, sb_error *error) {
    append_params *params = node->params;
    int64_t interleaved;
    SB_TRY(sb_node_int(node, "q_num_heads", 0, &params->queries.heads, error));
    SB_TRY(sb_node_int(node, "kv_num_heads", 0, &params->keys.heads, error));
    SB_TRY(sb_node_int(node, "rotary_embedding_dim", 0, &params->keys.rotated, error));
    SB_TRY(sb_node_int(node, "interleaved", 0, &interleaved, error));
    params->keys.interleaved = params->queries.interleaved = interleaved != 0;
    params->queries.rotated = params->keys.rotated;
    if (params->queries.heads < 1 || params->keys.heads < 1 || params->keys.rotated < 0 ||
        params->keys.rotated % 2 != 0)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %s (PagedAppend): q_num_heads and kv_num_heads must be given, and rotary_embedding_dim "
                       "%lld must be even and not negative",
                       node->name, (long long)params->keys.rotated);
    return SB_OK;
}

/* ---- inference ---- */

/* A node that is named as the whole, with the parameters of a rotation or none. */
static sb_node stand_in(const sb_node *whole, int rows) {
    append_params *params = whole->params;
    return (sb_node){.op = whole->op,
                     .version = whole->version,
                     .name = whole->name,
                     .params = rows == SB_APPEND_QUERIES ? &params->queries
                               : rows == SB_APPEND_KEYS  ? &params->keys
                                                         : NULL};
}

static sb_status infer_part(const sb_infer *whole, const char *domain, const char *op, int rows, const sb_fact *first,
                            const sb_fact *second, const int others[3], sb_fact *made) {
    const sb_fact *inputs[SB_APPEND_PART_INPUTS];
    sb_node node = stand_in(whole->node, rows);
    int count = 0;
    inputs[count++] = first;
    if (second != NULL)
        inputs[count++] = second;
    for (int i = 0; i < 3; i++)
        inputs[count++] = sb_infer_input(whole, others[i]);
    sb_infer part = {.node = &node,
                     .scope = whole->scope,
                     .input_count = count,
                     .inputs = inputs,
                     .output_count = 1,
                     .outputs = made,
                     .error = whole->error};
    return sb_op_find(domain, op)->infer(&part);
}

static sb_status infer_append(sb_infer *infer) {
    const sb_fact *queries, *keys, *values, *caches[2];
    sb_fact turned = {0};
    SB_TRY(sb_infer_require(infer, SB_APPEND_QUERIES, SB_SET_FLOAT & ~SB_SET(SB_F64), &queries));
    SB_TRY(sb_infer_require(infer, SB_APPEND_KEYS, SB_SET(queries->dtype), &keys));
    SB_TRY(sb_infer_require(infer, SB_APPEND_VALUES, SB_SET(queries->dtype), &values));
    for (int i = 0; i < 2; i++)
        SB_TRY(sb_infer_require(infer, i, SB_SET(queries->dtype), &caches[i]));
    if (queries->rank != SB_RANK_UNKNOWN && queries->rank != 3)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "queries have rank %d where 3 is expected", queries->rank);
    if (queries->rank == 3 && keys->rank == 3 &&
        (sb_dims_clash(queries->dims[0], keys->dims[0]) || sb_dims_clash(queries->dims[1], keys->dims[1])))
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "queries and keys must have the same rows");
    if (keys->rank == 3 && values->rank == 3 && sb_dims_clash(keys->dims[1], values->dims[1]))
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "keys and values must have the same rows");
    SB_TRY(infer_part(infer, "samebit", "PagedScatter", -1, caches[0], keys, scatter_inputs, &infer->outputs[0]));
    SB_TRY(infer_part(infer, "samebit", "PagedScatter", -1, caches[1], values, scatter_inputs, &infer->outputs[1]));
    SB_TRY(infer_part(infer, "", "RotaryEmbedding", SB_APPEND_QUERIES, queries, NULL, rotation_inputs,
                      &infer->outputs[SB_APPEND_TURNED]));
    sb_status status = infer_part(infer, "", "RotaryEmbedding", SB_APPEND_KEYS, keys, NULL, rotation_inputs, &turned);
    sb_fact_clear(&turned);
    return status;
}

/* ---- parts of a call ---- */

static void begin_part(const sb_call *whole, int rows, sb_append_part *part) {
    part->node = stand_in(whole->node, rows);
    part->node.inputs = part->ids;
    part->output = (sb_value){0};
    part->call = *whole;
    part->call.node = &part->node;
    part->call.input_count = 0;
    part->call.inputs = part->inputs;
    part->call.output_count = 1;
    part->call.outputs = &part->output;
    part->call.state = NULL;
    part->call.facts = NULL; /* outputs are made by the whole */
}

static void give_input(const sb_call *whole, int input, sb_append_part *part) {
    int at = part->call.input_count++;
    part->inputs[at] = whole->inputs[input];
    part->ids[at] = whole->node->inputs[input];
    part->node.input_count = part->call.input_count;
}

void sb_append_rotation(const sb_call *whole, int rows, sb_tensor *to, sb_append_part *part) {
    begin_part(whole, rows, part);
    give_input(whole, rows, part);
    for (int i = 0; i < 3; i++)
        give_input(whole, rotation_inputs[i], part);
    part->output = sb_value_of_tensor(to);
}

void sb_append_scatter(const sb_call *whole, int cache, sb_tensor *rows, sb_append_part *part) {
    begin_part(whole, -1, part);
    give_input(whole, cache, part);
    give_input(whole, SB_APPEND_KEYS + cache, part);
    part->inputs[1] = sb_value_of_tensor(rows);
    for (int i = 0; i < 3; i++)
        give_input(whole, scatter_inputs[i], part);
}

sb_status sb_append_check_rows(const sb_call *whole) {
    const sb_tensor *queries = sb_call_input(whole, SB_APPEND_QUERIES), *keys = sb_call_input(whole, SB_APPEND_KEYS);
    const sb_tensor *values = sb_call_input(whole, SB_APPEND_VALUES);
    bool same = queries->rank == 3 && keys->rank == 3 && values->rank == 3 && queries->dims[0] == 1;
    for (int d = 0; d < 2 && same; d++)
        same = queries->dims[d] == keys->dims[d] && keys->dims[d] == values->dims[d];
    return same ? SB_OK
                : sb_call_fail(whole, SB_ERROR_SHAPE,
                               "queries, keys and values must have rank 3, a first extent of 1 and the same rows");
}

sb_status sb_append_check(const sb_call *whole) {
    sb_append_part part;
    sb_rotary rotary;
    sb_pages pages;
    SB_TRY(sb_append_check_rows(whole));
    for (int rows = SB_APPEND_QUERIES; rows <= SB_APPEND_KEYS; rows++) {
        sb_tensor *given = whole->inputs[rows].tensor;
        sb_append_rotation(whole, rows, given, &part);
        SB_TRY(sb_rotary_describe(&part.call, given, &rotary));
        SB_TRY(sb_rotary_check(&part.call, &rotary));
    }
    for (int cache = 0; cache < 2; cache++) {
        sb_append_scatter(whole, cache, whole->inputs[SB_APPEND_KEYS + cache].tensor, &part);
        SB_TRY(sb_paged_scatter_describe(&part.call, &pages));
        SB_TRY(sb_paged_scatter_check(&part.call, &pages));
    }
    return SB_OK;
}

/* ---- the definition ---- */

static sb_status rotate(const sb_call *whole, int rows, sb_tensor *to) {
    sb_append_part part;
    sb_rotary rotary;
    sb_append_rotation(whole, rows, to, &part);
    SB_TRY(sb_rotary_describe(&part.call, to, &rotary));
    if (sb_tensor_elements(to) != 0)
        sb_rotary_tokens(&rotary, 0, rotary.batch * rotary.tokens);
    return SB_OK;
}

static sb_status scatter(sb_call *whole, int cache, sb_tensor *rows) {
    sb_append_part part;
    sb_pages pages;
    sb_tensor *output;
    SB_TRY(sb_call_output(whole, cache, &output));
    sb_append_scatter(whole, cache, rows, &part);
    SB_TRY(sb_paged_scatter_describe(&part.call, &pages));
    sb_tensor_copy_elements(output, sb_call_input(whole, cache));
    sb_paged_scatter_write(&part.call, &pages, output);
    return SB_OK;
}

static sb_status eval_append(sb_call *call) {
    sb_tensor *queries, *keys;
    SB_TRY(sb_append_check(call));
    SB_TRY(sb_call_output(call, SB_APPEND_TURNED, &queries));
    SB_TRY(rotate(call, SB_APPEND_QUERIES, queries));
    const sb_tensor *given = sb_call_input(call, SB_APPEND_KEYS);
    SB_TRY(sb_tensor_create_uninitialised(given->dtype, given->rank, given->dims, &keys, call->error));
    sb_status status = rotate(call, SB_APPEND_KEYS, keys);
    if (status == SB_OK)
        status = scatter(call, SB_APPEND_KEY_CACHE, keys);
    sb_tensor_release(keys);
    return status == SB_OK ? scatter(call, SB_APPEND_VALUE_CACHE, call->inputs[SB_APPEND_VALUES].tensor) : status;
}

const sb_op sb_ops_paged_append[] = {
    {.name = "PagedAppend",
     .domain = "samebit",
     .least_inputs = SB_APPEND_INPUTS,
     .most_inputs = SB_APPEND_INPUTS,
     .least_outputs = SB_APPEND_OUTPUTS,
     .most_outputs = SB_APPEND_OUTPUTS,
     .params_size = sizeof(append_params),
     .prepare = prepare_append,
     .infer = infer_append,
     .eval = eval_append},
    {0},
};

/* ---- rules ---- */

static sb_status axes_of_append(const sb_axis_question *question, sb_axis_rule *answer) {
    (void)question;
    return sb_axis_exact(answer, "rows, pages and positions are written where the others say");
}

const sb_axes_entry sb_axes_paged_append[] = {
    {.op = {"PagedAppend", "samebit"}, .rule = axes_of_append, .exact = "every axis"},
    {.op = {NULL}},
};

const sb_cost_entry sb_cost_paged_append[] = {
    {.op = {"PagedAppend", "samebit"}, .flops = &sb_flops_none, .bytes = &sb_bytes_whole},
    {.op = {NULL}},
};
