/* Attention as a model's nodes write it (ops/attention_nodes.h), of f16 and bf16, in one kernel: attention_nodes.cu. */
#include "cuda/contraction/attention_nodes_parameters.h"

#include <stdio.h>
#include <string.h>

#include "cuda/common/call.h"
#include "cuda/contraction/gemm16_conv.h"
#include "cuda/driver/device.h"
#include "cuda/list.h"

/* The body of such a node: the scores, Softmax, the product with the values. */
static bool find_nodes(const sb_node *node, sb_attention_nodes *nodes) {
    const sb_graph *body = sb_node_graph(node, "body");
    return body != NULL && body->node_count == 3 &&
           sb_attention_nodes_match(body, body->nodes[0], body->nodes[1], body->nodes[2], nodes);
}

/* Which input of the node a value of its body is; -1: none. */
static int input_of(const sb_node *node, sb_value_id value) {
    const sb_graph *body = sb_node_graph(node, "body");
    for (size_t i = 0; i < body->input_count; i++) {
        if (body->inputs[i] == value)
            return (int)i;
    }
    return -1;
}

/* ---- what is supported ---- */

static int64_t extent_of(const sb_kernel_query *query, sb_value_id value, int from_end) {
    const sb_fact *fact = query->inputs[input_of(query->node, value)];
    int64_t dims[SB_MAX_RANK];
    return sb_fact_is_concrete(fact, dims) ? dims[fact->rank - from_end] : -1;
}

static bool inputs_are_there(const sb_kernel_query *query, const sb_attention_nodes *nodes) {
    bool there = input_of(query->node, nodes->queries) >= 0 && input_of(query->node, nodes->keys) >= 0 &&
                 input_of(query->node, nodes->values) >= 0;
    for (int s = 0; s < nodes->step_count; s++)
        there = there && input_of(query->node, nodes->steps[s].operand) >= 0;
    return there;
}

static bool supports(const sb_kernel_query *query, char *why) {
    sb_attention_nodes nodes;
    if (!find_nodes(query->node, &nodes) || !inputs_are_there(query, &nodes))
        return false;
    int64_t width = extent_of(query, nodes.queries, 1), keys = extent_of(query, nodes.keys, 1);
    int64_t value_width = extent_of(query, nodes.values, 1), rows = extent_of(query, nodes.queries, 2);
    if (!sb_gemm16_has_hopper_code(query->device))
        snprintf(why, SB_WHY_BYTES,
                 "attention in one kernel needs kernels compiled for sm_90a, and a device of compute capability 9.0");
    else if (keys > SB_CUDA_ATTENTION_MOST_KEYS)
        snprintf(why, SB_WHY_BYTES, "attention over %lld keys runs node by node: one kernel takes up to %d",
                 (long long)keys, SB_CUDA_ATTENTION_MOST_KEYS);
    else if (width > SB_CUDA_ATTENTION_WIDTH || value_width > SB_CUDA_ATTENTION_WIDTH || width % 8 != 0 ||
             value_width % 8 != 0)
        snprintf(why, SB_WHY_BYTES,
                 "attention with heads of %lld and %lld elements runs node by node: one kernel takes multiples of 8 up "
                 "to %d",
                 (long long)width, (long long)value_width, SB_CUDA_ATTENTION_WIDTH);
    else
        return rows >= 0 && keys >= 0 && width >= 0 && value_width >= 0;
    return false;
}

/* The axes of an input along which keys are counted. */
static bool counts_keys(const sb_kernel_query *query, const sb_attention_nodes *nodes, int input, int axis) {
    const sb_node *node = query->node;
    int from_end = query->inputs[input]->rank - axis;
    bool counts = (input == input_of(node, nodes->keys) && from_end == 1) ||
                  (input == input_of(node, nodes->values) && from_end == 2);
    for (int s = 0; s < nodes->step_count; s++)
        counts = counts || (input == input_of(node, nodes->steps[s].operand) && from_end == 1);
    return counts;
}

static bool bounded(const sb_kernel_query *query, int input, int axis) {
    sb_attention_nodes nodes;
    return find_nodes(query->node, &nodes) && counts_keys(query, &nodes, input, axis);
}

/* ---- launching ---- */

typedef struct attention {
    sb_call *call;
    const sb_node *node;
    sb_attention_nodes nodes;
    const sb_tensor *result;
    sb_cuda_attention_nodes parameters;
    int64_t tiles; /* blocks */
    sb_cuda_work work;
} attention;

static const sb_tensor *tensor_of(const attention *attention, sb_value_id value) {
    return sb_call_input(attention->call, input_of(attention->node, value));
}

/* The steps of an operand over the result's dimensions besides the last two, as numpy broadcasts it. */
static void fill_batches(const attention *attention, const sb_tensor *tensor, int64_t *steps) {
    const int rank = attention->result->rank - 2;
    for (int d = 0; d < rank; d++) {
        int from = d + tensor->rank - attention->result->rank;
        steps[d] = from >= 0 && tensor->dims[from] != 1 ? tensor->strides[from] : 0;
    }
}

/* Whether elements lie as the kernel reads them: those of a line side by side, lines and matrices at multiples of 16 bytes. */
static bool lies_in_lines(const sb_tensor *tensor, int across) {
    bool fits = (uintptr_t)tensor->data % 16 == 0 && (tensor->dims[across] == 1 || tensor->strides[across] == 1);
    for (int d = 0; d < tensor->rank; d++)
        fits = fits && (d == across || tensor->dims[d] == 1 || tensor->strides[d] % 8 == 0);
    return fits;
}

/* Moves the tensor to memory of the call's in which they do; its elements stay where they are. */
static sb_status pack_lines(sb_call *call, int line, int across, sb_tensor *tensor) {
    void *memory;
    int64_t step = tensor->dims[across] * tensor->dims[line];
    tensor->strides[across] = 1;
    tensor->strides[line] = tensor->dims[across];
    for (int d = tensor->rank - 3; d >= 0; d--) {
        tensor->strides[d] = step;
        step *= tensor->dims[d];
    }
    SB_TRY(sb_call_workspace(call, (size_t)step * sb_dtype_size(tensor->dtype), &memory));
    tensor->data = memory;
    call->way.why = "an operand is copied, since its elements do not lie side by side, or not at multiples of 16 bytes";
    return SB_OK;
}

static sb_status copy_lines(sb_call *call, int line, int across, sb_tensor *tensor) {
    sb_tensor copy = *tensor;
    SB_TRY(pack_lines(call, line, across, &copy));
    SB_TRY(sb_call_copy(call, &copy, tensor));
    *tensor = copy;
    return SB_OK;
}

/* An operand whose lines are along dimension `line`, and their elements along `across`, both counted from the end. */
static sb_status fill_operand(attention *attention, sb_value_id value, int line, int across,
                              sb_cuda_attention_operand *operand) {
    sb_tensor tensor = *tensor_of(attention, value);
    line = tensor.rank - line;
    across = tensor.rank - across;
    if (sb_tensor_elements(&tensor) != 0 && !lies_in_lines(&tensor, across))
        SB_TRY(copy_lines(attention->call, line, across, &tensor));
    operand->data = (const uint16_t *)(const void *)tensor.data;
    operand->line_step = tensor.strides[line];
    fill_batches(attention, &tensor, operand->steps);
    sb_cuda_work_reads(&attention->work, &tensor);
    return SB_OK;
}

static void fill_steps(attention *attention) {
    sb_cuda_attention_nodes *p = &attention->parameters;
    p->step_count = attention->nodes.step_count;
    for (int s = 0; s < p->step_count; s++) {
        const sb_tensor *tensor = tensor_of(attention, attention->nodes.steps[s].operand);
        sb_cuda_attention_step *step = &p->steps[s];
        sb_cuda_attention_operand *operand = &p->operands[SB_CUDA_ATTENTION_STEPS + s];
        const int rank = tensor->rank;
        step->operation = attention->nodes.steps[s].operation;
        operand->data = (const uint16_t *)(const void *)tensor->data;
        operand->line_step = rank > 1 && tensor->dims[rank - 2] != 1 ? tensor->strides[rank - 2] : 0;
        step->key_step = rank > 0 && tensor->dims[rank - 1] != 1 ? tensor->strides[rank - 1] : 0;
        fill_batches(attention, tensor, operand->steps);
        sb_cuda_work_reads(&attention->work, tensor);
    }
}

static const int64_t *find_used(attention *attention, sb_value_id value, int from_end) {
    int axis = tensor_of(attention, value)->rank - from_end;
    return axis >= 0 ? sb_cuda_work_used(&attention->work, attention->call, input_of(attention->node, value), axis)
                     : NULL;
}

static void find_all_used(attention *attention) {
    sb_cuda_attention_nodes *p = &attention->parameters;
    p->used_rows = find_used(attention, attention->nodes.queries, 2);
    p->used_keys = find_used(attention, attention->nodes.keys, 1);
    if (p->used_keys == NULL)
        p->used_keys = find_used(attention, attention->nodes.values, 2);
    for (int s = 0; s < p->step_count && p->used_keys == NULL; s++)
        p->used_keys = find_used(attention, attention->nodes.steps[s].operand, 1);
}

static bool stays_in_registers(const sb_cuda_attention_nodes *p) {
    return p->key_count <= SB_CUDA_ATTENTION_REGISTER_KEYS;
}

static void cut(attention *attention, int64_t tile_rows) {
    sb_cuda_attention_nodes *p = &attention->parameters;
    p->tile_rows = tile_rows;
    p->row_tiles = (p->rows + tile_rows - 1) / tile_rows;
    attention->tiles = p->row_tiles;
    for (int d = 0; d < p->rank; d++)
        attention->tiles *= p->dims[d];
}

/* Rows of a block: as many as leave two blocks for each multiprocessor, since more rows share what is read of keys and values. */
static void cut_rows(attention *attention) {
    sb_cuda_attention_nodes *p = &attention->parameters;
    const int64_t enough = 2 * (int64_t)sb_cuda_call_device(attention->call)->multiprocessors;
    int64_t rows = SB_CUDA_ATTENTION_MOST_ROWS(p->key_count);
    cut(attention, stays_in_registers(p) ? rows : SB_CUDA_ATTENTION_LONG_ROWS);
    while (stays_in_registers(p) && attention->tiles < enough && rows > SB_CUDA_ATTENTION_LEAST_ROWS) {
        rows /= 2;
        cut(attention, rows);
    }
}

static sb_status describe(attention *attention) {
    sb_cuda_attention_nodes *p = &attention->parameters;
    const sb_tensor *result = attention->result, *keys = tensor_of(attention, attention->nodes.keys);
    p->rows = result->dims[result->rank - 2];
    p->value_width = result->dims[result->rank - 1];
    p->width = keys->dims[keys->rank - 2];
    p->key_count = keys->dims[keys->rank - 1];
    p->rank = result->rank - 2;
    for (int d = 0; d < p->rank; d++)
        p->dims[d] = result->dims[d];
    cut_rows(attention);
    p->operands[SB_CUDA_ATTENTION_RESULT].data = (const uint16_t *)(const void *)result->data;
    p->operands[SB_CUDA_ATTENTION_RESULT].line_step = result->strides[result->rank - 2];
    fill_batches(attention, result, p->operands[SB_CUDA_ATTENTION_RESULT].steps);
    sb_cuda_work_writes(&attention->work, result);
    SB_TRY(fill_operand(attention, attention->nodes.queries, 2, 1, &p->operands[SB_CUDA_ATTENTION_QUERIES]));
    SB_TRY(fill_operand(attention, attention->nodes.keys, 1, 2, &p->operands[SB_CUDA_ATTENTION_KEYS]));
    return fill_operand(attention, attention->nodes.values, 2, 1, &p->operands[SB_CUDA_ATTENTION_VALUES]);
}

static sb_status launch_kernel(attention *attention) {
    sb_cuda_attention_nodes *p = &attention->parameters;
    const char *suffix = sb_dtype_name(attention->result->dtype);
    sb_cuda_work *work = &attention->work;
    const bool in_registers = stays_in_registers(p);
    const int rows = (int)p->tile_rows, keys = p->key_count <= 128 ? 128 : p->key_count <= 256 ? 256 : 512;
    const int width = p->width <= 64 && p->value_width <= 64 ? 64 : SB_CUDA_ATTENTION_WIDTH;
    char module[64], name[64];
    snprintf(module, sizeof module, "attention_nodes_%s%s", in_registers ? "" : "long_", suffix);
    if (in_registers)
        snprintf(name, sizeof name, "sb_cuda_attention_nodes_%dx%dx%d_%s", rows, keys, width, suffix);
    else
        snprintf(name, sizeof name, "sb_cuda_attention_nodes_long_%d_%s", width, suffix);
    work->module = module;
    work->kernel = name;
    work->parameters = p;
    work->parameter_bytes = sizeof *p;
    work->threads = in_registers ? (unsigned)SB_CUDA_ATTENTION_THREADS(rows, keys) : SB_CUDA_ATTENTION_LONG_THREADS;
    work->shared_bytes = in_registers ? (unsigned)SB_CUDA_ATTENTION_SHARED(rows, keys, width)
                                      : (unsigned)SB_CUDA_ATTENTION_LONG_SHARED(width);
    attention->call->way.name = in_registers ? "scores in registers" : "scores computed three times";
    for (p->first_tile = 0; p->first_tile < attention->tiles; p->first_tile += INT32_MAX) {
        const int64_t left = attention->tiles - p->first_tile;
        work->blocks = (unsigned)(left < INT32_MAX ? left : INT32_MAX);
        SB_TRY(sb_cuda_call_launch(attention->call, work));
    }
    return SB_OK;
}

/* Heads behind rows in memory, [batch][row][head][element], as the layer behind reads them. */
static sb_status make_result(sb_call *call, sb_tensor **result) {
    int order[SB_MAX_RANK], rank = call->facts[0].rank;
    if (rank < 4 || call->outputs[0].kind == SB_KIND_TENSOR)
        return sb_call_output(call, 0, result);
    for (int d = 0; d < rank; d++)
        order[d] = d;
    order[rank - 3] = rank - 2;
    order[rank - 2] = rank - 3;
    return sb_call_output_ordered(call, 0, order, result);
}

/* Rows as the kernel writes them: somewhere else, where the place that whoever calls has chosen does not lie so. */
static sb_status find_place(sb_call *call, sb_tensor *result, sb_tensor *place) {
    *place = *result;
    if (lies_in_lines(result, result->rank - 1))
        return SB_OK;
    return pack_lines(call, result->rank - 2, result->rank - 1, place);
}

static sb_status launch(sb_call *call) {
    attention attention = {.call = call, .node = call->node};
    sb_tensor *result, place;
    find_nodes(call->node, &attention.nodes);
    SB_TRY(make_result(call, &result));
    if (sb_tensor_elements(result) == 0)
        return SB_OK;
    SB_TRY(find_place(call, result, &place));
    attention.result = &place;
    SB_TRY(describe(&attention));
    fill_steps(&attention);
    find_all_used(&attention);
    SB_TRY(launch_kernel(&attention));
    return place.data == result->data ? SB_OK : sb_call_copy(call, result, &place);
}

const sb_kernel sb_cuda_kernels_attention_nodes[] = {
    {.op = "Fused",
     .domain = "samebit",
     .name = "attention",
     .supports = supports,
     .bounded = bounded,
     .launch = launch},
    {0},
};
