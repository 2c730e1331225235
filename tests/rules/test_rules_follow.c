/* Following a symbol through graphs, and rules on symbolic facts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs the headers above first. */
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "rules/follow.h"
#include "support/failing.h"
#include "support/graph_builder.h"
#include "support/must.h"

#define N (-1)
#define DIMS(...)                                                                                                      \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) {                                           \
        __VA_ARGS__                                                                                                    \
    }

static sb_tensor *list_of(int count, const int64_t *values) {
    sb_tensor *tensor;
    int64_t length = count;
    MUST(sb_tensor_from_data(SB_S64, 1, &length, values, &tensor, error));
    return tensor;
}

static sb_value_id constant_list(builder *b, int count, const int64_t *values) {
    return builder_constant(b, list_of(count, values));
}

static sb_value_id node_with(builder *b, const char *op, const char *attribute, int64_t value, sb_value_id input) {
    sb_attributes attributes = {0};
    MUST(sb_attributes_add_ints(&attributes, attribute, true, 1, &value, error));
    return builder_node(b, op, 1, &input, &attributes);
}

/* Infers the graph and follows "n". */
static sb_followed follow(builder *b) {
    sb_followed followed;
    builder_finish(b);
    sb_fact *facts = calloc(b->graph->value_count, sizeof *facts);
    for (size_t v = 0; v < b->graph->value_count; v++)
        facts[v] = b->graph->values[v].fact; /* borrowed */
    MUST(sb_follow_symbol(b->graph, facts, "n", &followed, error));
    free(facts);
    return followed;
}

static void close_graph(builder *b, sb_followed *followed) {
    sb_followed_clear(followed);
    builder_destroy(b);
}

/* The verdict on the only node with that op. */
static const sb_followed_node *verdict(const builder *b, const sb_followed *followed, const char *op) {
    for (size_t n = 0; n < b->graph->node_count; n++) {
        if (strcmp(b->graph->nodes[n]->op->name, op) == 0)
            return &followed->nodes[n];
    }
    fail_msg("there is no %s", op);
    return NULL;
}

static void expect_kind(const builder *b, const sb_followed *followed, const char *op, sb_axis_kind kind) {
    const sb_followed_node *node = verdict(b, followed, op);
    if (node->kind != kind)
        fail_msg("%s is %s (%s), not %s", op, sb_axis_kind_name(node->kind), node->reason != NULL ? node->reason : "",
                 sb_axis_kind_name(kind));
    assert_true(node->touched);
    assert_true((node->reason == NULL) == (kind == SB_AXIS_INDEPENDENT));
}

/* softmax(x·W + b) over [n, 4]: rows stay apart. */
static void check_rows(void **state) {
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, DIMS(N, 8)), w = builder_input(&b, SB_F32, DIMS(8, 4));
    sb_value_id bias = builder_input(&b, SB_F32, DIMS(4));
    sb_value_id sum = builder_binary(&b, "Add", builder_binary(&b, "MatMul", x, w), bias);
    sb_value_id soft = node_with(&b, "Softmax", "axis", -1, sum);
    sb_value_id other = builder_unary(&b, "Relu", w);
    sb_followed followed = follow(&b);
    expect_kind(&b, &followed, "MatMul", SB_AXIS_INDEPENDENT);
    expect_kind(&b, &followed, "Add", SB_AXIS_INDEPENDENT);
    expect_kind(&b, &followed, "Softmax", SB_AXIS_INDEPENDENT);
    assert_false(verdict(&b, &followed, "Relu")->touched);
    assert_int_equal(followed.values[soft].extents[0], SB_DEPENDS_AFFINE);
    assert_int_equal(followed.values[soft].extents[1], SB_DEPENDS_NOT);
    assert_int_equal(followed.values[other].extents[0], SB_DEPENDS_NOT);
    close_graph(&b, &followed);
}

/* Attention over n keys: q·kᵀ has a row per query and a column per key, softmax and the product with v stop at n. */
static void check_attention(void **state) {
    builder b = builder_create();
    sb_value_id q = builder_input(&b, SB_F32, DIMS(1, 8)), k = builder_input(&b, SB_F32, DIMS(N, 8));
    sb_value_id v = builder_input(&b, SB_F32, DIMS(N, 8));
    sb_value_id scores = builder_binary(&b, "MatMul", q, builder_unary(&b, "Transpose", k));
    sb_value_id weights = node_with(&b, "Softmax", "axis", -1, scores);
    sb_value_id mixed = builder_binary(&b, "Mul", weights, weights);
    sb_value_id result = builder_node(&b, "Gemm", 2, (sb_value_id[]){mixed, v}, NULL);
    sb_followed followed = follow(&b);
    expect_kind(&b, &followed, "Transpose", SB_AXIS_INDEPENDENT);
    expect_kind(&b, &followed, "MatMul", SB_AXIS_INDEPENDENT);
    expect_kind(&b, &followed, "Softmax", SB_AXIS_BOUNDED);
    expect_kind(&b, &followed, "Gemm", SB_AXIS_BOUNDED);
    assert_int_equal(verdict(&b, &followed, "Gemm")->axis, 1);
    assert_int_equal(followed.values[result].extents[0], SB_DEPENDS_NOT);
    close_graph(&b, &followed);
}

/* Windows with a stride: the extent is a formula, but no affine one; behind it rows are still followed. */
static void check_windows(void **state) {
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, DIMS(1, 1, N));
    sb_attributes attributes = {0};
    MUST(sb_attributes_add_ints(&attributes, "kernel_shape", false, 1, (int64_t[]){2}, error));
    MUST(sb_attributes_add_ints(&attributes, "strides", false, 1, (int64_t[]){2}, error));
    sb_value_id pooled = builder_node(&b, "MaxPool", 1, &x, &attributes);
    builder_unary(&b, "Relu", pooled);
    sb_followed followed = follow(&b);
    expect_kind(&b, &followed, "MaxPool", SB_AXIS_BOUNDED);
    expect_kind(&b, &followed, "Relu", SB_AXIS_INDEPENDENT);
    assert_int_equal(followed.values[pooled].extents[2], SB_DEPENDS_OTHERWISE);
    close_graph(&b, &followed);
}

/* Extents as values: Shape reads one, and Expand makes an axis of it. */
static void check_values(void **state) {
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, DIMS(N, 3)), row = builder_input(&b, SB_F32, DIMS(1, 3));
    sb_value_id shape = builder_unary(&b, "Shape", x);
    sb_value_id wide = builder_binary(&b, "Expand", row, shape);
    sb_followed followed = follow(&b);
    expect_kind(&b, &followed, "Shape", SB_AXIS_BOUNDED);
    expect_kind(&b, &followed, "Expand", SB_AXIS_BOUNDED);
    assert_true(followed.values[shape].elements);
    assert_int_equal(followed.values[wide].extents[0], SB_DEPENDS_AFFINE);
    close_graph(&b, &followed);
}

/* [n, 3, 4] as [3n, 4]: n stays first. [3, n, 4] as [3n, 4]: rows of n are spread. */
static void check_merged(void **state) {
    static const int64_t wanted[] = {-1, 4};
    for (int spread = 0; spread < 2; spread++) {
        builder b = builder_create();
        sb_value_id x =
            spread != 0 ? builder_input(&b, SB_F32, DIMS(3, N, 4)) : builder_input(&b, SB_F32, DIMS(N, 3, 4));
        sb_value_id merged = builder_binary(&b, "Reshape", x, constant_list(&b, 2, wanted));
        sb_followed followed = follow(&b);
        expect_kind(&b, &followed, "Reshape", spread != 0 ? SB_AXIS_EXACT : SB_AXIS_INDEPENDENT);
        assert_int_equal(followed.values[merged].extents[0], SB_DEPENDS_AFFINE);
        close_graph(&b, &followed);
    }
}

/* [n, 12] as [n, 3, 4] and back, with the batch in front. */
static void check_heads(void **state) {
    static const int64_t apart[] = {2, -1, 3, 4};
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, DIMS(2, N, 12));
    sb_value_id heads = builder_binary(&b, "Reshape", x, constant_list(&b, 4, apart));
    sb_followed followed = follow(&b);
    expect_kind(&b, &followed, "Reshape", SB_AXIS_INDEPENDENT);
    assert_int_equal(followed.values[heads].extents[1], SB_DEPENDS_AFFINE);
    assert_int_equal(followed.values[heads].extents[2], SB_DEPENDS_NOT);
    close_graph(&b, &followed);
}

/* Rows joined behind a cache of n rows would begin at n. The same rows in front do not move. */
static void check_joined(void **state) {
    for (int behind = 0; behind < 2; behind++) {
        builder b = builder_create();
        sb_value_id cache = builder_input(&b, SB_F32, DIMS(N, 4)), fresh = builder_input(&b, SB_F32, DIMS(1, 4));
        sb_attributes attributes = {0};
        MUST(sb_attributes_add_ints(&attributes, "axis", true, 1, (int64_t[]){0}, error));
        sb_value_id all = builder_node(
            &b, "Concat", 2, behind != 0 ? (sb_value_id[]){cache, fresh} : (sb_value_id[]){fresh, cache}, &attributes);
        sb_followed followed = follow(&b);
        expect_kind(&b, &followed, "Concat", behind != 0 ? SB_AXIS_BOUNDED : SB_AXIS_INDEPENDENT);
        assert_int_equal(followed.values[all].extents[0], SB_DEPENDS_AFFINE);
        close_graph(&b, &followed);
    }
}

/* An axis that may be repeated is not known to be the same. */
static void check_repeated(void **state) {
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, DIMS(N, 4)), y = builder_input(&b, SB_F32, DIMS(5, 4));
    builder_binary(&b, "Add", x, y);
    sb_followed followed = follow(&b);
    expect_kind(&b, &followed, "Add", SB_AXIS_EXACT);
    close_graph(&b, &followed);
}

/* What data decide is exact, and what comes after it does not know n any more. */
static void check_data(void **state) {
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, DIMS(N));
    sb_value_id found = builder_unary(&b, "NonZero", x);
    builder_unary(&b, "Neg", found);
    sb_followed followed = follow(&b);
    expect_kind(&b, &followed, "NonZero", SB_AXIS_EXACT);
    assert_string_equal(verdict(&b, &followed, "NonZero")->reason, "the data decide the extents of the output");
    assert_false(verdict(&b, &followed, "Neg")->touched);
    close_graph(&b, &followed);
}

/* A slice whose bounds are inputs: its extent is known only when it runs. */
static void check_open_slice(void **state) {
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, DIMS(N, 4));
    sb_value_id start = builder_input(&b, SB_S64, DIMS(1)), end = builder_input(&b, SB_S64, DIMS(1));
    builder_node(&b, "Slice", 3, (sb_value_id[]){x, start, end}, NULL);
    sb_followed followed = follow(&b);
    expect_kind(&b, &followed, "Slice", SB_AXIS_EXACT);
    close_graph(&b, &followed);
}

/* A branch that captures an axis of n is planned exactly. */
static void check_captured(void **state) {
    builder b = builder_create();
    sb_value_id condition = builder_input(&b, SB_BOOL, 0, NULL), x = builder_input(&b, SB_F32, DIMS(N, 4)), output;
    sb_attributes attributes = {0};
    const char *const names[] = {"then_branch", "else_branch"};
    for (int i = 0; i < 2; i++) {
        sb_graph *body;
        sb_value_id inner, result;
        sb_attributes none = {0};
        MUST(sb_graph_create(names[i], &body, error));
        MUST(sb_graph_add_value(body, "x", &inner, error));
        MUST(sb_graph_add_input(body, inner, error));
        MUST(sb_graph_add_value(body, "y", &result, error));
        MUST(sb_graph_add_node(body, sb_op_find("", i == 0 ? "Relu" : "Neg"), 17, "node", 1, &inner, 0, 1, &result,
                               &none, NULL, error));
        MUST(sb_graph_add_output(body, result, error));
        MUST(sb_attributes_add_graph(&attributes, names[i], body, error));
    }
    output = builder_value(&b);
    MUST(sb_graph_add_node(b.graph, sb_op_find("", "If"), 17, "if", 2, (sb_value_id[]){condition, x}, 1, 1, &output,
                           &attributes, NULL, error));
    sb_followed followed = follow(&b);
    expect_kind(&b, &followed, "If", SB_AXIS_EXACT);
    assert_int_equal(followed.values[output].extents[0], SB_DEPENDS_AFFINE);
    close_graph(&b, &followed);
}

/* ---- failure ---- */

static void check_arguments(void **state) {
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, DIMS(N, 4));
    sb_value_id y = builder_unary(&b, "Relu", x);
    builder_finish(&b);
    const sb_fact *inputs[] = {&b.graph->values[x].fact};
    const sb_node *node = b.graph->nodes[0];
    sb_axis_rule rule = {0};
    sb_error error = {SB_OK, ""};
    const int wrong[][2] = {{0, 2}, {0, -1}, {1, 0}, {-1, 0}};
    for (int i = 0; i < 4; i++)
        assert_int_equal(sb_axes_of(node, inputs, &b.graph->values[y].fact, wrong[i][0], wrong[i][1], &rule, &error),
                         SB_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "has no axis 0 of an input -1"));
    builder_destroy(&b);
}

typedef struct attempt {
    builder *b;
    sb_fact *facts;
} attempt;

static sb_status follow_once(void *context) {
    const attempt *given = context;
    sb_followed followed;
    sb_status status = sb_follow_symbol(given->b->graph, given->facts, "n", &followed, NULL);
    if (status == SB_OK)
        sb_followed_clear(&followed);
    return status;
}

static void check_memory(void **state) {
    static const int64_t wanted[] = {-1, 4};
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, DIMS(N, 3, 4));
    sb_value_id merged = builder_binary(&b, "Reshape", x, constant_list(&b, 2, wanted));
    builder_unary(&b, "Shape", builder_unary(&b, "Relu", merged));
    builder_finish(&b);
    sb_fact *facts = calloc(b.graph->value_count, sizeof *facts);
    for (size_t v = 0; v < b.graph->value_count; v++)
        facts[v] = b.graph->values[v].fact;
    check_failing_allocations(follow_once, &(attempt){&b, facts});
    free(facts);
    builder_destroy(&b);
}

/* A fused node, whose rule infers its body. */
static void check_fused_memory(void **state) {
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, DIMS(N, 4)), inner, result, output = builder_value(&b);
    sb_graph *body;
    sb_attributes attributes = {0}, none = {0};
    MUST(sb_graph_create("body", &body, error));
    MUST(sb_graph_add_value(body, "x", &inner, error));
    MUST(sb_graph_add_input(body, inner, error));
    MUST(sb_graph_add_value(body, "y", &result, error));
    MUST(sb_graph_add_node(body, sb_op_find("", "Relu"), 17, "relu", 1, &inner, 0, 1, &result, &none, NULL, error));
    MUST(sb_graph_add_output(body, result, error));
    MUST(sb_attributes_add_graph(&attributes, "body", body, error));
    MUST(sb_graph_add_node(b.graph, sb_op_find("samebit", "Fused"), 17, "fused", 1, &x, 0, 1, &output, &attributes,
                           NULL, error));
    sb_followed followed = follow(&b);
    expect_kind(&b, &followed, "Fused", SB_AXIS_INDEPENDENT);
    sb_followed_clear(&followed);
    sb_fact *facts = calloc(b.graph->value_count, sizeof *facts);
    for (size_t v = 0; v < b.graph->value_count; v++)
        facts[v] = b.graph->values[v].fact;
    check_failing_allocations(follow_once, &(attempt){&b, facts});
    free(facts);
    builder_destroy(&b);
}

static int leaves_nothing(void **state) {
    return sb_allocation_count().live_blocks == 0 ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(check_rows, leaves_nothing),
        cmocka_unit_test_teardown(check_attention, leaves_nothing),
        cmocka_unit_test_teardown(check_windows, leaves_nothing),
        cmocka_unit_test_teardown(check_values, leaves_nothing),
        cmocka_unit_test_teardown(check_merged, leaves_nothing),
        cmocka_unit_test_teardown(check_heads, leaves_nothing),
        cmocka_unit_test_teardown(check_joined, leaves_nothing),
        cmocka_unit_test_teardown(check_repeated, leaves_nothing),
        cmocka_unit_test_teardown(check_data, leaves_nothing),
        cmocka_unit_test_teardown(check_open_slice, leaves_nothing),
        cmocka_unit_test_teardown(check_captured, leaves_nothing),
        cmocka_unit_test_teardown(check_arguments, leaves_nothing),
        cmocka_unit_test_teardown(check_memory, leaves_nothing),
        cmocka_unit_test_teardown(check_fused_memory, leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
