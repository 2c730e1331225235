/* A row of the implicit product is what one output position sees, as runs of elements that lie side by side in memory:
 *
 * - A kernel of one element over dense positions needs no runs: x is the matrix.
 * - Where channels are innermost, a run is one kernel position's channels, read where they lie; padding is a run of zeros.
 * - Other inputs are first copied into that order. Where runs would be short, as with the three channels of an image, the
 *   copy has the padding too, so that a whole kernel row is one run: 7 runs of 21 elements instead of 49 of 3.
 *
 * ResNet-50's first convolution took 13.9 ms when each element was looked up by itself, of which the chain itself is 3.6. */
#include "cpu/contraction/conv16.h"

#include <string.h>

#include "base/allocation.h"
#include "cpu/contraction/chain16.h"
#include "cpu/contraction/depthwise16.h"
#include "cpu/pieces.h"
#include "ops/contraction.h"

/* Runs shorter than this are worth a copy with the padding … */
#define SHORT_RUN 16
/* … which has at most so many times x's elements, and some more. */
#define LARGEST_GROWTH 4
#define ANY_ELEMENTS ((int64_t)1 << 20)

/* ---- weights ---- */

/* The weights of one group as a gapless matrix [taps * group inputs][group outputs]. */
static int64_t chain_length(const sb_tensor *w) {
    int64_t length = 1;
    for (int i = 1; i < w->rank; i++)
        length *= w->dims[i];
    return length;
}

static size_t group_bytes(const sb_conv_params *params, const sb_tensor *w) {
    return sb_chain16_packed_bytes(chain_length(w), w->dims[0] / params->group);
}

size_t sb_conv16_packed_bytes(const sb_conv_params *params, const sb_tensor *w) {
    size_t bytes = group_bytes(params, w);
    return __builtin_mul_overflow(bytes, (size_t)params->group, &bytes) ? 0 : bytes;
}

/* The packing sees k as one strided dimension, so it goes through `dense`, a gapless copy of one group's weights in
 * chain order. */
static void pack_groups(const sb_conv_params *params, const sb_tensor *w, uint16_t *dense, uint16_t *packed) {
    int64_t k = chain_length(w), outputs = w->dims[0] / params->group, rank = w->rank;
    int64_t dims[SB_MAX_RANK], strides[SB_MAX_RANK];
    for (int i = 0; i < rank - 2; i++) {
        dims[i] = w->dims[i + 2];
        strides[i] = w->strides[i + 2];
    }
    dims[rank - 2] = w->dims[1];
    strides[rank - 2] = w->strides[1];
    dims[rank - 1] = outputs;
    strides[rank - 1] = w->strides[0];
    for (int64_t g = 0; g < params->group; g++) {
        const uint16_t *from = (const uint16_t *)(const void *)w->data + g * outputs * w->strides[0];
        sb_gather_dense(sizeof *from, (int)rank, dims, strides, from, dense);
        sb_chain16_pack_b(k, outputs, dense, outputs, 1, 0, outputs,
                          packed + (size_t)g * group_bytes(params, w) / sizeof *packed);
    }
}

sb_status sb_conv16_pack(const sb_conv_params *params, const sb_tensor *w, void *packed, sb_error *error) {
    size_t elements = (size_t)chain_length(w) * (size_t)(w->dims[0] / params->group);
    uint16_t *dense = sb_allocate_array(elements, sizeof *dense);
    if (dense == NULL)
        return sb_fail_memory(error, elements * sizeof *dense);
    pack_groups(params, w, dense, packed);
    sb_free(dense);
    return SB_OK;
}

/* ---- where the input lies ---- */

/* The input as runs see it: channels side by side; positions of any strides, some of them padding. */
typedef struct source {
    int axes;
    int64_t positions; /* of the output, of one sample */
    const uint16_t *x; /* the group's first channel */
    int64_t batch_stride, strides[SB_WINDOW_AXES];
    sb_window_axis axis[SB_WINDOW_AXES]; /* with a kernel of 1 along the last one where a run is a kernel row */
    int64_t runs, length;
    const uint16_t *zeros; /* a run of padding */
} source;

/* Where the taps of one output position begin: element offsets of its sample, and indices along each axis. */
typedef struct window {
    int64_t start[SB_WINDOW_AXES], tap[SB_WINDOW_AXES];
} window;

static void find_window(const source *source, int64_t position, int64_t run, window *at) {
    for (int d = source->axes - 1; d >= 0; d--) {
        const sb_window_axis *axis = &source->axis[d];
        at->start[d] = position % axis->out * axis->stride - axis->begin;
        position /= axis->out;
        at->tap[d] = run % axis->kernel;
        run /= axis->kernel;
    }
}

/* The offset of the current tap along all axes but the last; false in the padding. */
static bool outer_offset(const source *source, const window *at, int64_t *offset) {
    *offset = 0;
    for (int d = 0; d < source->axes - 1; d++) {
        int64_t index = at->start[d] + at->tap[d] * source->axis[d].dilation;
        if (index < 0 || index >= source->axis[d].in)
            return false;
        *offset += index * source->strides[d];
    }
    return true;
}

static void next_row(const source *source, window *at) {
    for (int d = source->axes - 2; d >= 0 && ++at->tap[d] == source->axis[d].kernel; d--)
        at->tap[d] = 0;
}

static void point_at_taps(void *context, int64_t row, int64_t first, int64_t count, const uint16_t **runs) {
    const source *source = context;
    int last = source->axes - 1;
    const sb_window_axis *axis = &source->axis[last];
    const uint16_t *x = source->x + row / source->positions * source->batch_stride;
    window at;
    find_window(source, row % source->positions, first, &at);
    for (int64_t i = 0; i < count; next_row(source, &at), at.tap[last] = 0) {
        int64_t offset, step = axis->dilation * source->strides[last];
        bool inside = outer_offset(source, &at, &offset);
        int64_t index = at.start[last] + at.tap[last] * axis->dilation;
        offset += index * source->strides[last];
        for (int64_t tap = at.tap[last]; tap < axis->kernel && i < count; tap++, i++) {
            runs[i] = inside && index >= 0 && index < axis->in ? x + offset : source->zeros;
            index += axis->dilation;
            offset += step;
        }
    }
}

/* ---- copying it ---- */

/* A copy of x in the order [batch][positions…][channel], positions shifted by `begin` and cut or filled with zeros up
 * to `extent`. */
typedef struct channels_last {
    const sb_tensor *x;
    int axes;
    int64_t begin[SB_WINDOW_AXES], extent[SB_WINDOW_AXES];
    int64_t lines; /* batch and all axes but the last */
    uint16_t *to;
} channels_last;

/* A line of positions along the last axis. */
static void copy_line(const channels_last *copy, int64_t line, uint16_t *to) {
    const sb_tensor *x = copy->x;
    int last = copy->axes - 1;
    int64_t channels = x->dims[1], extent = copy->extent[last], begin = copy->begin[last], in = x->dims[last + 2];
    int64_t offset = 0;
    bool inside = true;
    for (int d = last - 1; d >= 0; d--) {
        int64_t index = line % copy->extent[d] - copy->begin[d];
        line /= copy->extent[d];
        inside = inside && index >= 0 && index < x->dims[d + 2];
        offset += index * x->strides[d + 2];
    }
    int64_t first = begin < 0 ? 0 : begin < extent ? begin : extent;
    int64_t end = in + begin < extent ? in + begin : extent;
    if (!inside || end <= first) {
        memset(to, 0, (size_t)(extent * channels) * sizeof *to);
        return;
    }
    offset += line * x->strides[0] + (first - begin) * x->strides[last + 2];
    const uint16_t *from = (const uint16_t *)(const void *)x->data + offset;
    memset(to, 0, (size_t)(first * channels) * sizeof *to);
    for (int64_t c = 0; c < channels; c++) {
        for (int64_t i = 0; i < end - first; i++)
            to[(first + i) * channels + c] = from[c * x->strides[1] + i * x->strides[last + 2]];
    }
    memset(to + end * channels, 0, (size_t)((extent - end) * channels) * sizeof *to);
}

static void copy_lines(void *context, int64_t begin, int64_t end) {
    const channels_last *copy = context;
    int64_t elements = copy->extent[copy->axes - 1] * copy->x->dims[1];
    for (int64_t line = begin; line < end; line++)
        copy_line(copy, line, copy->to + line * elements);
}

/* Reads x through a copy with these extents from here on. */
static sb_status copy_input(sb_call *call, channels_last *copy, source *source) {
    int64_t step = copy->x->dims[1];
    copy->lines = copy->x->dims[0];
    for (int d = copy->axes - 1; d >= 0; d--) {
        source->strides[d] = step;
        step *= copy->extent[d];
        copy->lines *= d < copy->axes - 1 ? copy->extent[d] : 1;
        source->axis[d].begin -= copy->begin[d];
        source->axis[d].in = copy->extent[d];
    }
    source->batch_stride = step;
    void *memory;
    SB_TRY(sb_call_workspace(call, (size_t)(copy->x->dims[0] * step) * sizeof(uint16_t), &memory));
    source->x = copy->to = memory;
    sb_workers_run(call->workers, copy->lines, 1, copy_lines, copy);
    return SB_OK;
}

/* Extents with which no window leaves the copy; false where that would be far larger than x. */
static bool pad_extents(const sb_conv_extents *extents, channels_last *copy) {
    int64_t most, elements = copy->x->dims[0] * copy->x->dims[1];
    if (__builtin_mul_overflow(sb_tensor_elements(copy->x), LARGEST_GROWTH, &most) ||
        __builtin_add_overflow(most, ANY_ELEMENTS, &most))
        return false;
    for (int d = 0; d < copy->axes; d++) {
        const sb_window_axis *axis = &extents->axis[d];
        copy->begin[d] = axis->begin;
        copy->extent[d] = (axis->out - 1) * axis->stride + (axis->kernel - 1) * axis->dilation + 1;
        if (__builtin_mul_overflow(elements, copy->extent[d], &elements) || elements > most)
            return false;
    }
    return true;
}

/* Where and how rows are read; copies x where that is needed. */
static sb_status find_source(sb_call *call, const sb_conv16 *conv, source *source) {
    const sb_conv_extents *extents = conv->extents;
    int last = extents->axes - 1;
    const sb_window_axis *axis = &extents->axis[last];
    *source = (struct source){.axes = extents->axes,
                              .positions = extents->positions,
                              .x = (const uint16_t *)(const void *)conv->x->data,
                              .batch_stride = conv->x->strides[0],
                              .runs = extents->taps,
                              .length = extents->group_inputs};
    memcpy(source->strides, conv->x->strides + 2, (size_t)extents->axes * sizeof *source->strides);
    memcpy(source->axis, extents->axis, sizeof source->axis);
    channels_last copy = {.x = conv->x, .axes = extents->axes};
    bool whole_rows = extents->groups == 1 && extents->group_inputs < SHORT_RUN && axis->kernel > 1 &&
                      axis->dilation == 1 && pad_extents(extents, &copy);
    if (whole_rows) {
        SB_TRY(copy_input(call, &copy, source));
        source->runs = extents->taps / axis->kernel;
        source->length = extents->group_inputs * axis->kernel;
        source->axis[last].kernel = 1;
    } else if (conv->x->strides[1] != 1 && conv->x->dims[1] != 1) {
        memset(copy.begin, 0, sizeof copy.begin);
        memcpy(copy.extent, conv->x->dims + 2, (size_t)extents->axes * sizeof *copy.extent);
        SB_TRY(copy_input(call, &copy, source));
    }
    void *zeros;
    SB_TRY(sb_call_workspace(call, (size_t)(source->length + 1) * sizeof(uint16_t), &zeros));
    memset(zeros, 0, (size_t)(source->length + 1) * sizeof(uint16_t));
    source->zeros = zeros;
    return SB_OK;
}

/* Whether the source is a matrix: each output position sees one input position, an even step apart. */
static bool is_matrix(const sb_conv_extents *extents, const source *source, int64_t *step) {
    int64_t reach = 0;
    bool any = false; /* an axis of more than one position has been seen; its step may be 0 */
    *step = 0;
    for (int d = source->axes; d >= 0; d--) {
        int i = d - 1; /* the batch is outermost, at -1 */
        const sb_window_axis *axis = &source->axis[i < 0 ? 0 : i];
        int64_t extent = i < 0 ? extents->batch : axis->out;
        int64_t stride = i < 0 ? source->batch_stride : source->strides[i] * axis->stride;
        if (i >= 0 && (axis->kernel != 1 || axis->begin != 0 || (axis->out - 1) * axis->stride >= axis->in))
            return false;
        if (extent == 1)
            continue;
        if (!any)
            *step = stride;
        else if (stride != reach)
            return false;
        any = true;
        reach = stride * extent;
    }
    return source->runs == 1;
}

/* ---- running ---- */

typedef struct convolution {
    const sb_conv16 *conv;
    const sb_chain16_kernels *kernels;
    source source;
    bool is_matrix;
    int64_t row_step; /* of the matrix */
    sb_gemm_split split;
} convolution;

/* The product of one group; `source` is NULL to count workspace only. */
static sb_chain16_args group_args(const convolution *run, int64_t group, source *source) {
    const sb_conv_extents *extents = run->conv->extents;
    int64_t first = group * extents->group_outputs;
    size_t packed = run->conv->packed_bytes / (size_t)extents->groups * (size_t)group;
    sb_chain16_args args = {.dtype = run->conv->x->dtype,
                            .m = extents->batch * extents->positions,
                            .n = extents->group_outputs,
                            .k = extents->taps * extents->group_inputs,
                            .packed_b = (const uint16_t *)(const void *)((const char *)run->conv->packed + packed),
                            .c = (uint16_t *)(void *)run->conv->y->data + first,
                            .c_dtype = run->conv->y->dtype,
                            .c_row_stride = extents->groups * extents->group_outputs,
                            .c_column_stride = 1};
    if (run->is_matrix) {
        args.a = run->source.x + group * extents->group_inputs;
        args.a_row_stride = run->row_step;
        args.a_column_stride = 1;
    } else {
        args.point = point_at_taps;
        args.point_context = source;
        args.runs = run->source.runs;
        args.run_length = run->source.length;
    }
    return args;
}

static void run_rectangle(void *context, int64_t index, void *workspace) {
    const convolution *run = context;
    const sb_conv16 *conv = run->conv;
    int64_t parts = run->split.m_parts * run->split.n_parts, group = index / parts, m0, m1, n0, n1;
    int64_t first = group * conv->extents->group_outputs;
    source source = run->source;
    source.x += group * conv->extents->group_inputs;
    sb_fused_epilogue fused = *conv->fused;
    sb_epilogue epilogue = {0};
    for (int i = 0; i < fused.operands; i++)
        fused.data[i] += first * fused.column_steps[i];
    if (conv->bias != NULL)
        epilogue.steps[epilogue.count++] =
            (sb_epilogue_step){.kind = SB_EPILOGUE_ADD_COLUMNS, .vector = conv->bias + first};
    sb_fused_epilogue_append(&fused, &epilogue);
    sb_chain16_args args = group_args(run, group, &source);
    args.epilogue = &epilogue;
    sb_gemm_split_rectangle(&run->split, index % parts, &m0, &m1, &n0, &n1);
    sb_chain16_run(run->kernels, &args, m0, m1, n0, n1, workspace);
}

sb_status sb_conv16_run(sb_call *call, const sb_conv16 *conv) {
    if (sb_depthwise16_fits(conv))
        return sb_depthwise16_run(call, conv);
    const sb_conv_extents *extents = conv->extents;
    convolution run = {.conv = conv, .kernels = sb_chain16_kernels_of(call->isa)};
    SB_TRY(find_source(call, conv, &run.source));
    run.is_matrix = is_matrix(extents, &run.source, &run.row_step);
    int64_t threads = sb_workers_threads(call->workers);
    int per_group = (int)((threads + extents->groups - 1) / extents->groups);
    run.split = sb_chain16_split(extents->batch * extents->positions, extents->group_outputs, per_group);
    sb_chain16_args args = group_args(&run, 0, NULL);
    size_t workspace = sb_chain16_workspace_bytes(&args);
    if (workspace == 0)
        return sb_call_fail(call, SB_ERROR_OUT_OF_MEMORY, "the workspace's size overflows");
    return sb_pieces_run(call, extents->groups * run.split.m_parts * run.split.n_parts, workspace, run_rectangle, &run);
}
