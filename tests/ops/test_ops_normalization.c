/* Softmax, normalisations, losses and dropout: formulas spelled out, rows that do not depend on their neighbours. */
#include "ops/definition_cases.h"

#include "numerics/elementary.h"
#include "numerics/philox.h"
#include "numerics/reduce.h"

#define ROW 300

static float row[ROW], expected[ROW];

static void fill_row(uint64_t seed, distribution kind) {
    random_source source = {seed};
    for (int i = 0; i < ROW; i++)
        row[i] = random_value(&source, kind);
}

static sb_tensor *row_tensor(const float *values, int rank, const int64_t *dims) {
    return list_tensor(SB_F32, rank, dims, values, ROW);
}

static void softmax_is_its_formula(void **unused) {
    for (int version = 12; version <= 13; version++) {
        fill_row((uint64_t)version, ORDINARY);
        float highest = row[0];
        for (int i = 0; i < ROW; i++)
            highest = row[i] > highest ? row[i] : highest;
        for (int i = 0; i < ROW; i++)
            expected[i] = sb_exp_f32(row[i] - highest);
        float sum = sb_sum_f32(expected, 1, ROW), logarithm = sb_log_f32(sum);
        for (int i = 0; i < ROW; i++)
            expected[i] = expected[i] / sum;
        /* Before version 13 the row is all dimensions from the axis (1) on. */
        int rank = version < 13 ? 3 : 2;
        const int64_t *dims = version < 13 ? (int64_t[]){1, 3, ROW / 3} : (int64_t[]){1, ROW};
        expect_output(make_node("Softmax", version, row_tensor(row, rank, dims), NULL, NULL),
                      row_tensor(expected, rank, dims));
        for (int i = 0; i < ROW; i++)
            expected[i] = (row[i] - highest) - logarithm;
        expect_output(make_node("LogSoftmax", version, row_tensor(row, rank, dims), NULL, NULL),
                      row_tensor(expected, rank, dims));
    }
    expect_output(make_node("Hardmax", 13, LIST(SB_F32, (float, 1, 5, 5)), NULL, NULL), LIST(SB_F32, (float, 0, 1, 0)));
}

static float centre(float *values, int64_t count) {
    float mean = sb_sum_f32(values, 1, count) / (float)count;
    for (int64_t i = 0; i < count; i++)
        values[i] = values[i] - mean;
    return sb_sum_of_squares_f32(values, 1, count) / (float)count;
}

static void layer_normalisation_is_its_formula(void **unused) {
    const int64_t dims[2] = {2, ROW / 2};
    fill_row(31, ORDINARY);
    float scale[ROW / 2], bias[ROW / 2];
    for (int i = 0; i < ROW / 2; i++) {
        scale[i] = 1.0f + 0.01f * (float)i;
        bias[i] = 0.1f * (float)i;
    }
    memcpy(expected, row, sizeof row);
    for (int r = 0; r < 2; r++) {
        float *values = expected + r * ROW / 2;
        float inverse = 1.0f / sqrtf(centre(values, ROW / 2) + 1e-5f);
        for (int i = 0; i < ROW / 2; i++) {
            float scaled = values[i] * inverse;
            scaled = scaled * scale[i];
            values[i] = scaled + bias[i];
        }
    }
    expect_output(make_node("LayerNormalization", 17, row_tensor(row, 2, dims),
                            list_tensor(SB_F32, 1, &dims[1], scale, ROW / 2),
                            list_tensor(SB_F32, 1, &dims[1], bias, ROW / 2)),
                  row_tensor(expected, 2, dims));
}

/* A row of a batch has the bits that it has alone. */
static void rows_stand_alone(void **unused) {
    static const char *const names[] = {"Softmax", "LogSoftmax", "Hardmax", "LpNormalization"};
    random_source source = {33};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        sb_tensor *batch = random_tensor(&source, SPECIAL, SB_F16, 2, (int64_t[]){5, 600}), *alone = NULL;
        assert_int_equal(sb_tensor_slice(batch, 0, 3, 1, 1, &alone, NULL), SB_OK);
        node_runner all = make_node(names[n], 13, batch, NULL, NULL);
        sb_value outputs[NODE_OUTPUTS] = {{0}};
        node_must_run(&all, SB_ISA_BEST, outputs);
        sb_tensor *part = NULL;
        assert_int_equal(sb_tensor_slice(outputs[0].tensor, 0, 3, 1, 1, &part, NULL), SB_OK);
        expect_output(make_node(names[n], 13, alone, NULL, NULL), part);
        release_outputs(outputs);
        node_clear(&all);
    }
}

static void batch_normalisation_is_one_multiply_add(void **unused) {
    float a = 2.0f / sqrtf(0.5f + 1e-5f), b = 0.25f - 0.1f * a;
    node_runner runner = make_node("BatchNormalization", 15, TENSOR(SB_F32, (1, 1, 3), (float, 1, 2, 0.3f)),
                                   LIST(SB_F32, (float, 2)), LIST(SB_F32, (float, 0.25f)));
    runner.input_count = 5;
    runner.inputs[3] = LIST(SB_F32, (float, 0.1f));
    runner.inputs[4] = LIST(SB_F32, (float, 0.5f));
    expect_output(runner, TENSOR(SB_F32, (1, 1, 3), (float, fmaf(1, a, b), fmaf(2, a, b), fmaf(0.3f, a, b))));
}

static void groups_have_their_own_moments(void **unused) {
    /* Two groups of two channels: each value is 1 below or above the mean of its group. */
    node_runner runner = make_node("GroupNormalization", 21, TENSOR(SB_F64, (1, 4, 1), (double, 1, 3, 10, 12)),
                                   LIST(SB_F64, (double, 1, 2, 3, 4)), LIST(SB_F64, (double, 0, 0, 0, 1)));
    add_int(&runner, "num_groups", 2);
    add_float(&runner, "epsilon", 0);
    expect_output(runner, TENSOR(SB_F64, (1, 4, 1), (double, -1, 2, -3, 5)));
    node_runner uneven = make_node("GroupNormalization", 21, TENSOR(SB_F64, (1, 3, 1), (double, 1, 3, 10)),
                                   LIST(SB_F64, (double, 1, 2, 3)), LIST(SB_F64, (double, 0, 0, 0)));
    add_int(&uneven, "num_groups", 2);
    expect_refusal(uneven, SB_ERROR_SHAPE, "3 channels do not split into 2 groups");
}

static void losses(void **unused) {
    node_runner ignoring = make_node("NegativeLogLikelihoodLoss", 13, TENSOR(SB_F32, (3, 2), (float, 1, 2, 3, 4, 5, 6)),
                                     LIST(SB_S64, (int64_t, 1, -9, 0)), LIST(SB_F32, (float, 0.5f, 2)));
    add_int(&ignoring, "ignore_index", -9);
    expect_output(ignoring, SCALAR(SB_F32, (float, (-4.0f - 2.5f) / 2.5f)));
    expect_refusal(make_node("NegativeLogLikelihoodLoss", 13, TENSOR(SB_F32, (1, 2), (float, 1, 2)),
                             LIST(SB_S64, (int64_t, 2)), NULL),
                   SB_ERROR_INVALID_ARGUMENT, "target 2 is no class in [0, 2)");
}

static void dropout_is_a_function_of_seed_and_place(void **unused) {
    const int64_t dims[1] = {ROW};
    fill_row(35, ORDINARY);
    int kept = 0;
    for (int i = 0; i < ROW; i++) {
        sb_philox_block counter = {{(uint32_t)i, 0, 0, 0}};
        bool keep = sb_uniform_f32(sb_philox4x32_10(counter, 42, 0).word[0]) >= 0.25f;
        kept += keep;
        expected[i] = keep ? row[i] * (1.0f / 0.75f) : 0;
    }
    assert_true(kept > ROW / 2 && kept < ROW);
    node_runner training = make_node("Dropout", 13, row_tensor(row, 1, dims), SCALAR(SB_F32, (float, 0.25f)),
                                     SCALAR(SB_BOOL, (uint8_t, 1)));
    add_int(&training, "seed", 42);
    expect_output(training, row_tensor(expected, 1, dims));
    expect_output(make_node("Dropout", 13, row_tensor(row, 1, dims), NULL, NULL), row_tensor(row, 1, dims));
    expect_refusal(
        make_node("Dropout", 13, row_tensor(row, 1, dims), SCALAR(SB_F32, (float, 1)), SCALAR(SB_BOOL, (uint8_t, 1))),
        SB_ERROR_INVALID_ARGUMENT, "the ratio 1 is not in [0, 1)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(softmax_is_its_formula, leaves_nothing),
        cmocka_unit_test_teardown(layer_normalisation_is_its_formula, leaves_nothing),
        cmocka_unit_test_teardown(rows_stand_alone, leaves_nothing),
        cmocka_unit_test_teardown(batch_normalisation_is_one_multiply_add, leaves_nothing),
        cmocka_unit_test_teardown(groups_have_their_own_moments, leaves_nothing),
        cmocka_unit_test_teardown(losses, leaves_nothing),
        cmocka_unit_test_teardown(dropout_is_a_function_of_seed_and_place, leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
