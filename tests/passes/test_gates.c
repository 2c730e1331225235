/* A gate and what it opens, two products of one input of 16 bits, and SwiGLU of both become one node. No bit changes; what only looks
 * like it stays as it is; and no failure leaves anything behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/allocation.h"
#include "ops/gated_nodes.h"
#include "ops/real.h"
#include "support/graph_builder.h"
#include "support/random.h"

enum { WIDTH = 40, COLUMNS = 24 };

/* What a layer is like; all false: as Llama's are. */
typedef struct layer {
    sb_dtype dtype;
    bool weights_by_rows, value_first, other_alpha, gate_read, product_leaves, third_product, bias;
} layer;

static sb_tensor *numbers(random_source *source, sb_dtype dtype, int rank, const int64_t *dims) {
    sb_tensor *tensor;
    assert_int_equal(sb_tensor_create(dtype, rank, dims, &tensor, NULL), SB_OK);
    for (int64_t i = 0; i < sb_tensor_elements(tensor); i++)
        sb_real_store_f32(dtype, tensor->data, i, (float)random_between(source, -900, 900) / 512);
    return tensor;
}

static sb_value_id project(const layer *layer, builder *b, random_source *source, sb_value_id x, int64_t columns) {
    sb_tensor *tensor = numbers(source, layer->dtype, 2,
                                layer->weights_by_rows ? (int64_t[]){WIDTH, columns} : (int64_t[]){columns, WIDTH}),
              *view;
    tensor->storage->dispensable = true;
    if (!layer->weights_by_rows) {
        assert_int_equal(sb_tensor_transpose(tensor, (int[]){1, 0}, &view, NULL), SB_OK);
        sb_tensor_release(tensor);
        tensor = view;
    }
    sb_value_id y = builder_binary(b, "MatMul", x, builder_constant(b, tensor));
    return layer->bias ? builder_binary(b, "Add", y, builder_constant(b, numbers(source, layer->dtype, 1, &columns)))
                       : y;
}

/* x [2, n, WIDTH]. */
static builder make_layer(const layer *layer) {
    random_source source = {5};
    builder b = builder_create();
    sb_attributes attributes = {0};
    sb_value_id x = builder_input(&b, layer->dtype, 3, (int64_t[]){2, -1, WIDTH}), last;
    sb_value_id gate = project(layer, &b, &source, x, COLUMNS);
    sb_value_id value = project(layer, &b, &source, x, COLUMNS);
    const float alpha = layer->other_alpha ? 1.702f : 1.0f;
    sb_value_id pair[] = {layer->value_first ? value : gate, layer->value_first ? gate : value};
    assert_int_equal(sb_attributes_add_floats(&attributes, "alpha", true, 1, &alpha, NULL), SB_OK);
    last = builder_node(&b, "SwiGLU", 2, pair, &attributes);
    if (layer->gate_read || layer->third_product) {
        sb_value_id read = layer->gate_read ? gate : project(layer, &b, &source, x, COLUMNS);
        sb_value_id other = builder_constant(&b, numbers(&source, layer->dtype, 2, (int64_t[]){COLUMNS, 8}));
        assert_int_equal(sb_graph_add_output(b.graph, builder_binary(&b, "MatMul", read, other), NULL), SB_OK);
    }
    if (layer->product_leaves)
        assert_int_equal(sb_graph_add_output(b.graph, value, NULL), SB_OK);
    assert_int_equal(sb_graph_add_output(b.graph, last, NULL), SB_OK);
    return b;
}

static void run_passes(builder *b) {
    sb_error error = {SB_OK, ""};
    builder_finish(b);
    if (sb_passes_run(b->graph, b->scope, &error) != SB_OK)
        fail_msg("%s", error.message);
}

static bool has_gated_node(const builder *b) {
    for (size_t n = 0; n < b->graph->node_count; n++) {
        if (sb_gated_nodes_are(b->graph->nodes[n]))
            return true;
    }
    return false;
}

/* That the graph gives what its nodes give one by one, by the definitions. */
static void check_bits(const layer *layer, const builder *optimised) {
    static const int64_t rows[] = {1, 0, 3, 70};
    static const sb_isa isas[] = {SB_ISA_SCALAR, SB_ISA_AVX2, SB_ISA_AVX512};
    builder plain = make_layer(layer);
    builder_finish(&plain);
    for (int i = 0; i < 12; i++) {
        random_source source = {(uint64_t)i};
        sb_isa isa = isas[i % 3] <= sb_isa_detect() ? isas[i % 3] : SB_ISA_SCALAR;
        sb_tensor *x = numbers(&source, layer->dtype, 3, (int64_t[]){2, rows[i / 3], WIDTH}), *expected[3], *got[3];
        builder_run(&plain, true, SB_ISA_SCALAR, 1, &x, expected);
        builder_run(optimised, false, isa, 1 + i % 3, &x, got);
        for (size_t o = 0; o < plain.graph->output_count; o++) {
            assert_true(sb_tensor_equal(got[o], expected[o]));
            sb_tensor_release(got[o]);
            sb_tensor_release(expected[o]);
        }
        sb_tensor_release(x);
    }
    builder_destroy(&plain);
}

/* One node is left, and of the weights the joined ones. */
static void test_gated(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        const layer layer = {.dtype = i == 0 ? SB_F16 : SB_BF16};
        builder b = make_layer(&layer);
        run_passes(&b);
        assert_int_equal(b.graph->node_count, 1);
        assert_true(has_gated_node(&b));
        assert_int_equal(builder_matrix_bytes(&b), 2 * COLUMNS * WIDTH * 2);
        check_bits(&layer, &b);
        builder_destroy(&b);
    }
}

/* Weights by rows, the value in front of its gate, another alpha, somebody else who reads, a third product, biases, f32. */
static void test_apart(void **state) {
    (void)state;
    const layer layers[] = {{.dtype = SB_F16, .weights_by_rows = true},
                            {.dtype = SB_BF16, .value_first = true},
                            {.dtype = SB_BF16, .other_alpha = true},
                            {.dtype = SB_F16, .gate_read = true},
                            {.dtype = SB_BF16, .product_leaves = true},
                            {.dtype = SB_BF16, .third_product = true},
                            {.dtype = SB_F16, .bias = true},
                            {.dtype = SB_F32}};
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        builder b = make_layer(&layers[i]);
        run_passes(&b);
        assert_false(has_gated_node(&b));
        check_bits(&layers[i], &b);
        builder_destroy(&b);
    }
}

/* Whichever allocation fails, that is what is said, and nothing stays behind. */
static void test_failing_allocations(void **state) {
    (void)state;
    const layer layer = {.dtype = SB_BF16};
    sb_status status = SB_ERROR_OUT_OF_MEMORY;
    int64_t before = sb_allocation_count().live_blocks;
    for (int64_t successes = 0; status != SB_OK; successes++) {
        builder b = make_layer(&layer);
        builder_finish(&b);
        sb_allocation_fail_after(successes, false);
        status = sb_passes_run(b.graph, b.scope, NULL);
        sb_allocation_fail_after(-1, false);
        assert_true(status == SB_OK || status == SB_ERROR_OUT_OF_MEMORY);
        assert_true(status != SB_OK || (successes > 50 && has_gated_node(&b)));
        builder_destroy(&b);
        assert_int_equal(sb_allocation_count().live_blocks, before);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gated), cmocka_unit_test(test_apart),
                                       cmocka_unit_test(test_failing_allocations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
