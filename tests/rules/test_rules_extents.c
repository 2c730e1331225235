/* Inputs whose elements say how many rows of an output there are, and nothing else (sb_axes_entry.extents): with larger
 * elements the first rows are the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "api/building.h"
#include "rules/axes.h"
#include "tensor/tensor.h"

#define MOST_INPUTS 5
#define MOST_ROWS 9

static sb_tensor *integers(int rank, int64_t count, const int64_t *values) {
    sb_tensor *tensor;
    MUST(sb_tensor_from_data(SB_S64, rank, &count, values, &tensor, error));
    return tensor;
}

/* [rows, columns] of 0, 1, 2, … */
static sb_tensor *counting(int64_t rows, int64_t columns) {
    sb_tensor *tensor;
    MUST(sb_tensor_create(SB_S64, 2, (int64_t[]){rows, columns}, &tensor, error));
    for (int64_t i = 0; i < rows * columns; i++)
        ((int64_t *)sb_tensor_mutable_data(tensor))[i] = i;
    return tensor;
}

/* The inputs for `n` rows; the rows are the output's first axis. */
typedef int inputs_of(int64_t n, sb_tensor **inputs);

static int reshape_inputs(int64_t n, sb_tensor **inputs) {
    inputs[0] = counting(n, 6);
    inputs[1] = integers(1, 3, (int64_t[]){n, 2, 3});
    return 2;
}

static int expand_inputs(int64_t n, sb_tensor **inputs) {
    inputs[0] = counting(1, 4);
    inputs[1] = integers(1, 2, (int64_t[]){n, 4});
    return 2;
}

static int fill_inputs(int64_t n, sb_tensor **inputs) {
    inputs[0] = integers(1, 2, (int64_t[]){n, 3});
    return 1;
}

static int range_inputs(int64_t n, sb_tensor **inputs) {
    inputs[0] = integers(0, 1, (int64_t[]){-4});
    inputs[1] = integers(0, 1, (int64_t[]){-4 + 3 * n});
    inputs[2] = integers(0, 1, (int64_t[]){3});
    return 3;
}

static int slice_inputs(int64_t n, sb_tensor **inputs) {
    inputs[0] = counting(2 * MOST_ROWS + 4, 2);
    inputs[1] = integers(1, 1, (int64_t[]){3});
    inputs[2] = integers(1, 1, (int64_t[]){3 + 2 * n});
    inputs[3] = integers(1, 1, (int64_t[]){0});
    inputs[4] = integers(1, 1, (int64_t[]){2});
    return 5;
}

static const struct {
    const char *op;
    int input;
    inputs_of *inputs;
} cases[] = {
    {"Reshape", 1, reshape_inputs}, {"Expand", 1, expand_inputs}, {"ConstantOfShape", 0, fill_inputs},
    {"Range", 1, range_inputs},     {"Slice", 2, slice_inputs},
};

static sb_status build(const char *op, int count, sb_tensor *const *inputs, sb_builder *b, sb_error *error) {
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    sb_builder_value values[MOST_INPUTS], output;
    for (int i = 0; i < count; i++) {
        sb_value_description input = described(names[i], inputs[i]->dtype, inputs[i]->rank, inputs[i]->dims);
        SB_TRY(sb_builder_input(b, &input, &values[i], error));
    }
    SB_TRY(sb_builder_op(b, op, count, values, 0, NULL, &output, error));
    return sb_builder_output(b, output, error);
}

static sb_tensor *evaluate(const char *op, inputs_of *inputs_for, int64_t n) {
    sb_tensor *inputs[MOST_INPUTS], *output;
    sb_builder *b;
    sb_model *model;
    sb_session *session;
    int count = inputs_for(n, inputs);
    MUST(sb_builder_create(&b, error));
    MUST(build(op, count, inputs, b, error));
    MUST(sb_builder_build(b, NULL, &model, error));
    sb_builder_destroy(b);
    MUST(sb_session_create(model, NULL, &session, error));
    MUST(sb_session_run_tensors(session, inputs, &output, error));
    for (int i = 0; i < count; i++)
        sb_tensor_release(inputs[i]);
    sb_session_destroy(session);
    sb_model_release(model);
    return output;
}

static void test_first_rows(void **unused) {
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        sb_tensor *whole = evaluate(cases[c].op, cases[c].inputs, MOST_ROWS);
        for (int64_t n = 0; n < MOST_ROWS; n++) {
            sb_tensor *rows = evaluate(cases[c].op, cases[c].inputs, n), *first;
            MUST(sb_tensor_slice(whole, 0, 0, n, 1, &first, error));
            assert_int_equal(rows->dims[0], n);
            assert_true(sb_tensor_equal(rows, first));
            sb_tensor_release(rows);
            sb_tensor_release(first);
        }
        sb_tensor_release(whole);
    }
}

static uint32_t tried(const char *op) {
    uint32_t inputs = 0;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        inputs |= strcmp(cases[c].op, op) == 0 ? UINT32_C(1) << cases[c].input : 0;
    return inputs;
}

static void check_op(void *context, const sb_op *op) {
    const sb_axes_entry *entry = sb_axes_find(op);
    if (entry != NULL && entry->extents != (op->domain[0] == '\0' ? tried(op->name) : 0))
        fail_msg("the extents of %s are not what is tried here", op->name);
}

static void test_all_are_tried(void **unused) {
    sb_op_visit(check_op, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_first_rows), cmocka_unit_test(test_all_are_tried)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
