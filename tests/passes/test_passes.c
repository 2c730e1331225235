/* Passes change graphs, never bits: what each one does to a graph made for it,
 * and random graphs with all of them on and off. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/graph_builder.h"
#include "support/random.h"

static sb_tensor *random_tensor(random_source *source, int rank, const int64_t *dims) {
    /* What the passes must not disturb: signs of zeros, NaN, infinities, subnormals, rounding. */
    static const float corners[] = {0.0f, -0.0f, 1.0f, -1.0f, 1e-40f, -1e-42f, 3e38f, INFINITY, -INFINITY, NAN};
    sb_tensor *tensor;
    assert_int_equal(sb_tensor_create(SB_F32, rank, dims, &tensor, NULL), SB_OK);
    float *data = sb_tensor_mutable_data(tensor);
    for (int64_t i = 0; i < sb_tensor_elements(tensor); i++) {
        uint64_t bits = random_bits(source);
        data[i] = (bits & 15) == 0 ? corners[(bits >> 8) % 10] : (float)((int32_t)(bits >> 32)) * 0x1p-29f;
    }
    return tensor;
}

static void run_all_passes(builder *b) {
    sb_error error = {SB_OK, ""};
    builder_finish(b);
    if (sb_passes_run(b->graph, b->scope, &error) != SB_OK)
        fail_msg("%s", error.message);
}

static void check_output(const builder *b, sb_tensor *const *inputs, const sb_tensor *expected) {
    static const struct {
        sb_isa isa;
        int threads;
    } ways[] = {{SB_ISA_SCALAR, 1}, {SB_ISA_AVX2, 2}, {SB_ISA_AVX512, 3}};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        if (ways[i].isa > sb_isa_detect())
            continue;
        sb_tensor *output;
        builder_run(b, false, ways[i].isa, ways[i].threads, inputs, &output);
        assert_true(sb_tensor_equal(output, expected));
        sb_tensor_release(output);
    }
}

/* A float constant that inference cannot have settled: larger than shape arithmetic. */
static sb_value_id large_constant(builder *b, random_source *source) {
    return builder_constant(b, random_tensor(source, 2, (int64_t[]){8, 64}));
}

static void test_fold(void **state) {
    (void)state;
    random_source source = {1};
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, 2, (int64_t[]){-1, 64});
    sb_value_id c = builder_unary(&b, "Neg", large_constant(&b, &source));
    sb_value_id row = builder_node(&b, "ReduceMax", 1, &c, NULL);
    sb_value_id y = builder_binary(&b, "Add", x, row);
    assert_int_equal(sb_graph_add_output(b.graph, y, NULL), SB_OK);
    run_all_passes(&b);
    assert_int_equal(b.graph->node_count, 1);
    assert_int_equal(builder_count(&b, "Add"), 1);
    builder_destroy(&b);
}

static void test_views(void **state) {
    (void)state;
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, 2, (int64_t[]){-1, 64});
    sb_value_id y = builder_unary(&b, "Transpose", builder_unary(&b, "Transpose", x));
    y = builder_unary(&b, "Identity", y);
    sb_attributes attributes = {0};
    assert_int_equal(sb_attributes_add_ints(&attributes, "axis", true, 1, (int64_t[]){0}, NULL), SB_OK);
    y = builder_node(&b, "Concat", 1, &y, &attributes); /* of itself alone */
    y = builder_unary(&b, "ReduceMax", y);
    assert_int_equal(sb_graph_add_output(b.graph, y, NULL), SB_OK);
    run_all_passes(&b);
    assert_int_equal(b.graph->node_count, 1);
    builder_destroy(&b);
}

static void test_merge(void **state) {
    (void)state;
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, 2, (int64_t[]){-1, 64});
    sb_value_id first = builder_unary(&b, "ReduceMax", x), second = builder_unary(&b, "ReduceMax", x);
    sb_value_id y = builder_unary(&b, "ReduceMin", builder_binary(&b, "Sub", first, second));
    assert_int_equal(sb_graph_add_output(b.graph, y, NULL), SB_OK);
    run_all_passes(&b);
    assert_int_equal(builder_count(&b, "ReduceMax"), 1);
    builder_destroy(&b);
}

static void test_sweep(void **state) {
    (void)state;
    random_source source = {2};
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, 2, (int64_t[]){-1, 64});
    sb_value_id unused = large_constant(&b, &source);
    builder_binary(&b, "Add", builder_unary(&b, "ReduceMax", x), unused);
    assert_int_equal(sb_graph_add_output(b.graph, builder_unary(&b, "ReduceMin", x), NULL), SB_OK);
    run_all_passes(&b);
    assert_int_equal(b.graph->node_count, 1);
    assert_null(b.graph->values[unused].fact.constant);
    builder_destroy(&b);
}

/* x -> Exp -> { Neg, Sigmoid } -> Add is one group; a second reader of Exp outside keeps it apart. */
static void test_fuse(void **state) {
    (void)state;
    for (int outside = 0; outside < 2; outside++) {
        builder b = builder_create();
        sb_value_id x = builder_input(&b, SB_F32, 2, (int64_t[]){-1, 64});
        sb_value_id e = builder_unary(&b, "Exp", x);
        sb_value_id sum = builder_binary(&b, "Add", builder_unary(&b, "Neg", e), builder_unary(&b, "Sigmoid", e));
        assert_int_equal(sb_graph_add_output(b.graph, sum, NULL), SB_OK);
        if (outside == 1)
            assert_int_equal(sb_graph_add_output(b.graph, builder_unary(&b, "ReduceMax", e), NULL), SB_OK);
        run_all_passes(&b);
        assert_int_equal(builder_count(&b, "Fused"), 1);
        assert_int_equal(builder_count(&b, "Exp"), outside);
        builder_destroy(&b);
    }
}

/* Products of 16 bits take sums, factors, bounds and activations along, with one earlier result that is read again. */
static void test_fuse_16_bits(void **state) {
    (void)state;
    static const sb_dtype dtypes[] = {SB_F16, SB_BF16, SB_F64};
    for (int i = 0; i < 3; i++) {
        builder b = builder_create();
        sb_value_id x = builder_input(&b, dtypes[i], 2, (int64_t[]){-1, 64});
        sb_value_id w = builder_input(&b, dtypes[i], 2, (int64_t[]){64, 32});
        sb_value_id bias = builder_input(&b, dtypes[i], 1, (int64_t[]){32});
        sb_value_id y = builder_binary(&b, "Add", builder_binary(&b, "MatMul", x, w), bias);
        sb_value_id scaled = builder_binary(&b, "Div", y, bias);
        sb_value_id gelu = builder_binary(&b, "Mul", builder_unary(&b, "Erf", scaled), y);
        assert_int_equal(sb_graph_add_output(b.graph, builder_unary(&b, "ReduceMax", gelu), NULL), SB_OK);
        run_all_passes(&b);
        assert_int_equal(builder_count(&b, "MatMul"), dtypes[i] == SB_F64);
        assert_int_equal(builder_count(&b, "Fused"), 1);
        assert_int_equal(b.graph->node_count, dtypes[i] == SB_F64 ? 3 : 2);
        builder_destroy(&b);
    }
}

/* x -> Exp -> BatchNormalization -> Neg, with one output of the normalisation or three. */
static builder normalised(bool trains, int outputs) {
    random_source source = {5};
    builder b = builder_create();
    sb_attributes attributes = {0};
    sb_value_id inputs[5], made[3];
    inputs[0] = builder_unary(&b, "Exp", builder_input(&b, SB_F32, 3, (int64_t[]){-1, 6, 8}));
    for (int i = 1; i < 5; i++)
        inputs[i] = builder_constant(&b, random_tensor(&source, 1, (int64_t[]){6}));
    for (int o = 0; o < outputs; o++)
        made[o] = builder_value(&b);
    assert_int_equal(sb_attributes_add_ints(&attributes, "training_mode", true, 1, &(int64_t){trains}, NULL), SB_OK);
    assert_int_equal(sb_graph_add_node(b.graph, sb_op_find("", "BatchNormalization"), 17, "normalise", 5, inputs, 0,
                                       outputs, made, &attributes, NULL, NULL),
                     SB_OK);
    assert_int_equal(sb_graph_add_output(b.graph, builder_unary(&b, "Neg", made[0]), NULL), SB_OK);
    for (int o = 1; o < outputs; o++)
        assert_int_equal(sb_graph_add_output(b.graph, made[o], NULL), SB_OK);
    return b;
}

/* Only a BatchNormalization that infers is element-wise: one that trains needs the whole batch, and has other outputs
 * that a group would lose. */
static void test_fuse_leaves_training(void **state) {
    (void)state;
    static const struct {
        bool trains;
        int outputs;
    } cases[] = {{false, 1}, {true, 1}, {true, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        random_source source = {6};
        sb_tensor *input = random_tensor(&source, 3, (int64_t[]){5, 6, 8}), *expected[3], *got[3];
        builder plain = normalised(cases[i].trains, cases[i].outputs);
        builder optimised = normalised(cases[i].trains, cases[i].outputs);
        builder_finish(&plain);
        run_all_passes(&optimised);
        assert_int_equal(builder_count(&optimised, "BatchNormalization"), cases[i].trains);
        assert_int_equal(builder_count(&optimised, "Fused"), !cases[i].trains);
        builder_run(&plain, true, SB_ISA_SCALAR, 1, &input, expected);
        builder_run(&optimised, false, sb_isa_detect(), 1, &input, got);
        for (int o = 0; o < cases[i].outputs; o++) {
            assert_true(sb_tensor_equal(got[o], expected[o]));
            sb_tensor_release(got[o]);
            sb_tensor_release(expected[o]);
        }
        sb_tensor_release(input);
        builder_destroy(&plain);
        builder_destroy(&optimised);
    }
}

/* ---- random graphs ---- */

#define VALUES 24

static sb_value_id random_node(builder *b, random_source *source, const sb_value_id *values, int count) {
    static const char *const unary[] = {"Relu", "Exp", "Neg", "Sigmoid", "Tanh", "Abs", "Identity", "Erf"};
    static const char *const binary[] = {"Add", "Sub", "Mul", "Div", "Max", "Min"};
    sb_value_id left = values[random_between(source, 0, count - 1)];
    sb_value_id right = values[random_between(source, 0, count - 1)];
    int kind = (int)random_between(source, 0, 9);
    if (kind < 4)
        return builder_unary(b, unary[random_between(source, 0, 7)], left);
    if (kind < 9)
        return builder_binary(b, binary[random_between(source, 0, 5)], left, right);
    return builder_unary(b, "Transpose", builder_unary(b, "Transpose", left));
}

/* The same graph for the same seed. */
static builder random_graph(uint64_t seed) {
    random_source source = {seed};
    builder b = builder_create();
    sb_value_id values[VALUES];
    values[0] = builder_input(&b, SB_F32, 2, (int64_t[]){-1, 64});
    values[1] = builder_input(&b, SB_F32, 2, (int64_t[]){-1, 64});
    values[2] = builder_input(&b, SB_F32, 1, (int64_t[]){64});
    values[3] = builder_constant(&b, random_tensor(&source, 1, (int64_t[]){64}));
    values[4] = builder_constant(&b, random_tensor(&source, 0, NULL));
    sb_value_id weights = builder_constant(&b, random_tensor(&source, 2, (int64_t[]){64, 64}));
    values[5] = builder_binary(&b, "MatMul", values[0], weights);
    for (int i = 6; i < VALUES; i++)
        values[i] = random_node(&b, &source, values, i);
    sb_value_id sum = builder_binary(&b, "Add", values[VALUES - 1], values[VALUES - 2]);
    assert_int_equal(sb_graph_add_output(b.graph, builder_binary(&b, "Add", sum, values[0]), NULL), SB_OK);
    return b;
}

static void test_random_graphs(void **state) {
    (void)state;
    int fused = 0;
    for (uint64_t seed = 100; seed < 160; seed++) {
        random_source source = {seed * 7919};
        int64_t rows = random_between(&source, 0, 9);
        sb_tensor *inputs[3] = {random_tensor(&source, 2, (int64_t[]){rows, 64}),
                                random_tensor(&source, 2, (int64_t[]){rows, 64}),
                                random_tensor(&source, 1, (int64_t[]){64})};
        builder plain = random_graph(seed), optimised = random_graph(seed);
        builder_finish(&plain);
        run_all_passes(&optimised);
        fused += builder_count(&optimised, "Fused");
        sb_tensor *expected;
        builder_run(&plain, true, SB_ISA_SCALAR, 1, inputs, &expected);
        check_output(&plain, inputs, expected);
        check_output(&optimised, inputs, expected);
        sb_tensor_release(expected);
        for (int i = 0; i < 3; i++)
            sb_tensor_release(inputs[i]);
        builder_destroy(&plain);
        builder_destroy(&optimised);
    }
    assert_true(fused > 60); /* else the graphs no longer test fusing */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_fuse),
        cmocka_unit_test(test_fuse_16_bits),
        cmocka_unit_test(test_fuse_leaves_training),
        cmocka_unit_test(test_random_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
