/* Operators whose elements depend on one element of each input: all axes are independent,
 * those that are repeated excepted. */
#include "ops/binary_list.h"
#include "ops/list.h"
#include "ops/unary_list.h"
#include "rules/question.h"

/* Inputs beyond the first are numbers (the bounds of Clip) or only lend their dtype (CastLike). */
static sb_status first_input(const sb_axis_question *question, sb_axis_rule *answer) {
    if (question->input > 0)
        return sb_axis_fixed(answer);
    return sb_axis_independent(question, answer, question->axis);
}

/* CastLike reads the dtype of its second input, and nothing else. */
static sb_status cast_like(const sb_axis_question *question, sb_axis_rule *answer) {
    return sb_axis_independent(question, answer, question->input == 0 ? question->axis : SB_AXIS_NONE);
}

static sb_status quotient(const sb_axis_question *question, sb_axis_rule *answer) {
    answer->checked = answer->checked && sb_dtype_is_integer(sb_axis_asked(question)->dtype);
    return sb_axis_broadcast(question, answer);
}

/* One scale for all elements, one per index of `axis`, or one per block of it. */
static sb_status quantize(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_fact *x = sb_axis_input(question, 0), *asked = sb_axis_asked(question);
    if (question->input == 0)
        return sb_axis_independent(question, answer, question->axis);
    if (asked->rank != 1)
        return sb_axis_independent(question, answer, question->axis);
    int axis = x != NULL ? sb_axis_resolve(sb_axis_attribute(question, "axis", 1), x->rank) : SB_AXIS_NONE;
    return sb_axis_per_index(question, answer, axis);
}

static sb_status dynamic_quantize(const sb_axis_question *question, sb_axis_rule *answer) {
    sb_axis_bounded(question, answer, SB_AXIS_NONE, "the scale is that of the largest and smallest element");
    if (answer->output_axes != NULL)
        answer->output_axes[0] = question->axis;
    return SB_OK;
}

#define UNARY(op_name)                                                                                                 \
    { .op = {op_name}, .rule = first_input, .independent = "every axis" }
#define LISTED_UNARY(op) UNARY(#op),
#define BROADCAST(op_name)                                                                                             \
    {                                                                                                                  \
        .op = {op_name}, .rule = sb_axis_broadcast, .independent = "every axis",                                       \
        .exact = "extents of 1 that are repeated"                                                                      \
    }
#define LISTED_BINARY(op) BROADCAST(#op),
#define QUOTIENT(op_name, inputs)                                                                                      \
    {                                                                                                                  \
        .op = {op_name}, .rule = quotient, .checked = inputs, .independent = "every axis",                             \
        .exact = "extents of 1 that are repeated"                                                                      \
    }
#define LISTED_QUOTIENT(op) QUOTIENT(#op, 2),
#define QUANTIZE(op_name)                                                                                              \
    {                                                                                                                  \
        .op = {op_name}, .rule = quantize,                                                                             \
        .independent = "every axis of the input, and those of scale and zero point",                                   \
        .exact = "a single scale or zero point"                                                                        \
    }

/* clang-format off */
const sb_axes_entry sb_axes_elementwise[] = {
    SB_UNARY_OPS(LISTED_UNARY)
    SB_BINARY_PLAIN_OPS(LISTED_BINARY)
    SB_BINARY_OTHER_OPS(LISTED_BINARY)
    SB_BINARY_QUOTIENT_OPS(LISTED_QUOTIENT)
    UNARY("Cast"),
    BROADCAST("Max"),
    BROADCAST("Min"),
    BROADCAST("Sum"),
    BROADCAST("Mean"),
    BROADCAST("Where"),
    QUOTIENT("Pow", 3),
    {.op = {"Clip"}, .rule = first_input, .independent = "every axis of the input", .exact = "the bounds"},
    {.op = {"CastLike"}, .rule = cast_like, .independent = "every axis"},
    QUANTIZE("QuantizeLinear"),
    QUANTIZE("DequantizeLinear"),
    {.op = {"DynamicQuantizeLinear"}, .rule = dynamic_quantize, .bounded = "every axis"},
    {.op = {NULL}},
};
/* clang-format on */
