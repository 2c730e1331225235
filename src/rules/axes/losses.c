/* Losses: scores [batch, classes, space], targets [batch, space], a weight per class. */
#include "ops/losses.h"
#include "rules/axes/question.h"

#define CHOSEN "targets choose from the classes"

/* The loss has the shape of the targets, or none; the log-probabilities have that of the scores. */
static sb_status loss(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_loss_params *params = question->node->params;
    bool each = params->reduction == SB_LOSS_NONE;
    int scores_axis = question->input == 1 && question->axis > 0 ? question->axis + 1 : question->axis;
    if (question->input == 2)
        return sb_axis_bounded(question, answer, SB_AXIS_NONE, CHOSEN);
    bool classes = question->input == 0 && question->axis == 1;
    if (classes)
        sb_axis_bounded(question, answer, SB_AXIS_NONE, CHOSEN);
    else if (!each)
        sb_axis_bounded(question, answer, SB_AXIS_NONE, "all losses become one");
    else
        sb_axis_independent(question, answer, scores_axis > 1 ? scores_axis - 1 : scores_axis);
    if (answer->output_axes != NULL && question->node->output_count > 1)
        answer->output_axes[1] = scores_axis;
    return SB_OK;
}

#define LOSS(op_name)                                                                                                  \
    {                                                                                                                  \
        .op = {op_name}, .rule = loss, .checked = 2, .independent = "batch and space, where every loss is an output",  \
        .bounded = "classes; batch and space, where the losses become one"                                             \
    }

const sb_axes_entry sb_axes_losses[] = {
    LOSS("NegativeLogLikelihoodLoss"),
    LOSS("SoftmaxCrossEntropyLoss"),
    {.op = {NULL}},
};
