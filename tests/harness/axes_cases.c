/* Pools, and operators that compare, select and accumulate along an axis, losses and determinants. */
#include "harness/harness.h"

/* ---- pools ---- */

typedef struct pool_shape {
    int rank;
    int64_t dims[5];
    int64_t kernel[3], strides[3], dilations[3], pads[6];
    bool ceil_mode;
    const char *auto_pad;
} pool_shape;

static const pool_shape pools[] = {
    {3, {2, 3, 19}, {3}, {2}, {1}, {1, 1}, false, NULL},
    {4, {2, 3, 11, 13}, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, false, NULL},
    {4, {1, 2, 10, 9}, {2, 4}, {1, 3}, {3, 2}, {1, 3, 0, 2}, true, NULL},
    {4, {1, 2, 10, 9}, {3, 2}, {2, 2}, {1, 1}, {0}, false, "SAME_UPPER"},
    {4, {1, 2, 10, 9}, {3, 2}, {2, 3}, {1, 1}, {0}, false, "SAME_LOWER"},
    {5, {1, 2, 5, 6, 7}, {2, 3, 2}, {2, 1, 3}, {1, 2, 1}, {1, 2, 1, 1, 0, 0}, false, NULL},
    /* Windows that lie in the padding alone. */
    {4, {1, 1, 2, 2}, {1, 1}, {1, 1}, {1, 1}, {2, 2, 2, 2}, false, NULL},
    {4, {0, 2, 4, 4}, {2, 2}, {2, 2}, {1, 1}, {0}, false, NULL},
};

static harness_case pool_case(harness *h, const char *op, int version, sb_dtype dtype, const pool_shape *shape,
                              bool awkward) {
    harness_case test = harness_op(op, version);
    int axes = shape->rank - 2;
    add_input(&test, number_tensor(h, dtype, shape->rank, shape->dims, awkward));
    set_ints(&test, "kernel_shape", axes, shape->kernel);
    set_ints(&test, "strides", axes, shape->strides);
    set_ints(&test, "dilations", axes, shape->dilations);
    if (shape->auto_pad != NULL)
        set_text(&test, "auto_pad", shape->auto_pad);
    else
        set_ints(&test, "pads", 2 * axes, shape->pads);
    set_int(&test, "ceil_mode", shape->ceil_mode);
    return test;
}

HARNESS_GROUP(axes, pools, HARNESS_CUDA) {
    static const sb_dtype dtypes[] = {SB_F16, SB_BF16, SB_F32, SB_F64, SB_S8, SB_U8};
    for (size_t s = 0; s < sizeof pools / sizeof pools[0]; s++) {
        for (int t = 0; t < 6; t++) {
            for (int variant = 0; variant < 4; variant++) {
                bool awkward = variant % 2 == 1, second = variant / 2 == 1;
                harness_case test = pool_case(h, "MaxPool", 12, dtypes[t], &pools[s], awkward);
                set_int(&test, "storage_order", second);
                test.outputs = 1 + variant % 2;
                harness_run(h, &test);
                if (!sb_dtype_is_float(dtypes[t]))
                    continue;
                test = pool_case(h, "AveragePool", 19, dtypes[t], &pools[s], awkward);
                set_int(&test, "count_include_pad", second);
                harness_run(h, &test);
                test = pool_case(h, "LpPool", 18, dtypes[t], &pools[s], awkward);
                set_int(&test, "p", 1 + variant % 3);
                harness_run(h, &test);
            }
        }
    }
}

HARNESS_GROUP(axes, global_pools, HARNESS_CUDA) {
    static const char *const ops[] = {"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"};
    static const struct {
        int rank;
        int64_t dims[4];
    } shapes[] = {{4, {2, 5, 7, 7}}, {4, {1, 2, 40, 33}}, {3, {2, 3, 5}},   {2, {3, 4}},
                  {4, {1, 2, 0, 3}}, {4, {0, 2, 3, 3}},   {3, {1, 1, 5000}}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        for (int t = 0; t < 4; t++) {
            for (int o = 0; o < 6; o++) {
                harness_case test = harness_op(ops[o % 3], o % 3 == 2 ? 2 : 1);
                add_input(&test, number_tensor(h, float_types[t], shapes[s].rank, shapes[s].dims, o == 4));
                if (o % 3 == 2)
                    set_int(&test, "p", (int64_t)s % 4);
                harness_run(h, &test);
            }
        }
    }
}

/* Indices that several elements share: the last of them stays. And one that is outside. */
HARNESS_GROUP(axes, unpool, HARNESS_CUDA) {
    static const int64_t dims[] = {2, 3, 4, 3}, kernel[] = {2, 2}, larger[] = {2, 3, 10, 7};
    for (int variant = 0; variant < 8; variant++) {
        sb_dtype dtype = (sb_dtype[]){SB_F32, SB_S8, SB_F16, SB_F64}[variant % 4];
        harness_case test = harness_op("MaxUnpool", 11);
        add_input(&test, any_tensor(h, dtype, 4, dims));
        sb_tensor *indices = any_tensor(h, SB_S64, 4, dims);
        size_t count = indices->storage->bytes / sizeof(int64_t);
        for (size_t i = 0; i < count; i++)
            ((int64_t *)indices->storage->data)[i] = variant == 7 ? 288 : random_between(&h->random, 0, 287);
        add_input(&test, indices);
        if (variant % 2 == 1)
            add_list(&test, 4, larger);
        set_ints(&test, "kernel_shape", 2, kernel);
        set_ints(&test, "strides", 2, kernel);
        harness_run(h, &test);
    }
}

/* ---- order ---- */

typedef struct axis_shape {
    int rank;
    int64_t dims[3];
    int64_t axis;
} axis_shape;

static const axis_shape axes[] = {
    {1, {1}, 0},       {1, {700}, 0},      {2, {5, 9}, 0}, {3, {3, 40, 5}, 1},
    {3, {2, 3, 0}, 0}, {2, {2, 2049}, -1}, {2, {0, 3}, 1}, {1, {9000}, -1},
};
#define AXES (int)(sizeof axes / sizeof axes[0])

HARNESS_GROUP(axes, best, HARNESS_CUDA) {
    for (int s = 0; s < AXES; s++) {
        for (int t = SB_U8; t < SB_STRING; t++) {
            for (int variant = 0; variant < 4; variant++) {
                harness_case test = harness_op(variant % 2 == 0 ? "ArgMax" : "ArgMin", 13);
                add_input(&test, any_tensor(h, (sb_dtype)t, axes[s].rank, axes[s].dims));
                set_int(&test, "axis", axes[s].axis);
                set_int(&test, "keepdims", variant / 2);
                set_int(&test, "select_last_index", variant / 2);
                harness_run(h, &test);
            }
        }
    }
}

/* What the kernels of the host choose from: chunks and strips that are whole and not, rows side by side, elements apart, every order in
 * memory, and values of which many are equal. */
HARNESS_GROUP(axes, best_rows, HARNESS_CPU | HARNESS_CUDA) {
    static const sb_dtype dtypes[] = {SB_F32, SB_F16, SB_BF16, SB_F32, SB_S32, SB_U8, SB_S8, SB_S16, SB_U16};
    static const axis_shape rows[] = {
        {2, {3, 63}, 1},     {2, {3, 65}, 1},      {2, {2, 1023}, 1},   {2, {2, 1024}, -1},  {2, {2, 1025}, 1},
        {1, {5000}, 0},      {2, {1200, 2}, 1},    {2, {31, 257}, 0},   {3, {2, 40, 7}, 1},  {3, {2, 40, 8}, 1},
        {3, {3, 5, 256}, 1}, {3, {2, 300, 33}, 1}, {3, {4, 1, 600}, 1}, {3, {17, 6, 20}, 0}, {3, {2, 0, 8}, 0},
        {3, {0, 5, 8}, 1},   {2, {1, 1}, 0},
    };
    for (size_t s = 0; s < sizeof rows / sizeof rows[0]; s++) {
        for (size_t t = 0; t < sizeof dtypes / sizeof dtypes[0]; t++) {
            for (int variant = 0; variant < 8; variant++) {
                harness_case test = harness_op(variant % 2 == 0 ? "ArgMax" : "ArgMin", 13);
                sb_tensor *input = variant < 4   ? make_tensor(h, dtypes[t], rows[s].rank, rows[s].dims, PACKED)
                                   : variant < 6 ? any_tensor(h, dtypes[t], rows[s].rank, rows[s].dims)
                                                 : permuted_tensor(h, dtypes[t], rows[s].rank, rows[s].dims);
                add_input(&test, input);
                set_int(&test, "axis", rows[s].axis);
                set_int(&test, "keepdims", variant / 2 % 2);
                set_int(&test, "select_last_index", (variant + (int)t) / 2 % 2);
                harness_run(h, &test);
            }
        }
    }
}

HARNESS_GROUP(axes, cumulative, HARNESS_CPU | HARNESS_CUDA) {
    for (int s = 0; s < AXES; s++) {
        for (int t = SB_U8; t < SB_STRING; t++) {
            for (int variant = 0; variant < 4; variant++) {
                bool sum = (variant + t) % 2 == 0;
                harness_case test = harness_op(sum ? "CumSum" : "CumProd", sum ? 14 : 26);
                add_input(&test, number_tensor(h, (sb_dtype)t, axes[s].rank, axes[s].dims, variant == 3));
                add_list(&test, 1, &axes[s].axis);
                set_int(&test, "exclusive", variant % 2);
                set_int(&test, "reverse", variant / 2);
                harness_run(h, &test);
            }
        }
    }
}

HARNESS_GROUP(axes, topk, HARNESS_CUDA) {
    for (int s = 0; s < AXES; s++) {
        int64_t extent = axes[s].dims[axes[s].axis < 0 ? axes[s].rank - 1 : axes[s].axis];
        for (int t = SB_U8; t < SB_STRING; t++) {
            /* Sorting long rows takes its time on the host. */
            if (extent > 1000 && t % 4 != 0)
                continue;
            for (int variant = 0; variant < 6; variant++) {
                int64_t k = variant / 2 == 0 ? extent : variant / 2 == 1 ? extent < 5 ? extent : 5 : (extent + 1) / 4;
                /* Counting in a row of 9000 takes even longer. */
                if (extent == 9000 && variant / 2 != 1)
                    continue;
                harness_case test = harness_op("TopK", 11);
                add_input(&test, any_tensor(h, (sb_dtype)t, axes[s].rank, axes[s].dims));
                add_list(&test, 1, &k);
                set_int(&test, "axis", axes[s].axis);
                set_int(&test, "largest", variant % 2);
                test.outputs = 2;
                harness_run(h, &test);
            }
        }
    }
}

/* What the host's kernel of TopK orders: lines of more than a chunk, of as many elements as are wanted and of one more, values of which
 * many are equal, lines side by side and apart. */
HARNESS_GROUP(axes, topk_lines, HARNESS_CPU | HARNESS_CUDA) {
    static const sb_dtype dtypes[] = {SB_F32, SB_F16, SB_BF16, SB_S32, SB_U8, SB_S16};
    static const struct {
        axis_shape shape;
        int64_t k;
    } lines[] = {
        {{2, {3, 65}, 1}, 1},      {{2, {2, 1025}, 1}, 10},   {{2, {2, 1024}, -1}, 1024}, {{1, {3000}, 0}, 1500},
        {{2, {2049, 3}, 0}, 2049}, {{3, {2, 70, 9}, 1}, 5},   {{3, {2, 3, 7}, 2}, 0},     {{2, {0, 5}, 1}, 2},
        {{3, {4, 1, 6}, 1}, 1},    {{2, {40, 33}, 1}, 32},    {{1, {1}, 0}, 1},           {{2, {2, 3000}, 1}, 47},
        {{2, {2, 3000}, 1}, 48},   {{3, {2, 90, 37}, 1}, 60}, {{3, {2, 90, 16}, 1}, 90},
    };
    for (size_t l = 0; l < sizeof lines / sizeof lines[0]; l++) {
        for (int variant = 0; variant < 6 * 4; variant++) {
            const sb_dtype dtype = dtypes[variant % 6];
            const axis_shape *shape = &lines[l].shape;
            harness_case test = harness_op("TopK", 11);
            add_input(&test, variant / 6 == 0   ? make_tensor(h, dtype, shape->rank, shape->dims, PACKED)
                             : variant / 6 == 1 ? permuted_tensor(h, dtype, shape->rank, shape->dims)
                             : variant / 6 == 2 ? number_tensor(h, dtype, shape->rank, shape->dims, false)
                                                : any_tensor(h, dtype, shape->rank, shape->dims));
            add_list(&test, 1, &lines[l].k);
            set_int(&test, "axis", shape->axis);
            set_int(&test, "largest", (variant + variant / 6) % 2);
            test.outputs = 1 + (variant + (int)l) % 3 % 2;
            harness_run(h, &test);
        }
    }
}

/* ---- losses and determinants ---- */

HARNESS_GROUP(axes, losses, HARNESS_CPU_IF_ANY | HARNESS_CUDA) {
    static const char *const reductions[] = {"none", "sum", "mean"};
    static const struct {
        int rank;
        int64_t dims[4];
    } shapes[] = {{2, {5, 7}},      {4, {2, 3, 4, 5}},  {2, {300, 2}},  {2, {3, 1500}},
                  {2, {0, 3}},      {2, {33, 100}},     {3, {2, 1, 9}}, {2, {2, 1024}},
                  {3, {2, 20, 37}}, {4, {2, 7, 3, 16}}, {2, {5, 9000}}, {4, {1, 300, 2, 70}}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        for (int variant = 0; variant < 24; variant++) {
            sb_dtype dtype = float_types[variant % 4];
            bool softmax = variant % 3 != 0, weighted = variant % 5 == 0;
            int64_t targets[4] = {shapes[s].dims[0]};
            for (int d = 2; d < shapes[s].rank; d++)
                targets[d - 1] = shapes[s].dims[d];
            harness_case test = harness_op(softmax ? "SoftmaxCrossEntropyLoss" : "NegativeLogLikelihoodLoss", 13);
            add_input(&test, number_tensor(h, dtype, shapes[s].rank, shapes[s].dims, variant == 7));
            sb_tensor *classes =
                any_indices(h, variant % 2 == 0 ? SB_S32 : SB_S64, shapes[s].rank - 1, targets, 1, false);
            size_t bytes = sb_dtype_size(classes->dtype);
            for (size_t i = 0; i < classes->storage->bytes / bytes; i++) {
                int64_t class = random_between(&h->random, 0, shapes[s].dims[1] - 1);
                if (variant == 23 && i > 2)
                    class = shapes[s].dims[1];
                memcpy((char *)classes->storage->data + i * bytes, &class, bytes);
            }
            add_input(&test, classes);
            if (weighted)
                add_input(&test, number_tensor(h, dtype, 1, &shapes[s].dims[1], false));
            set_text(&test, "reduction", reductions[variant / 8]);
            if (variant % 4 == 1)
                set_int(&test, "ignore_index", 1);
            test.outputs = softmax && variant % 2 == 1 ? 2 : 1;
            harness_run(h, &test);
        }
    }
}

HARNESS_GROUP(axes, determinants, HARNESS_CUDA) {
    static const struct {
        int rank;
        int64_t dims[3];
    } shapes[] = {{2, {3, 3}}, {3, {4, 7, 7}}, {2, {40, 40}}, {2, {1, 1}}, {2, {0, 0}}, {3, {0, 2, 2}}, {3, {2, 2, 2}}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        for (int variant = 0; variant < 8; variant++) {
            harness_case test = harness_op("Det", 11);
            add_input(&test, number_tensor(h, float_types[variant % 4], shapes[s].rank, shapes[s].dims, variant >= 4));
            harness_run(h, &test);
        }
    }
}
