/* Reductions and normalisations: a small fixed number of operations per element.
 *
 * Normalisations: sum, centre, square and sum, scale, and the factors per channel. Softmax: subtract,
 * exponential, sum, divide. */
#include "ops/list.h"
#include "rules/counting.h"

#define READ(op_name, operations)                                                                                      \
    { .op = {op_name}, .flops = &sb_flops_per_input, .number = operations, .bytes = &sb_bytes_whole }
#define WRITTEN(op_name, operations)                                                                                   \
    { .op = {op_name}, .flops = &sb_flops_per_output, .number = operations, .bytes = &sb_bytes_whole }
#define UNCOUNTED(op_name)                                                                                             \
    { .op = {op_name}, .flops = &sb_flops_uncounted, .bytes = &sb_bytes_whole }

const sb_cost_entry sb_cost_rows[] = {
    READ("ReduceSum", 1),
    READ("ReduceMean", 1),
    READ("ReduceMax", 1),
    READ("ReduceMin", 1),
    READ("ReduceProd", 1),
    READ("ReduceL1", 2),
    READ("ReduceL2", 2),
    READ("ReduceSumSquare", 2),
    READ("ReduceLogSum", 1),
    READ("ReduceLogSumExp", 3),
    READ("ArgMax", 1),
    READ("ArgMin", 1),
    READ("CumSum", 1),
    WRITTEN("Softmax", 4),
    WRITTEN("LogSoftmax", 4),
    WRITTEN("BatchNormalization", 2),
    WRITTEN("InstanceNormalization", 7),
    WRITTEN("LayerNormalization", 7),
    WRITTEN("GroupNormalization", 7),
    WRITTEN("RMSNormalization", 4),
    WRITTEN("MeanVarianceNormalization", 5),
    UNCOUNTED("CumProd"),
    UNCOUNTED("Hardmax"),
    UNCOUNTED("LpNormalization"),
    UNCOUNTED("LRN"),
    UNCOUNTED("Det"),
    {.op = {NULL}},
};
