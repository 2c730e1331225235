/* The same elements in another shape, and values that only depend on shapes. */
#include "ops/list.h"
#include "rules/question.h"

/* ---- Reshape and its like ---- */

/* The numbers of elements before each dimension, and after the last: [rank + 1] formulas of one scope. */
typedef struct products {
    int rank;
    sb_dim before[SB_MAX_RANK + 1];
} products;

static products multiply_up(sb_scope *scope, const sb_fact *fact) {
    products result = {.rank = fact->rank, .before = {sb_dim_constant(scope, 1)}};
    for (int d = 0; d < fact->rank; d++)
        result.before[d + 1] = sb_dim_multiply(scope, result.before[d], fact->dims[d]);
    return result;
}

static bool has_zero(const sb_fact *fact) {
    int64_t extent;
    for (int d = 0; d < fact->rank; d++) {
        if (sb_dim_is_constant(fact->dims[d], &extent) && extent == 0)
            return true;
    }
    return false;
}

/* The last output dimension that begins where the input's dimension `axis` begins, or -1.
 * Extents of 1 before it are skipped. */
static int same_beginning(const products *from, const products *to, int axis) {
    int found = -1;
    for (int d = 0; d < to->rank; d++) {
        if (sb_dim_equal(from->before[axis], to->before[d]))
            found = d;
    }
    return found;
}

/* The first dimensions after `axis` and `target` at which both sides have come equally far. */
static void same_end(const products *from, const products *to, int axis, int target, int *from_end, int *to_end) {
    for (*from_end = axis + 1; *from_end < from->rank; ++*from_end) {
        for (*to_end = target + 1; *to_end <= to->rank; ++*to_end) {
            if (sb_dim_equal(from->before[*from_end], to->before[*to_end]))
                return;
        }
    }
    *to_end = to->rank;
}

static bool shares_any(sb_dim extent, const sb_fact *fact, int first, int end) {
    for (int d = first; d < end; d++) {
        if (sb_axis_shares(extent, fact->dims[d]))
            return true;
    }
    return false;
}

#define MERGED "its rows are not one after the other once the axis is merged with those before it"

/* In row-major order, n rows of an axis are n times the elements of a row, one after the other, if all extents before
 * it in the group of dimensions that is reshaped are 1. They stay the first ones of the group, and are whole rows of
 * the output's dimension there, if no other extent of the group depends on n. */
static sb_status follow_elements(const sb_axis_question *question, sb_axis_rule *answer, const products *from,
                                 const products *to) {
    const sb_fact *input = sb_axis_asked(question), *output = &question->outputs[0];
    int target = same_beginning(from, to, question->axis), from_end, to_end;
    int64_t number;
    if (target < 0)
        return sb_axis_exact(answer, MERGED);
    sb_dim extent = input->dims[question->axis];
    bool fixed = sb_dim_is_constant(extent, &number);
    if (fixed && number == 1)
        return sb_axis_unknown(answer, "where an extent of 1 goes is not told apart");
    same_end(from, to, question->axis, target, &from_end, &to_end);
    if (!fixed && shares_any(extent, input, question->axis + 1, from_end))
        return sb_axis_exact(answer, "it is merged with another axis of an extent that changes with it");
    if (!fixed && (shares_any(extent, output, target + 1, to_end) || !sb_axis_shares(extent, output->dims[target])))
        return sb_axis_exact(answer, "its rows become part of rows of the output");
    return sb_axis_independent(question, answer, target);
}

static sb_status reshape(const sb_axis_question *question, sb_axis_rule *answer) {
    sb_scope *scope;
    if (question->input > 0)
        return sb_axis_fixed(answer);
    if (has_zero(sb_axis_asked(question)) || has_zero(&question->outputs[0]))
        return sb_axis_unknown(answer, "an extent is 0");
    SB_TRY(sb_scope_create(&scope, question->error));
    products from = multiply_up(scope, sb_axis_asked(question)), to = multiply_up(scope, &question->outputs[0]);
    sb_status status = sb_scope_check(scope, question->error);
    if (status == SB_OK)
        status = follow_elements(question, answer, &from, &to);
    else if (status != SB_ERROR_OUT_OF_MEMORY)
        status = sb_axis_unknown(answer, "the number of elements is beyond all bounds");
    sb_scope_destroy(scope);
    return status;
}

static sb_status transpose(const sb_axis_question *question, sb_axis_rule *answer) {
    int64_t count;
    const int64_t *order;
    SB_TRY(sb_node_ints(question->node, "perm", &count, &order, question->error));
    if (!sb_node_has(question->node, "perm"))
        return sb_axis_independent(question, answer, sb_axis_asked(question)->rank - 1 - question->axis);
    for (int64_t d = 0; d < count; d++) {
        if (order[d] == question->axis)
            return sb_axis_independent(question, answer, (int)d);
    }
    return sb_axis_unknown(answer, "the permutation does not name it");
}

static sb_status expand(const sb_axis_question *question, sb_axis_rule *answer) {
    return question->input > 0 ? sb_axis_fixed(answer) : sb_axis_broadcast(question, answer);
}

/* ---- same shape ---- */

static sb_status same_axis(const sb_axis_question *question, sb_axis_rule *answer) {
    return question->input > 0 ? sb_axis_fixed(answer) : sb_axis_independent(question, answer, question->axis);
}

/* ---- values of shapes ---- */

static sb_status extent_itself(const sb_axis_question *question, sb_axis_rule *answer) {
    int64_t rank = sb_axis_asked(question)->rank;
    int first = sb_axis_resolve(sb_axis_attribute(question, "start", 0), (int)rank);
    int64_t end = sb_axis_attribute(question, "end", rank);
    bool shape = question->entry->number != 0;
    if (shape && ((first >= 0 && question->axis < first) || question->axis >= (end < 0 ? end + rank : end)))
        return sb_axis_independent(question, answer, SB_AXIS_NONE);
    return sb_axis_bounded(question, answer, SB_AXIS_NONE, "the used extent is the result");
}

#define RESHAPE(op_name, shapes, lists)                                                                                \
    {                                                                                                                  \
        .op = {op_name}, .rule = reshape, .extents = shapes,                                                           \
        .independent = "axes that stay, and the first of those that are merged or cut",                                \
        .exact = "axes merged behind others" lists                                                                     \
    }

const sb_axes_entry sb_axes_views[] = {
    {.op = {"Identity"}, .rule = same_axis, .independent = "every axis"},
    {.op = {"EyeLike"}, .rule = same_axis, .independent = "every axis"},
    RESHAPE("Reshape", 2, "; the shape"),
    RESHAPE("Flatten", 0, ""),
    RESHAPE("Squeeze", 0, "; the list of axes"),
    RESHAPE("Unsqueeze", 0, "; the list of axes"),
    {.op = {"Transpose"}, .rule = transpose, .independent = "every axis"},
    {.op = {"Expand"},
     .rule = expand,
     .extents = 2,
     .independent = "axes that are not repeated",
     .exact = "extents of 1 that are repeated; the shape"},
    {.op = {"Shape"},
     .rule = extent_itself,
     .number = 1,
     .independent = "axes outside of start and end",
     .bounded = "every other axis"},
    {.op = {"Size"}, .rule = extent_itself, .bounded = "every axis"},
    {.op = {"Constant"}, .rule = sb_axis_all_fixed},
    {.op = {"ConstantOfShape"}, .rule = sb_axis_all_fixed, .extents = 1, .exact = "the shape"},
    {.op = {"Range"}, .rule = sb_axis_all_fixed, .extents = 2, .exact = "bounds and step, where they are lists of one"},
    {.op = {NULL}},
};
