/* Passes and variables: what each pass must leave alone when a graph reads and updates them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/graph_builder.h"

static sb_value_id version(builder *b, int variable) {
    sb_value_id value = builder_value(b);
    sb_dim dims[] = {sb_dim_constant(b->scope, 4), sb_dim_constant(b->scope, 64)};
    sb_fact_set_tensor(&b->graph->values[value].fact, SB_F32, 2, dims);
    assert_int_equal(sb_graph_add_read(b->graph, variable, value, NULL), SB_OK);
    return value;
}

static void update(builder *b, int variable, sb_value_id value) {
    assert_int_equal(sb_graph_add_update(b->graph, variable, value, NULL), SB_OK);
}

static void output(builder *b, sb_value_id value) {
    assert_int_equal(sb_graph_add_output(b->graph, value, NULL), SB_OK);
}

static sb_value_id input(builder *b) {
    return builder_input(b, SB_F32, 2, (int64_t[]){4, 64});
}

static void run_passes(builder *b) {
    sb_error error = {SB_OK, ""};
    builder_finish(b);
    if (sb_passes_run(b->graph, b->scope, &error) != SB_OK)
        fail_msg("%s", error.message);
}

/* An update is as needed as an output; a read that nothing needs goes. */
static void test_sweep(void **state) {
    (void)state;
    builder b = builder_create();
    sb_value_id x = input(&b), kept = version(&b, 0), unused = version(&b, 1);
    builder_unary(&b, "ReduceMax", unused);
    update(&b, 0, builder_unary(&b, "Softmax", kept));
    output(&b, builder_unary(&b, "ReduceMin", x));
    run_passes(&b);
    assert_int_equal(b.graph->node_count, 2);
    assert_int_equal(builder_count(&b, "Softmax"), 1);
    assert_int_equal(b.graph->read_count, 1);
    assert_int_equal(b.graph->reads[0].value, kept);
    builder_destroy(&b);
}

/* A variable that is left with its own version needs it, without any node. */
static void test_sweep_reads(void **state) {
    (void)state;
    builder b = builder_create();
    sb_value_id first = version(&b, 0), second = version(&b, 1);
    update(&b, 0, second);
    update(&b, 1, first);
    run_passes(&b);
    assert_int_equal(b.graph->read_count, 2);
    builder_destroy(&b);
}

/* Nothing that follows from a version is known before the run. */
static void test_fold(void **state) {
    (void)state;
    builder b = builder_create();
    sb_tensor *tensor;
    assert_int_equal(sb_tensor_create(SB_F32, 2, (int64_t[]){4, 64}, &tensor, NULL), SB_OK);
    sb_value_id zeros = builder_constant(&b, tensor);
    sb_value_id sum = builder_binary(&b, "Add", version(&b, 0), zeros);
    update(&b, 0, sum);
    run_passes(&b);
    assert_int_equal(builder_count(&b, "Add"), 1);
    assert_null(b.graph->values[sum].fact.constant);
    builder_destroy(&b);
}

/* The same node over two versions of a variable is two nodes, over one version it is one. */
static void test_merge(void **state) {
    (void)state;
    builder b = builder_create();
    sb_value_id before = version(&b, 0), after = builder_unary(&b, "Softmax", before);
    update(&b, 0, after);
    output(&b,
           builder_binary(&b, "Sub", builder_unary(&b, "ReduceMax", before), builder_unary(&b, "ReduceMax", after)));
    sb_value_id twice[] = {builder_unary(&b, "ReduceMin", before), builder_unary(&b, "ReduceMin", before)};
    output(&b, builder_binary(&b, "MatMul", twice[0], builder_unary(&b, "Transpose", twice[1])));
    run_passes(&b);
    assert_int_equal(builder_count(&b, "ReduceMax"), 2);
    assert_int_equal(builder_count(&b, "ReduceMin"), 1);
    builder_destroy(&b);
}

/* Readers of what a view hands on may read what it looks at; what a variable is left with keeps its node. */
static void test_views(void **state) {
    (void)state;
    builder b = builder_create();
    sb_value_id x = input(&b), copy = builder_unary(&b, "Identity", x);
    update(&b, 0, copy);
    output(&b, builder_unary(&b, "ReduceMax", copy));
    run_passes(&b);
    assert_int_equal(b.graph->updates[0].value, copy);
    assert_int_equal(builder_count(&b, "Identity"), 1);
    assert_true(b.graph->values[copy].producer >= 0);
    builder_destroy(&b);
}

/* Exp and Neg would fuse but for the update in between that Exp makes. */
static void test_fuse_inside(void **state) {
    (void)state;
    for (int updates = 0; updates < 2; updates++) {
        builder b = builder_create();
        sb_value_id middle = builder_unary(&b, "Exp", input(&b));
        if (updates == 1)
            update(&b, 0, middle);
        output(&b, builder_unary(&b, "Neg", middle));
        run_passes(&b);
        assert_int_equal(builder_count(&b, "Fused"), updates == 1 ? 0 : 1);
        builder_destroy(&b);
    }
}

/* Exp reads a version (itself, or a view of it), Softmax makes the variable's update, Neg reads Exp: fused, Exp would
 * run where Neg does, behind the update. An update of another variable, and one that is made before, are no reason. */
static void test_fuse_past_update(void **state) {
    (void)state;
    enum { NO_UPDATE, UPDATE, VIEW, OTHER, EARLIER };
    for (int way = NO_UPDATE; way <= EARLIER; way++) {
        builder b = builder_create();
        sb_value_id x = input(&b), read = version(&b, 0), next = SB_NO_VALUE;
        if (way == EARLIER)
            next = builder_unary(&b, "Softmax", x);
        sb_value_id exp = builder_unary(&b, "Exp", way == VIEW ? builder_unary(&b, "Transpose", read) : read);
        if (way != EARLIER)
            next = builder_unary(&b, "Softmax", x);
        output(&b, builder_unary(&b, "Neg", exp));
        if (way == NO_UPDATE)
            output(&b, next);
        else
            update(&b, way == OTHER ? 1 : 0, next);
        run_passes(&b);
        assert_int_equal(builder_count(&b, "Fused"), way == UPDATE || way == VIEW ? 0 : 1);
        builder_destroy(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_sweep_reads),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_fuse_inside),
        cmocka_unit_test(test_fuse_past_update),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
