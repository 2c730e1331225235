/* Operators over rows: reductions, softmax, normalisations. */
#include <math.h>

#include "harness/harness.h"

typedef struct row_shape {
    int rank;
    int64_t dims[4];
    int axis_count;
    int64_t axes[4];
} row_shape;

/* Rows of every kind: shorter and longer than a team, a wave and a block of 4096, cut into parts,
 * of several dimensions, of nothing. */
static const row_shape shapes[] = {
    {1, {1}, 1, {0}},
    {1, {0}, 1, {0}},
    {2, {40, 3}, 1, {1}},
    {2, {3, 17}, 1, {-1}},
    {2, {2, 255}, 1, {1}},
    {2, {3, 257}, 1, {1}},
    {2, {1030, 2}, 1, {0}},
    {2, {2, 1024}, 1, {1}},
    {1, {4097}, 1, {0}},
    {1, {33000}, 1, {0}},
    {3, {3, 70, 5}, 1, {1}},
    {3, {7, 3, 41}, 2, {0, 2}},
    {4, {2, 9, 3, 7}, 2, {1, 3}},
    {2, {0, 4}, 1, {1}},
    {2, {4, 0}, 1, {1}},
    {2, {7, 5}, 0, {0}},
    {0, {0}, 0, {0}},
    {4, {2, 3, 5, 7}, 4, {0, 1, 2, 3}},
    {2, {4500, 19}, 1, {0}},
    {4, {2, 35, 6, 5}, 1, {1}},
};
#define SHAPES (int)(sizeof shapes / sizeof shapes[0])

static void check_reduction(harness *h, const char *op, sb_dtype dtype, const row_shape *shape, bool awkward,
                            bool keep) {
    harness_case test = harness_op(op, 18);
    add_input(&test, number_tensor(h, dtype, shape->rank, shape->dims, awkward));
    if (shape->axis_count != 0)
        add_list(&test, shape->axis_count, shape->axes);
    set_int(&test, "keepdims", keep);
    harness_run(h, &test);
}

static bool is_empty_mean(const char *op, sb_dtype dtype, const row_shape *shape) {
    bool empty = false;
    for (int d = 0; d < shape->rank; d++)
        empty = empty || shape->dims[d] == 0;
    return empty && !sb_dtype_is_float(dtype) && strcmp(op, "ReduceMean") == 0;
}

HARNESS_GROUP(rows, reductions, HARNESS_CUDA) {
    static const char *const ops[] = {"ReduceSum", "ReduceMean", "ReduceMax",       "ReduceMin",    "ReduceProd",
                                      "ReduceL1",  "ReduceL2",   "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"};
    for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++) {
        bool extreme = strcmp(ops[o], "ReduceMax") == 0 || strcmp(ops[o], "ReduceMin") == 0;
        for (int t = 1; t < SB_STRING; t++) {
            bool real = sb_dtype_is_float((sb_dtype)t);
            for (int s = 0; s < SHAPES; s++) {
                /* Long rows on the host take their time: once for each kind of kernel. */
                bool long_row = shapes[s].dims[0] > 20000;
                if ((t == SB_BOOL && !extreme) || is_empty_mean(ops[o], (sb_dtype)t, &shapes[s]) ||
                    (long_row && t != SB_F32 && t != SB_S32) ||
                    /* Integers share a kernel, so each type does with some of the shapes. */
                    (!real && !long_row && s % 4 != t % 4))
                    continue;
                check_reduction(h, ops[o], (sb_dtype)t, &shapes[s], false, s % 2 == 0);
                if (real && !long_row && s % 2 == t % 2)
                    check_reduction(h, ops[o], (sb_dtype)t, &shapes[s], true, s % 2 == 1);
            }
        }
    }
}

static void check_plain(harness *h, const char *op, int version, sb_dtype dtype, const row_shape *shape, bool awkward,
                        const char *attribute) {
    harness_case test = harness_op(op, version);
    add_input(&test, number_tensor(h, dtype, shape->rank, shape->dims, awkward));
    if (strcmp(attribute, "axes") == 0)
        set_ints(&test, "axes", shape->axis_count, shape->axes);
    else
        set_int(&test, "axis", shape->axes[0]);
    harness_run(h, &test);
}

/* Rows that lie side by side in memory, as the channels of most images do, and in every other order. */
HARNESS_GROUP(rows, orders_in_memory, HARNESS_CPU | HARNESS_CUDA) {
    static const char *const ops[] = {"ReduceMean",      "ReduceMax",    "ReduceMin", "ReduceL1",  "ReduceL2",
                                      "ReduceSumSquare", "ReduceLogSum", "ReduceSum", "ReduceProd"};
    static const row_shape images[] = {
        {4, {2, 37, 5, 9}, 2, {2, 3}}, {4, {1, 16, 40, 130}, 2, {2, 3}}, {4, {3, 18, 4, 7}, 1, {1}},
        {4, {2, 5, 33, 3}, 1, {3}},    {4, {2, 5, 33, 3}, 3, {0, 2, 3}}, {4, {2, 2, 21, 33}, 1, {1}},
        {4, {3, 17, 2, 40}, 1, {2}},   {4, {1, 2, 3, 1100}, 1, {1}},
    };
    for (int i = 0; i < (int)(sizeof images / sizeof images[0]); i++) {
        for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++) {
            for (int t = 0; t < 3; t++) {
                harness_case test = harness_op(ops[o], 18);
                add_input(&test, random_tensor(h, (distribution)((o + (size_t)t) % DISTRIBUTIONS), float_types[t], 4,
                                               images[i].dims));
                add_list(&test, images[i].axis_count, images[i].axes);
                harness_run(h, &test);
            }
        }
        for (int t = 0; t < 6; t++) {
            harness_case test = harness_op(t % 2 == 0 ? "Softmax" : "LogSoftmax", t < 4 ? 13 : 11);
            add_input(&test,
                      random_tensor(h, (distribution)((i + t) % DISTRIBUTIONS), float_types[t / 2], 4, images[i].dims));
            set_int(&test, "axis", images[i].axes[0]);
            harness_run(h, &test);
        }
    }
}

/* Rows side by side of every length about which their folding changes, in fewer columns than a vector has and in more than are reduced
 * at once, and the same as views. */
HARNESS_GROUP(rows, columns, HARNESS_CPU | HARNESS_CUDA) {
    static const char *const ops[] = {"ReduceMean",      "ReduceMax",    "ReduceMin", "ReduceL1",  "ReduceL2",
                                      "ReduceSumSquare", "ReduceLogSum", "ReduceSum", "ReduceProd"};
    static const int64_t lengths[] = {2, 3, 4, 5, 8, 31, 32, 33, 63, 64, 65, 100, 129, 255, 256, 257, 300, 600, 4097};
    static const int64_t widths[] = {1, 7, 16, 33, 64, 70, 130};
    int round = 0;
    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
        for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++) {
            for (int t = 0; t < 3; t++, round++) {
                const int64_t dims[3] = {lengths[l] < 100 ? 2 : 1, lengths[l], widths[round % 7]};
                const distribution kind = (distribution)(round / 3 % DISTRIBUTIONS);
                harness_case test = harness_op(ops[o], 18);
                add_input(&test, round % 5 < 3 ? packed_tensor(h, kind, float_types[t], 3, dims)
                                               : random_tensor(h, kind, float_types[t], 3, dims));
                add_list(&test, 1, (const int64_t[]){1});
                harness_run(h, &test);
            }
        }
        for (int t = 0; t < 6; t++, round++) {
            const int64_t dims[3] = {1 + round % 2, lengths[l], widths[round % 7]};
            harness_case test = harness_op(t % 2 == 0 ? "Softmax" : "LogSoftmax", 13);
            add_input(&test, packed_tensor(h, (distribution)(round / 2 % DISTRIBUTIONS), float_types[t / 2], 3, dims));
            set_int(&test, "axis", 1);
            harness_run(h, &test);
        }
    }
}

HARNESS_GROUP(rows, plain_rows, HARNESS_CUDA) {
    static const struct {
        const char *op;
        int version;
        const char *attribute;
    } ops[] = {
        {"Softmax", 13, "axis"},
        {"Softmax", 11, "axis"},
        {"LogSoftmax", 13, "axis"},
        {"LogSoftmax", 11, "axis"},
        {"Hardmax", 13, "axis"},
        {"LpNormalization", 1, "axis"},
        {"MeanVarianceNormalization", 13, "axes"},
    };
    for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++) {
        for (int t = 0; t < 4; t++) {
            for (int s = 0; s < SHAPES; s++) {
                if (shapes[s].axis_count != 0 && shapes[s].dims[0] < 20000)
                    check_plain(h, ops[o].op, ops[o].version, float_types[t], &shapes[s],
                                random_between(&h->random, 0, 2) == 0, ops[o].attribute);
            }
        }
    }
    for (int t = 0; t < 4; t++) {
        harness_case test = harness_op("LpNormalization", 1);
        add_input(&test, number_tensor(h, float_types[t], 2, (int64_t[]){5, 1300}, false));
        set_int(&test, "p", 1);
        harness_run(h, &test);
    }
}

/* What kernels of the host compute of whole rows: adjacent, side by side and apart in every order in memory, shorter and longer than a
 * vector, a block and a chunk, with NaN, infinities and rows of zeros; nothing at all. */
static void check_whole_rows(harness *h, const char *op, int version, sb_tensor *input, const char *attribute,
                             int count, const int64_t *axes, int64_t p) {
    harness_case test = harness_op(op, version);
    add_input(&test, input);
    if (attribute == NULL)
        add_list(&test, count, axes);
    else if (strcmp(attribute, "axes") == 0)
        set_ints(&test, "axes", count, axes);
    else
        set_int(&test, "axis", axes[0]);
    if (p != 0)
        set_int(&test, "p", p);
    harness_run(h, &test);
}

HARNESS_GROUP(rows, whole_rows, HARNESS_CPU | HARNESS_CUDA) {
    static const row_shape rows[] = {
        {2, {3, 17}, 1, {1}},
        {2, {2, 4097}, 1, {1}},
        {2, {1030, 9}, 1, {0}},
        {2, {5000, 3}, 1, {0}},
        {3, {2, 33, 16}, 1, {1}},
        {3, {3, 5, 37}, 1, {1}},
        {4, {2, 6, 5, 7}, 3, {0, 2, 3}},
        {4, {1, 20, 9, 8}, 3, {0, 2, 3}},
        {4, {2, 3, 5, 7}, 1, {2}},
        {3, {2, 0, 5}, 1, {1}},
        {3, {0, 4, 5}, 1, {1}},
        {4, {2, 17, 4, 6}, 2, {1, 3}},
        {3, {4, 1, 9}, 1, {1}},
    };
    for (int s = 0; s < (int)(sizeof rows / sizeof rows[0]); s++) {
        for (int variant = 0; variant < 15; variant++) {
            const sb_dtype dtype = float_types[variant % 3];
            const row_shape *shape = &rows[s];
            for (int op = 0; op < 5; op++) {
                sb_tensor *input = variant / 3 == 0   ? packed_tensor(h, ORDINARY, dtype, shape->rank, shape->dims)
                                   : variant / 3 == 1 ? permuted_tensor(h, dtype, shape->rank, shape->dims)
                                   : variant / 3 == 2 ? number_tensor(h, dtype, shape->rank, shape->dims, false)
                                   : variant / 3 == 3 ? packed_tensor(h, (distribution)((s + op) % DISTRIBUTIONS),
                                                                      dtype, shape->rank, shape->dims)
                                                      : number_tensor(h, dtype, shape->rank, shape->dims, true);
                if (op == 0)
                    check_whole_rows(h, "Hardmax", s % 2 == 0 ? 13 : 11, input, "axis", 1, shape->axes, 0);
                else if (op < 3)
                    check_whole_rows(h, "LpNormalization", 1, input, "axis", 1, shape->axes, op);
                else if (op == 3)
                    check_whole_rows(h, "MeanVarianceNormalization", 13, input, "axes", shape->axis_count, shape->axes,
                                     0);
                else
                    check_whole_rows(h, "ReduceLogSumExp", 18, input, NULL, shape->axis_count, shape->axes, 0);
            }
        }
    }
}

/* LRN over channels in every order in memory: windows that are cut and not, strips that are whole and not, powers with and without
 * special cases. */
HARNESS_GROUP(rows, local_response, HARNESS_CPU | HARNESS_CUDA) {
    static const row_shape images[] = {
        {4, {2, 6, 5, 7}, 0, {0}},  {4, {1, 33, 8, 16}, 0, {0}}, {4, {1, 5, 11, 12}, 0, {0}}, {3, {2, 19, 130}, 0, {0}},
        {4, {2, 1, 3, 5}, 0, {0}},  {2, {3, 17}, 0, {0}},        {4, {0, 6, 2, 2}, 0, {0}},   {4, {1, 6, 0, 2}, 0, {0}},
        {4, {1, 64, 1, 1}, 0, {0}}, {4, {2, 3, 4, 33}, 0, {0}},
    };
    static const float betas[] = {0.75f, 0.5f, 2.0f, 0.0f, -1.0f, INFINITY, NAN}, biases[] = {1.0f, 2.0f, 0.0f, -3.0f};
    for (int round = 0; round < 10 * 3 * 8; round++) {
        const row_shape *shape = &images[round % 10];
        const sb_dtype dtype = float_types[round / 10 % 3];
        const int variant = round / 30;
        harness_case test = harness_op("LRN", 13);
        add_input(&test, variant % 4 == 0   ? packed_tensor(h, ORDINARY, dtype, shape->rank, shape->dims)
                         : variant % 4 == 1 ? channels_last_tensor(h, ORDINARY, dtype, shape->rank, shape->dims)
                         : variant % 4 == 2 ? number_tensor(h, dtype, shape->rank, shape->dims, true)
                                            : permuted_tensor(h, dtype, shape->rank, shape->dims));
        set_int(&test, "size", 1 + round % 7);
        set_float(&test, "alpha", round % 3 == 0 ? 0.5f : 1e-4f);
        set_float(&test, "beta", betas[variant < 2 ? 0 : round % 7]);
        set_float(&test, "bias", biases[variant < 2 ? 0 : round % 4]);
        harness_run(h, &test);
    }
}

/* Factors that repeat, and that do not; of the input's type, and of another. */
HARNESS_GROUP(rows, layers, HARNESS_CUDA) {
    static const struct {
        int rank;
        int64_t dims[4];
        int64_t axis;
        int factor_rank;
        int64_t factor_dims[4];
    } layers[] = {
        {2, {5, 768}, -1, 1, {768}},   {3, {2, 3, 128}, 2, 1, {128}},   {3, {2, 3, 40}, 1, 2, {3, 40}},
        {3, {2, 3, 40}, 1, 1, {40}},   {3, {2, 3, 40}, 2, 2, {3, 1}},   {2, {3, 5000}, 1, 1, {1}},
        {2, {3, 1025}, -1, 1, {1025}}, {3, {2, 3, 4}, 0, 3, {2, 3, 4}}, {2, {0, 4}, 1, 1, {4}},
        {2, {4, 1}, 1, 1, {1}},
    };
    for (size_t l = 0; l < sizeof layers / sizeof layers[0]; l++) {
        for (int t = 0; t < 4; t++) {
            for (int other = 0; other < 3; other++) {
                sb_dtype factor = other == 2 ? float_types[3 - t] : float_types[t];
                harness_case test = harness_op("LayerNormalization", 17);
                add_input(&test, number_tensor(h, float_types[t], layers[l].rank, layers[l].dims, other == 1));
                for (int i = 0; i < 2 - other % 2; i++)
                    add_input(&test, number_tensor(h, factor, layers[l].factor_rank, layers[l].factor_dims, false));
                set_int(&test, "axis", layers[l].axis);
                set_float(&test, "epsilon", 0.01f);
                test.outputs = 3;
                harness_run(h, &test);
                if (other == 2)
                    continue;
                test = harness_op("RMSNormalization", 23);
                add_input(&test, number_tensor(h, float_types[t], layers[l].rank, layers[l].dims, other == 1));
                add_input(&test, number_tensor(h, factor, layers[l].factor_rank, layers[l].factor_dims, false));
                set_int(&test, "axis", layers[l].axis);
                harness_run(h, &test);
            }
        }
    }
}

/* Rows of 16 bits whose factors, and so whose results, are f32: norms of language models that add 1 to their weights. */
HARNESS_GROUP(rows, wide_factors, HARNESS_CUDA) {
    static const int64_t dims[][2] = {{1, 1152}, {3, 256}, {40, 640}, {2, 5000}, {5, 1}, {0, 8}};
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
        for (int t = 0; t < 2; t++) {
            for (int strided = 0; strided < 2; strided++) {
                harness_case test = harness_op("RMSNormalization", 23);
                add_input(&test, number_tensor(h, t == 0 ? SB_F16 : SB_BF16, 2, dims[d], strided == 1));
                add_input(&test, number_tensor(h, SB_F32, 1, &dims[d][1], false));
                set_int(&test, "axis", -1);
                harness_run(h, &test);
            }
        }
    }
}

/* Many long rows of 16 bits: a block for each, some of which take two; and those that a warp copies to shared memory, in several parts, two or
 * one for each. */
HARNESS_GROUP(rows, many_long, HARNESS_CUDA) {
    static const int64_t dims[][2] = {{9, 1032}, {33, 2048}, {21, 4096}, {400, 1096}, {100, 4104}, {50, 9000}};
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
        for (int i = 0; i < 6; i++) {
            const bool has_mean = i % 3 > 0;
            harness_case test = harness_op(has_mean ? "LayerNormalization" : "RMSNormalization", has_mean ? 17 : 23);
            sb_dtype dtype = i < 3 ? SB_BF16 : SB_F16;
            distribution kind = (distribution)((d + (size_t)i) % DISTRIBUTIONS);
            add_input(&test,
                      i == 4 ? gapped_tensor(h, kind, dtype, 2, dims[d]) : packed_tensor(h, kind, dtype, 2, dims[d]));
            for (int factors = 0; factors < (i % 3 > 1 ? 2 : 1); factors++)
                add_input(&test, packed_tensor(h, kind, dtype, 1, &dims[d][1]));
            set_int(&test, "axis", -1);
            harness_run(h, &test);
        }
    }
}

HARNESS_GROUP(rows, channels, HARNESS_CUDA) {
    static const struct {
        const char *op;
        int version;
        int64_t groups, factors;
    } ops[] = {
        {"InstanceNormalization", 6, 0, 6},
        {"GroupNormalization", 18, 3, 3},
        {"GroupNormalization", 21, 3, 6},
        {"LRN", 13, 0, 0},
    };
    static const int64_t dims[][4] = {{2, 6, 5, 7}, {1, 6, 40, 30}, {1, 6, 1, 1}, {0, 6, 2, 2}};
    for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++) {
        for (int t = 0; t < 4; t++) {
            for (int s = 0; s < 8; s++) {
                harness_case test = harness_op(ops[o].op, ops[o].version);
                add_input(&test, number_tensor(h, float_types[t], 4, dims[s / 2], s % 2 == 1));
                for (int i = 0; i < 2 && ops[o].factors != 0; i++)
                    add_input(&test, number_tensor(h, float_types[t], 1, &ops[o].factors, false));
                if (ops[o].groups != 0)
                    set_int(&test, "num_groups", ops[o].groups);
                if (ops[o].factors == 0)
                    set_int(&test, "size", 4);
                harness_run(h, &test);
            }
        }
    }
}

/* Instances and groups in every order of dimensions in memory, channels innermost among them: fewer, as many and more channels
 * than a line of the cache has, positions of more than one block of the order of sums, factors of another type. */
HARNESS_GROUP(rows, groups, HARNESS_CPU | HARNESS_CUDA) {
    static const struct {
        const char *op;
        int version;
        bool by_group;
    } ops[] = {
        {"InstanceNormalization", 6, false}, {"GroupNormalization", 18, true}, {"GroupNormalization", 21, false}};
    static const int64_t channels[] = {1, 5, 16, 32, 37}, groups[] = {1, 5, 4, 32, 1};
    static const int64_t positions[][2] = {{3, 7}, {1, 1}, {17, 16}, {5, 821}};
    for (int round = 0; round < 3 * 5 * 4 * 5; round++) {
        int o = round % 3, c = round / 3 % 5, p = round / 15 % 4;
        sb_dtype dtype = round % 4 != 0 ? SB_F32 : round / 4 % 2 != 0 ? SB_BF16 : SB_F16;
        bool instance = o == 0, image = round % 7 != 6;
        int64_t factors = ops[o].by_group ? groups[c] : channels[c];
        harness_case test = harness_op(ops[o].op, ops[o].version);
        int64_t dims[] = {2, channels[c], positions[p][image ? 0 : 1], positions[p][1]};
        const int rank = image ? 4 : 3;
        add_input(&test, round % 2 != 0
                             ? channels_last_tensor(h, (distribution)(round / 2 % DISTRIBUTIONS), dtype, rank, dims)
                             : number_tensor(h, dtype, rank, dims, round / 4 % 4 == 3));
        for (int i = 0; i < 2; i++)
            add_input(&test, number_tensor(h, dtype, 1, &factors, round % 11 == 10));
        if (!instance)
            set_int(&test, "num_groups", groups[c]);
        harness_run(h, &test);
    }
}

/* Rows that many blocks share, of every normalisation: parts that are whole and not, one dimension and two, factors that are there,
 * repeat, and are of another type. */
static harness_case long_rows_case(harness *h, const char *op, int version, sb_dtype dtype, const int64_t *dims,
                                   bool strided) {
    harness_case test = harness_op(op, version);
    add_input(&test, number_tensor(h, dtype, 2, dims, strided));
    return test;
}

static void check_long_layer(harness *h, const char *op, int version, sb_dtype dtype, sb_dtype factor,
                             const int64_t *dims, bool strided) {
    bool has_mean = strcmp(op, "LayerNormalization") == 0;
    harness_case test = long_rows_case(h, op, version, dtype, dims, strided);
    for (int i = 0; i < (has_mean ? 2 : 1); i++)
        add_input(&test, number_tensor(h, factor, 1, &dims[1], false));
    set_int(&test, "axis", -1);
    test.outputs = has_mean ? 3 : 1;
    harness_run(h, &test);
}

HARNESS_GROUP(rows, long_rows, HARNESS_CUDA) {
    static const int64_t dims[][2] = {{1, 16384}, {1, 16385}, {2, 20480}, {1, 41003}};
    for (int round = 0; round < 4 * 4; round++) {
        int t = round / 4, d = round % 4;
        sb_dtype dtype = float_types[t];
        bool strided = round % 3 == 2;
        int64_t image[] = {1, dims[d][0] * 4, dims[d][1] / 4 / 16, 16}, channels = image[1];
        check_long_layer(h, "LayerNormalization", 17, dtype, dtype, dims[d], strided);
        check_long_layer(h, "LayerNormalization", 17, dtype, float_types[3 - t], dims[d], strided);
        check_long_layer(h, "RMSNormalization", 23, dtype, dtype, dims[d], strided);
        for (int p = 1; p < 3; p++) {
            harness_case test = long_rows_case(h, "LpNormalization", 1, dtype, dims[d], strided);
            set_int(&test, "p", p);
            harness_run(h, &test);
        }
        harness_case test = long_rows_case(h, "MeanVarianceNormalization", 13, dtype, dims[d], strided);
        set_ints(&test, "axes", 1, (int64_t[]){1});
        harness_run(h, &test);
        test = harness_op("GroupNormalization", 21);
        add_input(&test, number_tensor(h, dtype, 4, image, round % 3 == 1));
        for (int i = 0; i < 2; i++)
            add_input(&test, number_tensor(h, dtype, 1, &channels, false));
        set_int(&test, "num_groups", dims[d][0]);
        harness_run(h, &test);
    }
    /* More parts than a block has threads. */
    for (int o = 0; o < 2; o++) {
        harness_case test = harness_op(o == 0 ? "ReduceMean" : "LpNormalization", o == 0 ? 18 : 1);
        add_input(&test, packed_tensor(h, ORDINARY, SB_F32, 1, (int64_t[]){257 * 4096 + 5}));
        harness_run(h, &test);
    }
}

/* Rows of 16 bits that stay in registers, of every number of elements that kernels of them have, and such that do not:
 * lengths that are no multiple of eight, rows apart, factors for each row. */
static const int64_t vector_lengths[] = {8,   24,  32,  40,   64,   72,   128,  136,  192,  256,  264, 384,
                                         512, 520, 768, 1000, 1024, 1032, 2048, 2056, 4096, 4104, 12};
#define VECTOR_LENGTHS ((int)(sizeof vector_lengths / sizeof vector_lengths[0]))

/* Rows of every distribution, side by side, and some in any layout. */
static sb_tensor *vector_rows(harness *h, sb_dtype dtype, int64_t length, int variant) {
    int64_t count = 4096 / length > 70 ? 70 : 4096 / length + 1;
    if (variant < DISTRIBUTIONS)
        return packed_tensor(h, (distribution)variant, dtype, 2, (int64_t[]){count, length});
    return number_tensor(h, dtype, 3, (int64_t[]){2, (count + 1) / 2, length}, variant % 2 == 1);
}

HARNESS_GROUP(rows, vectors, HARNESS_CUDA) {
    static const struct {
        const char *op;
        int version, factors;
    } ops[] = {{"Softmax", 13, 0},
               {"LogSoftmax", 13, 0},
               {"LayerNormalization", 17, 1},
               {"LayerNormalization", 17, 2},
               {"RMSNormalization", 23, 1}};
    for (int l = 0; l < VECTOR_LENGTHS; l++) {
        for (int variant = 0; variant < 2 * (DISTRIBUTIONS + 2); variant++) {
            sb_dtype dtype = variant % 2 == 0 ? SB_F16 : SB_BF16;
            for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++) {
                harness_case test = harness_op(ops[o].op, ops[o].version);
                add_input(&test, vector_rows(h, dtype, vector_lengths[l], variant / 2));
                for (int i = 0; i < ops[o].factors; i++)
                    add_input(&test, packed_tensor(h, ORDINARY, dtype, 1, &vector_lengths[l]));
                set_int(&test, "axis", -1);
                harness_run(h, &test);
            }
        }
    }
}

/* Rows of f32 side by side, more of them than are taken together, of every length that ends within some vectors, and of lengths
 * about the lanes and the blocks of the order of sums. */
HARNESS_GROUP(rows, lengths, HARNESS_CPU | HARNESS_CUDA) {
    static const char *const ops[] = {"Softmax",   "LogSoftmax", "LayerNormalization", "ReduceSum",
                                      "ReduceMax", "ReduceMin",  "ReduceL1",           "ReduceSumSquare"};
    static const int64_t longer[] = {127, 160, 197, 255, 256, 257, 300, 512, 4095, 4097, 4400};
    for (int l = 1; l <= 70 + (int)(sizeof longer / sizeof longer[0]); l++) {
        int64_t length = l <= 70 ? l : longer[l - 71];
        for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++) {
            distribution kind = (distribution)(((size_t)l + o) % DISTRIBUTIONS);
            harness_case test = harness_op(ops[o], 18);
            add_input(&test, packed_tensor(h, kind, SB_F32, 2, (int64_t[]){length > 300 ? 3 : 37, length}));
            if (o == 2)
                add_input(&test, packed_tensor(h, ORDINARY, SB_F32, 1, &length));
            if (o > 2)
                add_list(&test, 1, (int64_t[]){-1});
            else
                set_int(&test, "axis", -1);
            harness_run(h, &test);
        }
    }
}

HARNESS_GROUP(rows, reduced_vectors, HARNESS_CUDA) {
    static const char *const ops[] = {"ReduceSum", "ReduceMean",      "ReduceMax",    "ReduceMin",      "ReduceL1",
                                      "ReduceL2",  "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"};
    for (int l = 0; l < VECTOR_LENGTHS; l++) {
        for (int variant = 0; variant < 2 * (DISTRIBUTIONS + 2); variant++) {
            for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++) {
                harness_case test = harness_op(ops[o], 18);
                sb_tensor *rows = vector_rows(h, variant % 2 == 0 ? SB_F16 : SB_BF16, vector_lengths[l], variant / 2);
                add_input(&test, rows);
                add_list(&test, 1, (int64_t[]){-1});
                set_int(&test, "keepdims", variant % 3 == 0);
                harness_run(h, &test);
            }
        }
    }
}
