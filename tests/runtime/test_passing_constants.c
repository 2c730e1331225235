/* Steps whose shapes follow from data: what their inputs are in one run is known when they are inferred, and must not be
 * taken for a constant of the model that kernels prepare once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "state/stateful.h"

#define MOST_INPUTS 5

/* A node behind rows that data choose: how many inputs it has beside them, and their extents. */
typedef struct passing {
    const char *op;
    int count;
    int ranks[MOST_INPUTS];
    int64_t dims[MOST_INPUTS][3];
    bool sequence; /* takes the rows as time steps of one sequence */
    bool fused;    /* a Relu stands behind it */
} passing;

static const passing nodes[] = {
    {"MatMul", 1, {2}, {{4, 5}}, false, false},
    {"Gemm", 1, {2}, {{4, 5}}, false, false},
    {"BatchNormalization", 4, {1, 1, 1, 1}, {{4}, {4}, {4}, {4}}, false, false},
    {"BatchNormalization", 4, {1, 1, 1, 1}, {{4}, {4}, {4}, {4}}, false, true},
    {"MatMul", 1, {2}, {{4, 5}}, false, true},
    {"GRU", 2, {3, 3}, {{1, 9, 4}, {1, 9, 3}}, true, false},
};

/* Of the rows of a table [6, 4] those where x is not 0. */
static sb_status add_rows(sb_builder *b, const passing *node, sb_builder_value *rows, sb_error *error) {
    static const int64_t six[] = {6}, flat[] = {-1}, steps[] = {-1, 1, 4}, table_dims[] = {6, 4};
    sb_builder_value x, indices, shape, table;
    sb_tensor *data = numbers(2, table_dims, 3);
    sb_status status = sb_builder_constant(b, "table", data, &table, error);
    sb_tensor_release(data);
    SB_TRY(status);
    SB_TRY(add_input(b, "x", 1, six, &x, error));
    SB_TRY(sb_builder_op(b, "NonZero", 1, &x, 0, NULL, &indices, error));
    SB_TRY(add_constant(b, "flat", SB_S64, 1, (int64_t[]){1}, flat, &shape, error));
    SB_TRY(add_binary(b, "Reshape", indices, shape, &indices, error));
    SB_TRY(add_binary(b, "Gather", table, indices, rows, error));
    if (!node->sequence)
        return SB_OK;
    SB_TRY(add_constant(b, "steps", SB_S64, 1, (int64_t[]){3}, steps, &shape, error));
    return add_binary(b, "Reshape", *rows, shape, rows, error);
}

static sb_status add_passing(sb_builder *b, const passing *node, sb_error *error) {
    static const char *const names[] = {"a", "b", "c", "d"};
    sb_builder_value inputs[1 + MOST_INPUTS], y;
    sb_builder_attribute size = sb_attribute_int("hidden_size", 3);
    SB_TRY(add_rows(b, node, &inputs[0], error));
    for (int i = 0; i < node->count; i++)
        SB_TRY(add_input(b, names[i], node->ranks[i], node->dims[i], &inputs[1 + i], error));
    SB_TRY(sb_builder_op(b, node->op, 1 + node->count, inputs, node->sequence, &size, &y, error));
    if (node->fused)
        SB_TRY(sb_builder_op(b, "Relu", 1, &y, 0, NULL, &y, error));
    return sb_builder_output(b, y, error);
}

static sb_model *passing_model(const passing *node) {
    sb_builder *b;
    sb_model *model;
    MUST(sb_builder_create(&b, error));
    MUST(build_and_destroy(b, add_passing(b, node, error), &model, error));
    return model;
}

static sb_tensor *run_with(sb_session *session, const passing *node, uint64_t seed) {
    sb_tensor *inputs[1 + MOST_INPUTS], *y;
    MUST(
        sb_tensor_from_data(SB_F32, 1, (int64_t[]){6}, (float[]){1, 0, (float)(seed % 2), 2, 1, 0}, &inputs[0], error));
    for (int i = 0; i < node->count; i++) {
        inputs[1 + i] = numbers(node->ranks[i], node->dims[i], 10 * seed + (uint64_t)i);
        float *data = sb_tensor_mutable_data(inputs[1 + i]);
        for (int64_t k = 0; k < sb_tensor_elements(inputs[1 + i]); k++)
            data[k] = data[k] < 0 ? -data[k] : data[k]; /* one is a variance */
    }
    run_tensors(session, inputs, &y);
    for (int i = 0; i < 1 + node->count; i++)
        sb_tensor_release(inputs[i]);
    return y;
}

/* Runs of one session, against a model that has run nothing before. */
static void test_dynamic_steps(void **unused) {
    for (size_t n = 0; n < sizeof nodes / sizeof nodes[0]; n++) {
        sb_model *model = passing_model(&nodes[n]);
        sb_session *session = bound_session(model, NULL, NULL, NULL);
        for (uint64_t seed = 0; seed < 6; seed++) {
            sb_model *fresh = passing_model(&nodes[n]);
            sb_session *first = bound_session(fresh, NULL, NULL, NULL);
            sb_tensor *y = run_with(session, &nodes[n], seed), *expected = run_with(first, &nodes[n], seed);
            if (!sb_tensor_equal(y, expected))
                fail_msg("%s: run %d differs", nodes[n].op, (int)seed);
            sb_tensor_release(y);
            sb_tensor_release(expected);
            sb_session_destroy(first);
            sb_model_release(fresh);
        }
        sb_session_destroy(session);
        sb_model_release(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_dynamic_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
