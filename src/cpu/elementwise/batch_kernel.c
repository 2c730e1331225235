/* BatchNormalization in inference with constant statistics, alone: one multiply-add per element with factors worked out
 * once. */
#include <stdio.h>

#include "base/allocation.h"
#include "cpu/elementwise/batch_factors.h"
#include "cpu/list.h"
#include "cpu/spread.h"
#include "ops/batch_normalization.h"

typedef struct batch_state {
    sb_tensor *scale, *shift;
} batch_state;

static bool supports_batch(const sb_kernel_query *query, char *why) {
    const sb_fact *x = query->inputs[0];
    if (sb_batch_factors_loop(query->isa, x->dtype) == NULL) {
        snprintf(why, SB_WHY_BYTES, "batch normalisation of %s has no kernel", sb_dtype_name(x->dtype));
        return false;
    }
    if (((const sb_batch_params *)query->node->params)->training || x->rank < 2) {
        snprintf(why, SB_WHY_BYTES, "in training, and of ranks below 2, it has no kernel");
        return false;
    }
    for (int i = 1; i < 5; i++) {
        const sb_fact *fact = query->inputs[i];
        if (fact->constant == NULL || fact->rank != 1 || !sb_dim_equal(fact->dims[0], x->dims[1]) ||
            fact->dtype == SB_F64) {
            snprintf(why, SB_WHY_BYTES, "its statistics are not constants of f32, f16 or bf16");
            return false;
        }
    }
    return true;
}

static void release_batch(void *context) {
    batch_state *state = context;
    if (state == NULL)
        return;
    sb_tensor_release(state->scale);
    sb_tensor_release(state->shift);
    sb_free(state);
}

static sb_status prepare_batch(const sb_kernel_query *query, void **result, sb_error *error) {
    batch_state *state = sb_allocate_array(1, sizeof *state);
    if (state == NULL)
        return sb_fail_memory(error, sizeof *state);
    sb_status status =
        sb_batch_factors(query->node, query->inputs, query->inputs[0]->rank, &state->scale, &state->shift, error);
    if (status != SB_OK) {
        sb_free(state);
        return status;
    }
    *result = state;
    return SB_OK;
}

static sb_status launch_batch(sb_call *call) {
    const batch_state *state = call->state;
    sb_tensor *x = sb_call_input(call, 0), *y;
    SB_TRY(sb_spread_output(call, 1, &x, &y));
    sb_spread_run(call, sb_batch_factors_loop(call->isa, x->dtype), NULL, y, 3,
                  (sb_tensor *const[]){x, state->scale, state->shift});
    return SB_OK;
}

const sb_kernel sb_cpu_kernels_batch[] = {
    {.op = "BatchNormalization",
     .name = "batch-normalization",
     .supports = supports_batch,
     .prepare = prepare_batch,
     .release = release_batch,
     .launch = launch_batch},
    {0},
};
