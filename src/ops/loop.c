/* Loop: a graph run again and again, carrying values from one iteration to the next.
 *
 * Facts of carried values must hold in every iteration. They begin as the facts of the initial
 * values; the graph is inferred with them, what changed is widened, and that repeats until nothing
 * changes. The condition is true whenever the graph runs. */
#include <string.h>

#include "base/allocation.h"
#include "ops/control.h"
#include "ops/list.h"

typedef struct loop_params {
    sb_control_params control;
    sb_graph *body;
    int carried, stacked;
} loop_params;

static sb_status prepare_loop(sb_node *node, sb_error *error) {
    loop_params *params = node->params;
    /* Trip count and condition may be omitted; at the end of the list nothing is left of them. */
    int inputs = node->input_count - node->capture_count;
    inputs = inputs > 2 ? inputs : 2;
    params->carried = inputs - 2;
    SB_TRY(sb_control_prepare(node, "body", inputs, &params->body, error));
    int64_t stacked = (int64_t)params->body->output_count - 1 - params->carried;
    if (stacked < 0 || node->output_count > params->carried + stacked)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %s: Loop has %d outputs and carries %d values, but its body gives %zu values", node->name,
                       node->output_count, params->carried, params->body->output_count);
    params->stacked = (int)stacked;
    return SB_OK;
}

/* ---- inference ---- */

typedef struct loop_facts {
    int count;        /* of `state`: iteration, condition, carried values */
    int output_count; /* of `outputs`: condition, carried values, stacked values */
    sb_fact *state, *outputs;
} loop_facts;

static sb_status set_true(sb_fact *fact, sb_error *error) {
    const uint8_t yes = 1;
    sb_fact_set_tensor(fact, SB_BOOL, 0, NULL);
    return sb_tensor_from_data(SB_BOOL, 0, NULL, &yes, &fact->constant, error);
}

static sb_status start_facts(sb_infer *infer, loop_facts *facts) {
    sb_fact_set_tensor(&facts->state[0], SB_S64, 0, NULL);
    SB_TRY(set_true(&facts->state[1], infer->error));
    for (int i = 2; i < facts->count; i++) {
        const sb_fact *initial = sb_infer_input(infer, i);
        if (initial == NULL)
            facts->state[i].optional = true;
        else
            SB_TRY(sb_fact_copy(&facts->state[i], initial, infer->error));
    }
    return SB_OK;
}

/* Infers the body once, and widens the state. */
static sb_status refine(sb_infer *infer, loop_facts *facts, bool *changed) {
    const loop_params *params = infer->node->params;
    for (int i = 0; i < facts->output_count; i++)
        sb_fact_clear(&facts->outputs[i]);
    SB_TRY(sb_infer_graph(infer, params->body, facts->count, facts->state, facts->outputs));
    *changed = false;
    for (int i = 2; i < facts->count; i++)
        SB_TRY(sb_control_merge(infer, i - 2, &facts->state[i], &facts->outputs[i - 1], true, changed));
    return SB_OK;
}

/* At most this many rounds of refinement; then everything about shapes is given up, which ends it. */
#define REFINEMENTS 3

static sb_status settle_facts(sb_infer *infer, loop_facts *facts) {
    const loop_params *params = infer->node->params;
    bool changed = true;
    int round = params->control.height >= SB_CONTROL_REFINED_HEIGHT ? REFINEMENTS : 0;
    for (; changed; round++) {
        if (round >= REFINEMENTS) {
            for (int i = 2; i < facts->count; i++)
                sb_control_forget(&facts->state[i]);
        }
        SB_TRY(refine(infer, facts, &changed));
    }
    return SB_OK;
}

static bool constant_bool(const sb_fact *fact, bool *value) {
    if (fact == NULL || fact->kind != SB_KIND_TENSOR || fact->dtype != SB_BOOL || fact->constant == NULL ||
        sb_tensor_elements(fact->constant) != 1)
        return false;
    *value = *fact->constant->data != 0;
    return true;
}

/* The number of iterations as a formula; a fresh one when only the data decide. */
static sb_status trip_count(sb_infer *infer, const loop_facts *facts, sb_dim *trips) {
    const sb_fact *limit = sb_infer_input(infer, 0), *condition = sb_infer_input(infer, 1);
    bool starts = true, goes_on = false, starts_known = condition == NULL;
    sb_dim zero = sb_dim_constant(infer->scope, 0), count;
    *trips = sb_dim_fresh(infer->scope, infer->node->name);
    starts_known = starts_known || constant_bool(condition, &starts);
    if (starts_known && !starts)
        *trips = zero;
    if (limit == NULL || !starts_known || !starts || !constant_bool(&facts->outputs[0], &goes_on) || !goes_on)
        return SB_OK;
    int length;
    bool known;
    SB_TRY(sb_infer_integers(infer, 0, 1, &count, &length, &known));
    if (known && length == 1)
        *trips = sb_dim_maximum(infer->scope, zero, count);
    return SB_OK;
}

static sb_status stacked_fact(sb_infer *infer, int output, const sb_fact *element, sb_dim trips) {
    if (element->kind != SB_KIND_TENSOR)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "output %d stacks values that are no tensors", output);
    int rank = element->rank == SB_RANK_UNKNOWN ? SB_RANK_UNKNOWN : element->rank + 1;
    if (rank > SB_MAX_RANK)
        return sb_infer_fail(infer, SB_ERROR_UNSUPPORTED, "output %d has rank %d; %d is the most", output, rank,
                             SB_MAX_RANK);
    sb_dim dims[SB_MAX_RANK] = {trips};
    for (int d = 1; d < rank; d++)
        dims[d] =
            sb_control_closed(infer, element->dims[d - 1]) ? element->dims[d - 1] : sb_infer_fresh(infer, output, d);
    sb_fact_set_tensor(&infer->outputs[output], element->dtype, rank, dims);
    return SB_OK;
}

static sb_status publish_facts(sb_infer *infer, loop_facts *facts) {
    const loop_params *params = infer->node->params;
    sb_dim trips;
    int64_t number;
    SB_TRY(trip_count(infer, facts, &trips));
    bool never = sb_dim_is_constant(trips, &number) && number == 0;
    for (int i = 0; i < infer->output_count; i++) {
        if (i >= params->carried) {
            SB_TRY(stacked_fact(infer, i, &facts->outputs[i + 1], trips));
            continue;
        }
        const sb_fact *initial = sb_infer_input(infer, i + 2), *last = &facts->outputs[i + 1];
        bool kept = never && initial != NULL && !initial->optional;
        SB_TRY(sb_fact_copy(&infer->outputs[i], kept ? initial : &facts->state[i + 2], infer->error));
        /* Its type is that of the body's output: nothing may go in, but only something comes out. */
        if (last->kind != SB_KIND_NONE && !last->optional)
            infer->outputs[i].optional = false;
    }
    return SB_OK;
}

static sb_status infer_loop(sb_infer *infer) {
    const loop_params *params = infer->node->params;
    loop_facts facts = {2 + params->carried, 1 + params->carried + params->stacked, NULL, NULL};
    size_t all = (size_t)(facts.count + facts.output_count);
    facts.state = sb_allocate_array(all, sizeof *facts.state);
    if (facts.state == NULL)
        return sb_fail_memory(infer->error, all * sizeof *facts.state);
    facts.outputs = facts.state + facts.count;
    const sb_fact *ignored;
    sb_status status = SB_OK;
    if (sb_infer_input(infer, 0) != NULL)
        status = sb_infer_require(infer, 0, SB_SET(SB_S64), &ignored);
    if (status == SB_OK && sb_infer_input(infer, 1) != NULL)
        status = sb_infer_require(infer, 1, SB_SET(SB_BOOL), &ignored);
    if (status == SB_OK)
        status = start_facts(infer, &facts);
    if (status == SB_OK)
        status = settle_facts(infer, &facts);
    if (status == SB_OK)
        status = publish_facts(infer, &facts);
    for (size_t i = 0; i < all; i++)
        sb_fact_clear(&facts.state[i]);
    sb_free(facts.state);
    return status;
}

/* ---- evaluation ---- */

typedef struct loop_run {
    sb_value *state;   /* iteration, condition, carried values */
    sb_value *results; /* condition, carried values, stacked values of one iteration */
    sb_control_list *stacks;
} loop_run;

static sb_status scalar_bool(const sb_call *call, sb_value value, bool *result) {
    if (value.kind != SB_KIND_TENSOR || value.tensor->dtype != SB_BOOL || sb_tensor_elements(value.tensor) != 1)
        return sb_call_fail(call, SB_ERROR_SHAPE, "the condition must be one bool");
    *result = *value.tensor->data != 0;
    return SB_OK;
}

static sb_status set_iteration(sb_call *call, loop_run *run, int64_t iteration) {
    sb_tensor *tensor;
    sb_value_release(&run->state[0]);
    SB_TRY(sb_tensor_from_data(SB_S64, 0, NULL, &iteration, &tensor, call->error));
    run->state[0] = sb_value_of_tensor(tensor);
    return SB_OK;
}

/* Runs the body once: its results become the state, and what is stacked joins its list. */
static sb_status iterate(sb_call *call, loop_run *run) {
    const loop_params *params = call->node->params;
    SB_TRY(sb_call_run_graph(call, params->body, params->carried + 2, run->state, run->results));
    for (int i = 0; i <= params->carried; i++) {
        sb_value_release(&run->state[i + 1]);
        run->state[i + 1] = run->results[i];
        run->results[i] = (sb_value){0};
    }
    for (int i = 0; i < params->stacked; i++) {
        sb_value *result = &run->results[1 + params->carried + i];
        if (result->kind != SB_KIND_TENSOR)
            return sb_call_fail(call, SB_ERROR_SHAPE, "output %d stacks values that are no tensors",
                                params->carried + i);
        sb_tensor *tensor = result->tensor;
        *result = (sb_value){0};
        SB_TRY(sb_control_append(&run->stacks[i], tensor, call->error));
    }
    return SB_OK;
}

static sb_status run_loop(sb_call *call, loop_run *run) {
    const loop_params *params = call->node->params;
    const sb_tensor *limit = sb_call_input(call, 0);
    int64_t trips = INT64_MAX;
    bool goes_on = true;
    if (limit != NULL && sb_tensor_elements(limit) != 1)
        return sb_call_fail(call, SB_ERROR_SHAPE, "the trip count must be one number");
    if (limit != NULL)
        trips = *(const int64_t *)(const void *)limit->data;
    const uint8_t yes = 1;
    if (sb_call_input(call, 1) != NULL) {
        run->state[1] = sb_value_retain(call->inputs[1]);
    } else {
        sb_tensor *tensor;
        SB_TRY(sb_tensor_from_data(SB_BOOL, 0, NULL, &yes, &tensor, call->error));
        run->state[1] = sb_value_of_tensor(tensor);
    }
    for (int i = 0; i < params->carried; i++)
        run->state[i + 2] = sb_value_retain(call->inputs[i + 2]);
    SB_TRY(scalar_bool(call, run->state[1], &goes_on));
    for (int64_t i = 0; i < trips && goes_on; i++) {
        SB_TRY(sb_call_iterate(call, i));
        SB_TRY(set_iteration(call, run, i));
        SB_TRY(iterate(call, run));
        SB_TRY(scalar_bool(call, run->state[1], &goes_on));
    }
    return SB_OK;
}

static sb_status publish(sb_call *call, loop_run *run) {
    const loop_params *params = call->node->params;
    for (int i = 0; i < call->output_count; i++) {
        sb_value_release(&call->outputs[i]);
        if (i < params->carried) {
            const sb_fact *fact = &call->facts[i];
            if (run->state[i + 2].kind == SB_KIND_NONE && fact->kind != SB_KIND_NONE && !fact->optional)
                return sb_call_fail(call, SB_ERROR_SHAPE,
                                    "output %d is still nothing: the loop ended before its first iteration", i);
            call->outputs[i] = sb_value_retain(run->state[i + 2]);
            continue;
        }
        const sb_control_list *stack = &run->stacks[i - params->carried];
        sb_tensor *tensor;
        /* Facts of outputs that nobody wants are empty. */
        if (!sb_call_wants(call, i))
            continue;
        SB_TRY(sb_control_stack(call, &call->facts[i], 0, false, (int64_t)stack->count, stack->items, &tensor));
        call->outputs[i] = sb_value_of_tensor(tensor);
    }
    return SB_OK;
}

static sb_status eval_loop(sb_call *call) {
    const loop_params *params = call->node->params;
    size_t values = (size_t)(2 + params->carried), results = (size_t)(1 + params->carried + params->stacked);
    loop_run run = {sb_allocate_array(values + results, sizeof *run.state), NULL,
                    sb_allocate_array((size_t)params->stacked, sizeof *run.stacks)};
    sb_status status = SB_OK;
    if (run.state == NULL || run.stacks == NULL) {
        status = sb_fail_memory(call->error, (values + results) * sizeof *run.state);
    } else {
        run.results = run.state + values;
        status = run_loop(call, &run);
        if (status == SB_OK)
            status = publish(call, &run);
    }
    for (size_t i = 0; run.state != NULL && i < values + results; i++)
        sb_value_release(&run.state[i]);
    for (int i = 0; run.stacks != NULL && i < params->stacked; i++)
        sb_control_clear(&run.stacks[i]);
    sb_free(run.state);
    sb_free(run.stacks);
    return status;
}

/* A variable is one more carried value, behind the others. */
static bool pass_loop(int version, const sb_attributes *attributes, size_t inputs, size_t outputs,
                      sb_passage *passage) {
    (void)version, (void)attributes, (void)outputs;
    if (inputs < 2)
        return false;
    *passage = (sb_passage){.state = true,
                            .node_input = inputs,
                            .graph_input = inputs,
                            .graph_output = inputs - 1,
                            .node_output = inputs - 2,
                            .omittable = 2};
    return true;
}

const sb_op sb_ops_loop[] = {
    {.name = "Loop",
     .domain = "",
     .least_inputs = 0,
     .most_inputs = -1,
     .least_outputs = 0,
     .most_outputs = -1,
     .flags = SB_OP_CONTROL,
     .params_size = sizeof(loop_params),
     .prepare = prepare_loop,
     .infer = infer_loop,
     .eval = eval_loop,
     .passage = pass_loop},
    {0},
};
