/* Planning convolutions and packing their weights. How they run is in conv_run.c. */
#include "cpu/contraction/conv_internal.h"
#include "numerics/scalar.h"

/* Bytes of a strip, about: a quarter of an L2. */
#define STRIP_BYTES ((int64_t)256 << 10)

/* Pointers made at once, at most, unless one tile of rows needs more. */
#define POINTERS ((int64_t)1 << 15)

/* Runs shorter than this cost more in pointers than a copied strip does. */
#define SHORT_RUN 16

/* Input channels of which so few make output rows worth computing from where they lie, and the longest chain of it, as
 * weights of a panel are read again for each tile. */
#define FEW_CHANNELS 4
#define SHORT_CHAIN 256

/* Output rows that are computed as such. */
#define LONG_ROW 24

/* The same of depthwise convolutions whose pixels share what is loaded. */
#define SHARING_ROW 4

/* Output pixels of such rows at a time, at most. */
#define LINE_PIXELS 2048

/* Input channels from which positions in the padding are left out. */
#define LEAST_SKIPPED 32

/* Positions, padding included, are counted up to here. */
#define LARGEST_POSITION ((int64_t)1 << 48)

static int64_t divide_up(int64_t a, int64_t b) {
    return a / b + (a % b != 0);
}

static bool multiply(int64_t *product, int64_t factor) {
    return !__builtin_mul_overflow(*product, factor, product);
}

/* -- Checks ------------------------------------------------------------------------------------ */

static sb_status check_shape(const sb_conv_shape *shape, sb_error *error) {
    if (shape->rank < 1 || shape->rank > SB_CONV_RANK)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "convolution: %d spatial dimensions; 1 to %d are supported",
                       shape->rank, SB_CONV_RANK);
    if (shape->batch < 0 || shape->groups < 1 || shape->input_channels < 0 || shape->output_channels < 0 ||
        shape->input_channels % shape->groups != 0 || shape->output_channels % shape->groups != 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "convolution: %lld input and %lld output channels do not divide into %lld groups",
                       (long long)shape->input_channels, (long long)shape->output_channels, (long long)shape->groups);
    for (int d = 0; d < shape->rank; d++) {
        if (shape->kernel[d] < 1 || shape->stride[d] < 1 || shape->dilation[d] < 1 || shape->input[d] < 0 ||
            shape->output[d] < 0)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                           "convolution: spatial dimension %d has input %lld, output %lld, kernel "
                           "%lld, stride "
                           "%lld, dilation %lld; kernel, stride and dilation must be positive",
                           d, (long long)shape->input[d], (long long)shape->output[d], (long long)shape->kernel[d],
                           (long long)shape->stride[d], (long long)shape->dilation[d]);
        int64_t outputs = shape->output[d], reach = shape->kernel[d];
        if (!multiply(&outputs, shape->stride[d]) || !multiply(&reach, shape->dilation[d]) ||
            outputs > LARGEST_POSITION || reach > LARGEST_POSITION || shape->input[d] > LARGEST_POSITION ||
            shape->pad[d] > LARGEST_POSITION || shape->pad[d] < -LARGEST_POSITION)
            return sb_fail(error, SB_ERROR_UNSUPPORTED,
                           "convolution: spatial dimension %d has output %lld, stride %lld, kernel %lld, "
                           "dilation %lld, pad %lld: too large to count positions",
                           d, (long long)shape->output[d], (long long)shape->stride[d], (long long)shape->kernel[d],
                           (long long)shape->dilation[d], (long long)shape->pad[d]);
    }
    return SB_OK;
}

/* Whether the pixels (batch, then spatial dimensions) of a tensor lie one constant step apart; sets that step. */
static bool pixels_are_even(const sb_conv_shape *shape, const int64_t *extents, int64_t batch_stride,
                            const int64_t *strides, int64_t *step) {
    int64_t next = 0;
    bool found = false;
    *step = 0;
    for (int d = shape->rank - 1; d >= -1; d--) {
        int64_t extent = d < 0 ? shape->batch : extents[d];
        int64_t stride = d < 0 ? batch_stride : strides[d];
        if (extent == 1)
            continue;
        if (!found)
            *step = stride;
        else if (stride != next)
            return false;
        found = true;
        next = stride * extent;
    }
    return true;
}

/* -- Plan -------------------------------------------------------------------------------------- */

static sb_conv_method choose_method(const sb_conv_plan *plan) {
    const sb_conv_shape *shape = &plan->shape;
    const int64_t group_channels = shape->input_channels / shape->groups;
    const int last = shape->rank - 1;
    if (group_channels == 1 && shape->groups > 1)
        return shape->x_channel_stride == 1 && shape->output_channels == shape->groups ? SB_CONV_DEPTHWISE
                                                                                       : SB_CONV_DEPTHWISE_STRIP;
    bool same_pixels = plan->taps == 1 && shape->groups == 1;
    for (int d = 0; d < shape->rank; d++)
        same_pixels = same_pixels && shape->pad[d] == 0 && shape->input[d] == shape->output[d] &&
                      (shape->stride[d] == 1 || shape->output[d] <= 1);
    int64_t step;
    if (same_pixels && pixels_are_even(shape, shape->input, shape->x_batch_stride, shape->x_stride, &step) &&
        pixels_are_even(shape, shape->output, shape->y_batch_stride, shape->y_stride, &step))
        return SB_CONV_MATRIX;
    if (shape->groups == 1 && group_channels <= FEW_CHANNELS && shape->output[last] >= LONG_ROW &&
        plan->k <= SHORT_CHAIN)
        return SB_CONV_LINES;
    if (shape->x_channel_stride != 1 ||
        (group_channels < SHORT_RUN && shape->kernel[last] > 1 && shape->dilation[last] == 1))
        return SB_CONV_STRIP;
    return SB_CONV_INDIRECT;
}

/* Extents of a strip, and how many outputs it serves. False on overflow. */
static bool plan_strip(sb_conv_plan *plan) {
    const sb_conv_shape *shape = &plan->shape;
    int64_t per_index = sb_conv_strip_channels(plan);
    int64_t reach[SB_CONV_RANK];
    for (int d = 0; d < shape->rank; d++) {
        reach[d] = (shape->kernel[d] - 1) * shape->dilation[d];
        int64_t span = shape->output[d] > 0 ? (shape->output[d] - 1) * shape->stride[d] : 0;
        plan->strip[d] = span + reach[d] + 1;
        if (d > 0 && !multiply(&per_index, plan->strip[d]))
            return false;
    }
    int64_t fitting = STRIP_BYTES / (int64_t)sizeof(float) / (per_index > 0 ? per_index : 1);
    int64_t outputs = fitting > reach[0] ? (fitting - reach[0] - 1) / shape->stride[0] + 1 : 1;
    if (outputs > shape->output[0])
        outputs = shape->output[0] > 0 ? shape->output[0] : 1;
    plan->strip_outputs = outputs;
    plan->strip[0] = (outputs - 1) * shape->stride[0] + reach[0] + 1;
    if (shape->dilation[shape->rank - 1] == 1 && plan->method == SB_CONV_STRIP) {
        plan->runs = plan->taps / shape->kernel[shape->rank - 1];
        plan->length *= shape->kernel[shape->rank - 1];
    }
    return true;
}

/* Bytes of the packed weights; 0 on overflow. */
static size_t packed_bytes(const sb_conv_plan *plan) {
    const sb_conv_shape *shape = &plan->shape;
    if (shape->input_channels == shape->groups && shape->groups > 1) {
        int64_t floats = divide_up(plan->n, plan->kernels->lanes) * plan->kernels->lanes;
        if (!multiply(&floats, plan->taps) || floats > INT64_MAX / 4 - 64)
            return 0;
        return sb_gemm_lines((size_t)(floats + plan->kernels->lanes) * sizeof(float));
    }
    int64_t group = (int64_t)sb_gemm_f32_packed_bytes(plan->kernels, plan->k, plan->n / shape->groups);
    return group > 0 && group < INT64_MAX / 4 - 64 && multiply(&group, shape->groups)
               ? (size_t)group + sb_conv_note_bytes(plan)
               : 0;
}

static bool count_sizes(sb_conv_plan *plan) {
    const sb_conv_shape *shape = &plan->shape;
    plan->taps = plan->pixels = plan->row_pixels = 1;
    for (int d = 0; d < shape->rank; d++)
        if (!multiply(&plan->taps, shape->kernel[d]) || !multiply(&plan->pixels, shape->output[d]) ||
            (d > 0 && !multiply(&plan->row_pixels, shape->output[d])))
            return false;
    plan->n = shape->output_channels;
    plan->m = plan->pixels;
    plan->length = shape->input_channels / shape->groups;
    plan->k = plan->taps;
    plan->runs = plan->taps;
    int64_t total = plan->n;
    return multiply(&plan->m, shape->batch) && multiply(&plan->k, plan->length) && multiply(&total, plan->m) &&
           total <= INT64_MAX / 8;
}

static sb_gemm_args matrix_args(const sb_conv_plan *plan) {
    const sb_conv_shape *shape = &plan->shape;
    static const float any_weights;
    sb_gemm_args args = {.m = plan->m,
                         .n = plan->n,
                         .k = plan->k,
                         .a_column_stride = shape->x_channel_stride,
                         .packed_b = &any_weights,
                         .c_column_stride = shape->y_channel_stride};
    pixels_are_even(shape, shape->input, shape->x_batch_stride, shape->x_stride, &args.a_row_stride);
    pixels_are_even(shape, shape->output, shape->y_batch_stride, shape->y_stride, &args.c_row_stride);
    return args;
}

/* Dilated positions reach far: those of DeepLab's last layers lie outside of images of 160 pixels for all outputs but the middle one,
 * which takes a ninth of the time then. A run must be long enough to be worth going through C for. */
static bool plan_skips(const sb_conv_plan *plan) {
    const sb_conv_shape *shape = &plan->shape;
    bool reaches = false;
    for (int d = 0; d < shape->rank; d++)
        reaches = reaches || (shape->dilation[d] > 1 && shape->pad[d] > 0);
    return reaches && plan->method == SB_CONV_INDIRECT && shape->groups == 1 && plan->length >= LEAST_SKIPPED;
}

/* Long output rows of depthwise convolutions and of few channels are computed line by line, and as many at a time as have not too many
 * pixels; but strided outputs are computed beside, in a copy. */
static void plan_lines(sb_conv_plan *plan) {
    const sb_conv_shape *shape = &plan->shape;
    const int last = shape->rank - 1;
    if (plan->method != SB_CONV_LINES && !sb_conv_is_depthwise(plan))
        return;
    if (sb_conv_is_depthwise(plan) && shape->output[last] < LONG_ROW &&
        (shape->output[last] < SHARING_ROW ||
         !sb_depthwise_line_shares(shape->kernel[last], shape->stride[last], shape->dilation[last])))
        return;
    plan->lines = sb_conv_is_depthwise(plan);
    if (shape->y_channel_stride == 1 && plan->block_rows < LINE_PIXELS)
        plan->block_rows =
            shape->output[last] < LINE_PIXELS ? LINE_PIXELS / shape->output[last] * shape->output[last] : LINE_PIXELS;
}

sb_status sb_conv_f32_plan(const sb_gemm_kernels *kernels, const sb_conv_shape *shape, sb_conv_plan *plan,
                           sb_error *error) {
    SB_TRY(check_shape(shape, error));
    *plan = (sb_conv_plan){.kernels = kernels, .shape = *shape};
    bool fits = count_sizes(plan);
    if (fits) {
        plan->method = choose_method(plan);
        if (sb_conv_has_strip(plan))
            fits = plan_strip(plan);
    }
    if (fits) {
        int64_t unit = sb_conv_is_depthwise(plan) ? SB_DEPTHWISE_PIXELS : kernels->rows;
        int64_t rows = POINTERS / plan->runs;
        rows = rows < SB_GEMM_BLOCK_ROWS ? rows : SB_GEMM_BLOCK_ROWS;
        plan->block_rows = plan->table_rows = rows < unit ? unit : rows / unit * unit;
        plan_lines(plan);
        plan->skips = plan_skips(plan);
        plan->packed_bytes = packed_bytes(plan);
        if (plan->method == SB_CONV_MATRIX) {
            plan->matrix = matrix_args(plan);
            plan->workspace_bytes = sb_gemm_f32_workspace_bytes(kernels, &plan->matrix);
        } else {
            plan->workspace_bytes = sb_conv_cut_workspace(plan, NULL).bytes;
        }
        fits = plan->packed_bytes > 0 && plan->workspace_bytes > 0;
    }
    if (!fits)
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "convolution: sizes overflow (batch %lld, %lld to %lld channels); use smaller ones",
                       (long long)shape->batch, (long long)shape->input_channels, (long long)shape->output_channels);
    return SB_OK;
}

sb_conv_workspace sb_conv_cut_workspace(const sb_conv_plan *plan, void *memory) {
    int64_t strip = sb_conv_has_strip(plan) ? sb_conv_strip_channels(plan) : 0;
    bool fits = true;
    for (int d = 0; d < plan->shape.rank && strip > 0; d++)
        fits = fits && multiply(&strip, plan->strip[d]);
    int64_t pointers = plan->runs;
    fits = fits && multiply(&pointers, plan->table_rows);
    const int64_t parts[] = {
        pointers * (int64_t)sizeof(float *),
        plan->block_rows * (int64_t)sizeof(float *),
        sb_conv_zero_floats(plan) * (int64_t)sizeof(float),
        plan->shape.y_channel_stride == 1 ? 0 : plan->block_rows * SB_CONV_STRIDED_COLUMNS * (int64_t)sizeof(float),
        strip * (int64_t)sizeof(float),
        (int64_t)sb_gemm_block_workspace_bytes(),
    };
    enum { PARTS = sizeof parts / sizeof *parts };
    char *starts[PARTS] = {NULL};
    size_t bytes = 0;
    fits = fits && pointers < INT64_MAX >> 8 && strip < INT64_MAX >> 8 && sb_conv_zero_floats(plan) < INT64_MAX >> 8;
    for (int i = 0; i < PARTS && fits; i++) {
        starts[i] = memory == NULL ? NULL : (char *)memory + bytes;
        bytes += sb_gemm_lines((size_t)parts[i]);
    }
    return (sb_conv_workspace){.a = (const float **)(void *)starts[0],
                               .c = (float **)(void *)starts[1],
                               .zero = (float *)(void *)starts[2],
                               .c_rows = (float *)(void *)starts[3],
                               .strip = (float *)(void *)starts[4],
                               .block = starts[5],
                               .bytes = fits ? bytes : 0};
}

bool sb_conv_f32_in_one_pass(const sb_conv_plan *plan) {
    if (sb_conv_is_depthwise(plan) || plan->method == SB_CONV_LINES)
        return true;
    if (plan->method == SB_CONV_MATRIX)
        return sb_gemm_f32_in_one_pass(plan->k);
    return !plan->skips && sb_gemm_in_one_pass(plan->runs, plan->length);
}

/* -- Weights ----------------------------------------------------------------------------------- */

/* The offset of kernel position `tap`, counted row-major, under some strides. */
static int64_t tap_offset(const sb_conv_shape *shape, int64_t tap, const int64_t *strides) {
    int64_t offset = 0;
    for (int d = shape->rank - 1; d >= 0; d--) {
        offset += tap % shape->kernel[d] * strides[d];
        tap /= shape->kernel[d];
    }
    return offset;
}

static void pack_depthwise(const sb_conv_plan *plan, const float *w, int64_t w_output_stride,
                           const int64_t *w_kernel_strides, float *packed) {
    const int64_t lanes = plan->kernels->lanes;
    for (int64_t n = 0; n < plan->n; n += lanes)
        for (int64_t tap = 0; tap < plan->taps; tap++) {
            const float *from = w + tap_offset(&plan->shape, tap, w_kernel_strides);
            for (int64_t lane = 0; lane < lanes; lane++)
                *packed++ = n + lane < plan->n ? from[(n + lane) * w_output_stride] : 0.0f;
        }
    for (int64_t lane = 0; lane < lanes; lane++)
        *packed++ = 0.0f;
}

/* See sb_conv_padding_is_neutral; columns behind the last are zeros, which are as good as any. */
static bool is_neutral(const sb_conv_plan *plan, const float *packed) {
    const int64_t panel = plan->kernels->panel, rows = plan->shape.input_channels;
    for (int64_t part = 0; part < divide_up(plan->n, panel) * plan->taps; part++, packed += rows * panel) {
        uint32_t sinks[SB_CONV_MOST_PANEL], infinite = 0;
        for (int64_t j = 0; j < panel; j++)
            sinks[j] = 1;
        for (int64_t c = 0; c < rows; c++) {
            for (int64_t j = 0; j < panel; j++) {
                uint32_t bits = sb_bits_from_f32(packed[c * panel + j]);
                infinite |= (bits & 0x7f800000) == 0x7f800000;
                sinks[j] &= bits >> 31;
            }
        }
        for (int64_t j = 0; j < panel; j++)
            infinite |= sinks[j];
        if (infinite != 0)
            return false;
    }
    return true;
}

void sb_conv_f32_pack(const sb_conv_plan *plan, const float *w, int64_t w_output_stride, int64_t w_input_stride,
                      const int64_t *w_kernel_strides, float *packed) {
    if (sb_conv_is_depthwise(plan)) {
        pack_depthwise(plan, w, w_output_stride, w_kernel_strides, packed);
        return;
    }
    const int64_t panel = plan->kernels->panel, groups = plan->shape.groups;
    const int64_t columns = plan->n / groups, channels = plan->shape.input_channels / groups;
    const size_t group_floats = plan->packed_bytes / (size_t)groups / sizeof(float);
    for (int64_t g = 0; g < groups; g++) {
        float *to = packed + (size_t)g * group_floats;
        for (size_t i = 0; i < group_floats; i++)
            to[i] = 0.0f;
        for (int64_t n = 0; n < columns; n += panel)
            for (int64_t tap = 0; tap < plan->taps; tap++, to += channels * panel)
                plan->kernels->copy(channels, columns - n < panel ? columns - n : panel,
                                    w + (g * columns + n) * w_output_stride +
                                        tap_offset(&plan->shape, tap, w_kernel_strides),
                                    w_input_stride, w_output_stride, to, panel);
    }
    if (sb_conv_note_bytes(plan) != 0)
        packed[(plan->packed_bytes - 64) / sizeof(float)] = is_neutral(plan, packed) ? 1.0f : 0.0f;
}

/* -- Cutting ----------------------------------------------------------------------------------- */

/* What a multiply-add of a depthwise convolution takes, in those of others: it is bound by what it reads. Measured (Zen 5): 960 channels of
 * 7 × 7 take 15 us, 576 of 14 × 14 23 us, 18 to 44 multiply-adds in a nanosecond where others have 120. On two threads MobileNetV2 took 1.83 ms
 * with half of its depthwise nodes on one of them, and 1.71 with this. */
#define DEPTHWISE_WORK 6

sb_gemm_split sb_conv_f32_split(const sb_conv_plan *plan, int threads) {
    const int64_t k = sb_conv_is_depthwise(plan) ? DEPTHWISE_WORK * plan->taps : plan->k;
    sb_gemm_split split = sb_gemm_f32_split(plan->kernels, plan->m, plan->n, k, threads);
    /* Strips repeat their edges: whole rows of pixels repeat the least. */
    if (sb_conv_has_strip(plan) && split.m_parts > 1 && plan->row_pixels > 0) {
        split.m_step = divide_up(split.m_step, plan->row_pixels) * plan->row_pixels;
        split.m_parts = divide_up(split.m, split.m_step);
    }
    return split;
}
