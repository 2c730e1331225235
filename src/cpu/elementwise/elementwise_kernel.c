/* Kernels for element-wise operators: the op's own row loop for the processor's instruction set,
 * alone or in a tile program. */
#include <stdio.h>

#include "base/allocation.h"
#include "cpu/elementwise/tile_program.h"
#include "cpu/list.h"
#include "cpu/reason.h"
#include "cpu/spread.h"

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
    sb_tensor *inputs[SB_WALK_OPERANDS], *output;
    for (int i = 0; i < call->input_count; i++) {
        inputs[i] = call->inputs[i].tensor;
        dtypes[i] = inputs[i]->dtype;
    }
    void *context = NULL;
    sb_walk_row *row = row_loop(call->node, dtypes, call->isa, &context);
    SB_TRY(sb_spread_output(call, call->input_count, inputs, &output));
    sb_spread_run(call, row, context, output, call->input_count, inputs);
    return SB_OK;
}

/* ---- a fused body ---- */

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
    sb_tensor *inputs[SB_TILE_INPUTS], *output;
    int count = sb_tile_program_inputs(program);
    for (int i = 0; i < count; i++) {
        int graph_input;
        sb_tile_program_input(program, i, &graph_input, &inputs[i]);
        if (graph_input >= 0)
            inputs[i] = call->inputs[graph_input].tensor;
    }
    SB_TRY(sb_spread_output(call, count, inputs, &output));
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
     .launch = launch_fused},
    {.op = SB_ANY_OP, .name = "elementwise", .supports = supports_single, .launch = launch_single},
    {0},
};
