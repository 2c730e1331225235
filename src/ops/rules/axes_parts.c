/* Parts of axes, axes put together, and borders around them: Slice, Split, Concat, Tile and Pad. */
#include "ops/list.h"
#include "ops/pad.h"
#include "rules/question.h"

/* ---- Slice ---- */

/* Bound `index` of a kind: from an attribute before operator set 10, else from a list. */
static bool read_bound(const sb_axis_question *question, const char *attribute, int input, int64_t index,
                       int64_t *value) {
    int64_t count;
    const int64_t *values;
    if (question->node->input_count - question->node->capture_count > 1)
        return sb_axis_number(sb_axis_input(question, input), index, value);
    if (sb_node_ints(question->node, attribute, &count, &values, NULL) != SB_OK || index >= count)
        return false;
    *value = values[index];
    return true;
}

static int64_t count_bounds(const sb_axis_question *question) {
    int64_t count;
    const int64_t *values;
    if (question->node->input_count - question->node->capture_count > 1)
        return sb_axis_count(sb_axis_input(question, 1));
    return sb_node_ints(question->node, "starts", &count, &values, NULL) == SB_OK ? count : -1;
}

static bool has_axes(const sb_axis_question *question) {
    return sb_axis_input(question, 3) != NULL || sb_node_has(question->node, "axes");
}

/* Which entry of the lists is about the axis: *found is -1 for none. False when that is not known. */
static bool find_bounds(const sb_axis_question *question, int64_t *found) {
    int64_t count = count_bounds(question), axis;
    *found = -1;
    if (!has_axes(question)) {
        *found = question->axis < count ? question->axis : -1;
        return count >= 0;
    }
    for (int64_t i = 0; i < count; i++) {
        if (!read_bound(question, "axes", 3, i, &axis))
            return false;
        if (sb_axis_resolve(axis, sb_axis_asked(question)->rank) == question->axis)
            *found = i;
    }
    return count >= 0;
}

#define FROM_END "a bound is counted from the end, or known only when the node runs"

static sb_status slice(const sb_axis_question *question, sb_axis_rule *answer) {
    int64_t entry, start, end, step = 1;
    if (question->input > 0)
        return sb_axis_fixed(answer);
    if (!find_bounds(question, &entry))
        return sb_axis_bounded(question, answer, question->axis, "which axes are cut is known only when the node runs");
    if (entry < 0)
        return sb_axis_independent(question, answer, question->axis);
    bool known = read_bound(question, "starts", 1, entry, &start) && read_bound(question, "ends", 2, entry, &end);
    if (sb_axis_input(question, 4) != NULL)
        known = known && sb_axis_number(sb_axis_input(question, 4), entry, &step);
    if (!known || step < 0 || (start < 0 && start > INT32_MIN))
        return sb_axis_bounded(question, answer, question->axis, FROM_END);
    return sb_axis_independent(question, answer, question->axis);
}

/* ---- Split, Concat, Tile ---- */

static sb_status split(const sb_axis_question *question, sb_axis_rule *answer) {
    if (question->input > 0)
        return sb_axis_fixed(answer);
    int axis = sb_axis_resolve(sb_axis_attribute(question, "axis", 0), sb_axis_asked(question)->rank);
    if (question->axis == axis)
        return sb_axis_exact(answer, "the extent says where the parts begin");
    return sb_axis_independent(question, answer, question->axis);
}

static sb_status concat(const sb_axis_question *question, sb_axis_rule *answer) {
    int axis = sb_axis_resolve(sb_axis_attribute(question, "axis", 1), sb_axis_asked(question)->rank);
    int last = question->node->input_count - question->node->capture_count - 1;
    if (question->axis == axis && question->input != last)
        return sb_axis_bounded(question, answer, axis, "the next input begins where it ends");
    return sb_axis_independent(question, answer, question->axis);
}

static sb_status tile(const sb_axis_question *question, sb_axis_rule *answer) {
    int64_t times, axis;
    if (question->input > 0)
        return sb_axis_fixed(answer);
    bool old = sb_axis_input(question, 2) != NULL; /* before operator set 6: a count and an axis */
    if (!sb_axis_number(sb_axis_input(question, 1), old ? 0 : question->axis, &times) ||
        (old && !sb_axis_number(sb_axis_input(question, 2), 0, &axis)))
        return sb_axis_unknown(answer, "how often it is repeated is known only when the node runs");
    if (times == 1 || (old && sb_axis_resolve(axis, sb_axis_asked(question)->rank) != question->axis))
        return sb_axis_independent(question, answer, question->axis);
    return sb_axis_exact(answer, "the next copy begins where it ends");
}

/* ---- Pad ---- */

/* Elements added at an end of the axis (`half` 0: before it, 1: behind it). */
static bool read_pad(const sb_axis_question *question, int half, int64_t *pad) {
    const sb_pad_params *params = question->node->params;
    const sb_fact *axes = sb_axis_input(question, 3);
    int rank = sb_axis_asked(question)->rank;
    int64_t entry = axes == NULL ? question->axis : -1, count = axes == NULL ? rank : sb_axis_count(axes), axis;
    for (int64_t i = 0; axes != NULL && i < count; i++) {
        if (!sb_axis_number(axes, i, &axis))
            return false;
        if (sb_axis_resolve(axis, rank) == question->axis)
            entry = i;
    }
    *pad = 0;
    if (count < 0 || (!params->has_pads && sb_axis_count(sb_axis_input(question, 1)) != 2 * count))
        return false;
    if (entry < 0)
        return true;
    if (!params->has_pads)
        return sb_axis_number(sb_axis_input(question, 1), half * count + entry, pad);
    *pad = params->pads[half * count + entry];
    return half * count + entry < params->count;
}

static sb_status pad(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_pad_params *params = question->node->params;
    int64_t before, behind;
    if (question->input > 0)
        return sb_axis_fixed(answer);
    if (!read_pad(question, 0, &before) || !read_pad(question, 1, &behind))
        return sb_axis_bounded(question, answer, question->axis, "the borders are known only when the node runs");
    if (behind > 0 || (before > 0 && params->mode != SB_PAD_CONSTANT))
        return sb_axis_bounded(question, answer, question->axis, "the border begins where it ends");
    return sb_axis_independent(question, answer, question->axis);
}

const sb_axes_entry sb_axes_parts[] = {
    {.op = {"Slice"},
     .rule = slice,
     .extents = 4,
     .independent = "axes that are not cut, and those cut from a known start",
     .bounded = "axes cut from an end, backwards, or by computed bounds",
     .exact = "the lists"},
    {.op = {"Split"},
     .rule = split,
     .independent = "every axis that is not split",
     .exact = "the split axis; the list"},
    {.op = {"Concat"},
     .rule = concat,
     .independent = "every other axis, and the joined axis of the last input",
     .bounded = "the joined axis of the other inputs"},
    {.op = {"Tile"}, .rule = tile, .independent = "axes that are not repeated", .exact = "repeated axes; the list"},
    {.op = {"Pad"},
     .rule = pad,
     .independent = "axes with no border behind",
     .bounded = "axes with a border behind, or a copied one",
     .exact = "the lists"},
    {.op = {NULL}},
};
