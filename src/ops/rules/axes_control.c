/* Operators with graphs of their own, sequences, optional values and text: planned exactly. */
#include "ops/list.h"
#include "rules/question.h"

static sb_status nested(const sb_axis_question *question, sb_axis_rule *answer) {
    return sb_axis_unknown(answer, "the operator runs graphs of its own");
}

static sb_status sequence(const sb_axis_question *question, sb_axis_rule *answer) {
    return sb_axis_unknown(answer, "tensors in a sequence have extents of their own");
}

static sb_status optional(const sb_axis_question *question, sb_axis_rule *answer) {
    return sb_axis_independent(question, answer, question->axis);
}

/* Whether there is a value, not which. */
static sb_status presence(const sb_axis_question *question, sb_axis_rule *answer) {
    return sb_axis_independent(question, answer, SB_AXIS_NONE);
}

static sb_status text(const sb_axis_question *question, sb_axis_rule *answer) {
    return sb_axis_exact(answer, "the data decide how many texts stay");
}

/* [words], or [batch, words]. */
static sb_status word_counts(const sb_axis_question *question, sb_axis_rule *answer) {
    if (question->axis == sb_axis_asked(question)->rank - 1)
        return sb_axis_bounded(question, answer, SB_AXIS_NONE, "sequences of words are counted in it");
    return sb_axis_independent(question, answer, question->axis);
}

#define NESTED(op_name)                                                                                                \
    { .op = {op_name}, .rule = nested, .exact = "every axis" }
#define SEQUENCE(op_name)                                                                                              \
    { .op = {op_name}, .rule = sequence, .exact = "every axis" }

/* Their only tensors are positions. */
#define SEQUENCE_ALONE(op_name)                                                                                        \
    { .op = {op_name}, .rule = sequence }

const sb_axes_entry sb_axes_control[] = {
    NESTED("If"),
    NESTED("Loop"),
    NESTED("Scan"),
    NESTED("SequenceMap"),
    SEQUENCE("SequenceConstruct"),
    SEQUENCE_ALONE("SequenceEmpty"),
    SEQUENCE_ALONE("SequenceAt"),
    SEQUENCE_ALONE("SequenceErase"),
    SEQUENCE("SequenceInsert"),
    SEQUENCE_ALONE("SequenceLength"),
    SEQUENCE_ALONE("ConcatFromSequence"),
    SEQUENCE("SplitToSequence"),
    {.op = {"Optional"}, .rule = optional, .independent = "every axis"},
    {.op = {"OptionalGetElement"}, .rule = optional, .independent = "every axis"},
    {.op = {"OptionalHasElement"}, .rule = presence, .independent = "every axis"},
    {.op = {"StringNormalizer"}, .rule = text, .exact = "every axis"},
    {.op = {"TfIdfVectorizer"}, .rule = word_counts, .independent = "batch", .bounded = "words"},
    {.op = {NULL}},
};
