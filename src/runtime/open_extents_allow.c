/* Whether a device's kernels may run at planned extents, where fewer rows are used. */
#include <stdio.h>

#include "base/allocation.h"
#include "rules/axes.h"
#include "runtime/plan.h"

/* A step as rules and kernels see it. */
typedef struct visit {
    const sb_plan *plan;
    const sb_open_extents *open;
    const sb_node *node;
    const sb_kernel *kernel;
    sb_kernel_query query; /* at the planned extents */
    const sb_fact **formulas;
    sb_fact *outputs; /* formulas, borrowed */
    int *output_axes;
    uint32_t *reached; /* per output: the axes that come from an open axis of an input */
    bool allowed;
    char *why;
    sb_error *error;
} visit;

static void refuse(visit *visit, int input, int axis, const char *reason) {
    if (!visit->allowed)
        return;
    visit->allowed = false;
    int used = snprintf(visit->why, SB_WHY_BYTES, "%.60s (%.30s): ", visit->node->name, visit->node->op->name);
    if (axis >= 0 && input >= 0)
        used += snprintf(visit->why + used, SB_WHY_BYTES - (size_t)used, "axis %d of input %d: ", axis, input);
    else if (input >= 0)
        used += snprintf(visit->why + used, SB_WHY_BYTES - (size_t)used, "input %d: ", input);
    snprintf(visit->why + used, SB_WHY_BYTES - (size_t)used, "%s", reason);
}

static int scalar_at(const visit *visit, sb_value_id value, int axis) {
    return visit->open->extents[(size_t)value * SB_MAX_RANK + (size_t)axis];
}

static sb_status look_at_axis(visit *visit, int input, int axis) {
    sb_axis_rule rule = {.output_axes = visit->output_axes};
    char reason[SB_WHY_BYTES];
    SB_TRY(sb_axes_of(visit->node, visit->formulas, visit->outputs, input, axis, &rule, visit->error));
    bool stops = visit->kernel->bounded != NULL && visit->kernel->bounded(&visit->query, input, axis);
    if (rule.kind == SB_AXIS_EXACT) {
        refuse(visit, input, axis, rule.reason);
    } else if (rule.kind == SB_AXIS_BOUNDED && !stops) {
        snprintf(reason, sizeof reason, "%.100s, and kernel %.40s does not stop where fewer rows are used", rule.reason,
                 visit->kernel->name);
        refuse(visit, input, axis, reason);
    } else if (rule.checked && !stops) {
        refuse(visit, input, axis, "its elements are checked, also those behind the rows that are used");
    }
    for (int o = 0; o < visit->node->output_count; o++) {
        if (rule.output_axes[o] != SB_AXIS_NONE)
            visit->reached[o] |= UINT32_C(1) << rule.output_axes[o];
    }
    return SB_OK;
}

/* An input with elements that follow from open extents: on the device they are the run's. On the host, where they are
 * those of the plan, they may do nothing but say how many rows there are, unless the kernel asks for the run's. */
static void look_at_elements(visit *visit, int input, bool *shapes) {
    bool says_extents = sb_axes_says_extents(visit->node, input);
    bool asks = input < 64 && (visit->kernel->known_inputs >> input & 1) != 0;
    *shapes = *shapes || says_extents || asks;
    if (!says_extents && !asks && sb_input_side(visit->kernel, SB_DEVICE, input) == SB_HOST)
        refuse(visit, input, -1, "its elements differ between runs, and the kernel reads them on the host");
}

static sb_status look_at_inputs(visit *visit, bool *shapes) {
    for (int i = 0; i < visit->node->input_count && visit->allowed; i++) {
        sb_value_id value = visit->node->inputs[i];
        if (value == SB_NO_VALUE)
            continue;
        for (int d = 0; d < visit->formulas[i]->rank && visit->allowed; d++) {
            if (scalar_at(visit, value, d) >= 0)
                SB_TRY(look_at_axis(visit, i, d));
        }
        if (visit->open->elements[value] >= 0)
            look_at_elements(visit, i, shapes);
    }
    return SB_OK;
}

/* An open extent comes from an axis of an input, or from a shape. */
static void look_at_outputs(visit *visit, bool shapes) {
    for (int o = 0; o < visit->node->output_count; o++) {
        sb_value_id value = visit->node->outputs[o];
        for (int d = 0; value != SB_NO_VALUE && d < visit->outputs[o].rank && !shapes; d++) {
            if (scalar_at(visit, value, d) >= 0 && (visit->reached[o] >> d & 1) == 0)
                refuse(visit, -1, -1, "an extent of its output follows from something else than an axis of an input");
        }
    }
}

static sb_status look_at(visit *visit) {
    bool shapes = false;
    SB_TRY(look_at_inputs(visit, &shapes));
    look_at_outputs(visit, shapes);
    return SB_OK;
}

static sb_status look_with_room(visit *visit, const sb_fact **planned_inputs, sb_fact *planned_outputs) {
    const sb_node *node = visit->node;
    for (int i = 0; i < node->input_count; i++) {
        bool given = node->inputs[i] != SB_NO_VALUE;
        planned_inputs[i] = given ? &visit->plan->facts[node->inputs[i]] : NULL;
        visit->formulas[i] = given ? &visit->open->formulas[node->inputs[i]] : NULL;
    }
    for (int o = 0; o < node->output_count; o++) {
        bool wanted = node->outputs[o] != SB_NO_VALUE;
        planned_outputs[o] = wanted ? visit->plan->facts[node->outputs[o]] : (sb_fact){0};
        visit->outputs[o] = wanted ? visit->open->formulas[node->outputs[o]] : (sb_fact){0};
    }
    visit->query.inputs = planned_inputs;
    visit->query.outputs = planned_outputs;
    return look_at(visit);
}

sb_status sb_open_extents_allow(const sb_plan *plan, const sb_program *program, size_t step, sb_queue *queue,
                                bool *allowed, char *why, sb_error *error) {
    const sb_node *node = program->steps[step].node;
    const sb_planned_step *planned = &plan->steps[step];
    *allowed = true;
    if (!plan->open->touched[step] || planned->mode == SB_STEP_SKIP)
        return SB_OK;
    visit visit = {.plan = plan,
                   .open = plan->open,
                   .node = node,
                   .kernel = planned->kernel,
                   .query = {.node = node, .isa = program->isa, .device = queue->device, .queue = queue},
                   .allowed = true,
                   .why = why,
                   .error = error};
    if (planned->mode == SB_STEP_DYNAMIC)
        refuse(&visit, -1, -1, "its shapes follow from data");
    else if (planned->side == SB_HOST)
        refuse(&visit, -1, -1, planned->why != NULL ? planned->why : "it runs on the CPU");
    if (visit.allowed) {
        size_t inputs = (size_t)node->input_count, outputs = (size_t)node->output_count;
        const sb_fact **planned_inputs = sb_allocate_array(inputs, sizeof *planned_inputs);
        sb_fact *planned_outputs = sb_allocate_array(outputs, sizeof *planned_outputs);
        visit.formulas = sb_allocate_array(inputs, sizeof *visit.formulas);
        visit.outputs = sb_allocate_array(outputs, sizeof *visit.outputs);
        visit.output_axes = sb_allocate_array(outputs, sizeof *visit.output_axes);
        visit.reached = sb_allocate_array(outputs, sizeof *visit.reached);
        bool room = planned_inputs != NULL && planned_outputs != NULL && visit.formulas != NULL &&
                    visit.outputs != NULL && visit.output_axes != NULL && visit.reached != NULL;
        sb_status status = room ? look_with_room(&visit, planned_inputs, planned_outputs)
                                : sb_fail_memory(error, outputs * sizeof *planned_outputs);
        sb_free(planned_inputs);
        sb_free(planned_outputs);
        sb_free(visit.formulas);
        sb_free(visit.outputs);
        sb_free(visit.output_axes);
        sb_free(visit.reached);
        SB_TRY(status);
    }
    *allowed = visit.allowed;
    return SB_OK;
}
