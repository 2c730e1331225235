/* Pools and resizes: [batch, channels, space]. */
#include "ops/list.h"
#include "ops/resize.h"
#include "rules/question.h"

#include <string.h>

#define SLIDES "windows slide over it"

static bool wants_indices(const sb_axis_question *question) {
    return question->node->output_count > 1 && question->node->outputs[1] != SB_NO_VALUE;
}

static sb_status pool(const sb_axis_question *question, sb_axis_rule *answer) {
    if (question->axis > 1)
        return sb_axis_bounded(question, answer, question->axis, SLIDES);
    if (question->axis == 1 && wants_indices(question))
        return sb_axis_bounded(question, answer, question->axis, "the indices count through all channels");
    return sb_axis_independent(question, answer, question->axis);
}

static sb_status global_pool(const sb_axis_question *question, sb_axis_rule *answer) {
    if (question->axis > 1)
        return sb_axis_bounded(question, answer, SB_AXIS_NONE, "the whole space is pooled");
    return sb_axis_independent(question, answer, question->axis);
}

/* The flat indices may name any element of the output. */
static sb_status unpool(const sb_axis_question *question, sb_axis_rule *answer) {
    if (question->input > 1)
        return sb_axis_fixed(answer);
    return sb_axis_bounded(question, answer, question->axis, "indices are counted through the whole output");
}

/* ---- Resize and Upsample ---- */

#define SCALED "positions are scaled by the extents"

/* Which of the node's scales or sizes is for the axis; -1: none. */
static int request_of(const sb_axis_question *question, const sb_resize_params *params) {
    int rank = sb_axis_asked(question)->rank;
    for (int i = 0; params->axes.given && i < params->axes.count; i++) {
        if (sb_axis_resolve(params->axes.axes[i], rank) == question->axis)
            return i;
    }
    return params->axes.given ? -1 : question->axis;
}

/* Whether the scale is known to be 1. */
static bool scale_is_one(const sb_axis_question *question, const sb_resize_params *params, int entry) {
    const sb_fact *list = params->scales_input >= 0 ? sb_axis_input(question, params->scales_input) : NULL;
    if (list == NULL)
        return params->scales != NULL && entry < params->scale_count && params->scales[entry] == 1.0f;
    const sb_tensor *scales = list->constant;
    if (scales == NULL || scales->rank != 1 || scales->dtype != SB_F32 || entry >= scales->dims[0])
        return false;
    float scale;
    memcpy(&scale, scales->data + entry * scales->strides[0] * (int64_t)sizeof scale, sizeof scale);
    return scale == 1.0f;
}

static sb_status resize(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_resize_params *params = question->node->params;
    if (question->input > 0)
        return sb_axis_fixed(answer);
    int entry = request_of(question, params);
    if (entry < 0)
        return sb_axis_independent(question, answer, question->axis);
    /* With tf_half_pixel_for_nn a scale of 1 takes the row behind, up to the last one. */
    bool stays = params->rule.transform != SB_RESIZE_TF_CROP_AND_RESIZE &&
                 params->rule.transform != SB_RESIZE_TF_HALF_PIXEL_FOR_NN;
    if (!stays || !scale_is_one(question, params, entry))
        return sb_axis_exact(answer, SCALED);
    return sb_axis_independent(question, answer, question->axis);
}

#define POOL(op_name)                                                                                                  \
    { .op = {op_name}, .rule = pool, .independent = "batch, channels", .bounded = "space" }
#define GLOBAL_POOL(op_name)                                                                                           \
    { .op = {op_name}, .rule = global_pool, .independent = "batch, channels", .bounded = "space" }
#define RESIZE(op_name)                                                                                                \
    {                                                                                                                  \
        .op = {op_name}, .rule = resize, .independent = "axes whose scale is known to be 1",                           \
        .exact = "every other axis; the lists"                                                                         \
    }

const sb_axes_entry sb_axes_windows[] = {
    {.op = {"MaxPool"},
     .rule = pool,
     .independent = "batch, channels",
     .bounded = "space; with indices, channels as well"},
    POOL("AveragePool"),
    POOL("LpPool"),
    GLOBAL_POOL("GlobalAveragePool"),
    GLOBAL_POOL("GlobalMaxPool"),
    GLOBAL_POOL("GlobalLpPool"),
    {.op = {"MaxUnpool"}, .rule = unpool, .checked = 2, .bounded = "every axis", .exact = "the output's shape"},
    RESIZE("Resize"),
    RESIZE("Upsample"),
    {.op = {NULL}},
};
