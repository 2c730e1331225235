/* Elements chosen by index, condition or order. */
#include "ops/gather.h"
#include "ops/list.h"
#include "ops/ordering.h"
#include "ops/scatter.h"
#include "ops/selection.h"
#include "rules/question.h"

#define INDEXED "indices are checked against it, and negative ones count from its end"
#define TUPLE "its extent is a number of axes"

/* ---- Gather, GatherElements, GatherND ---- */

static sb_status gather(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_gather_params *params = question->node->params;
    const sb_fact *data = sb_axis_input(question, 0), *indices = sb_axis_input(question, 1);
    if (data == NULL || indices == NULL)
        return sb_axis_unknown(answer, "the rank of an input is not known");
    int axis = sb_axis_resolve(params->axis, data->rank);
    if (question->input == 1)
        return sb_axis_independent(question, answer, axis + question->axis);
    if (question->axis == axis)
        return sb_axis_bounded(question, answer, SB_AXIS_NONE, INDEXED);
    return sb_axis_independent(question, answer, question->axis + (question->axis < axis ? 0 : indices->rank - 1));
}

/* The data may reach further than the indices do. */
static sb_status gather_elements(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_gather_params *params = question->node->params;
    const sb_fact *indices = sb_axis_input(question, 1);
    if (question->input == 1)
        return sb_axis_independent(question, answer, question->axis);
    if (question->axis == sb_axis_resolve(params->axis, sb_axis_asked(question)->rank))
        return sb_axis_bounded(question, answer, SB_AXIS_NONE, INDEXED);
    if (indices == NULL || !sb_dim_equal(indices->dims[question->axis], sb_axis_extent(question)))
        return sb_axis_bounded(question, answer, SB_AXIS_NONE, "it is read as far as the indices go");
    return sb_axis_independent(question, answer, question->axis);
}

static sb_status gather_nd(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_gather_params *params = question->node->params;
    const sb_fact *indices = sb_axis_input(question, 1);
    int64_t shared = params->axis, tuple;
    if (indices == NULL || indices->rank == 0 || !sb_dim_is_constant(indices->dims[indices->rank - 1], &tuple))
        return sb_axis_unknown(answer, "how many axes are indexed is not known");
    if (question->input == 1 && question->axis == indices->rank - 1)
        return sb_axis_exact(answer, TUPLE);
    if (question->input == 1 || question->axis < shared)
        return sb_axis_independent(question, answer, question->axis);
    if (question->axis < shared + tuple)
        return sb_axis_bounded(question, answer, SB_AXIS_NONE, INDEXED);
    return sb_axis_independent(question, answer, (int)(question->axis - shared - tuple) + indices->rank - 1);
}

/* ---- Scatter, ScatterElements, ScatterND ---- */

#define WRITES "an update behind it would be written"

static sb_status scatter_elements(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_scatter_params *params = question->node->params;
    if (question->input > 0)
        return sb_axis_bounded(question, answer, SB_AXIS_NONE, WRITES);
    if (question->axis == sb_axis_resolve(params->axis, sb_axis_asked(question)->rank))
        return sb_axis_bounded(question, answer, question->axis, INDEXED);
    return sb_axis_independent(question, answer, question->axis);
}

/* data: [indexed axes, slice axes]; indices: [updates, tuple]; updates: [updates, slice axes]. */
static sb_status scatter_nd(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_fact *indices = sb_axis_input(question, 1);
    int64_t tuple;
    if (indices == NULL || indices->rank == 0 || !sb_dim_is_constant(indices->dims[indices->rank - 1], &tuple))
        return sb_axis_unknown(answer, "how many axes are indexed is not known");
    if (question->input == 1 && question->axis == indices->rank - 1)
        return sb_axis_exact(answer, TUPLE);
    if (question->input == 0 && question->axis < tuple)
        return sb_axis_bounded(question, answer, question->axis, INDEXED);
    if (question->input == 0)
        return sb_axis_independent(question, answer, question->axis);
    if (question->axis < indices->rank - 1)
        return sb_axis_bounded(question, answer, SB_AXIS_NONE, WRITES);
    return sb_axis_independent(question, answer, question->axis - (indices->rank - 1) + (int)tuple);
}

/* ---- by condition ---- */

static sb_status compress(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_selection_params *params = question->node->params;
    const sb_fact *data = sb_axis_input(question, 0);
    bool other = params->has_axis && data != NULL && question->input == 0 &&
                 question->axis != sb_axis_resolve(params->axis, data->rank);
    if (other)
        return sb_axis_independent(question, answer, question->axis);
    return sb_axis_exact(answer, "the data decide how many elements stay");
}

static sb_status data_decide(const sb_axis_question *question, sb_axis_rule *answer) {
    return sb_axis_exact(answer, "the data decide the extents of the output");
}

static sb_status one_hot(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_selection_params *params = question->node->params;
    if (question->input > 0)
        return sb_axis_fixed(answer);
    int axis = sb_axis_resolve(params->axis, sb_axis_asked(question)->rank + 1);
    return sb_axis_independent(question, answer, question->axis + (question->axis < axis ? 0 : 1));
}

/* ---- by order ---- */

static sb_status topk(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_topk_params *params = question->node->params;
    if (question->input > 0)
        return sb_axis_fixed(answer);
    if (question->axis == sb_axis_resolve(params->axis, sb_axis_asked(question)->rank))
        return sb_axis_bounded(question, answer, SB_AXIS_NONE, "the largest of all are chosen");
    return sb_axis_independent(question, answer, question->axis);
}

#define SCATTER_ELEMENTS(op_name)                                                                                      \
    {                                                                                                                  \
        .op = {op_name}, .rule = scatter_elements, .checked = 2, .independent = "every other axis of the data",        \
        .bounded = "the indexed axis; indices and updates"                                                             \
    }

const sb_axes_entry sb_axes_indexing[] = {
    {.op = {"Gather"},
     .rule = gather,
     .checked = 2,
     .independent = "every axis of the indices, every other axis of the data",
     .bounded = "the indexed axis"},
    {.op = {"GatherElements"},
     .rule = gather_elements,
     .checked = 2,
     .independent = "every axis of the indices, every other axis of the data",
     .bounded = "the indexed axis, and those where the data reach beyond the indices"},
    {.op = {"GatherND"},
     .rule = gather_nd,
     .checked = 2,
     .independent = "batch, indices, axes of a slice",
     .bounded = "indexed axes",
     .exact = "the last axis of the indices"},
    SCATTER_ELEMENTS("Scatter"),
    SCATTER_ELEMENTS("ScatterElements"),
    {.op = {"ScatterND"},
     .rule = scatter_nd,
     .checked = 2,
     .independent = "axes of a slice",
     .bounded = "indexed axes; indices and updates",
     .exact = "the last axis of the indices"},
    {.op = {"Compress"},
     .rule = compress,
     .independent = "every other axis",
     .exact = "the axis that is compressed; the condition"},
    {.op = {"NonZero"}, .rule = data_decide, .exact = "every axis"},
    {.op = {"Unique"}, .rule = data_decide, .exact = "every axis"},
    {.op = {"OneHot"}, .rule = one_hot, .independent = "every axis of the indices", .exact = "depth and values"},
    {.op = {"TopK"},
     .rule = topk,
     .independent = "every other axis",
     .bounded = "the axis that is ordered",
     .exact = "k, as a list of one"},
    {.op = {NULL}},
};
