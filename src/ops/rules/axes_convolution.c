/* Convolutions: batch and output channels are independent, space and input channels bounded;
 * channels in groups are planned exactly. */
#include "ops/list.h"
#include "rules/question.h"

#define SUMMED "the products are summed over it"
#define SLIDES "windows slide over it"
#define GROUPS "the channels are divided into groups"

/* What each input is: x and w, b for a number per output channel (or one), o and m for offsets and mask of DeformConv,
 * and a point for single numbers. */
static const char *const roles[] = {"xwb", "xw.b", "x..wbb..b", "xwobm"};
enum { CONV, INTEGER, QLINEAR, DEFORMABLE };

static sb_status data_axis(const sb_axis_question *question, sb_axis_rule *answer, bool grouped) {
    if (question->axis == 0)
        return sb_axis_independent(question, answer, 0);
    if (question->axis > 1)
        return sb_axis_bounded(question, answer, question->axis, SLIDES);
    return grouped ? sb_axis_exact(answer, GROUPS) : sb_axis_bounded(question, answer, SB_AXIS_NONE, SUMMED);
}

/* `out` is the axis of the weights that has the output channels; the other one of the first two is summed. */
static sb_status weight_axis(const sb_axis_question *question, sb_axis_rule *answer, bool grouped, int out) {
    if (question->axis > 1)
        return sb_axis_exact(answer, "it is the extent of the window");
    if (grouped)
        return sb_axis_exact(answer, GROUPS);
    if (question->axis == out)
        return sb_axis_independent(question, answer, 1);
    return sb_axis_bounded(question, answer, SB_AXIS_NONE, SUMMED);
}

static sb_status channel_axis(const sb_axis_question *question, sb_axis_rule *answer, bool grouped) {
    return grouped ? sb_axis_exact(answer, GROUPS) : sb_axis_per_index(question, answer, 1);
}

/* Offsets and mask of DeformConv: [batch, numbers per tap, positions of the output]. */
static sb_status tap_axis(const sb_axis_question *question, sb_axis_rule *answer) {
    if (question->axis == 0)
        return sb_axis_independent(question, answer, 0);
    if (question->axis == 1)
        return sb_axis_fixed(answer);
    return sb_axis_bounded(question, answer, question->axis, "it goes with the windows of the input");
}

static sb_status convolution(const sb_axis_question *question, sb_axis_rule *answer) {
    bool grouped = sb_axis_attribute(question, "group", 1) != 1;
    if (question->entry->number == DEFORMABLE)
        grouped = grouped || sb_axis_attribute(question, "offset_group", 1) != 1;
    switch (roles[question->entry->number][question->input]) {
    case 'x':
        return data_axis(question, answer, grouped);
    case 'w':
        return weight_axis(question, answer, grouped, 0);
    case 'b':
        return channel_axis(question, answer, grouped);
    case 'o':
    case 'm':
        return tap_axis(question, answer);
    default:
        return sb_axis_fixed(answer);
    }
}

static sb_status convolution_transpose(const sb_axis_question *question, sb_axis_rule *answer) {
    bool grouped = sb_axis_attribute(question, "group", 1) != 1;
    if (question->input == 0)
        return data_axis(question, answer, grouped);
    return question->input == 1 ? weight_axis(question, answer, grouped, 1) : channel_axis(question, answer, grouped);
}

#define CONVOLUTION(op_name, rule_function, index)                                                                     \
    {                                                                                                                  \
        .op = {op_name}, .rule = rule_function, .number = index, .independent = "batch, output channels",              \
        .bounded = "input channels, space", .exact = "the window; channels of several groups"                          \
    }

const sb_axes_entry sb_axes_convolution[] = {
    CONVOLUTION("Conv", convolution, CONV),
    CONVOLUTION("ConvInteger", convolution, INTEGER),
    CONVOLUTION("QLinearConv", convolution, QLINEAR),
    CONVOLUTION("DeformConv", convolution, DEFORMABLE),
    CONVOLUTION("ConvTranspose", convolution_transpose, 0),
    {.op = {NULL}},
};
