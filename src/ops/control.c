/* If, and what the operators with graphs of their own share. */
#include "ops/control.h"

#include <string.h>

#include "base/allocation.h"
#include "ops/list.h"

/* ---- graphs ---- */

static int graph_height(const sb_graph *graph) {
    int height = 0;
    for (size_t i = 0; i < graph->node_count; i++) {
        const sb_node *node = graph->nodes[i];
        if ((node->op->flags & SB_OP_CONTROL) == 0)
            continue;
        int inner = ((const sb_control_params *)node->params)->height;
        height = inner > height ? inner : height;
    }
    return height;
}

sb_status sb_control_prepare(sb_node *node, const char *name, int inputs, sb_graph **graph, sb_error *error) {
    sb_control_params *params = node->params;
    *graph = sb_node_graph(node, name);
    if (*graph == NULL)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (%s): the graph %s is missing", node->name,
                       node->op->name, name);
    if ((*graph)->input_count < (size_t)node->capture_count ||
        (inputs >= 0 && (*graph)->input_count != (size_t)(inputs + node->capture_count)))
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (%s): the graph %s takes %lld inputs where %d are given",
                       node->name, node->op->name, name, (long long)(*graph)->input_count - node->capture_count,
                       inputs);
    int height = graph_height(*graph) + 1;
    params->height = height > params->height ? height : params->height;
    return SB_OK;
}

/* ---- facts ---- */

static bool is_nothing(const sb_fact *fact) {
    return fact->kind == SB_KIND_NONE && fact->optional;
}

static void drop_values(sb_fact *fact) {
    sb_tensor_release(fact->constant);
    sb_free(fact->elements);
    fact->constant = NULL;
    fact->elements = NULL;
    fact->element_count = 0;
}

void sb_control_forget(sb_fact *fact) {
    drop_values(fact);
    if (fact->kind != SB_KIND_NONE)
        fact->rank = SB_RANK_UNKNOWN;
}

static bool same_values(const sb_fact *left, const sb_fact *right) {
    if (left->constant != NULL)
        return left->constant == right->constant ||
               (right->constant != NULL && sb_tensor_elements(left->constant) <= SB_FACT_ELEMENTS &&
                sb_tensor_equal(left->constant, right->constant));
    if (left->elements == NULL || right->elements == NULL || left->element_count != right->element_count)
        return false;
    for (int64_t i = 0; i < left->element_count; i++) {
        if (!sb_dim_equal(left->elements[i], right->elements[i]))
            return false;
    }
    return true;
}

typedef struct symbol_search {
    const sb_infer *infer;
    bool all_found;
} symbol_search;

static void find_symbol(void *context, const char *name) {
    symbol_search *search = context;
    for (int i = 0; i < search->infer->input_count && search->all_found; i++) {
        const sb_fact *fact = search->infer->inputs[i];
        if (fact == NULL)
            continue;
        for (int d = 0; d < fact->rank; d++) {
            if (sb_dim_mentions(fact->dims[d], name))
                return;
        }
        for (int64_t e = 0; fact->elements != NULL && e < fact->element_count; e++) {
            if (sb_dim_mentions(fact->elements[e], name))
                return;
        }
    }
    search->all_found = false;
}

bool sb_control_closed(const sb_infer *infer, sb_dim dim) {
    symbol_search search = {infer, true};
    sb_dim_visit_symbols(dim, find_symbol, &search);
    return search.all_found;
}

/* Whether an extent of a repeated graph's state is already a symbol of its own, so that nothing can contradict it. */
static bool is_widened(const sb_infer *infer, sb_dim dim) {
    return sb_dim_symbol_name(dim) != NULL && !sb_control_closed(infer, dim);
}

static void merge_shape(sb_infer *infer, int output, sb_fact *into, const sb_fact *other, bool repeated,
                        bool *changed) {
    if (into->rank == SB_RANK_UNKNOWN)
        return;
    bool open = into->rank != other->rank;
    for (int d = 0; d < into->rank && !open; d++) {
        if (sb_dim_equal(into->dims[d], other->dims[d]) || (repeated && is_widened(infer, into->dims[d])))
            continue;
        *changed = true;
        /* A formula of a sequence holds for each of its tensors, so an extent that differs between
         * them has none. */
        open = into->kind == SB_KIND_SEQUENCE;
        if (!open)
            into->dims[d] = sb_infer_fresh(infer, output, d);
    }
    if (open) {
        into->rank = SB_RANK_UNKNOWN;
        *changed = true;
    }
}

/* Takes over a fact, with symbols of its own for what only the inside of a graph knows. */
static sb_status adopt(sb_infer *infer, int output, sb_fact *into, const sb_fact *other) {
    SB_TRY(sb_fact_copy(into, other, infer->error));
    into->optional = true;
    for (int d = 0; d < into->rank; d++) {
        if (sb_control_closed(infer, into->dims[d]))
            continue;
        if (into->kind == SB_KIND_SEQUENCE)
            into->rank = SB_RANK_UNKNOWN;
        else
            into->dims[d] = sb_infer_fresh(infer, output, d);
    }
    return SB_OK;
}

sb_status sb_control_merge(sb_infer *infer, int output, sb_fact *into, const sb_fact *other, bool repeated,
                           bool *changed) {
    if (is_nothing(other)) {
        *changed = *changed || !into->optional;
        into->optional = true;
        return SB_OK;
    }
    if (is_nothing(into)) {
        *changed = true;
        return adopt(infer, output, into, other);
    }
    if (into->kind == SB_KIND_NONE)
        return SB_OK;
    if (other->kind == SB_KIND_NONE) {
        *changed = true;
        sb_fact_clear(into);
        return SB_OK;
    }
    if (into->kind != other->kind || into->dtype != other->dtype) {
        char left[SB_FACT_TEXT_BYTES], right[SB_FACT_TEXT_BYTES];
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "output %d is either %s or %s", output,
                             sb_fact_text(into, left, sizeof left), sb_fact_text(other, right, sizeof right));
    }
    if (other->optional && !into->optional) {
        into->optional = true;
        *changed = true;
    }
    if ((into->constant != NULL || into->elements != NULL) && !same_values(into, other)) {
        drop_values(into);
        *changed = true;
    }
    merge_shape(infer, output, into, other, repeated, changed);
    return SB_OK;
}

/* ---- values ---- */

sb_status sb_control_append(sb_control_list *list, sb_tensor *tensor, sb_error *error) {
    if (!sb_grow((void **)&list->items, &list->capacity, list->count + 1, sizeof *list->items)) {
        sb_tensor_release(tensor);
        return sb_fail_memory(error, (list->count + 1) * sizeof *list->items);
    }
    list->items[list->count++] = tensor;
    return SB_OK;
}

void sb_control_clear(sb_control_list *list) {
    for (size_t i = 0; i < list->count; i++)
        sb_tensor_release(list->items[i]);
    sb_free(list->items);
    *list = (sb_control_list){0};
}

/* The extents of one element of the stack: the first tensor's, or those the fact knows. */
static sb_status element_extents(const sb_call *call, const sb_fact *fact, int axis, int64_t count,
                                 sb_tensor *const *tensors, int *rank, int64_t *dims) {
    if (count == 0) {
        *rank = fact->rank == SB_RANK_UNKNOWN ? 0 : fact->rank - 1;
        for (int d = 0; d < *rank; d++) {
            dims[d] = 0;
            sb_dim_is_constant(fact->dims[d < axis ? d : d + 1], &dims[d]);
        }
        return SB_OK;
    }
    *rank = tensors[0]->rank;
    memcpy(dims, tensors[0]->dims, sizeof tensors[0]->dims);
    for (int64_t i = 1; i < count; i++) {
        char first[SB_DIMS_TEXT_BYTES], other[SB_DIMS_TEXT_BYTES];
        if (tensors[i]->rank != *rank || tensors[i]->dtype != tensors[0]->dtype ||
            memcmp(tensors[i]->dims, dims, (size_t)*rank * sizeof *dims) != 0)
            return sb_call_fail(call, SB_ERROR_SHAPE,
                                "the graph gives %s the first time and %s in iteration %lld: they do not stack",
                                sb_dims_text(*rank, dims, first),
                                sb_dims_text(tensors[i]->rank, tensors[i]->dims, other), (long long)i);
    }
    return SB_OK;
}

static sb_status fill_stack(const sb_call *call, sb_tensor *stack, int axis, bool reverse, int64_t count,
                            sb_tensor *const *tensors) {
    int64_t element[SB_MAX_RANK];
    memcpy(element, stack->dims, sizeof element);
    element[axis] = 1;
    for (int64_t i = 0; i < count; i++) {
        int64_t strides[SB_MAX_RANK];
        for (int d = 0; d < stack->rank; d++)
            strides[d] = d < axis ? tensors[i]->strides[d] : d > axis ? tensors[i]->strides[d - 1] : 0;
        sb_tensor *part, *view;
        SB_TRY(sb_tensor_over(tensors[i]->storage, tensors[i]->data, tensors[i]->dtype, stack->rank, element, strides,
                              &view, call->error));
        sb_status status = sb_tensor_slice(stack, axis, reverse ? count - 1 - i : i, 1, 1, &part, call->error);
        if (status == SB_OK)
            sb_tensor_copy_elements(part, view);
        sb_tensor_release(view);
        if (status != SB_OK)
            return status;
        sb_tensor_release(part);
    }
    return SB_OK;
}

sb_status sb_control_stack(const sb_call *call, const sb_fact *fact, int axis, bool reverse, int64_t count,
                           sb_tensor *const *tensors, sb_tensor **stack) {
    int rank;
    int64_t element[SB_MAX_RANK] = {0}, dims[SB_MAX_RANK + 1];
    sb_dtype dtype = count != 0 ? tensors[0]->dtype : fact->dtype;
    SB_TRY(element_extents(call, fact, axis, count, tensors, &rank, element));
    if (rank + 1 > SB_MAX_RANK || axis < 0 || axis > rank)
        return sb_call_fail(call, SB_ERROR_UNSUPPORTED, "tensors of rank %d cannot be stacked along axis %d", rank,
                            axis);
    for (int d = 0; d <= rank; d++)
        dims[d] = d < axis ? element[d] : d > axis ? element[d - 1] : count;
    sb_tensor *filled;
    SB_TRY(sb_tensor_create_uninitialised(dtype, rank + 1, dims, &filled, call->error));
    sb_status status = fill_stack(call, filled, axis, reverse, count, tensors);
    if (status == SB_OK && dtype == SB_STRING) {
        status =
            sb_tensor_from_strings(rank + 1, dims, (const sb_string *)(const void *)filled->data, stack, call->error);
        sb_tensor_release(filled);
        return status;
    }
    if (status == SB_OK)
        *stack = filled;
    else
        sb_tensor_release(filled);
    return status;
}

/* ---- If ---- */

typedef struct if_params {
    sb_control_params control;
    sb_graph *then_branch, *else_branch;
} if_params;

static sb_status prepare_if(sb_node *node, sb_error *error) {
    if_params *params = node->params;
    SB_TRY(sb_control_prepare(node, "then_branch", 0, &params->then_branch, error));
    SB_TRY(sb_control_prepare(node, "else_branch", 0, &params->else_branch, error));
    size_t outputs = (size_t)node->output_count;
    if (params->then_branch->output_count != outputs || params->else_branch->output_count != outputs)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: If has %zu outputs, its branches %zu and %zu",
                       node->name, outputs, params->then_branch->output_count, params->else_branch->output_count);
    return SB_OK;
}

/* A branch that cannot have a shape with what is known is one that cannot be taken: the other decides alone. */
static sb_status infer_both(sb_infer *infer) {
    const if_params *params = infer->node->params;
    sb_fact *others = sb_allocate_array((size_t)infer->output_count, sizeof *others);
    if (others == NULL)
        return sb_fail_memory(infer->error, (size_t)infer->output_count * sizeof *others);
    sb_status first = sb_infer_graph(infer, params->then_branch, 0, NULL, infer->outputs), second = first;
    if (first == SB_OK || first == SB_ERROR_SHAPE) {
        second = sb_infer_graph(infer, params->else_branch, 0, NULL, others);
        if (second == SB_ERROR_SHAPE && first == SB_OK) {
            for (int i = 0; i < infer->output_count; i++)
                drop_values(&infer->outputs[i]); /* so that the branch is still run, and fails if taken */
            second = SB_OK;
        } else {
            for (int i = 0; i < infer->output_count && second == SB_OK; i++) {
                bool changed = false;
                if (first == SB_OK)
                    second = sb_control_merge(infer, i, &infer->outputs[i], &others[i], false, &changed);
                else
                    second = sb_fact_copy(&infer->outputs[i], &others[i], infer->error);
                if (first != SB_OK)
                    drop_values(&infer->outputs[i]);
            }
        }
    }
    for (int i = 0; i < infer->output_count; i++)
        sb_fact_clear(&others[i]);
    sb_free(others);
    return second;
}

static sb_status infer_if(sb_infer *infer) {
    const if_params *params = infer->node->params;
    const sb_fact *condition;
    SB_TRY(sb_infer_require(infer, 0, SB_SET(SB_BOOL), &condition));
    if (condition->constant != NULL && sb_tensor_elements(condition->constant) == 1)
        return sb_infer_graph(infer, *condition->constant->data != 0 ? params->then_branch : params->else_branch, 0,
                              NULL, infer->outputs);
    return infer_both(infer);
}

static sb_status eval_if(sb_call *call) {
    const if_params *params = call->node->params;
    const sb_tensor *condition = sb_call_input(call, 0);
    if (sb_tensor_elements(condition) != 1)
        return sb_call_fail(call, SB_ERROR_SHAPE, "the condition must be one element");
    return sb_call_run_graph(call, *condition->data != 0 ? params->then_branch : params->else_branch, 0, NULL,
                             call->outputs);
}

/* Both branches give a variable's next version as one more output. */
static bool pass_if(int version, const sb_attributes *attributes, size_t inputs, size_t outputs, sb_passage *passage) {
    (void)version, (void)attributes, (void)inputs;
    *passage = (sb_passage){.graph_output = outputs, .node_output = outputs};
    return true;
}

const sb_op sb_ops_control[] = {
    {.name = "If",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = -1,
     .flags = SB_OP_CONTROL,
     .params_size = sizeof(if_params),
     .prepare = prepare_if,
     .infer = infer_if,
     .eval = eval_if,
     .passage = pass_if},
    {0},
};
