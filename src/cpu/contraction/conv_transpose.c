#include "cpu/contraction/conv_transpose.h"

#include "cpu/contraction/gemm_block.h"

static int64_t minimum(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t maximum(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t floor_divide(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* -- Phases ------------------------------------------------------------------------------------ */

/* The kernel positions of an axis that reach the outputs of one phase: first, first + step, … , `count` of them. With
 * o + begin - first * dilation = stride * base, position number j reads input base - j * input_step. */
typedef struct phase {
    int64_t first, step, count;
    int64_t input_step;
    int64_t before; /* kernel positions of the phases before this one */
} phase;

/* The axis' kernel, stride and dilation as the plan has them: of a folded last axis none is left. */
typedef struct axis {
    int64_t kernel, stride, dilation, begin, input;
} axis;

static axis axis_of(const sb_conv_transpose_plan *plan, int d) {
    const sb_conv_transpose_shape *shape = &plan->shape;
    if (plan->shape.folds && d == shape->rank - 1)
        return (axis){.kernel = 1, .stride = 1, .dilation = 1, .begin = 0, .input = shape->input[d]};
    return (axis){.kernel = shape->kernel[d],
                  .stride = shape->stride[d],
                  .dilation = shape->dilation[d],
                  .begin = shape->begin[d],
                  .input = shape->input[d]};
}

/* The phase of the outputs whose remainder is `remainder`. */
static phase phase_of(const axis *axis, int64_t remainder) {
    const int64_t divisor = common_divisor(axis->stride, axis->dilation);
    phase p = {.step = axis->stride / divisor, .input_step = axis->dilation / divisor};
    /* Remainders repeat after `step` positions, and differ before. */
    for (int64_t t = 0; t < axis->kernel && t < p.step; t++) {
        const int64_t rest = t * axis->dilation % axis->stride, same = (axis->kernel - 1 - t) / p.step + 1;
        if (rest < remainder)
            p.before += same;
        if (rest == remainder) {
            p.first = t;
            p.count = same;
        }
    }
    return p;
}

static int64_t remainder_of(const axis *axis, int64_t output) {
    const int64_t rest = (output + axis->begin) % axis->stride;
    return rest < 0 ? rest + axis->stride : rest;
}

/* The input that the phase's first kernel position reads for an output; it may lie outside. */
static int64_t base_of(const axis *axis, const phase *p, int64_t output) {
    return floor_divide(output + axis->begin - p->first * axis->dilation, axis->stride);
}

/* The positions [*first, *end) of a phase that reach from inside the input. */
static void reaching(const axis *axis, const phase *p, int64_t base, int64_t *first, int64_t *end) {
    *first = maximum(0, -floor_divide(axis->input - 1 - base, p->input_step));
    *end = minimum(p->count, floor_divide(base, p->input_step) + 1);
    if (*end < *first)
        *end = *first;
}

/* -- Plan -------------------------------------------------------------------------------------- */

static bool multiply(int64_t *product, int64_t factor) {
    return !__builtin_mul_overflow(*product, factor, product);
}

typedef struct workspace {
    const float **a; /* [runs][SB_GEMM_BLOCK_ROWS] */
    float **c;       /* [SB_GEMM_BLOCK_ROWS] */
    float *lines;    /* copied input lines */
    void *block;
    size_t bytes; /* 0: overflow */
} workspace;

static workspace cut_workspace(const sb_conv_transpose_plan *plan, void *memory) {
    const int last = plan->shape.rank - 1;
    int64_t pointers = plan->runs, copied = plan->copied_lines;
    bool fits = multiply(&pointers, SB_GEMM_BLOCK_ROWS * (int64_t)sizeof(float *)) &&
                multiply(&copied, plan->shape.input[last]) && multiply(&copied, plan->shape.input_channels) &&
                multiply(&copied, (int64_t)sizeof(float)) && pointers < INT64_MAX >> 8 && copied < INT64_MAX >> 8;
    char *start = memory;
    workspace w = {0};
    if (!fits)
        return w;
    size_t c = sb_gemm_lines((size_t)pointers), lines = c + sb_gemm_lines(SB_GEMM_BLOCK_ROWS * sizeof(float *));
    size_t block = lines + sb_gemm_lines((size_t)copied);
    w.bytes = block + sb_gemm_block_workspace_bytes();
    if (memory != NULL) {
        w.a = (const float **)(void *)start;
        w.c = (float **)(void *)(start + c);
        w.lines = (float *)(void *)(start + lines);
        w.block = start + block;
    }
    return w;
}

static bool count_sizes(sb_conv_transpose_plan *plan) {
    const sb_conv_transpose_shape *shape = &plan->shape;
    const int last = shape->rank - 1;
    plan->channels = shape->input_channels / shape->groups;
    plan->columns = shape->output_channels / shape->groups;
    plan->taps = plan->runs = 1;
    plan->lines = shape->batch;
    plan->line_pixels = plan->shape.folds ? shape->input[last] : shape->output[last];
    bool fits = !plan->shape.folds || multiply(&plan->columns, shape->kernel[last]);
    int64_t lines_read = 1;
    for (int d = 0; d < shape->rank; d++) {
        const axis axis = axis_of(plan, d);
        const int64_t most = (axis.kernel - 1) / (axis.stride / common_divisor(axis.stride, axis.dilation)) + 1;
        fits = fits && multiply(&plan->taps, axis.kernel) && multiply(&plan->runs, most);
        if (d < last)
            fits = fits && multiply(&plan->lines, shape->output[d]) && multiply(&lines_read, most);
    }
    plan->copied_lines = shape->x_channel_stride == 1 ? 0 : lines_read;
    return fits;
}

/* Bytes of a group's packed weights; 0 on overflow. */
static size_t group_bytes(const sb_conv_transpose_plan *plan) {
    int64_t k = plan->taps;
    return multiply(&k, plan->channels) ? sb_gemm_f32_packed_bytes(plan->kernels, k, plan->columns) : 0;
}

sb_status sb_conv_transpose_f32_plan(const sb_gemm_kernels *kernels, const sb_conv_transpose_shape *shape,
                                     sb_conv_transpose_plan *plan, sb_error *error) {
    *plan = (sb_conv_transpose_plan){.kernels = kernels, .shape = *shape};
    bool fits = count_sizes(plan);
    if (fits) {
        const size_t group = group_bytes(plan);
        plan->workspace_bytes = cut_workspace(plan, NULL).bytes;
        fits = group > 0 && plan->workspace_bytes > 0 &&
               !__builtin_mul_overflow(group, (size_t)shape->groups, &plan->packed_bytes);
    }
    if (!fits)
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "transposed convolution: sizes overflow (batch %lld, %lld to %lld channels); use smaller ones",
                       (long long)shape->batch, (long long)shape->input_channels, (long long)shape->output_channels);
    return SB_OK;
}

/* -- Weights ----------------------------------------------------------------------------------- */

/* A panel is [phase of the first axis][… of the last][kernel positions of these phases, row-major][channel][column], so
 * that what an output's chain runs over lies behind each other. The number of kernel positions before those of some
 * phases; counts[d] is the number of each. */
static int64_t place_of_phases(const sb_conv_transpose_plan *plan, const phase *phases) {
    int64_t place = 0, count = 1;
    for (int d = 0; d < plan->shape.rank; d++) {
        int64_t behind = 1;
        for (int e = d + 1; e < plan->shape.rank; e++)
            behind *= axis_of(plan, e).kernel;
        place += count * phases[d].before * behind;
        count *= phases[d].count;
    }
    return place;
}

/* The place of kernel position `tap` in a panel. */
static int64_t place_of(const sb_conv_transpose_plan *plan, const int64_t *tap) {
    phase phases[SB_CONV_RANK];
    int64_t within = 0;
    for (int d = 0; d < plan->shape.rank; d++) {
        const axis axis = axis_of(plan, d);
        phases[d] = phase_of(&axis, tap[d] * axis.dilation % axis.stride);
        within = within * phases[d].count + (tap[d] - phases[d].first) / phases[d].step;
    }
    return place_of_phases(plan, phases) + within;
}

/* One kernel position of one panel: `columns` columns from `column` on. */
static void pack_position(const sb_conv_transpose_plan *plan, const float *w, int64_t w_input_stride,
                          int64_t w_output_stride, int64_t w_last_stride, int64_t column, float *packed) {
    const int64_t panel = plan->kernels->panel, outputs = plan->shape.output_channels / plan->shape.groups;
    const int64_t columns = minimum(panel, plan->columns - column);
    for (int64_t c = 0; c < plan->channels; c++, packed += panel, w += w_input_stride) {
        for (int64_t j = 0; j < columns; j++)
            packed[j] = w[(column + j) % outputs * w_output_stride + (column + j) / outputs * w_last_stride];
        for (int64_t j = columns; j < panel; j++)
            packed[j] = 0.0f;
    }
}

void sb_conv_transpose_f32_pack(const sb_conv_transpose_plan *plan, const float *w, int64_t w_input_stride,
                                int64_t w_output_stride, const int64_t *w_kernel_strides, float *packed) {
    const sb_conv_transpose_shape *shape = &plan->shape;
    const int64_t panel = plan->kernels->panel, position = plan->channels * panel;
    const size_t group_floats = plan->packed_bytes / (size_t)shape->groups / sizeof(float);
    int64_t tap[SB_CONV_RANK] = {0};
    for (int64_t t = 0; t < plan->taps; t++) {
        int64_t offset = 0;
        for (int d = 0; d < shape->rank; d++)
            offset += tap[d] * w_kernel_strides[d];
        const int64_t place = place_of(plan, tap);
        for (int64_t g = 0; g < shape->groups; g++) {
            float *to = packed + (size_t)g * group_floats + place * position;
            const float *from = w + offset + g * plan->channels * w_input_stride;
            for (int64_t column = 0; column < plan->columns; column += panel, to += plan->taps * position)
                pack_position(plan, from, w_input_stride, w_output_stride,
                              plan->shape.folds ? w_kernel_strides[shape->rank - 1] : 0, column, to);
        }
        for (int d = shape->rank - 1; d >= 0 && ++tap[d] == axis_of(plan, d).kernel; d--)
            tap[d] = 0;
    }
    /* What a tile may load behind the last row. */
    for (int64_t g = 0; g < shape->groups; g++) {
        const size_t used = (size_t)((plan->columns + panel - 1) / panel * plan->taps * position);
        for (size_t i = used; i < group_floats; i++)
            packed[(size_t)g * group_floats + i] = 0.0f;
    }
}

/* -- Running ----------------------------------------------------------------------------------- */

/* One line of output pixels: the phases of the axes before the last, and what they read. */
typedef struct line {
    const sb_conv_transpose_plan *plan;
    workspace workspace;
    const float *packed;
    const sb_epilogue *epilogue;
    float *y; /* the line's first pixel */
    axis axis;
    phase phases[SB_CONV_RANK];                                         /* the last one changes along the line */
    int64_t base[SB_CONV_RANK], first[SB_CONV_RANK], end[SB_CONV_RANK]; /* of those before the last: what reaches */
    const float *x;               /* input pixel 0 of the line that reaching positions (first, …) read */
    int64_t x_pixel;              /* from an input pixel to the next */
    int64_t x_line[SB_CONV_RANK]; /* from a kernel position of a phase to the next, for the axes before the last */
} line;

/* Positions of one run of the chain: along the axes before the last each of [first, end), row-major. */
static bool next_position(const line *line, int64_t *position, int from) {
    for (int d = from; d >= 0; d--) {
        if (++position[d] < line->end[d])
            return true;
        position[d] = line->first[d];
    }
    return false;
}

/* Pointers for `rows` pixels, whose bases are `base` and the following, of the kernel positions at `position` on the axes
 * before the last and [first, end) of the last one. Returns how many runs those are. */
static int64_t point_at_inputs(const line *line, const int64_t *position, int64_t base, int64_t rows, int64_t first,
                               int64_t end, const float **pointers) {
    const int last = line->plan->shape.rank - 1;
    const float *x = line->x;
    for (int d = 0; d < last; d++)
        x += (position[d] - line->first[d]) * line->x_line[d];
    for (int64_t j = first; j < end; j++, pointers += SB_GEMM_BLOCK_ROWS) {
        const float *from = x + (base - j * line->phases[last].input_step) * line->x_pixel;
        for (int64_t r = 0; r < rows; r++)
            pointers[r] = from + r * line->x_pixel;
    }
    return end - first;
}

/* The chains' part of `runs` runs, whose weights begin at place `place` of each panel. */
static void compute_runs(const line *line, int64_t group, int64_t rows, int64_t runs, int64_t place, bool begins,
                         bool ends) {
    const sb_conv_transpose_plan *plan = line->plan;
    const int64_t panel = plan->kernels->panel, n = group * plan->columns;
    const size_t group_floats = plan->packed_bytes / (size_t)plan->shape.groups / sizeof(float);
    sb_gemm_block_compute(plan->kernels, &(sb_gemm_block){.rows = rows,
                                                          .a = line->workspace.a,
                                                          .a_run_step = SB_GEMM_BLOCK_ROWS,
                                                          .a_offset = group * plan->channels,
                                                          .a_column_stride = 1,
                                                          .runs = runs,
                                                          .length = plan->channels,
                                                          .b = line->packed + (size_t)group * group_floats +
                                                               place * plan->channels * panel,
                                                          .b_step = panel,
                                                          .b_panel_step = plan->taps * plan->channels * panel,
                                                          .n0 = n,
                                                          .n1 = n + plan->columns,
                                                          .c = line->workspace.c,
                                                          .continues = !begins,
                                                          .epilogue = ends ? line->epilogue : NULL,
                                                          .workspace = line->workspace.block});
}

/* `rows` pixels whose bases on the last axis follow each other, reached by its positions [first, end). */
static void compute_block(const line *line, int64_t group, int64_t base, int64_t rows, int64_t first, int64_t end) {
    const int last = line->plan->shape.rank - 1;
    const int64_t place = place_of_phases(line->plan, line->phases);
    bool reached = end > first;
    for (int d = 0; d < last; d++)
        reached = reached && line->end[d] > line->first[d];
    if (!reached) { /* chains of nothing */
        for (int64_t r = 0; r < rows; r++)
            line->workspace.a[r] = line->y;
        compute_runs(line, group, rows, 0, 0, true, true);
        return;
    }
    /* Runs whose weights lie behind each other are computed at once: where axes reach from all of their positions, those
     * and what the axis before them reaches from. */
    int joined = last;
    bool whole = first == 0 && end == line->phases[last].count;
    for (; whole && joined > 0; joined--)
        whole = line->first[joined - 1] == 0 && line->end[joined - 1] == line->phases[joined - 1].count;
    int64_t position[SB_CONV_RANK];
    for (int d = 0; d < last; d++)
        position[d] = line->first[d];
    bool begins = true, more = true;
    while (more) {
        int64_t at = 0, runs = 0, pieces = 1;
        for (int d = 0; d < last; d++)
            at = at * line->phases[d].count + position[d];
        at = at * line->phases[last].count + first;
        for (int d = joined; d < last; d++)
            pieces *= line->end[d] - line->first[d];
        for (; pieces > 0; pieces--) {
            runs +=
                point_at_inputs(line, position, base, rows, first, end, line->workspace.a + runs * SB_GEMM_BLOCK_ROWS);
            more = next_position(line, position, last - 1);
        }
        compute_runs(line, group, rows, runs, place + at, begins, !more);
        begins = false;
    }
}

/* How many pixels from `base` on, at most `most`, the same positions [first, end) reach. */
static int64_t alike(const axis *axis, const phase *p, int64_t base, int64_t first, int64_t end, int64_t most) {
    if (first == 0 && end == p->count && end > 0) /* all of them, until the first one leaves the input */
        return axis->input - base;
    int64_t rows = 0, next_first = first, next_end = end;
    while (rows < most && next_first == first && next_end == end)
        reaching(axis, p, base + ++rows, &next_first, &next_end);
    return rows;
}

/* The line's pixels [first, end) of one phase of the last axis, which begin at `output` and lie a stride apart. */
static void compute_phase(line *line, int64_t output, int64_t end) {
    const sb_conv_transpose_plan *plan = line->plan;
    const sb_conv_transpose_shape *shape = &plan->shape;
    const int last = shape->rank - 1;
    const int64_t pixel = plan->shape.folds ? shape->y_stride[last] * shape->stride[last] : shape->y_stride[last];
    const phase *p = &line->phases[last];
    for (int64_t rows; output < end; output += rows * line->axis.stride) {
        int64_t base = base_of(&line->axis, p, output), first, stop;
        reaching(&line->axis, p, base, &first, &stop);
        rows = minimum((end - 1 - output) / line->axis.stride + 1, SB_GEMM_BLOCK_ROWS);
        rows = minimum(rows, alike(&line->axis, p, base, first, stop, rows));
        for (int64_t r = 0; r < rows; r++)
            line->workspace.c[r] = line->y + (output + r * line->axis.stride) * pixel;
        for (int64_t group = 0; group < shape->groups; group++) {
            compute_block(line, group, base, rows, first, stop);
            for (int64_t r = 0; r < rows; r++)
                line->workspace.c[r] += plan->columns;
        }
    }
}

/* Copies the input lines that an output line reads to channels-last order. */
static void copy_lines(line *line) {
    const sb_conv_transpose_shape *shape = &line->plan->shape;
    const int last = shape->rank - 1;
    const int64_t floats = shape->input[last] * shape->input_channels;
    int64_t position[SB_CONV_RANK], count = 1, copied = 0;
    for (int d = 0; d < last; d++) {
        position[d] = line->first[d];
        if (line->end[d] <= line->first[d])
            return;
    }
    do {
        const float *from = line->x;
        for (int d = 0; d < last; d++)
            from += (position[d] - line->first[d]) * line->x_line[d];
        line->plan->kernels->copy(shape->input[last], shape->input_channels, from, shape->x_stride[last],
                                  shape->x_channel_stride, line->workspace.lines + copied++ * floats,
                                  shape->input_channels);
    } while (next_position(line, position, last - 1));
    line->x = line->workspace.lines;
    line->x_pixel = shape->input_channels;
    for (int d = last - 1; d >= 0; d--) {
        line->x_line[d] = count * floats;
        count *= line->end[d] - line->first[d];
    }
}

/* Finds what line number `index` reads, and where it is. */
static void start_line(line *line, const float *x, float *y, int64_t index) {
    const sb_conv_transpose_plan *plan = line->plan;
    const sb_conv_transpose_shape *shape = &plan->shape;
    const int last = shape->rank - 1;
    line->x = x;
    line->y = y;
    for (int d = last - 1; d >= 0; d--) {
        const int64_t output = index % shape->output[d];
        const axis axis = axis_of(plan, d);
        index /= shape->output[d];
        line->phases[d] = phase_of(&axis, remainder_of(&axis, output));
        line->base[d] = base_of(&axis, &line->phases[d], output);
        reaching(&axis, &line->phases[d], line->base[d], &line->first[d], &line->end[d]);
        line->x_line[d] = -line->phases[d].input_step * shape->x_stride[d];
        if (line->end[d] > line->first[d])
            line->x += (line->base[d] - line->first[d] * line->phases[d].input_step) * shape->x_stride[d];
        line->y += output * shape->y_stride[d];
    }
    line->x += index * shape->x_batch_stride;
    line->y += index * shape->y_batch_stride;
    line->x_pixel = shape->x_stride[last];
    line->axis = axis_of(plan, last);
    if (plan->copied_lines > 0)
        copy_lines(line);
}

void sb_conv_transpose_f32_run(const sb_conv_transpose_plan *plan, const float *x, const float *packed,
                               const float *bias, float *y, int64_t line_index, int64_t line_end, int64_t first,
                               int64_t end, void *workspace) {
    const sb_epilogue epilogue = {.count = bias != NULL, .steps = {{.kind = SB_EPILOGUE_ADD_COLUMNS, .vector = bias}}};
    line line = {.plan = plan, .workspace = cut_workspace(plan, workspace), .packed = packed, .epilogue = &epilogue};
    const int last = plan->shape.rank - 1;
    for (; line_index < line_end; line_index++) {
        start_line(&line, x, y, line_index);
        for (int64_t output = first; output < end && output < first + line.axis.stride; output++) {
            line.phases[last] = phase_of(&line.axis, remainder_of(&line.axis, output));
            compute_phase(&line, output, end);
        }
    }
}
