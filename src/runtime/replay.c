#include "runtime/replay.h"

#include <string.h>

#include "base/allocation.h"
#include "runtime/runner_internal.h"

/* ---- segments of a plan ---- */

/* Whether a step's launches follow from the plan: what it reads on the host is constant. */
static bool is_recordable(const iv_plan *plan, const iv_program *program, size_t step) {
    const iv_planned_step *planned = &plan->steps[step];
    const iv_node *node = program->steps[step].node;
    if (planned->mode == IV_STEP_SKIP)
        return true;
    if (planned->mode != IV_STEP_STATIC || planned->side != IV_DEVICE)
        return false;
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] != IV_NO_VALUE && iv_input_side(planned->kernel, planned->side, i) == IV_HOST &&
            plan->facts[node->inputs[i]].kind != IV_KIND_NONE && plan->facts[node->inputs[i]].constant == NULL)
            return false;
    }
    return true;
}

/* Ends of segments: steps that are skipped belong to them in the middle, but not at the edges. */
static size_t segment_end(const iv_plan *plan, const iv_program *program, size_t first, size_t *launches) {
    size_t end = first;
    *launches = 0;
    for (size_t s = first; s < program->step_count && is_recordable(plan, program, s); s++) {
        if (plan->steps[s].mode == IV_STEP_SKIP)
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

static bool is_read_after(const iv_program *program, iv_value_id value, size_t end) {
    for (size_t o = 0; o < program->graph->output_count; o++) {
        if (program->graph->outputs[o] == value)
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

static void note_step(const iv_plan *plan, const iv_program *program, iv_segment *segment, size_t step,
                      value_marks *marks) {
    const iv_planned_step *planned = &plan->steps[step];
    const iv_node *node = program->steps[step].node;
    for (int i = 0; i < node->input_count; i++) {
        iv_value_id value = node->inputs[i];
        if (value == IV_NO_VALUE || marks->made[value] || marks->listed[value] ||
            plan->facts[value].constant != NULL ||
            iv_input_side(planned->kernel, planned->side, i) == IV_HOST)
            continue;
        marks->listed[value] = true;
        segment->inputs[segment->input_count++] = value;
    }
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == IV_NO_VALUE)
            continue;
        marks->made[node->outputs[i]] = true;
        if (is_read_after(program, node->outputs[i], segment->end))
            segment->outputs[segment->output_count++] = node->outputs[i];
    }
}

static iv_status fill_segment(const iv_plan *plan, const iv_program *program, iv_segment *segment,
                              iv_error *error) {
    size_t inputs = 0, outputs = 0, values = program->graph->value_count;
    for (size_t s = segment->first; s < segment->end; s++) {
        inputs += (size_t)program->steps[s].node->input_count;
        outputs += (size_t)program->steps[s].node->output_count;
    }
    value_marks marks = {iv_allocate_array(values, sizeof(bool)), iv_allocate_array(values, sizeof(bool))};
    segment->inputs = iv_allocate_array(inputs, sizeof *segment->inputs);
    segment->outputs = iv_allocate_array(outputs, sizeof *segment->outputs);
    bool complete =
        marks.made != NULL && marks.listed != NULL && segment->inputs != NULL && segment->outputs != NULL;
    for (size_t s = segment->first; s < segment->end && complete; s++) {
        if (plan->steps[s].mode != IV_STEP_SKIP)
            note_step(plan, program, segment, s, &marks);
    }
    iv_free(marks.made);
    iv_free(marks.listed);
    return complete ? IV_OK : iv_fail_memory(error, 2 * values);
}

iv_status iv_segments_find(iv_plan *plan, const iv_program *program, iv_error *error) {
    plan->segment_of = iv_allocate_array(program->step_count, sizeof(iv_segment *));
    plan->segments = iv_allocate_array(program->step_count, sizeof *plan->segments);
    if (plan->segment_of == NULL || plan->segments == NULL)
        return iv_fail_memory(error, program->step_count * sizeof *plan->segments);
    for (size_t s = 0; s < program->step_count; s++) {
        size_t launches, end = segment_end(plan, program, s, &launches);
        if (plan->steps[s].mode == IV_STEP_SKIP || launches == 0)
            continue;
        if (launches >= IV_LEAST_SEGMENT) {
            iv_segment *segment = &plan->segments[plan->segment_count++];
            *segment = (iv_segment){.first = s, .end = end};
            IV_TRY(fill_segment(plan, program, segment, error));
            for (size_t i = s; i < end; i++)
                plan->segment_of[i] = segment;
        }
        s = end - 1;
    }
    return IV_OK;
}

/* ---- what was recorded ---- */

/* Where a recorded value lies: in the storage of an input of the segment, in a block that this run has allocated for a value
 * that outlives it, or where it always does (the arena, a constant). */
typedef enum output_place {
    IN_INPUT,
    IN_ESCAPE,
    FIXED
} output_place;

typedef struct recorded_output {
    output_place place;
    size_t index;      /* of the input, or of the escape */
    ptrdiff_t offset;  /* from the first byte of that storage */
    iv_tensor *tensor; /* FIXED: the value itself; otherwise its description, over no storage of its own */
} recorded_output;

/* A value's own memory outside of the arena: made by the segment and kept by the caller. */
typedef struct recorded_escape {
    iv_value_id value;
    char *data;
    size_t bytes;
} recorded_escape;

struct iv_replay {
    iv_cuda_graph *graph;
    int64_t moves;      /* of the runner, when it was recorded */
    iv_tensor **inputs; /* descriptions of the segment's inputs: where they lay and how */
    size_t input_count, output_count, escape_count, held_count;
    recorded_output *outputs;
    recorded_escape *escapes;
    iv_storage **held;  /* memory of the segment's own that is neither in the arena nor an output's */
    iv_storage **taken; /* while it is launched: the escapes' blocks */
    iv_replay *next;
};

/* A tensor's dtype, extents, strides and address, without its memory. */
static iv_status describe(const iv_tensor *tensor, iv_tensor **description, iv_error *error) {
    iv_storage *none = iv_allocate(sizeof *none);
    if (none == NULL)
        return iv_fail_memory(error, sizeof *none);
    *none = (iv_storage){.references = 1, .data = tensor->storage->data, .bytes = tensor->storage->bytes,
                         .device = tensor->storage->device};
    iv_status status = iv_tensor_over(none, tensor->data, tensor->dtype, tensor->rank, tensor->dims,
                                      tensor->strides, description, error);
    iv_storage_release(none);
    return status;
}

static void destroy_replay(iv_replay *replay) {
    if (replay == NULL)
        return;
    for (size_t i = 0; replay->inputs != NULL && i < replay->input_count; i++)
        iv_tensor_release(replay->inputs[i]);
    for (size_t i = 0; replay->outputs != NULL && i < replay->output_count; i++)
        iv_tensor_release(replay->outputs[i].tensor);
    for (size_t i = 0; i < replay->held_count; i++)
        iv_storage_release(replay->held[i]);
    iv_cuda_graph_destroy(replay->graph);
    iv_free(replay->held);
    iv_free(replay->taken);
    iv_free(replay->inputs);
    iv_free(replay->outputs);
    iv_free(replay->escapes);
    iv_free(replay);
}

void iv_segments_forget(iv_plan *plan) {
    for (size_t i = 0; i < plan->segment_count; i++) {
        iv_segment *segment = &plan->segments[i];
        while (segment->replays != NULL) {
            iv_replay *next = segment->replays->next;
            destroy_replay(segment->replays);
            segment->replays = next;
        }
        segment->warm = false;
    }
}

void iv_segments_destroy(iv_plan *plan) {
    iv_segments_forget(plan);
    for (size_t i = 0; i < plan->segment_count; i++) {
        iv_free(plan->segments[i].inputs);
        iv_free(plan->segments[i].outputs);
        iv_free(plan->segments[i].reason);
    }
    iv_free(plan->segments);
    iv_free(plan->segment_of);
}

/* ---- recording ---- */

static iv_value device_value(const iv_runner *runner, iv_value_id value) {
    return iv_runner_value(runner, IV_DEVICE, value);
}

static iv_status describe_inputs(const iv_runner *runner, const iv_segment *segment, iv_replay *replay,
                                 iv_error *error) {
    replay->inputs = iv_allocate_array(segment->input_count, sizeof(iv_tensor *));
    if (replay->inputs == NULL)
        return iv_fail_memory(error, segment->input_count * sizeof(iv_tensor *));
    for (; replay->input_count < segment->input_count; replay->input_count++) {
        iv_value value = device_value(runner, segment->inputs[replay->input_count]);
        if (value.kind == IV_KIND_TENSOR)
            IV_TRY(describe(value.tensor, &replay->inputs[replay->input_count], error));
    }
    return IV_OK;
}

/* The input of the segment in whose storage a tensor lies, or input_count. */
static size_t input_under(const iv_runner *runner, const iv_segment *segment, const iv_tensor *tensor) {
    for (size_t i = 0; i < segment->input_count; i++) {
        iv_value input = device_value(runner, segment->inputs[i]);
        if (input.kind == IV_KIND_TENSOR && input.tensor->storage == tensor->storage)
            return i;
    }
    return segment->input_count;
}

static size_t escape_under(const iv_replay *replay, const iv_tensor *tensor) {
    size_t i = 0;
    while (i < replay->escape_count && replay->escapes[i].data != tensor->storage->data)
        i++;
    return i;
}

/* Notes the blocks outside of the arena that steps of the segment made for values of their own. */
static iv_status note_escapes(const iv_runner *runner, const iv_segment *segment, iv_replay *replay, iv_error *error) {
    replay->escapes = iv_allocate_array(segment->output_count, sizeof *replay->escapes);
    replay->taken = iv_allocate_array(segment->output_count, sizeof(iv_storage *));
    if (replay->escapes == NULL || replay->taken == NULL)
        return iv_fail_memory(error, segment->output_count * sizeof *replay->escapes);
    for (size_t i = 0; i < segment->output_count; i++) {
        iv_value value = device_value(runner, segment->outputs[i]);
        if (value.kind != IV_KIND_TENSOR || value.tensor->storage == runner->arenas[IV_DEVICE] ||
            input_under(runner, segment, value.tensor) < segment->input_count ||
            escape_under(replay, value.tensor) < replay->escape_count)
            continue;
        const iv_storage *storage = value.tensor->storage;
        replay->escapes[replay->escape_count++] =
            (recorded_escape){segment->outputs[i], storage->data, storage->bytes};
    }
    return IV_OK;
}

static iv_status describe_outputs(const iv_runner *runner, const iv_segment *segment, iv_replay *replay,
                                  iv_error *error) {
    IV_TRY(note_escapes(runner, segment, replay, error));
    replay->outputs = iv_allocate_array(segment->output_count, sizeof *replay->outputs);
    if (replay->outputs == NULL)
        return iv_fail_memory(error, segment->output_count * sizeof *replay->outputs);
    for (; replay->output_count < segment->output_count; replay->output_count++) {
        recorded_output *output = &replay->outputs[replay->output_count];
        iv_value value = device_value(runner, segment->outputs[replay->output_count]);
        if (value.kind != IV_KIND_TENSOR)
            continue;
        const iv_tensor *tensor = value.tensor;
        output->offset = tensor->data - (char *)tensor->storage->data;
        output->index = input_under(runner, segment, tensor);
        if (output->index < segment->input_count) {
            output->place = IN_INPUT;
        } else if (tensor->storage == runner->arenas[IV_DEVICE]) {
            output->place = FIXED;
            output->tensor = iv_tensor_retain(value.tensor);
            continue;
        } else {
            output->place = IN_ESCAPE;
            output->index = escape_under(replay, tensor);
        }
        IV_TRY(describe(tensor, &output->tensor, error));
    }
    return IV_OK;
}

/* Keeps the memory of values that the graph will write outside of the arena and of outputs: nobody else may get it. */
static iv_status hold_others(const iv_runner *runner, const iv_segment *segment, iv_replay *replay, iv_error *error) {
    size_t most = 0;
    for (size_t s = segment->first; s < segment->end; s++)
        most += (size_t)runner->program->steps[s].node->output_count;
    replay->held = iv_allocate_array(most, sizeof(iv_storage *));
    if (replay->held == NULL)
        return iv_fail_memory(error, most * sizeof(iv_storage *));
    for (size_t s = segment->first; s < segment->end; s++) {
        const iv_node *node = runner->program->steps[s].node;
        for (int i = 0; i < node->output_count; i++) {
            iv_value value = device_value(runner, node->outputs[i]);
            if (value.kind == IV_KIND_TENSOR && value.tensor->storage != runner->arenas[IV_DEVICE] &&
                input_under(runner, segment, value.tensor) == segment->input_count &&
                escape_under(replay, value.tensor) == replay->escape_count)
                replay->held[replay->held_count++] = iv_storage_retain(value.tensor->storage);
        }
    }
    return IV_OK;
}

/* Runs steps of the segment from *next on, which is where it failed if it does. */
static iv_status run_steps_from(iv_runner *runner, const iv_segment *segment, size_t *next, iv_error *error) {
    for (; *next < segment->end; ++*next) {
        if (runner->plan->steps[*next].mode != IV_STEP_SKIP)
            IV_TRY(iv_runner_step(runner, *next, error));
    }
    return IV_OK;
}

/* The bytes of the block that step `step` takes for output `index` outside of the arena; 0 for none. */
static size_t own_bytes(const iv_runner *runner, size_t step, int index) {
    const iv_plan *plan = runner->plan;
    const iv_node *node = runner->program->steps[step].node;
    iv_value_id value = node->outputs[index];
    int64_t dims[IV_MAX_RANK], elements;
    if (value == IV_NO_VALUE || plan->steps[step].mode == IV_STEP_SKIP ||
        plan->offsets[iv_copy_index(runner->program, IV_DEVICE, value)] >= 0 ||
        ((node->op->flags & IV_OP_VIEW) != 0 && !plan->copied[value]))
        return 0;
    const iv_fact *fact = &plan->facts[value];
    if (!iv_fact_is_concrete(fact, dims) ||
        iv_count_elements(fact->dtype, fact->rank, dims, &elements, NULL) != IV_OK)
        return 0;
    return (size_t)elements * iv_dtype_size(fact->dtype);
}

/* Lets the lane have the blocks that the steps will take for values outside of the arena: while a stream is captured nothing can
 * be allocated, and the caller may hold those of the runs before. Taken at once and given back, they wait for the steps. */
static iv_status provide_blocks(const iv_runner *runner, const iv_segment *segment, iv_error *error) {
    size_t most = 0, count = 0;
    for (size_t s = segment->first; s < segment->end; s++)
        most += (size_t)runner->program->steps[s].node->output_count;
    iv_storage **blocks = iv_allocate_array(most, sizeof(iv_storage *));
    iv_status status = blocks != NULL ? IV_OK : iv_fail_memory(error, most * sizeof(iv_storage *));
    for (size_t s = segment->first; s < segment->end && status == IV_OK; s++) {
        for (int i = 0; i < runner->program->steps[s].node->output_count && status == IV_OK; i++) {
            size_t bytes = own_bytes(runner, s, i);
            if (bytes != 0)
                status = iv_lane_storage(runner->settings->placement.lane, bytes, &blocks[count], error);
            count += bytes != 0 && status == IV_OK;
        }
    }
    for (size_t i = 0; i < count; i++)
        iv_storage_release(blocks[i]);
    iv_free(blocks);
    return status;
}

/* Captures the steps, and launches what was captured: before that nothing is carried out. */
static iv_status capture(iv_runner *runner, const iv_segment *segment, iv_replay *replay, size_t *next, iv_error *error) {
    iv_lane *lane = runner->settings->placement.lane;
    size_t captured = segment->first;
    IV_TRY(provide_blocks(runner, segment, error));
    IV_TRY(iv_cuda_capture_begin(&lane->queue, error));
    IV_TRY(iv_cuda_capture_end(&lane->queue, run_steps_from(runner, segment, &captured, error), &replay->graph, error));
    IV_TRY(iv_cuda_graph_launch(replay->graph, lane->queue.stream, error));
    *next = segment->end;
    return IV_OK;
}

static iv_status build(iv_runner *runner, const iv_segment *segment, iv_replay *replay, size_t *next, iv_error *error) {
    iv_lane *lane = runner->settings->placement.lane;
    IV_TRY(run_steps_from(runner, segment, next, error));
    return iv_cuda_graph_build(lane->device, lane->queue.record, lane->queue.dependent_launch, &replay->graph, error);
}

/* Records the segment; *next is the first of its steps that have not been carried out on the way. */
static iv_status record(iv_runner *runner, const iv_segment *segment, iv_replay *replay, size_t *next, iv_error *error) {
    iv_lane *lane = runner->settings->placement.lane;
    IV_TRY(describe_inputs(runner, segment, replay, error));
    IV_TRY(iv_cuda_task_list_create(&lane->queue.record, error));
    iv_status status = runner->settings->graphs == IV_GRAPHS_CAPTURE ? capture(runner, segment, replay, next, error)
                                                                     : build(runner, segment, replay, next, error);
    iv_cuda_task_list_destroy(lane->queue.record);
    lane->queue.record = NULL;
    if (status == IV_OK && lane->moves != replay->moves)
        status = iv_fail(error, IV_ERROR_INTERNAL, "memory moved while the steps were recorded");
    if (status == IV_OK)
        status = describe_outputs(runner, segment, replay, error);
    return status == IV_OK ? hold_others(runner, segment, replay, error) : status;
}

static void release_made(iv_runner *runner, const iv_segment *segment, size_t first) {
    for (size_t s = first; s < segment->end; s++) {
        const iv_node *node = runner->program->steps[s].node;
        for (int i = 0; i < node->output_count && runner->plan->steps[s].mode != IV_STEP_SKIP; i++) {
            if (node->outputs[i] != IV_NO_VALUE)
                iv_runner_release(runner, node->outputs[i]);
        }
    }
}

static void note_failure(iv_segment *segment, const iv_error *error) {
    segment->failed = true;
    segment->reason = iv_duplicate_string(error->message);
}

static void keep_replay(iv_segment *segment, iv_replay *replay) {
    replay->next = segment->replays;
    segment->replays = replay;
    iv_replay **link = &segment->replays;
    for (int kept = 0; *link != NULL && kept < IV_MOST_REPLAYS; kept++)
        link = &(*link)->next;
    while (*link != NULL) {
        iv_replay *next = (*link)->next;
        destroy_replay(*link);
        *link = next;
    }
}

/* Records the segment, or, when that fails, runs it as before and never records again: the failure is kept. What has been carried
 * out by then is not repeated, since it may have overwritten what the segment's first steps read. A device that is lost is given
 * nothing more. */
static iv_status record_or_run(iv_runner *runner, iv_segment *segment, iv_error *error) {
    iv_error failure = {IV_OK, ""};
    iv_lane *lane = runner->settings->placement.lane;
    size_t next = segment->first;
    iv_replay *replay = iv_allocate_array(1, sizeof *replay);
    if (replay == NULL)
        return iv_fail_memory(error, sizeof *replay);
    replay->moves = lane->moves;
    if (record(runner, segment, replay, &next, &failure) == IV_OK) {
        keep_replay(segment, replay);
        return IV_OK;
    }
    note_failure(segment, &failure);
    iv_status status = IV_OK;
    if (atomic_load(&lane->device->is_lost))
        status = iv_fail(error, failure.status, "%.1900s", failure.message);
    else if (next == segment->end)
        status = iv_lane_wait(lane, error); /* for what was launched, before its graph goes */
    destroy_replay(replay);
    if (status != IV_OK)
        return status;
    release_made(runner, segment, next);
    return run_steps_from(runner, segment, &next, error);
}

/* ---- replaying ---- */

/* Whether the segment's inputs lie where they did, in the same way. */
static bool inputs_match(const iv_runner *runner, const iv_segment *segment, const iv_replay *replay) {
    for (size_t i = 0; i < segment->input_count; i++) {
        iv_value value = device_value(runner, segment->inputs[i]);
        const iv_tensor *known = replay->inputs[i], *given = value.tensor;
        if (value.kind != IV_KIND_TENSOR || known == NULL || known->data != given->data ||
            memcmp(known->strides, given->strides, (size_t)given->rank * sizeof *given->strides) != 0)
            return false;
    }
    return true;
}

/* Takes the recorded blocks for the values that outlive the run, if nobody holds them. Just any blocks would hardly ever be those:
 * a caller who passes outputs on as inputs changes their order in the lane's list with each run. */
static bool take_escapes(iv_runner *runner, const iv_replay *replay) {
    bool fit = true;
    for (size_t i = 0; i < replay->escape_count && fit; i++) {
        replay->taken[i] = iv_lane_storage_at(runner->settings->placement.lane, replay->escapes[i].data, replay->escapes[i].bytes);
        fit = replay->taken[i] != NULL;
    }
    return fit;
}

static iv_status publish(iv_runner *runner, const iv_segment *segment, const iv_replay *replay, iv_error *error) {
    for (size_t i = 0; i < replay->output_count; i++) {
        const recorded_output *output = &replay->outputs[i];
        if (output->tensor == NULL)
            continue;
        iv_tensor *tensor = NULL;
        if (output->place == FIXED) {
            tensor = iv_tensor_retain(output->tensor);
        } else {
            iv_storage *storage = output->place == IN_ESCAPE
                                      ? replay->taken[output->index]
                                      : device_value(runner, segment->inputs[output->index]).tensor->storage;
            IV_TRY(iv_tensor_over(storage, (char *)storage->data + output->offset, output->tensor->dtype,
                                  output->tensor->rank, output->tensor->dims, output->tensor->strides, &tensor,
                                  error));
        }
        runner->values[iv_copy_index(runner->program, IV_DEVICE, segment->outputs[i])] =
            iv_value_of_tensor(tensor);
    }
    return IV_OK;
}

/* Launches a recorded graph if it fits; *done says whether. */
static iv_status try_replay(iv_runner *runner, const iv_segment *segment, const iv_replay *replay, bool *done,
                            iv_error *error) {
    *done = false;
    if (replay->moves != runner->settings->placement.lane->moves || !inputs_match(runner, segment, replay))
        return IV_OK;
    *done = take_escapes(runner, replay);
    iv_status status = *done ? publish(runner, segment, replay, error) : IV_OK;
    if (status == IV_OK && *done)
        status = iv_cuda_graph_launch(replay->graph, runner->settings->placement.lane->queue.stream, error);
    for (size_t i = 0; i < replay->escape_count; i++) {
        iv_storage_release(replay->taken[i]);
        replay->taken[i] = NULL;
    }
    return status;
}

static iv_status replay_any(iv_runner *runner, iv_segment *segment, bool *done, iv_error *error) {
    *done = false;
    for (iv_replay **link = &segment->replays; *link != NULL; link = &(*link)->next) {
        IV_TRY(try_replay(runner, segment, *link, done, error));
        if (!*done)
            continue;
        iv_replay *used = *link;
        *link = used->next;
        used->next = segment->replays;
        segment->replays = used;
        return IV_OK;
    }
    return IV_OK;
}

iv_status iv_segment_run(iv_runner *runner, iv_segment *segment, iv_error *error) {
    bool done = false;
    size_t next = segment->first;
    for (size_t i = 0; i < segment->input_count; i++)
        IV_TRY(iv_runner_bring(runner, segment->inputs[i], IV_DEVICE, true, error));
    if (!segment->failed)
        IV_TRY(replay_any(runner, segment, &done, error));
    if (!done && segment->warm && !segment->failed)
        IV_TRY(record_or_run(runner, segment, error));
    else if (!done)
        IV_TRY(run_steps_from(runner, segment, &next, error));
    segment->warm = true;
    for (size_t s = segment->first; s < segment->end; s++) {
        for (size_t r = 0; r < runner->program->steps[s].release_count; r++)
            iv_runner_release(runner, runner->program->steps[s].releases[r]);
    }
    return IV_OK;
}

/* ---- reports ---- */

void iv_runner_report_graphs(const iv_runner *runner, iv_graph_report *report) {
    *report = (iv_graph_report){.reason = ""};
    const iv_plan *plan = runner->plan;
    for (size_t i = 0; plan != NULL && i < plan->segment_count; i++) {
        const iv_segment *segment = &plan->segments[i];
        report->segments++;
        report->recorded += segment->replays != NULL;
        if (segment->failed && report->failed++ == 0)
            report->reason = segment->reason != NULL ? segment->reason : "out of memory";
        for (const iv_replay *replay = segment->replays; replay != NULL; replay = replay->next) {
            report->tasks += replay->graph->task_count;
            report->edges += replay->graph->edge_count;
        }
    }
}
