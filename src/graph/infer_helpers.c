/* What the operators' `infer` functions share. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "graph/op.h"

const iv_fact *iv_infer_input(const iv_infer *infer, int index) {
    return index < infer->input_count - infer->node->capture_count ? infer->inputs[index] : NULL;
}

iv_status iv_infer_fail(const iv_infer *infer, iv_status status, const char *format, ...) {
    char message[IV_ERROR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return iv_fail(infer->error, status, "node %s (%s): %s", infer->node->name,
                   infer->node->op->name, message);
}

static char *dtype_set_text(uint32_t dtypes, char *text, size_t bytes) {
    size_t used = 0;
    text[0] = '\0';
    for (int dtype = 1; dtype < IV_DTYPE_COUNT; dtype++) {
        if ((dtypes & IV_SET(dtype)) != 0 && used < bytes)
            used += (size_t)snprintf(text + used, bytes - used, used == 0 ? "%s" : ", %s",
                                     iv_dtype_name((iv_dtype)dtype));
    }
    return text;
}

iv_status iv_infer_require(const iv_infer *infer, int index, uint32_t dtypes, const iv_fact **fact) {
    *fact = iv_infer_input(infer, index);
    if (*fact == NULL)
        return iv_infer_fail(infer, IV_ERROR_INVALID_MODEL, "input %d is missing", index);
    if ((*fact)->kind != IV_KIND_TENSOR)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "input %d is %s where a tensor is expected", index,
                             (*fact)->kind == IV_KIND_SEQUENCE ? "a sequence" : "nothing");
    if ((dtypes & IV_SET((*fact)->dtype)) == 0) {
        char allowed[160];
        return iv_infer_fail(infer, IV_ERROR_UNSUPPORTED,
                             "input %d has dtype %s; allowed are %s: put a Cast before it", index,
                             iv_dtype_name((*fact)->dtype),
                             dtype_set_text(dtypes, allowed, sizeof allowed));
    }
    return IV_OK;
}

/* Whether `other` is 1 wherever the symbol `dim` is. Where they broadcast at all, the result then is `dim`: if that is 1, so is the other, and
 * else the other equals it or is 1. So n broadcast with min(n, 512) is n: what a table of 512 positions is sliced to. */
static bool is_one_with(iv_dim other, iv_dim dim) {
    const char *name = iv_dim_symbol_name(dim);
    int64_t one = 1, value;
    return name != NULL && iv_dim_evaluate(other, &(iv_binding){1, &name, &one}, &value) && value == 1;
}

/* One extent of the result of broadcasting `left` with `right`. Two different formulas that may both be 1 leave it open. */
static iv_status broadcast_dim(iv_infer *infer, int output, int dimension, iv_dim left, iv_dim right,
                               iv_dim *result) {
    int64_t first = 0, second = 0;
    bool first_known = iv_dim_is_constant(left, &first), second_known = iv_dim_is_constant(right, &second);
    if (iv_dim_equal(left, right) || (second_known && second == 1))
        *result = left;
    else if (first_known && first == 1)
        *result = right;
    else if (first_known && second_known)
        return iv_infer_fail(infer, IV_ERROR_SHAPE,
                             "inputs do not broadcast: extents %lld and %lld meet in dimension %d",
                             (long long)first, (long long)second, dimension);
    else if (first_known || iv_dim_at_least(left, 2))
        *result = left; /* not 1, so the other must equal it or be 1 */
    else if (second_known || iv_dim_at_least(right, 2))
        *result = right;
    else if (is_one_with(right, left))
        *result = left;
    else if (is_one_with(left, right))
        *result = right;
    else
        *result = iv_infer_fresh(infer, output, dimension);
    return IV_OK;
}

iv_status iv_infer_broadcast(iv_infer *infer, int output, iv_dtype dtype, int count,
                             const iv_fact *const *facts) {
    int rank = 0;
    for (int i = 0; i < count; i++) {
        if (facts[i]->rank == IV_RANK_UNKNOWN) {
            iv_fact_set_tensor(&infer->outputs[output], dtype, IV_RANK_UNKNOWN, NULL);
            return IV_OK;
        }
        rank = facts[i]->rank > rank ? facts[i]->rank : rank;
    }
    iv_dim dims[IV_MAX_RANK];
    for (int d = 0; d < rank; d++)
        dims[d] = iv_dim_constant(infer->scope, 1);
    for (int i = 0; i < count; i++) {
        for (int d = rank - facts[i]->rank; d < rank; d++) {
            iv_dim other = facts[i]->dims[d - (rank - facts[i]->rank)];
            IV_TRY(broadcast_dim(infer, output, d, dims[d], other, &dims[d]));
        }
    }
    iv_fact_set_tensor(&infer->outputs[output], dtype, rank, dims);
    return iv_scope_check(infer->scope, infer->error);
}

void iv_infer_shape_of(iv_infer *infer, int output, const iv_fact *fact, iv_dtype dtype) {
    iv_fact_set_tensor(&infer->outputs[output], dtype, fact->rank, fact->dims);
}

iv_status iv_infer_axis(const iv_infer *infer, int64_t axis, int rank, int *normalised) {
    if (axis < -rank || axis >= rank)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "axis %lld is outside [-%d, %d)", (long long)axis,
                             rank, rank);
    *normalised = (int)(axis < 0 ? axis + rank : axis);
    return IV_OK;
}

static int64_t constant_integer(const iv_tensor *tensor, int64_t index) {
    const char *at =
        tensor->data + (tensor->rank == 0 ? 0 : index * tensor->strides[0]) *
                           (int64_t)iv_dtype_size(tensor->dtype);
    return tensor->dtype == IV_S32 ? *(const int32_t *)(const void *)at
                                   : *(const int64_t *)(const void *)at;
}

iv_status iv_infer_integers(const iv_infer *infer, int index, int limit, iv_dim *values, int *count,
                            bool *known) {
    const iv_fact *fact;
    IV_TRY(iv_infer_require(infer, index, IV_SET_INDEX, &fact));
    *known = false;
    *count = -1;
    if (fact->rank > 1)
        return iv_infer_fail(infer, IV_ERROR_SHAPE,
                             "input %d has rank %d where a list of integers is expected", index,
                             fact->rank);
    int64_t length = 1;
    if (fact->rank == IV_RANK_UNKNOWN || (fact->rank == 1 && !iv_dim_is_constant(fact->dims[0], &length)))
        return IV_OK;
    if (length > limit)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "input %d lists %lld integers; at most %d make sense",
                             index, (long long)length, limit);
    *count = (int)length;
    if (fact->constant != NULL) {
        for (int i = 0; i < *count; i++)
            values[i] = iv_dim_constant(infer->scope, constant_integer(fact->constant, i));
        *known = true;
    } else if (fact->elements != NULL) {
        memcpy(values, fact->elements, (size_t)*count * sizeof *values);
        *known = true;
    }
    return iv_scope_check(infer->scope, infer->error);
}

iv_status iv_infer_numbers(const iv_infer *infer, int index, int limit, int64_t *values, int *count,
                           bool *known) {
    const iv_fact *fact = iv_infer_input(infer, index);
    iv_dim *formulas = iv_allocate_array((size_t)limit, sizeof *formulas);
    if (formulas == NULL)
        return iv_fail_memory(infer->error, (size_t)limit * sizeof *formulas);
    iv_status status = iv_infer_integers(infer, index, limit, formulas, count, known);
    if (status == IV_OK && *known && fact != NULL) {
        for (int i = 0; i < *count; i++)
            *known = *known && iv_dim_is_constant(formulas[i], &values[i]);
    }
    iv_free(formulas);
    return status;
}

iv_status iv_infer_set_elements(iv_infer *infer, int output, int64_t count, const iv_dim *elements) {
    iv_dim *copy = iv_allocate_array((size_t)count, sizeof *copy);
    if (copy == NULL)
        return iv_fail_memory(infer->error, (size_t)count * sizeof *copy);
    if (count != 0)
        memcpy(copy, elements, (size_t)count * sizeof *copy);
    iv_fact *fact = &infer->outputs[output];
    iv_free(fact->elements);
    fact->elements = copy;
    fact->element_count = count;
    return IV_OK;
}

iv_dim iv_infer_fresh(iv_infer *infer, int output, int dimension) {
    char hint[96];
    snprintf(hint, sizeof hint, "%.64s.%d.%d", infer->node->name, output, dimension);
    return iv_dim_fresh(infer->scope, hint);
}

iv_status iv_infer_graph(const iv_infer *infer, const iv_graph *graph, int input_count,
                         const iv_fact *inputs, iv_fact *outputs) {
    int captures = infer->node->capture_count;
    if (graph->input_count != (size_t)(input_count + captures))
        return iv_infer_fail(infer, IV_ERROR_INVALID_MODEL,
                             "graph %s takes %zu inputs where %d are given", graph->name,
                             graph->input_count - (size_t)captures, input_count);
    iv_fact *facts = iv_allocate_array(graph->value_count, sizeof *facts);
    if (facts == NULL)
        return iv_fail_memory(infer->error, graph->value_count * sizeof *facts);
    iv_status status = IV_OK;
    for (size_t i = 0; i < graph->input_count && status == IV_OK; i++) {
        size_t captured = (size_t)(infer->input_count - captures) + (i - (size_t)input_count);
        const iv_fact *source = i < (size_t)input_count ? &inputs[i] : infer->inputs[captured];
        if (source != NULL)
            status = iv_fact_copy(&facts[graph->inputs[i]], source, infer->error);
    }
    if (status == IV_OK)
        status = iv_graph_infer(graph, infer->scope, facts, infer->error);
    for (size_t i = 0; i < graph->output_count && status == IV_OK; i++)
        status = iv_fact_copy(&outputs[i], &facts[graph->outputs[i]], infer->error);
    for (size_t i = 0; i < graph->value_count; i++)
        iv_fact_clear(&facts[i]);
    iv_free(facts);
    return status;
}
