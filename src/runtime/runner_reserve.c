/* Memory that is taken before a run changes a state, so that none can run out behind the first change. */
#include "base/allocation.h"
#include "runtime/replay.h"
#include "runtime/runner_internal.h"
#include "runtime/state_binding.h"
#include "tensor/tensor_pool.h"

/* The bytes that a step takes for an output outside of the arena; 0 for none. */
static size_t own_bytes(const sb_runner *runner, size_t step, sb_value_id value) {
    const sb_plan *plan = runner->plan;
    const sb_planned_step *planned = &plan->steps[step];
    bool views = (runner->program->steps[step].node->op->flags & SB_OP_VIEW) != 0;
    int64_t dims[SB_MAX_RANK], elements;
    if (value == SB_NO_VALUE || planned->mode == SB_STEP_SKIP || plan->places[value] != NULL ||
        plan->offsets[sb_copy_index(runner->program, planned->side, value)] >= 0 || (views && !plan->copied[value]))
        return 0;
    const sb_fact *fact = &plan->facts[value];
    if (fact->dtype == SB_STRING || !sb_fact_is_concrete(fact, dims) ||
        sb_count_elements(fact->dtype, fact->rank, dims, &elements, NULL) != SB_OK)
        return 0;
    return (size_t)elements * sb_dtype_size(fact->dtype);
}

static sb_status reserve(sb_runner *runner, sb_side side, sb_value_id value, size_t bytes, sb_error *error) {
    sb_storage **reserved = &runner->reserved[sb_copy_index(runner->program, side, value)];
    if (bytes == 0 || *reserved != NULL)
        return SB_OK;
    SB_TRY(side == SB_DEVICE ? sb_queue_storage(runner->settings->placement.queue, bytes, reserved, error)
                             : sb_storage_create(bytes, reserved, error));
    runner->reserved_copies[runner->reserved_count++] = (size_t)(reserved - runner->reserved);
    return SB_OK;
}

/* A device's blocks go back at once, to wait for the steps: recorded ones want those that they know. */
static void let_wait(sb_runner *runner) {
    size_t values = runner->program->graph->value_count, kept = 0;
    for (size_t i = 0; i < runner->reserved_count; i++) {
        size_t copy = runner->reserved_copies[i];
        if (copy < values) {
            runner->reserved_copies[kept++] = copy;
            continue;
        }
        sb_storage_release(runner->reserved[copy]);
        runner->reserved[copy] = NULL;
    }
    runner->reserved_count = kept;
}

/* The pinned memory that they come through is the outbox's. */
sb_status sb_runner_reserve_outputs(sb_runner *runner, sb_outbox *outbox, sb_error *error) {
    const sb_program *program = runner->program;
    for (size_t i = 0; i < program->leave_count && runner->plan->host_outputs; i++) {
        sb_value_id value = program->leave[i];
        int64_t dims[SB_MAX_RANK], elements;
        const sb_fact *fact = &runner->plan->facts[value];
        if (!sb_is_wanted_on_host(runner->plan, i) || sb_runner_leaves_out(runner, i) ||
            runner->plan->sides[value] == SB_HOST || !sb_fact_is_concrete(fact, dims))
            continue;
        SB_TRY(sb_count_elements(fact->dtype, fact->rank, dims, &elements, error));
        SB_TRY(reserve(runner, SB_HOST, value, (size_t)elements * sb_dtype_size(fact->dtype), error));
    }
    size_t bytes = outbox != NULL ? sb_runner_planned_outbox(runner) : 0;
    return bytes != 0 && bytes <= SB_OUTBOX_BYTES
               ? sb_outbox_open(outbox, runner->settings->placement.queue, bytes, program->leave_count, error)
               : SB_OK;
}

/* The first step that is given to the device together with the first that updates a variable. */
static size_t first_together(const sb_plan *plan) {
    const sb_segment *segment = plan->segment_of != NULL ? plan->segment_of[plan->first_update] : NULL;
    return segment != NULL ? segment->first : plan->first_update;
}

sb_status sb_runner_reserve(sb_runner *runner, sb_outbox *outbox, sb_error *error) {
    const sb_program *program = runner->program;
    size_t tensors = 5 * program->leave_count;
    sb_status status = SB_OK;
    for (size_t s = first_together(runner->plan); s < program->step_count && status == SB_OK; s++) {
        const sb_node *node = program->steps[s].node;
        tensors += 2 * (size_t)node->output_count + 3 * (size_t)node->input_count;
        for (int i = 0; i < node->output_count && status == SB_OK; i++)
            status = reserve(runner, runner->plan->steps[s].side, node->outputs[i],
                             own_bytes(runner, s, node->outputs[i]), error);
    }
    if (status == SB_OK)
        status = sb_runner_reserve_outputs(runner, outbox, error);
    let_wait(runner);
    if (status == SB_OK && !sb_tensor_pool_reserve(tensors))
        status = sb_fail_memory(error, tensors * sizeof(sb_tensor));
    return status;
}

void sb_runner_release_reserved(sb_runner *runner) {
    for (size_t i = 0; i < runner->reserved_count; i++) {
        sb_storage **reserved = &runner->reserved[runner->reserved_copies[i]];
        sb_storage_release(*reserved);
        *reserved = NULL;
    }
    runner->reserved_count = 0;
}
