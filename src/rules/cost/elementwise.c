/* Element-wise operators: 1 operation per element of the output, and none for what only moves or converts elements. */
#include "ops/unary_list.h"
#include "rules/cost/counting.h"

static sb_dim folded(const sb_cost_question *question, int64_t number) {
    int formal = question->node->input_count - question->node->capture_count;
    return sb_cost_times(question, formal - 1, sb_cost_extents(question, sb_cost_output(question), 0));
}

static const sb_flops_rule folded_flops = {folded, "1 per element of the output and input beyond the first"};

#define EACH(op_name, operations)                                                                                      \
    { .op = {op_name}, .flops = &sb_flops_per_output, .number = operations, .bytes = &sb_bytes_whole }
#define LISTED(op) EACH(#op, 1),
#define FOLDED(op_name)                                                                                                \
    { .op = {op_name}, .flops = &folded_flops, .bytes = &sb_bytes_whole }

const sb_cost_entry sb_cost_elementwise[] = {
    SB_UNARY_OPS(LISTED) EACH("Add", 1),
    EACH("Sub", 1),
    EACH("Mul", 1),
    EACH("Div", 1),
    EACH("Mod", 1),
    EACH("Pow", 1),
    EACH("PRelu", 1),
    EACH("And", 1),
    EACH("Or", 1),
    EACH("Xor", 1),
    EACH("Equal", 1),
    EACH("Greater", 1),
    EACH("Less", 1),
    EACH("GreaterOrEqual", 1),
    EACH("LessOrEqual", 1),
    EACH("BitShift", 1),
    EACH("BitwiseAnd", 1),
    EACH("BitwiseOr", 1),
    EACH("BitwiseXor", 1),
    EACH("Clip", 1),
    FOLDED("Max"),
    FOLDED("Min"),
    FOLDED("Sum"),
    FOLDED("Mean"),
    EACH("QuantizeLinear", 2),
    EACH("DequantizeLinear", 2),
    {.op = {"DynamicQuantizeLinear"}, .flops = &sb_flops_uncounted, .bytes = &sb_bytes_whole},
    {.op = {"Where"}, .flops = &sb_flops_none, .bytes = &sb_bytes_whole},
    {.op = {"Cast"}, .flops = &sb_flops_none, .bytes = &sb_bytes_whole},
    {.op = {"CastLike"}, .flops = &sb_flops_none, .bytes = &sb_bytes_first},
    {.op = {NULL}},
};
