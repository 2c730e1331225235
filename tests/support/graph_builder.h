/* Builds small graphs in memory and runs them. Include after cmocka.h. Everything is asserted to succeed. */
#ifndef SB_TESTS_GRAPH_BUILDER_H
#define SB_TESTS_GRAPH_BUILDER_H

#include <stdio.h>

#include "graph/op.h"
#include "passes/passes.h"
#include "runtime/runner.h"

typedef struct builder {
    sb_scope *scope;
    sb_graph *graph;
    int names;
} builder;

static inline builder builder_create(void) {
    builder b = {0};
    assert_int_equal(sb_scope_create(&b.scope, NULL), SB_OK);
    assert_int_equal(sb_graph_create("test", &b.graph, NULL), SB_OK);
    return b;
}

static inline void builder_destroy(builder *b) {
    sb_graph_destroy(b->graph);
    sb_scope_destroy(b->scope);
}

static inline sb_value_id builder_value(builder *b) {
    char name[32];
    sb_value_id value;
    snprintf(name, sizeof name, "v%d", b->names++);
    assert_int_equal(sb_graph_add_value(b->graph, name, &value, NULL), SB_OK);
    return value;
}

/* An input; an extent of -1 is the symbol … */
static inline sb_value_id builder_open_input(builder *b, sb_dtype dtype, int rank, const int64_t *dims,
                                             const char *symbol) {
    sb_value_id value = builder_value(b);
    sb_dim extents[SB_MAX_RANK];
    for (int d = 0; d < rank; d++)
        extents[d] = dims[d] < 0 ? sb_dim_symbol(b->scope, symbol) : sb_dim_constant(b->scope, dims[d]);
    sb_fact_set_tensor(&b->graph->values[value].fact, dtype, rank, extents);
    assert_int_equal(sb_graph_add_input(b->graph, value, NULL), SB_OK);
    return value;
}

/* … or "n". */
static inline sb_value_id builder_input(builder *b, sb_dtype dtype, int rank, const int64_t *dims) {
    return builder_open_input(b, dtype, rank, dims, "n");
}

/* A constant; takes the reference to the tensor. */
static inline sb_value_id builder_constant(builder *b, sb_tensor *tensor) {
    char name[32];
    sb_value_id value;
    snprintf(name, sizeof name, "c%d", b->names++);
    assert_int_equal(sb_graph_add_constant(b->graph, b->scope, name, tensor, &value, NULL), SB_OK);
    sb_tensor_release(tensor);
    return value;
}

/* A node of opset 17 with one output. `attributes` may be NULL and is taken over. */
static inline sb_value_id builder_node(builder *b, const char *name, int count, const sb_value_id *inputs,
                                       sb_attributes *attributes) {
    const sb_op *op = sb_op_find("", name);
    assert_non_null(op);
    sb_attributes none = {0};
    sb_value_id output = builder_value(b);
    char node_name[64];
    sb_error error = {SB_OK, ""};
    snprintf(node_name, sizeof node_name, "%s_%d", name, b->names++);
    sb_status status = sb_graph_add_node(b->graph, op, 17, node_name, count, inputs, 0, 1, &output,
                                         attributes != NULL ? attributes : &none, NULL, &error);
    if (status != SB_OK)
        fail_msg("%s", error.message);
    return output;
}

static inline sb_value_id builder_unary(builder *b, const char *name, sb_value_id input) {
    return builder_node(b, name, 1, &input, NULL);
}

static inline sb_value_id builder_binary(builder *b, const char *name, sb_value_id left, sb_value_id right) {
    return builder_node(b, name, 2, (sb_value_id[]){left, right}, NULL);
}

/* Infers all facts of the finished graph. */
static inline void builder_finish(builder *b) {
    sb_fact *facts = calloc(b->graph->value_count, sizeof *facts);
    sb_error error = {SB_OK, ""};
    for (size_t i = 0; i < b->graph->input_count; i++) {
        sb_value_id input = b->graph->inputs[i];
        assert_int_equal(sb_fact_copy(&facts[input], &b->graph->values[input].fact, NULL), SB_OK);
    }
    for (size_t i = 0; i < b->graph->read_count; i++) {
        sb_value_id read = b->graph->reads[i].value;
        assert_int_equal(sb_fact_copy(&facts[read], &b->graph->values[read].fact, NULL), SB_OK);
    }
    if (sb_graph_infer(b->graph, b->scope, facts, &error) != SB_OK)
        fail_msg("%s", error.message);
    for (size_t v = 0; v < b->graph->value_count; v++) {
        sb_fact_clear(&b->graph->values[v].fact);
        b->graph->values[v].fact = facts[v];
    }
    free(facts);
}

/* Runs the graph on tensors, behind the inputs the versions that it reads; the caller releases the outputs,
 * and behind them the updates. */
static inline void builder_run(const builder *b, bool reference_only, sb_isa isa, int threads, sb_tensor *const *inputs,
                               sb_tensor **outputs) {
    sb_program *program;
    sb_runner *runner;
    sb_run_settings settings = {0};
    sb_value in[16], out[16];
    sb_error error = {SB_OK, ""};
    for (size_t i = 0; i < b->graph->input_count + b->graph->read_count; i++)
        in[i] = sb_value_of_tensor(inputs[i]);
    assert_int_equal(sb_workers_create(threads, &settings.workers, NULL), SB_OK);
    assert_int_equal(sb_program_create(b->graph, isa, reference_only, &program, NULL), SB_OK);
    assert_int_equal(sb_runner_create(program, &settings, 0, &runner, NULL), SB_OK);
    if (sb_runner_run(runner, true, in, out, &error) != SB_OK)
        fail_msg("%s", error.message);
    for (size_t i = 0; i < b->graph->output_count + b->graph->update_count; i++)
        outputs[i] = out[i].tensor;
    sb_runner_destroy(runner);
    sb_program_destroy(program);
    sb_workers_destroy(settings.workers);
}

/* The number of nodes with that op. */
static inline int builder_count(const builder *b, const char *op) {
    int count = 0;
    for (size_t i = 0; i < b->graph->node_count; i++)
        count += strcmp(b->graph->nodes[i]->op->name, op) == 0;
    return count;
}

/* Bytes of the graph's constants that are matrices. */
static inline size_t builder_matrix_bytes(const builder *b) {
    size_t bytes = 0;
    for (size_t v = 0; v < b->graph->value_count; v++) {
        const sb_tensor *tensor = b->graph->values[v].fact.constant;
        if (tensor != NULL && tensor->rank == 2)
            bytes += (size_t)sb_tensor_elements(tensor) * sb_dtype_size(tensor->dtype);
    }
    return bytes;
}

#endif
