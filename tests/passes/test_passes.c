/* Passes change graphs, never bits: what each one does to a graph made for it,
 * and random graphs with all of them on and off. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "numerics/convert.h"
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

/* The rows that one index picks along axis 1 of [n, 5, 3, 4]: a view where the index is certainly there, whoever comes behind; and never
 * along the last axis, or where the axis may be shorter. */
static void test_picks(void **state) {
    (void)state;
    static const struct {
        int rank; /* of the indices */
        int64_t index, axis;
        bool is_view;
    } cases[] = {{0, 0, 1, true},  {0, 4, 1, true},  {0, -1, -3, true}, {0, -5, 1, true}, {1, 2, 1, true},
                 {1, -1, 2, true}, {0, 5, 1, false}, {0, -6, 1, false}, {0, 1, 3, false}, {0, 0, 0, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        random_source source = {3 + i};
        builder b = builder_create();
        sb_value_id x = builder_input(&b, SB_F32, 4, (int64_t[]){-1, 5, 3, 4});
        sb_tensor *index;
        assert_int_equal(sb_tensor_create(SB_S64, cases[i].rank, (int64_t[]){1}, &index, NULL), SB_OK);
        *(int64_t *)sb_tensor_mutable_data(index) = cases[i].index;
        sb_attributes attributes = {0};
        assert_int_equal(sb_attributes_add_ints(&attributes, "axis", true, 1, &cases[i].axis, NULL), SB_OK);
        sb_value_id y = builder_node(&b, "Gather", 2, (sb_value_id[]){x, builder_constant(&b, index)}, &attributes);
        assert_int_equal(sb_graph_add_output(b.graph, builder_unary(&b, "Neg", y), NULL), SB_OK);
        assert_int_equal(sb_graph_add_output(b.graph, y, NULL), SB_OK);
        bool fails = cases[i].index >= 5 || cases[i].index < -5;
        sb_tensor *input = random_tensor(&source, 4, (int64_t[]){2, 5, 3, 4}), *expected[2], *output[2];
        builder_finish(&b);
        if (!fails)
            builder_run(&b, true, SB_ISA_SCALAR, 1, &input, expected);
        assert_int_equal(sb_passes_run(b.graph, b.scope, NULL), SB_OK);
        assert_int_equal(builder_count(&b, "Gather"), !cases[i].is_view);
        assert_int_equal(builder_count(&b, "Slice"), cases[i].is_view);
        assert_int_equal(builder_count(&b, "Squeeze"), cases[i].is_view && cases[i].rank == 0);
        for (int o = 0; o < 2 && !fails; o++) {
            if (o == 0)
                builder_run(&b, false, SB_ISA_AVX2, 2, &input, output);
            assert_true(sb_tensor_equal(output[o], expected[o]));
            sb_tensor_release(output[o]);
            sb_tensor_release(expected[o]);
        }
        sb_tensor_release(input);
        builder_destroy(&b);
    }
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

/* Products of 16 bits take sums, factors and bounds along; elementary functions behind them, and what reads those, make a
 * node of their own. */
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
        assert_int_equal(builder_count(&b, "Fused"), dtypes[i] == SB_F64 ? 1 : 2);
        assert_int_equal(b.graph->node_count, 3);
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

/* Quantized networks: x -> QuantizeLinear -> DequantizeLinear -> Exp -> QuantizeLinear -> DequantizeLinear, of the integer's
 * dtype; what else is read of the first integers, and how many scales there are. */
typedef enum integer_reader { TURNED_BACK, TURNED_BACK_TWICE, VIEWED, GIVEN_OUT } integer_reader;

static sb_value_id scalar(builder *b, sb_dtype dtype, int count, int64_t bits) {
    sb_tensor *tensor;
    assert_int_equal(sb_tensor_create(dtype, 1, (int64_t[]){count}, &tensor, NULL), SB_OK);
    for (int i = 0; i < count; i++)
        memcpy(tensor->data + i * (int64_t)sb_dtype_size(dtype), &bits, sb_dtype_size(dtype));
    return builder_constant(b, tensor);
}

static builder quantized(sb_dtype integer, integer_reader reader, int scales) {
    builder b = builder_create();
    sb_value_id there[3] = {builder_input(&b, SB_F32, 2, (int64_t[]){-1, 64}),
                            scalar(&b, SB_F32, scales, sb_bits_from_f32(0.013f)), scalar(&b, integer, scales, 77)};
    sb_value_id integers = builder_node(&b, "QuantizeLinear", 3, there, NULL);
    sb_value_id back = builder_node(&b, "DequantizeLinear", 3, (sb_value_id[]){integers, there[1], there[2]}, NULL);
    sb_value_id again[3] = {builder_unary(&b, "Exp", back), there[1], there[2]};
    again[0] = builder_node(&b, "QuantizeLinear", 3, again, NULL);
    assert_int_equal(sb_graph_add_output(b.graph, builder_node(&b, "DequantizeLinear", 3, again, NULL), NULL), SB_OK);
    if (reader == GIVEN_OUT)
        assert_int_equal(sb_graph_add_output(b.graph, integers, NULL), SB_OK);
    if (reader == VIEWED)
        assert_int_equal(sb_graph_add_output(b.graph, builder_unary(&b, "Transpose", integers), NULL), SB_OK);
    if (reader == TURNED_BACK_TWICE) {
        sb_value_id other[3] = {integers, scalar(&b, SB_F32, 1, sb_bits_from_f32(-3.0f)), scalar(&b, integer, 1, 3)};
        sb_value_id second = builder_node(&b, "DequantizeLinear", 3, other, NULL);
        assert_int_equal(sb_graph_add_output(b.graph, builder_unary(&b, "ReduceMax", second), NULL), SB_OK);
    }
    return b;
}

static void check_quantized(sb_dtype integer, integer_reader reader, int scales, int fused, int left) {
    random_source source = {integer};
    sb_tensor *input = random_tensor(&source, 2, (int64_t[]){37, 64}), *expected[2] = {NULL, NULL}, *got[2];
    builder plain = quantized(integer, reader, scales), optimised = quantized(integer, reader, scales);
    builder_finish(&plain);
    run_all_passes(&optimised);
    assert_int_equal(builder_count(&optimised, "Fused"), fused);
    assert_int_equal(builder_count(&optimised, "QuantizeLinear"), left);
    builder_run(&plain, true, SB_ISA_SCALAR, 1, &input, expected);
    for (int isa = SB_ISA_SCALAR; isa <= (int)sb_isa_detect(); isa++) {
        builder_run(&optimised, false, (sb_isa)isa, 2, &input, got);
        for (int o = 0; o < (int)plain.graph->output_count; o++) {
            assert_true(sb_tensor_equal(got[o], expected[o]));
            sb_tensor_release(got[o]);
        }
    }
    for (int o = 0; o < (int)plain.graph->output_count; o++)
        sb_tensor_release(expected[o]);
    sb_tensor_release(input);
    builder_destroy(&plain);
    builder_destroy(&optimised);
}

/* Integers are no more than a step where all that read them turn them back, by one scale; else they are made. */
static void test_fuse_quantized(void **state) {
    (void)state;
    static const sb_dtype integers[] = {SB_U8, SB_S8, SB_U16, SB_S16};
    for (int i = 0; i < 4; i++) {
        check_quantized(integers[i], TURNED_BACK, 1, 1, 0);
        check_quantized(integers[i], TURNED_BACK_TWICE, 1, 1, 1);
        check_quantized(integers[i], VIEWED, 1, 1, 1);
        check_quantized(integers[i], GIVEN_OUT, 1, 1, 1);
        check_quantized(integers[i], TURNED_BACK, 64, 0, 2);
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
        cmocka_unit_test(test_fold),           cmocka_unit_test(test_views),
        cmocka_unit_test(test_picks),          cmocka_unit_test(test_merge),
        cmocka_unit_test(test_sweep),          cmocka_unit_test(test_fuse),
        cmocka_unit_test(test_fuse_16_bits),   cmocka_unit_test(test_fuse_leaves_training),
        cmocka_unit_test(test_fuse_quantized), cmocka_unit_test(test_random_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
