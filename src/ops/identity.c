/* Identity: the value itself, of any kind. */
#include "ops/list.h"

static iv_status infer_identity(iv_infer *infer) {
    return iv_fact_copy(&infer->outputs[0], infer->inputs[0], infer->error);
}

static iv_status eval_identity(iv_call *call) {
    call->outputs[0] = iv_value_retain(call->inputs[0]);
    return IV_OK;
}

const iv_op iv_ops_identity[] = {
    {.name = "Identity",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = 1,
     .flags = IV_OP_VIEW | IV_OP_KEEPS,
     .moved_inputs = 1,
     .infer = infer_identity,
     .eval = eval_identity},
    {0},
};
