/* RNN, GRU and LSTM: the batch is independent, time and features are bounded. */
#include "ops/list.h"
#include "ops/recurrent.h"
#include "rules/question.h"

/* Y is [steps, directions, batch, hidden] and states are [directions, batch, hidden], or
 * [batch, steps, directions, hidden] and [batch, directions, hidden]. */
static sb_status batch(const sb_axis_question *question, sb_axis_rule *answer, bool batch_first) {
    sb_axis_independent(question, answer, batch_first ? 0 : 1);
    if (answer->output_axes != NULL && question->node->output_count > 0)
        answer->output_axes[0] = batch_first ? 0 : 2;
    return SB_OK;
}

static sb_status steps(const sb_axis_question *question, sb_axis_rule *answer, bool batch_first) {
    sb_axis_bounded(question, answer, SB_AXIS_NONE, "the state goes on from step to step");
    if (answer->output_axes != NULL && question->node->output_count > 0)
        answer->output_axes[0] = batch_first ? 1 : 0;
    return SB_OK;
}

static sb_status recurrent(const sb_axis_question *question, sb_axis_rule *answer) {
    bool first = ((const sb_recurrent_params *)question->node->params)->batch_first;
    bool summed = question->axis == 2 && (question->input == SB_RECURRENT_X || question->input == SB_RECURRENT_W);
    if (summed)
        return sb_axis_bounded(question, answer, SB_AXIS_NONE, "the products are summed over it");
    if (question->input == SB_RECURRENT_LENGTHS)
        return batch(question, answer, first);
    if (question->input == SB_RECURRENT_X)
        return question->axis == (first ? 0 : 1) ? batch(question, answer, first) : steps(question, answer, first);
    bool state = question->input == SB_RECURRENT_H || question->input == SB_RECURRENT_C;
    if (state && question->axis == (first ? 0 : 1))
        return batch(question, answer, first);
    return sb_axis_exact(answer, "gates and directions are laid out in it");
}

#define RECURRENT(op_name)                                                                                             \
    {                                                                                                                  \
        .op = {op_name}, .rule = recurrent, .checked = 1 << SB_RECURRENT_LENGTHS, .independent = "batch",              \
        .bounded = "time, input features", .exact = "directions, hidden features"                                      \
    }

const sb_axes_entry sb_axes_recurrent[] = {
    RECURRENT("RNN"),
    RECURRENT("GRU"),
    RECURRENT("LSTM"),
    {.op = {NULL}},
};
