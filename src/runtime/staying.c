#include "runtime/staying.h"

#include <string.h>

#include "runtime/runner_internal.h"
#include "runtime/state_binding.h"

static sb_tensor *made(const sb_runner *runner, size_t index) {
    sb_value value = sb_runner_value(runner, SB_DEVICE, runner->program->leave[index]);
    return value.kind == SB_KIND_TENSOR ? value.tensor : NULL;
}

/* Each recording has tensors of its own; extents are the planned ones. */
static bool lies_as(const sb_tensor *tensor, const sb_tensor *noted) {
    return tensor != NULL && tensor->storage == noted->storage && tensor->data == noted->data &&
           memcmp(tensor->strides, noted->strides, (size_t)noted->rank * sizeof *noted->strides) == 0;
}

bool sb_staying_again(const sb_runner *runner) {
    const sb_state_binding *binding = runner->plan->binding;
    const sb_open_extents *open = runner->plan->open;
    if (binding == NULL || open == NULL || !open->staying.noted)
        return false;
    for (size_t i = 0; i < runner->program->leave_count; i++) {
        if (binding->update[i] >= 0 && !lies_as(made(runner, i), open->staying.made[i]))
            return false;
    }
    return true;
}

/* The scalar that an axis of a value has, the first of those that are the same; -1: its extent is not open. */
static int scalar_of(const sb_open_extents *open, sb_value_id value, int axis) {
    int scalar = open->extents[(size_t)value * SB_MAX_RANK + (size_t)axis];
    return scalar >= 0 && open->scalars[scalar].same >= 0 ? open->scalars[scalar].same : scalar;
}

/* Takes over what the value says of extents; false where another has said something else. */
static bool take_extents(sb_open_extents *open, const sb_held_variable *held, sb_value_id value) {
    bool agree = true;
    for (int d = 0; d < held->tensor->rank && agree; d++) {
        int *next = held->extents[d] >= 0 ? &open->staying.next[held->extents[d]] : NULL;
        int scalar = next != NULL ? scalar_of(open, value, d) : -1;
        agree = next == NULL || (scalar >= 0 && (*next < 0 || *next == scalar));
        if (next != NULL)
            *next = scalar;
    }
    return agree;
}

void sb_staying_offer(const sb_runner *runner) {
    const sb_state_binding *binding = runner->plan->binding;
    sb_open_extents *open = runner->plan->open;
    if (binding == NULL || open == NULL || runner->settings->placement.queue == NULL)
        return;
    sb_staying_forget(open, runner->program);
    for (size_t i = 0; i < runner->program->leave_count; i++) {
        sb_tensor *tensor = binding->update[i] >= 0 ? made(runner, i) : NULL;
        open->staying.made[i] = tensor != NULL ? sb_tensor_retain(tensor) : NULL;
    }
}

void sb_staying_note(const sb_runner *runner) {
    const sb_state_binding *binding = runner->plan->binding;
    sb_open_extents *open = runner->plan->open;
    if (open == NULL || runner->settings->placement.queue == NULL)
        return;
    for (size_t e = 0; e < binding->state->extent_count; e++)
        open->staying.next[e] = -1;
    open->staying.noted = true;
    for (size_t i = 0; i < runner->program->leave_count && open->staying.noted; i++) {
        if (binding->update[i] >= 0)
            open->staying.noted =
                open->staying.made[i] != NULL && binding->in_place[i] &&
                take_extents(open, &binding->state->variables[binding->update[i]], runner->program->leave[i]);
    }
    if (!open->staying.noted)
        sb_staying_forget(open, runner->program);
}

void sb_staying_extents(const sb_runner *runner, int64_t *extents) {
    const sb_state *state = runner->plan->binding->state;
    const sb_open_extents *open = runner->plan->open;
    for (size_t e = 0; e < state->extent_count; e++) {
        int next = open->staying.next[e];
        extents[e] = next >= 0 ? open->table.scalars[next] : state->extents[e].used;
    }
}

void sb_staying_forget(sb_open_extents *open, const sb_program *program) {
    for (size_t i = 0; open->staying.made != NULL && i < program->leave_count; i++) {
        sb_tensor_release(open->staying.made[i]);
        open->staying.made[i] = NULL;
    }
    open->staying.noted = false;
}
