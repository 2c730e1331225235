/* What a run takes, roughly, by the arithmetic and the memory of its nodes: enough to tell networks that a device ends
 * sooner from those whose launches alone take longer than the CPU.
 *
 * The numbers are of no machine at hand, so that a model is placed alike wherever there is a device. They were fitted to 62
 * networks on an H200 and eight threads of a Xeon (docs/results/2026-11-24-models.md): a share of what kernels reach
 * on large nodes, since small ones decide. */
#include "runtime/judgement.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "rules/cost.h"

/* Microseconds, and operations and bytes in one of them. */
#define HOST_NODE 0.6    /* what a node takes beside its work */
#define HOST_FLOPS 25e3  /* a thread's */
#define HOST_BYTES 6e3   /* likewise */
#define HOST_PIECE 20.0  /* work for which a further thread is of use */
#define HOST_TURN 2.0    /* of a node with graphs of its own */
#define DEVICE_RUN 40.0  /* copies and waits of a run, whatever it does */
#define DEVICE_NODE 3.0  /* a launch behind another one */
#define DEVICE_STEP 12.0 /* a time step of a recurrence: some launches that wait for each other */
#define DEVICE_TURN 25.0 /* the host asks the device, and goes on when it knows */
#define DEVICE_FLOPS 3e6
#define DEVICE_BYTES 1e6
#define DEVICE_COPY 10e3 /* bytes between the two */
#define DEVICE_GAIN                                                                                                    \
    1.25 /* by how much the CPU's time has to be more: estimates of small networks are off by that much */

static double number_of(sb_dim dim, double otherwise) {
    int64_t number;
    return dim != NULL && sb_dim_is_constant(dim, &number) ? (double)number : otherwise;
}

static double larger(double left, double right) {
    return left > right ? left : right;
}

/* The bytes of a tensor whose extents are known, else 0. */
static double bytes_of(const sb_fact *fact) {
    int64_t dims[SB_MAX_RANK];
    if (fact->kind != SB_KIND_TENSOR || fact->dtype == SB_STRING || !sb_fact_is_concrete(fact, dims))
        return 0;
    double bytes = (double)sb_dtype_size(fact->dtype);
    for (int d = 0; d < fact->rank; d++)
        bytes *= (double)dims[d];
    return bytes;
}

/* Whether all that the node makes is known before it runs; *open: whether only the data tell an extent. */
static bool is_known(const sb_plan *plan, const sb_node *node, bool *open) {
    bool known = (node->op->flags & SB_OP_RANDOM) == 0;
    *open = false;
    for (int o = 0; o < node->output_count; o++) {
        if (node->outputs[o] == SB_NO_VALUE)
            continue;
        const sb_fact *fact = &plan->facts[node->outputs[o]];
        known = known && fact->constant != NULL;
        *open = *open || (fact->kind == SB_KIND_TENSOR && !sb_fact_is_concrete(fact, NULL));
    }
    return known;
}

/* What the registry says of a node. */
typedef struct node_cost {
    double flops, bytes, turns;
} node_cost;

static sb_status cost_of(const sb_plan *plan, const sb_node *node, const sb_fact **inputs, sb_fact *outputs,
                         node_cost *cost, sb_error *error) {
    sb_dim flops, read, written, turns;
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = node->inputs[i] != SB_NO_VALUE ? &plan->facts[node->inputs[i]] : NULL;
    for (int o = 0; o < node->output_count; o++) {
        if (node->outputs[o] != SB_NO_VALUE)
            outputs[o] = plan->facts[node->outputs[o]]; /* borrowed */
    }
    SB_TRY(sb_node_flops(node, plan->scope, inputs, outputs, &flops, error));
    SB_TRY(sb_node_bytes(node, plan->scope, inputs, outputs, &read, &written, error));
    SB_TRY(sb_node_turns(node, plan->scope, inputs, outputs, &turns, error));
    cost->flops = number_of(flops, 0);
    cost->bytes = number_of(read, 0) + number_of(written, 0);
    cost->turns = number_of(turns, 1);
    return SB_OK;
}

static void add_node(sb_estimate *estimate, const sb_node *node, const node_cost *cost, bool open) {
    estimate->nodes++;
    if ((node->op->flags & SB_OP_CONTROL) != 0) {
        estimate->host_us += cost->turns * HOST_TURN;
        estimate->device_us += cost->turns * DEVICE_TURN;
        return;
    }
    double work = larger(cost->flops / HOST_FLOPS, cost->bytes / HOST_BYTES), threads = work / HOST_PIECE;
    threads = threads < 1 ? 1 : threads < estimate->threads ? threads : estimate->threads;
    estimate->flops += cost->flops;
    estimate->bytes += cost->bytes;
    estimate->host_us += HOST_NODE + work / threads;
    const sb_cost_entry *entry = sb_cost_find(node->op);
    estimate->device_us += entry != NULL && entry->turns != NULL ? cost->turns * DEVICE_STEP : DEVICE_NODE;
    estimate->device_us += larger(cost->flops / DEVICE_FLOPS, cost->bytes / DEVICE_BYTES) + (open ? DEVICE_TURN : 0);
}

static sb_status add_step(sb_plan *plan, const sb_node *node, sb_error *error) {
    bool open;
    node_cost cost;
    if (is_known(plan, node, &open) || (node->op->flags & SB_OP_VIEW) != 0)
        return SB_OK;
    size_t bytes = (size_t)node->input_count * sizeof(sb_fact *) + (size_t)node->output_count * sizeof(sb_fact);
    sb_fact *outputs = sb_allocate_array(1, bytes);
    if (outputs == NULL)
        return sb_fail_memory(error, bytes);
    const sb_fact **inputs = (const sb_fact **)(void *)(outputs + node->output_count);
    sb_status status = cost_of(plan, node, inputs, outputs, &cost, error);
    sb_free(outputs);
    if (status == SB_OK)
        add_node(&plan->estimate, node, &cost, open);
    return status;
}

static double copied_bytes(const sb_plan *plan, const sb_program *program) {
    double bytes = 0;
    for (size_t i = 0; i < program->enter_count; i++)
        bytes += bytes_of(&plan->facts[program->enter[i]]);
    for (size_t o = 0; o < program->leave_count; o++)
        bytes += bytes_of(&plan->facts[program->leave[o]]);
    return bytes;
}

sb_status sb_plan_judge(sb_plan *plan, const sb_program *program, const sb_placement *placement, const sb_value *inputs,
                        sb_error *error) {
    char why[SB_WHY_BYTES];
    if (plan->open != NULL)
        return SB_OK;
    for (size_t i = 0; i < program->enter_count; i++) {
        if (sb_value_side(inputs[i]) == SB_DEVICE)
            return SB_OK;
    }
    sb_estimate *estimate = &plan->estimate;
    *estimate = (sb_estimate){.made = true, .threads = placement->threads};
    estimate->device_us = DEVICE_RUN + copied_bytes(plan, program) / DEVICE_COPY;
    for (size_t s = 0; s < program->step_count; s++)
        SB_TRY(add_step(plan, program->steps[s].node, error));
    estimate->on_device = DEVICE_GAIN * estimate->device_us < estimate->host_us;
    if (estimate->on_device)
        return SB_OK;
    snprintf(why, sizeof why, "the run is estimated to take %.0f us on the CPU and %.0f us on the device",
             estimate->host_us, estimate->device_us);
    plan->stays = sb_duplicate_string(why);
    return plan->stays != NULL ? SB_OK : sb_fail_memory(error, strlen(why) + 1);
}
