/* Grids, regions of images, and spectra. */
#include "ops/list.h"
#include "ops/signal.h"
#include "rules/question.h"

#define MAPPED "coordinates are mapped to the extent"
#define SELECTED "regions choose from it by index"

static sb_status affine_grid(const sb_axis_question *question, sb_axis_rule *answer) {
    return question->input == 0 && question->axis == 0 ? sb_axis_independent(question, answer, 0)
                                                       : sb_axis_fixed(answer);
}

/* X: [batch, channels, space]; grid: [batch, space of the output, coordinates]. */
static sb_status grid_sample(const sb_axis_question *question, sb_axis_rule *answer) {
    if (question->axis == 0)
        return sb_axis_independent(question, answer, 0);
    if (question->input == 1 && question->axis == sb_axis_asked(question)->rank - 1)
        return sb_axis_fixed(answer);
    if (question->input == 1)
        return sb_axis_independent(question, answer, question->axis + 1);
    if (question->axis == 1)
        return sb_axis_independent(question, answer, 1);
    return sb_axis_bounded(question, answer, SB_AXIS_NONE, MAPPED);
}

/* X: [batch, channels, rows, columns]; regions: [regions, coordinates], and for RoiAlign [regions] batch indices. */
static sb_status regions(const sb_axis_question *question, sb_axis_rule *answer) {
    if (question->input > 0)
        return question->axis == 0 ? sb_axis_independent(question, answer, 0) : sb_axis_fixed(answer);
    if (question->axis == 1)
        return sb_axis_independent(question, answer, 1);
    return sb_axis_bounded(question, answer, SB_AXIS_NONE, question->axis == 0 ? SELECTED : MAPPED);
}

static sb_status suppression(const sb_axis_question *question, sb_axis_rule *answer) {
    return sb_axis_exact(answer, "the data decide how many boxes stay");
}

/* The transformed axis: an attribute, or input 2 from operator set 20 on. */
static sb_status dft(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_signal_params *params = question->node->params;
    int rank = sb_axis_asked(question)->rank;
    int64_t axis = params->axis;
    if (question->input > 0)
        return sb_axis_fixed(answer);
    if (question->axis == rank - 1)
        return sb_axis_fixed(answer);
    bool given = question->node->input_count > 2 && question->inputs[2] != NULL;
    if (given && !sb_axis_number(sb_axis_input(question, 2), 0, &axis))
        return sb_axis_unknown(answer, "which axis is transformed is known only when the node runs");
    if (sb_axis_resolve(axis, rank) == question->axis)
        return sb_axis_exact(answer, "the terms of a transform depend on its length");
    return sb_axis_independent(question, answer, question->axis);
}

/* [batch, samples, parts] to [batch, frames, bins, 2]. */
static sb_status stft(const sb_axis_question *question, sb_axis_rule *answer) {
    if (question->input > 0 || question->axis == 2)
        return sb_axis_fixed(answer);
    if (question->axis == 1)
        return sb_axis_bounded(question, answer, 1, "windows slide over it");
    return sb_axis_independent(question, answer, 0);
}

#define REGIONS(op_name, indices)                                                                                      \
    {                                                                                                                  \
        .op = {op_name}, .rule = regions, .checked = indices, .independent = "regions, channels",                      \
        .bounded = "batch, space", .exact = "coordinates"                                                              \
    }
#define SCALARS(op_name)                                                                                               \
    { .op = {op_name}, .rule = sb_axis_all_fixed, .exact = "numbers, where they are lists of one" }

const sb_axes_entry sb_axes_sampling[] = {
    {.op = {"AffineGrid"}, .rule = affine_grid, .independent = "batch", .exact = "the matrices; the size"},
    {.op = {"GridSample"},
     .rule = grid_sample,
     .independent = "batch, channels, space of the grid",
     .bounded = "space of the input",
     .exact = "coordinates"},
    REGIONS("MaxRoiPool", 2),
    REGIONS("RoiAlign", 4),
    {.op = {"NonMaxSuppression"}, .rule = suppression, .exact = "every axis"},
    {.op = {"DFT"},
     .rule = dft,
     .independent = "every other axis",
     .exact = "the axis that is transformed; real and imaginary part"},
    {.op = {"STFT"},
     .rule = stft,
     .independent = "batch",
     .bounded = "samples",
     .exact = "the window; real and imaginary part"},
    SCALARS("BlackmanWindow"),
    SCALARS("HammingWindow"),
    SCALARS("HannWindow"),
    SCALARS("MelWeightMatrix"),
    {.op = {NULL}},
};
