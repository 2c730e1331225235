/* Runs one node by its definition or by a kernel, on tensors of any strides. Include after
 * cmocka.h. */
#ifndef IV_TESTS_NODE_RUNNER_H
#define IV_TESTS_NODE_RUNNER_H

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "graph/op.h"
#include "runtime/backend.h"
#include "tensor/tensor.h"

#define NODE_INPUTS 10
#define NODE_OUTPUTS 4

/* A graph of one node. `constants` has a bit per input that the graph knows the value of. */
typedef struct node_runner {
    const char *op, *domain;
    int version;
    int input_count, output_count;
    iv_tensor *inputs[NODE_INPUTS]; /* NULL: omitted; owned by the runner */
    uint64_t constants;
    iv_attributes attributes; /* moved into the graph by the first run */
    iv_graph *graph;
    iv_node *node;
    iv_scope *scope;
    iv_fact facts[NODE_INPUTS], output_facts[NODE_OUTPUTS];
} node_runner;

#define NODE_SCRATCH_BLOCKS 64

typedef struct node_frame {
    iv_frame frame;
    int count;
    void *blocks[NODE_SCRATCH_BLOCKS];
} node_frame;

/* Outputs start out as garbage, so that an element that nobody writes shows. */
static inline iv_status node_allocate(iv_frame *frame, const iv_call *call, int index, size_t bytes,
                                      iv_storage **storage, char **data) {
    iv_status status = iv_storage_create(bytes, storage, call->error);
    if (status != IV_OK)
        return status;
    *data = (*storage)->data;
    if (bytes != 0)
        memset(*data, 0xa5, bytes);
    return IV_OK;
}

static inline iv_status node_scratch(iv_frame *frame, const iv_call *call, size_t bytes,
                                     void **memory) {
    node_frame *own = (node_frame *)frame;
    if (own->count == NODE_SCRATCH_BLOCKS)
        return iv_fail(call->error, IV_ERROR_INTERNAL, "too many scratch blocks for a test");
    *memory = iv_allocate(bytes);
    if (*memory == NULL)
        return iv_fail_memory(call->error, bytes);
    memset(*memory, 0xa5, bytes);
    own->blocks[own->count++] = *memory;
    return IV_OK;
}

static inline iv_status node_build(node_runner *runner, iv_error *error) {
    iv_value_id inputs[NODE_INPUTS], outputs[NODE_OUTPUTS];
    const iv_op *op = iv_op_find(runner->domain != NULL ? runner->domain : "", runner->op);
    if (op == NULL)
        return iv_fail(error, IV_ERROR_UNSUPPORTED, "there is no op %s", runner->op);
    IV_TRY(iv_scope_create(&runner->scope, error));
    IV_TRY(iv_graph_create("test", &runner->graph, error));
    for (int i = 0; i < runner->input_count; i++) {
        char name[24];
        snprintf(name, sizeof name, "input%d", i);
        inputs[i] = IV_NO_VALUE;
        if (runner->inputs[i] == NULL)
            continue;
        IV_TRY(iv_graph_add_value(runner->graph, name, &inputs[i], error));
        IV_TRY(iv_fact_of_tensor(&runner->facts[i], runner->scope, runner->inputs[i],
                                 (runner->constants >> i & 1) != 0, error));
    }
    for (int i = 0; i < runner->output_count; i++) {
        char name[24];
        snprintf(name, sizeof name, "output%d", i);
        IV_TRY(iv_graph_add_value(runner->graph, name, &outputs[i], error));
    }
    IV_TRY(iv_graph_add_node(runner->graph, op, runner->version, "node", runner->input_count,
                             inputs, 0, runner->output_count, outputs, &runner->attributes,
                             &runner->node, error));
    const iv_fact *facts[NODE_INPUTS];
    for (int i = 0; i < runner->input_count; i++)
        facts[i] = runner->inputs[i] != NULL ? &runner->facts[i] : NULL;
    return iv_node_infer(runner->node, runner->scope, facts, runner->output_facts, error);
}

/* Releases everything, the input tensors included. */
static inline void node_clear(node_runner *runner) {
    for (int i = 0; i < NODE_OUTPUTS; i++)
        iv_fact_clear(&runner->output_facts[i]);
    for (int i = 0; i < NODE_INPUTS; i++) {
        iv_fact_clear(&runner->facts[i]);
        iv_tensor_release(runner->inputs[i]);
    }
    iv_attributes_clear(&runner->attributes);
    iv_graph_destroy(runner->graph);
    iv_scope_destroy(runner->scope);
    *runner = (node_runner){0};
}

/* Workers, which several threads keep for as long as the program lives: fresh threads spin for a
 * while before they sleep, which took most of the time of these tests. */
static inline iv_status node_workers(int threads, iv_workers **workers, iv_error *error) {
    static iv_workers *shared[16];
    if (threads == 1 || shared[threads] == NULL)
        IV_TRY(iv_workers_create(threads, workers, error));
    if (threads != 1 && shared[threads] == NULL)
        shared[threads] = *workers;
    *workers = threads == 1 ? *workers : shared[threads];
    return IV_OK;
}

/* Runs the node: by its definition when `isa` is IV_ISA_BEST, else by the kernel for that
 * instruction set (INTERNAL when there is none). `outputs` are the caller's. */
static inline iv_status node_run(node_runner *runner, iv_isa isa, int threads, iv_value *outputs,
                                 iv_error *error) {
    if (runner->graph == NULL)
        IV_TRY(node_build(runner, error));
    iv_value values[NODE_INPUTS] = {{0}};
    const iv_fact *facts[NODE_INPUTS];
    for (int i = 0; i < runner->input_count; i++) {
        facts[i] = runner->inputs[i] != NULL ? &runner->facts[i] : NULL;
        if (runner->inputs[i] != NULL)
            values[i] = iv_value_of_tensor(runner->inputs[i]);
    }
    iv_kernel_query query = {
        .node = runner->node, .inputs = facts, .outputs = runner->output_facts, .isa = isa};
    const iv_kernel *kernel = NULL;
    char why[IV_WHY_BYTES] = "no kernel has that name";
    void *state = NULL;
    if (isa != IV_ISA_BEST) {
        IV_TRY(iv_cpu_find_kernel(&query, &kernel, why, error));
        if (kernel == NULL)
            return iv_fail(error, IV_ERROR_INTERNAL, "no kernel for %s: %s", runner->op, why);
        if (kernel->prepare != NULL)
            IV_TRY(kernel->prepare(&query, &state, error));
    }
    node_frame frame = {.frame = {node_allocate, node_scratch, NULL}};
    iv_call call = {.node = runner->node,
                    .input_count = runner->input_count,
                    .inputs = values,
                    .output_count = runner->output_count,
                    .facts = runner->output_facts,
                    .outputs = outputs,
                    .frame = &frame.frame,
                    .state = state,
                    .isa = isa,
                    .error = error};
    iv_status status = node_workers(threads, &call.workers, error);
    if (status == IV_OK)
        status = iv_call_run(&call, kernel != NULL ? kernel->launch : runner->node->op->eval);
    if (threads == 1)
        iv_workers_destroy(call.workers);
    for (int i = 0; i < frame.count; i++)
        iv_free(frame.blocks[i]);
    if (kernel != NULL && kernel->release != NULL)
        kernel->release(state);
    return status;
}

/* As node_run, but a failure ends the test. */
static inline void node_must_run(node_runner *runner, iv_isa isa, int threads, iv_value *outputs) {
    iv_error error;
    if (node_run(runner, isa, threads, outputs, &error) != IV_OK)
        fail_msg("%s", error.message);
}

#endif
