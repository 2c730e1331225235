/* Operators that sample, slide windows and contract in their own ways. */
#include "harness/harness.h"
#include "numerics/convert.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

static const sb_dtype floats[] = {SB_F32, SB_F16, SB_BF16, SB_F64};

/* Values near 0 to 1, times `scale`, in place of awkward ones: coordinates that hit something. */
static sb_tensor *mild_tensor(harness *h, sb_dtype dtype, int rank, const int64_t *dims, float scale) {
    sb_tensor *tensor = any_tensor(h, dtype, rank, dims);
    size_t size = sb_dtype_size(dtype), count = tensor->storage->bytes / size;
    for (size_t i = 0; i < count; i++) {
        float value = scale * (float)random_between(&h->random, -1200, 1200) / 1000.0f;
        double wide = (double)value;
        uint16_t half = dtype == SB_F16 ? sb_f16_from_f32(value) : sb_bf16_from_f32(value);
        memcpy((char *)tensor->storage->data + i * size,
               dtype == SB_F64   ? (const void *)&wide
               : dtype == SB_F32 ? (const void *)&value
                                 : &half,
               size);
    }
    return tensor;
}

/* ---- Resize ---- */

HARNESS_GROUP(sampling, resize, HARNESS_CUDA) {
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const transforms[] = {"half_pixel",        "half_pixel_symmetric", "pytorch_half_pixel",
                                             "align_corners",     "asymmetric",           "tf_half_pixel_for_nn",
                                             "tf_crop_and_resize"};
    static const char *const nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
    static const float scales[][3] = {{1.0f, 2.0f, 0.6f}, {1.7f, 1.0f, 3.3f}, {0.4f, 0.5f, 1.0f}};
    static const float region[6] = {0.1f, -0.2f, 0.3f, 0.8f, 1.4f, 0.9f};
    static const sb_dtype dtypes[] = {SB_F32, SB_F16, SB_F64, SB_U8, SB_S32, SB_BF16};
    for (int round = 0; round < 3 * 7 * 6; round++) {
        int mode = round % 3, transform = round / 3 % 7;
        harness_case test = harness_op("Resize", 19);
        add_input(&test, any_tensor(h, dtypes[round % 6], 3, DIMS(3, 6, 7)));
        if (transform == 6)
            add_floats(&test, 6, region);
        else
            add_input(&test, NULL);
        if (round % 4 == 3) {
            add_input(&test, NULL);
            add_list(&test, 3, DIMS(3, 5 + round % 3, 9));
        } else {
            add_floats(&test, 3, scales[round % 5 % 3]);
        }
        set_text(&test, "mode", modes[mode]);
        set_text(&test, "coordinate_transformation_mode", transforms[transform]);
        set_text(&test, "nearest_mode", nearest[round % 4]);
        set_int(&test, "exclude_outside", round / 5 % 2);
        set_int(&test, "antialias", mode != 0 && round / 7 % 2 != 0);
        set_float(&test, "extrapolation_value", 2.5f);
        harness_run(h, &test);
    }
}

/* Images in every order of dimensions in memory, channels last among them, of more and fewer lanes than a vector. */
HARNESS_GROUP(sampling, resized_images, HARNESS_CPU | HARNESS_CUDA) {
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const float scales[][4] = {{1, 1, 2, 2}, {1, 1, 0.5f, 3}, {1, 2, 1.3f, 1}, {2, 1, 1, 1}};
    static const int64_t channels[] = {1, 3, 16, 37};
    for (int round = 0; round < 288; round++) {
        harness_case test = harness_op("Resize", 19);
        sb_dtype dtype =
            round % 3 == 0 ? (sb_dtype[]){SB_F32, SB_U8, SB_F64, SB_F16}[round / 3 % 4] : floats[round / 96];
        add_input(&test, random_tensor(h, (distribution)(round % DISTRIBUTIONS), dtype, 4,
                                       DIMS(2, channels[round / 4 % 4], 9, 11)));
        add_input(&test, NULL);
        add_floats(&test, 4, scales[round % 4]);
        set_text(&test, "mode", modes[round % 3]);
        set_text(&test, "coordinate_transformation_mode", round % 7 == 0 ? "tf_half_pixel_for_nn" : "half_pixel");
        set_text(&test, "nearest_mode", round % 2 == 0 ? "floor" : "ceil");
        harness_run(h, &test);
    }
}

/* Interpolation in which no axis changes, and of more elements than a piece of the last pass has, along each of the axes. */
HARNESS_GROUP(sampling, resized_largely, HARNESS_CPU | HARNESS_CUDA) {
    static const float scales[][3] = {{1, 1, 1}, {1, 1, 2}, {1, 1.5f, 1}, {3, 1, 1}, {2, 2.5f, 0.7f}};
    for (int round = 0; round < 3 * 5 * 2; round++) {
        harness_case test = harness_op("Resize", 19);
        int64_t dims[3] = {3, round / 15 == 0 ? 71 : 5, round / 15 == 0 ? 129 : 4500};
        add_input(&test, random_tensor(h, (distribution)(round % DISTRIBUTIONS), floats[round % 3], 3, dims));
        add_input(&test, NULL);
        add_floats(&test, 3, scales[round / 3 % 5]);
        set_text(&test, "mode", round % 2 == 0 ? "linear" : "cubic");
        harness_run(h, &test);
    }
    for (int t = 0; t < 3; t++) {
        harness_case test = harness_op("Resize", 19);
        add_input(&test, any_tensor(h, floats[t], 3, DIMS(0, 5, 6)));
        add_input(&test, NULL);
        add_floats(&test, 3, scales[1]);
        set_text(&test, "mode", "linear");
        harness_run(h, &test);
    }
}

/* ---- GridSample and AffineGrid, regions ---- */

HARNESS_GROUP(sampling, sampling, HARNESS_CUDA) {
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    for (int round = 0; round < 72; round++) {
        sb_dtype dtype = floats[round % 4], grid = floats[round / 2 % 4];
        bool deep = round % 5 == 4;
        harness_case test = harness_op("GridSample", 20);
        add_input(&test,
                  deep ? any_tensor(h, dtype, 5, DIMS(2, 2, 3, 4, 3)) : any_tensor(h, dtype, 4, DIMS(2, 3, 5, 6)));
        add_input(&test, round % 7 == 6
                             ? any_tensor(h, grid, deep ? 5 : 4, deep ? DIMS(2, 2, 2, 3, 3) : DIMS(2, 3, 4, 2))
                             : mild_tensor(h, grid, deep ? 5 : 4, deep ? DIMS(2, 2, 2, 3, 3) : DIMS(2, 3, 4, 2), 1.5f));
        set_text(&test, "mode", modes[round % 3]);
        set_text(&test, "padding_mode", paddings[round / 3 % 3]);
        set_int(&test, "align_corners", round / 9 % 2);
        harness_run(h, &test);
        int axes = 2 + round % 2;
        test = harness_op("AffineGrid", 20);
        add_input(&test, any_tensor(h, dtype, 3, DIMS(2, axes, axes + 1)));
        add_list(&test, axes + 2, DIMS(2, 3, 1 + round % 3, 4, 5));
        set_int(&test, "align_corners", round / 2 % 2);
        harness_run(h, &test);
    }
}

/* Lines, images and volumes in every order of dimensions in memory, of more and fewer channels than a vector has lanes, with few
 * points and more than a thread takes at once: near the borders, far outside, infinite and NaN. */
HARNESS_GROUP(sampling, points, HARNESS_CPU | HARNESS_CUDA) {
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    static const int64_t channels[] = {1, 3, 16, 37};
    static const float reach[] = {1.05f, 1.7f, 40.0f};
    for (int round = 0; round < 3 * 3 * 2 * 16 * 3; round++) {
        sb_dtype dtype = floats[round / 288];
        int spatial = round / 18 % 4 == 3 ? 1 + round / 72 % 2 * 2 : 2, c = (round / 18 + round) % 4;
        bool few = round / 5 % 4 == 0;
        int64_t extents[] = {2, channels[c], 5, round % 9 == 8 ? 1 : 7, 4};
        int64_t points[] = {2, few ? 1 : 9, few ? 2 : 13, 3, 0};
        sb_dtype grid = round % 3 == 0 ? floats[round / 3 % 4] : SB_F32;
        points[spatial + 1] = spatial;
        harness_case test = harness_op("GridSample", 20);
        distribution kind = (distribution)(round / 2 % DISTRIBUTIONS);
        add_input(&test, round / 4 % 2 == 0 ? channels_last_tensor(h, kind, dtype, spatial + 2, extents)
                         : round % 2 == 0   ? any_tensor(h, dtype, spatial + 2, extents)
                                            : random_tensor(h, kind, dtype, spatial + 2, extents));
        add_input(&test, round % 5 == 4 ? any_tensor(h, grid, spatial + 2, points)
                                        : mild_tensor(h, grid, spatial + 2, points, reach[round / 3 % 3]));
        set_text(&test, "mode", modes[round % 3]);
        set_text(&test, "padding_mode", paddings[round / 3 % 3]);
        set_int(&test, "align_corners", round / 9 % 2);
        harness_run(h, &test);
    }
}

/* Points halfway between two elements of 16 bits, moved by next to nothing: a first rounding to f32 would make a tie of the second one. */
HARNESS_GROUP(sampling, nearly_halfway_points, HARNESS_CPU | HARNESS_CUDA) {
    for (int round = 0; round < 8; round++) {
        int64_t extents[] = {1, round / 2 % 2 == 0 ? 1 : 17, 2, 2};
        const sb_dtype dtype = floats[1 + round % 2];
        const uint16_t one = dtype == SB_F16 ? sb_f16_from_f32(1.0f) : sb_bf16_from_f32(1.0f);
        harness_case test = harness_op("GridSample", 20);
        add_input(&test, channels_last_tensor(h, ORDINARY, dtype, 4, extents));
        add_input(&test, packed_tensor(h, ORDINARY, SB_F64, 4, DIMS(1, 40, 1, 2)));
        uint16_t *image = (uint16_t *)(void *)test.inputs[0]->data;
        double *grid = (double *)(void *)test.inputs[1]->data;
        for (int64_t i = 0; i < 4 * extents[1]; i++)
            image[i] = (uint16_t)(one + i / extents[1] % 2 + (round / 4 % 2 == 0 ? 0 : 1));
        for (int64_t p = 0; p < 40; p++) {
            double off = (p % 2 == 0 ? 1.0 : -1.0) / (double)((int64_t)1 << (21 + p));
            grid[2 * p] = off;
            grid[2 * p + 1] = 0.0;
        }
        set_int(&test, "align_corners", 1);
        harness_run(h, &test);
    }
}

/* Points at which the weighted elements of an image nearly cancel, so that each rounding of the sums shows in f32: x is any, and y
 * is where the line through the sums of both rows is zero. */
HARNESS_GROUP(sampling, cancelling_points, HARNESS_CPU | HARNESS_CUDA) {
    for (int round = 0; round < 8; round++) {
        int64_t extents[] = {1, 1 + round % 3, 2, 2};
        bool align = round % 2 != 0;
        harness_case test = harness_op("GridSample", 20);
        add_input(&test, channels_last_tensor(h, ORDINARY, SB_F32, 4, extents));
        add_input(&test, packed_tensor(h, ORDINARY, SB_F64, 4, DIMS(1, 40, 1, 2)));
        float *image = (float *)(void *)test.inputs[0]->data;
        double *grid = (double *)(void *)test.inputs[1]->data;
        for (int64_t i = 0; i < 4 * extents[1]; i++)
            image[i] = (float)random_between(&h->random, 1000, 999999) * (i < 2 * extents[1] ? 1.0f : -1.0f);
        for (int64_t p = 0; p < 40; p++) {
            double x = (double)random_between(&h->random, 1, 999999) / 1000000.0;
            double above = (1.0 - x) * (double)image[0] + x * (double)image[extents[1]];
            double below = (1.0 - x) * (double)image[2 * extents[1]] + x * (double)image[3 * extents[1]];
            double y = above / (above - below);
            grid[2 * p] = align ? 2.0 * x - 1.0 : x - 0.5;
            grid[2 * p + 1] = align ? 2.0 * y - 1.0 : y - 0.5;
        }
        set_int(&test, "align_corners", align);
        harness_run(h, &test);
    }
}

/* Averages in f32 of images in every order of dimensions in memory, of more and fewer channels than there are lanes; few regions and
 * many, one of them everywhere, some outside, some infinite or NaN; bins of more corners than are collected at once. */
HARNESS_GROUP(sampling, averages, HARNESS_CPU) {
    static const int64_t channels[] = {1, 3, 32, 69};
    for (int round = 0; round < 96; round++) {
        int64_t extents[] = {2, channels[round % 4], 9, 7}, count = round % 3 == 0 ? 1 : 17;
        distribution kind = (distribution)(round / 4 % DISTRIBUTIONS);
        harness_case test = harness_op("RoiAlign", 16);
        add_input(&test, round / 4 % 3 == 0   ? channels_last_tensor(h, kind, SB_F32, 4, extents)
                         : round / 4 % 3 == 1 ? any_tensor(h, SB_F32, 4, extents)
                                              : random_tensor(h, kind, SB_F32, 4, extents));
        add_input(&test, round % 7 == 6 ? any_tensor(h, SB_F32, 2, DIMS(count, 4))
                                        : mild_tensor(h, SB_F32, 2, DIMS(count, 4), round % 5 == 4 ? 90.0f : 12.0f));
        add_input(&test, make_tensor(h, SB_S64, 1, DIMS(count), PACKED));
        for (int i = 0; i < count; i++)
            ((int64_t *)(void *)test.inputs[2]->data)[i] = round % 16 == 15 && i == 11 ? -1 : i % 2;
        set_text(&test, "coordinate_transformation_mode", round / 8 % 2 == 0 ? "half_pixel" : "output_half_pixel");
        set_int(&test, "output_height", 1 + round % 5);
        set_int(&test, "output_width", 3);
        set_int(&test, "sampling_ratio", (int64_t[]){0, 2, 5, 1}[round / 3 % 4]);
        set_float(&test, "spatial_scale", 0.6f);
        harness_run(h, &test);
    }
}

/* Boxes of which many touch and some are not numbers, as the CPU compares a block of them at a time. */
HARNESS_GROUP(sampling, suppression, HARNESS_CPU | HARNESS_CUDA) {
    static const float thresholds[] = {0.0f, 0.3f, 0.7f};
    for (int round = 0; round < 24; round++) {
        int64_t boxes = round % 4 == 0   ? 5
                        : round % 4 == 1 ? 64
                        : round % 4 == 2 ? 200
                                         : 500,
                most = round % 5 == 4 ? 40 : boxes;
        harness_case test = harness_op("NonMaxSuppression", 11);
        add_input(&test, round % 6 == 5 ? any_tensor(h, SB_F32, 3, DIMS(2, boxes, 4))
                                        : mild_tensor(h, SB_F32, 3, DIMS(2, boxes, 4), round % 2 == 0 ? 1.0f : 30.0f));
        add_input(&test, round % 3 == 0 ? any_tensor(h, SB_F32, 3, DIMS(2, 3, boxes))
                                        : mild_tensor(h, SB_F32, 3, DIMS(2, 3, boxes), 1.0f));
        add_list(&test, 1, &most);
        add_floats(&test, 1, &thresholds[round % 3]);
        if (round % 2 == 0)
            add_floats(&test, 1, &thresholds[round / 2 % 2]);
        set_int(&test, "center_point_box", round / 6 % 2);
        harness_run(h, &test);
    }
}

HARNESS_GROUP(sampling, regions, HARNESS_CUDA) {
    for (int round = 0; round < 64; round++) {
        sb_dtype dtype = floats[round % 4];
        bool astray = round % 16 == 15;
        harness_case test = harness_op("RoiAlign", 16);
        add_input(&test, any_tensor(h, dtype, 4, DIMS(2, 3, 7, 6)));
        add_input(&test,
                  round % 8 == 7 ? any_tensor(h, dtype, 2, DIMS(5, 4)) : mild_tensor(h, dtype, 2, DIMS(5, 4), 8.0f));
        add_input(&test, make_tensor(h, SB_S64, 1, DIMS(5), PACKED));
        for (int i = 0; i < 5; i++)
            ((int64_t *)(void *)test.inputs[2]->data)[i] = astray && i == 3 ? 2 : i % 2;
        set_text(&test, "mode", round / 4 % 2 == 0 ? "avg" : "max");
        set_text(&test, "coordinate_transformation_mode", round / 8 % 2 == 0 ? "half_pixel" : "output_half_pixel");
        set_int(&test, "output_height", 3);
        set_int(&test, "output_width", 2);
        set_int(&test, "sampling_ratio", round % 3);
        set_float(&test, "spatial_scale", 0.7f);
        harness_run(h, &test);
        test = harness_op("MaxRoiPool", 1);
        add_input(&test, any_tensor(h, dtype, 4, DIMS(2, 3, 7, 6)));
        add_input(&test, mild_tensor(h, dtype, 2, DIMS(5, 5), 0.8f));
        set_ints(&test, "pooled_shape", 2, DIMS(2, 3));
        set_float(&test, "spatial_scale", 6.0f);
        harness_run(h, &test);
    }
}

/* ---- convolutions ---- */

HARNESS_GROUP(sampling, transposed, HARNESS_CUDA) {
    for (int round = 0; round < 48; round++) {
        sb_dtype dtype = floats[round % 4];
        int64_t group = 1 + round / 4 % 2;
        harness_case test = harness_op("ConvTranspose", 11);
        add_input(&test, any_tensor(h, dtype, 4, DIMS(2, 18, 5, 4)));
        add_input(&test, any_tensor(h, dtype, 4, DIMS(18, 3, 3, 2)));
        if (round % 3 != 0)
            add_input(&test, any_tensor(h, dtype, 1, DIMS(3 * group)));
        set_int(&test, "group", group);
        set_ints(&test, "strides", 2, DIMS(1 + round % 3, 2));
        set_ints(&test, "dilations", 2, DIMS(1 + round / 8 % 2, 1));
        if (round % 5 == 0)
            set_ints(&test, "output_shape", 2, DIMS(9, 7));
        else
            set_ints(&test, "pads", 4, DIMS(1, 0, 0, 1));
        harness_run(h, &test);
    }
    for (int i = 0; i < 4; i++) {
        harness_case test = harness_op("ConvTranspose", 11);
        add_input(&test, any_tensor(h, floats[i], 3, DIMS(1, 1, 9)));
        add_input(&test, any_tensor(h, floats[i], 3, DIMS(1, 2, 4)));
        harness_run(h, &test);
    }
}

HARNESS_GROUP(sampling, deformed, HARNESS_CUDA) {
    for (int round = 0; round < 16; round++) {
        sb_dtype dtype = floats[round % 4];
        int64_t group = 1 + round / 4 % 2;
        harness_case test = harness_op("DeformConv", 19);
        add_input(&test, any_tensor(h, dtype, 4, DIMS(2, 4, 5, 6)));
        add_input(&test, any_tensor(h, dtype, 4, DIMS(6, 4 / group, 2, 3)));
        add_input(&test, round % 8 == 7 ? any_tensor(h, dtype, 4, DIMS(2, 24, 4, 3))
                                        : mild_tensor(h, dtype, 4, DIMS(2, 24, 4, 3), 2.0f));
        add_input(&test, round % 3 == 0 ? NULL : any_tensor(h, dtype, 1, DIMS(6)));
        if (round % 2 != 0)
            add_input(&test, mild_tensor(h, dtype, 4, DIMS(2, 12, 4, 3), 1.0f));
        set_int(&test, "group", group);
        set_int(&test, "offset_group", 2);
        set_ints(&test, "pads", 4, DIMS(0, 1, 0, 1));
        set_ints(&test, "strides", 2, DIMS(1, 2));
        harness_run(h, &test);
    }
}

/* What the host's kernel of DeformConv gathers and multiplies: blocks of positions that are whole and not, channels by the vector and
 * not, groups of offsets that are more and fewer than those of channels, offsets that lead outside, are NaN and are none, masks of
 * any number, weights that are packed ahead, and channels innermost. */
HARNESS_GROUP(sampling, deformed_rows, HARNESS_CPU | HARNESS_CUDA) {
    static const struct {
        int64_t channels, group, offset_group, outputs, height, width, kernel;
    } shapes[] = {
        {16, 1, 1, 16, 9, 13, 3}, {33, 1, 3, 5, 4, 6, 1}, {12, 3, 4, 9, 8, 7, 2}, {12, 4, 2, 8, 15, 5, 3},
        {6, 6, 1, 6, 10, 11, 3},  {8, 2, 8, 70, 3, 3, 3}, {1, 1, 1, 1, 1, 1, 1},  {40, 1, 1, 20, 12, 20, 3},
    };
    for (int round = 0; round < 8 * 3 * 4; round++) {
        const sb_dtype dtype = floats[round / 8 % 3];
        const int variant = round / 24;
        const int64_t kernel = shapes[round % 8].kernel, taps = kernel * kernel * shapes[round % 8].offset_group;
        const int64_t group = shapes[round % 8].group, channels = shapes[round % 8].channels;
        const int64_t height = shapes[round % 8].height, width = shapes[round % 8].width;
        const int64_t stride = 1 + round % 2, dilation = 1 + round % 3 / 2;
        const int64_t rows = (height + 2 - (kernel - 1) * dilation - 1) / stride + 1;
        const int64_t columns = (width + 2 - (kernel - 1) * dilation - 1) / stride + 1;
        harness_case test = harness_op("DeformConv", 19);
        add_input(&test, variant % 2 == 0 ? number_tensor(h, dtype, 4, DIMS(2, channels, height, width), variant == 2)
                                          : channels_last_tensor(h, (distribution)(round % DISTRIBUTIONS), dtype, 4,
                                                                 DIMS(2, channels, height, width)));
        add_input(&test, number_tensor(h, dtype, 4, DIMS(shapes[round % 8].outputs, channels / group, kernel, kernel),
                                       variant == 3));
        add_input(&test, variant == 3 ? any_tensor(h, dtype, 4, DIMS(2, 2 * taps, rows, columns))
                                      : mild_tensor(h, dtype, 4, DIMS(2, 2 * taps, rows, columns), 3.0f));
        add_input(&test, round % 3 == 0 ? NULL : number_tensor(h, dtype, 1, &shapes[round % 8].outputs, false));
        if (round % 5 != 0)
            add_input(&test, number_tensor(h, dtype, 4, DIMS(2, taps, rows, columns), round % 5 == 4));
        if (variant % 3 == 1)
            test.constants = 2;
        set_int(&test, "group", group);
        set_int(&test, "offset_group", shapes[round % 8].offset_group);
        set_ints(&test, "pads", 4, DIMS(1, 1, 1, 1));
        set_ints(&test, "strides", 2, DIMS(stride, stride));
        set_ints(&test, "dilations", 2, DIMS(dilation, dilation));
        harness_run(h, &test);
    }
}

/* Images of one and three dimensions, strides of 1 and of more than a block, elements that lie outside throughout. */
static void run_fold(harness *h, sb_dtype dtype, int rank, const int64_t *image, const int64_t *block,
                     const int64_t *strides, const int64_t *dilations, int64_t pad) {
    int64_t dims[3] = {2, 3, 1}, pads[6];
    for (int d = 0; d < rank; d++) {
        dims[1] *= block[d];
        dims[2] *= (image[d] + 2 * pad - dilations[d] * (block[d] - 1) - 1) / strides[d] + 1;
        pads[d] = pads[d + rank] = pad;
    }
    harness_case test = harness_op("Col2Im", 18);
    add_input(&test, any_tensor(h, dtype, 3, dims));
    add_list(&test, rank, image);
    add_list(&test, rank, block);
    set_ints(&test, "pads", 2 * rank, pads);
    set_ints(&test, "dilations", rank, dilations);
    set_ints(&test, "strides", rank, strides);
    harness_run(h, &test);
}

HARNESS_GROUP(sampling, folds, HARNESS_CPU_IF_ANY | HARNESS_CUDA) {
    for (int i = 0; i < 3; i++) {
        const sb_dtype dtype = (sb_dtype[]){SB_F32, SB_F16, SB_BF16}[i];
        run_fold(h, dtype, 1, DIMS(33), DIMS(5), DIMS(1), DIMS(1), 0);
        run_fold(h, dtype, 1, DIMS(33), DIMS(3), DIMS(4), DIMS(2), 2);
        run_fold(h, dtype, 2, DIMS(9, 20), DIMS(3, 3), DIMS(1, 1), DIMS(1, 1), 1);
        run_fold(h, dtype, 2, DIMS(7, 6), DIMS(2, 4), DIMS(3, 2), DIMS(1, 3), 5);
        run_fold(h, dtype, 3, DIMS(4, 5, 9), DIMS(2, 1, 3), DIMS(1, 2, 1), DIMS(2, 1, 1), 1);
        run_fold(h, dtype, 2, DIMS(5, 1), DIMS(1, 1), DIMS(1, 1), DIMS(1, 1), 0);
    }
    for (int dtype = SB_U8; dtype < SB_STRING; dtype++) {
        harness_case test = harness_op("Col2Im", 18);
        add_input(&test, any_tensor(h, (sb_dtype)dtype, 3, DIMS(2, 12, 12)));
        add_list(&test, 2, DIMS(5, 6));
        add_list(&test, 2, DIMS(2, 3));
        set_ints(&test, "pads", 4, DIMS(1, 0, 0, 1));
        set_ints(&test, "dilations", 2, DIMS(2, 1));
        set_ints(&test, "strides", 2, DIMS(1, 2));
        harness_run(h, &test);
    }
}

/* ---- integers ---- */

static sb_dtype narrow(int bit) {
    return bit == 0 ? SB_U8 : SB_S8;
}

HARNESS_GROUP(sampling, integer_convolutions, HARNESS_CUDA) {
    for (int round = 0; round < 16; round++) {
        sb_dtype x = narrow(round & 1), w = narrow(round >> 1 & 1), y = narrow(round >> 2 & 1);
        bool each = (round & 8) != 0;
        harness_case test = harness_op("ConvInteger", 10);
        add_input(&test, any_tensor(h, x, 4, DIMS(2, 4, 6, 5)));
        add_input(&test, any_tensor(h, w, 4, DIMS(6, 2, 3, 2)));
        if (round % 3 != 0) {
            add_input(&test, any_tensor(h, x, 0, NULL));
            if (round % 3 != 1)
                add_input(&test, any_tensor(h, w, each ? 1 : 0, DIMS(6)));
        }
        set_int(&test, "group", 2);
        set_ints(&test, "pads", 4, DIMS(1, 0, 2, 1));
        harness_run(h, &test);
        test = harness_op("QLinearConv", 10);
        add_input(&test, any_tensor(h, x, 3, DIMS(2, 3, 9)));
        add_input(&test, any_tensor(h, SB_F32, 0, NULL));
        add_input(&test, any_tensor(h, x, 0, NULL));
        add_input(&test, any_tensor(h, w, 3, DIMS(4, 3, 3)));
        add_input(&test, mild_tensor(h, SB_F32, each ? 1 : 0, DIMS(4), 0.1f));
        add_input(&test, any_tensor(h, w, each ? 1 : 0, DIMS(4)));
        add_input(&test, mild_tensor(h, SB_F32, 0, NULL, 3.0f));
        add_input(&test, any_tensor(h, y, 0, NULL));
        if (round % 3 == 0)
            add_input(&test, any_tensor(h, SB_S32, 1, DIMS(4)));
        set_ints(&test, "strides", 1, DIMS(2));
        harness_run(h, &test);
    }
}

HARNESS_GROUP(sampling, integer_products, HARNESS_CUDA) {
    for (int round = 0; round < 24; round++) {
        sb_dtype a = narrow(round & 1), b = narrow(round >> 1 & 1), y = narrow(round >> 2 & 1);
        bool each = (round & 8) != 0;
        harness_case test = harness_op("MatMulInteger", 10);
        add_input(&test, any_tensor(h, a, 4, DIMS(2, 1, 5, 37)));
        add_input(&test, any_tensor(h, b, 3, DIMS(3, 37, 4)));
        if (round % 3 != 0) {
            add_input(&test, any_tensor(h, a, each ? 1 : 0, DIMS(5)));
            if (round % 3 != 1)
                add_input(&test, any_tensor(h, b, each ? 1 : 0, DIMS(4)));
        }
        harness_run(h, &test);
        test = harness_op("QLinearMatMul", 10);
        add_input(&test, any_tensor(h, a, 3, DIMS(2, 5, 19)));
        add_input(&test, mild_tensor(h, SB_F32, each ? 1 : 0, DIMS(5), 0.3f));
        add_input(&test, any_tensor(h, a, each ? 1 : 0, DIMS(5)));
        add_input(&test, any_tensor(h, b, 2, DIMS(19, 4)));
        add_input(&test, mild_tensor(h, SB_F32, each ? 1 : 0, DIMS(4), 0.3f));
        add_input(&test, any_tensor(h, b, each ? 1 : 0, DIMS(4)));
        add_input(&test, mild_tensor(h, SB_F32, 0, NULL, 2.0f));
        add_input(&test, any_tensor(h, y, 0, NULL));
        harness_run(h, &test);
    }
    harness_case test = harness_op("MatMulInteger", 10);
    add_input(&test, any_tensor(h, SB_U8, 1, DIMS(9)));
    add_input(&test, any_tensor(h, SB_S8, 2, DIMS(9, 3)));
    harness_run(h, &test);
}

/* Products of more rows and columns than a tile and a piece have, of an odd number of terms, of operands in any order in memory; zero
 * points for all, for each row and for each column. */
HARNESS_GROUP(sampling, integer_tiles, HARNESS_CPU | HARNESS_CUDA) {
    static const int64_t rows[] = {1, 3, 13, 29, 131}, columns[] = {1, 31, 33, 70};
    static const int64_t terms[] = {1, 2, 3, 37, 66, 131, 260};
    for (int round = 0; round < 105; round++) {
        sb_dtype a = narrow(round & 1), b = narrow(round >> 1 & 1);
        int64_t m = rows[round % 5], n = columns[round % 4], k = terms[round / 3 % 7];
        harness_case test = harness_op("MatMulInteger", 10);
        add_input(&test, round % 3 == 0 ? any_tensor(h, a, 3, DIMS(2, m, k)) : any_tensor(h, a, 2, DIMS(m, k)));
        add_input(&test, round % 7 == 6 ? any_tensor(h, b, 3, DIMS(2, k, n)) : any_tensor(h, b, 2, DIMS(k, n)));
        if (round % 6 != 0) {
            add_input(&test, any_tensor(h, a, round % 4 == 3 ? 1 : 0, DIMS(m)));
            if (round % 6 != 1)
                add_input(&test, any_tensor(h, b, round % 4 == 2 ? 1 : 0, DIMS(n)));
        }
        harness_run(h, &test);
        test = harness_op("QLinearMatMul", 10);
        add_input(&test, round % 3 == 0 ? any_tensor(h, a, 3, DIMS(2, m, k)) : any_tensor(h, a, 2, DIMS(m, k)));
        add_input(&test, mild_tensor(h, SB_F32, round % 4 == 3 ? 1 : 0, DIMS(m), 0.05f));
        add_input(&test, any_tensor(h, a, round % 4 == 3 ? 1 : 0, DIMS(m)));
        add_input(&test, any_tensor(h, b, 2, DIMS(k, n)));
        add_input(&test, round % 9 == 8 ? any_tensor(h, SB_F32, 1, DIMS(n))
                                        : mild_tensor(h, SB_F32, round % 4 == 2 ? 1 : 0, DIMS(n), 0.05f));
        add_input(&test, any_tensor(h, b, round % 4 == 2 ? 1 : 0, DIMS(n)));
        add_input(&test, mild_tensor(h, SB_F32, 0, NULL, 2.0f));
        add_input(&test, any_tensor(h, narrow(round >> 2 & 1), 0, NULL));
        harness_run(h, &test);
    }
}

/* More results than one thread takes. */
HARNESS_GROUP(sampling, integer_results, HARNESS_CPU | HARNESS_CUDA) {
    for (int round = 0; round < 4; round++) {
        const int64_t m = 300, k = 5, n = 259;
        const int rows = round == 3, columns = round % 2;
        harness_case test = harness_op("QLinearMatMul", 10);
        add_input(&test, any_tensor(h, SB_U8, 3, DIMS(2, m, k)));
        add_input(&test, mild_tensor(h, SB_F32, rows, DIMS(m), 0.3f));
        add_input(&test, any_tensor(h, SB_U8, rows, DIMS(m)));
        add_input(&test, any_tensor(h, SB_S8, 2, DIMS(k, n)));
        add_input(&test, mild_tensor(h, SB_F32, columns, DIMS(n), 0.3f));
        add_input(&test, any_tensor(h, SB_S8, columns, DIMS(n)));
        add_input(&test, mild_tensor(h, SB_F32, 0, NULL, 2.0f));
        add_input(&test, any_tensor(h, narrow(round >> 1), 0, NULL));
        harness_run(h, &test);
    }
}

/* Of 8 bits, all of them as far from 0 as they get, or 0: what is saturated on the way, or taken for the other type, shows. */
static sb_tensor *extreme_tensor(harness *h, sb_dtype dtype, int rank, const int64_t *dims) {
    static const uint8_t extremes[] = {0, 0x7f, 0x80, 0xff};
    sb_tensor *tensor = any_tensor(h, dtype, rank, dims);
    for (size_t i = 0; i < tensor->storage->bytes; i++)
        ((uint8_t *)tensor->storage->data)[i] = extremes[random_between(&h->random, 0, 3)];
    return tensor;
}

/* Both types on both sides, without zero points, with one for all and with one for each row and column; several matrices, and one
 * that all of them share. */
HARNESS_GROUP(sampling, integer_extremes, HARNESS_CPU | HARNESS_CUDA) {
    static const int64_t terms[] = {5, 64, 131, 258};
    for (int round = 0; round < 48; round++) {
        const sb_dtype a = narrow(round & 1), b = narrow(round >> 1 & 1);
        const int64_t m = round % 5 == 0 ? 1 : 14, k = terms[round / 3 % 4], n = 35;
        const int zeros = round % 3;
        harness_case test = harness_op("MatMulInteger", 10);
        add_input(&test, extreme_tensor(h, a, 3, DIMS(2, m, k)));
        add_input(&test, round >= 24 ? extreme_tensor(h, b, 3, DIMS(2, k, n)) : extreme_tensor(h, b, 2, DIMS(k, n)));
        if (zeros > 0) {
            add_input(&test, extreme_tensor(h, a, zeros - 1, DIMS(m)));
            add_input(&test, extreme_tensor(h, b, zeros - 1, DIMS(n)));
        }
        harness_run(h, &test);
        test = harness_op("ConvInteger", 10);
        add_input(&test, extreme_tensor(h, a, 4, DIMS(2, 10, 7, 6)));
        add_input(&test, extreme_tensor(h, b, 4, DIMS(66, 5, 3, 1 + round % 4)));
        if (zeros > 0) {
            add_input(&test, extreme_tensor(h, a, 0, NULL));
            add_input(&test, extreme_tensor(h, b, zeros - 1, DIMS(66)));
        }
        set_int(&test, "group", 2);
        set_ints(&test, "pads", 4, DIMS(1, 2, 0, 1));
        harness_run(h, &test);
    }
}

/* The same of convolutions: with one channel in a group and with many, of one axis to three, strides and dilations, an odd number of
 * terms, more pixels than a piece has. */
HARNESS_GROUP(sampling, integer_images, HARNESS_CPU | HARNESS_CUDA) {
    static const int64_t groups[] = {1, 1, 2, 70, 5}, inputs[] = {3, 40, 9, 1, 1}, outputs[] = {35, 8, 33, 1, 3};
    for (int round = 0; round < 60; round++) {
        int axes = 1 + round % 3, shape = round % 5;
        int64_t image[5] = {1 + round % 2, groups[shape] * inputs[shape], 11, 6, 4};
        int64_t kernel[5] = {groups[shape] * outputs[shape], inputs[shape], 3, 2, 2};
        sb_dtype x = narrow(round & 1), w = narrow(round >> 1 & 1);
        if (axes == 1)
            image[2] = 67;
        harness_case test = harness_op("ConvInteger", 10);
        add_input(&test, round / 3 % 3 == 0 ? channels_last_tensor(h, ORDINARY, x, axes + 2, image)
                                            : any_tensor(h, x, axes + 2, image));
        add_input(&test, any_tensor(h, w, axes + 2, kernel));
        if (round % 4 != 0) {
            add_input(&test, any_tensor(h, x, 0, NULL));
            if (round % 4 != 1)
                add_input(&test, any_tensor(h, w, round % 4 == 2 ? 1 : 0, DIMS(kernel[0])));
        }
        set_int(&test, "group", groups[shape]);
        set_ints(&test, "pads", 2 * axes, round % 2 == 0 ? DIMS(1, 1, 1, 0, 1, 0) : DIMS(0, 0, 0, 0, 0, 0));
        set_ints(&test, "strides", axes, round % 7 < 4 ? DIMS(1, 1, 1) : DIMS(2, 1, 2));
        set_ints(&test, "dilations", axes, round % 9 < 6 ? DIMS(1, 1, 1) : DIMS(2, 1, 1));
        harness_run(h, &test);
        test = harness_op("QLinearConv", 10);
        add_input(&test, any_tensor(h, x, axes + 2, image));
        add_input(&test, mild_tensor(h, SB_F32, 0, NULL, 0.1f));
        add_input(&test, any_tensor(h, x, 0, NULL));
        add_input(&test, any_tensor(h, w, axes + 2, kernel));
        add_input(&test, round % 9 == 8 ? any_tensor(h, SB_F32, 1, DIMS(kernel[0]))
                                        : mild_tensor(h, SB_F32, round % 4 == 2 ? 1 : 0, DIMS(kernel[0]), 0.05f));
        add_input(&test, any_tensor(h, w, round % 4 == 2 ? 1 : 0, DIMS(kernel[0])));
        add_input(&test, mild_tensor(h, SB_F32, 0, NULL, 3.0f));
        add_input(&test, any_tensor(h, narrow(round >> 2 & 1), 0, NULL));
        if (round % 5 != 0)
            add_input(&test, any_tensor(h, SB_S32, 1, DIMS(kernel[0])));
        set_int(&test, "group", groups[shape]);
        harness_run(h, &test);
    }
}

/* Ranges of numbers of every kind, in every order in memory, of fewer and of more elements than are looked at together. */
HARNESS_GROUP(sampling, ranges, HARNESS_CPU | HARNESS_CUDA) {
    static const int64_t widths[] = {1, 5, 63, 64, 65, 300};
    for (int round = 0; round < 72; round++) {
        int64_t dims[] = {2, 3, widths[round % 6]};
        distribution kind = (distribution)(round / 6 % DISTRIBUTIONS);
        harness_case test = harness_op("DynamicQuantizeLinear", 11);
        add_input(&test, round % 3 == 0   ? any_tensor(h, SB_F32, 3, dims)
                         : round % 3 == 1 ? random_tensor(h, kind, SB_F32, 3, dims)
                                          : packed_tensor(h, kind, SB_F32, 3, dims));
        test.outputs = 3;
        harness_run(h, &test);
    }
}

/* ---- Einsum and spectra ---- */

static const struct {
    const char *equation;
    int count, ranks[3];
    int64_t dims[3][4];
} equations[] = {
    {"bij,bjk->bik", 2, {3, 3}, {{2, 3, 17}, {2, 17, 4}}},
    {"...ij->...ji", 1, {4}, {{2, 3, 4, 5}}},
    {"ii->i", 1, {2}, {{5, 5}}},
    {"ii", 1, {2}, {{5, 5}}},
    {"ij->", 1, {2}, {{7, 6}}},
    {"i,ij,j", 3, {1, 2, 1}, {{5}, {5, 6}, {6}}},
    {"a...b,...bc->...c", 2, {4, 3}, {{3, 2, 1, 5}, {4, 5, 2}}},
    {"ij,jk->ik", 2, {2, 2}, {{3, 0}, {0, 4}}},
    {"bhid,bhjd->bhij", 2, {4, 4}, {{2, 2, 3, 8}, {2, 2, 5, 8}}},
    {"bsi,ij->bsj", 2, {3, 2}, {{2, 7, 33}, {33, 70}}},
    {"bsi,ij->bjs", 2, {3, 2}, {{2, 7, 33}, {33, 40}}},
    {"bhwc,hkc->bhwk", 2, {4, 3}, {{2, 3, 4, 9}, {3, 5, 9}}},
    {"bsi,ji->bsj", 2, {3, 2}, {{3, 40, 19}, {5, 19}}},
    {"aij,aij->a", 2, {3, 3}, {{3, 4, 5}, {3, 4, 5}}},
    {"bij,kij->bk", 2, {3, 3}, {{3, 4, 5}, {6, 4, 5}}},
    {"ibnd,jbnd->bnij", 2, {4, 4}, {{7, 2, 3, 5}, {6, 2, 3, 5}}},
    {"bnij,jbnd->ibnd", 2, {4, 4}, {{2, 3, 7, 18}, {18, 2, 3, 20}}},
    {"ibnd,hnd->ibh", 2, {4, 3}, {{5, 2, 3, 4}, {21, 3, 4}}},
    {"ibh,hnd->ibnd", 2, {3, 3}, {{5, 2, 9}, {9, 3, 4}}},
    {"ibnd,snd->ibns", 2, {4, 3}, {{7, 1, 3, 5}, {2, 3, 5}}},
    {"ijbs,ibns->bnij", 2, {4, 4}, {{3, 4, 2, 2}, {3, 2, 5, 2}}},
    {"bhwc,wkc->bhwk", 2, {4, 3}, {{2, 3, 4, 9}, {4, 5, 9}}},
    {"i,j->ij", 2, {1, 1}, {{33}, {19}}},
    {"i,i->i", 2, {1, 1}, {{600}, {600}}},
    {"bi,bi->b", 2, {2, 2}, {{300, 7}, {300, 7}}},
    {"i,i", 2, {1, 1}, {{37}, {37}}},
    {"ij,kj->", 2, {2, 2}, {{3, 4}, {5, 4}}},
    {"iij,jk->ik", 2, {3, 2}, {{4, 4, 6}, {6, 33}}},
    {"ij,kj->i", 2, {2, 2}, {{20, 4}, {5, 4}}},
    {"aib,cbj->acij", 2, {3, 3}, {{2, 17, 5}, {3, 5, 18}}},
    {"aij,akj->ik", 2, {3, 3}, {{3, 17, 5}, {3, 40, 5}}},
    {"aij,jka->ik", 2, {3, 3}, {{3, 17, 5}, {5, 40, 3}}},
    {"aij,jka->ki", 2, {3, 3}, {{3, 17, 0}, {0, 40, 3}}},
    {"aij,jka->ki", 2, {3, 3}, {{0, 17, 2}, {2, 40, 0}}},
};
#define EQUATIONS (sizeof equations / sizeof equations[0])

static void run_equation(harness *h, size_t number, sb_dtype dtype) {
    harness_case test = harness_op("Einsum", 12);
    for (int i = 0; i < equations[number].count; i++)
        add_input(&test, any_tensor(h, dtype, equations[number].ranks[i], equations[number].dims[i]));
    set_text(&test, "equation", equations[number].equation);
    harness_run(h, &test);
}

HARNESS_GROUP(sampling, einsum, HARNESS_CUDA) {
    for (int dtype = SB_U8; dtype < SB_STRING; dtype++) {
        for (size_t i = 0; i < EQUATIONS; i++)
            run_equation(h, i, (sb_dtype)dtype);
    }
}

HARNESS_GROUP(sampling, einsum_of_two, HARNESS_CPU | HARNESS_CUDA) {
    for (int dtype = 0; dtype < 3; dtype++) {
        for (size_t i = 0; i < EQUATIONS; i++) {
            if (equations[i].count == 2)
                run_equation(h, i, floats[dtype]);
        }
    }
}

/* A transform of `lines` lines along either axis, forwards and back, of one part or two, whole and onesided. */
static void run_transforms(harness *h, int round, int64_t lines, int64_t extent) {
    sb_dtype dtype = floats[round % 4];
    int64_t parts = 1 + round / 4 % 2, axis = round / 2 % 2, length = extent + round % 3 - 1;
    bool inverse = round / 8 % 2 != 0, onesided = round / 16 % 2 != 0 && (inverse || parts == 1);
    harness_case test = harness_op("DFT", 20);
    add_input(&test, any_tensor(h, dtype, 3, axis == 0 ? DIMS(extent, lines, parts) : DIMS(lines, extent, parts)));
    if (round % 3 == 0 && !(inverse && onesided))
        add_list(&test, 1, &length);
    else
        add_input(&test, NULL);
    add_list(&test, 1, &axis);
    set_int(&test, "inverse", inverse);
    set_int(&test, "onesided", onesided);
    harness_run(h, &test);
}

/* Frames of `length` every `step` samples, with and without a window, of signals with and without an axis of parts. */
static void run_frames(harness *h, int round, int64_t samples, int64_t step, int64_t length) {
    sb_dtype dtype = floats[round % 4];
    bool complex = round % 5 == 0;
    harness_case test = harness_op("STFT", 17);
    add_input(&test, any_tensor(h, dtype, complex || round % 7 < 4 ? 3 : 2, DIMS(2, samples, complex ? 2 : 1)));
    add_list(&test, 1, &step);
    int64_t window = round % 6 == 1 ? length / 2 : length;
    add_input(&test, round % 3 == 0 ? NULL : any_tensor(h, dtype, 1, &window));
    add_list(&test, 1, &length);
    set_int(&test, "onesided", !complex);
    harness_run(h, &test);
}

HARNESS_GROUP(sampling, spectra, HARNESS_CPU | HARNESS_CUDA) {
    for (int round = 0; round < 32; round++) {
        run_transforms(h, round, 1 + round % 9, 5 + round % 4);
        run_transforms(h, round, 1 + round % 5, 30 + round % 7);
        run_frames(h, round, 40, 3, 9 + round % 3);
        run_frames(h, round, 90 + round, 7, 33 + round % 16);
    }
    run_transforms(h, 3, 0, 7);
    run_transforms(h, 1, 3, 1);
    run_transforms(h, 6, 600, 40);
}

HARNESS_GROUP(sampling, windows, HARNESS_CUDA) {
    static const char *const windows[] = {"HannWindow", "HammingWindow", "BlackmanWindow"};
    for (int round = 0; round < 32; round++) {
        int64_t size = round % 9;
        harness_case test = harness_op(windows[round % 3], 17);
        add_list(&test, 1, &size);
        test.inputs[0]->rank = 0;
        set_int(&test, "periodic", round % 2);
        harness_run(h, &test);
    }
    static const float edges[] = {20.0f, 4000.0f};
    harness_case test = harness_op("MelWeightMatrix", 17);
    for (int i = 0; i < 3; i++) {
        add_list(&test, 1, &DIMS(8, 128, 8000)[i]);
        test.inputs[i]->rank = 0;
    }
    for (int i = 0; i < 2; i++) {
        add_floats(&test, 1, &edges[i]);
        test.inputs[3 + i]->rank = 0;
    }
    harness_run(h, &test);
}
