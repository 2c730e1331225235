/* Random numbers: drawn by the place of an element in row-major order, so that a first axis may grow and no other. */
#include "ops/list.h"
#include "rules/question.h"

#include <string.h>

static sb_status by_place(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_fact *asked = sb_axis_asked(question);
    int64_t number;
    for (int d = 0; d < question->axis; d++) {
        if (!sb_dim_is_constant(asked->dims[d], &number) || number != 1)
            return sb_axis_exact(answer, "the numbers are drawn by an element's place among all");
    }
    return sb_axis_independent(question, answer, question->axis);
}

/* [batch, classes] to [batch, samples]. */
static sb_status multinomial(const sb_axis_question *question, sb_axis_rule *answer) {
    if (question->axis == 1)
        return sb_axis_bounded(question, answer, SB_AXIS_NONE, "one of all classes is chosen");
    return sb_axis_independent(question, answer, 0);
}

/* Whether the dropout is known to change nothing: without input 2, or before operator set 12, nothing is trained. */
static bool passes_through(const sb_axis_question *question) {
    if (question->node->version < 12 || question->node->input_count < 3 || question->inputs[2] == NULL)
        return true;
    const sb_tensor *training = question->inputs[2]->constant;
    return training != NULL && sb_tensor_elements(training) == 1 && training->data[0] == 0;
}

static sb_status dropout(const sb_axis_question *question, sb_axis_rule *answer) {
    if (question->input > 0)
        return sb_axis_fixed(answer);
    if (passes_through(question))
        return sb_axis_independent(question, answer, question->axis);
    return by_place(question, answer);
}

#define BY_PLACE(op_name)                                                                                              \
    { .op = {op_name}, .rule = by_place, .independent = "the first axis longer than 1", .exact = "axes behind it" }

const sb_axes_entry sb_axes_random[] = {
    BY_PLACE("Bernoulli"),
    BY_PLACE("RandomNormalLike"),
    BY_PLACE("RandomUniformLike"),
    {.op = {"RandomNormal"}, .rule = sb_axis_all_fixed},
    {.op = {"RandomUniform"}, .rule = sb_axis_all_fixed},
    {.op = {"Multinomial"}, .rule = multinomial, .independent = "batch", .bounded = "classes"},
    {.op = {"Dropout"},
     .rule = dropout,
     .independent = "every axis; in training the first axis longer than 1",
     .exact = "in training the axes behind it"},
    {.op = {NULL}},
};
