#include "runtime/replay.h"

#include <string.h>

#include "base/allocation.h"
#include "runtime/runner_internal.h"
#include "runtime/state_binding.h"

/* ---- segments of a plan ---- */

/* Whether a step's launches follow from the plan: what it reads on the host is constant, and no graph of its own gives it memory of
 * a run. */
static bool is_recordable(const sb_plan *plan, const sb_program *program, size_t step) {
    const sb_planned_step *planned = &plan->steps[step];
    const sb_node *node = program->steps[step].node;
    if (planned->mode == SB_STEP_SKIP)
        return true;
    bool controls = (node->op->flags & SB_OP_CONTROL) != 0 && program->steps[step].graph_count != 0;
    if (planned->mode != SB_STEP_STATIC || planned->side != SB_DEVICE || controls)
        return false;
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] != SB_NO_VALUE && sb_input_side(planned->kernel, planned->side, i) == SB_HOST &&
            plan->facts[node->inputs[i]].kind != SB_KIND_NONE && plan->facts[node->inputs[i]].constant == NULL)
            return false;
    }
    return true;
}

/* Ends of segments: steps that are skipped belong to them in the middle, but not at the edges. */
static size_t segment_end(const sb_plan *plan, const sb_program *program, size_t first, size_t *launches) {
    size_t end = first;
    *launches = 0;
    for (size_t s = first; s < program->step_count && is_recordable(plan, program, s); s++) {
        if (plan->steps[s].mode == SB_STEP_SKIP)
            continue;
        end = s + 1;
        ++*launches;
    }
    return end;
}

typedef struct value_marks {
    bool *made;   /* per value: made by a step of the segment */
    bool *listed; /* per value: in the list that is being made */
} value_marks;

static bool is_read_after(const sb_program *program, sb_value_id value, size_t end) {
    for (size_t o = 0; o < program->leave_count; o++) {
        if (program->leave[o] == value)
            return true;
    }
    for (size_t s = end; s < program->step_count; s++) {
        for (int i = 0; i < program->steps[s].node->input_count; i++) {
            if (program->steps[s].node->inputs[i] == value)
                return true;
        }
    }
    return false;
}

/* Whether the segment finds the value where the plan has it, and no run brings it anywhere: a constant, unless a step on the device
 * makes it again with each run, beside outputs that are none. */
static bool stays_where_it_is(const sb_plan *plan, const sb_program *program, sb_value_id value) {
    int producer = program->graph->values[value].producer;
    if (plan->facts[value].constant == NULL || producer < 0)
        return plan->facts[value].constant != NULL;
    const sb_planned_step *made = &plan->steps[producer];
    return made->mode == SB_STEP_SKIP || (made->mode == SB_STEP_STATIC && made->side == SB_HOST);
}

static void note_step(const sb_plan *plan, const sb_program *program, sb_segment *segment, size_t step,
                      value_marks *marks) {
    const sb_planned_step *planned = &plan->steps[step];
    const sb_node *node = program->steps[step].node;
    for (int i = 0; i < node->input_count; i++) {
        sb_value_id value = node->inputs[i];
        if (value == SB_NO_VALUE || marks->made[value] || marks->listed[value] ||
            stays_where_it_is(plan, program, value) || sb_input_side(planned->kernel, planned->side, i) == SB_HOST)
            continue;
        marks->listed[value] = true;
        segment->inputs[segment->input_count++] = value;
    }
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == SB_NO_VALUE)
            continue;
        marks->made[node->outputs[i]] = true;
        if (is_read_after(program, node->outputs[i], segment->end))
            segment->outputs[segment->output_count++] = node->outputs[i];
    }
}

static sb_status fill_segment(const sb_plan *plan, const sb_program *program, sb_segment *segment, sb_error *error) {
    size_t inputs = 0, outputs = 0, values = program->graph->value_count;
    for (size_t s = segment->first; s < segment->end; s++) {
        inputs += (size_t)program->steps[s].node->input_count;
        outputs += (size_t)program->steps[s].node->output_count;
    }
    value_marks marks = {sb_allocate_array(values, sizeof(bool)), sb_allocate_array(values, sizeof(bool))};
    segment->inputs = sb_allocate_array(inputs, sizeof *segment->inputs);
    segment->outputs = sb_allocate_array(outputs, sizeof *segment->outputs);
    bool complete = marks.made != NULL && marks.listed != NULL && segment->inputs != NULL && segment->outputs != NULL;
    for (size_t s = segment->first; s < segment->end && complete; s++) {
        if (plan->steps[s].mode != SB_STEP_SKIP)
            note_step(plan, program, segment, s, &marks);
    }
    segment->dies = sb_allocate_array(segment->input_count, sizeof *segment->dies);
    complete = complete && segment->dies != NULL;
    for (size_t i = 0; i < segment->input_count && complete; i++)
        segment->dies[i] = !is_read_after(program, segment->inputs[i], segment->end);
    sb_free(marks.made);
    sb_free(marks.listed);
    return complete ? SB_OK : sb_fail_memory(error, 2 * values);
}

sb_status sb_segments_find(sb_plan *plan, const sb_program *program, sb_error *error) {
    plan->segment_of = sb_allocate_array(program->step_count, sizeof(sb_segment *));
    plan->segments = sb_allocate_array(program->step_count, sizeof *plan->segments);
    if (plan->segment_of == NULL || plan->segments == NULL)
        return sb_fail_memory(error, program->step_count * sizeof *plan->segments);
    for (size_t s = 0; s < program->step_count; s++) {
        size_t launches, end = segment_end(plan, program, s, &launches);
        if (plan->steps[s].mode == SB_STEP_SKIP || launches == 0)
            continue;
        if (launches >= SB_LEAST_SEGMENT) {
            sb_segment *segment = &plan->segments[plan->segment_count++];
            *segment = (sb_segment){.first = s, .end = end};
            SB_TRY(fill_segment(plan, program, segment, error));
            for (size_t i = s; i < end; i++)
                plan->segment_of[i] = segment;
        }
        s = end - 1;
    }
    return SB_OK;
}

/* ---- what was recorded ---- */

/* Where a recorded value lies: in the storage of an input of the segment, in a block that this run has allocated for a
 * value that outlives it, or where it always does (the arena, a constant). */
typedef enum output_place { IN_INPUT, IN_ESCAPE, FIXED } output_place;

typedef struct recorded_output {
    output_place place;
    size_t index;      /* of the input, or of the escape */
    ptrdiff_t offset;  /* from the first byte of that storage */
    sb_tensor *tensor; /* FIXED: the value itself; otherwise its description, over no storage of its own */
} recorded_output;

/* A value's own memory outside of the arena: made by the segment and kept by the caller. */
typedef struct recorded_escape {
    sb_value_id value;
    char *data;
    size_t bytes;
} recorded_escape;

struct sb_replay {
    sb_queue *queue; /* whose recording it is */
    sb_recording *recording;
    int64_t moves;      /* of the runner, when it was recorded */
    bool receives;      /* it begins by receiving the run's table … */
    bool leaves;        /* … and ends by leaving its faults; or, the last one of a run … */
    bool collects;      /* … by collecting them */
    bool again;         /* it fits any run whose inputs lie where those of the plan's runs do: sb_segment_note */
    sb_tensor **inputs; /* descriptions of the segment's inputs: where they lay and how */
    size_t input_count, output_count, escape_count, held_count;
    recorded_output *outputs;
    recorded_escape *escapes;
    sb_storage **held;  /* memory of the segment's own that is neither in the arena nor an output's */
    sb_storage **taken; /* while it is launched: the escapes' blocks */
    int64_t used;       /* sb_segment.uses when it was, to tell which has not been for longest */
    sb_replay *then;    /* the one that was used after it, and may be again; NULL: not known */
    sb_replay *next;
};

/* A tensor's dtype, extents, strides and address, without its memory. */
static sb_status describe(const sb_tensor *tensor, sb_tensor **description, sb_error *error) {
    sb_storage *none = sb_allocate(sizeof *none);
    if (none == NULL)
        return sb_fail_memory(error, sizeof *none);
    *none = (sb_storage){.references = 1,
                         .data = tensor->storage->data,
                         .bytes = tensor->storage->bytes,
                         .device = tensor->storage->device};
    sb_status status = sb_tensor_over(none, tensor->data, tensor->dtype, tensor->rank, tensor->dims, tensor->strides,
                                      description, error);
    sb_storage_release(none);
    return status;
}

static void destroy_replay(sb_replay *replay) {
    if (replay == NULL)
        return;
    for (size_t i = 0; replay->inputs != NULL && i < replay->input_count; i++)
        sb_tensor_release(replay->inputs[i]);
    for (size_t i = 0; replay->outputs != NULL && i < replay->output_count; i++)
        sb_tensor_release(replay->outputs[i].tensor);
    for (size_t i = 0; i < replay->held_count; i++)
        sb_storage_release(replay->held[i]);
    sb_recording_destroy(replay->queue, replay->recording);
    sb_free(replay->held);
    sb_free(replay->taken);
    sb_free(replay->inputs);
    sb_free(replay->outputs);
    sb_free(replay->escapes);
    sb_free(replay);
}

void sb_segments_forget(sb_plan *plan) {
    for (size_t i = 0; i < plan->segment_count; i++) {
        sb_segment *segment = &plan->segments[i];
        while (segment->replays != NULL) {
            sb_replay *next = segment->replays->next;
            destroy_replay(segment->replays);
            segment->replays = next;
        }
        segment->last = NULL;
        segment->warm = false;
    }
}

void sb_segments_destroy(sb_plan *plan) {
    sb_segments_forget(plan);
    for (size_t i = 0; i < plan->segment_count; i++) {
        sb_free(plan->segments[i].inputs);
        sb_free(plan->segments[i].outputs);
        sb_free(plan->segments[i].dies);
        sb_free(plan->segments[i].reason);
    }
    sb_free(plan->segments);
    sb_free(plan->segment_of);
}

/* ---- recording ---- */

static sb_value device_value(const sb_runner *runner, sb_value_id value) {
    return sb_runner_value(runner, SB_DEVICE, value);
}

static sb_status describe_inputs(const sb_runner *runner, const sb_segment *segment, sb_replay *replay,
                                 sb_error *error) {
    replay->inputs = sb_allocate_array(segment->input_count, sizeof(sb_tensor *));
    if (replay->inputs == NULL)
        return sb_fail_memory(error, segment->input_count * sizeof(sb_tensor *));
    for (; replay->input_count < segment->input_count; replay->input_count++) {
        sb_value value = device_value(runner, segment->inputs[replay->input_count]);
        if (value.kind == SB_KIND_TENSOR)
            SB_TRY(describe(value.tensor, &replay->inputs[replay->input_count], error));
    }
    return SB_OK;
}

/* The input of the segment in whose storage a tensor lies, or input_count. */
static size_t input_under(const sb_runner *runner, const sb_segment *segment, const sb_tensor *tensor) {
    for (size_t i = 0; i < segment->input_count; i++) {
        sb_value input = device_value(runner, segment->inputs[i]);
        if (input.kind == SB_KIND_TENSOR && input.tensor->storage == tensor->storage)
            return i;
    }
    return segment->input_count;
}

/* Whether the tensor lies in a variable, which never moves. */
static bool is_in_variable(const sb_runner *runner, const sb_tensor *tensor) {
    return runner->plan->binding != NULL && sb_state_holds(runner->plan->binding->state, tensor);
}

static size_t escape_under(const sb_replay *replay, const sb_tensor *tensor) {
    size_t i = 0;
    while (i < replay->escape_count && replay->escapes[i].data != tensor->storage->data)
        i++;
    return i;
}

/* Notes the blocks outside of the arena that steps of the segment made for values of their own. */
static sb_status note_escapes(const sb_runner *runner, const sb_segment *segment, sb_replay *replay, sb_error *error) {
    replay->escapes = sb_allocate_array(segment->output_count, sizeof *replay->escapes);
    replay->taken = sb_allocate_array(segment->output_count, sizeof(sb_storage *));
    if (replay->escapes == NULL || replay->taken == NULL)
        return sb_fail_memory(error, segment->output_count * sizeof *replay->escapes);
    for (size_t i = 0; i < segment->output_count; i++) {
        sb_value value = device_value(runner, segment->outputs[i]);
        if (value.kind != SB_KIND_TENSOR || value.tensor->storage == runner->arenas[SB_DEVICE] ||
            input_under(runner, segment, value.tensor) < segment->input_count || is_in_variable(runner, value.tensor) ||
            escape_under(replay, value.tensor) < replay->escape_count)
            continue;
        const sb_storage *storage = value.tensor->storage;
        replay->escapes[replay->escape_count++] = (recorded_escape){segment->outputs[i], storage->data, storage->bytes};
    }
    return SB_OK;
}

static sb_status describe_outputs(const sb_runner *runner, const sb_segment *segment, sb_replay *replay,
                                  sb_error *error) {
    SB_TRY(note_escapes(runner, segment, replay, error));
    replay->outputs = sb_allocate_array(segment->output_count, sizeof *replay->outputs);
    if (replay->outputs == NULL)
        return sb_fail_memory(error, segment->output_count * sizeof *replay->outputs);
    for (; replay->output_count < segment->output_count; replay->output_count++) {
        recorded_output *output = &replay->outputs[replay->output_count];
        sb_value value = device_value(runner, segment->outputs[replay->output_count]);
        if (value.kind != SB_KIND_TENSOR)
            continue;
        const sb_tensor *tensor = value.tensor;
        output->offset = tensor->data - (char *)tensor->storage->data;
        output->index = input_under(runner, segment, tensor);
        if (tensor->storage == runner->arenas[SB_DEVICE] || is_in_variable(runner, tensor)) {
            output->place = FIXED;
            output->tensor = sb_tensor_retain(value.tensor);
            continue;
        }
        if (output->index < segment->input_count) {
            output->place = IN_INPUT;
        } else {
            output->place = IN_ESCAPE;
            output->index = escape_under(replay, tensor);
        }
        SB_TRY(describe(tensor, &output->tensor, error));
    }
    return SB_OK;
}

/* Keeps the memory of values that the graph will write outside of the arena and of outputs: nobody else may get it. */
static sb_status hold_others(const sb_runner *runner, const sb_segment *segment, sb_replay *replay, sb_error *error) {
    size_t most = 0;
    for (size_t s = segment->first; s < segment->end; s++)
        most += (size_t)runner->program->steps[s].node->output_count;
    replay->held = sb_allocate_array(most, sizeof(sb_storage *));
    if (replay->held == NULL)
        return sb_fail_memory(error, most * sizeof(sb_storage *));
    for (size_t s = segment->first; s < segment->end; s++) {
        const sb_node *node = runner->program->steps[s].node;
        for (int i = 0; i < node->output_count; i++) {
            sb_value value = device_value(runner, node->outputs[i]);
            if (value.kind == SB_KIND_TENSOR && value.tensor->storage != runner->arenas[SB_DEVICE] &&
                input_under(runner, segment, value.tensor) == segment->input_count &&
                !is_in_variable(runner, value.tensor) && escape_under(replay, value.tensor) == replay->escape_count)
                replay->held[replay->held_count++] = sb_storage_retain(value.tensor->storage);
        }
    }
    return SB_OK;
}

/* Runs steps of the segment from *next on, which is where it failed if it does. */
static sb_status run_steps_from(sb_runner *runner, const sb_segment *segment, size_t *next, sb_error *error) {
    for (; *next < segment->end; ++*next) {
        if (runner->plan->steps[*next].mode != SB_STEP_SKIP)
            SB_TRY(sb_runner_step(runner, *next, error));
    }
    return SB_OK;
}

/* The bytes of the block that step `step` takes for output `index` outside of the arena; 0 for none. */
static size_t own_bytes(const sb_runner *runner, size_t step, int index) {
    const sb_plan *plan = runner->plan;
    const sb_node *node = runner->program->steps[step].node;
    sb_value_id value = node->outputs[index];
    int64_t dims[SB_MAX_RANK], elements;
    if (value == SB_NO_VALUE || plan->steps[step].mode == SB_STEP_SKIP ||
        plan->offsets[sb_copy_index(runner->program, SB_DEVICE, value)] >= 0 ||
        (plan->places != NULL && plan->places[value] != NULL) ||
        ((node->op->flags & SB_OP_VIEW) != 0 && !plan->copied[value]))
        return 0;
    const sb_fact *fact = &plan->facts[value];
    if (!sb_fact_is_concrete(fact, dims) || sb_count_elements(fact->dtype, fact->rank, dims, &elements, NULL) != SB_OK)
        return 0;
    return (size_t)elements * sb_dtype_size(fact->dtype);
}

/* Lets the queue have the blocks that the steps will take for values outside of the arena: while a stream is
 * captured nothing can be allocated, and the caller may hold those of the runs before. Taken at once and given
 * back, they wait for the steps. */
static sb_status provide_blocks(const sb_runner *runner, const sb_segment *segment, sb_error *error) {
    size_t most = 0, count = 0;
    for (size_t s = segment->first; s < segment->end; s++)
        most += (size_t)runner->program->steps[s].node->output_count;
    sb_storage **blocks = sb_allocate_array(most, sizeof(sb_storage *));
    sb_status status = blocks != NULL ? SB_OK : sb_fail_memory(error, most * sizeof(sb_storage *));
    for (size_t s = segment->first; s < segment->end && status == SB_OK; s++) {
        for (int i = 0; i < runner->program->steps[s].node->output_count && status == SB_OK; i++) {
            size_t bytes = own_bytes(runner, s, i);
            if (bytes != 0)
                status = sb_queue_storage(runner->settings->placement.queue, bytes, &blocks[count], error);
            count += bytes != 0 && status == SB_OK;
        }
    }
    for (size_t i = 0; i < count; i++)
        sb_storage_release(blocks[i]);
    sb_free(blocks);
    return status;
}

/* ---- the run's table and faults in a recording ---- */

/* Before the recording is carried out. */
static void post_table(sb_runner *runner) {
    sb_run_table_post(&runner->plan->open->table, sb_runner_faults_place(runner));
}

/* After what receives the table has been given to the queue. */
static void note_received(const sb_runner *runner) {
    runner->plan->open->table.mailbox->turn++;
}

static sb_status receive_table(sb_runner *runner, const sb_replay *replay, sb_error *error) {
    sb_queue *queue = runner->settings->placement.queue;
    if (!replay->receives)
        return SB_OK;
    post_table(runner);
    SB_TRY(sb_queue_receive(queue, runner->plan->open->table.mailbox, error));
    if (!queue->is_capturing)
        note_received(runner);
    return SB_OK;
}

/* A graph of a node may run more than once. */
static bool ends_run(const sb_runner *runner, const sb_segment *segment) {
    return runner->depth == 0 && segment->end == runner->program->step_count;
}

static sb_status collect_faults(sb_runner *runner, sb_replay *replay, sb_error *error) {
    SB_TRY(sb_runner_give_collection(runner, error));
    replay->collects = true;
    runner->faults_left = !runner->settings->placement.queue->is_capturing;
    if (runner->faults_left)
        sb_runner_note_collection(runner);
    return SB_OK;
}

static sb_status leave_faults(sb_runner *runner, const sb_segment *segment, sb_replay *replay, sb_error *error) {
    sb_queue *queue = runner->settings->placement.queue;
    const sb_run_table *table = runner->plan->open != NULL ? &runner->plan->open->table : NULL;
    if (!runner->may_fault)
        return SB_OK;
    if (!replay->receives)
        return ends_run(runner, segment) ? collect_faults(runner, replay, error) : SB_OK;
    const int64_t *answer = (const int64_t *)(const void *)table->there->data + table->answer;
    SB_TRY(sb_queue_leave_words(queue, table->mailbox, answer, runner->fault_copies, error));
    replay->leaves = true;
    runner->faults_left = !queue->is_capturing;
    return SB_OK;
}

/* Steps of the segment from *next on, with what goes before and behind them. */
static sb_status give_steps(sb_runner *runner, const sb_segment *segment, sb_replay *replay, size_t *next,
                            sb_error *error) {
    SB_TRY(receive_table(runner, replay, error));
    SB_TRY(run_steps_from(runner, segment, next, error));
    return leave_faults(runner, segment, replay, error);
}

static sb_status launch(sb_runner *runner, const sb_replay *replay, sb_error *error) {
    SB_TRY(sb_queue_launch(runner->settings->placement.queue, replay->recording, error));
    if (replay->receives)
        note_received(runner);
    if (replay->collects)
        sb_runner_note_collection(runner);
    runner->faults_left = replay->leaves || replay->collects;
    return SB_OK;
}

/* ---- both ways to record ---- */

/* Captures the steps, and launches what was captured: before that nothing is carried out. */
static sb_status capture(sb_runner *runner, const sb_segment *segment, sb_replay *replay, size_t *next,
                         sb_error *error) {
    sb_queue *queue = runner->settings->placement.queue;
    size_t captured = segment->first;
    SB_TRY(provide_blocks(runner, segment, error));
    SB_TRY(sb_queue_record(queue, true, error));
    SB_TRY(sb_queue_stop(queue, give_steps(runner, segment, replay, &captured, error), &replay->recording, error));
    SB_TRY(launch(runner, replay, error));
    *next = segment->end;
    return SB_OK;
}

/* Carries the steps out, and makes what can be launched again of the list of their tasks. */
static sb_status build(sb_runner *runner, const sb_segment *segment, sb_replay *replay, size_t *next, sb_error *error) {
    sb_queue *queue = runner->settings->placement.queue;
    SB_TRY(sb_queue_record(queue, false, error));
    return sb_queue_stop(queue, give_steps(runner, segment, replay, next, error), &replay->recording, error);
}

/* Records the segment; *next is the first of its steps that have not been carried out on the way. */
static sb_status record(sb_runner *runner, const sb_segment *segment, sb_replay *replay, size_t *next,
                        sb_error *error) {
    SB_TRY(describe_inputs(runner, segment, replay, error));
    sb_status status = runner->settings->graphs == SB_GRAPHS_CAPTURE ? capture(runner, segment, replay, next, error)
                                                                     : build(runner, segment, replay, next, error);
    if (status == SB_OK && replay->queue->moves != replay->moves)
        status = sb_fail(error, SB_ERROR_INTERNAL, "memory moved while the steps were recorded");
    if (status == SB_OK)
        status = describe_outputs(runner, segment, replay, error);
    return status == SB_OK ? hold_others(runner, segment, replay, error) : status;
}

static void release_made(sb_runner *runner, const sb_segment *segment, size_t first) {
    for (size_t s = first; s < segment->end; s++) {
        const sb_node *node = runner->program->steps[s].node;
        for (int i = 0; i < node->output_count && runner->plan->steps[s].mode != SB_STEP_SKIP; i++) {
            if (node->outputs[i] != SB_NO_VALUE)
                sb_runner_release(runner, node->outputs[i]);
        }
    }
}

static void note_failure(sb_segment *segment, const sb_error *error) {
    segment->failed = true;
    segment->reason = sb_duplicate_string(error->message);
}

/* Notes that a recording is what a run has used: runs in flight, with outputs of their own, take them in turn. */
static void note_use(sb_segment *segment, sb_replay *replay) {
    if (segment->last != NULL)
        segment->last->then = replay;
    segment->last = replay;
    replay->used = ++segment->uses;
    segment->replayed = true;
}

/* Takes a recording out, when the device has done the runs that launched it. */
static void drop_replay(sb_segment *segment, sb_replay **link) {
    sb_replay *dropped = *link;
    (void)sb_queue_wait(dropped->queue, NULL);
    *link = dropped->next;
    for (sb_replay *replay = segment->replays; replay != NULL; replay = replay->next) {
        if (replay->then == dropped)
            replay->then = NULL;
    }
    destroy_replay(dropped);
}

/* Keeps one that has just been made and used. Of one too many, that goes which has not been used for longest. */
static void keep_replay(sb_segment *segment, sb_replay *replay) {
    replay->next = segment->replays;
    segment->replays = replay;
    note_use(segment, replay);
    sb_replay **oldest = &segment->replays;
    int count = 0;
    for (sb_replay **link = &segment->replays; *link != NULL; link = &(*link)->next, count++) {
        if ((*link)->used < (*oldest)->used)
            oldest = link;
    }
    if (count > SB_MOST_REPLAYS)
        drop_replay(segment, oldest);
}

/* Records the segment, or, when that fails, runs it as before and never records again: the failure is kept. What has
 * been carried out by then is not repeated, since it may have overwritten what the segment's first steps read. A device
 * that is lost is given nothing more. */
static sb_status record_or_run(sb_runner *runner, sb_segment *segment, sb_error *error) {
    sb_error failure = {SB_OK, ""};
    sb_queue *queue = runner->settings->placement.queue;
    size_t next = segment->first;
    sb_replay *replay = sb_allocate_array(1, sizeof *replay);
    if (replay == NULL) /* there may be memory for it in a later run */
        return run_steps_from(runner, segment, &next, error);
    replay->queue = queue;
    replay->moves = queue->moves;
    replay->receives = runner->plan->again.segment == segment && runner->plan->open->table.mailbox != NULL;
    if (record(runner, segment, replay, &next, &failure) == SB_OK) {
        keep_replay(segment, replay);
        return SB_OK;
    }
    note_failure(segment, &failure);
    sb_status status = SB_OK;
    if (sb_queue_is_lost(queue))
        status = sb_fail(error, failure.status, "%.1900s", failure.message);
    else if (next == segment->end)
        status = sb_queue_wait(queue, error); /* for what was launched, before its graph goes */
    destroy_replay(replay);
    if (status != SB_OK)
        return status;
    release_made(runner, segment, next);
    return run_steps_from(runner, segment, &next, error);
}

/* ---- replaying ---- */

/* Whether the segment's inputs lie where they did, in the same way. */
static bool inputs_match(const sb_runner *runner, const sb_segment *segment, const sb_replay *replay) {
    for (size_t i = 0; i < segment->input_count; i++) {
        sb_value value = device_value(runner, segment->inputs[i]);
        const sb_tensor *known = replay->inputs[i], *given = value.tensor;
        if (value.kind != SB_KIND_TENSOR || known == NULL || known->data != given->data ||
            memcmp(known->strides, given->strides, (size_t)given->rank * sizeof *given->strides) != 0)
            return false;
    }
    return true;
}

/* Takes the recorded blocks for the values that outlive the run, if nobody holds them. Just any blocks would hardly
 * ever be those: a caller who passes outputs on as inputs changes their order in the queue's list with each run. */
static bool take_escapes(sb_runner *runner, const sb_replay *replay) {
    bool fit = true;
    for (size_t i = 0; i < replay->escape_count && fit; i++) {
        replay->taken[i] =
            sb_queue_storage_at(runner->settings->placement.queue, replay->escapes[i].data, replay->escapes[i].bytes);
        fit = replay->taken[i] != NULL;
    }
    return fit;
}

/* The bytes of an output that is not where it always is lie in `storage`. */
static sb_status publish_over(sb_runner *runner, sb_value_id value, const recorded_output *output, sb_storage *storage,
                              sb_error *error) {
    sb_tensor *tensor;
    SB_TRY(sb_tensor_over(storage, (char *)storage->data + output->offset, output->tensor->dtype, output->tensor->rank,
                          output->tensor->dims, output->tensor->strides, &tensor, error));
    sb_runner_hold(runner, SB_DEVICE, value, sb_value_of_tensor(tensor));
    return SB_OK;
}

static sb_status publish(sb_runner *runner, const sb_segment *segment, const sb_replay *replay, size_t index,
                         sb_error *error) {
    const recorded_output *output = &replay->outputs[index];
    sb_value_id value = segment->outputs[index];
    if (output->tensor == NULL)
        return SB_OK;
    if (output->place == IN_ESCAPE)
        return publish_over(runner, value, output, replay->taken[output->index], error);
    if (output->place == IN_INPUT)
        return publish_over(runner, value, output, device_value(runner, segment->inputs[output->index]).tensor->storage,
                            error);
    sb_runner_hold(runner, SB_DEVICE, value, sb_value_of_tensor(sb_tensor_retain(output->tensor)));
    return SB_OK;
}

/* Launches a recorded graph if the blocks of what it makes are free; *done says whether. Of its outputs it holds those that `made`
 * lists, or all where that is NULL. */
static sb_status try_launch(sb_runner *runner, const sb_segment *segment, const sb_replay *replay, const size_t *made,
                            size_t count, bool *done, sb_error *error) {
    sb_status status = SB_OK;
    *done = take_escapes(runner, replay);
    for (size_t i = 0; i < count && *done && status == SB_OK; i++)
        status = publish(runner, segment, replay, made != NULL ? made[i] : i, error);
    if (status == SB_OK && *done && replay->receives)
        post_table(runner);
    if (status == SB_OK && *done)
        status = launch(runner, replay, error);
    for (size_t i = 0; i < replay->escape_count; i++) {
        sb_storage_release(replay->taken[i]);
        replay->taken[i] = NULL;
    }
    return status;
}

/* Launches the recording if it fits, without its inputs having been looked at where `made` lists outputs; *done says whether. */
static sb_status try_replay(sb_runner *runner, sb_segment *segment, sb_replay *replay, const size_t *made, size_t count,
                            bool *done, sb_error *error) {
    *done = false;
    if (replay->moves != runner->settings->placement.queue->moves ||
        (made != NULL ? !replay->again : !inputs_match(runner, segment, replay)))
        return SB_OK;
    SB_TRY(try_launch(runner, segment, replay, made, made != NULL ? count : replay->output_count, done, error));
    if (*done)
        note_use(segment, replay);
    return SB_OK;
}

/* First the one that is likely: others are asked for blocks that runs in flight still hold. */
static sb_status replay_any(sb_runner *runner, sb_segment *segment, const size_t *made, size_t count, bool *done,
                            sb_error *error) {
    sb_replay *likely = segment->last != NULL ? segment->last->then : NULL;
    *done = false;
    if (likely != NULL)
        SB_TRY(try_replay(runner, segment, likely, made, count, done, error));
    for (sb_replay *replay = segment->replays; replay != NULL && !*done; replay = replay->next) {
        if (replay != likely)
            SB_TRY(try_replay(runner, segment, replay, made, count, done, error));
    }
    return SB_OK;
}

/* What lies in an input is found by way of that, which such a run does not look up. */
static bool shows_inputs(const sb_replay *replay) {
    bool shows = false;
    for (size_t i = 0; i < replay->output_count; i++)
        shows = shows || (replay->outputs[i].tensor != NULL && replay->outputs[i].place == IN_INPUT);
    return shows;
}

void sb_segment_note(sb_segment *segment) {
    if (segment->replayed && !segment->last->again)
        segment->last->again = !shows_inputs(segment->last);
}

sb_status sb_segment_again(sb_runner *runner, sb_segment *segment, const size_t *made, size_t count, bool *done,
                           sb_error *error) {
    bool *began = &runner->plan->binding->run.began, before = *began;
    *began = before || segment->end > runner->plan->first_update;
    sb_status status = replay_any(runner, segment, made, count, done, error);
    *began = before || (*began && (*done || status != SB_OK));
    return status;
}

sb_status sb_segment_run(sb_runner *runner, sb_segment *segment, sb_error *error) {
    bool done = false;
    size_t next = segment->first;
    segment->replayed = false;
    for (size_t i = 0; i < segment->input_count; i++)
        SB_TRY(sb_runner_bring(runner, segment->inputs[i], SB_DEVICE, true, error));
    if (!segment->failed)
        SB_TRY(replay_any(runner, segment, NULL, 0, &done, error));
    if (!done && segment->warm && !segment->failed)
        SB_TRY(record_or_run(runner, segment, error));
    else if (!done)
        SB_TRY(run_steps_from(runner, segment, &next, error));
    segment->warm = true;
    /* What a recording makes inside of it nobody holds. */
    for (size_t i = 0; i < segment->input_count && done; i++) {
        if (segment->dies[i])
            sb_runner_release(runner, segment->inputs[i]);
    }
    for (size_t s = segment->first; s < segment->end && !done; s++) {
        for (size_t r = 0; r < runner->program->steps[s].release_count; r++)
            sb_runner_release(runner, runner->program->steps[s].releases[r]);
    }
    return SB_OK;
}

/* ---- reports ---- */

void sb_runner_report_graphs(const sb_runner *runner, sb_graph_report *report) {
    *report = (sb_graph_report){.reason = ""};
    const sb_plan *plan = runner->plan;
    for (size_t i = 0; plan != NULL && i < plan->segment_count; i++) {
        const sb_segment *segment = &plan->segments[i];
        report->segments++;
        report->recorded += segment->replays != NULL;
        if (segment->failed && report->failed++ == 0)
            report->reason = segment->reason != NULL ? segment->reason : "out of memory";
        for (const sb_replay *replay = segment->replays; replay != NULL; replay = replay->next) {
            int64_t tasks, edges;
            sb_recording_measure(replay->queue, replay->recording, &tasks, &edges);
            report->tasks += tasks;
            report->edges += edges;
        }
    }
}
