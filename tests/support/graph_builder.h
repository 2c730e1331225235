/* Builds small graphs in memory and runs them. Include after cmocka.h. Everything is asserted to succeed. */
#ifndef IV_TESTS_GRAPH_BUILDER_H
#define IV_TESTS_GRAPH_BUILDER_H

#include <stdio.h>

#include "graph/op.h"
#include "passes/passes.h"
#include "runtime/runner.h"

typedef struct builder {
    iv_scope *scope;
    iv_graph *graph;
    int names;
} builder;

static inline builder builder_create(void) {
    builder b = {0};
    assert_int_equal(iv_scope_create(&b.scope, NULL), IV_OK);
    assert_int_equal(iv_graph_create("test", &b.graph, NULL), IV_OK);
    return b;
}

static inline void builder_destroy(builder *b) {
    iv_graph_destroy(b->graph);
    iv_scope_destroy(b->scope);
}

static inline iv_value_id builder_value(builder *b) {
    char name[32];
    iv_value_id value;
    snprintf(name, sizeof name, "v%d", b->names++);
    assert_int_equal(iv_graph_add_value(b->graph, name, &value, NULL), IV_OK);
    return value;
}

/* An input; an extent of -1 is the symbol "n". */
static inline iv_value_id builder_input(builder *b, iv_dtype dtype, int rank, const int64_t *dims) {
    iv_value_id value = builder_value(b);
    iv_dim extents[IV_MAX_RANK];
    for (int d = 0; d < rank; d++)
        extents[d] = dims[d] < 0 ? iv_dim_symbol(b->scope, "n") : iv_dim_constant(b->scope, dims[d]);
    iv_fact_set_tensor(&b->graph->values[value].fact, dtype, rank, extents);
    assert_int_equal(iv_graph_add_input(b->graph, value, NULL), IV_OK);
    return value;
}

/* A constant; takes the reference to the tensor. */
static inline iv_value_id builder_constant(builder *b, iv_tensor *tensor) {
    char name[32];
    iv_value_id value;
    snprintf(name, sizeof name, "c%d", b->names++);
    assert_int_equal(iv_graph_add_constant(b->graph, b->scope, name, tensor, &value, NULL), IV_OK);
    iv_tensor_release(tensor);
    return value;
}

/* A node of opset 17 with one output. `attributes` may be NULL and is taken over. */
static inline iv_value_id builder_node(builder *b, const char *name, int count,
                                       const iv_value_id *inputs, iv_attributes *attributes) {
    const iv_op *op = iv_op_find("", name);
    assert_non_null(op);
    iv_attributes none = {0};
    iv_value_id output = builder_value(b);
    char node_name[64];
    iv_error error = {IV_OK, ""};
    snprintf(node_name, sizeof node_name, "%s_%d", name, b->names++);
    iv_status status =
        iv_graph_add_node(b->graph, op, 17, node_name, count, inputs, 0, 1, &output,
                          attributes != NULL ? attributes : &none, NULL, &error);
    if (status != IV_OK)
        fail_msg("%s", error.message);
    return output;
}

static inline iv_value_id builder_unary(builder *b, const char *name, iv_value_id input) {
    return builder_node(b, name, 1, &input, NULL);
}

static inline iv_value_id builder_binary(builder *b, const char *name, iv_value_id left,
                                         iv_value_id right) {
    return builder_node(b, name, 2, (iv_value_id[]){left, right}, NULL);
}

/* Infers all facts of the finished graph. */
static inline void builder_finish(builder *b) {
    iv_fact *facts = calloc(b->graph->value_count, sizeof *facts);
    iv_error error = {IV_OK, ""};
    for (size_t i = 0; i < b->graph->input_count; i++) {
        iv_value_id input = b->graph->inputs[i];
        assert_int_equal(iv_fact_copy(&facts[input], &b->graph->values[input].fact, NULL), IV_OK);
    }
    if (iv_graph_infer(b->graph, b->scope, facts, &error) != IV_OK)
        fail_msg("%s", error.message);
    for (size_t v = 0; v < b->graph->value_count; v++) {
        iv_fact_clear(&b->graph->values[v].fact);
        b->graph->values[v].fact = facts[v];
    }
    free(facts);
}

/* Runs the graph on tensors; the caller releases the outputs. */
static inline void builder_run(const builder *b, bool reference_only, iv_isa isa, int threads,
                               iv_tensor *const *inputs, iv_tensor **outputs) {
    iv_program *program;
    iv_runner *runner;
    iv_run_settings settings = {0};
    iv_value in[16], out[16];
    iv_error error = {IV_OK, ""};
    for (size_t i = 0; i < b->graph->input_count; i++)
        in[i] = iv_value_of_tensor(inputs[i]);
    assert_int_equal(iv_workers_create(threads, &settings.workers, NULL), IV_OK);
    assert_int_equal(iv_program_create(b->graph, isa, reference_only, &program, NULL), IV_OK);
    assert_int_equal(iv_runner_create(program, &settings, 0, &runner, NULL), IV_OK);
    if (iv_runner_run(runner, true, in, out, &error) != IV_OK)
        fail_msg("%s", error.message);
    for (size_t i = 0; i < b->graph->output_count; i++)
        outputs[i] = out[i].tensor;
    iv_runner_destroy(runner);
    iv_program_destroy(program);
    iv_workers_destroy(settings.workers);
}

/* The number of nodes with that op. */
static inline int builder_count(const builder *b, const char *op) {
    int count = 0;
    for (size_t i = 0; i < b->graph->node_count; i++)
        count += strcmp(b->graph->nodes[i]->op->name, op) == 0;
    return count;
}

#endif
