/* Operators that move elements, choose them, or make them of shapes and random numbers. */
#include "ops/list.h"
#include "rules/counting.h"

/* In training, which takes an input that says so, Dropout makes a tensor of its own. */
static void dropout(const sb_cost_question *question, sb_dim *read, sb_dim *written) {
    bool may_train = question->node->input_count > 2 && question->inputs[2] != NULL;
    (may_train ? sb_bytes_first : sb_bytes_view).count(question, read, written);
}

static const sb_bytes_rule dropout_bytes = {dropout, "none: a view; in training the input and the outputs"};

#define VIEW(op_name)                                                                                                  \
    { .op = {op_name}, .flops = &sb_flops_none, .bytes = &sb_bytes_view }
#define MOVED(op_name)                                                                                                 \
    { .op = {op_name}, .flops = &sb_flops_none, .bytes = &sb_bytes_whole }
#define CHOSEN(op_name)                                                                                                \
    { .op = {op_name}, .flops = &sb_flops_none, .bytes = &sb_bytes_chosen }
#define OF_SHAPE(op_name)                                                                                              \
    { .op = {op_name}, .flops = &sb_flops_none, .bytes = &sb_bytes_written }
#define UNCOUNTED(op_name)                                                                                             \
    { .op = {op_name}, .flops = &sb_flops_uncounted, .bytes = &sb_bytes_whole }
#define MADE(op_name)                                                                                                  \
    { .op = {op_name}, .flops = &sb_flops_uncounted, .bytes = &sb_bytes_written }

const sb_cost_entry sb_cost_moving[] = {
    VIEW("Identity"),
    VIEW("Expand"),
    VIEW("Flatten"),
    VIEW("Reshape"),
    VIEW("Squeeze"),
    VIEW("Transpose"),
    VIEW("Unsqueeze"),
    VIEW("Slice"),
    VIEW("Split"),
    {.op = {"Dropout"}, .flops = &sb_flops_none, .bytes = &dropout_bytes},
    MOVED("Concat"),
    MOVED("Tile"),
    MOVED("DepthToSpace"),
    MOVED("SpaceToDepth"),
    MOVED("ReverseSequence"),
    MOVED("Compress"),
    MOVED("OneHot"),
    CHOSEN("Gather"),
    CHOSEN("GatherElements"),
    CHOSEN("GatherND"),
    OF_SHAPE("Shape"),
    OF_SHAPE("Size"),
    OF_SHAPE("Constant"),
    OF_SHAPE("ConstantOfShape"),
    UNCOUNTED("Pad"),
    UNCOUNTED("CenterCropPad"),
    UNCOUNTED("Trilu"),
    UNCOUNTED("Scatter"),
    UNCOUNTED("ScatterElements"),
    UNCOUNTED("ScatterND"),
    UNCOUNTED("NonZero"),
    UNCOUNTED("Unique"),
    UNCOUNTED("TopK"),
    UNCOUNTED("Col2Im"),
    UNCOUNTED("Range"),
    UNCOUNTED("Bernoulli"),
    UNCOUNTED("Multinomial"),
    MADE("EyeLike"),
    MADE("RandomNormal"),
    MADE("RandomNormalLike"),
    MADE("RandomUniform"),
    MADE("RandomUniformLike"),
    {.op = {NULL}},
};
