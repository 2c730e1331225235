/* What kernels on a device find wrong with their data. Recorded tasks know the address of their word, so there is one
 * set of words, which every run uses. The last task of a run moves those that are not 0 to a place in pinned memory and leaves zeros for
 * the next run; it is recorded with the others, as a copy behind a recording takes the device 6 to 8 us. So it cannot be told which
 * place: places take turns, and are as many as runs may be in flight. By the time a place is wanted again, a later run has been waited for, so that
 * what is there has arrived: it is put into the slot of its run, who may not have been asked for yet.
 *
 * Words of a plan with open extents come with the table of each run, as zeros. A recording that receives its table
 * (runtime/again.h) ends by leaving them in the run's slot. Runners of whose steps none has ever asked for its word, as
 * those of networks without indices and integer divisions, need neither. */
#include <string.h>

#include "base/allocation.h"
#include "kernel/fault.h"
#include "runtime/runner_internal.h"

/* The words, and behind them the turn. */
static sb_status create_words(sb_runner *runner, int64_t words, size_t turn_at, sb_error *error) {
    sb_storage *storage;
    const int64_t one = 1;
    SB_TRY(sb_queue_storage(runner->settings->placement.queue, turn_at + sizeof(uint64_t), &storage, error));
    sb_status status = sb_tensor_over(storage, storage->data, SB_U32, 1, &words, NULL, &runner->faults, error);
    if (status == SB_OK)
        status =
            sb_tensor_over(storage, (char *)storage->data + turn_at, SB_U64, 1, &one, NULL, &runner->fault_turn, error);
    sb_storage_release(storage);
    return status;
}

static sb_status clear_words(sb_queue *queue, const sb_runner *runner, sb_error *error) {
    SB_TRY(sb_queue_clear(queue, runner->faults, error));
    return sb_queue_clear(queue, runner->fault_turn, error);
}

sb_status sb_runner_create_faults(sb_runner *runner, sb_error *error) {
    sb_queue *queue = runner->settings->placement.queue;
    int64_t words = (int64_t)runner->program->step_count;
    if (queue == NULL || words == 0)
        return SB_OK;
    const size_t words_bytes = (size_t)words * sizeof(uint32_t), turn_at = (words_bytes + 7) / 8 * 8;
    const size_t depth = (size_t)runner->settings->queue_depth;
    size_t copies;
    if (__builtin_mul_overflow(words_bytes, 2 * depth, &copies))
        return sb_fail_memory(error, SIZE_MAX);
    SB_TRY(create_words(runner, words, turn_at, error));
    SB_TRY(sb_queue_enter(queue, error));
    SB_TRY(sb_queue_leave(queue, clear_words(queue, runner, error), error));
    SB_TRY(sb_host_block_create(queue, copies, &runner->fault_copies, error));
    memset(runner->fault_copies->data, 0, copies);
    runner->clean = sb_allocate_array(depth, sizeof *runner->clean);
    runner->fault_slots = sb_allocate_array(depth, sizeof *runner->fault_slots);
    if (runner->clean == NULL || runner->fault_slots == NULL)
        return sb_fail_memory(error, depth * sizeof *runner->fault_slots);
    for (size_t i = 0; i < depth; i++)
        runner->fault_slots[i] = -1;
    return SB_OK;
}

void sb_runner_destroy_faults(sb_runner *runner) {
    if (runner->fault_copies != NULL)
        sb_host_block_destroy(runner->settings->placement.queue, runner->fault_copies);
    sb_tensor_release(runner->faults);
    sb_tensor_release(runner->fault_turn);
    sb_free(runner->clean);
    sb_free(runner->fault_slots);
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

/* ---- collecting ---- */

static uint32_t *place_of(const sb_runner *runner, int place) {
    return words_of(runner, runner->settings->queue_depth + place);
}

/* Has what has arrived in a place in the slot of its run. */
static void put_into_slot(sb_runner *runner, int place) {
    const size_t count = runner->program->step_count;
    uint32_t *from = place_of(runner, place), *to = words_of(runner, runner->fault_slots[place]);
    memcpy(to, from, count * sizeof *to);
    memset(from, 0, count * sizeof *from);
    runner->clean[runner->fault_slots[place]] = false;
    runner->fault_slots[place] = -1;
}

sb_status sb_runner_give_collection(const sb_runner *runner, sb_error *error) {
    return sb_queue_collect_words(runner->settings->placement.queue, sb_runner_faults(runner), runner->fault_turn,
                                  place_of(runner, 0), runner->settings->queue_depth, error);
}

void sb_runner_note_collection(sb_runner *runner) {
    int place = (int)(runner->fault_turns++ % (uint64_t)runner->settings->queue_depth);
    if (runner->fault_slots[place] >= 0)
        put_into_slot(runner, place);
    runner->fault_slots[place] = runner->slot;
}

/* ---- a run ---- */

/* Forgets what a run has left that had the slot before and failed behind its last task. */
static sb_status empty_slot(sb_runner *runner, int slot, sb_error *error) {
    for (int place = 0; place < runner->settings->queue_depth; place++) {
        if (runner->fault_slots[place] != slot)
            continue;
        SB_TRY(sb_queue_wait(runner->settings->placement.queue, error));
        put_into_slot(runner, place);
    }
    return SB_OK;
}

sb_status sb_runner_clear_faults(sb_runner *runner, int slot, sb_error *error) {
    runner->slot = slot;
    runner->faults_left = false;
    if (runner->faults != NULL)
        SB_TRY(empty_slot(runner, slot, error));
    if (runner->faults != NULL && runner->uncollected && runner->may_fault)
        SB_TRY(sb_queue_clear(runner->settings->placement.queue, runner->faults, error));
    runner->uncollected = true;
    for (size_t i = 0; i < runner->nested_count; i++)
        SB_TRY(sb_runner_clear_faults(runner->nested[i], slot, error));
    return SB_OK;
}

sb_status sb_runner_collect_faults(sb_runner *runner, int slot, sb_error *error) {
    runner->slot = slot; /* which a runner that this run has made does not know yet */
    if (runner->faults != NULL && runner->may_fault && !runner->faults_left) {
        SB_TRY(sb_runner_give_collection(runner, error));
        sb_runner_note_collection(runner);
    }
    runner->uncollected = false;
    for (size_t i = 0; i < runner->nested_count; i++)
        SB_TRY(sb_runner_collect_faults(runner->nested[i], slot, error));
    return SB_OK;
}

sb_status sb_runner_check_faults(sb_runner *runner, int slot, sb_error *error) {
    for (int place = 0; runner->faults != NULL && place < runner->settings->queue_depth; place++) {
        if (runner->fault_slots[place] == slot)
            put_into_slot(runner, place);
    }
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
