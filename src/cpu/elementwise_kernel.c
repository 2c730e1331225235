/* Kernels for element-wise operators: the op's own row loop for the processor's instruction set, alone or in a tile program. */
#include <stdio.h>

#include "base/allocation.h"
#include "cpu/list.h"
#include "cpu/reason.h"
#include "cpu/spread.h"
#include "cpu/tile_program.h"

/* ---- a single node ---- */

static iv_walk_row *row_loop(const iv_node *node, const iv_dtype *dtypes, iv_isa isa, void **context) {
    bool fits = (node->op->flags & IV_OP_ELEMENTWISE) != 0 && node->op->loop != NULL &&
                node->input_count < IV_WALK_OPERANDS;
    return fits ? node->op->loop(node, dtypes, isa, context) : NULL;
}

static bool supports_single(const iv_kernel_query *query, char *why) {
    iv_dtype dtypes[IV_WALK_OPERANDS] = {IV_DTYPE_NONE};
    void *context;
    int count = query->node->input_count;
    if ((query->node->op->flags & IV_OP_ELEMENTWISE) == 0)
        return false;
    if (count >= IV_WALK_OPERANDS) {
        snprintf(why, IV_WHY_BYTES, "%s has %d inputs, and row loops take %d at most", query->node->op->name,
                 count, IV_WALK_OPERANDS - 1);
        return false;
    }
    bool complete = true;
    for (int i = 0; i < count; i++) {
        complete = complete && query->inputs[i] != NULL;
        dtypes[i] = query->inputs[i] != NULL ? query->inputs[i]->dtype : IV_DTYPE_NONE;
    }
    if (complete && row_loop(query->node, dtypes, query->isa, &context) != NULL)
        return true;
    iv_reason_loop(why, query->node, count, dtypes, query->outputs[0].dtype);
    return false;
}

static iv_status launch_single(iv_call *call) {
    iv_dtype dtypes[IV_WALK_OPERANDS] = {IV_DTYPE_NONE};
    iv_tensor *inputs[IV_WALK_OPERANDS], *output;
    for (int i = 0; i < call->input_count; i++) {
        inputs[i] = call->inputs[i].tensor;
        dtypes[i] = inputs[i]->dtype;
    }
    void *context = NULL;
    iv_walk_row *row = row_loop(call->node, dtypes, call->isa, &context);
    IV_TRY(iv_spread_output(call, call->input_count, inputs, &output));
    iv_spread_run(call, row, context, output, call->input_count, inputs);
    return IV_OK;
}

/* ---- a fused web ---- */

static bool supports_web(const iv_kernel_query *query, char *why) {
    const iv_graph *body = iv_node_graph(query->node, "body");
    iv_tile_program *program;
    iv_error error;
    iv_status status = iv_tile_program_create(body, 0, query->inputs, query->isa, &program, &error);
    if (status != IV_OK) {
        *query->exhausted = status == IV_ERROR_OUT_OF_MEMORY;
        snprintf(why, IV_WHY_BYTES, "%.200s", error.message);
        return false;
    }
    iv_tile_program_destroy(program);
    return true;
}

static iv_status prepare_web(const iv_kernel_query *query, void **state, iv_error *error) {
    iv_tile_program *program;
    IV_TRY(iv_tile_program_create(iv_node_graph(query->node, "body"), 0, query->inputs, query->isa,
                                  &program, error));
    *state = program;
    return IV_OK;
}

static void release_web(void *state) {
    iv_tile_program_destroy(state);
}

static iv_status launch_web(iv_call *call) {
    iv_tile_program *program = call->state;
    iv_tensor *inputs[IV_TILE_INPUTS], *output;
    int count = iv_tile_program_inputs(program);
    for (int i = 0; i < count; i++) {
        int graph_input;
        iv_tile_program_input(program, i, &graph_input, &inputs[i]);
        if (graph_input >= 0)
            inputs[i] = call->inputs[graph_input].tensor;
    }
    IV_TRY(iv_spread_output(call, count, inputs, &output));
    iv_spread_run(call, iv_tile_program_row, program, output, count, inputs);
    return IV_OK;
}

const iv_kernel iv_cpu_kernels_elementwise[] = {
    {.op = "Fused",
     .domain = "invar",
     .name = "elementwise-web",
     .supports = supports_web,
     .prepare = prepare_web,
     .release = release_web,
     .launch = launch_web},
    {.op = IV_ANY_OP, .name = "elementwise", .supports = supports_single, .launch = launch_single},
    {0},
};
