/* Kernels for element-wise operators: the op's own row loop for the processor's instruction set,
 * alone or in a tile program. */
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "cpu/elementwise/tile_program.h"
#include "cpu/list.h"
#include "cpu/reason.h"
#include "cpu/spread.h"
#include "ops/contraction.h"

/* ---- in place ---- */

static bool has_extents(const sb_fact *x, const sb_fact *y) {
    bool equal = x->rank == y->rank;
    for (int d = 0; d < x->rank && equal; d++)
        equal = sb_dim_equal(x->dims[d], y->dims[d]);
    return equal;
}

/* The input whose order in memory the output takes (sb_spread_output), if its elements have the output's size: half the
 * memory to go through, where nobody else wants that input. */
static int in_place_elementwise(const sb_kernel_query *query) {
    const sb_fact *y = &query->outputs[0];
    for (int i = 0; i < query->node->input_count; i++) {
        const sb_fact *x = query->inputs[i];
        if (x != NULL && has_extents(x, y))
            return x->dtype == y->dtype && x->constant == NULL ? i : -1;
    }
    return -1;
}

/* Row loops may compute onto an input that lies just as the output does. One that shares its memory otherwise (a view in
 * reverse, say) is copied first. */
static sb_status set_apart(sb_call *call, const sb_tensor *output, int count, sb_tensor **inputs, sb_tensor *copies) {
    for (int i = 0; i < count; i++) {
        if (!sb_tensors_overlap(inputs[i], output) || sb_tensors_coincide(inputs[i], output))
            continue;
        const sb_tensor *from = inputs[i];
        void *memory;
        SB_TRY(sb_call_workspace(call, (size_t)sb_tensor_elements(from) * sb_dtype_size(from->dtype), &memory));
        sb_gather_dense(sb_dtype_size(from->dtype), from->rank, from->dims, from->strides, from->data, memory);
        copies[i] = (sb_tensor){.dtype = from->dtype, .rank = from->rank, .data = memory};
        memcpy(copies[i].dims, from->dims, sizeof from->dims);
        sb_row_major_strides(from->rank, from->dims, copies[i].strides);
        inputs[i] = &copies[i];
    }
    return SB_OK;
}

/* ---- a single node ---- */

static sb_walk_row *row_loop(const sb_node *node, const sb_dtype *dtypes, sb_isa isa, void **context) {
    bool fits =
        (node->op->flags & SB_OP_ELEMENTWISE) != 0 && node->op->loop != NULL && node->input_count < SB_WALK_OPERANDS;
    return fits ? node->op->loop(node, dtypes, isa, context) : NULL;
}

static bool supports_single(const sb_kernel_query *query, char *why) {
    sb_dtype dtypes[SB_WALK_OPERANDS] = {SB_DTYPE_NONE};
    void *context;
    int count = query->node->input_count;
    if ((query->node->op->flags & SB_OP_ELEMENTWISE) == 0)
        return false;
    if (count >= SB_WALK_OPERANDS) {
        snprintf(why, SB_WHY_BYTES, "%s has %d inputs, and row loops take %d at most", query->node->op->name, count,
                 SB_WALK_OPERANDS - 1);
        return false;
    }
    bool complete = true;
    for (int i = 0; i < count; i++) {
        complete = complete && query->inputs[i] != NULL;
        dtypes[i] = query->inputs[i] != NULL ? query->inputs[i]->dtype : SB_DTYPE_NONE;
    }
    if (complete && row_loop(query->node, dtypes, query->isa, &context) != NULL)
        return true;
    sb_reason_loop(why, query->node, count, dtypes, query->outputs[0].dtype);
    return false;
}

static sb_status launch_single(sb_call *call) {
    sb_dtype dtypes[SB_WALK_OPERANDS] = {SB_DTYPE_NONE};
    sb_tensor *inputs[SB_WALK_OPERANDS], *output, copies[SB_WALK_OPERANDS];
    for (int i = 0; i < call->input_count; i++) {
        inputs[i] = call->inputs[i].tensor;
        dtypes[i] = inputs[i]->dtype;
    }
    void *context = NULL;
    sb_walk_row *row = row_loop(call->node, dtypes, call->isa, &context);
    SB_TRY(sb_spread_output(call, call->input_count, inputs, &output));
    SB_TRY(set_apart(call, output, call->input_count, inputs, copies));
    sb_spread_run(call, row, context, output, call->input_count, inputs);
    return SB_OK;
}

/* ---- a fused body ---- */

/* In the memory order of the first of the node's inputs that has its shape, whatever the program reads first. */
static sb_status create_output(sb_call *call, sb_tensor **output) {
    sb_tensor *inputs[SB_TILE_INPUTS];
    int count = call->input_count < SB_TILE_INPUTS ? call->input_count : SB_TILE_INPUTS;
    for (int i = 0; i < count; i++)
        inputs[i] = call->inputs[i].tensor;
    return sb_spread_output(call, count, inputs, output);
}

static bool supports_fused(const sb_kernel_query *query, char *why) {
    const sb_graph *body = sb_node_graph(query->node, "body");
    sb_tile_program *program;
    sb_error error;
    sb_status status = sb_tile_program_create(body, 0, query->inputs, query->isa, &program, &error);
    if (status != SB_OK) {
        *query->exhausted = status == SB_ERROR_OUT_OF_MEMORY;
        snprintf(why, SB_WHY_BYTES, "%.200s", error.message);
        return false;
    }
    sb_tile_program_destroy(program);
    return true;
}

static sb_status prepare_fused(const sb_kernel_query *query, void **state, sb_error *error) {
    sb_tile_program *program;
    SB_TRY(sb_tile_program_create(sb_node_graph(query->node, "body"), 0, query->inputs, query->isa, &program, error));
    *state = program;
    return SB_OK;
}

static void release_fused(void *state) {
    sb_tile_program_destroy(state);
}

static sb_status launch_fused(sb_call *call) {
    sb_tile_program *program = call->state;
    sb_tensor *inputs[SB_TILE_INPUTS], *output, copies[SB_TILE_INPUTS];
    int count = sb_tile_program_inputs(program);
    SB_TRY(create_output(call, &output));
    for (int i = 0; i < count; i++) {
        int graph_input;
        sb_tile_program_input(program, i, &graph_input, &inputs[i]);
        if (graph_input >= 0)
            inputs[i] = call->inputs[graph_input].tensor;
    }
    SB_TRY(set_apart(call, output, count, inputs, copies));
    sb_spread_run(call, sb_tile_program_row, program, output, count, inputs);
    return SB_OK;
}

const sb_kernel sb_cpu_kernels_elementwise[] = {
    {.op = "Fused",
     .domain = "samebit",
     .name = "elementwise-fused",
     .supports = supports_fused,
     .prepare = prepare_fused,
     .release = release_fused,
     .in_place = in_place_elementwise,
     .launch = launch_fused},
    {.op = SB_ANY_OP,
     .name = "elementwise",
     .supports = supports_single,
     .in_place = in_place_elementwise,
     .launch = launch_single},
    {0},
};
