/* Reductions and what is computed over rows: the axes of a row are bounded, all others independent. */
#include "ops/axes.h"
#include "ops/batch_normalization.h"
#include "ops/list.h"
#include "ops/normalization.h"
#include "ops/ordering.h"
#include "ops/reduce.h"
#include "ops/row_normalization.h"
#include "ops/softmax.h"
#include "rules/question.h"

#define REDUCED "the result is over all of it"
#define NORMALISED "its elements are normalised together"

/* ---- reductions ---- */

/* The axes as a bit set; false when they are known only when the node runs. */
static bool read_axes(const sb_axis_question *question, const sb_axes *axes, uint32_t *set) {
    int rank = sb_axis_asked(question)->rank;
    const sb_fact *list = axes->input >= 0 ? sb_axis_input(question, axes->input) : NULL;
    bool given = axes->input >= 0 && axes->input < question->node->input_count && question->inputs[axes->input] != NULL;
    int64_t count = given ? sb_axis_count(list) : axes->count, axis;
    *set = 0;
    for (int64_t i = 0; i < count; i++) {
        if (given && !sb_axis_number(list, i, &axis))
            return false;
        int resolved = sb_axis_resolve(given ? axis : axes->values[i], rank);
        if (resolved != SB_AXIS_NONE)
            *set |= UINT32_C(1) << resolved;
    }
    if (count == 0 && !axes->none_when_absent)
        *set = (UINT32_C(1) << rank) - 1;
    return count >= 0;
}

/* An axis that is kept, where those of `set` go or become 1. */
static sb_status keep_axis(const sb_axis_question *question, sb_axis_rule *answer, uint32_t set, bool keep) {
    int axis = question->axis;
    for (int d = 0; d < question->axis && !keep; d++)
        axis -= (int)(set >> d & 1);
    return sb_axis_independent(question, answer, axis);
}

static sb_status reduce(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_reduce_params *params = question->node->params;
    uint32_t set;
    if (question->input > 0)
        return sb_axis_fixed(answer);
    if (!read_axes(question, &params->axes, &set))
        return sb_axis_unknown(answer, "which axes are reduced is known only when the node runs");
    if ((set >> question->axis & 1) != 0)
        return sb_axis_bounded(question, answer, SB_AXIS_NONE, REDUCED);
    return keep_axis(question, answer, set, params->keep);
}

static sb_status arg_reduce(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_arg_params *params = question->node->params;
    int axis = sb_axis_resolve(params->axis, sb_axis_asked(question)->rank);
    if (question->axis == axis)
        return sb_axis_bounded(question, answer, SB_AXIS_NONE, REDUCED);
    return keep_axis(question, answer, UINT32_C(1) << axis, params->keep);
}

static sb_status cumulative(const sb_axis_question *question, sb_axis_rule *answer) {
    int64_t axis;
    if (question->input > 0)
        return sb_axis_fixed(answer);
    if (!sb_axis_number(sb_axis_input(question, 1), 0, &axis))
        return sb_axis_bounded(question, answer, question->axis, "the axis is known only when the node runs");
    if (sb_axis_resolve(axis, sb_axis_asked(question)->rank) == question->axis)
        return sb_axis_bounded(question, answer, question->axis, "each row adds to what came before");
    return sb_axis_independent(question, answer, question->axis);
}

/* ---- normalisations ---- */

static sb_status row_axis(const sb_axis_question *question, sb_axis_rule *answer, uint32_t set) {
    if ((set >> question->axis & 1) != 0)
        return sb_axis_bounded(question, answer, question->axis, NORMALISED);
    return sb_axis_independent(question, answer, question->axis);
}

static sb_status softmax(const sb_axis_question *question, sb_axis_rule *answer) {
    return row_axis(question, answer, sb_softmax_axes(question->node->params, sb_axis_asked(question)->rank));
}

static sb_status mean_variance(const sb_axis_question *question, sb_axis_rule *answer) {
    uint32_t set;
    if (!read_axes(question, question->node->params, &set))
        return sb_axis_unknown(answer, "which axes are normalised is known only when the node runs");
    return row_axis(question, answer, set);
}

static sb_status lp(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_lp_params *params = question->node->params;
    int axis = sb_axis_resolve(params->axis, sb_axis_asked(question)->rank);
    return row_axis(question, answer, axis >= 0 ? UINT32_C(1) << axis : 0);
}

static sb_status lrn(const sb_axis_question *question, sb_axis_rule *answer) {
    if (question->axis == 1)
        return sb_axis_bounded(question, answer, 1, "a window slides over the channels");
    return sb_axis_independent(question, answer, question->axis);
}

/* The statistics, outputs from 1 on, do not have the axes that are normalised. */
static sb_status first_output_only(const sb_axis_question *question, sb_axis_rule *answer) {
    for (int o = 1; answer->output_axes != NULL && o < question->node->output_count; o++)
        answer->output_axes[o] = SB_AXIS_NONE;
    return SB_OK;
}

static sb_status layer(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_norm_params *params = question->node->params;
    int rank = question->outputs[0].rank, axis = sb_axis_resolve(params->axis, rank);
    int aligned = rank - sb_axis_asked(question)->rank + question->axis;
    if (aligned >= axis && question->input > 0 &&
        !sb_dim_equal(sb_axis_extent(question), question->outputs[0].dims[aligned]))
        return sb_axis_fixed(answer);
    if (aligned >= axis) {
        sb_axis_bounded(question, answer, aligned,
                        question->input == 0 ? NORMALISED : "it goes with an axis that is normalised");
        return first_output_only(question, answer);
    }
    if (question->input == 0)
        return sb_axis_independent(question, answer, aligned);
    sb_axis_align(question, answer, aligned);
    return first_output_only(question, answer);
}

/* InstanceNormalization: each channel of each image is normalised. */
static sb_status instance(const sb_axis_question *question, sb_axis_rule *answer) {
    if (question->input > 0)
        return sb_axis_independent(question, answer, 1);
    if (question->axis > 1)
        return sb_axis_bounded(question, answer, question->axis, NORMALISED);
    return sb_axis_independent(question, answer, question->axis);
}

static sb_status group(const sb_axis_question *question, sb_axis_rule *answer) {
    if (question->input > 0 || question->axis == 1)
        return sb_axis_exact(answer, "the channels are divided into groups");
    return instance(question, answer);
}

/* Outputs from 1 on, and the inputs besides x, have one number per channel. */
static sb_status batch(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_batch_params *params = question->node->params;
    const sb_fact *x = sb_axis_input(question, 0);
    if (question->input > 0 && (x == NULL || x->rank < 2))
        return sb_axis_fixed(answer);
    if (question->input > 0 || question->axis == 1) {
        sb_axis_independent(question, answer, 0);
        if (answer->output_axes != NULL)
            answer->output_axes[0] = 1;
        return SB_OK;
    }
    if (params->training)
        sb_axis_bounded(question, answer, question->axis, NORMALISED);
    else
        sb_axis_independent(question, answer, question->axis);
    return first_output_only(question, answer);
}

#define REDUCE(op_name)                                                                                                \
    {                                                                                                                  \
        .op = {op_name}, .rule = reduce, .independent = "every other axis", .bounded = "axes that are reduced",        \
        .exact = "the list of axes"                                                                                    \
    }
#define ARG_REDUCE(op_name)                                                                                            \
    { .op = {op_name}, .rule = arg_reduce, .independent = "every other axis", .bounded = "the axis that is reduced" }
#define CUMULATIVE(op_name)                                                                                            \
    {                                                                                                                  \
        .op = {op_name}, .rule = cumulative, .independent = "every other axis", .bounded = "the axis",                 \
        .exact = "the axis, as a list of one"                                                                          \
    }
#define NORMALISE(op_name, rule_function)                                                                              \
    { .op = {op_name}, .rule = rule_function, .independent = "every other axis", .bounded = "axes that are normalised" }
#define LAYER(op_name)                                                                                                 \
    {                                                                                                                  \
        .op = {op_name}, .rule = layer, .independent = "every other axis",                                             \
        .bounded = "axes that are normalised, those of scale and bias with them",                                      \
        .exact = "extents of 1 of scale and bias that are repeated"                                                    \
    }

const sb_axes_entry sb_axes_rows[] = {
    REDUCE("ReduceSum"),
    REDUCE("ReduceMean"),
    REDUCE("ReduceMax"),
    REDUCE("ReduceMin"),
    REDUCE("ReduceProd"),
    REDUCE("ReduceL1"),
    REDUCE("ReduceL2"),
    REDUCE("ReduceSumSquare"),
    REDUCE("ReduceLogSum"),
    REDUCE("ReduceLogSumExp"),
    ARG_REDUCE("ArgMax"),
    ARG_REDUCE("ArgMin"),
    CUMULATIVE("CumSum"),
    CUMULATIVE("CumProd"),
    NORMALISE("Softmax", softmax),
    NORMALISE("LogSoftmax", softmax),
    NORMALISE("Hardmax", softmax),
    NORMALISE("MeanVarianceNormalization", mean_variance),
    NORMALISE("LpNormalization", lp),
    {.op = {"LRN"}, .rule = lrn, .independent = "every other axis", .bounded = "channels"},
    LAYER("LayerNormalization"),
    LAYER("RMSNormalization"),
    {.op = {"InstanceNormalization"}, .rule = instance, .independent = "batch, channels", .bounded = "space"},
    {.op = {"GroupNormalization"}, .rule = group, .independent = "batch", .bounded = "space", .exact = "channels"},
    {.op = {"BatchNormalization"},
     .rule = batch,
     .independent = "channels; in inference every axis",
     .bounded = "batch and space in training",
     .exact = "the numbers of an input without channels"},
    {.op = {NULL}},
};
