/* Runs one node by its definition or by a kernel, on tensors of any strides. Include after cmocka.h. */
#ifndef SB_TESTS_NODE_RUNNER_H
#define SB_TESTS_NODE_RUNNER_H

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "graph/op.h"
#include "kernel/kernel.h"
#include "support/derived.h"
#include "tensor/tensor.h"

#define NODE_INPUTS 10
#define NODE_OUTPUTS 4

/* A graph of one node. `constants` has a bit per input that the graph knows the value of. */
typedef struct node_runner {
    const char *op, *domain;
    int version;
    int input_count, output_count;
    sb_tensor *inputs[NODE_INPUTS]; /* NULL: omitted; owned by the runner */
    uint64_t constants;
    sb_attributes attributes; /* moved into the graph by the first run */
    sb_graph *graph;
    sb_node *node;
    sb_scope *scope;
    sb_fact facts[NODE_INPUTS], output_facts[NODE_OUTPUTS];
} node_runner;

#define NODE_WORKSPACE_BLOCKS 64

typedef struct node_frame {
    sb_frame frame;
    int count;
    void *blocks[NODE_WORKSPACE_BLOCKS];
} node_frame;

/* Outputs start out as garbage, so that an element that nobody writes shows. */
static inline sb_status node_allocate(sb_frame *frame, const sb_call *call, int index, size_t bytes,
                                      sb_storage **storage, char **data) {
    sb_status status = sb_storage_create(bytes, storage, call->error);
    if (status != SB_OK)
        return status;
    *data = (*storage)->data;
    if (bytes != 0)
        memset(*data, 0xa5, bytes);
    return SB_OK;
}

static inline sb_status node_workspace(sb_frame *frame, const sb_call *call, size_t bytes, void **memory) {
    node_frame *own = (node_frame *)frame;
    if (own->count == NODE_WORKSPACE_BLOCKS)
        return sb_fail(call->error, SB_ERROR_INTERNAL, "too many workspace blocks for a test");
    *memory = sb_allocate(bytes);
    if (*memory == NULL)
        return sb_fail_memory(call->error, bytes);
    memset(*memory, 0xa5, bytes);
    own->blocks[own->count++] = *memory;
    return SB_OK;
}

static inline sb_status node_build(node_runner *runner, sb_error *error) {
    sb_value_id inputs[NODE_INPUTS], outputs[NODE_OUTPUTS];
    const sb_op *op = sb_op_find(runner->domain != NULL ? runner->domain : "", runner->op);
    if (op == NULL)
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "there is no op %s", runner->op);
    SB_TRY(sb_scope_create(&runner->scope, error));
    SB_TRY(sb_graph_create("test", &runner->graph, error));
    for (int i = 0; i < runner->input_count; i++) {
        char name[24];
        snprintf(name, sizeof name, "input%d", i);
        inputs[i] = SB_NO_VALUE;
        if (runner->inputs[i] == NULL)
            continue;
        SB_TRY(sb_graph_add_value(runner->graph, name, &inputs[i], error));
        SB_TRY(sb_fact_of_tensor(&runner->facts[i], runner->scope, runner->inputs[i], (runner->constants >> i & 1) != 0,
                                 error));
    }
    for (int i = 0; i < runner->output_count; i++) {
        char name[24];
        snprintf(name, sizeof name, "output%d", i);
        SB_TRY(sb_graph_add_value(runner->graph, name, &outputs[i], error));
    }
    SB_TRY(sb_graph_add_node(runner->graph, op, runner->version, "node", runner->input_count, inputs, 0,
                             runner->output_count, outputs, &runner->attributes, &runner->node, error));
    const sb_fact *facts[NODE_INPUTS];
    for (int i = 0; i < runner->input_count; i++)
        facts[i] = runner->inputs[i] != NULL ? &runner->facts[i] : NULL;
    return sb_node_infer(runner->node, runner->scope, facts, runner->output_facts, error);
}

/* Releases everything, the input tensors included. */
static inline void node_clear(node_runner *runner) {
    for (int i = 0; i < NODE_OUTPUTS; i++)
        sb_fact_clear(&runner->output_facts[i]);
    for (int i = 0; i < NODE_INPUTS; i++) {
        sb_fact_clear(&runner->facts[i]);
        sb_tensor_release(runner->inputs[i]);
    }
    sb_attributes_clear(&runner->attributes);
    sb_graph_destroy(runner->graph);
    sb_scope_destroy(runner->scope);
    *runner = (node_runner){0};
}

/* Runs the node: by its definition when `isa` is SB_ISA_BEST, else by the kernel for that
 * instruction set (INTERNAL when there is none). `outputs` are the caller's. */
static inline sb_status node_run(node_runner *runner, sb_isa isa, sb_value *outputs, sb_error *error) {
    if (runner->graph == NULL)
        SB_TRY(node_build(runner, error));
    sb_value values[NODE_INPUTS] = {{0}};
    const sb_fact *facts[NODE_INPUTS];
    for (int i = 0; i < runner->input_count; i++) {
        facts[i] = runner->inputs[i] != NULL ? &runner->facts[i] : NULL;
        if (runner->inputs[i] != NULL)
            values[i] = sb_value_of_tensor(runner->inputs[i]);
    }
    sb_kernel_query query = {.node = runner->node, .inputs = facts, .outputs = runner->output_facts, .isa = isa};
    const sb_kernel *kernel = NULL;
    char why[SB_WHY_BYTES] = "no kernel has that name";
    void *state = NULL, *derived = NULL;
    if (isa != SB_ISA_BEST) {
        SB_TRY(sb_find_host_kernel(&query, &kernel, why, error));
        if (kernel == NULL)
            return sb_fail(error, SB_ERROR_INTERNAL, "no kernel for %s: %s", runner->op, why);
        if (kernel->prepare != NULL)
            SB_TRY(kernel->prepare(&query, &state, error));
        sb_status status = derive_on_host(kernel, &query, &derived, error);
        if (status != SB_OK) {
            if (kernel->release != NULL)
                kernel->release(state);
            return status;
        }
    }
    node_frame frame = {.frame = {node_allocate, node_workspace, NULL}};
    sb_call call = {.node = runner->node,
                    .input_count = runner->input_count,
                    .inputs = values,
                    .output_count = runner->output_count,
                    .facts = runner->output_facts,
                    .outputs = outputs,
                    .frame = &frame.frame,
                    .state = state,
                    .derived = derived,
                    .isa = isa,
                    .error = error};
    sb_status status = sb_workers_create(1, &call.workers, error);
    if (status == SB_OK)
        status = sb_call_run(&call, kernel != NULL ? kernel->launch : runner->node->op->eval);
    sb_workers_destroy(call.workers);
    for (int i = 0; i < frame.count; i++)
        sb_free(frame.blocks[i]);
    if (kernel != NULL && kernel->release != NULL)
        kernel->release(state);
    sb_free(derived);
    return status;
}

/* As node_run, but a failure ends the test. */
static inline void node_must_run(node_runner *runner, sb_isa isa, sb_value *outputs) {
    sb_error error;
    if (node_run(runner, isa, outputs, &error) != SB_OK)
        fail_msg("%s", error.message);
}

#endif
