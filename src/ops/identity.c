/* Identity: the value itself, of any kind. */
#include "ops/list.h"

static sb_status infer_identity(sb_infer *infer) {
    return sb_fact_copy(&infer->outputs[0], infer->inputs[0], infer->error);
}

static sb_status eval_identity(sb_call *call) {
    call->outputs[0] = sb_value_retain(call->inputs[0]);
    return SB_OK;
}

const sb_op sb_ops_identity[] = {
    {.name = "Identity",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = 1,
     .flags = SB_OP_VIEW | SB_OP_KEEPS,
     .moved_inputs = 1,
     .infer = infer_identity,
     .eval = eval_identity},
    {0},
};
