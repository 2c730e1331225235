/* Saying where the nodes of a plan run. */
#include <invar/session.h>

#include <string.h>

#include "base/allocation.h"
#include "runtime/runner_internal.h"

typedef struct visitor {
    void (*visit)(void *context, const iv_placed_node *node);
    void *context;
    int on_host; /* nodes that did not run on the device */
} visitor;

static void visit_transfer(const visitor *visitor, const iv_runner *runner, iv_value_id value, iv_side to, bool by_data) {
    bool constant = runner->plan->facts[value].constant != NULL;
    visitor->visit(visitor->context, &(iv_placed_node){.name = runner->program->graph->values[value].name,
                                                       .op = IV_TRANSFER,
                                                       .depth = runner->depth,
                                                       .on_device = to == IV_DEVICE,
                                                       .by_data = by_data,
                                                       .kernel = constant          ? "constant to device, once"
                                                                 : to == IV_DEVICE ? "to device"
                                                                                   : "to host"});
}

/* The transfers before a step are those that bringing its inputs would make: of values that are not there yet. `present` is by
 * copy. Without memory for it transfers are left out. */
static void visit_transfers(const visitor *visitor, const iv_runner *runner, size_t step, bool *present) {
    const iv_planned_step *planned = &runner->plan->steps[step];
    const iv_node *node = runner->program->steps[step].node;
    for (int i = 0; i < node->input_count; i++) {
        iv_value_id value = node->inputs[i];
        if (value == IV_NO_VALUE)
            continue;
        iv_side side = iv_input_side(planned->kernel, planned->side, i);
        bool *here = &present[iv_copy_index(runner->program, side, value)];
        if (*here || (side == IV_HOST && runner->plan->facts[value].constant != NULL))
            continue;
        *here = true;
        visit_transfer(visitor, runner, value, side, planned->mode == IV_STEP_DYNAMIC);
    }
}

/* Those behind the last step, of outputs that are wanted on the host. */
static void visit_output_transfers(const visitor *visitor, const iv_runner *runner, bool *present) {
    const iv_graph *graph = runner->program->graph;
    for (size_t o = 0; o < graph->output_count && runner->plan->host_outputs; o++) {
        iv_value_id value = graph->outputs[o];
        bool *here = &present[iv_copy_index(runner->program, IV_HOST, value)];
        if (*here || !present[iv_copy_index(runner->program, IV_DEVICE, value)])
            continue;
        *here = true;
        visit_transfer(visitor, runner, value, IV_HOST, false);
    }
}

static void visit_step(visitor *visitor, const iv_runner *runner, size_t step) {
    const iv_planned_step *planned = &runner->plan->steps[step];
    const iv_node *node = runner->program->steps[step].node;
    iv_placed_node placed = {.name = node->name,
                             .op = node->op->name,
                             .depth = runner->depth,
                             .on_device = planned->side == IV_DEVICE,
                             .by_data = planned->mode == IV_STEP_DYNAMIC,
                             .kernel = planned->kernel != NULL ? planned->kernel->name : "reference",
                             .why = planned->why};
    visitor->on_host += !placed.on_device;
    visitor->visit(visitor->context, &placed);
}

static void visit_runner(visitor *visitor, const iv_runner *runner) {
    const iv_program *program = runner->program;
    if (runner->plan == NULL)
        return;
    size_t copies = IV_SIDES * program->graph->value_count;
    bool *present = iv_allocate_array(copies, sizeof *present);
    for (size_t i = 0; present != NULL && i < program->graph->input_count; i++) {
        iv_value_id input = program->graph->inputs[i];
        present[iv_copy_index(program, runner->plan->sides[input], input)] = true;
    }
    for (size_t s = 0; s < program->step_count; s++) {
        if (runner->plan->steps[s].mode == IV_STEP_SKIP)
            continue;
        if (present != NULL)
            visit_transfers(visitor, runner, s, present);
        visit_step(visitor, runner, s);
        const iv_node *node = program->steps[s].node;
        for (int i = 0; present != NULL && i < node->output_count; i++) {
            if (node->outputs[i] != IV_NO_VALUE)
                present[iv_copy_index(program, runner->plan->steps[s].side, node->outputs[i])] = true;
        }
    }
    if (present != NULL)
        visit_output_transfers(visitor, runner, present);
    iv_free(present);
    for (size_t i = 0; i < runner->nested_count; i++)
        visit_runner(visitor, runner->nested[i]);
}

int iv_runner_visit_placement(const iv_runner *runner, void (*visit)(void *context, const iv_placed_node *node),
                              void *context) {
    visitor visitor = {visit, context, 0};
    if (runner->settings->placement.lane != NULL)
        visit_runner(&visitor, runner);
    return visitor.on_host;
}
