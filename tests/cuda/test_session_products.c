/* Sessions whose products are of f16 and bf16: all take the schedules of <samebit/gemm.h>. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "session_models.h"

/* The names of the tasks of MatMul and Gemm in one run. */
typedef struct seen {
    int products, of_schedules;
} seen;

static sb_status look(void *context, const sb_task_span *spans, size_t count, sb_error *error) {
    seen *seen = context;
    (void)error;
    for (size_t i = 0; i < count; i++) {
        bool is_product = strcmp(spans[i].op, "MatMul") == 0 || strcmp(spans[i].op, "Gemm") == 0;
        seen->products += is_product;
        seen->of_schedules += is_product && strstr(spans[i].task, "gemm16") != NULL;
    }
    return SB_OK;
}

/* A layer over rows of several batches, a head each way, scores of heads that lie beside each other, and what comes of
 * them through a layer with a bias, which is the same for all rows or not. */
#define LAYERS_INPUTS 1
#define LAYERS_OUTPUTS 3
static sb_model *layers_of(sb_dtype dtype, bool passes) {
    static const int64_t x_dims[] = {2, -1, 64};
    builder b = builder_create();
    sb_value_id x = builder_input(&b, dtype, 3, x_dims);
    sb_value_id wide = builder_constant(&b, random_tensor(dtype, 2, (int64_t[]){64, 48}, 1));
    sb_value_id narrow = builder_constant(&b, random_tensor(dtype, 2, (int64_t[]){40, 48}, 2));
    sb_value_id bias = builder_constant(&b, random_tensor(dtype, 1, (int64_t[]){40}, 3));
    sb_value_id layer = builder_binary(&b, "MatMul", x, wide);             /* 2 n 48 */
    sb_value_id heads = reshape(&b, layer, 4, (int64_t[]){2, -1, 3, 16});  /* 2 n 3 16 */
    sb_value_id across = transpose(&b, heads, 4, (int64_t[]){0, 2, 1, 3}); /* 2 3 n 16 */
    sb_value_id turned = transpose(&b, heads, 4, (int64_t[]){0, 2, 3, 1}); /* 2 3 16 n */
    sb_value_id scores = builder_binary(&b, "MatMul", across, turned);     /* 2 3 n n */
    sb_value_id squares = builder_binary(&b, "MatMul", scores, scores);    /* 2 3 n n */
    sb_value_id rows = reshape(&b, layer, 2, (int64_t[]){-1, 48});         /* 2n 48 */
    sb_value_id sums = attribute_node(&b, "Gemm", 3, (sb_value_id[]){rows, narrow, bias}, "transB", false, 1,
                                      (int64_t[]){1}); /* 2n 40 */
    sb_value_id more =
        attribute_node(&b, "Gemm", 3, (sb_value_id[]){rows, narrow, sums}, "transB", false, 1, (int64_t[]){1});
    mark_output(&b, squares);
    mark_output(&b, sums);
    mark_output(&b, more);
    return model_of(&b, passes);
}

static sb_model *layers_f16(bool passes) {
    return layers_of(SB_F16, passes);
}

static sb_model *layers_bf16(bool passes) {
    return layers_of(SB_BF16, passes);
}

static void check_layers(sb_model *(*make)(bool passes)) {
    static const int64_t rows[] = {1, 5, 64, 67};
    for (int passes = 0; passes < 2; passes++) {
        setting s = start(make, passes != 0);
        for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
            sb_session *session = open_session(&s, mode, false, NULL);
            for (int i = 0; i < 4 * 3; i++) {
                sb_dtype dtype = sb_model_input(s.model, 0)->dtype;
                sb_tensor *x = random_tensor(dtype, 3, (int64_t[]){2, rows[i / 3], 64}, 100 + (uint64_t)i);
                run_both(session, s.cpu, s.device, LAYERS_INPUTS, &x, LAYERS_OUTPUTS);
                sb_tensor_release(x);
            }
            sb_session_destroy(session);
        }
        finish(&s);
    }
}

static void test_layers(void **unused) {
    check_layers(layers_f16);
    check_layers(layers_bf16);
}

/* All products take a schedule, also those over heads of several samples, whose batches have two steps. */
static void test_schedules(void **unused) {
    setting s = start(layers_f16, false);
    seen seen = {0, 0};
    sb_session_options options = options_on(s.device);
    options.task_observer = look;
    options.task_observer_context = &seen;
    sb_session *session = session_with(s.model, &options);
    sb_tensor *x = random_tensor(SB_F16, 3, (int64_t[]){2, 7, 64}, 5), *outputs[LAYERS_OUTPUTS];
    run_session(session, &x, outputs);
    assert_int_equal(seen.products, 5);
    assert_int_equal(seen.of_schedules, 5);
    release_all(outputs, LAYERS_OUTPUTS);
    sb_tensor_release(x);
    sb_session_destroy(session);
    finish(&s);
}

/* What placement says of a product: which schedule it takes, and what keeps it from the quicker ones. */
typedef struct told {
    int products, quick,
        aligned; /* of Hopper's own; those that are not, for strides that are no multiples of 16 bytes */
} told;

static void note_way(void *context, const sb_placed_node *node) {
    told *told = context;
    if (strcmp(node->op, "MatMul") != 0 && strcmp(node->op, "Gemm") != 0)
        return;
    told->products++;
    assert_non_null(node->way);
    bool is_quick = strncmp(node->way, "general", 7) != 0;
    told->quick += is_quick;
    told->aligned += node->slow != NULL && strstr(node->slow, "multiples of 16 bytes") != NULL;
    assert_true(!is_quick || node->slow == NULL);
}

static told ways_of(const setting *s, sb_session *session, int64_t rows) {
    sb_tensor *x = random_tensor(SB_BF16, 3, (int64_t[]){2, rows, 64}, 5), *outputs[LAYERS_OUTPUTS];
    told told = {0};
    for (int i = 0; i < 3; i++) { /* also when a recording is replayed */
        run_session(session, &x, outputs);
        release_all(outputs, LAYERS_OUTPUTS);
    }
    assert_int_equal(sb_session_visit_placement(session, note_way, &told), 0);
    sb_tensor_release(x);
    return told;
}

static void test_ways(void **unused) {
    setting s = start(layers_bf16, false);
    sb_session *session = open_session(&s, SB_GRAPHS_BUILD, false, NULL);
    told even = ways_of(&s, session, 64), odd = ways_of(&s, session, 7);
    assert_int_equal(even.products, 5);
    assert_int_equal(even.quick, 5);
    assert_int_equal(odd.products, 5);
    assert_int_equal(odd.quick, 4); /* all but the product of scores, whose rows have 7 elements */
    assert_int_equal(odd.aligned, 1);
    sb_session_destroy(session);
    finish(&s);
}

/* A block of a network as exporters write it: a layer with a bias and Relu, one with a bias and what went around it, and
 * scores that are divided and masked. Nodes behind a product are computed with it. */
#define BLOCK_INPUTS 2
#define BLOCK_OUTPUTS 2
static sb_model *block_of(sb_dtype dtype, bool passes) {
    builder b = builder_create();
    sb_value_id x = builder_input(&b, dtype, 3, (int64_t[]){2, -1, 64});
    sb_value_id mask = builder_input(&b, dtype, 4, (int64_t[]){2, 1, 1, -1});
    sb_value_id there = builder_constant(&b, random_tensor(dtype, 2, (int64_t[]){64, 48}, 1));
    sb_value_id back = builder_constant(&b, random_tensor(dtype, 2, (int64_t[]){48, 64}, 2));
    sb_value_id bias = builder_constant(&b, random_tensor(dtype, 1, (int64_t[]){48}, 3));
    sb_value_id other_bias = builder_constant(&b, random_tensor(dtype, 1, (int64_t[]){64}, 4));
    sb_value_id divisor = builder_constant(&b, random_tensor(dtype, 0, NULL, 5));
    sb_value_id hidden =
        builder_unary(&b, "Relu", builder_binary(&b, "Add", builder_binary(&b, "MatMul", x, there), bias));
    sb_value_id sum = builder_binary(&b, "Add", other_bias, builder_binary(&b, "MatMul", hidden, back));
    sb_value_id heads = reshape(&b, hidden, 4, (int64_t[]){2, -1, 3, 16});
    sb_value_id scores = builder_binary(&b, "MatMul", transpose(&b, heads, 4, (int64_t[]){0, 2, 1, 3}),
                                        transpose(&b, heads, 4, (int64_t[]){0, 2, 3, 1}));
    mark_output(&b, builder_binary(&b, "Add", x, sum));
    mark_output(&b, builder_binary(&b, "Add", builder_binary(&b, "Div", scores, divisor), mask));
    return model_of(&b, passes);
}

static sb_model *block_f16(bool passes) {
    return block_of(SB_F16, passes);
}

static sb_model *block_bf16(bool passes) {
    return block_of(SB_BF16, passes);
}

static void check_blocks(sb_model *(*make)(bool passes)) {
    static const int64_t rows[] = {1, 5, 64, 67};
    for (int passes = 0; passes < 2; passes++) {
        setting s = start(make, passes != 0);
        for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
            sb_session *session = open_session(&s, mode, false, NULL);
            for (int i = 0; i < 4 * 3; i++) {
                sb_dtype dtype = sb_model_input(s.model, 0)->dtype;
                sb_tensor *inputs[BLOCK_INPUTS] = {
                    random_tensor(dtype, 3, (int64_t[]){2, rows[i / 3], 64}, 200 + (uint64_t)i),
                    random_tensor(dtype, 4, (int64_t[]){2, 1, 1, rows[i / 3]}, 300 + (uint64_t)i)};
                run_both(session, s.cpu, s.device, BLOCK_INPUTS, inputs, BLOCK_OUTPUTS);
                for (int j = 0; j < BLOCK_INPUTS; j++)
                    sb_tensor_release(inputs[j]);
            }
            sb_session_destroy(session);
        }
        finish(&s);
    }
}

static void test_blocks(void **unused) {
    check_blocks(block_f16);
    check_blocks(block_bf16);
}

static sb_status look_at_fused(void *context, const sb_task_span *spans, size_t count, sb_error *error) {
    seen *seen = context;
    (void)error;
    for (size_t i = 0; i < count; i++) {
        bool is_product = spans[i].op != NULL && strcmp(spans[i].op, "Fused") == 0;
        seen->products += is_product;
        seen->of_schedules += is_product && strstr(spans[i].task, "fused") != NULL;
    }
    return SB_OK;
}

/* A task for each product, whose kernel has the nodes behind it. */
static void test_nodes_behind(void **unused) {
    setting s = start(block_f16, true);
    seen seen = {0, 0};
    sb_session_options options = options_on(s.device);
    options.task_observer = look_at_fused;
    options.task_observer_context = &seen;
    sb_session *session = session_with(s.model, &options);
    sb_tensor *inputs[BLOCK_INPUTS] = {random_tensor(SB_F16, 3, (int64_t[]){2, 64, 64}, 5),
                                       random_tensor(SB_F16, 4, (int64_t[]){2, 1, 1, 64}, 6)},
              *outputs[BLOCK_OUTPUTS];
    run_session(session, inputs, outputs);
    assert_int_equal(seen.products, 3);
    assert_int_equal(seen.of_schedules, 3);
    release_all(outputs, BLOCK_OUTPUTS);
    release_all(inputs, BLOCK_INPUTS);
    sb_session_destroy(session);
    finish(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers), cmocka_unit_test(test_schedules),    cmocka_unit_test(test_ways),
        cmocka_unit_test(test_blocks), cmocka_unit_test(test_nodes_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
