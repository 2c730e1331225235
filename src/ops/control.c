/* If, and what the operators with graphs of their own share. */
#include "ops/control.h"

#include <string.h>

#include "base/allocation.h"
#include "ops/list.h"

/* ---- graphs ---- */

static int graph_height(const iv_graph *graph) {
    int height = 0;
    for (size_t i = 0; i < graph->node_count; i++) {
        const iv_node *node = graph->nodes[i];
        if ((node->op->flags & IV_OP_CONTROL) == 0)
            continue;
        int inner = ((const iv_control_params *)node->params)->height;
        height = inner > height ? inner : height;
    }
    return height;
}

iv_status iv_control_prepare(iv_node *node, const char *name, int inputs, iv_graph **graph,
                             iv_error *error) {
    iv_control_params *params = node->params;
    *graph = iv_node_graph(node, name);
    if (*graph == NULL)
        return iv_fail(error, IV_ERROR_INVALID_MODEL, "node %s (%s): the graph %s is missing",
                       node->name, node->op->name, name);
    if ((*graph)->input_count < (size_t)node->capture_count ||
        (inputs >= 0 && (*graph)->input_count != (size_t)(inputs + node->capture_count)))
        return iv_fail(error, IV_ERROR_INVALID_MODEL,
                       "node %s (%s): the graph %s takes %lld inputs where %d are given",
                       node->name, node->op->name, name,
                       (long long)(*graph)->input_count - node->capture_count, inputs);
    int height = graph_height(*graph) + 1;
    params->height = height > params->height ? height : params->height;
    return IV_OK;
}

/* ---- facts ---- */

static bool is_nothing(const iv_fact *fact) {
    return fact->kind == IV_KIND_NONE && fact->optional;
}

static void drop_values(iv_fact *fact) {
    iv_tensor_release(fact->constant);
    iv_free(fact->elements);
    fact->constant = NULL;
    fact->elements = NULL;
    fact->element_count = 0;
}

void iv_control_forget(iv_fact *fact) {
    drop_values(fact);
    if (fact->kind != IV_KIND_NONE)
        fact->rank = IV_RANK_UNKNOWN;
}

static bool same_values(const iv_fact *left, const iv_fact *right) {
    if (left->constant != NULL)
        return left->constant == right->constant ||
               (right->constant != NULL && iv_tensor_elements(left->constant) <= IV_FACT_ELEMENTS &&
                iv_tensor_equal(left->constant, right->constant));
    if (left->elements == NULL || right->elements == NULL ||
        left->element_count != right->element_count)
        return false;
    for (int64_t i = 0; i < left->element_count; i++) {
        if (!iv_dim_equal(left->elements[i], right->elements[i]))
            return false;
    }
    return true;
}

typedef struct symbol_search {
    const iv_infer *infer;
    bool all_found;
} symbol_search;

static void find_symbol(void *context, const char *name) {
    symbol_search *search = context;
    for (int i = 0; i < search->infer->input_count && search->all_found; i++) {
        const iv_fact *fact = search->infer->inputs[i];
        if (fact == NULL)
            continue;
        for (int d = 0; d < fact->rank; d++) {
            if (iv_dim_mentions(fact->dims[d], name))
                return;
        }
        for (int64_t e = 0; fact->elements != NULL && e < fact->element_count; e++) {
            if (iv_dim_mentions(fact->elements[e], name))
                return;
        }
    }
    search->all_found = false;
}

bool iv_control_closed(const iv_infer *infer, iv_dim dim) {
    symbol_search search = {infer, true};
    iv_dim_visit_symbols(dim, find_symbol, &search);
    return search.all_found;
}

/* Whether an extent of a repeated graph's state is already a symbol of its own, so that nothing can
 * contradict it. */
static bool is_widened(const iv_infer *infer, iv_dim dim) {
    return iv_dim_symbol_name(dim) != NULL && !iv_control_closed(infer, dim);
}

static void merge_shape(iv_infer *infer, int output, iv_fact *into, const iv_fact *other,
                        bool repeated, bool *changed) {
    if (into->rank == IV_RANK_UNKNOWN)
        return;
    bool open = into->rank != other->rank;
    for (int d = 0; d < into->rank && !open; d++) {
        if (iv_dim_equal(into->dims[d], other->dims[d]) ||
            (repeated && is_widened(infer, into->dims[d])))
            continue;
        *changed = true;
        /* A formula of a sequence holds for each of its tensors, so an extent that differs between
         * them has none. */
        open = into->kind == IV_KIND_SEQUENCE;
        if (!open)
            into->dims[d] = iv_infer_fresh(infer, output, d);
    }
    if (open) {
        into->rank = IV_RANK_UNKNOWN;
        *changed = true;
    }
}

/* Takes over a fact, with symbols of its own for what only the inside of a graph knows. */
static iv_status adopt(iv_infer *infer, int output, iv_fact *into, const iv_fact *other) {
    IV_TRY(iv_fact_copy(into, other, infer->error));
    into->optional = true;
    for (int d = 0; d < into->rank; d++) {
        if (iv_control_closed(infer, into->dims[d]))
            continue;
        if (into->kind == IV_KIND_SEQUENCE)
            into->rank = IV_RANK_UNKNOWN;
        else
            into->dims[d] = iv_infer_fresh(infer, output, d);
    }
    return IV_OK;
}

iv_status iv_control_merge(iv_infer *infer, int output, iv_fact *into, const iv_fact *other,
                           bool repeated, bool *changed) {
    if (is_nothing(other)) {
        *changed = *changed || !into->optional;
        into->optional = true;
        return IV_OK;
    }
    if (is_nothing(into)) {
        *changed = true;
        return adopt(infer, output, into, other);
    }
    if (into->kind == IV_KIND_NONE)
        return IV_OK;
    if (other->kind == IV_KIND_NONE) {
        *changed = true;
        iv_fact_clear(into);
        return IV_OK;
    }
    if (into->kind != other->kind || into->dtype != other->dtype) {
        char left[IV_FACT_TEXT_BYTES], right[IV_FACT_TEXT_BYTES];
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "output %d is either %s or %s", output,
                             iv_fact_text(into, left, sizeof left),
                             iv_fact_text(other, right, sizeof right));
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
    return IV_OK;
}

/* ---- values ---- */

iv_status iv_control_append(iv_control_list *list, iv_tensor *tensor, iv_error *error) {
    if (!iv_grow((void **)&list->items, &list->capacity, list->count + 1, sizeof *list->items)) {
        iv_tensor_release(tensor);
        return iv_fail_memory(error, (list->count + 1) * sizeof *list->items);
    }
    list->items[list->count++] = tensor;
    return IV_OK;
}

void iv_control_clear(iv_control_list *list) {
    for (size_t i = 0; i < list->count; i++)
        iv_tensor_release(list->items[i]);
    iv_free(list->items);
    *list = (iv_control_list){0};
}

/* The extents of one element of the stack: the first tensor's, or those the fact knows. */
static iv_status element_extents(const iv_call *call, const iv_fact *fact, int axis, int64_t count,
                                 iv_tensor *const *tensors, int *rank, int64_t *dims) {
    if (count == 0) {
        *rank = fact->rank == IV_RANK_UNKNOWN ? 0 : fact->rank - 1;
        for (int d = 0; d < *rank; d++) {
            dims[d] = 0;
            iv_dim_is_constant(fact->dims[d < axis ? d : d + 1], &dims[d]);
        }
        return IV_OK;
    }
    *rank = tensors[0]->rank;
    memcpy(dims, tensors[0]->dims, sizeof tensors[0]->dims);
    for (int64_t i = 1; i < count; i++) {
        char first[IV_DIMS_TEXT_BYTES], other[IV_DIMS_TEXT_BYTES];
        if (tensors[i]->rank != *rank || tensors[i]->dtype != tensors[0]->dtype ||
            memcmp(tensors[i]->dims, dims, (size_t)*rank * sizeof *dims) != 0)
            return iv_call_fail(
                call, IV_ERROR_SHAPE,
                "the graph gives %s the first time and %s in iteration %lld: they do not stack",
                iv_dims_text(*rank, dims, first),
                iv_dims_text(tensors[i]->rank, tensors[i]->dims, other), (long long)i);
    }
    return IV_OK;
}

static iv_status fill_stack(const iv_call *call, iv_tensor *stack, int axis, bool reverse,
                            int64_t count, iv_tensor *const *tensors) {
    int64_t element[IV_MAX_RANK];
    memcpy(element, stack->dims, sizeof element);
    element[axis] = 1;
    for (int64_t i = 0; i < count; i++) {
        int64_t strides[IV_MAX_RANK];
        for (int d = 0; d < stack->rank; d++)
            strides[d] = d < axis   ? tensors[i]->strides[d]
                         : d > axis ? tensors[i]->strides[d - 1]
                                    : 0;
        iv_tensor *part, *view;
        IV_TRY(iv_tensor_over(tensors[i]->storage, tensors[i]->data, tensors[i]->dtype, stack->rank,
                              element, strides, &view, call->error));
        iv_status status =
            iv_tensor_slice(stack, axis, reverse ? count - 1 - i : i, 1, 1, &part, call->error);
        if (status == IV_OK)
            iv_tensor_copy_elements(part, view);
        iv_tensor_release(view);
        if (status != IV_OK)
            return status;
        iv_tensor_release(part);
    }
    return IV_OK;
}

iv_status iv_control_stack(const iv_call *call, const iv_fact *fact, int axis, bool reverse,
                           int64_t count, iv_tensor *const *tensors, iv_tensor **stack) {
    int rank;
    int64_t element[IV_MAX_RANK] = {0}, dims[IV_MAX_RANK + 1];
    iv_dtype dtype = count != 0 ? tensors[0]->dtype : fact->dtype;
    IV_TRY(element_extents(call, fact, axis, count, tensors, &rank, element));
    if (rank + 1 > IV_MAX_RANK || axis < 0 || axis > rank)
        return iv_call_fail(call, IV_ERROR_UNSUPPORTED,
                            "tensors of rank %d cannot be stacked along axis %d", rank, axis);
    for (int d = 0; d <= rank; d++)
        dims[d] = d < axis ? element[d] : d > axis ? element[d - 1] : count;
    iv_tensor *filled;
    IV_TRY(iv_tensor_create_uninitialised(dtype, rank + 1, dims, &filled, call->error));
    iv_status status = fill_stack(call, filled, axis, reverse, count, tensors);
    if (status == IV_OK && dtype == IV_STRING) {
        status = iv_tensor_from_strings(
            rank + 1, dims, (const iv_string *)(const void *)filled->data, stack, call->error);
        iv_tensor_release(filled);
        return status;
    }
    if (status == IV_OK)
        *stack = filled;
    else
        iv_tensor_release(filled);
    return status;
}

/* ---- If ---- */

typedef struct if_params {
    iv_control_params control;
    iv_graph *then_branch, *else_branch;
} if_params;

static iv_status prepare_if(iv_node *node, iv_error *error) {
    if_params *params = node->params;
    IV_TRY(iv_control_prepare(node, "then_branch", 0, &params->then_branch, error));
    IV_TRY(iv_control_prepare(node, "else_branch", 0, &params->else_branch, error));
    size_t outputs = (size_t)node->output_count;
    if (params->then_branch->output_count != outputs ||
        params->else_branch->output_count != outputs)
        return iv_fail(error, IV_ERROR_INVALID_MODEL,
                       "node %s: If has %zu outputs, its branches %zu and %zu", node->name, outputs,
                       params->then_branch->output_count, params->else_branch->output_count);
    return IV_OK;
}

/* A branch that cannot have a shape with what is known is one that cannot be taken: the other
 * decides alone. */
static iv_status infer_both(iv_infer *infer) {
    const if_params *params = infer->node->params;
    iv_fact *others = iv_allocate_array((size_t)infer->output_count, sizeof *others);
    if (others == NULL)
        return iv_fail_memory(infer->error, (size_t)infer->output_count * sizeof *others);
    iv_status first = iv_infer_graph(infer, params->then_branch, 0, NULL, infer->outputs),
              second = first;
    if (first == IV_OK || first == IV_ERROR_SHAPE) {
        second = iv_infer_graph(infer, params->else_branch, 0, NULL, others);
        if (second == IV_ERROR_SHAPE && first == IV_OK) {
            for (int i = 0; i < infer->output_count; i++)
                drop_values(
                    &infer->outputs[i]); /* so that the branch is still run, and fails if taken */
            second = IV_OK;
        } else {
            for (int i = 0; i < infer->output_count && second == IV_OK; i++) {
                bool changed = false;
                if (first == IV_OK)
                    second =
                        iv_control_merge(infer, i, &infer->outputs[i], &others[i], false, &changed);
                else
                    second = iv_fact_copy(&infer->outputs[i], &others[i], infer->error);
                if (first != IV_OK)
                    drop_values(&infer->outputs[i]);
            }
        }
    }
    for (int i = 0; i < infer->output_count; i++)
        iv_fact_clear(&others[i]);
    iv_free(others);
    return second;
}

static iv_status infer_if(iv_infer *infer) {
    const if_params *params = infer->node->params;
    const iv_fact *condition;
    IV_TRY(iv_infer_require(infer, 0, IV_SET(IV_BOOL), &condition));
    if (condition->constant != NULL && iv_tensor_elements(condition->constant) == 1)
        return iv_infer_graph(
            infer, *condition->constant->data != 0 ? params->then_branch : params->else_branch, 0,
            NULL, infer->outputs);
    return infer_both(infer);
}

static iv_status eval_if(iv_call *call) {
    const if_params *params = call->node->params;
    const iv_tensor *condition = iv_call_input(call, 0);
    if (iv_tensor_elements(condition) != 1)
        return iv_call_fail(call, IV_ERROR_SHAPE, "the condition must be one element");
    return iv_call_run_graph(call,
                             *condition->data != 0 ? params->then_branch : params->else_branch, 0,
                             NULL, call->outputs);
}

const iv_op iv_ops_control[] = {
    {.name = "If",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = -1,
     .flags = IV_OP_CONTROL,
     .params_size = sizeof(if_params),
     .prepare = prepare_if,
     .infer = infer_if,
     .eval = eval_if},
    {0},
};
