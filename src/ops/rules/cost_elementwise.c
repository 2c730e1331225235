/* Element-wise operators: 1 operation per element of the output, and none for what only moves or converts elements. */
#include "ops/binary_list.h"
#include "ops/list.h"
#include "ops/unary_list.h"
#include "rules/counting.h"

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

/* clang-format off */
const sb_cost_entry sb_cost_elementwise[] = {
    SB_UNARY_OPS(LISTED)
    SB_BINARY_OPS(LISTED)
    EACH("Pow", 1),
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
/* clang-format on */
