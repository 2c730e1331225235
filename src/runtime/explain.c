/* Saying where the nodes of a plan run. */
#include <samebit/session.h>

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "runtime/runner_internal.h"
#include "runtime/state_binding.h"

typedef struct visitor {
    void (*visit)(void *context, const sb_placed_node *node);
    void *context;
    int on_host; /* nodes that did not run on a device */
} visitor;

static void visit_transfer(const visitor *visitor, const sb_runner *runner, sb_value_id value, sb_side to,
                           bool by_data) {
    bool constant = runner->plan->facts[value].constant != NULL;
    visitor->visit(visitor->context, &(sb_placed_node){.name = runner->program->graph->values[value].name,
                                                       .op = SB_TRANSFER,
                                                       .depth = runner->depth,
                                                       .on_device = to == SB_DEVICE,
                                                       .by_data = by_data,
                                                       .kernel = constant          ? "constant to device, once"
                                                                 : to == SB_DEVICE ? "to device"
                                                                                   : "to host"});
}

/* The transfers before a step are those that bringing its inputs would make: of values that are not there yet.
 * `present` is by copy. Without memory for it transfers are left out. */
static void visit_transfers(const visitor *visitor, const sb_runner *runner, size_t step, bool *present) {
    const sb_planned_step *planned = &runner->plan->steps[step];
    const sb_node *node = runner->program->steps[step].node;
    for (int i = 0; i < node->input_count; i++) {
        sb_value_id value = node->inputs[i];
        if (value == SB_NO_VALUE)
            continue;
        sb_side side = sb_input_side(planned->kernel, planned->side, i);
        bool *here = &present[sb_copy_index(runner->program, side, value)];
        if (*here || (side == SB_HOST && runner->plan->facts[value].constant != NULL))
            continue;
        *here = true;
        visit_transfer(visitor, runner, value, side, planned->mode == SB_STEP_DYNAMIC);
    }
}

/* Those behind the last step, of outputs that are wanted on the host. */
static void visit_output_transfers(const visitor *visitor, const sb_runner *runner, bool *present) {
    const sb_program *program = runner->program;
    for (size_t o = 0; o < program->leave_count; o++) {
        if (!sb_is_wanted_on_host(runner->plan, o))
            continue;
        sb_value_id value = program->leave[o];
        bool *here = &present[sb_copy_index(program, SB_HOST, value)];
        if (*here || !present[sb_copy_index(program, SB_DEVICE, value)])
            continue;
        *here = true;
        visit_transfer(visitor, runner, value, SB_HOST, false);
    }
}

static void visit_step(visitor *visitor, const sb_runner *runner, size_t step) {
    const sb_planned_step *planned = &runner->plan->steps[step];
    const sb_node *node = runner->program->steps[step].node;
    sb_placed_node placed = {.name = node->name,
                             .op = node->op->name,
                             .depth = runner->depth,
                             .on_device = planned->side == SB_DEVICE,
                             .by_data = planned->mode == SB_STEP_DYNAMIC,
                             .kernel = planned->kernel != NULL ? planned->kernel->name : "reference",
                             .why = planned->why,
                             .way = planned->way.name,
                             .slow = planned->way.why};
    const char *variable = placed.on_device ? NULL : sb_binding_updated_there(runner->plan->binding, node);
    char why[SB_WHY_BYTES + 256];
    if (variable != NULL) {
        snprintf(why, sizeof why, "%s%svariable %.200s, which it updates, is copied to the device in each run",
                 planned->why != NULL ? planned->why : "", planned->why != NULL ? "; " : "", variable);
        placed.why = why;
    }
    visitor->on_host += !placed.on_device;
    visitor->visit(visitor->context, &placed);
}

static void visit_runner(visitor *visitor, const sb_runner *runner) {
    const sb_program *program = runner->program;
    if (runner->plan == NULL)
        return;
    size_t copies = SB_SIDES * program->graph->value_count;
    bool *present = sb_allocate_array(copies, sizeof *present);
    for (size_t i = 0; present != NULL && i < program->enter_count; i++) {
        sb_value_id input = program->enter[i];
        present[sb_copy_index(program, runner->plan->sides[input], input)] = true;
    }
    for (size_t s = 0; s < program->step_count; s++) {
        if (runner->plan->steps[s].mode == SB_STEP_SKIP || runner->plan->steps[s].inferred)
            continue;
        if (present != NULL)
            visit_transfers(visitor, runner, s, present);
        visit_step(visitor, runner, s);
        const sb_node *node = program->steps[s].node;
        for (int i = 0; present != NULL && i < node->output_count; i++) {
            if (node->outputs[i] != SB_NO_VALUE)
                present[sb_copy_index(program, runner->plan->steps[s].side, node->outputs[i])] = true;
        }
    }
    if (present != NULL)
        visit_output_transfers(visitor, runner, present);
    sb_free(present);
    for (size_t i = 0; i < runner->nested_count; i++)
        visit_runner(visitor, runner->nested[i]);
}

int sb_runner_visit_placement(const sb_runner *runner, void (*visit)(void *context, const sb_placed_node *node),
                              void *context) {
    visitor visitor = {visit, context, 0};
    visit_runner(&visitor, runner);
    return visitor.on_host;
}

const char *sb_runner_exact_plan(const sb_runner *runner) {
    const sb_plan *plan = runner->plan;
    return plan != NULL && plan->exact != NULL ? plan->exact : "";
}
