/* Blocks of channels and space, reversed parts, triangles, matrices. */
#include "ops/blocks.h"
#include "ops/list.h"
#include "rules/question.h"

static sb_status depth_and_space(const sb_axis_question *question, sb_axis_rule *answer) {
    if (question->axis == 1)
        return sb_axis_exact(answer, "the channels are divided into blocks");
    return sb_axis_independent(question, answer, question->axis);
}

static sb_status reverse(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_reverse_params *params = question->node->params;
    if (question->input == 1)
        return sb_axis_independent(question, answer, params->batch_axis);
    answer->conservative = question->axis == params->time_axis; /* no length reaches beyond the used rows */
    if (question->axis == params->time_axis)
        return sb_axis_bounded(question, answer, question->axis, "rows trade places within each length");
    return sb_axis_independent(question, answer, question->axis);
}

static sb_status triangle(const sb_axis_question *question, sb_axis_rule *answer) {
    return question->input > 0 ? sb_axis_fixed(answer) : sb_axis_independent(question, answer, question->axis);
}

static sb_status crop(const sb_axis_question *question, sb_axis_rule *answer) {
    if (question->input > 0)
        return sb_axis_fixed(answer);
    if (!sb_node_has(question->node, "axes"))
        return sb_axis_exact(answer, "the middle moves with the extent");
    int64_t count;
    const int64_t *axes;
    SB_TRY(sb_node_ints(question->node, "axes", &count, &axes, question->error));
    for (int64_t i = 0; i < count; i++) {
        if (sb_axis_resolve(axes[i], sb_axis_asked(question)->rank) == question->axis)
            return sb_axis_exact(answer, "the middle moves with the extent");
    }
    return sb_axis_independent(question, answer, question->axis);
}

static sb_status determinant(const sb_axis_question *question, sb_axis_rule *answer) {
    if (question->axis >= sb_axis_asked(question)->rank - 2)
        return sb_axis_exact(answer, "the matrices have to be square");
    return sb_axis_independent(question, answer, question->axis);
}

static sb_status columns_to_image(const sb_axis_question *question, sb_axis_rule *answer) {
    if (question->input > 0)
        return sb_axis_fixed(answer);
    if (question->axis > 0)
        return sb_axis_exact(answer, "it holds the blocks of an image of a given size");
    return sb_axis_independent(question, answer, 0);
}

const sb_axes_entry sb_axes_blocks[] = {
    {.op = {"DepthToSpace"}, .rule = depth_and_space, .independent = "batch, space", .exact = "channels"},
    {.op = {"SpaceToDepth"}, .rule = depth_and_space, .independent = "batch, space", .exact = "channels"},
    {.op = {"ReverseSequence"},
     .rule = reverse,
     .checked = 2,
     .independent = "every axis but time; the lengths",
     .bounded = "time"},
    {.op = {"Trilu"},
     .rule = triangle,
     .independent = "every axis",
     .exact = "the diagonal, where it is a list of one"},
    {.op = {"CenterCropPad"},
     .rule = crop,
     .independent = "axes that are not cropped or padded",
     .exact = "cropped or padded axes; the shape"},
    {.op = {"Det"}, .rule = determinant, .independent = "batch", .exact = "rows and columns"},
    {.op = {"Col2Im"}, .rule = columns_to_image, .independent = "batch", .exact = "every other axis; the shapes"},
    {.op = {NULL}},
};
