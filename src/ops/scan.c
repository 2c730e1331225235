/* Scan: a graph run over the slices of its scan inputs, carrying state from one to the next.
 *
 * Opset 8 has a batch in dimension 0 of every input and output: each sample is scanned on its own,
 * over as many slices as its sequence length says (the whole extent without lengths); stacked
 * outputs are zero behind that. */
#include <string.h>

#include "base/allocation.h"
#include "ops/control.h"
#include "ops/list.h"
#include "ops/moving.h"

typedef struct scan_params {
    sb_control_params control;
    sb_graph *body;
    bool batched; /* opset 8 */
    int first;    /* the input where the states begin */
    int states, scanned, stacked;
    const int64_t *input_axes, *input_directions, *output_axes, *output_directions; /* NULL: all 0 */
} scan_params;

static sb_status axis_list(sb_node *node, const char *name, int expected, const int64_t **values, sb_error *error) {
    int64_t count;
    SB_TRY(sb_node_ints(node, name, &count, values, error));
    if (*values != NULL && count != expected)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: %s has %lld entries, not %d", node->name, name,
                       (long long)count, expected);
    return SB_OK;
}

static sb_status prepare_scan(sb_node *node, sb_error *error) {
    scan_params *params = node->params;
    int64_t scanned;
    params->batched = node->version < 9;
    params->first = params->batched ? 1 : 0;
    int inputs = node->input_count - node->capture_count - params->first;
    SB_TRY(sb_node_int(node, "num_scan_inputs", 0, &scanned, error));
    if (scanned < 1 || scanned > inputs)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: Scan has %lld scan inputs of %d", node->name,
                       (long long)scanned, inputs);
    params->scanned = (int)scanned;
    params->states = inputs - params->scanned;
    SB_TRY(sb_control_prepare(node, "body", inputs, &params->body, error));
    int64_t stacked = (int64_t)params->body->output_count - params->states;
    if (stacked < 0 || node->output_count > params->states + stacked)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %s: Scan has %d outputs and %d states, but its body gives %zu values", node->name,
                       node->output_count, params->states, params->body->output_count);
    params->stacked = (int)stacked;
    if (params->batched)
        return axis_list(node, "directions", params->scanned, &params->input_directions, error);
    SB_TRY(axis_list(node, "scan_input_axes", params->scanned, &params->input_axes, error));
    SB_TRY(axis_list(node, "scan_input_directions", params->scanned, &params->input_directions, error));
    SB_TRY(axis_list(node, "scan_output_axes", params->stacked, &params->output_axes, error));
    return axis_list(node, "scan_output_directions", params->stacked, &params->output_directions, error);
}

static int64_t entry(const int64_t *list, int index) {
    return list != NULL ? list[index] : 0;
}

/* ---- inference ---- */

typedef struct scan_facts {
    sb_fact *inputs;  /* of the body: states, then one slice of each scan input */
    sb_fact *outputs; /* of the body */
    sb_dim batch, length;
} scan_facts;

/* Drops dimension `axis` of a fact, which becomes (or must equal) *extent. */
static sb_status take_dimension(sb_infer *infer, sb_fact *fact, int64_t axis, sb_dim *extent) {
    int dimension;
    sb_tensor_release(fact->constant);
    sb_free(fact->elements);
    fact->constant = NULL;
    fact->elements = NULL;
    if (fact->rank == SB_RANK_UNKNOWN)
        return SB_OK;
    SB_TRY(sb_infer_axis(infer, axis, fact->rank, &dimension));
    int64_t left, right;
    sb_dim here = fact->dims[dimension];
    bool number = sb_dim_is_constant(here, &right);
    if (number && *extent != NULL && sb_dim_is_constant(*extent, &left) && left != right)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "extents %lld and %lld are scanned together", (long long)left,
                             (long long)right);
    if (*extent == NULL || number)
        *extent = here;
    for (int d = dimension; d + 1 < fact->rank; d++)
        fact->dims[d] = fact->dims[d + 1];
    fact->rank--;
    return SB_OK;
}

static sb_status start_facts(sb_infer *infer, scan_facts *facts) {
    const scan_params *params = infer->node->params;
    for (int i = 0; i < params->states + params->scanned; i++) {
        const sb_fact *source = sb_infer_input(infer, params->first + i);
        bool scanned = i >= params->states;
        if (scanned || params->batched)
            SB_TRY(sb_infer_require(infer, params->first + i, SB_SET_ANY, &source));
        if (source == NULL)
            return sb_infer_fail(infer, SB_ERROR_INVALID_MODEL, "input %d is missing", params->first + i);
        SB_TRY(sb_fact_copy(&facts->inputs[i], source, infer->error));
        if (params->batched)
            SB_TRY(take_dimension(infer, &facts->inputs[i], 0, &facts->batch));
        if (scanned)
            SB_TRY(take_dimension(infer, &facts->inputs[i], entry(params->input_axes, i - params->states),
                                  &facts->length));
    }
    if (facts->length == NULL)
        facts->length = sb_dim_fresh(infer->scope, infer->node->name);
    if (facts->batch == NULL)
        facts->batch = sb_dim_fresh(infer->scope, infer->node->name);
    return SB_OK;
}

#define REFINEMENTS 3

static sb_status settle_facts(sb_infer *infer, scan_facts *facts) {
    const scan_params *params = infer->node->params;
    int inputs = params->states + params->scanned, outputs = params->states + params->stacked;
    bool changed = true;
    int round = params->control.height >= SB_CONTROL_REFINED_HEIGHT ? REFINEMENTS : 0;
    for (; changed; round++) {
        changed = false;
        for (int i = 0; i < outputs; i++)
            sb_fact_clear(&facts->outputs[i]);
        for (int i = 0; i < params->states && round >= REFINEMENTS; i++)
            sb_control_forget(&facts->inputs[i]);
        SB_TRY(sb_infer_graph(infer, params->body, inputs, facts->inputs, facts->outputs));
        for (int i = 0; i < params->states; i++)
            SB_TRY(sb_control_merge(infer, i, &facts->inputs[i], &facts->outputs[i], true, &changed));
    }
    return SB_OK;
}

/* The fact of an output: the body's, with the batch and, for stacked ones, the scanned axis put in. */
static sb_status publish_fact(sb_infer *infer, const scan_facts *facts, int output) {
    const scan_params *params = infer->node->params;
    bool stacked = output >= params->states;
    const sb_fact *inner = stacked ? &facts->outputs[output] : &facts->inputs[output];
    if (!stacked && !params->batched)
        return sb_fact_copy(&infer->outputs[output], inner, infer->error);
    if (inner->kind != SB_KIND_TENSOR)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "output %d stacks values that are no tensors", output);
    if (inner->rank == SB_RANK_UNKNOWN) {
        sb_fact_set_tensor(&infer->outputs[output], inner->dtype, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    int rank = inner->rank + (stacked ? 1 : 0), axis = -1;
    if (stacked)
        SB_TRY(sb_infer_axis(infer, entry(params->output_axes, output - params->states), rank, &axis));
    if (rank + params->first > SB_MAX_RANK)
        return sb_infer_fail(infer, SB_ERROR_UNSUPPORTED, "output %d has more than %d dimensions", output, SB_MAX_RANK);
    sb_dim dims[SB_MAX_RANK];
    int to = 0, from = 0;
    if (params->batched)
        dims[to++] = facts->batch;
    for (int d = 0; d < rank; d++) {
        sb_dim extent = d == axis ? facts->length : inner->dims[from++];
        dims[to++] = d == axis || sb_control_closed(infer, extent) ? extent : sb_infer_fresh(infer, output, d);
    }
    sb_fact_set_tensor(&infer->outputs[output], inner->dtype, to, dims);
    return SB_OK;
}

static sb_status infer_scan(sb_infer *infer) {
    const scan_params *params = infer->node->params;
    size_t inputs = (size_t)(params->states + params->scanned);
    size_t outputs = (size_t)(params->states + params->stacked);
    scan_facts facts = {.inputs = sb_allocate_array(inputs + outputs, sizeof *facts.inputs)};
    if (facts.inputs == NULL)
        return sb_fail_memory(infer->error, (inputs + outputs) * sizeof *facts.inputs);
    facts.outputs = facts.inputs + inputs;
    sb_status status = start_facts(infer, &facts);
    if (status == SB_OK)
        status = settle_facts(infer, &facts);
    for (int i = 0; i < infer->output_count && status == SB_OK; i++)
        status = publish_fact(infer, &facts, i);
    for (size_t i = 0; i < inputs + outputs; i++)
        sb_fact_clear(&facts.inputs[i]);
    sb_free(facts.inputs);
    return status;
}

/* ---- evaluation ---- */

typedef struct scan_run {
    sb_value *inputs;         /* of the body: states (kept from slice to slice), then slices */
    sb_value *outputs;        /* of the body */
    sb_tensor **sources;      /* the scan inputs of one sample, without the batch */
    sb_control_list *stacks;  /* per stacked output */
    sb_control_list *samples; /* per output, in opset 8: the result of each sample */
} scan_run;

/* The tensor without dimension `axis`, at position `index` of it: a view. */
static sb_status pick(const sb_call *call, sb_tensor *tensor, int64_t axis, int64_t index, sb_tensor **view) {
    int dimension;
    SB_TRY(sb_move_axis(call, axis, tensor->rank, &dimension));
    int64_t dims[SB_MAX_RANK], strides[SB_MAX_RANK];
    for (int d = 0; d + 1 < tensor->rank; d++) {
        dims[d] = tensor->dims[d < dimension ? d : d + 1];
        strides[d] = tensor->strides[d < dimension ? d : d + 1];
    }
    int64_t offset = index * tensor->strides[dimension] * (int64_t)sb_dtype_size(tensor->dtype);
    return sb_tensor_over(tensor->storage, tensor->data + offset, tensor->dtype, tensor->rank - 1, dims, strides, view,
                          call->error);
}

static sb_status scan_slice(sb_call *call, scan_run *run, int64_t step) {
    const scan_params *params = call->node->params;
    for (int i = 0; i < params->scanned; i++) {
        sb_tensor *source = run->sources[i], *slice;
        int axis;
        SB_TRY(sb_move_axis(call, entry(params->input_axes, i), source->rank, &axis));
        bool backward = entry(params->input_directions, i) != 0;
        sb_value_release(&run->inputs[params->states + i]);
        SB_TRY(pick(call, source, axis, backward ? source->dims[axis] - 1 - step : step, &slice));
        run->inputs[params->states + i] = sb_value_of_tensor(slice);
    }
    SB_TRY(sb_call_run_graph(call, params->body, params->states + params->scanned, run->inputs, run->outputs));
    for (int i = 0; i < params->states; i++) {
        sb_value_release(&run->inputs[i]);
        run->inputs[i] = run->outputs[i];
        run->outputs[i] = (sb_value){0};
    }
    for (int i = 0; i < params->stacked; i++) {
        sb_value *result = &run->outputs[params->states + i];
        if (result->kind != SB_KIND_TENSOR)
            return sb_call_fail(call, SB_ERROR_SHAPE, "output %d stacks values that are no tensors",
                                params->states + i);
        sb_tensor *tensor = result->tensor;
        *result = (sb_value){0};
        SB_TRY(sb_control_append(&run->stacks[i], tensor, call->error));
    }
    return SB_OK;
}

/* Scans what run->sources holds; `limit` slices at most. */
static sb_status scan_all(sb_call *call, scan_run *run, int64_t limit) {
    const scan_params *params = call->node->params;
    int64_t length = -1;
    for (int i = 0; i < params->scanned; i++) {
        int axis;
        SB_TRY(sb_move_axis(call, entry(params->input_axes, i), run->sources[i]->rank, &axis));
        int64_t extent = run->sources[i]->dims[axis];
        if (length >= 0 && extent != length)
            return sb_call_fail(call, SB_ERROR_SHAPE, "extents %lld and %lld are scanned together", (long long)length,
                                (long long)extent);
        length = extent;
    }
    for (int64_t step = 0; step < (limit < length ? limit : length); step++) {
        SB_TRY(sb_call_iterate(call, step));
        SB_TRY(scan_slice(call, run, step));
    }
    return SB_OK;
}

static sb_status publish_plain(sb_call *call, scan_run *run) {
    const scan_params *params = call->node->params;
    for (int i = 0; i < call->output_count; i++) {
        if (!sb_call_wants(call, i))
            continue;
        sb_value_release(&call->outputs[i]);
        if (i < params->states) {
            call->outputs[i] = sb_value_retain(run->inputs[i]);
            continue;
        }
        const sb_control_list *stack = &run->stacks[i - params->states];
        int rank = stack->count != 0                        ? stack->items[0]->rank + 1
                   : call->facts[i].rank != SB_RANK_UNKNOWN ? call->facts[i].rank
                                                            : 1;
        int axis;
        sb_tensor *tensor;
        SB_TRY(sb_move_axis(call, entry(params->output_axes, i - params->states), rank, &axis));
        SB_TRY(sb_control_stack(call, &call->facts[i], axis, entry(params->output_directions, i - params->states) != 0,
                                (int64_t)stack->count, stack->items, &tensor));
        call->outputs[i] = sb_value_of_tensor(tensor);
    }
    return SB_OK;
}

/* ---- opset 8 ---- */

/* Stacks one sample's outputs along axis 0, with zeros up to `length`. */
static sb_status stack_sample(sb_call *call, const sb_control_list *stack, int64_t length, sb_tensor **sample) {
    sb_tensor *part, *padded, *head;
    if (stack->count == 0)
        return sb_call_fail(call, SB_ERROR_SHAPE, "a sequence of no slices has no outputs to stack");
    SB_TRY(sb_control_stack(call, NULL, 0, false, (int64_t)stack->count, stack->items, &part));
    if (part->dims[0] == length || part->dtype == SB_STRING) {
        *sample = part;
        return SB_OK;
    }
    int64_t dims[SB_MAX_RANK];
    memcpy(dims, part->dims, sizeof dims);
    dims[0] = length;
    sb_status status = sb_tensor_create(part->dtype, part->rank, dims, &padded, call->error);
    if (status == SB_OK) {
        status = sb_tensor_slice(padded, 0, 0, part->dims[0], 1, &head, call->error);
        if (status == SB_OK) {
            sb_tensor_copy_elements(head, part);
            sb_tensor_release(head);
            *sample = padded;
        } else {
            sb_tensor_release(padded);
        }
    }
    sb_tensor_release(part);
    return status;
}

static sb_status scan_sample(sb_call *call, scan_run *run, int64_t sample, int64_t limit, int64_t length) {
    const scan_params *params = call->node->params;
    for (int i = 0; i < params->states + params->scanned; i++) {
        sb_tensor *view;
        SB_TRY(pick(call, sb_call_input(call, params->first + i), 0, sample, &view));
        if (i < params->states) {
            sb_value_release(&run->inputs[i]);
            run->inputs[i] = sb_value_of_tensor(view);
        } else {
            sb_tensor_release(run->sources[i - params->states]);
            run->sources[i - params->states] = view;
        }
    }
    SB_TRY(scan_all(call, run, limit));
    for (int i = 0; i < params->states; i++) {
        if (run->inputs[i].kind != SB_KIND_TENSOR)
            return sb_call_fail(call, SB_ERROR_SHAPE, "state %d is no tensor", i);
        SB_TRY(sb_control_append(&run->samples[i], sb_tensor_retain(run->inputs[i].tensor), call->error));
    }
    for (int i = 0; i < params->stacked; i++) {
        sb_tensor *stack;
        SB_TRY(stack_sample(call, &run->stacks[i], length, &stack));
        sb_control_clear(&run->stacks[i]);
        SB_TRY(sb_control_append(&run->samples[params->states + i], stack, call->error));
    }
    return SB_OK;
}

static sb_status scan_batch(sb_call *call, scan_run *run) {
    const scan_params *params = call->node->params;
    const sb_tensor *lengths = sb_call_input(call, 0), *first = sb_call_input(call, 1 + params->states);
    if (first->rank < 2)
        return sb_call_fail(call, SB_ERROR_SHAPE, "scan input 0 has rank %d, not 2 or more", first->rank);
    int64_t batch = first->dims[0], length = first->dims[1];
    for (int i = 0; i < params->states + params->scanned; i++) {
        const sb_tensor *input = sb_call_input(call, 1 + i);
        if (input->rank < 1 || input->dims[0] != batch)
            return sb_call_fail(call, SB_ERROR_SHAPE, "input %d does not have the batch of %lld", 1 + i,
                                (long long)batch);
    }
    if (lengths != NULL && (lengths->dtype != SB_S64 || lengths->rank != 1 || lengths->dims[0] != batch))
        return sb_call_fail(call, SB_ERROR_SHAPE, "input 0 must list %lld lengths", (long long)batch);
    for (int64_t b = 0; b < batch; b++) {
        int64_t limit = length;
        if (lengths != NULL)
            limit = ((const int64_t *)(const void *)lengths->data)[b * lengths->strides[0]];
        if (limit < 0 || limit > length)
            return sb_call_fail(call, SB_ERROR_SHAPE, "length %lld of sample %lld is outside [0, %lld]",
                                (long long)limit, (long long)b, (long long)length);
        SB_TRY(scan_sample(call, run, b, limit, length));
    }
    for (int i = 0; i < call->output_count; i++) {
        sb_tensor *tensor;
        if (!sb_call_wants(call, i))
            continue;
        SB_TRY(sb_control_stack(call, &call->facts[i], 0, false, (int64_t)run->samples[i].count, run->samples[i].items,
                                &tensor));
        sb_value_release(&call->outputs[i]);
        call->outputs[i] = sb_value_of_tensor(tensor);
    }
    return SB_OK;
}

static sb_status run_scan(sb_call *call, scan_run *run) {
    const scan_params *params = call->node->params;
    if (params->batched)
        return scan_batch(call, run);
    for (int i = 0; i < params->states; i++)
        run->inputs[i] = sb_value_retain(call->inputs[i]);
    for (int i = 0; i < params->scanned; i++)
        run->sources[i] = sb_tensor_retain(sb_call_input(call, params->states + i));
    SB_TRY(scan_all(call, run, INT64_MAX));
    return publish_plain(call, run);
}

static sb_status eval_scan(sb_call *call) {
    const scan_params *params = call->node->params;
    size_t inputs = (size_t)(params->states + params->scanned);
    size_t outputs = (size_t)(params->states + params->stacked);
    scan_run run = {.inputs = sb_allocate_array(inputs + outputs, sizeof *run.inputs),
                    .sources = sb_allocate_array((size_t)params->scanned, sizeof *run.sources),
                    .stacks = sb_allocate_array((size_t)params->stacked + outputs, sizeof *run.stacks)};
    sb_status status = SB_OK;
    if (run.inputs == NULL || run.sources == NULL || run.stacks == NULL) {
        status = sb_fail_memory(call->error, (inputs + outputs) * sizeof *run.inputs);
    } else {
        run.outputs = run.inputs + inputs;
        run.samples = run.stacks + params->stacked;
        status = run_scan(call, &run);
    }
    for (size_t i = 0; run.inputs != NULL && i < inputs + outputs; i++)
        sb_value_release(&run.inputs[i]);
    for (int i = 0; run.sources != NULL && i < params->scanned; i++)
        sb_tensor_release(run.sources[i]);
    for (size_t i = 0; run.stacks != NULL && i < (size_t)params->stacked + outputs; i++)
        sb_control_clear(&run.stacks[i]);
    sb_free(run.inputs);
    sb_free(run.sources);
    sb_free(run.stacks);
    return status;
}

/* A variable is one more state, behind the others. In opset 8 each sample has states of its own,
 * and a variable has no samples. */
static bool pass_scan(int version, const sb_attributes *attributes, size_t inputs, size_t outputs,
                      sb_passage *passage) {
    const sb_attribute *scanned = sb_attributes_find(attributes, "num_scan_inputs");
    (void)outputs;
    if (version < 9 || scanned == NULL || scanned->kind != SB_ATTRIBUTE_INTS || scanned->count != 1 ||
        scanned->ints[0] < 1 || (uint64_t)scanned->ints[0] > inputs)
        return false;
    size_t states = inputs - (size_t)scanned->ints[0];
    *passage = (sb_passage){
        .state = true, .node_input = states, .graph_input = states, .graph_output = states, .node_output = states};
    return true;
}

const sb_op sb_ops_scan[] = {
    {.name = "Scan",
     .domain = "",
     .least_inputs = 0,
     .most_inputs = -1,
     .least_outputs = 0,
     .most_outputs = -1,
     .flags = SB_OP_CONTROL,
     .params_size = sizeof(scan_params),
     .prepare = prepare_scan,
     .infer = infer_scan,
     .eval = eval_scan,
     .passage = pass_scan},
    {0},
};
