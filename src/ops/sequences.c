/* Lists of tensors, and values that may be missing: Sequence…, ConcatFromSequence, SplitToSequence,
 * Optional….
 *
 * A sequence is immutable: inserting and erasing make a new list of the same tensors. An optional
 * that holds something is that something. */
#include "base/allocation.h"
#include "ops/control.h"
#include "ops/element_type.h"
#include "ops/list.h"
#include "ops/moving.h"

/* ---- facts ---- */

static void sequence_fact(iv_fact *fact, iv_dtype dtype, int rank, const iv_dim *dims) {
    iv_fact_set_tensor(fact, dtype, rank, dims);
    fact->kind = IV_KIND_SEQUENCE;
}

static iv_status require_sequence(const iv_infer *infer, int index, const iv_fact **fact) {
    *fact = iv_infer_input(infer, index);
    if (*fact == NULL || (*fact)->kind != IV_KIND_SEQUENCE)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "input %d is not a sequence", index);
    return IV_OK;
}

/* What a sequence's fact says of each tensor must also hold for `other`; what does not is
 * forgotten. */
static iv_status join_item(const iv_infer *infer, iv_fact *sequence, int input,
                           const iv_fact *other) {
    if (sequence->dtype != other->dtype)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "input %d is %s in a sequence of %s", input,
                             iv_dtype_name(other->dtype), iv_dtype_name(sequence->dtype));
    bool same = sequence->rank == other->rank;
    for (int d = 0; d < sequence->rank && same; d++)
        same = iv_dim_equal(sequence->dims[d], other->dims[d]);
    if (!same)
        sequence->rank = IV_RANK_UNKNOWN;
    return IV_OK;
}

static iv_sequence *call_sequence(const iv_call *call, int index) {
    return call->inputs[index].sequence;
}

static iv_status publish(iv_call *call, iv_sequence *sequence) {
    iv_value_release(&call->outputs[0]);
    call->outputs[0] = (iv_value){.kind = IV_KIND_SEQUENCE, .sequence = sequence};
    return IV_OK;
}

/* ---- SequenceConstruct, SequenceEmpty ---- */

static iv_status infer_construct(iv_infer *infer) {
    const iv_fact *input;
    iv_fact *output = &infer->outputs[0];
    for (int i = 0; i < infer->input_count; i++) {
        IV_TRY(iv_infer_require(infer, i, IV_SET_ANY, &input));
        if (i == 0)
            sequence_fact(output, input->dtype, input->rank, input->dims);
        IV_TRY(join_item(infer, output, i, input));
    }
    return IV_OK;
}

static iv_status eval_construct(iv_call *call) {
    iv_sequence *sequence;
    IV_TRY(iv_sequence_create(iv_call_input(call, 0)->dtype, call->input_count, &sequence,
                              call->error));
    for (int i = 0; i < call->input_count; i++)
        sequence->items[i] = iv_value_retain(call->inputs[i]);
    return publish(call, sequence);
}

typedef struct empty_params {
    iv_dtype dtype;
} empty_params;

static iv_status prepare_empty(iv_node *node, iv_error *error) {
    return iv_node_element_type(node, "dtype", IV_F32, &((empty_params *)node->params)->dtype,
                                error);
}

static iv_status infer_empty(iv_infer *infer) {
    sequence_fact(&infer->outputs[0], ((const empty_params *)infer->node->params)->dtype,
                  IV_RANK_UNKNOWN, NULL);
    return IV_OK;
}

static iv_status eval_empty(iv_call *call) {
    iv_sequence *sequence;
    IV_TRY(iv_sequence_create(((const empty_params *)call->node->params)->dtype, 0, &sequence,
                              call->error));
    return publish(call, sequence);
}

/* ---- SequenceAt, SequenceErase, SequenceInsert, SequenceLength ---- */

/* The position in input `index`, counted from the end when negative; `otherwise` when the input is
 * omitted. */
static iv_status position(const iv_call *call, int index, int64_t length, int64_t otherwise,
                          int64_t *result) {
    int64_t value = 0;
    int count;
    *result = otherwise;
    if (iv_call_input(call, index) == NULL)
        return IV_OK;
    IV_TRY(iv_move_integers(call, index, 1, &value, &count));
    if (count != 1 || value < -length || value >= length)
        return iv_call_fail(call, IV_ERROR_SHAPE, "position %lld is outside a sequence of %lld",
                            (long long)value, (long long)length);
    *result = value < 0 ? value + length : value;
    return IV_OK;
}

static iv_status check_position(const iv_infer *infer, int index) {
    const iv_fact *fact;
    return iv_infer_input(infer, index) != NULL
               ? iv_infer_require(infer, index, IV_SET_INDEX, &fact)
               : IV_OK;
}

static iv_status infer_at(iv_infer *infer) {
    const iv_fact *sequence;
    IV_TRY(require_sequence(infer, 0, &sequence));
    IV_TRY(check_position(infer, 1));
    iv_fact_set_tensor(&infer->outputs[0], sequence->dtype, sequence->rank, sequence->dims);
    return IV_OK;
}

static iv_status eval_at(iv_call *call) {
    const iv_sequence *sequence = call_sequence(call, 0);
    int64_t at;
    IV_TRY(position(call, 1, sequence->count, 0, &at));
    if (at >= sequence->count)
        return iv_call_fail(call, IV_ERROR_SHAPE, "the sequence is empty");
    call->outputs[0] = iv_value_retain(sequence->items[at]);
    return IV_OK;
}

static iv_status infer_erase(iv_infer *infer) {
    const iv_fact *sequence;
    IV_TRY(require_sequence(infer, 0, &sequence));
    IV_TRY(check_position(infer, 1));
    sequence_fact(&infer->outputs[0], sequence->dtype, sequence->rank, sequence->dims);
    return IV_OK;
}

static iv_status eval_erase(iv_call *call) {
    const iv_sequence *sequence = call_sequence(call, 0);
    iv_sequence *shorter;
    int64_t at;
    if (sequence->count == 0)
        return iv_call_fail(call, IV_ERROR_SHAPE, "the sequence is empty");
    IV_TRY(position(call, 1, sequence->count, sequence->count - 1, &at));
    IV_TRY(iv_sequence_create(sequence->dtype, sequence->count - 1, &shorter, call->error));
    for (int64_t i = 0; i < shorter->count; i++)
        shorter->items[i] = iv_value_retain(sequence->items[i < at ? i : i + 1]);
    return publish(call, shorter);
}

static iv_status infer_insert(iv_infer *infer) {
    const iv_fact *sequence, *item;
    IV_TRY(require_sequence(infer, 0, &sequence));
    IV_TRY(iv_infer_require(infer, 1, IV_SET_ANY, &item));
    IV_TRY(check_position(infer, 2));
    sequence_fact(&infer->outputs[0], sequence->dtype, sequence->rank, sequence->dims);
    return join_item(infer, &infer->outputs[0], 1, item);
}

static iv_status eval_insert(iv_call *call) {
    const iv_sequence *sequence = call_sequence(call, 0);
    iv_sequence *longer;
    int64_t at, value = 0;
    int count = 1;
    /* The place behind the last item counts as a position too. */
    at = sequence->count;
    if (iv_call_input(call, 2) != NULL) {
        IV_TRY(iv_move_integers(call, 2, 1, &value, &count));
        at = value < 0 ? value + sequence->count : value;
    }
    if (count != 1 || at < 0 || at > sequence->count)
        return iv_call_fail(call, IV_ERROR_SHAPE, "position %lld is outside a sequence of %lld",
                            (long long)value, (long long)sequence->count);
    IV_TRY(iv_sequence_create(sequence->dtype, sequence->count + 1, &longer, call->error));
    for (int64_t i = 0; i < longer->count; i++)
        longer->items[i] =
            iv_value_retain(i == at ? call->inputs[1] : sequence->items[i < at ? i : i - 1]);
    return publish(call, longer);
}

static iv_status infer_length(iv_infer *infer) {
    const iv_fact *sequence;
    IV_TRY(require_sequence(infer, 0, &sequence));
    iv_fact_set_tensor(&infer->outputs[0], IV_S64, 0, NULL);
    return IV_OK;
}

static iv_status eval_length(iv_call *call) {
    iv_tensor *output;
    IV_TRY(iv_call_output(call, 0, &output));
    *(int64_t *)(void *)output->data = call_sequence(call, 0)->count;
    return IV_OK;
}

/* ---- ConcatFromSequence ---- */

typedef struct join_params {
    int64_t axis, new_axis;
} join_params;

static iv_status prepare_join(iv_node *node, iv_error *error) {
    join_params *params = node->params;
    if (!iv_node_has(node, "axis"))
        return iv_fail(error, IV_ERROR_INVALID_MODEL, "node %s: ConcatFromSequence needs an axis",
                       node->name);
    IV_TRY(iv_node_int(node, "axis", 0, &params->axis, error));
    return iv_node_int(node, "new_axis", 0, &params->new_axis, error);
}

static iv_status infer_join(iv_infer *infer) {
    const join_params *params = infer->node->params;
    const iv_fact *sequence;
    IV_TRY(require_sequence(infer, 0, &sequence));
    if (sequence->rank == IV_RANK_UNKNOWN) {
        iv_fact_set_tensor(&infer->outputs[0], sequence->dtype, IV_RANK_UNKNOWN, NULL);
        return IV_OK;
    }
    int axis, from = 0, rank = sequence->rank + (params->new_axis != 0 ? 1 : 0);
    iv_dim dims[IV_MAX_RANK + 1];
    IV_TRY(iv_infer_axis(infer, params->axis, rank, &axis));
    if (rank > IV_MAX_RANK)
        return iv_infer_fail(infer, IV_ERROR_UNSUPPORTED, "the result has rank %d; %d is the most",
                             rank, IV_MAX_RANK);
    for (int d = 0; d < rank; d++) {
        dims[d] = d == axis ? iv_infer_fresh(infer, 0, d) : sequence->dims[from];
        from += d != axis || params->new_axis == 0;
    }
    iv_fact_set_tensor(&infer->outputs[0], sequence->dtype, rank, dims);
    return IV_OK;
}

/* The extents of the items set side by side along `axis`. */
static iv_status joined_extents(const iv_call *call, const iv_sequence *sequence, int axis,
                                int64_t *dims) {
    const iv_tensor *first = sequence->items[0].tensor;
    memcpy(dims, first->dims, sizeof first->dims);
    for (int64_t i = 1; i < sequence->count; i++) {
        const iv_tensor *item = sequence->items[i].tensor;
        bool fits = item->rank == first->rank;
        for (int d = 0; d < first->rank && fits; d++)
            fits = d == axis || item->dims[d] == first->dims[d];
        if (!fits || __builtin_add_overflow(dims[axis], item->dims[axis], &dims[axis]))
            return iv_call_fail(call, IV_ERROR_SHAPE, "item %lld does not fit item 0 along axis %d",
                                (long long)i, axis);
    }
    return IV_OK;
}

static iv_status join_items(iv_call *call, const iv_sequence *sequence, int axis) {
    int64_t dims[IV_MAX_RANK], start = 0;
    const iv_tensor *first = sequence->items[0].tensor;
    iv_tensor *output = NULL, *part;
    IV_TRY(joined_extents(call, sequence, axis, dims));
    iv_status status = iv_move_output(call, 0, first->dtype, first->rank, dims, &output);
    for (int64_t i = 0; i < sequence->count && status == IV_OK; i++) {
        const iv_tensor *item = sequence->items[i].tensor;
        status = iv_tensor_slice(output, axis, start, item->dims[axis], 1, &part, call->error);
        if (status == IV_OK) {
            iv_tensor_copy_elements(part, item);
            iv_tensor_release(part);
        }
        start += item->dims[axis];
    }
    return iv_move_finish(call, 0, output, status);
}

static iv_status stack_items(iv_call *call, const iv_sequence *sequence, int axis) {
    iv_control_list list = {0};
    iv_tensor *stack = NULL;
    iv_status status = IV_OK;
    for (int64_t i = 0; i < sequence->count && status == IV_OK; i++)
        status = iv_control_append(&list, iv_tensor_retain(sequence->items[i].tensor), call->error);
    if (status == IV_OK)
        status = iv_control_stack(call, NULL, axis, false, (int64_t)list.count, list.items, &stack);
    iv_control_clear(&list);
    return status == IV_OK ? iv_call_set_output(call, 0, stack) : status;
}

static iv_status eval_join(iv_call *call) {
    const join_params *params = call->node->params;
    const iv_sequence *sequence = call_sequence(call, 0);
    int axis;
    if (sequence->count == 0)
        return iv_call_fail(call, IV_ERROR_SHAPE, "an empty sequence has no shape");
    for (int64_t i = 0; i < sequence->count; i++) {
        if (sequence->items[i].kind != IV_KIND_TENSOR)
            return iv_call_fail(call, IV_ERROR_SHAPE, "item %lld is no tensor", (long long)i);
    }
    int rank = sequence->items[0].tensor->rank + (params->new_axis != 0 ? 1 : 0);
    IV_TRY(iv_move_axis(call, params->axis, rank, &axis));
    return params->new_axis != 0 ? stack_items(call, sequence, axis)
                                 : join_items(call, sequence, axis);
}

/* ---- SplitToSequence ---- */

typedef struct split_params {
    int64_t axis, keep;
} split_params;

static iv_status prepare_split(iv_node *node, iv_error *error) {
    split_params *params = node->params;
    IV_TRY(iv_node_int(node, "axis", 0, &params->axis, error));
    return iv_node_int(node, "keepdims", 1, &params->keep, error);
}

static iv_status infer_split(iv_infer *infer) {
    const split_params *params = infer->node->params;
    const iv_fact *input, *sizes;
    int axis;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_ANY, &input));
    if (iv_infer_input(infer, 1) != NULL)
        IV_TRY(iv_infer_require(infer, 1, IV_SET_INDEX, &sizes));
    sequence_fact(&infer->outputs[0], input->dtype, IV_RANK_UNKNOWN, NULL);
    if (input->rank == IV_RANK_UNKNOWN)
        return IV_OK;
    IV_TRY(iv_infer_axis(infer, params->axis, input->rank, &axis));
    /* With sizes the parts may differ in extent, and then nothing holds for each of them. */
    if (iv_infer_input(infer, 1) != NULL)
        return IV_OK;
    iv_dim dims[IV_MAX_RANK];
    int rank = 0;
    for (int d = 0; d < input->rank; d++) {
        if (d != axis)
            dims[rank++] = input->dims[d];
        else if (params->keep != 0)
            dims[rank++] = iv_dim_constant(infer->scope, 1);
    }
    sequence_fact(&infer->outputs[0], input->dtype, rank, dims);
    return IV_OK;
}

/* The sizes of the parts: as listed; all `size` but the last for a scalar; 1 without sizes. The
 * caller frees them. */
static iv_status part_sizes(const iv_call *call, int64_t extent, int64_t **sizes, int64_t *count) {
    const iv_tensor *list = iv_call_input(call, 1);
    if (list != NULL && list->rank != 0) {
        IV_TRY(iv_move_indices(call, list, sizes, count));
        int64_t sum = 0;
        bool fits = true;
        for (int64_t i = 0; i < *count && fits; i++)
            fits = (*sizes)[i] >= 0 && !__builtin_add_overflow(sum, (*sizes)[i], &sum);
        if (fits && sum == extent)
            return IV_OK;
        iv_free(*sizes);
        *sizes = NULL;
        return iv_call_fail(call, IV_ERROR_SHAPE, "the sizes do not add up to the extent %lld",
                            (long long)extent);
    }
    int64_t size[1] = {1};
    int one;
    if (list != NULL)
        IV_TRY(iv_move_integers(call, 1, 1, size, &one));
    if (size[0] < 1)
        return iv_call_fail(call, IV_ERROR_SHAPE, "parts of %lld", (long long)size[0]);
    *count = extent / size[0] + (extent % size[0] != 0);
    *sizes = iv_allocate_array((size_t)*count, sizeof **sizes);
    if (*sizes == NULL)
        return iv_fail_memory(call->error, (size_t)*count * sizeof **sizes);
    for (int64_t i = 0; i < *count; i++)
        (*sizes)[i] = (i + 1) * size[0] <= extent ? size[0] : extent % size[0];
    return IV_OK;
}

static iv_status cut(const iv_call *call, int axis, int64_t start, int64_t size, bool drop,
                     iv_value *item) {
    iv_tensor *part, *view;
    IV_TRY(iv_tensor_slice(iv_call_input(call, 0), axis, start, size, 1, &part, call->error));
    if (drop) {
        int64_t dims[IV_MAX_RANK];
        for (int d = 0; d + 1 < part->rank; d++)
            dims[d] = part->dims[d < axis ? d : d + 1];
        iv_status status = iv_tensor_reshape(part, part->rank - 1, dims, &view, call->error);
        iv_tensor_release(part);
        if (status != IV_OK)
            return status;
        part = view;
    }
    *item = iv_value_of_tensor(part);
    return IV_OK;
}

static iv_status eval_split(iv_call *call) {
    const split_params *params = call->node->params;
    const iv_tensor *input = iv_call_input(call, 0);
    int64_t *sizes, count, start = 0;
    int axis;
    IV_TRY(iv_move_axis(call, params->axis, input->rank, &axis));
    IV_TRY(part_sizes(call, input->dims[axis], &sizes, &count));
    iv_sequence *sequence = NULL;
    iv_status status = iv_sequence_create(input->dtype, count, &sequence, call->error);
    bool drop = params->keep == 0 && iv_call_input(call, 1) == NULL;
    for (int64_t i = 0; i < count && status == IV_OK; i++) {
        status = cut(call, axis, start, sizes[i], drop, &sequence->items[i]);
        start += sizes[i];
    }
    iv_free(sizes);
    if (sequence != NULL)
        publish(call, sequence);
    return status;
}

/* ---- SequenceMap ---- */

typedef struct map_params {
    iv_control_params control;
    iv_graph *body;
} map_params;

static iv_status prepare_map(iv_node *node, iv_error *error) {
    map_params *params = node->params;
    IV_TRY(iv_control_prepare(node, "body", node->input_count - node->capture_count, &params->body,
                              error));
    if (params->body->output_count != (size_t)node->output_count)
        return iv_fail(error, IV_ERROR_INVALID_MODEL,
                       "node %s: SequenceMap has %d outputs, its body %zu", node->name,
                       node->output_count, params->body->output_count);
    return IV_OK;
}

static iv_status map_facts(iv_infer *infer, int inputs, iv_fact *facts) {
    const map_params *params = infer->node->params;
    const iv_fact *input;
    IV_TRY(require_sequence(infer, 0, &input));
    for (int i = 0; i < inputs; i++) {
        input = iv_infer_input(infer, i);
        if (input == NULL)
            return iv_infer_fail(infer, IV_ERROR_INVALID_MODEL, "input %d is missing", i);
        if (input->kind == IV_KIND_SEQUENCE)
            iv_fact_set_tensor(&facts[i], input->dtype, input->rank, input->dims);
        else
            IV_TRY(iv_fact_copy(&facts[i], input, infer->error));
    }
    IV_TRY(iv_infer_graph(infer, params->body, inputs, facts, facts + inputs));
    for (int i = 0; i < infer->output_count; i++) {
        const iv_fact *item = &facts[inputs + i];
        if (item->kind != IV_KIND_TENSOR)
            return iv_infer_fail(infer, IV_ERROR_SHAPE, "output %d of the body is no tensor", i);
        /* What the data decide inside the body may differ from item to item. */
        bool closed = true;
        for (int d = 0; d < item->rank; d++)
            closed = closed && iv_control_closed(infer, item->dims[d]);
        sequence_fact(&infer->outputs[i], item->dtype, closed ? item->rank : IV_RANK_UNKNOWN,
                      item->dims);
    }
    return IV_OK;
}

static iv_status infer_map(iv_infer *infer) {
    int inputs = infer->input_count - infer->node->capture_count;
    size_t all = (size_t)(inputs + infer->output_count);
    iv_fact *facts = iv_allocate_array(all, sizeof *facts);
    if (facts == NULL)
        return iv_fail_memory(infer->error, all * sizeof *facts);
    iv_status status = map_facts(infer, inputs, facts);
    for (size_t i = 0; i < all; i++)
        iv_fact_clear(&facts[i]);
    iv_free(facts);
    return status;
}

static iv_status map_items(iv_call *call, int inputs, iv_value *values) {
    const map_params *params = call->node->params;
    const iv_sequence *first = call_sequence(call, 0);
    for (int i = 0; i < inputs; i++) {
        if (call->inputs[i].kind == IV_KIND_SEQUENCE &&
            call_sequence(call, i)->count != first->count)
            return iv_call_fail(call, IV_ERROR_SHAPE, "input %d has %lld items, input 0 has %lld",
                                i, (long long)call_sequence(call, i)->count,
                                (long long)first->count);
    }
    for (int o = 0; o < call->output_count; o++) {
        /* Facts of outputs that nobody wants are empty; the dtype of such a list does not matter.
         */
        iv_dtype dtype = iv_call_wants(call, o) ? call->facts[o].dtype : IV_F32;
        iv_sequence *sequence;
        IV_TRY(iv_sequence_create(dtype, first->count, &sequence, call->error));
        iv_value_release(&call->outputs[o]);
        call->outputs[o] = (iv_value){.kind = IV_KIND_SEQUENCE, .sequence = sequence};
    }
    for (int64_t item = 0; item < first->count; item++) {
        for (int i = 0; i < inputs; i++)
            values[i] = call->inputs[i].kind == IV_KIND_SEQUENCE
                            ? call_sequence(call, i)->items[item]
                            : call->inputs[i];
        iv_value *results = values + inputs;
        IV_TRY(iv_call_run_graph(call, params->body, inputs, values, results));
        for (int o = 0; o < call->output_count; o++)
            call->outputs[o].sequence->items[item] = results[o];
    }
    return IV_OK;
}

static iv_status eval_map(iv_call *call) {
    int inputs = call->input_count - call->node->capture_count;
    size_t all = (size_t)(inputs + call->output_count);
    iv_value *values = iv_allocate_array(all, sizeof *values);
    if (values == NULL)
        return iv_fail_memory(call->error, all * sizeof *values);
    iv_status status = map_items(call, inputs, values);
    iv_free(values);
    return status;
}

/* ---- Optional… ---- */

static iv_status infer_optional(iv_infer *infer) {
    const iv_fact *input = iv_infer_input(infer, 0);
    if (input != NULL)
        return iv_fact_copy(&infer->outputs[0], input, infer->error);
    infer->outputs[0].optional = true;
    return IV_OK;
}

static iv_status eval_optional(iv_call *call) {
    if (call->input_count > 0)
        call->outputs[0] = iv_value_retain(call->inputs[0]);
    return IV_OK;
}

static iv_status infer_get(iv_infer *infer) {
    const iv_fact *input = iv_infer_input(infer, 0);
    if (input == NULL || (input->kind == IV_KIND_NONE && input->optional))
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "the optional is empty");
    IV_TRY(iv_fact_copy(&infer->outputs[0], input, infer->error));
    infer->outputs[0].optional = false;
    return IV_OK;
}

static iv_status eval_get(iv_call *call) {
    if (call->inputs[0].kind == IV_KIND_NONE)
        return iv_call_fail(call, IV_ERROR_SHAPE, "the optional is empty");
    call->outputs[0] = iv_value_retain(call->inputs[0]);
    return IV_OK;
}

static iv_status infer_has(iv_infer *infer) {
    const iv_fact *input = iv_infer_input(infer, 0);
    iv_fact *output = &infer->outputs[0];
    iv_fact_set_tensor(output, IV_BOOL, 0, NULL);
    bool nothing = input == NULL || (input->kind == IV_KIND_NONE && input->optional);
    const uint8_t has = nothing ? 0 : 1;
    /* Nothing known, or something that may be missing: only the data decide. */
    if (!nothing && (input->optional || input->kind == IV_KIND_NONE))
        return IV_OK;
    return iv_tensor_from_data(IV_BOOL, 0, NULL, &has, &output->constant, infer->error);
}

static iv_status eval_has(iv_call *call) {
    iv_tensor *output;
    IV_TRY(iv_call_output_shape(call, 0, IV_BOOL, 0, NULL, &output));
    *output->data = call->input_count > 0 && call->inputs[0].kind != IV_KIND_NONE;
    return IV_OK;
}

#define SEQUENCE_OP(op_name, least, most, op_flags, params, prepare_function, infer_function,      \
                    eval_function)                                                                 \
    {                                                                                              \
        .name = op_name, .domain = "", .least_inputs = least, .most_inputs = most,                 \
        .least_outputs = 1, .most_outputs = 1, .flags = op_flags, .params_size = params,           \
        .prepare = prepare_function, .infer = infer_function, .eval = eval_function                \
    }

const iv_op iv_ops_sequences[] = {
    SEQUENCE_OP("SequenceConstruct", 1, -1, IV_OP_KEEPS, 0, NULL, infer_construct, eval_construct),
    SEQUENCE_OP("SequenceEmpty", 0, 0, 0, sizeof(empty_params), prepare_empty, infer_empty,
                eval_empty),
    SEQUENCE_OP("SequenceAt", 2, 2, IV_OP_KEEPS, 0, NULL, infer_at, eval_at),
    SEQUENCE_OP("SequenceErase", 1, 2, IV_OP_KEEPS, 0, NULL, infer_erase, eval_erase),
    SEQUENCE_OP("SequenceInsert", 2, 3, IV_OP_KEEPS, 0, NULL, infer_insert, eval_insert),
    SEQUENCE_OP("SequenceLength", 1, 1, 0, 0, NULL, infer_length, eval_length),
    SEQUENCE_OP("ConcatFromSequence", 1, 1, 0, sizeof(join_params), prepare_join, infer_join,
                eval_join),
    SEQUENCE_OP("SplitToSequence", 1, 2, IV_OP_KEEPS, sizeof(split_params), prepare_split,
                infer_split, eval_split),
    {.name = "SequenceMap",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = -1,
     .least_outputs = 1,
     .most_outputs = -1,
     .flags = IV_OP_CONTROL,
     .params_size = sizeof(map_params),
     .prepare = prepare_map,
     .infer = infer_map,
     .eval = eval_map},
    SEQUENCE_OP("Optional", 0, 1, IV_OP_KEEPS, 0, NULL, infer_optional, eval_optional),
    SEQUENCE_OP("OptionalGetElement", 1, 1, IV_OP_KEEPS, 0, NULL, infer_get, eval_get),
    SEQUENCE_OP("OptionalHasElement", 0, 1, 0, 0, NULL, infer_has, eval_has),
    {0},
};
