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
    iv_control_params control;
    iv_graph *body;
    int carried, stacked;
} loop_params;

static iv_status prepare_loop(iv_node *node, iv_error *error) {
    loop_params *params = node->params;
    /* Trip count and condition may be omitted; at the end of the list nothing is left of them. */
    int inputs = node->input_count - node->capture_count;
    inputs = inputs > 2 ? inputs : 2;
    params->carried = inputs - 2;
    IV_TRY(iv_control_prepare(node, "body", inputs, &params->body, error));
    int64_t stacked = (int64_t)params->body->output_count - 1 - params->carried;
    if (stacked < 0 || node->output_count > params->carried + stacked)
        return iv_fail(
            error, IV_ERROR_INVALID_MODEL,
            "node %s: Loop has %d outputs and carries %d values, but its body gives %zu values",
            node->name, node->output_count, params->carried, params->body->output_count);
    params->stacked = (int)stacked;
    return IV_OK;
}

/* ---- inference ---- */

typedef struct loop_facts {
    int count;        /* of `state`: iteration, condition, carried values */
    int output_count; /* of `outputs`: condition, carried values, stacked values */
    iv_fact *state, *outputs;
} loop_facts;

static iv_status set_true(iv_fact *fact, iv_error *error) {
    const uint8_t yes = 1;
    iv_fact_set_tensor(fact, IV_BOOL, 0, NULL);
    return iv_tensor_from_data(IV_BOOL, 0, NULL, &yes, &fact->constant, error);
}

static iv_status start_facts(iv_infer *infer, loop_facts *facts) {
    iv_fact_set_tensor(&facts->state[0], IV_S64, 0, NULL);
    IV_TRY(set_true(&facts->state[1], infer->error));
    for (int i = 2; i < facts->count; i++) {
        const iv_fact *initial = iv_infer_input(infer, i);
        if (initial == NULL)
            facts->state[i].optional = true;
        else
            IV_TRY(iv_fact_copy(&facts->state[i], initial, infer->error));
    }
    return IV_OK;
}

/* Infers the body once, and widens the state. */
static iv_status refine(iv_infer *infer, loop_facts *facts, bool *changed) {
    const loop_params *params = infer->node->params;
    for (int i = 0; i < facts->output_count; i++)
        iv_fact_clear(&facts->outputs[i]);
    IV_TRY(iv_infer_graph(infer, params->body, facts->count, facts->state, facts->outputs));
    *changed = false;
    for (int i = 2; i < facts->count; i++)
        IV_TRY(iv_control_merge(infer, i - 2, &facts->state[i], &facts->outputs[i - 1], true,
                                changed));
    return IV_OK;
}

/* At most this many rounds of refinement; then everything about shapes is given up, which ends it.
 */
#define REFINEMENTS 3

static iv_status settle_facts(iv_infer *infer, loop_facts *facts) {
    const loop_params *params = infer->node->params;
    bool changed = true;
    int round = params->control.height >= IV_CONTROL_REFINED_HEIGHT ? REFINEMENTS : 0;
    for (; changed; round++) {
        if (round >= REFINEMENTS) {
            for (int i = 2; i < facts->count; i++)
                iv_control_forget(&facts->state[i]);
        }
        IV_TRY(refine(infer, facts, &changed));
    }
    return IV_OK;
}

static bool constant_bool(const iv_fact *fact, bool *value) {
    if (fact == NULL || fact->kind != IV_KIND_TENSOR || fact->dtype != IV_BOOL ||
        fact->constant == NULL || iv_tensor_elements(fact->constant) != 1)
        return false;
    *value = *fact->constant->data != 0;
    return true;
}

/* The number of iterations as a formula; a fresh one when only the data decide. */
static iv_status trip_count(iv_infer *infer, const loop_facts *facts, iv_dim *trips) {
    const iv_fact *limit = iv_infer_input(infer, 0), *condition = iv_infer_input(infer, 1);
    bool starts = true, goes_on = false, starts_known = condition == NULL;
    iv_dim zero = iv_dim_constant(infer->scope, 0), count;
    *trips = iv_dim_fresh(infer->scope, infer->node->name);
    starts_known = starts_known || constant_bool(condition, &starts);
    if (starts_known && !starts)
        *trips = zero;
    if (limit == NULL || !starts_known || !starts || !constant_bool(&facts->outputs[0], &goes_on) ||
        !goes_on)
        return IV_OK;
    int length;
    bool known;
    IV_TRY(iv_infer_integers(infer, 0, 1, &count, &length, &known));
    if (known && length == 1)
        *trips = iv_dim_maximum(infer->scope, zero, count);
    return IV_OK;
}

static iv_status stacked_fact(iv_infer *infer, int output, const iv_fact *element, iv_dim trips) {
    if (element->kind != IV_KIND_TENSOR)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "output %d stacks values that are no tensors",
                             output);
    int rank = element->rank == IV_RANK_UNKNOWN ? IV_RANK_UNKNOWN : element->rank + 1;
    if (rank > IV_MAX_RANK)
        return iv_infer_fail(infer, IV_ERROR_UNSUPPORTED, "output %d has rank %d; %d is the most",
                             output, rank, IV_MAX_RANK);
    iv_dim dims[IV_MAX_RANK] = {trips};
    for (int d = 1; d < rank; d++)
        dims[d] = iv_control_closed(infer, element->dims[d - 1]) ? element->dims[d - 1]
                                                                 : iv_infer_fresh(infer, output, d);
    iv_fact_set_tensor(&infer->outputs[output], element->dtype, rank, dims);
    return IV_OK;
}

static iv_status publish_facts(iv_infer *infer, loop_facts *facts) {
    const loop_params *params = infer->node->params;
    iv_dim trips;
    int64_t number;
    IV_TRY(trip_count(infer, facts, &trips));
    bool never = iv_dim_is_constant(trips, &number) && number == 0;
    for (int i = 0; i < infer->output_count; i++) {
        if (i >= params->carried) {
            IV_TRY(stacked_fact(infer, i, &facts->outputs[i + 1], trips));
            continue;
        }
        const iv_fact *initial = iv_infer_input(infer, i + 2), *last = &facts->outputs[i + 1];
        bool kept = never && initial != NULL && !initial->optional;
        IV_TRY(
            iv_fact_copy(&infer->outputs[i], kept ? initial : &facts->state[i + 2], infer->error));
        /* Its type is that of the body's output: nothing may go in, but only something comes out.
         */
        if (last->kind != IV_KIND_NONE && !last->optional)
            infer->outputs[i].optional = false;
    }
    return IV_OK;
}

static iv_status infer_loop(iv_infer *infer) {
    const loop_params *params = infer->node->params;
    loop_facts facts = {2 + params->carried, 1 + params->carried + params->stacked, NULL, NULL};
    size_t all = (size_t)(facts.count + facts.output_count);
    facts.state = iv_allocate_array(all, sizeof *facts.state);
    if (facts.state == NULL)
        return iv_fail_memory(infer->error, all * sizeof *facts.state);
    facts.outputs = facts.state + facts.count;
    const iv_fact *ignored;
    iv_status status = IV_OK;
    if (iv_infer_input(infer, 0) != NULL)
        status = iv_infer_require(infer, 0, IV_SET(IV_S64), &ignored);
    if (status == IV_OK && iv_infer_input(infer, 1) != NULL)
        status = iv_infer_require(infer, 1, IV_SET(IV_BOOL), &ignored);
    if (status == IV_OK)
        status = start_facts(infer, &facts);
    if (status == IV_OK)
        status = settle_facts(infer, &facts);
    if (status == IV_OK)
        status = publish_facts(infer, &facts);
    for (size_t i = 0; i < all; i++)
        iv_fact_clear(&facts.state[i]);
    iv_free(facts.state);
    return status;
}

/* ---- evaluation ---- */

typedef struct loop_run {
    iv_value *state;   /* iteration, condition, carried values */
    iv_value *results; /* condition, carried values, stacked values of one iteration */
    iv_control_list *stacks;
} loop_run;

static iv_status scalar_bool(const iv_call *call, iv_value value, bool *result) {
    if (value.kind != IV_KIND_TENSOR || value.tensor->dtype != IV_BOOL ||
        iv_tensor_elements(value.tensor) != 1)
        return iv_call_fail(call, IV_ERROR_SHAPE, "the condition must be one bool");
    *result = *value.tensor->data != 0;
    return IV_OK;
}

static iv_status set_iteration(iv_call *call, loop_run *run, int64_t iteration) {
    iv_tensor *tensor;
    iv_value_release(&run->state[0]);
    IV_TRY(iv_tensor_from_data(IV_S64, 0, NULL, &iteration, &tensor, call->error));
    run->state[0] = iv_value_of_tensor(tensor);
    return IV_OK;
}

/* Runs the body once: its results become the state, and what is stacked joins its list. */
static iv_status iterate(iv_call *call, loop_run *run) {
    const loop_params *params = call->node->params;
    IV_TRY(iv_call_run_graph(call, params->body, params->carried + 2, run->state, run->results));
    for (int i = 0; i <= params->carried; i++) {
        iv_value_release(&run->state[i + 1]);
        run->state[i + 1] = run->results[i];
        run->results[i] = (iv_value){0};
    }
    for (int i = 0; i < params->stacked; i++) {
        iv_value *result = &run->results[1 + params->carried + i];
        if (result->kind != IV_KIND_TENSOR)
            return iv_call_fail(call, IV_ERROR_SHAPE, "output %d stacks values that are no tensors",
                                params->carried + i);
        iv_tensor *tensor = result->tensor;
        *result = (iv_value){0};
        IV_TRY(iv_control_append(&run->stacks[i], tensor, call->error));
    }
    return IV_OK;
}

static iv_status run_loop(iv_call *call, loop_run *run) {
    const loop_params *params = call->node->params;
    const iv_tensor *limit = iv_call_input(call, 0);
    int64_t trips = INT64_MAX;
    bool goes_on = true;
    if (limit != NULL && iv_tensor_elements(limit) != 1)
        return iv_call_fail(call, IV_ERROR_SHAPE, "the trip count must be one number");
    if (limit != NULL)
        trips = *(const int64_t *)(const void *)limit->data;
    const uint8_t yes = 1;
    if (iv_call_input(call, 1) != NULL) {
        run->state[1] = iv_value_retain(call->inputs[1]);
    } else {
        iv_tensor *tensor;
        IV_TRY(iv_tensor_from_data(IV_BOOL, 0, NULL, &yes, &tensor, call->error));
        run->state[1] = iv_value_of_tensor(tensor);
    }
    for (int i = 0; i < params->carried; i++)
        run->state[i + 2] = iv_value_retain(call->inputs[i + 2]);
    IV_TRY(scalar_bool(call, run->state[1], &goes_on));
    for (int64_t i = 0; i < trips && goes_on; i++) {
        IV_TRY(iv_call_iterate(call, i));
        IV_TRY(set_iteration(call, run, i));
        IV_TRY(iterate(call, run));
        IV_TRY(scalar_bool(call, run->state[1], &goes_on));
    }
    return IV_OK;
}

static iv_status publish(iv_call *call, loop_run *run) {
    const loop_params *params = call->node->params;
    for (int i = 0; i < call->output_count; i++) {
        iv_value_release(&call->outputs[i]);
        if (i < params->carried) {
            const iv_fact *fact = &call->facts[i];
            if (run->state[i + 2].kind == IV_KIND_NONE && fact->kind != IV_KIND_NONE &&
                !fact->optional)
                return iv_call_fail(
                    call, IV_ERROR_SHAPE,
                    "output %d is still nothing: the loop ended before its first iteration", i);
            call->outputs[i] = iv_value_retain(run->state[i + 2]);
            continue;
        }
        const iv_control_list *stack = &run->stacks[i - params->carried];
        iv_tensor *tensor;
        /* Facts of outputs that nobody wants are empty. */
        if (!iv_call_wants(call, i))
            continue;
        IV_TRY(iv_control_stack(call, &call->facts[i], 0, false, (int64_t)stack->count,
                                stack->items, &tensor));
        call->outputs[i] = iv_value_of_tensor(tensor);
    }
    return IV_OK;
}

static iv_status eval_loop(iv_call *call) {
    const loop_params *params = call->node->params;
    size_t values = (size_t)(2 + params->carried),
           results = (size_t)(1 + params->carried + params->stacked);
    loop_run run = {iv_allocate_array(values + results, sizeof *run.state), NULL,
                    iv_allocate_array((size_t)params->stacked, sizeof *run.stacks)};
    iv_status status = IV_OK;
    if (run.state == NULL || run.stacks == NULL) {
        status = iv_fail_memory(call->error, (values + results) * sizeof *run.state);
    } else {
        run.results = run.state + values;
        status = run_loop(call, &run);
        if (status == IV_OK)
            status = publish(call, &run);
    }
    for (size_t i = 0; run.state != NULL && i < values + results; i++)
        iv_value_release(&run.state[i]);
    for (int i = 0; run.stacks != NULL && i < params->stacked; i++)
        iv_control_clear(&run.stacks[i]);
    iv_free(run.state);
    iv_free(run.stacks);
    return status;
}

const iv_op iv_ops_loop[] = {
    {.name = "Loop",
     .domain = "",
     .least_inputs = 0,
     .most_inputs = -1,
     .least_outputs = 0,
     .most_outputs = -1,
     .flags = IV_OP_CONTROL,
     .params_size = sizeof(loop_params),
     .prepare = prepare_loop,
     .infer = infer_loop,
     .eval = eval_loop},
    {0},
};
