/* Pools, resizes, images and signals. */
#include "ops/list.h"
#include "rules/counting.h"

static sb_dim window(const sb_cost_question *question, int64_t number) {
    int64_t count = 0;
    const int64_t *kernel = NULL;
    if (sb_node_ints(question->node, "kernel_shape", &count, &kernel, NULL) != SB_OK)
        return NULL;
    sb_dim sum = sb_cost_extents(question, sb_cost_output(question), 0);
    for (int64_t i = 0; i < count; i++)
        sum = sb_cost_times(question, kernel[i], sum);
    return sum;
}

static const sb_flops_rule window_flops = {window, "1 per tap for each element of the output"};

#define POOL(op_name)                                                                                                  \
    { .op = {op_name}, .flops = &window_flops, .bytes = &sb_bytes_whole }
#define GLOBAL_POOL(op_name, operations)                                                                               \
    { .op = {op_name}, .flops = &sb_flops_per_input, .number = operations, .bytes = &sb_bytes_whole }
#define UNCOUNTED(op_name)                                                                                             \
    { .op = {op_name}, .flops = &sb_flops_uncounted, .bytes = &sb_bytes_whole }

const sb_cost_entry sb_cost_windows[] = {
    POOL("MaxPool"),
    POOL("AveragePool"),
    POOL("LpPool"),
    GLOBAL_POOL("GlobalAveragePool", 1),
    GLOBAL_POOL("GlobalMaxPool", 1),
    GLOBAL_POOL("GlobalLpPool", 2),
    UNCOUNTED("MaxUnpool"),
    UNCOUNTED("Resize"),
    UNCOUNTED("Upsample"),
    UNCOUNTED("AffineGrid"),
    UNCOUNTED("GridSample"),
    UNCOUNTED("MaxRoiPool"),
    UNCOUNTED("RoiAlign"),
    UNCOUNTED("NonMaxSuppression"),
    UNCOUNTED("DFT"),
    UNCOUNTED("STFT"),
    UNCOUNTED("BlackmanWindow"),
    UNCOUNTED("HammingWindow"),
    UNCOUNTED("HannWindow"),
    UNCOUNTED("MelWeightMatrix"),
    {.op = {NULL}},
};
