/* What kernels on a device find wrong with their data. Recorded tasks know the address of their word, so there is one
 * set of words, which every run uses: behind a run's work the device moves those that are not 0 to the run's own place, which the host
 * has cleared, so that the next run finds zeros; words of a plan with open extents come with the table of each run. A
 * recording that receives its table (runtime/again.h) ends by doing so itself. Runners of whose steps none has ever asked for its word, as those of networks without indices and
 * integer divisions, need neither. */
#include <string.h>

#include "base/allocation.h"
#include "kernel/fault.h"
#include "runtime/runner_internal.h"

sb_status sb_runner_create_faults(sb_runner *runner, sb_error *error) {
    sb_queue *queue = runner->settings->placement.queue;
    int64_t words = (int64_t)runner->program->step_count;
    size_t bytes = runner->program->step_count * sizeof(uint32_t), copies;
    sb_storage *storage;
    if (queue == NULL || words == 0)
        return SB_OK;
    if (__builtin_mul_overflow(bytes, (size_t)runner->settings->queue_depth, &copies))
        return sb_fail_memory(error, SIZE_MAX);
    SB_TRY(sb_queue_storage(queue, bytes, &storage, error));
    sb_status status = sb_tensor_over(storage, storage->data, SB_U32, 1, &words, NULL, &runner->faults, error);
    sb_storage_release(storage);
    SB_TRY(status);
    SB_TRY(sb_queue_enter(queue, error));
    SB_TRY(sb_queue_leave(queue, sb_queue_clear(queue, runner->faults, error), error));
    SB_TRY(sb_host_block_create(queue, copies, &runner->fault_copies, error));
    memset(runner->fault_copies->data, 0, copies);
    runner->clean = sb_allocate_array((size_t)runner->settings->queue_depth, sizeof *runner->clean);
    return runner->clean != NULL ? SB_OK : sb_fail_memory(error, (size_t)runner->settings->queue_depth);
}

void sb_runner_destroy_faults(sb_runner *runner) {
    if (runner->fault_copies != NULL)
        sb_host_block_destroy(runner->settings->placement.queue, runner->fault_copies);
    sb_tensor_release(runner->faults);
    sb_free(runner->clean);
}

sb_tensor *sb_runner_faults(const sb_runner *runner) {
    const sb_open_extents *open = runner->plan != NULL ? runner->plan->open : NULL;
    return open != NULL && open->table.faults != NULL ? open->table.faults : runner->faults;
}

static uint32_t *words_of(const sb_runner *runner, int slot) {
    return (uint32_t *)runner->fault_copies->data + (size_t)slot * runner->program->step_count;
}

uint32_t *sb_runner_faults_place(sb_runner *runner) {
    uint32_t *words = words_of(runner, runner->slot);
    if (!runner->clean[runner->slot] && runner->may_fault) /* else nobody has ever written them */
        memset(words, 0, runner->program->step_count * sizeof *words);
    runner->clean[runner->slot] = false;
    return words;
}

sb_status sb_runner_clear_faults(sb_runner *runner, int slot, sb_error *error) {
    runner->slot = slot;
    runner->faults_left = false;
    if (runner->faults != NULL && runner->uncollected && runner->may_fault)
        SB_TRY(sb_queue_clear(runner->settings->placement.queue, runner->faults, error));
    runner->uncollected = true;
    for (size_t i = 0; i < runner->nested_count; i++)
        SB_TRY(sb_runner_clear_faults(runner->nested[i], slot, error));
    return SB_OK;
}

sb_status sb_runner_collect_faults(sb_runner *runner, int slot, sb_error *error) {
    sb_queue *queue = runner->settings->placement.queue;
    if (runner->faults != NULL && runner->may_fault && !runner->faults_left) {
        runner->slot = slot; /* which a runner that this run has made does not know yet */
        uint32_t *place = sb_runner_faults_place(runner);
        SB_TRY(sb_queue_collect_words(queue, sb_runner_faults(runner), place, error));
    }
    runner->uncollected = false;
    for (size_t i = 0; i < runner->nested_count; i++)
        SB_TRY(sb_runner_collect_faults(runner->nested[i], slot, error));
    return SB_OK;
}

sb_status sb_runner_check_faults(const sb_runner *runner, int slot, sb_error *error) {
    const uint32_t *words = runner->faults != NULL && runner->may_fault ? words_of(runner, slot) : NULL;
    for (size_t s = 0; words != NULL && s < runner->program->step_count; s++) {
        const sb_node *node = runner->program->steps[s].node;
        if (words[s] != SB_FAULT_NONE)
            return sb_fail(error, sb_fault_status(words[s]), "node %s (%s): %s", node->name, node->op->name,
                           sb_fault_text(words[s]));
    }
    if (words != NULL)
        runner->clean[slot] = true;
    for (size_t i = 0; i < runner->nested_count; i++)
        SB_TRY(sb_runner_check_faults(runner->nested[i], slot, error));
    return SB_OK;
}
