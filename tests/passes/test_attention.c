/* A layer of attention in 16 bits as exporters write it: its products over one input are joined, and its nodes from the scores on
 * become one. Neither changes a bit; what only looks like it stays as it is; and no failure leaves anything behind. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/allocation.h"
#include "ops/real.h"
#include "support/graph_builder.h"
#include "support/random.h"

enum { WIDTH = 32, HEADS = 2 };

/* What a layer is like; all false: as BERT's are. */
typedef struct layer {
    sb_dtype dtype;
    /* of the products */
    bool no_bias, turned_weights, bias_on_one, others_weights, weight_read_twice, result_read, dense_reader,
        merged_heads, narrow_columns;
    /* of attention */
    bool scores_read, scores_are_values, weights_leave, subtracts, other_axis, scale_of_keys, more_keys, casts;
} layer;

static sb_tensor *numbers(random_source *source, sb_dtype dtype, int rank, const int64_t *dims) {
    sb_tensor *tensor;
    assert_int_equal(sb_tensor_create(dtype, rank, dims, &tensor, NULL), SB_OK);
    for (int64_t i = 0; i < sb_tensor_elements(tensor); i++)
        sb_real_store_f32(dtype, tensor->data, i, (float)random_between(source, -400, 400) / 1024);
    return tensor;
}

static sb_value_id integers(builder *b, int count, const int64_t *values) {
    sb_tensor *tensor;
    int64_t dims[] = {count};
    assert_int_equal(sb_tensor_create(SB_S64, 1, dims, &tensor, NULL), SB_OK);
    memcpy(sb_tensor_mutable_data(tensor), values, (size_t)count * sizeof *values);
    return builder_constant(b, tensor);
}

static sb_value_id transposed(builder *b, sb_value_id value, int64_t first, int64_t second, int64_t third,
                              int64_t last) {
    sb_attributes attributes = {0};
    int64_t order[] = {first, second, third, last};
    assert_int_equal(sb_attributes_add_ints(&attributes, "perm", false, 4, order, NULL), SB_OK);
    return builder_node(b, "Transpose", 1, &value, &attributes);
}

static sb_value_id weights(const layer *layer, builder *b, random_source *source, int64_t columns) {
    int64_t dims[] = {WIDTH, columns}, turned[] = {columns, WIDTH};
    sb_tensor *tensor = numbers(source, layer->dtype, 2, layer->turned_weights ? turned : dims), *view;
    tensor->storage->dispensable = !layer->others_weights;
    if (!layer->turned_weights)
        return builder_constant(b, tensor);
    assert_int_equal(sb_tensor_transpose(tensor, (int[]){1, 0}, &view, NULL), SB_OK);
    sb_tensor_release(tensor);
    return builder_constant(b, view);
}

/* A linear layer, cut into heads. */
static sb_value_id project(const layer *layer, builder *b, random_source *source, sb_value_id x, int number) {
    int64_t columns = layer->narrow_columns ? HEADS * 6 : number == 2 ? WIDTH / 2 : WIDTH;
    int64_t apart[] = {0, 0, HEADS, columns / HEADS}, joined[] = {-1, columns / HEADS};
    sb_value_id weight = weights(layer, b, source, columns), y = builder_binary(b, "MatMul", x, weight);
    if (layer->weight_read_twice && number == 0)
        assert_int_equal(sb_graph_add_output(b->graph, weight, NULL), SB_OK);
    if (!layer->no_bias && (!layer->bias_on_one || number == 0))
        y = builder_binary(b, "Add", number == 1 ? builder_constant(b, numbers(source, layer->dtype, 1, &columns)) : y,
                           number == 1 ? y : builder_constant(b, numbers(source, layer->dtype, 1, &columns)));
    if (layer->result_read && number == 1)
        assert_int_equal(sb_graph_add_output(b->graph, y, NULL), SB_OK);
    if (layer->dense_reader)
        y = builder_unary(b, "Relu", y);
    if (layer->merged_heads) {
        y = builder_binary(b, "Reshape", y, integers(b, 2, joined));
        y = builder_binary(b, "Reshape", y, integers(b, 4, (int64_t[]){-1, 5, HEADS, columns / HEADS}));
    } else {
        y = builder_binary(b, "Reshape", y, integers(b, 4, apart));
    }
    return transposed(b, y, 0, 2, number == 1 ? 3 : 1, number == 1 ? 1 : 3);
}

static sb_value_id number(builder *b, sb_dtype dtype, float value) {
    sb_tensor *tensor;
    assert_int_equal(sb_tensor_create(dtype, 0, NULL, &tensor, NULL), SB_OK);
    sb_real_store_f32(dtype, tensor->data, 0, value);
    return builder_constant(b, tensor);
}

static sb_value_id cast(builder *b, sb_value_id value, sb_dtype dtype) {
    sb_attributes attributes = {0};
    int64_t to = dtype == SB_F32 ? 1 : dtype == SB_F16 ? 10 : 16;
    assert_int_equal(sb_attributes_add_ints(&attributes, "to", true, 1, &to, NULL), SB_OK);
    return builder_node(b, "Cast", 1, &value, &attributes);
}

/* From the scores to what the values weigh; of `keys` rows that are as many as the queries unless more are wanted. */
static sb_value_id attend(const layer *layer, builder *b, sb_value_id query, sb_value_id key, sb_value_id value,
                          sb_value_id mask) {
    sb_attributes attributes = {0};
    sb_value_id scores = builder_binary(b, "MatMul", query, key);
    sb_value_id scale = layer->scale_of_keys ? mask : number(b, layer->dtype, 4);
    scores = builder_binary(b, "Div", scores, scale);
    if (layer->casts)
        scores = cast(b, scores, SB_F32);
    scores = builder_binary(b, layer->subtracts ? "Sub" : "Add", scores, layer->casts ? cast(b, mask, SB_F32) : mask);
    if (layer->scores_read)
        assert_int_equal(sb_graph_add_output(b->graph, builder_unary(b, "ReduceMax", scores), NULL), SB_OK);
    int64_t axis = layer->other_axis ? 2 : -1;
    assert_int_equal(sb_attributes_add_ints(&attributes, "axis", true, 1, &axis, NULL), SB_OK);
    sb_value_id shares = builder_node(b, "Softmax", 1, &scores, &attributes);
    if (layer->weights_leave)
        assert_int_equal(sb_graph_add_output(b->graph, shares, NULL), SB_OK);
    if (layer->casts)
        shares = cast(b, shares, layer->dtype);
    return builder_binary(b, "MatMul", shares, layer->scores_are_values ? scores : value);
}

/* x [n, 5, WIDTH] and a mask [n, 1, 1, 5]. */
static builder make_layer(const layer *layer) {
    random_source source = {11};
    builder b = builder_create();
    sb_value_id x = builder_input(&b, layer->dtype, 3, (int64_t[]){-1, 5, WIDTH});
    sb_value_id mask = builder_input(&b, layer->dtype, 4, (int64_t[]){-1, 1, 1, 5}), heads[3];
    for (int i = 0; i < 3; i++)
        heads[i] = project(layer, &b, &source, x, i);
    sb_value_id result = attend(layer, &b, heads[0], heads[1], heads[2], mask);
    assert_int_equal(sb_graph_add_output(b.graph, result, NULL), SB_OK);
    return b;
}

static void run_passes(builder *b) {
    sb_error error = {SB_OK, ""};
    builder_finish(b);
    if (sb_passes_run(b->graph, b->scope, &error) != SB_OK)
        fail_msg("%s", error.message);
}

/* That the graph gives what its nodes give one by one, by the definitions. */
static void check_bits(const layer *layer, const builder *optimised) {
    static const int64_t samples[] = {2, 0, 1};
    builder plain = make_layer(layer);
    builder_finish(&plain);
    for (int i = 0; i < 3; i++) {
        random_source source = {(uint64_t)i};
        sb_tensor *inputs[2] = {numbers(&source, layer->dtype, 3, (int64_t[]){samples[i], 5, WIDTH}),
                                numbers(&source, layer->dtype, 4, (int64_t[]){samples[i], 1, 1, 5})};
        sb_tensor *expected[2], *got[2];
        if (samples[i] != 0)
            sb_real_store_f32(layer->dtype, inputs[1]->data, 1, -INFINITY);
        builder_run(&plain, true, SB_ISA_SCALAR, 1, inputs, expected);
        builder_run(optimised, false, sb_isa_detect(), 2, inputs, got);
        for (size_t o = 0; o < plain.graph->output_count; o++) {
            assert_true(sb_tensor_equal(got[o], expected[o]));
            sb_tensor_release(got[o]);
            sb_tensor_release(expected[o]);
        }
        sb_tensor_release(inputs[0]);
        sb_tensor_release(inputs[1]);
    }
    builder_destroy(&plain);
}

/* How many graphs of nodes hold an op. */
static int count_deep(const sb_graph *graph, const char *op) {
    int count = 0;
    for (size_t n = 0; n < graph->node_count; n++) {
        const sb_graph *body = sb_node_graph(graph->nodes[n], "body");
        count += strcmp(graph->nodes[n]->op->name, op) == 0;
        count += body != NULL ? count_deep(body, op) : 0;
    }
    return count;
}

static bool is_one_attention(const builder *b) {
    for (size_t n = 0; n < b->graph->node_count; n++) {
        const sb_graph *body = sb_node_graph(b->graph->nodes[n], "body");
        if (body != NULL && body->node_count == 3 && strcmp(body->nodes[1]->op->name, "Softmax") == 0)
            return true;
    }
    return false;
}

/* BERT's layer becomes a product, three views with their reshapes and transposes, and attention; the single weights are gone. */
static void test_layer(void **state) {
    (void)state;
    const layer layers[] = {{.dtype = SB_F16},
                            {.dtype = SB_BF16},
                            {.dtype = SB_F16, .no_bias = true},
                            {.dtype = SB_BF16, .turned_weights = true}};
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        builder b = make_layer(&layers[i]);
        run_passes(&b);
        assert_int_equal(count_deep(b.graph, "MatMul"), 3);
        assert_int_equal(builder_count(&b, "Split"), 1);
        assert_int_equal(b.graph->node_count, 1 + 1 + 3 + 3 + 1);
        assert_true(is_one_attention(&b));
        assert_int_equal(builder_matrix_bytes(&b), (WIDTH + WIDTH + WIDTH / 2) * WIDTH * 2);
        check_bits(&layers[i], &b);
        builder_destroy(&b);
    }
}

/* Weights that somebody else has, columns that are no multiple of 16 bytes, readers that want their rows side by side. */
static void test_products_apart(void **state) {
    (void)state;
    const struct {
        layer layer;
        int products; /* of the five that stay */
    } cases[] = {{{.dtype = SB_F16, .others_weights = true}, 5}, {{.dtype = SB_F16, .weight_read_twice = true}, 4},
                 {{.dtype = SB_F16, .result_read = true}, 4},    {{.dtype = SB_F16, .dense_reader = true}, 5},
                 {{.dtype = SB_F16, .merged_heads = true}, 5},   {{.dtype = SB_BF16, .narrow_columns = true}, 5},
                 {{.dtype = SB_F16, .bias_on_one = true}, 4},    {{.dtype = SB_F32}, 5}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        builder b = make_layer(&cases[i].layer);
        run_passes(&b);
        assert_int_equal(count_deep(b.graph, "MatMul"), cases[i].products);
        assert_int_equal(builder_count(&b, "Split"), cases[i].products < 5);
        check_bits(&cases[i].layer, &b);
        builder_destroy(&b);
    }
}

/* What is no attention of one kernel: other nodes, other axes, values that others read, softmax in f32. */
static void test_no_attention(void **state) {
    (void)state;
    const layer layers[] = {{.dtype = SB_F16, .scores_read = true},       {.dtype = SB_F16, .weights_leave = true},
                            {.dtype = SB_F16, .subtracts = true},         {.dtype = SB_F16, .other_axis = true},
                            {.dtype = SB_F16, .scale_of_keys = true},     {.dtype = SB_F16, .casts = true},
                            {.dtype = SB_F16, .scores_are_values = true}, {.dtype = SB_F32}};
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        builder b = make_layer(&layers[i]);
        run_passes(&b);
        assert_false(is_one_attention(&b));
        check_bits(&layers[i], &b);
        builder_destroy(&b);
    }
}

/* Over a cache there are more keys than queries, and their number is open: the nodes stay single. With few keys, or as many as
 * queries, they do not. */
static void test_numbers_of_keys(void **state) {
    (void)state;
    const struct {
        int64_t rows, keys;
        bool is_one;
    } cases[] = {{-1, -2, false}, {3, -2, false},   {-1, -1, true}, {-1, 256, true},
                 {7, 257, false}, {300, 300, true}, {64, 300, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        builder b = builder_create();
        int64_t keys = cases[i].keys;
        sb_value_id query = builder_open_input(&b, SB_F16, 3, (int64_t[]){2, cases[i].rows, 16}, "rows");
        sb_value_id key = builder_open_input(&b, SB_F16, 3, (int64_t[]){2, 16, keys}, keys == -1 ? "rows" : "keys");
        sb_value_id value = builder_open_input(&b, SB_F16, 3, (int64_t[]){2, keys, 16}, keys == -1 ? "rows" : "keys");
        sb_attributes attributes = {0};
        assert_int_equal(sb_attributes_add_ints(&attributes, "axis", true, 1, (int64_t[]){2}, NULL), SB_OK);
        sb_value_id scores = builder_binary(&b, "MatMul", query, key);
        sb_value_id shares = builder_node(&b, "Softmax", 1, &scores, &attributes);
        sb_value_id result = builder_binary(&b, "MatMul", shares, value);
        assert_int_equal(sb_graph_add_output(b.graph, result, NULL), SB_OK);
        run_passes(&b);
        assert_int_equal(b.graph->node_count, cases[i].is_one ? 1 : 3);
        assert_int_equal(is_one_attention(&b), cases[i].is_one);
        builder_destroy(&b);
    }
}

/* Names that the pass would give, taken already. */
static void test_taken_names(void **state) {
    (void)state;
    const layer bert = {.dtype = SB_F16};
    builder first = make_layer(&bert), b = make_layer(&bert);
    run_passes(&first);
    builder_finish(&b);
    for (size_t v = b.graph->value_count; v < first.graph->value_count; v++) {
        sb_value_id value;
        assert_int_equal(sb_graph_add_value(b.graph, first.graph->values[v].name, &value, NULL), SB_OK);
    }
    assert_int_equal(sb_passes_run(b.graph, b.scope, NULL), SB_OK);
    for (size_t v = 0; v < b.graph->value_count; v++) {
        for (size_t w = 0; w < v; w++)
            assert_string_not_equal(b.graph->values[v].name, b.graph->values[w].name);
    }
    builder_destroy(&first);
    builder_destroy(&b);
}

/* Whichever allocation fails, that is what is said, and nothing stays behind. */
static void test_failing_allocations(void **state) {
    (void)state;
    const layer layers[] = {{.dtype = SB_F16}, {.dtype = SB_F16, .turned_weights = true}};
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        sb_status status = SB_ERROR_OUT_OF_MEMORY;
        int64_t before = sb_allocation_count().live_blocks;
        for (int64_t successes = 0; status != SB_OK; successes++) {
            builder b = make_layer(&layers[i]);
            builder_finish(&b);
            sb_allocation_fail_after(successes, false);
            status = sb_passes_run(b.graph, b.scope, NULL);
            sb_allocation_fail_after(-1, false);
            assert_true(status == SB_OK || status == SB_ERROR_OUT_OF_MEMORY);
            assert_true(status != SB_OK || (successes > 100 && is_one_attention(&b)));
            builder_destroy(&b);
            assert_int_equal(sb_allocation_count().live_blocks, before);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layer),        cmocka_unit_test(test_products_apart),
        cmocka_unit_test(test_no_attention), cmocka_unit_test(test_numbers_of_keys),
        cmocka_unit_test(test_taken_names),  cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
