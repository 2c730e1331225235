/* Running convolutions as implicit matrix products.
 *
 * No matrix of patches is made. For a block of output pixels a table of pointers is filled, one per kernel position (or
 * kernel row, see conv_strip.c) and pixel; padding points at zeros. Register tiles read the input through it, channel
 * by channel, while weights stream from packed panels (gemm_block.c). The table costs one store per pixel and position,
 * against `channels × columns` multiply-adds. */
#include "cpu/contraction/conv_internal.h"

typedef struct call {
    const sb_conv_plan *plan;
    sb_conv_workspace workspace;
    const float *x, *packed;
    float *y;
    const sb_epilogue *epilogue;
    int64_t n0, n1;
    int64_t strip_first; /* the strip's first index of the first output dimension; -1 without a strip */
} call;

static int64_t minimum(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t clamp(int64_t value, int64_t least, int64_t most) {
    return value < least ? least : value > most ? most : value;
}

/* ceil(a / b) for positive b and any a. */
static int64_t divide_up(int64_t a, int64_t b) {
    return a / b + (a % b > 0);
}

/* -- Pointers ---------------------------------------------------------------------------------- */

/* Consecutive output pixels [first, first + count) that differ in their last index only. */
typedef struct segment {
    int64_t batch;
    int64_t index[SB_CONV_RANK]; /* of the first pixel */
    int64_t count;
} segment;

/* The segment that starts at pixel m, of at most `most` pixels. */
static segment segment_at(const sb_conv_shape *shape, int64_t m, int64_t most) {
    segment s;
    for (int d = shape->rank - 1; d >= 0; d--) {
        s.index[d] = m % shape->output[d];
        m /= shape->output[d];
    }
    s.batch = m;
    s.count = minimum(most, shape->output[shape->rank - 1] - s.index[shape->rank - 1]);
    return s;
}

static void fill_constant(const float **pointers, int64_t count, const float *value) {
    for (int64_t i = 0; i < count; i++)
        pointers[i] = value;
}

static void fill_even(const float **pointers, int64_t count, const float *first, int64_t step) {
    for (int64_t i = 0; i < count; i++)
        pointers[i] = first + i * step;
}

/* `count` positions along the last dimension, `start` and then every `step`-th,
 * at one place of the other dimensions. */
typedef struct line {
    int64_t start, step, count;
} line;

/* The line that a segment reads at kernel position `tap`: a position per pixel. */
static line line_of(const sb_conv_shape *shape, const segment *s, const int64_t *tap) {
    const int last = shape->rank - 1;
    return (line){.start = s->index[last] * shape->stride[last] - shape->pad[last] + tap[last] * shape->dilation[last],
                  .step = shape->stride[last],
                  .count = s->count};
}

/* Pointers to a line's pixels in the input, or to zeros where it is outside. `s` and `tap` tell the
 * place in the other dimensions. */
static void point_at_input(const call *call, const segment *s, const int64_t *tap, line line, const float **pointers) {
    const sb_conv_shape *shape = &call->plan->shape;
    const int last = shape->rank - 1;
    int64_t offset = s->batch * shape->x_batch_stride;
    for (int d = 0; d < last; d++) {
        int64_t position = s->index[d] * shape->stride[d] - shape->pad[d] + tap[d] * shape->dilation[d];
        if (position < 0 || position >= shape->input[d]) {
            fill_constant(pointers, line.count, call->workspace.zero);
            return;
        }
        offset += position * shape->x_stride[d];
    }
    /* Position start + i * step must be in [0, input). */
    const int64_t first = clamp(divide_up(-line.start, line.step), 0, line.count);
    const int64_t end = clamp(divide_up(shape->input[last] - line.start, line.step), first, line.count);
    fill_constant(pointers, first, call->workspace.zero);
    if (end > first)
        fill_even(pointers + first, end - first,
                  call->x + offset + (line.start + first * line.step) * shape->x_stride[last],
                  line.step * shape->x_stride[last]);
    fill_constant(pointers + end, line.count - end, call->workspace.zero);
}

/* The same in the strip: nothing is outside, but for what follows its last column. */
static void point_at_strip(const call *call, const segment *s, const int64_t *tap, line line, const float **pointers) {
    const sb_conv_plan *plan = call->plan;
    const sb_conv_shape *shape = &plan->shape;
    const int last = shape->rank - 1;
    const int64_t channels = sb_conv_strip_channels(plan);
    int64_t position = 0;
    for (int d = 0; d < last; d++)
        position = position * plan->strip[d] + (s->index[d] - (d == 0 ? call->strip_first : 0)) * shape->stride[d] +
                   tap[d] * shape->dilation[d];
    int64_t column = line.start + shape->pad[last];
    if (last == 0)
        column -= call->strip_first * shape->stride[0];
    const int64_t inside = clamp(divide_up(plan->strip[last] - column, line.step), 0, line.count);
    fill_even(pointers, inside, call->workspace.strip + (position * plan->strip[last] + column) * channels,
              line.step * channels);
    fill_constant(pointers + inside, line.count - inside, call->workspace.zero);
}

static void point_at_line(const call *call, const segment *s, const int64_t *tap, line line, const float **pointers) {
    if (call->strip_first >= 0)
        point_at_strip(call, s, tap, line, pointers);
    else
        point_at_input(call, s, tap, line, pointers);
}

/* The next kernel position in row-major order, of dimensions 0 to `last`. */
static void next_tap(const sb_conv_shape *shape, int last, int64_t *tap) {
    for (int d = last; d >= 0 && ++tap[d] == shape->kernel[d]; d--)
        tap[d] = 0;
}

/* Fills the table for pixels [m, m + rows). */
static void fill_pointers(const call *call, int64_t m, int64_t rows) {
    const sb_conv_plan *plan = call->plan;
    const sb_conv_shape *shape = &plan->shape;
    /* Where kernel positions along the last dimension are one run, only the first one has a pointer. */
    const bool merged = plan->runs != plan->taps;
    for (int64_t row = 0; row < rows;) {
        segment s = segment_at(shape, m + row, rows - row);
        int64_t tap[SB_CONV_RANK] = {0};
        for (int64_t run = 0; run < plan->runs; run++) {
            point_at_line(call, &s, tap, line_of(shape, &s, tap), call->workspace.a + run * plan->table_rows + row);
            next_tap(shape, merged ? shape->rank - 2 : shape->rank - 1, tap);
        }
        row += s.count;
    }
}

/* Pointers to the first channel of output pixels [m, m + rows). */
static void fill_outputs(const call *call, int64_t m, int64_t rows) {
    const sb_conv_shape *shape = &call->plan->shape;
    for (int64_t row = 0; row < rows;) {
        segment s = segment_at(shape, m + row, rows - row);
        float *to = call->y + s.batch * shape->y_batch_stride;
        for (int d = 0; d < shape->rank; d++)
            to += s.index[d] * shape->y_stride[d];
        for (int64_t i = 0; i < s.count; i++)
            call->workspace.c[row + i] = to + i * shape->y_stride[shape->rank - 1];
        row += s.count;
    }
}

/* -- Strided output channels ------------------------------------------------------------------- */

static void point_at_rows(const call *call, int64_t rows) {
    for (int64_t r = 0; r < rows; r++)
        call->workspace.c[r] = call->workspace.c_rows + r * SB_CONV_STRIDED_COLUMNS;
}

/* Copies computed columns [n, n + count) of pixels [m, m + rows) to where they belong. */
static void scatter_rows(const call *call, int64_t m, int64_t rows, int64_t n, int64_t count) {
    const sb_conv_shape *shape = &call->plan->shape;
    const int last = shape->rank - 1;
    fill_outputs(call, m, rows);
    for (int64_t row = 0; row < rows;) {
        segment s = segment_at(shape, m + row, rows - row);
        const float *from = call->workspace.c_rows + row * SB_CONV_STRIDED_COLUMNS;
        float *to = call->workspace.c[row] + n * shape->y_channel_stride;
        if (shape->y_stride[last] == 1) {
            call->plan->kernels->copy(count, s.count, from, 1, SB_CONV_STRIDED_COLUMNS, to, shape->y_channel_stride);
        } else {
            for (int64_t i = 0; i < s.count; i++)
                for (int64_t j = 0; j < count; j++)
                    to[i * shape->y_stride[last] + j * shape->y_channel_stride] = from[i * SB_CONV_STRIDED_COLUMNS + j];
        }
        row += s.count;
    }
}

/* -- Blocks ------------------------------------------------------------------------------------ */

/* Columns [n, n + count), of one group, of `rows` pixels from the table,
 * into rows that start where workspace.c points. */
typedef void compute_columns(const call *call, int64_t m, int64_t rows, int64_t n, int64_t count);

/* Whether all rows of a run show the padding. */
static bool run_is_padding(const call *call, int64_t rows, int64_t run) {
    const float *const *a = call->workspace.a + run * call->plan->table_rows;
    for (int64_t r = 0; r < rows; r++) {
        if (a[r] != call->workspace.zero)
            return false;
    }
    return true;
}

/* Adds +0 to the chains, as that is all that positions in the padding do. The epilogue, if any, follows. */
static void add_zero(const call *call, sb_gemm_block block, bool continues, const sb_epilogue *epilogue) {
    _Alignas(64) float ones[SB_CONV_MOST_PANEL];
    const float *zeros[SB_GEMM_BLOCK_ROWS];
    for (int64_t j = 0; j < call->plan->kernels->panel; j++)
        ones[j] = 1.0f;
    fill_constant(zeros, block.rows, call->workspace.zero);
    block.a = zeros;
    block.a_offset = 0;
    block.runs = block.length = 1;
    block.b = ones + block.panel_offset;
    block.b_panel_step = 0;
    block.continues = continues;
    block.epilogue = epilogue;
    sb_gemm_block_compute(call->plan->kernels, &block);
}

/* Stretch by stretch of runs that are in the padding for all rows, and of others. */
static void compute_skipping(const call *call, const sb_gemm_block *whole) {
    const sb_conv_plan *plan = call->plan;
    bool continues = false;
    for (int64_t run = 0, end; run < plan->runs; run = end) {
        const bool padding = run_is_padding(call, whole->rows, run);
        for (end = run + 1; end < plan->runs && run_is_padding(call, whole->rows, end) == padding;)
            end++;
        const sb_epilogue *epilogue = end == plan->runs ? whole->epilogue : NULL;
        sb_gemm_block block = *whole;
        block.a += run * plan->table_rows;
        block.b += run * plan->length * block.b_step;
        block.runs = end - run;
        block.continues = continues;
        block.epilogue = epilogue;
        if (!padding)
            sb_gemm_block_compute(plan->kernels, &block);
        else if (continues || end == plan->runs) /* chains that have not begun are +0 */
            add_zero(call, block, continues, epilogue);
        continues = continues || !padding;
    }
}

/* One group's columns, or a part of them. */
static void compute_group(const call *call, int64_t m, int64_t rows, int64_t n, int64_t count) {
    const sb_conv_plan *plan = call->plan;
    const int64_t groups = plan->shape.groups, panel = plan->kernels->panel;
    const int64_t columns = plan->n / groups, group = n / columns, within = n % columns;
    const float *weights = call->packed + (size_t)group * (plan->packed_bytes / (size_t)groups / sizeof(float));
    const int64_t channels = plan->shape.input_channels / groups;
    const sb_gemm_block block = {.rows = rows,
                                 .a = call->workspace.a,
                                 .a_run_step = plan->table_rows,
                                 .a_offset = sb_conv_has_strip(plan) ? 0 : group * channels,
                                 .a_column_stride = 1,
                                 .runs = plan->runs,
                                 .length = plan->length,
                                 .b = weights + within / panel * panel * plan->k + within % panel,
                                 .b_step = panel,
                                 .b_panel_step = plan->k * panel,
                                 .panel_offset = within % panel,
                                 .n0 = n,
                                 .n1 = n + count,
                                 .c = call->workspace.c,
                                 .far = plan->m >= SB_GEMM_FAR_BYTES / (int64_t)sizeof(float) / plan->n,
                                 .epilogue = call->epilogue,
                                 .m = m,
                                 .workspace = call->workspace.block};
    if (plan->skips && sb_conv_padding_is_neutral(plan, call->packed))
        compute_skipping(call, &block);
    else
        sb_gemm_block_compute(plan->kernels, &block);
}

static sb_depthwise_tile depthwise_tile(const call *call, int64_t n, int64_t count) {
    const sb_epilogue *epilogue = call->epilogue;
    sb_depthwise_tile tile = {.w = call->packed,
                              .y_offset = -n,
                              .taps = call->plan->taps,
                              .channel0 = n,
                              .channel1 = n + count,
                              .step = epilogue != NULL ? epilogue->steps : NULL};
    while (epilogue != NULL && tile.steps < epilogue->count && sb_epilogue_in_registers(&epilogue->steps[tile.steps]))
        tile.steps++;
    return tile;
}

/* The steps that cannot run in registers, and all after them, on the block's rows. */
static void epilogue_depthwise(const call *call, const sb_depthwise_tile *tile, int64_t m, int64_t rows) {
    if (call->epilogue != NULL && tile->steps < call->epilogue->count)
        sb_gemm_epilogue_rows(call->plan->kernels, tile->step + tile->steps, call->epilogue->count - tile->steps,
                              call->workspace.c, tile->channel0 + tile->y_offset, m, rows, tile->channel0,
                              tile->channel1 - tile->channel0);
}

static void compute_depthwise(const call *call, int64_t m, int64_t rows, int64_t n, int64_t count) {
    const sb_conv_plan *plan = call->plan;
    fill_pointers(call, m, rows);
    /* The last tile's missing pixels are copies of the last one. */
    for (int64_t r = rows; r % SB_DEPTHWISE_PIXELS != 0; r++)
        for (int64_t tap = 0; tap < plan->taps; tap++)
            call->workspace.a[tap * plan->table_rows + r] = call->workspace.a[tap * plan->table_rows + rows - 1];
    sb_depthwise_tile tile = depthwise_tile(call, n, count);
    tile.x_step = plan->table_rows;
    for (int64_t row = 0; row < rows; row += SB_DEPTHWISE_PIXELS) {
        tile.x = call->workspace.a + row;
        tile.y = call->workspace.c + row;
        tile.pixels = minimum(SB_DEPTHWISE_PIXELS, rows - row);
        tile.m = m + row;
        plan->kernels->depthwise(&tile);
    }
    epilogue_depthwise(call, &tile, m, rows);
}

/* Where channel 0 of column 0 is of the input row that a segment reads at kernel row `tap`, or of zeros. */
static const float *input_row(const call *call, const segment *s, const int64_t *tap) {
    const sb_conv_plan *plan = call->plan;
    const sb_conv_shape *shape = &plan->shape;
    int64_t offset = s->batch * shape->x_batch_stride, position = 0;
    for (int d = 0; d < shape->rank - 1; d++) {
        const int64_t at = s->index[d] * shape->stride[d] + tap[d] * shape->dilation[d];
        position = position * plan->strip[d] + at - (d == 0 ? call->strip_first * shape->stride[0] : 0);
        offset += (at - shape->pad[d]) * shape->x_stride[d];
        if (call->strip_first < 0 && (at < shape->pad[d] || at - shape->pad[d] >= shape->input[d]))
            return call->workspace.zero;
    }
    if (call->strip_first < 0)
        return call->x + offset;
    return call->workspace.strip + position * plan->strip[shape->rank - 1] * sb_conv_strip_channels(plan);
}

/* The input of a segment's pixels. */
static sb_depthwise_line line_of_segment(const call *call, const segment *s) {
    const sb_conv_plan *plan = call->plan;
    const sb_conv_shape *shape = &plan->shape;
    const int last = shape->rank - 1;
    const bool strip = call->strip_first >= 0;
    int64_t tap[SB_CONV_RANK] = {0};
    sb_depthwise_line line = {.x = call->workspace.a,
                              .zero = call->workspace.zero,
                              .rows = plan->taps / shape->kernel[last],
                              .width = shape->kernel[last],
                              .stride = shape->stride[last],
                              .dilation = shape->dilation[last],
                              .step = strip ? sb_conv_strip_channels(plan) : shape->x_stride[last],
                              .start = s->index[last] * shape->stride[last] - (strip ? 0 : shape->pad[last]),
                              .columns = strip ? plan->strip[last] : shape->input[last]};
    if (strip && last == 0)
        line.start -= call->strip_first * shape->stride[0];
    for (int64_t row = 0; row < line.rows; row++) {
        call->workspace.a[row] = input_row(call, s, tap);
        next_tap(shape, last - 1, tap);
    }
    return line;
}

/* Channels of such rows at a time, so that the input rows that an output row reads are still near when the next one reads
 * them. Measured (Zen 5, 240 channels of 54 × 54, 5 × 5): 16 channels 0.42 ms, 32 0.40, 64 0.34, all 0.34. */
#define LINE_CHANNELS 64

/* Row by row, without a table. */
static void compute_depthwise_lines(const call *call, int64_t m, int64_t rows, int64_t n, int64_t count) {
    sb_depthwise_tile tile = depthwise_tile(call, n, count);
    for (int64_t channel = n, next; channel < n + count; channel = next) {
        sb_depthwise_tile part = tile;
        next = minimum(channel - channel % LINE_CHANNELS + LINE_CHANNELS, n + count);
        part.channel0 = channel;
        part.channel1 = next;
        for (int64_t row = 0; row < rows;) {
            segment s = segment_at(&call->plan->shape, m + row, rows - row);
            const sb_depthwise_line line = line_of_segment(call, &s);
            part.y = call->workspace.c + row;
            part.pixels = s.count;
            part.m = m + row;
            call->plan->kernels->depthwise_line(&part, &line);
            row += s.count;
        }
    }
    epilogue_depthwise(call, &tile, m, rows);
}

/* A group of few channels, row by row, from the input as it lies. */
static void compute_lines(const call *call, int64_t m, int64_t rows, int64_t n, int64_t count) {
    const sb_conv_plan *plan = call->plan;
    const sb_epilogue *epilogue = call->epilogue;
    const int64_t panel = plan->kernels->panel;
    int steps = 0;
    while (epilogue != NULL && steps < epilogue->count && sb_epilogue_in_registers(&epilogue->steps[steps]))
        steps++;
    for (int64_t row = 0; row < rows;) {
        segment s = segment_at(&plan->shape, m + row, rows - row);
        const sb_depthwise_line input = line_of_segment(call, &s);
        const sb_conv_line line = {.x = input.x,
                                   .zero = input.zero,
                                   .rows = input.rows,
                                   .width = input.width,
                                   .channels = plan->shape.input_channels,
                                   .stride = input.stride,
                                   .dilation = input.dilation,
                                   .step = input.step,
                                   .channel_step = plan->shape.x_channel_stride,
                                   .start = input.start,
                                   .columns = input.columns,
                                   .panel = panel,
                                   .w = call->packed + n / panel * panel * plan->k,
                                   .n0 = n,
                                   .n1 = n + count,
                                   .panel_offset = n % panel,
                                   .y = call->workspace.c + row,
                                   .far = plan->m >= SB_GEMM_FAR_BYTES / (int64_t)sizeof(float) / plan->n,
                                   .pixels = s.count,
                                   .steps = steps,
                                   .epilogue = epilogue != NULL ? epilogue->steps : NULL,
                                   .m = m + row};
        if (!plan->kernels->conv_planes(&line))
            plan->kernels->conv_line(&line);
        row += s.count;
    }
    if (epilogue != NULL && steps < epilogue->count)
        sb_gemm_epilogue_rows(plan->kernels, epilogue->steps + steps, epilogue->count - steps, call->workspace.c, 0, m,
                              rows, n, count);
}

/* Columns [n0, n1) of pixels [m, m + rows), at most a block. */
static void compute_block(const call *call, int64_t m, int64_t rows, int64_t n0, int64_t n1) {
    const sb_conv_plan *plan = call->plan;
    const bool strided = plan->shape.y_channel_stride != 1;
    const int64_t group_columns = sb_conv_is_depthwise(plan) ? plan->n : plan->n / plan->shape.groups;
    compute_columns *compute = compute_group;
    if (plan->lines)
        compute = compute_depthwise_lines;
    else if (plan->method == SB_CONV_LINES)
        compute = compute_lines;
    else if (sb_conv_is_depthwise(plan))
        compute = compute_depthwise;
    else
        fill_pointers(call, m, rows);
    while (n0 < n1) {
        int64_t count = minimum(n1 - n0, group_columns - n0 % group_columns);
        if (strided) {
            count = minimum(count, SB_CONV_STRIDED_COLUMNS);
            point_at_rows(call, rows);
        } else {
            fill_outputs(call, m, rows);
            for (int64_t r = 0; r < rows; r++)
                call->workspace.c[r] += n0;
        }
        compute(call, m, rows, n0, count);
        if (strided)
            scatter_rows(call, m, rows, n0, count);
        n0 += count;
    }
}

static void compute_blocks(const call *call, int64_t m, int64_t end, int64_t n0, int64_t n1) {
    while (m < end) {
        int64_t rows = minimum(call->plan->block_rows, end - m);
        compute_block(call, m, rows, n0, n1);
        m += rows;
    }
}

/* Strip by strip: as many pixels as one serves, and for each the groups in turn, as a strip holds
 * one group's channels (or, for depthwise, all). */
static void run_strips(call *call, int64_t m0, int64_t m1) {
    const sb_conv_plan *plan = call->plan;
    const int64_t group_columns = sb_conv_is_depthwise(plan) ? plan->n : plan->n / plan->shape.groups;
    for (int64_t m = m0; m < m1;) {
        const int64_t sample = m - m % plan->pixels;
        const int64_t first = (m - sample) / plan->row_pixels;
        const int64_t end =
            minimum(m1, sample + minimum((first + plan->strip_outputs) * plan->row_pixels, plan->pixels));
        const int64_t count = (end - 1 - sample) / plan->row_pixels - first + 1;
        call->strip_first = first;
        for (int64_t n = call->n0; n < call->n1;) {
            const int64_t group = n / group_columns;
            const int64_t n1 = minimum(call->n1, (group + 1) * group_columns);
            sb_conv_copy_strip(plan, call->x, m / plan->pixels, group, first, count, call->workspace.strip);
            compute_blocks(call, m, end, n, n1);
            n = n1;
        }
        m = end;
    }
}

void sb_conv_f32_run(const sb_conv_plan *plan, const float *x, const float *packed, float *y,
                     const sb_epilogue *epilogue, int64_t m0, int64_t m1, int64_t n0, int64_t n1, void *workspace) {
    if (m0 >= m1 || n0 >= n1)
        return;
    if (plan->method == SB_CONV_MATRIX) {
        sb_gemm_args args = plan->matrix;
        args.a = x;
        args.packed_b = packed;
        args.c = y;
        args.epilogue = epilogue;
        sb_gemm_f32_run(plan->kernels, &args, m0, m1, n0, n1, workspace);
        return;
    }
    call call = {.plan = plan,
                 .workspace = sb_conv_cut_workspace(plan, workspace),
                 .x = x,
                 .packed = packed,
                 .y = y,
                 .epilogue = epilogue,
                 .n0 = n0,
                 .n1 = n1,
                 .strip_first = -1};
    for (int64_t c = 0; c < sb_conv_zero_floats(plan); c++)
        call.workspace.zero[c] = 0.0f;
    if (sb_conv_has_strip(plan))
        run_strips(&call, m0, m1);
    else
        compute_blocks(&call, m0, m1, n0, n1);
}
