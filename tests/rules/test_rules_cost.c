/* Operations and bytes of nodes, as formulas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs the headers above first. */
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "rules/cost.h"
#include "support/failing.h"
#include "support/graph_builder.h"
#include "support/must.h"

#define N (-1)

typedef struct cost_case {
    const char *op;
    sb_dtype dtype; /* of all inputs */
    int inputs;
    struct {
        int rank;
        int64_t dims[4]; /* N: the symbol n */
    } shapes[3];
    const char *flops, *read, *written; /* NULL: not known */
} cost_case;

static const cost_case cases[] = {
    {"MatMul", SB_F32, 2, {{2, {N, 8}}, {2, {8, 4}}}, "64*n", "32*n+128", "16*n"},
    {"MatMul", SB_F16, 2, {{3, {3, N, 8}}, {2, {8, 4}}}, "192*n", "48*n+64", "24*n"},
    {"Gemm", SB_F32, 3, {{2, {N, 8}}, {2, {8, 4}}, {1, {4}}}, "68*n", "32*n+144", "16*n"},
    {"Conv", SB_F32, 2, {{4, {N, 3, 5, 5}}, {4, {2, 3, 3, 3}}}, "972*n", "300*n+216", "72*n"},
    {"Add", SB_F32, 2, {{2, {N, 4}}, {1, {4}}}, "4*n", "16*n+16", "16*n"},
    {"Relu", SB_BF16, 1, {{2, {N, 4}}}, "4*n", "8*n", "8*n"},
    {"Sum", SB_F64, 3, {{1, {N}}, {1, {N}}, {1, {N}}}, "2*n", "24*n", "8*n"},
    {"Softmax", SB_F32, 1, {{2, {N, 5}}}, "20*n", "20*n", "20*n"},
    {"ReduceL2", SB_F32, 1, {{2, {N, 5}}}, "10*n", "20*n", "4"},
    {"Transpose", SB_F32, 1, {{2, {N, 5}}}, "0", "0", "0"},
    {"Concat", SB_F32, 2, {{1, {N}}, {1, {3}}}, "0", "4*n+12", "4*n+12"},
    {"Shape", SB_F32, 1, {{2, {N, 5}}}, "0", "0", "16"},
    {"Det", SB_F32, 1, {{3, {N, 2, 2}}}, NULL, "16*n", "4*n"},
    {"NonZero", SB_F32, 1, {{1, {N}}}, NULL, "4*n", "8*NonZero_2.0.1#"},
    {"CastLike", SB_F32, 2, {{1, {N}}, {1, {7}}}, "0", "4*n", "4*n"},
    {"Identity", SB_STRING, 1, {{1, {N}}}, "0", "0", "0"},
    {"Equal", SB_STRING, 2, {{1, {N}}, {1, {N}}}, "n", NULL, "n"},
};

static void expect_formula(const cost_case *expected, const char *what, sb_dim dim, const char *text) {
    char got[200];
    if (dim == NULL || text == NULL) {
        if (dim != NULL || text != NULL)
            fail_msg("%s: %s is %s", expected->op, what, dim == NULL ? "not known" : sb_dim_text(dim, got, sizeof got));
        return;
    }
    sb_dim_text(dim, got, sizeof got);
    /* The name of a fresh symbol ends in '#' and a number. */
    size_t length = strcspn(text, "#");
    if (text[length] == '#' ? strncmp(got, text, length + 1) != 0 : strcmp(got, text) != 0)
        fail_msg("%s: %s is %s, not %s", expected->op, what, got, text);
}

/* The node's facts, in the order of its inputs and outputs. */
static void gather_facts(const builder *b, const sb_node *node, const sb_fact **inputs, sb_fact *outputs) {
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = &b->graph->values[node->inputs[i]].fact;
    for (int o = 0; o < node->output_count; o++)
        outputs[o] = b->graph->values[node->outputs[o]].fact;
}

static void check_case(const cost_case *expected) {
    builder b = builder_create();
    sb_value_id inputs[3];
    sb_attributes attributes = {0};
    for (int i = 0; i < expected->inputs; i++)
        inputs[i] = builder_input(&b, expected->dtype, expected->shapes[i].rank, expected->shapes[i].dims);
    if (strcmp(expected->op, "Concat") == 0)
        MUST(sb_attributes_add_ints(&attributes, "axis", true, 1, (int64_t[]){0}, error));
    builder_node(&b, expected->op, expected->inputs, inputs, &attributes);
    builder_finish(&b);
    const sb_node *node = b.graph->nodes[0];
    const sb_fact *facts[3];
    sb_fact outputs[1];
    sb_dim flops, read, written;
    gather_facts(&b, node, facts, outputs);
    MUST(sb_node_flops(node, b.scope, facts, outputs, &flops, error));
    MUST(sb_node_bytes(node, b.scope, facts, outputs, &read, &written, error));
    expect_formula(expected, "the number of operations", flops, expected->flops);
    expect_formula(expected, "what it reads", read, expected->read);
    expect_formula(expected, "what it writes", written, expected->written);
    builder_destroy(&b);
}

static void check_formulas(void **state) {
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_case(&cases[i]);
}

/* Of a table, Gather reads the rows that it takes. */
static void check_gather(void **state) {
    builder b = builder_create();
    sb_value_id table = builder_input(&b, SB_F32, 2, (int64_t[]){1000, 8});
    sb_value_id rows = builder_input(&b, SB_S64, 1, (int64_t[]){N});
    builder_binary(&b, "Gather", table, rows);
    builder_finish(&b);
    const sb_fact *facts[2];
    sb_fact outputs[1];
    sb_dim read, written;
    char text[64];
    gather_facts(&b, b.graph->nodes[0], facts, outputs);
    MUST(sb_node_bytes(b.graph->nodes[0], b.scope, facts, outputs, &read, &written, error));
    assert_string_equal(sb_dim_text(read, text, sizeof text), "40*n");
    assert_string_equal(sb_dim_text(written, text, sizeof text), "32*n");
    builder_destroy(&b);
}

/* ---- memory ---- */

typedef struct attempt {
    builder *b;
    const sb_fact **inputs;
    sb_fact *outputs;
} attempt;

static sb_status count_bytes(void *context) {
    const attempt *given = context;
    sb_scope *scope;
    sb_dim read, written;
    SB_TRY(sb_scope_create(&scope, NULL));
    sb_status status =
        sb_node_bytes(given->b->graph->nodes[0], scope, given->inputs, given->outputs, &read, &written, NULL);
    sb_scope_destroy(scope);
    return status;
}

static void check_memory(void **state) {
    builder b = builder_create();
    builder_unary(&b, "Relu", builder_input(&b, SB_F32, 2, (int64_t[]){N, 4}));
    builder_finish(&b);
    const sb_fact *facts[1];
    sb_fact outputs[1];
    gather_facts(&b, b.graph->nodes[0], facts, outputs);
    check_failing_allocations(count_bytes, &(attempt){&b, facts, outputs});
    builder_destroy(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_formulas),
        cmocka_unit_test(check_gather),
        cmocka_unit_test(check_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
