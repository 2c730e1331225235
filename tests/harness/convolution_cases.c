/* Convolutions of all kinds, as the CPU computes them. */
#include "harness/harness.h"

static const sb_dtype float_dtypes[] = {SB_F32, SB_F16, SB_BF16};

/* A random convolution whose window fits. */
static void random_conv(harness *h, distribution kind, sb_dtype dtype, harness_case *test) {
    static const char *const auto_pads[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
    int axes = (int)random_between(&h->random, 1, 3);
    int64_t groups = random_between(&h->random, 0, 2) == 0 ? random_between(&h->random, 2, 20) : 1;
    int64_t group_inputs =
        groups > 1 && random_bits(&h->random) & 1 ? 1 : random_between(&h->random, 1, groups > 1 ? 4 : 19);
    int64_t group_outputs =
        groups > 1 && random_bits(&h->random) & 1 ? 1 : random_between(&h->random, 1, groups > 1 ? 4 : 40);
    int64_t x_dims[5] = {random_between(&h->random, 1, 2), groups * group_inputs};
    int64_t w_dims[5] = {groups * group_outputs, group_inputs};
    int64_t strides[3], dilations[3], pads[6];
    int auto_pad = random_between(&h->random, 0, 2) == 0 ? (int)random_between(&h->random, 1, 3) : 0;
    for (int i = 0; i < axes; i++) {
        w_dims[i + 2] = random_between(&h->random, 1, 3);
        strides[i] = random_between(&h->random, 1, 2);
        dilations[i] = random_between(&h->random, 1, 2);
        pads[i] = random_between(&h->random, 0, 2);
        pads[axes + i] = random_between(&h->random, 0, 2);
        x_dims[i + 2] = (w_dims[i + 2] - 1) * dilations[i] + random_between(&h->random, 1, 9 / axes);
    }
    *test = harness_op("Conv", 11);
    set_int(test, "group", groups);
    set_ints(test, "strides", axes, strides);
    set_ints(test, "dilations", axes, dilations);
    if (auto_pad != 0)
        set_text(test, "auto_pad", auto_pads[auto_pad]);
    else
        set_ints(test, "pads", 2 * axes, pads);
    add_input(test, random_tensor(h, kind, dtype, axes + 2, x_dims));
    add_input(test, random_tensor(h, kind, dtype, axes + 2, w_dims));
    if (random_bits(&h->random) & 1) {
        add_input(test, random_tensor(h, kind, dtype, 1, w_dims));
    }
    test->constants = random_bits(&h->random) & 6;
}

HARNESS_GROUP(convolution, random, HARNESS_CPU) {
    for (int round = 0; round < 150; round++) {
        harness_case test;
        random_conv(h, (distribution)(round / 3 % DISTRIBUTIONS), float_dtypes[round % 3], &test);
        harness_run(h, &test);
    }
}

HARNESS_GROUP(convolution, large, HARNESS_CPU) {
    harness_case test = harness_op("Conv", 11);
    set_ints(&test, "pads", 4, (int64_t[]){1, 1, 1, 1});
    add_input(&test, random_tensor(h, ORDINARY, SB_F32, 4, (int64_t[]){1, 24, 40, 41}));
    add_input(&test, random_tensor(h, ORDINARY, SB_F32, 4, (int64_t[]){70, 24, 3, 3}));
    add_input(&test, random_tensor(h, ORDINARY, SB_F32, 1, (int64_t[]){70}));
    test.constants = 6;
    harness_run(h, &test);
}

HARNESS_GROUP(convolution, empty, HARNESS_CPU) {
    static const int64_t cases[][2][4] = {{{0, 3, 5, 5}, {4, 3, 2, 2}},
                                          {{2, 0, 5, 5}, {4, 0, 2, 2}},
                                          {{2, 3, 1, 5}, {4, 3, 2, 2}},
                                          {{2, 3, 5, 5}, {0, 3, 2, 2}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        harness_case test = harness_op("Conv", 11);
        add_input(&test, random_tensor(h, ORDINARY, SB_F32, 4, cases[i][0]));
        add_input(&test, random_tensor(h, ORDINARY, SB_F32, 4, cases[i][1]));
        add_input(&test, random_tensor(h, ORDINARY, SB_F32, 1, cases[i][1]));
        test.constants = i % 2 == 0 ? 6 : 0;
        harness_run(h, &test);
    }
}
