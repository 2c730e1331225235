/* SwiGLU: y = (a · sigmoid(alpha · a)) · b, element by element, without broadcasting. */
#include "ops/gated.h"

#include "ops/list.h"
#include "ops/moving.h"
#include "rules/counting.h"
#include "rules/question.h"

static sb_status prepare_gated(sb_node *node, sb_error *error) {
    return sb_node_float(node, "alpha", 1.0f, &((sb_gated_params *)node->params)->alpha, error);
}

static sb_status infer_gated(sb_infer *infer) {
    const sb_fact *facts[2];
    SB_TRY(sb_infer_require(infer, 0, SB_SET_FLOAT, &facts[0]));
    SB_TRY(sb_infer_require(infer, 1, SB_SET(facts[0]->dtype), &facts[1]));
    bool same = true, known = facts[0]->rank != SB_RANK_UNKNOWN && facts[1]->rank != SB_RANK_UNKNOWN;
    if (known)
        same = facts[0]->rank == facts[1]->rank;
    for (int d = 0; known && same && d < facts[0]->rank; d++)
        same = !sb_dims_clash(facts[0]->dims[d], facts[1]->dims[d]);
    char left[SB_FACT_TEXT_BYTES], right[SB_FACT_TEXT_BYTES];
    if (!same)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the gate %s and the value %s must have the same shape",
                             sb_fact_text(facts[0], left, sizeof left), sb_fact_text(facts[1], right, sizeof right));
    return sb_infer_broadcast(infer, 0, facts[0]->dtype, 2, facts);
}

static sb_walk_row *loop_gated(const sb_node *node, const sb_dtype *dtypes, sb_isa isa, void **context) {
    *context = node->params;
    return SB_PICK_LOOPS(sb_gated_loops, isa)[0][dtypes[0]];
}

static sb_status eval_gated(sb_call *call) {
    sb_tensor *output;
    SB_TRY(sb_call_output(call, 0, &output));
    const sb_tensor *operands[3] = {output, sb_call_input(call, 0), sb_call_input(call, 1)};
    sb_walk walk;
    sb_walk_start(&walk, output->rank, output->dims, 3, operands);
    sb_walk_run(&walk, sb_gated_loops_scalar[0][output->dtype], call->node->params);
    return SB_OK;
}

const sb_op sb_ops_gated[] = {
    {.name = "SwiGLU",
     .domain = "",
     .least_inputs = 2,
     .most_inputs = 2,
     .least_outputs = 1,
     .most_outputs = 1,
     .flags = SB_OP_ELEMENTWISE,
     .params_size = sizeof(sb_gated_params),
     .prepare = prepare_gated,
     .infer = infer_gated,
     .eval = eval_gated,
     .loop = loop_gated},
    {0},
};

const sb_axes_entry sb_axes_gated[] = {
    {.op = {"SwiGLU"}, .rule = sb_axis_broadcast, .independent = "every axis"},
    {.op = {NULL}},
};

const sb_cost_entry sb_cost_gated[] = {
    {.op = {"SwiGLU"}, .flops = &sb_flops_per_output, .number = 2, .bytes = &sb_bytes_whole},
    {.op = {NULL}},
};
