/* Pools: the definition against plain loops. */
#include "ops/node_cases.h"

#include "numerics/reduce.h"

static void definition_adds_in_row_major_order(void **unused) {
    random_source source = {3};
    for (int round = 0; round < 20; round++) {
        sb_value outputs[NODE_OUTPUTS] = {{0}};
        node_runner runner = {.op = "AveragePool", .version = 7, .input_count = 1, .output_count = 1};
        add_ints(&runner, "kernel_shape", 2, (int64_t[]){3, 2});
        add_ints(&runner, "pads", 4, (int64_t[]){1, 1, 1, 0});
        runner.inputs[0] = random_tensor(&source, (distribution)(round % 3), SB_F32, 4, (int64_t[]){1, 2, 4, 5});
        node_must_run(&runner, SB_ISA_BEST, outputs);
        const sb_tensor *x = runner.inputs[0], *y = outputs[0].tensor;
        assert_int_equal(y->dims[2], 4);
        assert_int_equal(y->dims[3], 5);
        for (int64_t i = 0; i < 40; i++) {
            int64_t channel = i / 20, row = i / 5 % 4, column = i % 5, count = 0;
            float sum = 0.0f;
            for (int64_t r = row - 1; r < row + 2; r++) {
                for (int64_t c = column - 1; c < column + 1; c++) {
                    if (r < 0 || r >= 4 || c < 0 || c >= 5)
                        continue;
                    sum += ((const float *)(void *)
                                x->data)[channel * x->strides[1] + r * x->strides[2] + c * x->strides[3]];
                    count++;
                }
            }
            sum = sum / (float)count;
            assert_same_floats("AveragePool", &sum, (const float *)(void *)y->data + i, 1);
        }
        release_outputs(outputs);
        node_clear(&runner);
    }
}

/* A maximum of a window, and the index of the first element that is it. */
static void indices_name_the_first_maximum(void **unused) {
    const float values[2][6] = {{1, 5, 5, -0.0f, 0.0f, 0.0f}, {NAN, 2, NAN, 7, 7, -1}};
    const float maxima[2][5] = {{5, 5, 5, 0.0f, 0.0f}, {NAN, NAN, NAN, 7, 7}};
    const int64_t first[2][5] = {{1, 1, 2, 4, 4}, {6, 8, 8, 9, 10}};
    sb_value outputs[NODE_OUTPUTS] = {{0}};
    node_runner runner = {.op = "MaxPool", .version = 12, .input_count = 1, .output_count = 2};
    add_ints(&runner, "kernel_shape", 1, (int64_t[]){2});
    assert_int_equal(sb_tensor_from_data(SB_F32, 3, (int64_t[]){1, 2, 6}, values, &runner.inputs[0], NULL), SB_OK);
    node_must_run(&runner, SB_ISA_BEST, outputs);
    assert_same_floats("maxima", maxima[0], (const float *)(void *)outputs[0].tensor->data, 10);
    assert_memory_equal(outputs[1].tensor->data, first, sizeof first);
    release_outputs(outputs);
    node_clear(&runner);
}

/* A kernel as large as numbers go costs no more than the input under it. */
static void huge_windows_end(void **unused) {
    random_source source = {4};
    sb_value outputs[NODE_OUTPUTS] = {{0}};
    node_runner runner = {.op = "AveragePool", .version = 7, .input_count = 1, .output_count = 1};
    add_ints(&runner, "kernel_shape", 2, (int64_t[]){INT32_MAX, INT32_MAX});
    add_text(&runner, "auto_pad", "SAME_UPPER");
    runner.inputs[0] = random_tensor(&source, ORDINARY, SB_F32, 4, (int64_t[]){1, 1, 3, 3});
    node_must_run(&runner, SB_ISA_BEST, outputs);
    release_outputs(outputs);
    node_clear(&runner);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(definition_adds_in_row_major_order),
        cmocka_unit_test(indices_name_the_first_maximum),
        cmocka_unit_test(huge_windows_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
