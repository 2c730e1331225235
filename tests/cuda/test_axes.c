/* Pools, and operators that compare, select and accumulate along an axis, losses and determinants
 * on a device against their definitions. Without arguments over the fake driver; with the file name
 * of a driver's library (libcuda.so.1), on its first device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "device_calls.h"
#include "op_checks.h"
#include "rows_support.h"

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

static op_case pool_case(setting *setting, const char *op, int version, sb_dtype dtype, const pool_shape *shape,
                         bool awkward) {
    op_case test = op_of(op, version);
    int axes = shape->rank - 2;
    add_input(&test, number_tensor(setting, dtype, shape->rank, shape->dims, awkward));
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

static void test_pools(void **unused) {
    static const sb_dtype dtypes[] = {SB_F16, SB_BF16, SB_F32, SB_F64, SB_S8, SB_U8};
    setting setting = set_up();
    for (size_t s = 0; s < sizeof pools / sizeof pools[0]; s++) {
        for (int t = 0; t < 6; t++) {
            for (int variant = 0; variant < 4; variant++) {
                bool awkward = variant % 2 == 1, second = variant / 2 == 1;
                op_case test = pool_case(&setting, "MaxPool", 12, dtypes[t], &pools[s], awkward);
                set_int(&test, "storage_order", second);
                test.outputs = 1 + variant % 2;
                check_op(&setting, &test, "pool");
                if (!sb_dtype_is_float(dtypes[t]))
                    continue;
                test = pool_case(&setting, "AveragePool", 19, dtypes[t], &pools[s], awkward);
                set_int(&test, "count_include_pad", second);
                check_op(&setting, &test, "pool");
                test = pool_case(&setting, "LpPool", 18, dtypes[t], &pools[s], awkward);
                set_int(&test, "p", 1 + variant % 3);
                check_op(&setting, &test, "pool");
            }
        }
    }
    tear_down(&setting);
}

static void test_global_pools(void **unused) {
    static const char *const ops[] = {"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"};
    static const struct {
        int rank;
        int64_t dims[4];
    } shapes[] = {{4, {2, 5, 7, 7}}, {4, {1, 2, 40, 33}}, {3, {2, 3, 5}},   {2, {3, 4}},
                  {4, {1, 2, 0, 3}}, {4, {0, 2, 3, 3}},   {3, {1, 1, 5000}}};
    setting setting = set_up();
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        for (int t = 0; t < 4; t++) {
            for (int o = 0; o < 6; o++) {
                op_case test = op_of(ops[o % 3], o % 3 == 2 ? 2 : 1);
                add_input(&test, number_tensor(&setting, float_types[t], shapes[s].rank, shapes[s].dims, o == 4));
                if (o % 3 == 2)
                    set_int(&test, "p", (int64_t)s % 4);
                check_op(&setting, &test, "global pool");
            }
        }
    }
    tear_down(&setting);
}

/* Indices that several elements share: the last of them stays. And one that is outside. */
static void test_unpool(void **unused) {
    static const int64_t dims[] = {2, 3, 4, 3}, kernel[] = {2, 2}, larger[] = {2, 3, 10, 7};
    setting setting = set_up();
    for (int variant = 0; variant < 8; variant++) {
        sb_dtype dtype = (sb_dtype[]){SB_F32, SB_S8, SB_F16, SB_F64}[variant % 4];
        op_case test = op_of("MaxUnpool", 11);
        add_input(&test, any_tensor(&setting, dtype, 4, dims));
        sb_tensor *indices = any_tensor(&setting, SB_S64, 4, dims);
        size_t count = indices->storage->bytes / sizeof(int64_t);
        for (size_t i = 0; i < count; i++)
            ((int64_t *)indices->storage->data)[i] = variant == 7 ? 288 : random_between(&setting.random, 0, 287);
        add_input(&test, indices);
        if (variant % 2 == 1)
            add_list(&test, 4, larger);
        set_ints(&test, "kernel_shape", 2, kernel);
        set_ints(&test, "strides", 2, kernel);
        check_op(&setting, &test, "unpool");
    }
    tear_down(&setting);
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

static void test_best(void **unused) {
    setting setting = set_up();
    for (int s = 0; s < AXES; s++) {
        for (int t = SB_U8; t < SB_STRING; t++) {
            for (int variant = 0; variant < 4; variant++) {
                op_case test = op_of(variant % 2 == 0 ? "ArgMax" : "ArgMin", 13);
                add_input(&test, any_tensor(&setting, (sb_dtype)t, axes[s].rank, axes[s].dims));
                set_int(&test, "axis", axes[s].axis);
                set_int(&test, "keepdims", variant / 2);
                set_int(&test, "select_last_index", variant / 2);
                check_op(&setting, &test, "best");
            }
        }
    }
    tear_down(&setting);
}

static void test_cumulative(void **unused) {
    setting setting = set_up();
    for (int s = 0; s < AXES; s++) {
        for (int t = SB_U8; t < SB_STRING; t++) {
            for (int variant = 0; variant < 4; variant++) {
                bool sum = (variant + t) % 2 == 0;
                op_case test = op_of(sum ? "CumSum" : "CumProd", sum ? 14 : 26);
                add_input(&test, number_tensor(&setting, (sb_dtype)t, axes[s].rank, axes[s].dims, variant == 3));
                add_list(&test, 1, &axes[s].axis);
                set_int(&test, "exclusive", variant % 2);
                set_int(&test, "reverse", variant / 2);
                check_op(&setting, &test, "running");
            }
        }
    }
    tear_down(&setting);
}

static void test_topk(void **unused) {
    setting setting = set_up();
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
                op_case test = op_of("TopK", 11);
                add_input(&test, any_tensor(&setting, (sb_dtype)t, axes[s].rank, axes[s].dims));
                add_list(&test, 1, &k);
                set_int(&test, "axis", axes[s].axis);
                set_int(&test, "largest", variant % 2);
                test.outputs = 2;
                check_op(&setting, &test, "first");
            }
        }
    }
    tear_down(&setting);
}

/* ---- losses and determinants ---- */

static void test_losses(void **unused) {
    static const char *const reductions[] = {"none", "sum", "mean"};
    static const struct {
        int rank;
        int64_t dims[4];
    } shapes[] = {{2, {5, 7}}, {4, {2, 3, 4, 5}}, {2, {300, 2}},  {2, {3, 1500}},
                  {2, {0, 3}}, {2, {33, 100}},    {3, {2, 1, 9}}, {2, {2, 1024}}};
    setting setting = set_up();
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        for (int variant = 0; variant < 24; variant++) {
            sb_dtype dtype = float_types[variant % 4];
            bool softmax = variant % 3 != 0, weighted = variant % 5 == 0;
            int64_t targets[4] = {shapes[s].dims[0]};
            for (int d = 2; d < shapes[s].rank; d++)
                targets[d - 1] = shapes[s].dims[d];
            op_case test = op_of(softmax ? "SoftmaxCrossEntropyLoss" : "NegativeLogLikelihoodLoss", 13);
            add_input(&test, number_tensor(&setting, dtype, shapes[s].rank, shapes[s].dims, variant == 7));
            sb_tensor *classes =
                any_indices(&setting, variant % 2 == 0 ? SB_S32 : SB_S64, shapes[s].rank - 1, targets, 1, false);
            size_t bytes = sb_dtype_size(classes->dtype);
            for (size_t i = 0; i < classes->storage->bytes / bytes; i++) {
                int64_t class = random_between(&setting.random, 0, shapes[s].dims[1] - 1);
                if (variant == 23 && i > 2)
                    class = shapes[s].dims[1];
                memcpy((char *)classes->storage->data + i * bytes, &class, bytes);
            }
            add_input(&test, classes);
            if (weighted)
                add_input(&test, number_tensor(&setting, dtype, 1, &shapes[s].dims[1], false));
            set_text(&test, "reduction", reductions[variant / 8]);
            if (variant % 4 == 1)
                set_int(&test, "ignore_index", 1);
            test.outputs = softmax && variant % 2 == 1 ? 2 : 1;
            check_op(&setting, &test, reductions[variant / 8]);
        }
    }
    tear_down(&setting);
}

static void test_determinants(void **unused) {
    static const struct {
        int rank;
        int64_t dims[3];
    } shapes[] = {{2, {3, 3}}, {3, {4, 7, 7}}, {2, {40, 40}}, {2, {1, 1}}, {2, {0, 0}}, {3, {0, 2, 2}}, {3, {2, 2, 2}}};
    setting setting = set_up();
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        for (int variant = 0; variant < 8; variant++) {
            op_case test = op_of("Det", 11);
            add_input(&test,
                      number_tensor(&setting, float_types[variant % 4], shapes[s].rank, shapes[s].dims, variant >= 4));
            check_op(&setting, &test, "determinant");
        }
    }
    tear_down(&setting);
}

int main(int argc, char **argv) {
    if (argc > 1)
        library = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pools),  cmocka_unit_test(test_global_pools), cmocka_unit_test(test_unpool),
        cmocka_unit_test(test_best),   cmocka_unit_test(test_cumulative),   cmocka_unit_test(test_topk),
        cmocka_unit_test(test_losses), cmocka_unit_test(test_determinants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
