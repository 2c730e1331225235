/* Convolutions of f16 and bf16 as a device computes them: channels around the groups of 16 of the chain and the boxes of 64
 * that are fetched, any windows, inputs with channels last, weights known beforehand or not. */
#include "cuda/contraction/gemm16_conv.h"
#include "harness/graphs.h"

#define AXES 3

typedef struct convolution {
    int axes;
    int64_t batch, channels, outputs, groups;
    int64_t in[AXES], kernel[AXES], stride[AXES], dilation[AXES], begin[AXES], end[AXES];
    const char *auto_pad; /* NULL: by begin and end */
    bool with_bias;
} convolution;

/* How an input of [batch][channel][positions…] lies in memory. */
typedef enum order { ANYHOW, CHANNELS_FIRST, CHANNELS_LAST, CHANNELS_LAST_APART, CHANNELS_LAST_SHIFTED, ORDERS } order;

/* A random tensor whose channels lie side by side: with a gap of 8 elements between positions, or from an odd element
 * on. */
static sb_tensor *channels_last(harness *h, distribution kind, sb_dtype dtype, int rank, const int64_t *dims,
                                order order) {
    int64_t memory[SB_MAX_RANK];
    int back[SB_MAX_RANK];
    sb_tensor *whole, *cut, *tensor;
    int64_t gap = order == CHANNELS_LAST_APART ? 8 : order == CHANNELS_LAST_SHIFTED ? 1 : 0;
    int64_t first = order == CHANNELS_LAST_SHIFTED;
    for (int i = 0; i < rank; i++) {
        int from = i == 0 ? 0 : i == rank - 1 ? 1 : i + 1;
        memory[i] = dims[from] + (i == rank - 1 ? gap : 0);
        back[from] = i;
    }
    whole = packed_tensor(h, kind, dtype, rank, memory);
    MUST(sb_tensor_slice(whole, rank - 1, first, dims[1], 1, &cut, error));
    MUST(sb_tensor_transpose(cut, back, &tensor, error));
    sb_tensor_release(cut);
    sb_tensor_release(whole);
    return tensor;
}

static sb_tensor *ordered_tensor(harness *h, distribution kind, sb_dtype dtype, int rank, const int64_t *dims,
                                 order order) {
    return order == ANYHOW           ? random_tensor(h, kind, dtype, rank, dims)
           : order == CHANNELS_FIRST ? packed_tensor(h, kind, dtype, rank, dims)
                                     : channels_last(h, kind, dtype, rank, dims, order);
}

static void check(harness *h, sb_dtype dtype, const convolution *conv, distribution kind, order order,
                  uint64_t constants) {
    int rank = conv->axes + 2;
    int64_t x[5] = {conv->batch, conv->channels}, w[5] = {conv->outputs, conv->channels / conv->groups};
    int64_t pads[2 * AXES];
    for (int i = 0; i < conv->axes; i++) {
        x[i + 2] = conv->in[i];
        w[i + 2] = conv->kernel[i];
        pads[i] = conv->begin[i];
        pads[conv->axes + i] = conv->end[i];
    }
    harness_case test = harness_op("Conv", 11);
    set_int(&test, "group", conv->groups);
    set_ints(&test, "strides", conv->axes, conv->stride);
    set_ints(&test, "dilations", conv->axes, conv->dilation);
    if (conv->auto_pad != NULL)
        set_text(&test, "auto_pad", conv->auto_pad);
    else
        set_ints(&test, "pads", 2 * conv->axes, pads);
    add_input(&test, ordered_tensor(h, kind, dtype, rank, x, order));
    add_input(&test, ordered_tensor(h, kind, dtype, rank, w, order == CHANNELS_LAST_SHIFTED ? ANYHOW : order));
    if (conv->with_bias)
        add_input(&test, random_tensor(h, kind, dtype, 1, &conv->outputs));
    test.constants = constants;
    harness_run(h, &test);
}

/* In every order in memory, of both dtypes, with weights that are known and not. */
static void check_all(harness *h, const convolution *shapes, int count) {
    for (int round = 0; round < count * ORDERS; round++)
        check(h, (round / ORDERS + round) % 2 == 0 ? SB_F16 : SB_BF16, &shapes[round / ORDERS],
              (distribution)(round % DISTRIBUTIONS), (order)(round % ORDERS), round % 3 != 0 ? 6 : 0);
}

/* Channels that fill groups and boxes, and those that do not. */
HARNESS_GROUP(conv16, channels, HARNESS_CUDA) {
    static const int64_t channels[] = {1, 3, 8, 15, 16, 17, 32, 48, 64, 72, 80, 128};
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        const convolution shapes[] = {
            {2, 2, channels[i], 24, 1, {5, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, true},
            {2, 1, channels[i], 70, 1, {6, 5}, {2, 3}, {1, 1}, {1, 1}, {0, 1}, {1, 0}, NULL, false},
            {2, 3, channels[i], 9, 1, {4, 8}, {1, 1}, {1, 1}, {1, 1}, {0}, {0}, NULL, true},
            {2, 2, channels[i], 136, 1, {3, 2}, {1, 1}, {1, 1}, {1, 1}, {0}, {0}, NULL, false},
        };
        check_all(h, shapes, i % 3 == 0 ? 4 : 3);
    }
}

static const convolution windows[] = {
    /* strides, dilations, padding that differs at both ends, rows of positions that end anywhere */
    {2, 3, 16, 20, 1, {9, 11}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, NULL, true},
    {2, 2, 32, 8, 1, {15, 13}, {3, 5}, {2, 3}, {1, 1}, {0, 2}, {2, 1}, NULL, false},
    {2, 2, 64, 16, 1, {9, 9}, {3, 2}, {1, 2}, {2, 3}, {2, 0}, {1, 4}, NULL, true},
    {2, 2, 16, 65, 1, {8, 8}, {1, 1}, {2, 2}, {1, 1}, {0}, {0}, NULL, false},
    {2, 1, 48, 12, 1, {7, 7}, {1, 1}, {1, 1}, {1, 1}, {1, 0}, {0, 2}, NULL, true},
    {2, 1, 16, 8, 1, {40, 37}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, false},
    {2, 1, 3, 64, 1, {21, 19}, {7, 7}, {2, 2}, {1, 1}, {3, 3}, {3, 3}, NULL, false},
    {2, 1, 16, 8, 1, {33, 5}, {2, 2}, {9, 1}, {9, 1}, {8, 0}, {1, 1}, NULL, false},
    {2, 1, 16, 8, 1, {300, 3}, {2, 2}, {1, 1}, {280, 1}, {140, 0}, {130, 0}, NULL, true},
    /* more padding than input, windows that see nothing else */
    {2, 1, 16, 5, 1, {2, 2}, {2, 2}, {1, 1}, {1, 1}, {4, 4}, {4, 4}, NULL, false},
    {2, 2, 32, 5, 1, {1, 1}, {3, 3}, {2, 2}, {1, 1}, {3, 2}, {3, 4}, NULL, true},
    /* by name */
    {2, 2, 16, 7, 1, {7, 8}, {3, 4}, {2, 3}, {1, 1}, {0}, {0}, "SAME_UPPER", true},
    {2, 2, 64, 7, 1, {7, 8}, {2, 4}, {2, 1}, {1, 2}, {0}, {0}, "SAME_LOWER", false},
    {2, 1, 32, 7, 1, {7, 8}, {3, 3}, {1, 1}, {1, 1}, {0}, {0}, "VALID", false},
    /* one and three axes */
    {1, 3, 16, 7, 1, {31}, {5}, {2}, {3}, {4}, {5}, NULL, true},
    {1, 2, 64, 40, 1, {200}, {3}, {1}, {1}, {1}, {1}, NULL, false},
    {1, 1, 80, 12, 1, {33}, {1}, {1}, {1}, {0}, {0}, NULL, true},
    {3, 2, 16, 10, 1, {5, 4, 6}, {2, 3, 2}, {1, 2, 1}, {2, 1, 1}, {1, 0, 1}, {0, 1, 0}, NULL, true},
    {3, 1, 5, 10, 1, {4, 4, 5}, {3, 1, 2}, {1, 1, 2}, {1, 1, 1}, {1, 0, 0}, {1, 0, 1}, NULL, false},
    {3, 2, 32, 16, 1, {3, 4, 2}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}, {0}, NULL, true},
    /* nothing at all */
    {2, 0, 16, 3, 1, {4, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, true},
    {2, 2, 0, 3, 1, {4, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, true},
    {2, 2, 16, 3, 1, {1, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, false},
};

HARNESS_GROUP(conv16, windows, HARNESS_CUDA) {
    check_all(h, windows, (int)(sizeof windows / sizeof *windows));
}

/* Windows side by side, which are copied and multiplied, and those that only look like it: what is left at the end, one axis of three, chains of
 * fewer than 32, of no multiple of 8, of 64 channels and of 16, which come in maps of pixels. */
HARNESS_GROUP(conv16, patches, HARNESS_CUDA) {
    static const convolution shapes[] = {
        {2, 2, 3, 72, 1, {32, 48}, {16, 16}, {16, 16}, {1, 1}, {0}, {0}, NULL, true},
        {2, 1, 3, 40, 1, {70, 67}, {14, 14}, {14, 14}, {1, 1}, {0}, {0}, NULL, true},
        {2, 3, 1, 9, 1, {24, 8}, {4, 8}, {4, 8}, {1, 1}, {0}, {0}, NULL, false},
        {2, 2, 5, 17, 1, {9, 10}, {3, 3}, {3, 3}, {1, 1}, {0}, {0}, NULL, true},
        {2, 1, 3, 16, 1, {6, 6}, {3, 3}, {3, 3}, {1, 1}, {0}, {0}, NULL, false},
        {2, 2, 64, 24, 1, {20, 11}, {9, 2}, {9, 2}, {1, 1}, {0}, {0}, NULL, true},
        {2, 1, 16, 24, 1, {20, 12}, {9, 2}, {9, 2}, {1, 1}, {0}, {0}, NULL, true},
        {2, 1, 3, 16, 1, {32, 32}, {16, 16}, {16, 16}, {1, 1}, {0, 1}, {0}, NULL, true},
        {2, 1, 3, 16, 1, {32, 40}, {8, 8}, {8, 9}, {1, 1}, {0}, {0}, NULL, true},
        {1, 2, 7, 30, 1, {100}, {10}, {10}, {1}, {0}, {0}, NULL, true},
        {3, 2, 3, 12, 1, {4, 9, 8}, {2, 4, 4}, {2, 4, 4}, {1, 1, 1}, {0}, {0}, NULL, true},
        {2, 1, 3, 24, 1, {16, 16}, {16, 16}, {16, 16}, {1, 1}, {0}, {0}, NULL, true},
    };
    check_all(h, shapes, (int)(sizeof shapes / sizeof *shapes));
}

static const convolution groups[] = {
    {2, 2, 8, 12, 2, {6, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, true},
    {2, 1, 32, 48, 2, {5, 5}, {1, 3}, {1, 1}, {1, 1}, {0, 1}, {0, 1}, NULL, false},
    {2, 2, 128, 48, 2, {5, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, true},
    {2, 1, 192, 24, 3, {7, 5}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, NULL, false},
    {2, 2, 20, 12, 4, {5, 4}, {1, 1}, {1, 1}, {1, 1}, {0}, {0}, NULL, true},
    {2, 1, 128, 128, 32, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, false},
    /* depthwise, with a multiplier too */
    {2, 2, 9, 9, 9, {10, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, true},
    {2, 1, 6, 6, 6, {9, 9}, {5, 5}, {2, 2}, {1, 1}, {2, 2}, {2, 2}, NULL, false},
    {2, 2, 4, 12, 4, {6, 5}, {3, 3}, {1, 2}, {2, 1}, {2, 1}, {2, 1}, NULL, true},
    {1, 2, 4, 4, 4, {140}, {4}, {1}, {1}, {3}, {0}, NULL, false},
    {3, 1, 3, 3, 3, {4, 5, 3}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, NULL, true},
    {2, 1, 40, 80, 20, {4, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, true},
};

HARNESS_GROUP(conv16, groups, HARNESS_CUDA) {
    check_all(h, groups, (int)(sizeof groups / sizeof *groups));
}

/* Anything, within what plain chains compute in a moment. */
/* One channel to a group, whose lanes are channels on the CPU: fewer and more than a chunk, one group of taps and several, the last whole
 * and not. */
HARNESS_GROUP(conv16, depthwise, HARNESS_CPU | HARNESS_CUDA) {
    static const convolution shapes[] = {
        {2, 2, 70, 70, 70, {7, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, true},
        {2, 1, 130, 130, 130, {9, 8}, {7, 7}, {1, 1}, {1, 1}, {3, 3}, {3, 3}, NULL, true},
        {2, 1, 64, 64, 64, {9, 8}, {4, 4}, {2, 1}, {1, 2}, {3, 3}, {0, 3}, NULL, false},
        {1, 2, 5, 5, 5, {40}, {31}, {1}, {1}, {15}, {15}, NULL, true},
        {3, 1, 66, 66, 66, {3, 4, 5}, {2, 3, 2}, {1, 1, 1}, {1, 1, 1}, {1, 0, 1}, {0, 1, 1}, NULL, false},
    };
    check_all(h, shapes, (int)(sizeof shapes / sizeof *shapes));
    check_all(h, shapes, (int)(sizeof shapes / sizeof *shapes));
}

HARNESS_GROUP(conv16, random, HARNESS_CUDA) {
    static const int64_t channels[] = {1, 2, 3, 4, 8, 16, 17, 32, 48, 64, 80};
    for (int round = 0; round < 48; round++) {
        convolution conv = {.axes = (int)random_between(&h->random, 1, 3),
                            .batch = random_between(&h->random, 1, 3),
                            .groups = random_between(&h->random, 0, 3) == 0 ? random_between(&h->random, 2, 4) : 1,
                            .with_bias = random_bits(&h->random) & 1};
        conv.channels = conv.groups * channels[random_between(&h->random, 0, 10)];
        conv.outputs = conv.groups * random_between(&h->random, 1, 36);
        for (int i = 0; i < conv.axes; i++) {
            conv.kernel[i] = random_between(&h->random, 1, 3);
            conv.stride[i] = random_between(&h->random, 1, 3);
            conv.dilation[i] = random_between(&h->random, 1, 2);
            conv.begin[i] = random_between(&h->random, 0, 3);
            conv.end[i] = random_between(&h->random, 0, 3);
            conv.in[i] = (conv.kernel[i] - 1) * conv.dilation[i] + random_between(&h->random, 1, 12 / conv.axes);
        }
        check(h, round % 2 == 0 ? SB_F16 : SB_BF16, &conv, (distribution)random_between(&h->random, 0, 4),
              (order)random_between(&h->random, 0, ORDERS - 1), random_bits(&h->random) & 6);
    }
}

/* Each shape of tiles for maps of pixels: several tiles and rings that go round, ends of rows, samples and outputs inside of
 * tiles, and with few rows. */
HARNESS_GROUP(conv16, pixels, HARNESS_CUDA) {
    static const convolution shapes[] = {
        {2, 3, 16, 72, 1, {9, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, true},
        {2, 2, 32, 136, 1, {12, 13}, {2, 2}, {2, 1}, {1, 2}, {1, 0}, {0, 1}, NULL, false},
        {2, 1, 64, 33, 1, {11, 13}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, true},
        {2, 2, 400, 8, 1, {3, 3}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, false},
        {2, 5, 208, 5, 1, {5, 5}, {1, 1}, {2, 2}, {1, 1}, {0}, {0}, NULL, true},
        {1, 1, 128, 16, 1, {9}, {9}, {1}, {1}, {4}, {4}, NULL, false},
    };
    for (int round = 0; round < (int)(sizeof shapes / sizeof *shapes); round++) {
        for (int i = 0; i < sb_gemm16_conv_shapes(); i++) {
            sb_gemm16_conv_force(i);
            check(h, (round + i) % 2 == 0 ? SB_F16 : SB_BF16, &shapes[round],
                  (distribution)((round + i) % DISTRIBUTIONS), (round + i / 2) % 2 == 0 ? CHANNELS_LAST : ANYHOW,
                  i % 3 == 0 ? 6 : 0);
        }
    }
    sb_gemm16_conv_force(-1);
}

/* ---- what reads the outputs ---- */

static const int64_t maps[][4] = {{2, 16, 5, 7}, {1, 8, 1, 9}, {3, 17, 4, 4},
                                  {2, 64, 9, 6}, {1, 3, 2, 2}, {0, 8, 3, 3}};
#define MAPS ((int)(sizeof maps / sizeof *maps))

/* Nodes whose outputs keep channels last, of a map that lies so and of another that does or does not. */
HARNESS_GROUP(conv16, readers, HARNESS_CUDA) {
    static const char *const pools[] = {"MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool"};
    for (int round = 0; round < 2 * MAPS * ORDERS; round++) {
        sb_dtype dtype = round % 2 == 0 ? SB_F16 : SB_BF16;
        const int64_t *dims = maps[round / 2 % MAPS];
        distribution kind = (distribution)(round % DISTRIBUTIONS);
        order order = (enum order)(round / 2 / MAPS);
        harness_case test = harness_op("Relu", 14);
        add_input(&test, channels_last(h, kind, dtype, 4, dims, CHANNELS_LAST));
        harness_run(h, &test);
        test = harness_op("Sub", 14);
        add_input(&test, channels_last(h, kind, dtype, 4, dims, CHANNELS_LAST));
        add_input(&test, ordered_tensor(h, kind, dtype, 4, dims, order));
        harness_run(h, &test);
        test = harness_op("BatchNormalization", 15);
        add_input(&test, channels_last(h, kind, dtype, 4, dims, CHANNELS_LAST));
        for (int i = 0; i < 4; i++)
            add_input(&test, random_tensor(h, kind, dtype, 1, &dims[1]));
        harness_run(h, &test);
        for (int i = 0; i < 5 && dims[0] > 0; i++) {
            test = harness_op(pools[i], 11);
            if (i < 3) {
                set_ints(&test, "kernel_shape", 2, (int64_t[]){1 + round % 2, 2});
                set_ints(&test, "strides", 2, (int64_t[]){1, 1 + round % 3});
                set_ints(&test, "pads", 4, (int64_t[]){0, 1, 0, 1});
            }
            if (i == 1)
                set_int(&test, "count_include_pad", round / 2 % 2);
            /* With indices too, which count row by row. */
            test.outputs = i == 0 && round % 3 == 0 ? 2 : 1;
            add_input(&test, ordered_tensor(h, kind, dtype, 4, dims, order));
            harness_run(h, &test);
        }
    }
}

/* What joins maps, and makes them larger by copying. */
HARNESS_GROUP(conv16, copies, HARNESS_CUDA) {
    for (int round = 0; round < 60; round++) {
        sb_dtype dtype = round % 2 == 0 ? SB_F16 : SB_BF16;
        int axis = round / 2 % 5 == 4 ? 2 : 1, count = 1 + round % 3;
        harness_case test = harness_op("Concat", 13);
        set_int(&test, "axis", axis);
        for (int i = 0; i < count; i++) {
            int64_t dims[] = {2, 8, 4, 5};
            dims[axis] = random_between(&h->random, 1, 5) * (round % 4 == 3 ? 3 : 8);
            /* Of some, one lies otherwise. */
            order order = i == 1 && round % 5 == 0 ? ANYHOW : CHANNELS_LAST;
            add_input(&test, ordered_tensor(h, (distribution)(round % DISTRIBUTIONS), dtype, 4, dims, order));
        }
        harness_run(h, &test);
        const int64_t dims[] = {2, random_between(&h->random, 1, 3) * 8, 3, 4}, larger[] = {2, dims[1], 6, 9};
        test = harness_op("Resize", 13);
        set_text(&test, "mode", round % 3 == 2 ? "linear" : "nearest");
        set_text(&test, "coordinate_transformation_mode", round % 4 == 3 ? "asymmetric" : "half_pixel");
        add_input(&test, channels_last(h, (distribution)(round % DISTRIBUTIONS), dtype, 4, dims, CHANNELS_LAST));
        add_input(&test, NULL);
        add_input(&test, NULL);
        add_list(&test, 4, larger);
        harness_run(h, &test);
    }
}

/* Element-wise nodes that are one. */
HARNESS_GROUP(conv16, fused, HARNESS_CUDA) {
    for (int round = 0; round < 2 * MAPS * 2; round++) {
        sb_dtype dtype = round % 2 == 0 ? SB_F16 : SB_BF16;
        const int64_t *dims = maps[round / 2 % MAPS];
        bool both = round / 2 / MAPS == 1;
        builder b = builder_create();
        sb_tensor *tensors[HARNESS_INPUTS] = {channels_last(h, ORDINARY, dtype, 4, dims, CHANNELS_LAST),
                                              both ? channels_last(h, SPECIAL, dtype, 4, dims, CHANNELS_LAST)
                                                   : random_tensor(h, WIDE, dtype, 4, dims),
                                              random_tensor(h, ORDINARY, dtype, 3, (int64_t[]){dims[1], 1, 1})};
        sb_value_id x = builder_input(&b, dtype, 4, dims), other = builder_input(&b, dtype, 4, dims);
        sb_value_id factors = builder_input(&b, dtype, 3, (int64_t[]){dims[1], 1, 1});
        sb_value_id value = builder_binary(&b, "Mul", x, factors);
        value = builder_unary(&b, "Relu", builder_binary(&b, "Add", value, other));
        harness_run_fused(h, &b, value, tensors);
        for (int i = 0; i < 3; i++)
            sb_tensor_release(tensors[i]);
        builder_destroy(&b);
    }
}

/* Pools of one to three axes, most of them of channels in whole eights, with more taps in a row than are fetched at once. */
HARNESS_GROUP(conv16, pools, HARNESS_CUDA) {
    static const int64_t channels[] = {8, 16, 24, 64, 12, 80};
    for (int round = 0; round < 96; round++) {
        bool averages = round % 2 == 1;
        int axes = 1 + round / 2 % 3;
        int64_t dims[5] = {random_between(&h->random, 1, 3), channels[random_between(&h->random, 0, 5)]};
        int64_t kernel[3], strides[3], dilations[3], pads[6];
        for (int i = 0; i < axes; i++) {
            kernel[i] = random_between(&h->random, 1, i == axes - 1 ? 9 : 3);
            strides[i] = random_between(&h->random, 1, 3);
            dilations[i] = random_between(&h->random, 1, 2);
            pads[i] = random_between(&h->random, 0, 3);
            pads[axes + i] = random_between(&h->random, 0, 3);
            dims[i + 2] = (kernel[i] - 1) * dilations[i] + random_between(&h->random, 1, 12 / axes);
        }
        harness_case test = harness_op(averages ? "AveragePool" : "MaxPool", 19);
        set_ints(&test, "kernel_shape", axes, kernel);
        set_ints(&test, "strides", axes, strides);
        set_ints(&test, "dilations", axes, dilations);
        set_ints(&test, "pads", 2 * axes, pads);
        set_int(&test, "ceil_mode", random_between(&h->random, 0, 1));
        if (averages)
            set_int(&test, "count_include_pad", random_between(&h->random, 0, 1));
        add_input(&test, channels_last(h, (distribution)(round % DISTRIBUTIONS), round / 3 % 2 == 0 ? SB_F16 : SB_BF16,
                                       axes + 2, dims, round % 8 == 7 ? CHANNELS_LAST_APART : CHANNELS_LAST));
        harness_run(h, &test);
    }
}

/* Makes positions of the second half the opposites of those of the first, in reverse order: what is left of their sums is
 * what has been rounded, in which any other order shows. */
static void oppose_halves(sb_tensor *tensor) {
    int64_t positions = tensor->dims[2] * tensor->dims[3];
    for (int64_t n = 0; n < tensor->dims[0]; n++) {
        for (int64_t c = 0; c < tensor->dims[1]; c++) {
            uint16_t *first = (uint16_t *)(void *)tensor->data + n * tensor->strides[0] + c * tensor->strides[1];
            int64_t step = tensor->dims[3] == 1 ? tensor->strides[2] : tensor->strides[3];
            for (int64_t i = 0; i < positions / 2; i++)
                first[(positions - 1 - i) * step] = first[i * step] ^ 0x8000;
        }
    }
}

/* Sums over positions, with more of them than lanes and than a block of the order has, and over the first axes of others. */
HARNESS_GROUP(conv16, sums, HARNESS_CUDA) {
    static const int64_t positions[] = {1, 2, 31, 33, 49, 100, 255, 256, 257, 700, 1025, 3136, 4096, 4099, 9000};
    static const int64_t channels[] = {8, 16, 40, 72};
    for (int round = 0; round < 60; round++) {
        sb_dtype dtype = round % 2 == 0 ? SB_F16 : SB_BF16;
        int64_t dims[] = {random_between(&h->random, 1, 2), channels[round / 15], positions[round % 15], 1};
        if (dims[2] % 7 == 0 && round % 4 == 0) {
            dims[2] /= 7;
            dims[3] = 7;
        }
        harness_case test = harness_op(round % 3 == 0   ? "GlobalAveragePool"
                                       : round % 3 == 1 ? "ReduceMean"
                                                        : "ReduceSum",
                                       13);
        bool opposed = round / 15 % 2 == 0;
        distribution kind = opposed ? ORDINARY : (distribution)(round % DISTRIBUTIONS);
        sb_tensor *x = channels_last(h, kind, dtype, 4, dims, CHANNELS_LAST);
        if (opposed)
            oppose_halves(x);
        add_input(&test, x);
        if (round % 3 == 1)
            set_ints(&test, "axes", 2, (int64_t[]){2, 3});
        else if (round % 3 == 2)
            add_list(&test, 2, (int64_t[]){2, 3});
        harness_run(h, &test);
    }
}

/* Groups that have their own kernels with channels last (conv16_grouped.cuh): of 1, 4, 8 and multiples of 16 channels, in all
 * numbers of sixteens, and of sixteens of which a half is missing. */
static const convolution grouped[] = {
    {2, 2, 8, 8, 8, {9, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, true},
    {2, 1, 16, 16, 16, {7, 30}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, NULL, false},
    {2, 3, 24, 24, 24, {8, 5}, {3, 4}, {1, 2}, {2, 1}, {0, 3}, {4, 0}, NULL, true},
    {2, 1, 72, 72, 72, {14, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, true},
    {2, 2, 48, 48, 48, {6, 7}, {1, 1}, {1, 1}, {1, 1}, {0}, {0}, NULL, true},
    {2, 1, 136, 136, 136, {6, 4}, {3, 3}, {2, 1}, {1, 1}, {0, 1}, {1, 2}, NULL, false},
    /* more kernel positions than a step has */
    {2, 1, 24, 24, 24, {12, 9}, {5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}, NULL, true},
    {2, 2, 16, 16, 16, {13, 10}, {5, 5}, {2, 2}, {1, 1}, {1, 2}, {2, 1}, NULL, false},
    {2, 1, 32, 32, 32, {11, 9}, {7, 7}, {1, 1}, {1, 1}, {3, 3}, {3, 3}, NULL, true},
    {2, 1, 8, 8, 8, {9, 20}, {4, 4}, {3, 1}, {1, 4}, {2, 6}, {1, 0}, NULL, true},
    {2, 1, 40, 40, 40, {6, 8}, {13, 1}, {1, 1}, {1, 1}, {6, 0}, {6, 0}, NULL, false},
    {1, 2, 24, 24, 24, {70}, {9}, {1}, {3}, {8}, {8}, NULL, true},
    {1, 1, 16, 16, 16, {33}, {31}, {2}, {1}, {15}, {15}, NULL, false},
    /* windows that see padding alone, and positions of one sample that fill no tile */
    {2, 2, 16, 16, 16, {2, 3}, {2, 2}, {1, 1}, {1, 1}, {3, 3}, {4, 3}, NULL, true},
    {2, 1, 8, 8, 8, {1, 1}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, true},
    {2, 1, 32, 32, 32, {40, 37}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, false},
    /* of several channels */
    {2, 1, 16, 16, 4, {6, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, true},
    {2, 2, 40, 40, 10, {5, 9}, {2, 3}, {2, 1}, {1, 2}, {1, 2}, {0, 1}, NULL, false},
    {2, 1, 128, 128, 32, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, true},
    {2, 2, 24, 24, 3, {6, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, true},
    {2, 1, 80, 80, 10, {7, 7}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, NULL, false},
    {2, 1, 32, 32, 2, {7, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, true},
    {2, 1, 96, 96, 6, {6, 6}, {1, 1}, {1, 1}, {1, 1}, {0}, {0}, NULL, false},
    {2, 1, 64, 64, 2, {5, 7}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, NULL, true},
    {2, 1, 96, 96, 2, {4, 5}, {3, 2}, {1, 1}, {1, 1}, {1, 1}, {1, 0}, NULL, true},
    {2, 1, 128, 128, 2, {3, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, false},
    {1, 1, 64, 64, 4, {19}, {3}, {1}, {1}, {1}, {1}, NULL, true},
    /* which no kernel of groups takes: other sizes of groups, too large windows */
    {2, 1, 24, 24, 12, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, true},
    {2, 1, 160, 160, 2, {3, 3}, {1, 3}, {1, 1}, {1, 1}, {0, 1}, {0, 1}, NULL, false},
    {2, 1, 16, 16, 16, {3, 3}, {2, 2}, {1, 1}, {200, 200}, {100, 100}, {101, 101}, NULL, false},
    {2, 1, 8, 8, 8, {3, 4000}, {2, 2}, {1, 1}, {1, 3999}, {1, 0}, {0, 4}, NULL, false},
    {2, 0, 16, 16, 16, {4, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, NULL, true},
};

HARNESS_GROUP(conv16, grouped, HARNESS_CUDA) {
    check_all(h, grouped, (int)(sizeof grouped / sizeof *grouped));
}
