/* Pools, as the CPU computes them. */
#include "harness/harness.h"

static void random_pool(harness *h, distribution kind, harness_case *test) {
    int axes = (int)random_between(&h->random, 1, 3);
    bool averages = random_bits(&h->random) & 1;
    int64_t dims[5] = {random_between(&h->random, 1, 3), random_between(&h->random, 1, 40)};
    int64_t kernel[3], strides[3], dilations[3], pads[6];
    for (int i = 0; i < axes; i++) {
        kernel[i] = random_between(&h->random, 1, 3);
        strides[i] = random_between(&h->random, 1, 3);
        dilations[i] = random_between(&h->random, 1, 2);
        pads[i] = random_between(&h->random, 0, 3);
        pads[axes + i] = random_between(&h->random, 0, 3);
        dims[i + 2] = (kernel[i] - 1) * dilations[i] + random_between(&h->random, 1, 12 / axes);
    }
    *test = harness_op(averages ? "AveragePool" : "MaxPool", 19);
    set_ints(test, "kernel_shape", axes, kernel);
    set_ints(test, "strides", axes, strides);
    set_ints(test, "dilations", axes, dilations);
    set_int(test, "ceil_mode", random_between(&h->random, 0, 1));
    if (averages)
        set_int(test, "count_include_pad", random_between(&h->random, 0, 1));
    if (random_between(&h->random, 0, 2) == 0)
        set_text(test, "auto_pad", random_bits(&h->random) & 1 ? "SAME_LOWER" : "SAME_UPPER");
    else
        set_ints(test, "pads", 2 * axes, pads);
    add_input(test, random_tensor(h, kind, SB_F32, axes + 2, dims));
}

HARNESS_GROUP(pool, windows, HARNESS_CPU) {
    for (int round = 0; round < 100; round++) {
        harness_case test;
        random_pool(h, (distribution)(round % DISTRIBUTIONS), &test);
        harness_run(h, &test);
    }
}

/* Rows of more windows than are computed at once, of as many channels as make any number of vectors. */
HARNESS_GROUP(pool, rows, HARNESS_CPU) {
    static const int64_t channels[] = {1, 7, 8, 16, 31, 33, 64, 100, 129};
    static const sb_dtype dtypes[] = {SB_F32, SB_F32, SB_BF16, SB_F16};
    for (int round = 0; round < 90; round++) {
        harness_case test = harness_op(round % 3 == 2 ? "AveragePool" : "MaxPool", 22);
        const int64_t kernel[] = {random_between(&h->random, 1, 3), random_between(&h->random, 1, 4)};
        const int64_t dims[] = {random_between(&h->random, 1, 2), channels[round % 9], random_between(&h->random, 3, 6),
                                random_between(&h->random, 40, 150)};
        set_ints(&test, "kernel_shape", 2, kernel);
        set_ints(&test, "strides", 2, (int64_t[]){1, random_between(&h->random, 1, 3)});
        set_ints(&test, "pads", 4, (int64_t[]){0, round % 2, 0, round % 3 != 0});
        if (round % 2 != 0 && kernel[1] == 1)
            set_ints(&test, "pads", 4, (int64_t[]){0, 0, 0, 0});
        add_input(&test, random_tensor(h, (distribution)(round % DISTRIBUTIONS), dtypes[round % 4], 4, dims));
        harness_run(h, &test);
    }
}

/* Windows of so many elements that maxima go by rows first, beyond all borders too. */
HARNESS_GROUP(pool, large, HARNESS_CPU) {
    static const int64_t channels[] = {1, 2, 7, 16, 33};
    static const sb_dtype dtypes[] = {SB_F32, SB_F32, SB_BF16, SB_F16};
    for (int round = 0; round < 60; round++) {
        harness_case test = harness_op(round % 4 == 3 ? "AveragePool" : "MaxPool", 22);
        const int axes = round % 5 == 4 ? 3 : 2;
        int64_t kernel[3], pads[6], dilations[3], strides[3];
        int64_t dims[5] = {random_between(&h->random, 1, 2), channels[round % 5]};
        for (int i = 0; i < axes; i++) {
            kernel[i] = random_between(&h->random, 4, axes == 3 ? 5 : 9);
            dilations[i] = round % 3 == 0 ? random_between(&h->random, 1, 2) : 1;
            strides[i] = round % 2 == 0 ? 1 : random_between(&h->random, 1, 2);
            pads[i] = random_between(&h->random, 0, kernel[i] - 1);
            pads[i + axes] = random_between(&h->random, 0, kernel[i] - 1);
            dims[i + 2] = random_between(&h->random, 3, axes == 3 ? 12 : 40) + (kernel[i] - 1) * dilations[i];
        }
        set_ints(&test, "kernel_shape", axes, kernel);
        set_ints(&test, "strides", axes, strides);
        set_ints(&test, "dilations", axes, dilations);
        set_ints(&test, "pads", 2 * axes, pads);
        add_input(&test, random_tensor(h, (distribution)(round % DISTRIBUTIONS), dtypes[round % 4], axes + 2, dims));
        harness_run(h, &test);
    }
}

HARNESS_GROUP(pool, global, HARNESS_CPU) {
    static const char *const ops[] = {"GlobalAveragePool", "GlobalMaxPool"};
    for (int round = 0; round < 180; round++) {
        const sb_dtype dtype = (sb_dtype[]){SB_F32, SB_F16, SB_BF16}[round / 60];
        int axes = (int)random_between(&h->random, 1, 3);
        int64_t dims[5] = {random_between(&h->random, 1, 3), random_between(&h->random, 1, 80)};
        for (int i = 0; i < axes; i++)
            dims[i + 2] = random_between(&h->random, round % 9 == 0 ? 0 : 1, axes == 1 ? 600 : 20 / axes);
        harness_case test = harness_op(ops[round % 2], 1);
        const distribution kind = (distribution)(round / 2 % DISTRIBUTIONS);
        add_input(&test, round % 5 == 0   ? packed_tensor(h, kind, dtype, axes + 2, dims)
                         : round % 5 == 1 ? channels_last_tensor(h, kind, dtype, axes + 2, dims)
                                          : random_tensor(h, kind, dtype, axes + 2, dims));
        harness_run(h, &test);
    }
    /* Channels innermost, and each row of positions a single one that is repeated. */
    for (int i = 0; i < 2; i++) {
        harness_case repeats = harness_op(ops[i], 1);
        add_input(&repeats, channels_last_tensor(h, ORDINARY, SB_F32, 4, (int64_t[]){2, 19, 5, 7}));
        repeats.inputs[0]->strides[3] = 0;
        harness_run(h, &repeats);
    }
    /* More than one block of the reduction. */
    harness_case test = harness_op("GlobalAveragePool", 1);
    add_input(&test, random_tensor(h, ORDINARY, SB_F32, 4, (int64_t[]){1, 3, 91, 97}));
    harness_run(h, &test);
}

/* Maxima with indices, and of bytes: windows of one to three axes, cut by borders and beyond them, with gaps, of every stride, counted
 * in both orders, over inputs in any order in memory, with values of which many are equal. */
HARNESS_GROUP(pool, indices, HARNESS_CPU | HARNESS_CUDA) {
    static const sb_dtype dtypes[] = {SB_F32, SB_F16, SB_BF16, SB_S8, SB_U8};
    for (int round = 0; round < 300; round++) {
        const sb_dtype dtype = dtypes[round % 5];
        int axes = (int)random_between(&h->random, 1, 3);
        int64_t dims[5] = {random_between(&h->random, 1, 2), random_between(&h->random, 1, 5)};
        int64_t kernel[3], strides[3], dilations[3], pads[6];
        for (int i = 0; i < axes; i++) {
            kernel[i] = random_between(&h->random, 1, 4);
            strides[i] = random_between(&h->random, 1, 3);
            dilations[i] = random_between(&h->random, 1, 3);
            pads[i] = random_between(&h->random, 0, 4);
            pads[axes + i] = random_between(&h->random, 0, 4);
            dims[i + 2] = (kernel[i] - 1) * dilations[i] + random_between(&h->random, 1, i == axes - 1 ? 60 : 8);
        }
        harness_case test = harness_op("MaxPool", 12);
        add_input(&test, round % 4 == 0                ? make_tensor(h, dtype, axes + 2, dims, PACKED)
                         : round % 4 == 1 && axes == 2 ? permuted_tensor(h, dtype, axes + 2, dims)
                         : round % 4 == 2              ? number_tensor(h, dtype, axes + 2, dims, false)
                                                       : any_tensor(h, dtype, axes + 2, dims));
        set_ints(&test, "kernel_shape", axes, kernel);
        set_ints(&test, "strides", axes, strides);
        set_ints(&test, "dilations", axes, dilations);
        set_int(&test, "ceil_mode", random_between(&h->random, 0, 1));
        set_int(&test, "storage_order", round % 3 == 0);
        if (round % 7 == 0)
            set_text(&test, "auto_pad", round % 2 != 0 ? "SAME_LOWER" : "SAME_UPPER");
        else
            set_ints(&test, "pads", 2 * axes, pads);
        test.outputs = sb_dtype_is_float(dtype) || round % 2 == 0 ? 2 : 1;
        harness_run(h, &test);
    }
    harness_case test = harness_op("MaxPool", 12);
    add_input(&test, packed_tensor(h, ORDINARY, SB_F32, 4, (int64_t[]){0, 3, 4, 4}));
    set_ints(&test, "kernel_shape", 2, (int64_t[]){2, 2});
    test.outputs = 2;
    harness_run(h, &test);
}
