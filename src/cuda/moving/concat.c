/* Concat. Inputs that lie side by side in memory, as nearly all do, are joined by one kernel for up to SB_CUDA_JOINED of them: with a
 * copy for each, 16 inputs of 128 numbers took 67 us on an H200, which is what 16 launches take. Others, and what is behind inputs of
 * which not all rows are used, are copied one by one. */
#include "cuda/moving/concat.h"

#include <string.h>

#include "cuda/common/compute.h"
#include "cuda/common/elements.h"
#include "cuda/moving/moving_parameters.h"
#include "ops/joins.h"

/* ---- inputs of which not all rows are used ---- */

/* The used extents in front of an input, where not all rows are used. */
typedef struct join {
    sb_cuda_placed_copy parameters;
    sb_tensor *output;
    int axis;
    int64_t start; /* rows in front that are all used */
} join;

/* Notes the input, which is in front of others from now on. */
static sb_status pass_input(const sb_call *call, join *join, int input) {
    sb_cuda_placed_copy *to = &join->parameters;
    const int64_t *used = sb_call_used(call, input, join->axis);
    int64_t extent = sb_call_input(call, input)->dims[join->axis];
    if (used == NULL) {
        join->start += extent;
        return SB_OK;
    }
    if (to->count == SB_CUDA_PLACES)
        return sb_call_fail(call, SB_ERROR_INTERNAL, "more than %d inputs in front are used partly", SB_CUDA_PLACES);
    to->used[to->count] = used;
    to->extents[to->count++] = extent;
    return SB_OK;
}

/* Whether groups still begin at multiples of their size when they are moved by `step`. */
static bool keeps_whole(int64_t step, int64_t size) {
    return step % (SB_CUDA_GROUP * size < 16 ? SB_CUDA_GROUP * size : 16) == 0;
}

static sb_status copy_behind(sb_call *call, join *join, const sb_tensor *input) {
    sb_cuda_placed_copy *to = &join->parameters;
    int64_t size = (int64_t)sb_dtype_size(input->dtype);
    sb_tensor *part;
    SB_TRY(sb_tensor_slice(join->output, join->axis, join->start, input->dims[join->axis], 1, &part, call->error));
    sb_cuda_box_fill(&to->box, part, 1, &input);
    sb_tensor_release(part);
    to->step = join->output->strides[join->axis] * size;
    to->box.whole[0] = to->box.whole[0] && keeps_whole(to->step, size);
    bool wide = to->step % 16 == 0 && sb_cuda_box_widen(&to->box, size) != size;
    sb_cuda_work work = {.parameters = to, .parameter_bytes = sizeof *to};
    sb_cuda_work_writes(&work, join->output);
    sb_cuda_work_reads(&work, input);
    for (int i = 0; i < to->count; i++)
        sb_cuda_work_touches(&work, to->used[i], sizeof *to->used[i], false);
    return sb_cuda_launch_each(call, &work, "copy", "sb_cuda_placed_copy",
                               wide ? "64" : sb_cuda_size_suffix(input->dtype),
                               (to->box.elements + SB_CUDA_GROUP - 1) / SB_CUDA_GROUP);
}

/* ---- inputs side by side ---- */

/* Dimensions [from, to) of the order in which a tensor lies, as one: how many elements, and how far apart in bytes. */
typedef struct merged {
    int64_t count, step;
} merged;

static bool merge(const sb_tensor *tensor, const int *order, int from, int to, merged *one) {
    int64_t size = (int64_t)sb_dtype_size(tensor->dtype);
    *one = (merged){.count = 1};
    for (int i = to - 1; i >= from; i--) {
        int64_t dim = tensor->dims[order[i]], step = tensor->strides[order[i]] * size;
        if (dim == 1)
            continue;
        if (one->count != 1 && step != one->step * one->count)
            return false;
        one->step = one->count == 1 ? step : one->step;
        one->count *= dim;
    }
    return true;
}

/* A tensor as lines of what lies from the joined axis on, without gaps. */
typedef struct lines {
    int64_t count, step, bytes;
} lines;

static bool find_lines(const sb_tensor *tensor, const int *order, int axis, lines *to) {
    int64_t size = (int64_t)sb_dtype_size(tensor->dtype);
    merged outer, inner;
    int at = 0;
    while (order[at] != axis)
        at++;
    if (!merge(tensor, order, 0, at, &outer) || !merge(tensor, order, at, tensor->rank, &inner) ||
        (inner.count != 1 && inner.step != size))
        return false;
    *to = (lines){.count = outer.count, .step = outer.step, .bytes = inner.count * size};
    return true;
}

/* Whether the joining kernel takes all inputs: they lie as lines, all of them are used, and none lies in the output already. */
static bool are_lines(const sb_call *call, const join *join, const int *order) {
    lines found;
    int64_t start = 0;
    for (int i = 0; i < call->input_count; i++) {
        const sb_tensor *input = sb_call_input(call, i);
        if ((i + 1 < call->input_count && sb_call_used(call, i, join->axis) != NULL) ||
            !find_lines(input, order, join->axis, &found) || sb_concat_is_there(join->output, join->axis, start, input))
            return false;
        start += input->dims[join->axis];
    }
    return find_lines(join->output, order, join->axis, &found);
}

/* Adds an input to those of a launch. */
static void add_input(sb_cuda_line_join *to, sb_cuda_work *work, const sb_tensor *input, const lines *lines) {
    int at = to->count++;
    to->in[at] = input->data;
    to->in_steps[at] = lines->step;
    to->starts[at] = to->width;
    to->width += lines->bytes;
    sb_cuda_work_reads(work, input);
}

/* What is in bytes so far becomes units of up to 16 bytes, as large as all addresses and distances allow. Gives the kernel's suffix. */
static const char *choose_unit(sb_cuda_line_join *to) {
    static const char *const suffixes[] = {"8", "16", "32", "64", "128"};
    uint64_t all = (uintptr_t)to->out | (uint64_t)to->width | (uint64_t)to->out_step | 16;
    int shift = 0;
    for (int i = 0; i < to->count; i++)
        all |= (uintptr_t)to->in[i] | (uint64_t)to->in_steps[i] | (uint64_t)to->starts[i];
    while ((all >> shift & 1) == 0)
        shift++;
    to->width >>= shift;
    for (int i = 0; i < SB_CUDA_JOINED; i++)
        to->starts[i] = i < to->count ? to->starts[i] >> shift : INT64_MAX;
    to->units *= to->width;
    return suffixes[shift];
}

static sb_status launch_lines(sb_call *call, const join *join, const int *order) {
    int64_t start = 0;
    int next = 0;
    lines all, one = {0};
    find_lines(join->output, order, join->axis, &all);
    while (next < call->input_count) {
        sb_cuda_line_join parameters = {.units = all.count, .out = join->output->data + start, .out_step = all.step};
        sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
        sb_cuda_work_writes(&work, join->output);
        for (; next < call->input_count && parameters.count < SB_CUDA_JOINED; next++) {
            find_lines(sb_call_input(call, next), order, join->axis, &one);
            if (one.bytes != 0)
                add_input(&parameters, &work, sb_call_input(call, next), &one);
        }
        start += parameters.width;
        const char *unit = choose_unit(&parameters);
        SB_TRY(sb_cuda_launch_each(call, &work, "join", "sb_cuda_join", unit, parameters.units));
    }
    return SB_OK;
}

/* ---- the operator ---- */

/* Whether all inputs are of 16 bits and have their channels last; and all of each is used. */
static bool have_channels_last(const sb_call *call) {
    for (int i = 0; i < call->input_count; i++) {
        const sb_tensor *input = sb_call_input(call, i);
        if ((input->dtype != SB_F16 && input->dtype != SB_BF16) || !sb_cuda_has_channels_last(input))
            return false;
        for (int d = 0; d < input->rank; d++) {
            if (sb_call_used(call, i, d) != NULL)
                return false;
        }
    }
    return true;
}

static sb_status copy_inputs(sb_call *call, join *join) {
    for (int i = 0; i < call->input_count; i++) {
        const sb_tensor *input = sb_call_input(call, i);
        if (join->parameters.count != 0)
            SB_TRY(copy_behind(call, join, input));
        else
            SB_TRY(sb_concat_copy(call, join->output, join->axis, join->start, input));
        if (i + 1 < call->input_count)
            SB_TRY(pass_input(call, join, i));
    }
    return SB_OK;
}

sb_status sb_cuda_concat_launch(sb_call *call) {
    join join = {0};
    int order[SB_MAX_RANK];
    bool ordered = have_channels_last(call);
    SB_TRY(sb_concat_axis(call, &join.axis));
    for (int d = 0; d < SB_MAX_RANK; d++)
        order[d] = d;
    if (ordered)
        sb_cuda_channels_last_order(sb_call_input(call, 0)->rank, order);
    SB_TRY(sb_concat_output(call, join.axis, ordered ? order : NULL, &join.output));
    return are_lines(call, &join, order) ? launch_lines(call, &join, order) : copy_inputs(call, &join);
}

bool sb_cuda_concat_bounded(const sb_kernel_query *query, int input, int axis) {
    return input < SB_CUDA_PLACES;
}
