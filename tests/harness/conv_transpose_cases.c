/* Transposed convolutions of all kinds, as the CPU computes them. */
#include "harness/harness.h"

/* A random transposed convolution, none of whose outputs has a negative extent. */
static void random_transpose(harness *h, distribution kind, sb_dtype dtype, harness_case *test) {
    random_source *random = &h->random;
    int axes = (int)random_between(random, 1, 3);
    int64_t groups = random_between(random, 0, 3) == 0 ? random_between(random, 2, 5) : 1;
    int64_t x_dims[5] = {random_between(random, 1, 2), groups * random_between(random, 1, 20)};
    int64_t w_dims[5] = {x_dims[1], random_between(random, 1, groups > 1 ? 5 : 40)};
    int64_t strides[3], dilations[3], pads[6], extra[3], shape[3];
    /* A kernel as long as the stride, with nothing cut off, is a way of its own. */
    bool even = random_between(random, 0, 2) == 0;
    for (int i = 0; i < axes; i++) {
        strides[i] = random_between(random, 1, 4);
        dilations[i] = even ? 1 : random_between(random, 1, 3);
        w_dims[i + 2] = even ? strides[i] : random_between(random, 1, 5);
        x_dims[i + 2] = random_between(random, 1, axes == 1 ? 150 : axes == 2 ? 12 : 4);
        int64_t reach = (w_dims[i + 2] - 1) * dilations[i];
        pads[i] = even ? 0 : random_between(random, 0, reach < 3 ? reach / 2 : 3);
        pads[axes + i] = even ? 0 : random_between(random, 0, reach - pads[i] < 3 ? (reach - pads[i]) / 2 : 3);
        extra[i] = even ? 0 : random_between(random, 0, strides[i] - 1);
        shape[i] = (x_dims[i + 2] - 1) * strides[i] + reach + 1 + random_between(random, 0, 1);
    }
    *test = harness_op("ConvTranspose", 11);
    set_int(test, "group", groups);
    set_ints(test, "strides", axes, strides);
    set_ints(test, "dilations", axes, dilations);
    int64_t way = random_between(random, 0, 5);
    if (way == 0)
        set_text(test, "auto_pad", random_bits(random) & 1 ? "SAME_UPPER" : "SAME_LOWER");
    else if (way == 1)
        set_ints(test, "output_shape", axes, shape);
    else {
        set_ints(test, "pads", 2 * axes, pads);
        set_ints(test, "output_padding", axes, extra);
    }
    add_input(test, random_tensor(h, kind, dtype, axes + 2, x_dims));
    add_input(test, random_tensor(h, kind, dtype, axes + 2, w_dims));
    if (random_bits(random) & 1)
        add_input(test, random_tensor(h, kind, dtype, 1, (int64_t[]){groups * w_dims[1]}));
    test->constants = random_bits(random) & 6;
}

static void run_random(harness *h, sb_dtype dtype, int rounds) {
    for (int round = 0; round < rounds; round++) {
        harness_case test;
        random_transpose(h, (distribution)(round % DISTRIBUTIONS), dtype, &test);
        harness_run(h, &test);
    }
}

HARNESS_GROUP(conv_transpose, random, HARNESS_CPU) {
    run_random(h, SB_F32, 300);
}

HARNESS_GROUP(conv_transpose, halves, HARNESS_CPU) {
    run_random(h, SB_F16, 150);
    run_random(h, SB_BF16, 150);
}

/* Chains that pause, several panels of columns, and lines of several blocks. */
HARNESS_GROUP(conv_transpose, large, HARNESS_CPU) {
    static const int64_t cases[][7] = {/* inputs, outputs, width, kernel, stride, pad, dilation */
                                       {400, 70, 33, 4, 2, 1, 1}, {33, 24, 130, 2, 2, 0, 1}, {30, 1, 70, 2, 2, 0, 1},
                                       {20, 35, 61, 5, 2, 2, 1},  {9, 3, 40, 7, 3, 2, 2},    {5, 40, 200, 1, 3, 0, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t *c = cases[i];
        harness_case test = harness_op("ConvTranspose", 11);
        set_ints(&test, "strides", 2, (int64_t[]){c[4], c[4]});
        set_ints(&test, "dilations", 2, (int64_t[]){c[6], c[6]});
        set_ints(&test, "pads", 4, (int64_t[]){c[5], c[5], c[5], c[5]});
        add_input(&test, random_tensor(h, ORDINARY, SB_F32, 4, (int64_t[]){2, c[0], 5, c[2]}));
        add_input(&test, random_tensor(h, ORDINARY, SB_F32, 4, (int64_t[]){c[0], c[1], c[3], c[3]}));
        add_input(&test, random_tensor(h, ORDINARY, SB_F32, 1, (int64_t[]){c[1]}));
        test.constants = 6;
        harness_run(h, &test);
    }
}

HARNESS_GROUP(conv_transpose, empty, HARNESS_CPU) {
    static const int64_t cases[][2][4] = {{{0, 3, 5, 5}, {3, 4, 2, 2}}, {{2, 0, 5, 5}, {0, 4, 2, 2}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        harness_case test = harness_op("ConvTranspose", 11);
        add_input(&test, random_tensor(h, ORDINARY, SB_F32, 4, cases[i][0]));
        add_input(&test, random_tensor(h, ORDINARY, SB_F32, 4, cases[i][1]));
        test.constants = i % 2 == 0 ? 6 : 0;
        harness_run(h, &test);
    }
}
