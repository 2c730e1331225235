/* Lists of tensors, and values that may be missing: Sequence…, ConcatFromSequence, SplitToSequence, Optional….
 *
 * A sequence is immutable: inserting and erasing make a new list of the same tensors.
 * An optional that holds something is that something. */
#include "base/allocation.h"
#include "ops/control.h"
#include "ops/element_type.h"
#include "ops/list.h"
#include "ops/moving.h"

/* ---- facts ---- */

static void sequence_fact(sb_fact *fact, sb_dtype dtype, int rank, const sb_dim *dims) {
    sb_fact_set_tensor(fact, dtype, rank, dims);
    fact->kind = SB_KIND_SEQUENCE;
}

static sb_status require_sequence(const sb_infer *infer, int index, const sb_fact **fact) {
    *fact = sb_infer_input(infer, index);
    if (*fact == NULL || (*fact)->kind != SB_KIND_SEQUENCE)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d is not a sequence", index);
    return SB_OK;
}

/* What a sequence's fact says of each tensor must also hold for `other`; what does not is forgotten. */
static sb_status join_item(const sb_infer *infer, sb_fact *sequence, int input, const sb_fact *other) {
    if (sequence->dtype != other->dtype)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d is %s in a sequence of %s", input,
                             sb_dtype_name(other->dtype), sb_dtype_name(sequence->dtype));
    bool same = sequence->rank == other->rank;
    for (int d = 0; d < sequence->rank && same; d++)
        same = sb_dim_equal(sequence->dims[d], other->dims[d]);
    if (!same)
        sequence->rank = SB_RANK_UNKNOWN;
    return SB_OK;
}

static sb_sequence *call_sequence(const sb_call *call, int index) {
    return call->inputs[index].sequence;
}

static sb_status publish(sb_call *call, sb_sequence *sequence) {
    sb_value_release(&call->outputs[0]);
    call->outputs[0] = (sb_value){.kind = SB_KIND_SEQUENCE, .sequence = sequence};
    return SB_OK;
}

/* ---- SequenceConstruct, SequenceEmpty ---- */

static sb_status infer_construct(sb_infer *infer) {
    const sb_fact *input;
    sb_fact *output = &infer->outputs[0];
    for (int i = 0; i < infer->input_count; i++) {
        SB_TRY(sb_infer_require(infer, i, SB_SET_ANY, &input));
        if (i == 0)
            sequence_fact(output, input->dtype, input->rank, input->dims);
        SB_TRY(join_item(infer, output, i, input));
    }
    return SB_OK;
}

static sb_status eval_construct(sb_call *call) {
    sb_sequence *sequence;
    SB_TRY(sb_sequence_create(sb_call_input(call, 0)->dtype, call->input_count, &sequence, call->error));
    for (int i = 0; i < call->input_count; i++)
        sequence->items[i] = sb_value_retain(call->inputs[i]);
    return publish(call, sequence);
}

typedef struct empty_params {
    sb_dtype dtype;
} empty_params;

static sb_status prepare_empty(sb_node *node, sb_error *error) {
    return sb_node_element_type(node, "dtype", SB_F32, &((empty_params *)node->params)->dtype, error);
}

static sb_status infer_empty(sb_infer *infer) {
    sequence_fact(&infer->outputs[0], ((const empty_params *)infer->node->params)->dtype, SB_RANK_UNKNOWN, NULL);
    return SB_OK;
}

static sb_status eval_empty(sb_call *call) {
    sb_sequence *sequence;
    SB_TRY(sb_sequence_create(((const empty_params *)call->node->params)->dtype, 0, &sequence, call->error));
    return publish(call, sequence);
}

/* ---- SequenceAt, SequenceErase, SequenceInsert, SequenceLength ---- */

/* The position in input `index`, counted from the end when negative; `otherwise` when the input is omitted. */
static sb_status position(const sb_call *call, int index, int64_t length, int64_t otherwise, int64_t *result) {
    int64_t value = 0;
    int count;
    *result = otherwise;
    if (sb_call_input(call, index) == NULL)
        return SB_OK;
    SB_TRY(sb_move_integers(call, index, 1, &value, &count));
    if (count != 1 || value < -length || value >= length)
        return sb_call_fail(call, SB_ERROR_SHAPE, "position %lld is outside a sequence of %lld", (long long)value,
                            (long long)length);
    *result = value < 0 ? value + length : value;
    return SB_OK;
}

static sb_status check_position(const sb_infer *infer, int index) {
    const sb_fact *fact;
    return sb_infer_input(infer, index) != NULL ? sb_infer_require(infer, index, SB_SET_INDEX, &fact) : SB_OK;
}

static sb_status infer_at(sb_infer *infer) {
    const sb_fact *sequence;
    SB_TRY(require_sequence(infer, 0, &sequence));
    SB_TRY(check_position(infer, 1));
    sb_fact_set_tensor(&infer->outputs[0], sequence->dtype, sequence->rank, sequence->dims);
    return SB_OK;
}

static sb_status eval_at(sb_call *call) {
    const sb_sequence *sequence = call_sequence(call, 0);
    int64_t at;
    SB_TRY(position(call, 1, sequence->count, 0, &at));
    if (at >= sequence->count)
        return sb_call_fail(call, SB_ERROR_SHAPE, "the sequence is empty");
    call->outputs[0] = sb_value_retain(sequence->items[at]);
    return SB_OK;
}

static sb_status infer_erase(sb_infer *infer) {
    const sb_fact *sequence;
    SB_TRY(require_sequence(infer, 0, &sequence));
    SB_TRY(check_position(infer, 1));
    sequence_fact(&infer->outputs[0], sequence->dtype, sequence->rank, sequence->dims);
    return SB_OK;
}

static sb_status eval_erase(sb_call *call) {
    const sb_sequence *sequence = call_sequence(call, 0);
    sb_sequence *shorter;
    int64_t at;
    if (sequence->count == 0)
        return sb_call_fail(call, SB_ERROR_SHAPE, "the sequence is empty");
    SB_TRY(position(call, 1, sequence->count, sequence->count - 1, &at));
    SB_TRY(sb_sequence_create(sequence->dtype, sequence->count - 1, &shorter, call->error));
    for (int64_t i = 0; i < shorter->count; i++)
        shorter->items[i] = sb_value_retain(sequence->items[i < at ? i : i + 1]);
    return publish(call, shorter);
}

static sb_status infer_insert(sb_infer *infer) {
    const sb_fact *sequence, *item;
    SB_TRY(require_sequence(infer, 0, &sequence));
    SB_TRY(sb_infer_require(infer, 1, SB_SET_ANY, &item));
    SB_TRY(check_position(infer, 2));
    sequence_fact(&infer->outputs[0], sequence->dtype, sequence->rank, sequence->dims);
    return join_item(infer, &infer->outputs[0], 1, item);
}

static sb_status eval_insert(sb_call *call) {
    const sb_sequence *sequence = call_sequence(call, 0);
    sb_sequence *longer;
    int64_t at, value = 0;
    int count = 1;
    /* The place behind the last item counts as a position too. */
    at = sequence->count;
    if (sb_call_input(call, 2) != NULL) {
        SB_TRY(sb_move_integers(call, 2, 1, &value, &count));
        at = value < 0 ? value + sequence->count : value;
    }
    if (count != 1 || at < 0 || at > sequence->count)
        return sb_call_fail(call, SB_ERROR_SHAPE, "position %lld is outside a sequence of %lld", (long long)value,
                            (long long)sequence->count);
    SB_TRY(sb_sequence_create(sequence->dtype, sequence->count + 1, &longer, call->error));
    for (int64_t i = 0; i < longer->count; i++)
        longer->items[i] = sb_value_retain(i == at ? call->inputs[1] : sequence->items[i < at ? i : i - 1]);
    return publish(call, longer);
}

static sb_status infer_length(sb_infer *infer) {
    const sb_fact *sequence;
    SB_TRY(require_sequence(infer, 0, &sequence));
    sb_fact_set_tensor(&infer->outputs[0], SB_S64, 0, NULL);
    return SB_OK;
}

static sb_status eval_length(sb_call *call) {
    sb_tensor *output;
    SB_TRY(sb_call_output(call, 0, &output));
    *(int64_t *)(void *)output->data = call_sequence(call, 0)->count;
    return SB_OK;
}

/* ---- ConcatFromSequence ---- */

typedef struct join_params {
    int64_t axis, new_axis;
} join_params;

static sb_status prepare_join(sb_node *node, sb_error *error) {
    join_params *params = node->params;
    if (!sb_node_has(node, "axis"))
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: ConcatFromSequence needs an axis", node->name);
    SB_TRY(sb_node_int(node, "axis", 0, &params->axis, error));
    return sb_node_int(node, "new_axis", 0, &params->new_axis, error);
}

static sb_status infer_join(sb_infer *infer) {
    const join_params *params = infer->node->params;
    const sb_fact *sequence;
    SB_TRY(require_sequence(infer, 0, &sequence));
    if (sequence->rank == SB_RANK_UNKNOWN) {
        sb_fact_set_tensor(&infer->outputs[0], sequence->dtype, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    int axis, from = 0, rank = sequence->rank + (params->new_axis != 0 ? 1 : 0);
    sb_dim dims[SB_MAX_RANK + 1];
    SB_TRY(sb_infer_axis(infer, params->axis, rank, &axis));
    if (rank > SB_MAX_RANK)
        return sb_infer_fail(infer, SB_ERROR_UNSUPPORTED, "the result has rank %d; %d is the most", rank, SB_MAX_RANK);
    for (int d = 0; d < rank; d++) {
        dims[d] = d == axis ? sb_infer_fresh(infer, 0, d) : sequence->dims[from];
        from += d != axis || params->new_axis == 0;
    }
    sb_fact_set_tensor(&infer->outputs[0], sequence->dtype, rank, dims);
    return SB_OK;
}

/* The extents of the items set side by side along `axis`. */
static sb_status joined_extents(const sb_call *call, const sb_sequence *sequence, int axis, int64_t *dims) {
    const sb_tensor *first = sequence->items[0].tensor;
    memcpy(dims, first->dims, sizeof first->dims);
    for (int64_t i = 1; i < sequence->count; i++) {
        const sb_tensor *item = sequence->items[i].tensor;
        bool fits = item->rank == first->rank;
        for (int d = 0; d < first->rank && fits; d++)
            fits = d == axis || item->dims[d] == first->dims[d];
        if (!fits || __builtin_add_overflow(dims[axis], item->dims[axis], &dims[axis]))
            return sb_call_fail(call, SB_ERROR_SHAPE, "item %lld does not fit item 0 along axis %d", (long long)i,
                                axis);
    }
    return SB_OK;
}

static sb_status join_items(sb_call *call, const sb_sequence *sequence, int axis) {
    int64_t dims[SB_MAX_RANK], start = 0;
    const sb_tensor *first = sequence->items[0].tensor;
    sb_tensor *output = NULL, *part;
    SB_TRY(joined_extents(call, sequence, axis, dims));
    sb_status status = sb_move_output(call, 0, first->dtype, first->rank, dims, &output);
    for (int64_t i = 0; i < sequence->count && status == SB_OK; i++) {
        const sb_tensor *item = sequence->items[i].tensor;
        status = sb_tensor_slice(output, axis, start, item->dims[axis], 1, &part, call->error);
        if (status == SB_OK) {
            sb_tensor_copy_elements(part, item);
            sb_tensor_release(part);
        }
        start += item->dims[axis];
    }
    return sb_move_finish(call, 0, output, status);
}

static sb_status stack_items(sb_call *call, const sb_sequence *sequence, int axis) {
    sb_control_list list = {0};
    sb_tensor *stack = NULL;
    sb_status status = SB_OK;
    for (int64_t i = 0; i < sequence->count && status == SB_OK; i++)
        status = sb_control_append(&list, sb_tensor_retain(sequence->items[i].tensor), call->error);
    if (status == SB_OK)
        status = sb_control_stack(call, NULL, axis, false, (int64_t)list.count, list.items, &stack);
    sb_control_clear(&list);
    return status == SB_OK ? sb_call_set_output(call, 0, stack) : status;
}

static sb_status eval_join(sb_call *call) {
    const join_params *params = call->node->params;
    const sb_sequence *sequence = call_sequence(call, 0);
    int axis;
    if (sequence->count == 0)
        return sb_call_fail(call, SB_ERROR_SHAPE, "an empty sequence has no shape");
    for (int64_t i = 0; i < sequence->count; i++) {
        if (sequence->items[i].kind != SB_KIND_TENSOR)
            return sb_call_fail(call, SB_ERROR_SHAPE, "item %lld is no tensor", (long long)i);
    }
    int rank = sequence->items[0].tensor->rank + (params->new_axis != 0 ? 1 : 0);
    SB_TRY(sb_move_axis(call, params->axis, rank, &axis));
    return params->new_axis != 0 ? stack_items(call, sequence, axis) : join_items(call, sequence, axis);
}

/* ---- SplitToSequence ---- */

typedef struct split_params {
    int64_t axis, keep;
} split_params;

static sb_status prepare_split(sb_node *node, sb_error *error) {
    split_params *params = node->params;
    SB_TRY(sb_node_int(node, "axis", 0, &params->axis, error));
    return sb_node_int(node, "keepdims", 1, &params->keep, error);
}

static sb_status infer_split(sb_infer *infer) {
    const split_params *params = infer->node->params;
    const sb_fact *input, *sizes;
    int axis;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, &input));
    if (sb_infer_input(infer, 1) != NULL)
        SB_TRY(sb_infer_require(infer, 1, SB_SET_INDEX, &sizes));
    sequence_fact(&infer->outputs[0], input->dtype, SB_RANK_UNKNOWN, NULL);
    if (input->rank == SB_RANK_UNKNOWN)
        return SB_OK;
    SB_TRY(sb_infer_axis(infer, params->axis, input->rank, &axis));
    /* With sizes the parts may differ in extent, and then nothing holds for each of them. */
    if (sb_infer_input(infer, 1) != NULL)
        return SB_OK;
    sb_dim dims[SB_MAX_RANK];
    int rank = 0;
    for (int d = 0; d < input->rank; d++) {
        if (d != axis)
            dims[rank++] = input->dims[d];
        else if (params->keep != 0)
            dims[rank++] = sb_dim_constant(infer->scope, 1);
    }
    sequence_fact(&infer->outputs[0], input->dtype, rank, dims);
    return SB_OK;
}

/* The sizes of the parts: as listed; all `size` but the last for a scalar; 1 without sizes. The
 * caller frees them. */
static sb_status part_sizes(const sb_call *call, int64_t extent, int64_t **sizes, int64_t *count) {
    const sb_tensor *list = sb_call_input(call, 1);
    if (list != NULL && list->rank != 0) {
        SB_TRY(sb_move_indices(call, list, sizes, count));
        int64_t sum = 0;
        bool fits = true;
        for (int64_t i = 0; i < *count && fits; i++)
            fits = (*sizes)[i] >= 0 && !__builtin_add_overflow(sum, (*sizes)[i], &sum);
        if (fits && sum == extent)
            return SB_OK;
        sb_free(*sizes);
        *sizes = NULL;
        return sb_call_fail(call, SB_ERROR_SHAPE, "the sizes do not add up to the extent %lld", (long long)extent);
    }
    int64_t size[1] = {1};
    int one;
    if (list != NULL)
        SB_TRY(sb_move_integers(call, 1, 1, size, &one));
    if (size[0] < 1)
        return sb_call_fail(call, SB_ERROR_SHAPE, "parts of %lld", (long long)size[0]);
    *count = extent / size[0] + (extent % size[0] != 0);
    *sizes = sb_allocate_array((size_t)*count, sizeof **sizes);
    if (*sizes == NULL)
        return sb_fail_memory(call->error, (size_t)*count * sizeof **sizes);
    for (int64_t i = 0; i < *count; i++)
        (*sizes)[i] = (i + 1) * size[0] <= extent ? size[0] : extent % size[0];
    return SB_OK;
}

static sb_status cut(const sb_call *call, int axis, int64_t start, int64_t size, bool drop, sb_value *item) {
    sb_tensor *part, *view;
    SB_TRY(sb_tensor_slice(sb_call_input(call, 0), axis, start, size, 1, &part, call->error));
    if (drop) {
        int64_t dims[SB_MAX_RANK];
        for (int d = 0; d + 1 < part->rank; d++)
            dims[d] = part->dims[d < axis ? d : d + 1];
        sb_status status = sb_tensor_reshape(part, part->rank - 1, dims, &view, call->error);
        sb_tensor_release(part);
        if (status != SB_OK)
            return status;
        part = view;
    }
    *item = sb_value_of_tensor(part);
    return SB_OK;
}

static sb_status eval_split(sb_call *call) {
    const split_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    int64_t *sizes, count, start = 0;
    int axis;
    SB_TRY(sb_move_axis(call, params->axis, input->rank, &axis));
    SB_TRY(part_sizes(call, input->dims[axis], &sizes, &count));
    sb_sequence *sequence = NULL;
    sb_status status = sb_sequence_create(input->dtype, count, &sequence, call->error);
    bool drop = params->keep == 0 && sb_call_input(call, 1) == NULL;
    for (int64_t i = 0; i < count && status == SB_OK; i++) {
        status = cut(call, axis, start, sizes[i], drop, &sequence->items[i]);
        start += sizes[i];
    }
    sb_free(sizes);
    if (sequence != NULL)
        publish(call, sequence);
    return status;
}

/* ---- SequenceMap ---- */

typedef struct map_params {
    sb_control_params control;
    sb_graph *body;
} map_params;

static sb_status prepare_map(sb_node *node, sb_error *error) {
    map_params *params = node->params;
    SB_TRY(sb_control_prepare(node, "body", node->input_count - node->capture_count, &params->body, error));
    if (params->body->output_count != (size_t)node->output_count)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: SequenceMap has %d outputs, its body %zu", node->name,
                       node->output_count, params->body->output_count);
    return SB_OK;
}

static sb_status map_facts(sb_infer *infer, int inputs, sb_fact *facts) {
    const map_params *params = infer->node->params;
    const sb_fact *input;
    SB_TRY(require_sequence(infer, 0, &input));
    for (int i = 0; i < inputs; i++) {
        input = sb_infer_input(infer, i);
        if (input == NULL)
            return sb_infer_fail(infer, SB_ERROR_INVALID_MODEL, "input %d is missing", i);
        if (input->kind == SB_KIND_SEQUENCE)
            sb_fact_set_tensor(&facts[i], input->dtype, input->rank, input->dims);
        else
            SB_TRY(sb_fact_copy(&facts[i], input, infer->error));
    }
    SB_TRY(sb_infer_graph(infer, params->body, inputs, facts, facts + inputs));
    for (int i = 0; i < infer->output_count; i++) {
        const sb_fact *item = &facts[inputs + i];
        if (item->kind != SB_KIND_TENSOR)
            return sb_infer_fail(infer, SB_ERROR_SHAPE, "output %d of the body is no tensor", i);
        /* What the data decide inside the body may differ from item to item. */
        bool closed = true;
        for (int d = 0; d < item->rank; d++)
            closed = closed && sb_control_closed(infer, item->dims[d]);
        sequence_fact(&infer->outputs[i], item->dtype, closed ? item->rank : SB_RANK_UNKNOWN, item->dims);
    }
    return SB_OK;
}

static sb_status infer_map(sb_infer *infer) {
    int inputs = infer->input_count - infer->node->capture_count;
    size_t all = (size_t)(inputs + infer->output_count);
    sb_fact *facts = sb_allocate_array(all, sizeof *facts);
    if (facts == NULL)
        return sb_fail_memory(infer->error, all * sizeof *facts);
    sb_status status = map_facts(infer, inputs, facts);
    for (size_t i = 0; i < all; i++)
        sb_fact_clear(&facts[i]);
    sb_free(facts);
    return status;
}

static sb_status map_items(sb_call *call, int inputs, sb_value *values) {
    const map_params *params = call->node->params;
    const sb_sequence *first = call_sequence(call, 0);
    for (int i = 0; i < inputs; i++) {
        if (call->inputs[i].kind == SB_KIND_SEQUENCE && call_sequence(call, i)->count != first->count)
            return sb_call_fail(call, SB_ERROR_SHAPE, "input %d has %lld items, input 0 has %lld", i,
                                (long long)call_sequence(call, i)->count, (long long)first->count);
    }
    for (int o = 0; o < call->output_count; o++) {
        /* Facts of outputs that nobody wants are empty; the dtype of such a list does not matter. */
        sb_dtype dtype = sb_call_wants(call, o) ? call->facts[o].dtype : SB_F32;
        sb_sequence *sequence;
        SB_TRY(sb_sequence_create(dtype, first->count, &sequence, call->error));
        sb_value_release(&call->outputs[o]);
        call->outputs[o] = (sb_value){.kind = SB_KIND_SEQUENCE, .sequence = sequence};
    }
    for (int64_t item = 0; item < first->count; item++) {
        for (int i = 0; i < inputs; i++)
            values[i] =
                call->inputs[i].kind == SB_KIND_SEQUENCE ? call_sequence(call, i)->items[item] : call->inputs[i];
        sb_value *results = values + inputs;
        SB_TRY(sb_call_run_graph(call, params->body, inputs, values, results));
        for (int o = 0; o < call->output_count; o++)
            call->outputs[o].sequence->items[item] = results[o];
    }
    return SB_OK;
}

static sb_status eval_map(sb_call *call) {
    int inputs = call->input_count - call->node->capture_count;
    size_t all = (size_t)(inputs + call->output_count);
    sb_value *values = sb_allocate_array(all, sizeof *values);
    if (values == NULL)
        return sb_fail_memory(call->error, all * sizeof *values);
    sb_status status = map_items(call, inputs, values);
    sb_free(values);
    return status;
}

/* ---- Optional… ---- */

static sb_status infer_optional(sb_infer *infer) {
    const sb_fact *input = sb_infer_input(infer, 0);
    if (input != NULL)
        return sb_fact_copy(&infer->outputs[0], input, infer->error);
    infer->outputs[0].optional = true;
    return SB_OK;
}

static sb_status eval_optional(sb_call *call) {
    if (call->input_count > 0)
        call->outputs[0] = sb_value_retain(call->inputs[0]);
    return SB_OK;
}

static sb_status infer_get(sb_infer *infer) {
    const sb_fact *input = sb_infer_input(infer, 0);
    if (input == NULL || (input->kind == SB_KIND_NONE && input->optional))
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the optional is empty");
    SB_TRY(sb_fact_copy(&infer->outputs[0], input, infer->error));
    infer->outputs[0].optional = false;
    return SB_OK;
}

static sb_status eval_get(sb_call *call) {
    if (call->inputs[0].kind == SB_KIND_NONE)
        return sb_call_fail(call, SB_ERROR_SHAPE, "the optional is empty");
    call->outputs[0] = sb_value_retain(call->inputs[0]);
    return SB_OK;
}

static sb_status infer_has(sb_infer *infer) {
    const sb_fact *input = sb_infer_input(infer, 0);
    sb_fact *output = &infer->outputs[0];
    sb_fact_set_tensor(output, SB_BOOL, 0, NULL);
    bool nothing = input == NULL || (input->kind == SB_KIND_NONE && input->optional);
    const uint8_t has = nothing ? 0 : 1;
    /* Nothing known, or something that may be missing: only the data decide. */
    if (!nothing && (input->optional || input->kind == SB_KIND_NONE))
        return SB_OK;
    return sb_tensor_from_data(SB_BOOL, 0, NULL, &has, &output->constant, infer->error);
}

static sb_status eval_has(sb_call *call) {
    sb_tensor *output;
    SB_TRY(sb_call_output_shape(call, 0, SB_BOOL, 0, NULL, &output));
    *output->data = call->input_count > 0 && call->inputs[0].kind != SB_KIND_NONE;
    return SB_OK;
}

#define SEQUENCE_OP(op_name, least, most, op_flags, params, prepare_function, infer_function, eval_function)           \
    {                                                                                                                  \
        .name = op_name, .domain = "", .least_inputs = least, .most_inputs = most, .least_outputs = 1,                 \
        .most_outputs = 1, .flags = op_flags, .params_size = params, .prepare = prepare_function,                      \
        .infer = infer_function, .eval = eval_function                                                                 \
    }

const sb_op sb_ops_sequences[] = {
    SEQUENCE_OP("SequenceConstruct", 1, -1, SB_OP_KEEPS, 0, NULL, infer_construct, eval_construct),
    SEQUENCE_OP("SequenceEmpty", 0, 0, 0, sizeof(empty_params), prepare_empty, infer_empty, eval_empty),
    SEQUENCE_OP("SequenceAt", 2, 2, SB_OP_KEEPS, 0, NULL, infer_at, eval_at),
    SEQUENCE_OP("SequenceErase", 1, 2, SB_OP_KEEPS, 0, NULL, infer_erase, eval_erase),
    SEQUENCE_OP("SequenceInsert", 2, 3, SB_OP_KEEPS, 0, NULL, infer_insert, eval_insert),
    SEQUENCE_OP("SequenceLength", 1, 1, 0, 0, NULL, infer_length, eval_length),
    SEQUENCE_OP("ConcatFromSequence", 1, 1, 0, sizeof(join_params), prepare_join, infer_join, eval_join),
    SEQUENCE_OP("SplitToSequence", 1, 2, SB_OP_KEEPS, sizeof(split_params), prepare_split, infer_split, eval_split),
    {.name = "SequenceMap",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = -1,
     .least_outputs = 1,
     .most_outputs = -1,
     .flags = SB_OP_CONTROL,
     .params_size = sizeof(map_params),
     .prepare = prepare_map,
     .infer = infer_map,
     .eval = eval_map},
    SEQUENCE_OP("Optional", 0, 1, SB_OP_KEEPS, 0, NULL, infer_optional, eval_optional),
    SEQUENCE_OP("OptionalGetElement", 1, 1, SB_OP_VIEW | SB_OP_KEEPS, 0, NULL, infer_get, eval_get),
    SEQUENCE_OP("OptionalHasElement", 0, 1, 0, 0, NULL, infer_has, eval_has),
    {0},
};
