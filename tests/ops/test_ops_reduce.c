/* Reductions: the order of additions spelled out again, axes in all their forms, and empty sets. */
#include "ops/definition_cases.h"

/* The sum (or product) of n values as the contract words it, with a flag for lanes and folds that
 * have no element. */
static float spelled_out(const float *values, int64_t count, bool product) {
    float total = product ? 1.0f : 0.0f;
    for (int64_t block = 0; block * 4096 < count; block++) {
        float lane[256];
        bool filled[256] = {false};
        for (int64_t i = block * 4096; i < count && i < (block + 1) * 4096; i++) {
            int j = (int)(i % 256);
            if (!filled[j])
                lane[j] = values[i];
            else
                lane[j] = product ? lane[j] * values[i] : lane[j] + values[i];
            filled[j] = true;
        }
        for (int half = 128; half >= 1; half /= 2) {
            for (int j = 0; j < half; j++) {
                if (filled[j + half] && filled[j])
                    lane[j] = product ? lane[j] * lane[j + half] : lane[j] + lane[j + half];
            }
            memset(filled + half, 0, (size_t)half);
        }
        total = block == 0 ? lane[0] : product ? total * lane[0] : total + lane[0];
    }
    return total;
}

static void sums_have_the_order_of_the_contract(void **unused) {
    static const int64_t lengths[] = {1, 2, 3, 127, 128, 129, 255, 256, 257, 513, 4095, 4096, 4097, 9000};
    random_source source = {21};
    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
        int64_t n = lengths[l];
        float *values = random_values(&source, ORDINARY, n);
        float sum = spelled_out(values, n, false);
        expect_output(make_node("ReduceSum", 13, list_tensor(SB_F32, 1, &n, values, (size_t)n), NULL, NULL),
                      LIST(SB_F32, (float, sum)));
        expect_output(make_node("ReduceMean", 13, list_tensor(SB_F32, 1, &n, values, (size_t)n), NULL, NULL),
                      LIST(SB_F32, (float, sum / (float)n)));
        for (int64_t i = 0; i < n; i++)
            values[i] = 1.0f + values[i] * 0.01f;
        expect_output(make_node("ReduceProd", 13, list_tensor(SB_F32, 1, &n, values, (size_t)n), NULL, NULL),
                      LIST(SB_F32, (float, spelled_out(values, n, true))));
        sb_free(values);
    }
}

/* Elements are numbered in row-major order of the reduced axes, whatever the strides. */
static void several_axes_and_strides(void **unused) {
    random_source source = {22};
    for (int round = 0; round < 30; round++) {
        int64_t dims[4] = {random_between(&source, 1, 4), random_between(&source, 1, 40), random_between(&source, 1, 3),
                           random_between(&source, 1, 60)};
        sb_tensor *input = random_tensor(&source, ORDINARY, SB_F32, 4, dims), *packed = NULL;
        assert_int_equal(sb_tensor_contiguous(input, &packed, NULL), SB_OK);
        int64_t kept[2] = {dims[0], dims[2]};
        sb_tensor *expected = NULL;
        assert_int_equal(sb_tensor_create(SB_F32, 2, kept, &expected, NULL), SB_OK);
        const float *from = (const float *)sb_tensor_data(packed);
        float *values = sb_allocate((size_t)(dims[1] * dims[3]) * sizeof(float));
        for (int64_t a = 0; a < dims[0]; a++) {
            for (int64_t c = 0; c < dims[2]; c++) {
                for (int64_t i = 0; i < dims[1] * dims[3]; i++)
                    values[i] = from[((a * dims[1] + i / dims[3]) * dims[2] + c) * dims[3] + i % dims[3]];
                ((float *)sb_tensor_mutable_data(expected))[a * dims[2] + c] =
                    spelled_out(values, dims[1] * dims[3], false);
            }
        }
        sb_free(values);
        sb_tensor_release(packed);
        node_runner runner = make_node("ReduceSum", 13, input, LIST(SB_S64, (int64_t, -1, 1)), NULL);
        runner.constants = (uint64_t)(round % 2) * 2;
        add_int(&runner, "keepdims", 0);
        expect_output(runner, expected);
    }
}

static void axes_in_all_forms(void **unused) {
    node_runner attribute = make_node("ReduceMax", 13, TENSOR(SB_F32, (2, 2), (float, 1, 5, NAN, 3)), NULL, NULL);
    add_ints(&attribute, "axes", 1, (int64_t[]){0});
    expect_output(attribute, TENSOR(SB_F32, (1, 2), (float, NAN, 5)));
    node_runner noop = make_node("ReduceSumSquare", 18, LIST(SB_F32, (float, 2, 3)), NULL, NULL);
    add_int(&noop, "noop_with_empty_axes", 1);
    expect_output(noop, LIST(SB_F32, (float, 4, 9)));
    node_runner twice =
        make_node("ReduceSum", 13, TENSOR(SB_F32, (1, 1), (float, 1)), LIST(SB_S64, (int64_t, 0, -2)), NULL);
    expect_refusal(twice, SB_ERROR_SHAPE, "axis -2 is named twice");
    node_runner far = make_node("ReduceSum", 13, LIST(SB_F32, (float, 1)), LIST(SB_S64, (int64_t, 1)), NULL);
    far.constants = 2;
    expect_refusal(far, SB_ERROR_SHAPE, "outside [-1, 1)");
}

static void reductions_of_nothing(void **unused) {
    static const struct {
        const char *op;
        float value;
    } cases[] = {{"ReduceSum", 0},    {"ReduceProd", 1}, {"ReduceMax", -INFINITY},    {"ReduceMin", INFINITY},
                 {"ReduceMean", NAN}, {"ReduceL2", 0},   {"ReduceLogSum", -INFINITY}, {"ReduceLogSumExp", -INFINITY}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sb_tensor *empty = NULL;
        assert_int_equal(sb_tensor_create(SB_F32, 2, (int64_t[]){2, 0}, &empty, NULL), SB_OK);
        expect_output(make_node(cases[i].op, 20, empty, LIST(SB_S64, (int64_t, 1)), NULL),
                      TENSOR(SB_F32, (2, 1), (float, cases[i].value, cases[i].value)));
    }
    sb_tensor *empty = NULL;
    assert_int_equal(sb_tensor_create(SB_S8, 1, (int64_t[]){0}, &empty, NULL), SB_OK);
    expect_output(make_node("ReduceMax", 20, empty, NULL, NULL), LIST(SB_S8, (int8_t, -128)));
    assert_int_equal(sb_tensor_create(SB_S32, 1, (int64_t[]){0}, &empty, NULL), SB_OK);
    expect_refusal(make_node("ReduceMean", 18, empty, NULL, NULL), SB_ERROR_INVALID_ARGUMENT, "mean of no integers");
}

static void integers(void **unused) {
    expect_output(make_node("ReduceSum", 13, LIST(SB_S32, (int32_t, INT32_MAX, 1)), NULL, NULL),
                  LIST(SB_S32, (int32_t, INT32_MIN)));
    expect_output(make_node("ReduceMean", 13, LIST(SB_S32, (int32_t, -3, -4)), NULL, NULL),
                  LIST(SB_S32, (int32_t, -3)));
    expect_output(make_node("ReduceL1", 13, LIST(SB_S64, (int64_t, -3, 4)), NULL, NULL), LIST(SB_S64, (int64_t, 7)));
    expect_output(make_node("ReduceL2", 13, LIST(SB_S64, (int64_t, -3, 4)), NULL, NULL), LIST(SB_S64, (int64_t, 5)));
    expect_output(make_node("ReduceMin", 20, LIST(SB_BOOL, (uint8_t, 1, 0)), NULL, NULL), LIST(SB_BOOL, (uint8_t, 0)));
    expect_output(make_node("ReduceMax", 20, LIST(SB_U64, (uint64_t, 1, UINT64_MAX)), NULL, NULL),
                  LIST(SB_U64, (uint64_t, UINT64_MAX)));
}

static void places_of_extremes(void **unused) {
    expect_output(make_node("ArgMax", 13, LIST(SB_F32, (float, 1, NAN, 5, NAN)), NULL, NULL),
                  LIST(SB_S64, (int64_t, 1)));
    expect_output(make_node("ArgMin", 13, LIST(SB_F16, (uint16_t, 0, 0x8000, 0x8000)), NULL, NULL),
                  LIST(SB_S64, (int64_t, 1)));
    node_runner last = make_node("ArgMax", 13, LIST(SB_U64, (uint64_t, UINT64_MAX, 0, UINT64_MAX)), NULL, NULL);
    add_int(&last, "select_last_index", 1);
    add_int(&last, "keepdims", 0);
    expect_output(last, SCALAR(SB_S64, (int64_t, 2)));
    sb_tensor *empty = NULL;
    assert_int_equal(sb_tensor_create(SB_F32, 1, (int64_t[]){0}, &empty, NULL), SB_OK);
    expect_refusal(make_node("ArgMax", 13, empty, NULL, NULL), SB_ERROR_INVALID_ARGUMENT, "no elements to choose from");
}

static void running_sums(void **unused) {
    node_runner runner = make_node("CumSum", 14, LIST(SB_F32, (float, 1, 2, 4)), SCALAR(SB_S64, (int64_t, -1)), NULL);
    add_int(&runner, "reverse", 1);
    add_int(&runner, "exclusive", 1);
    expect_output(runner, LIST(SB_F32, (float, 6, 4, 0)));
    expect_output(make_node("CumSum", 14, LIST(SB_F32, (float, -0.0f, -0.0f)), SCALAR(SB_S32, (int32_t, 0)), NULL),
                  LIST(SB_F32, (float, -0.0f, -0.0f)));
    expect_refusal(make_node("CumSum", 14, LIST(SB_F32, (float, 1)), SCALAR(SB_S32, (int32_t, 1)), NULL),
                   SB_ERROR_SHAPE, "axis 1 is outside");
}

/* ReduceProd of shape arithmetic is a formula. */
static void shape_arithmetic_stays_symbolic(void **unused) {
    node_runner runner = make_node("ReduceProd", 18, LIST(SB_S64, (int64_t, 1, 1)), NULL, NULL);
    add_int(&runner, "keepdims", 0);
    sb_error error;
    assert_int_equal(node_build(&runner, &error), SB_OK);
    sb_fact input = {0}, output = {0};
    sb_dim extent = sb_dim_constant(runner.scope, 2);
    sb_fact_set_tensor(&input, SB_S64, 1, &extent);
    input.elements = sb_allocate_array(2, sizeof *input.elements);
    input.element_count = 2;
    input.elements[0] = sb_dim_symbol(runner.scope, "batch");
    input.elements[1] = sb_dim_constant(runner.scope, 7);
    const sb_fact *inputs[1] = {&input};
    assert_int_equal(sb_node_infer(runner.node, runner.scope, inputs, &output, &error), SB_OK);
    assert_int_equal(output.rank, 0);
    assert_int_equal(output.element_count, 1);
    char text[64];
    assert_string_equal(sb_dim_text(output.elements[0], text, sizeof text), "7*batch");
    sb_fact_clear(&input);
    sb_fact_clear(&output);
    node_clear(&runner);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(sums_have_the_order_of_the_contract, leaves_nothing),
        cmocka_unit_test_teardown(several_axes_and_strides, leaves_nothing),
        cmocka_unit_test_teardown(axes_in_all_forms, leaves_nothing),
        cmocka_unit_test_teardown(reductions_of_nothing, leaves_nothing),
        cmocka_unit_test_teardown(integers, leaves_nothing),
        cmocka_unit_test_teardown(places_of_extremes, leaves_nothing),
        cmocka_unit_test_teardown(running_sums, leaves_nothing),
        cmocka_unit_test_teardown(shape_arithmetic_stays_symbolic, leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
