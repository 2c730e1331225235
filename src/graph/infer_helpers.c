/* What the operators' `infer` functions share. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "graph/op.h"

const sb_fact *sb_infer_input(const sb_infer *infer, int index) {
    return index < infer->input_count - infer->node->capture_count ? infer->inputs[index] : NULL;
}

sb_status sb_infer_fail(const sb_infer *infer, sb_status status, const char *format, ...) {
    char message[SB_ERROR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return sb_fail(infer->error, status, "node %s (%s): %s", infer->node->name, infer->node->op->name, message);
}

_Static_assert(SB_DTYPE_COUNT <= 32, "a set of dtypes is a bit for each");

static void append_name(char *text, size_t bytes, size_t *used, const char *name) {
    if (*used < bytes)
        *used += (size_t)snprintf(text + *used, bytes - *used, *used == 0 ? "%s" : ", %s", name);
}

/* The names one by one; of all the small types together, none. */
static char *dtype_set_text(uint32_t dtypes, char *text, size_t bytes) {
    size_t used = 0;
    bool all_small = (dtypes & SB_SET_SMALL) == SB_SET_SMALL;
    text[0] = '\0';
    for (int dtype = 1; dtype < SB_DTYPE_COUNT; dtype++) {
        if ((dtypes & SB_SET(dtype)) != 0 && !(all_small && sb_dtype_is_small((sb_dtype)dtype)))
            append_name(text, bytes, &used, sb_dtype_name((sb_dtype)dtype));
    }
    if (all_small)
        append_name(text, bytes, &used, "all types of 2 to 8 bits");
    return text;
}

sb_status sb_infer_require(const sb_infer *infer, int index, uint32_t dtypes, const sb_fact **fact) {
    *fact = sb_infer_input(infer, index);
    if (*fact == NULL)
        return sb_infer_fail(infer, SB_ERROR_INVALID_MODEL, "input %d is missing", index);
    if ((*fact)->kind != SB_KIND_TENSOR)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d is %s where a tensor is expected", index,
                             (*fact)->kind == SB_KIND_SEQUENCE ? "a sequence" : "nothing");
    if ((dtypes & SB_SET((*fact)->dtype)) == 0) {
        char allowed[160];
        return sb_infer_fail(infer, SB_ERROR_UNSUPPORTED, "input %d has dtype %s; allowed are %s: put a Cast before it",
                             index, sb_dtype_name((*fact)->dtype), dtype_set_text(dtypes, allowed, sizeof allowed));
    }
    return SB_OK;
}

/* Whether `other` is 1 wherever the symbol `dim` is. Where they broadcast at all, the result then is `dim`: if that is
 * 1, so is the other, and else the other equals it or is 1. So n broadcast with min(n, 512) is n: what a table of 512
 * positions is sliced to. */
static bool is_one_with(sb_dim other, sb_dim dim) {
    const char *name = sb_dim_symbol_name(dim);
    int64_t one = 1, value;
    return name != NULL && sb_dim_evaluate(other, &(sb_binding){1, &name, &one}, &value) && value == 1;
}

/* One extent of the result of broadcasting `left` with `right`. Two different formulas
 * that may both be 1 leave it open. */
static sb_status broadcast_dim(sb_infer *infer, int output, int dimension, sb_dim left, sb_dim right, sb_dim *result) {
    int64_t first = 0, second = 0;
    bool first_known = sb_dim_is_constant(left, &first), second_known = sb_dim_is_constant(right, &second);
    if (sb_dim_equal(left, right) || (second_known && second == 1))
        *result = left;
    else if (first_known && first == 1)
        *result = right;
    else if (first_known && second_known)
        return sb_infer_fail(infer, SB_ERROR_SHAPE,
                             "inputs do not broadcast: extents %lld and %lld meet in dimension %d", (long long)first,
                             (long long)second, dimension);
    else if (first_known || sb_dim_at_least(left, 2))
        *result = left; /* not 1, so the other must equal it or be 1 */
    else if (second_known || sb_dim_at_least(right, 2))
        *result = right;
    else if (is_one_with(right, left))
        *result = left;
    else if (is_one_with(left, right))
        *result = right;
    else
        *result = sb_infer_fresh(infer, output, dimension);
    return SB_OK;
}

sb_status sb_infer_broadcast(sb_infer *infer, int output, sb_dtype dtype, int count, const sb_fact *const *facts) {
    int rank = 0;
    for (int i = 0; i < count; i++) {
        if (facts[i]->rank == SB_RANK_UNKNOWN) {
            sb_fact_set_tensor(&infer->outputs[output], dtype, SB_RANK_UNKNOWN, NULL);
            return SB_OK;
        }
        rank = facts[i]->rank > rank ? facts[i]->rank : rank;
    }
    sb_dim dims[SB_MAX_RANK];
    for (int d = 0; d < rank; d++)
        dims[d] = sb_dim_constant(infer->scope, 1);
    for (int i = 0; i < count; i++) {
        for (int d = rank - facts[i]->rank; d < rank; d++) {
            sb_dim other = facts[i]->dims[d - (rank - facts[i]->rank)];
            SB_TRY(broadcast_dim(infer, output, d, dims[d], other, &dims[d]));
        }
    }
    sb_fact_set_tensor(&infer->outputs[output], dtype, rank, dims);
    return sb_scope_check(infer->scope, infer->error);
}

void sb_infer_shape_of(sb_infer *infer, int output, const sb_fact *fact, sb_dtype dtype) {
    sb_fact_set_tensor(&infer->outputs[output], dtype, fact->rank, fact->dims);
}

sb_status sb_infer_axis(const sb_infer *infer, int64_t axis, int rank, int *normalised) {
    if (axis < -rank || axis >= rank)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "axis %lld is outside [-%d, %d)", (long long)axis, rank, rank);
    *normalised = (int)(axis < 0 ? axis + rank : axis);
    return SB_OK;
}

static int64_t constant_integer(const sb_tensor *tensor, int64_t index) {
    const char *at =
        tensor->data + (tensor->rank == 0 ? 0 : index * tensor->strides[0]) * (int64_t)sb_dtype_size(tensor->dtype);
    return tensor->dtype == SB_S32 ? *(const int32_t *)(const void *)at : *(const int64_t *)(const void *)at;
}

sb_status sb_infer_integers(const sb_infer *infer, int index, int limit, sb_dim *values, int *count, bool *known) {
    const sb_fact *fact;
    SB_TRY(sb_infer_require(infer, index, SB_SET_INDEX, &fact));
    *known = false;
    *count = -1;
    if (fact->rank > 1)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d has rank %d where a list of integers is expected", index,
                             fact->rank);
    int64_t length = 1;
    if (fact->rank == SB_RANK_UNKNOWN || (fact->rank == 1 && !sb_dim_is_constant(fact->dims[0], &length)))
        return SB_OK;
    if (length > limit)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "input %d lists %lld integers; at most %d make sense", index,
                             (long long)length, limit);
    *count = (int)length;
    if (fact->constant != NULL) {
        for (int i = 0; i < *count; i++)
            values[i] = sb_dim_constant(infer->scope, constant_integer(fact->constant, i));
        *known = true;
    } else if (fact->elements != NULL) {
        memcpy(values, fact->elements, (size_t)*count * sizeof *values);
        *known = true;
    }
    return sb_scope_check(infer->scope, infer->error);
}

sb_status sb_infer_numbers(const sb_infer *infer, int index, int limit, int64_t *values, int *count, bool *known) {
    const sb_fact *fact = sb_infer_input(infer, index);
    sb_dim *formulas = sb_allocate_array((size_t)limit, sizeof *formulas);
    if (formulas == NULL)
        return sb_fail_memory(infer->error, (size_t)limit * sizeof *formulas);
    sb_status status = sb_infer_integers(infer, index, limit, formulas, count, known);
    if (status == SB_OK && *known && fact != NULL) {
        for (int i = 0; i < *count; i++)
            *known = *known && sb_dim_is_constant(formulas[i], &values[i]);
    }
    sb_free(formulas);
    return status;
}

sb_status sb_infer_set_elements(sb_infer *infer, int output, int64_t count, const sb_dim *elements) {
    sb_dim *copy = sb_allocate_array((size_t)count, sizeof *copy);
    if (copy == NULL)
        return sb_fail_memory(infer->error, (size_t)count * sizeof *copy);
    if (count != 0)
        memcpy(copy, elements, (size_t)count * sizeof *copy);
    sb_fact *fact = &infer->outputs[output];
    sb_free(fact->elements);
    fact->elements = copy;
    fact->element_count = count;
    return SB_OK;
}

sb_dim sb_infer_fresh(sb_infer *infer, int output, int dimension) {
    char hint[96];
    snprintf(hint, sizeof hint, "%.64s.%d.%d", infer->node->name, output, dimension);
    return sb_dim_fresh(infer->scope, hint);
}

sb_status sb_infer_graph(const sb_infer *infer, const sb_graph *graph, int input_count, const sb_fact *inputs,
                         sb_fact *outputs) {
    int captures = infer->node->capture_count;
    if (graph->input_count != (size_t)(input_count + captures))
        return sb_infer_fail(infer, SB_ERROR_INVALID_MODEL, "graph %s takes %zu inputs where %d are given", graph->name,
                             graph->input_count - (size_t)captures, input_count);
    sb_fact *facts = sb_allocate_array(graph->value_count, sizeof *facts);
    if (facts == NULL)
        return sb_fail_memory(infer->error, graph->value_count * sizeof *facts);
    sb_status status = SB_OK;
    for (size_t i = 0; i < graph->input_count && status == SB_OK; i++) {
        size_t captured = (size_t)(infer->input_count - captures) + (i - (size_t)input_count);
        const sb_fact *source = i < (size_t)input_count ? &inputs[i] : infer->inputs[captured];
        if (source != NULL)
            status = sb_fact_copy(&facts[graph->inputs[i]], source, infer->error);
    }
    if (status == SB_OK)
        status = sb_graph_infer(graph, infer->scope, facts, infer->error);
    for (size_t i = 0; i < graph->output_count && status == SB_OK; i++)
        status = sb_fact_copy(&outputs[i], &facts[graph->outputs[i]], infer->error);
    for (size_t i = 0; i < graph->value_count; i++)
        sb_fact_clear(&facts[i]);
    sb_free(facts);
    return status;
}
