/* FlexAttention: Attention's kernels, and between them the node's graphs, node by node on the device. */
#include <stdio.h>

#include "base/allocation.h"
#include "cuda/attention/attention.h"
#include "cuda/common/body.h"
#include "cuda/common/elements.h"
#include "cuda/list.h"

enum { Q, K, V };

/* ---- what it takes ---- */

/* Whether both graphs run on the device, given scores of these extents and what they capture. */
static bool graphs_fit(const sb_kernel_query *query, const sb_graph *const graphs[2], sb_scope *scope,
                       const sb_fact **inputs, char *why) {
    const sb_node *node = query->node;
    int64_t q[SB_MAX_RANK], k[SB_MAX_RANK];
    sb_fact scores = {0};
    if (!sb_fact_is_concrete(query->inputs[Q], q) || !sb_fact_is_concrete(query->inputs[K], k)) {
        snprintf(why, SB_WHY_BYTES, "its extents are open");
        return false;
    }
    sb_fact_set_tensor(&scores, sb_flex_attention_between(node, query->inputs[Q]->dtype), 4,
                       (sb_dim[]){sb_dim_constant(scope, q[0]), sb_dim_constant(scope, q[1]),
                                  sb_dim_constant(scope, q[2]), sb_dim_constant(scope, k[2])});
    inputs[0] = &scores;
    for (int i = 0; i < node->capture_count; i++)
        inputs[1 + i] = query->inputs[node->input_count - node->capture_count + i];
    bool fits = true;
    for (int g = 0; g < 2 && fits; g++)
        fits = graphs[g] == NULL || sb_cuda_graph_fits(query, graphs[g], inputs, why);
    sb_fact_clear(&scores);
    return fits;
}

static bool supports_flex(const sb_kernel_query *query, char *why) {
    const sb_graph *graphs[2];
    sb_scope *scope = NULL;
    sb_flex_attention_graphs(query->node, &graphs[0], &graphs[1]);
    if (graphs[0] == NULL && graphs[1] == NULL)
        return true;
    const sb_fact **inputs = sb_allocate_array(1 + (size_t)query->node->capture_count, sizeof *inputs);
    bool fits = inputs != NULL && sb_scope_create(&scope, NULL) == SB_OK;
    if (!fits)
        *query->exhausted = true;
    else
        fits = graphs_fit(query, graphs, scope, inputs, why);
    sb_scope_destroy(scope);
    sb_free(inputs);
    return fits;
}

/* Keys, without graphs. */
static bool bounded_flex(const sb_kernel_query *query, int input, int axis) {
    return input != Q && axis == 2;
}

/* ---- launches ---- */

/* A tensor [batch, heads, queries, keys] in workspace of the call's device. */
static sb_status make_room(sb_call *call, const sb_attention_work *a, sb_dtype dtype, const sb_storage *device,
                           sb_tensor **tensor) {
    const int64_t dims[] = {a->batch, a->heads, a->queries, a->keys};
    int64_t elements;
    void *memory;
    SB_TRY(sb_count_elements(dtype, 4, dims, &elements, call->error));
    size_t bytes = (size_t)elements * sb_dtype_size(dtype);
    SB_TRY(sb_call_workspace(call, bytes != 0 ? bytes : 1, &memory));
    sb_storage *storage = sb_allocate(sizeof *storage);
    if (storage == NULL)
        return sb_fail_memory(call->error, sizeof *storage);
    *storage = (sb_storage){.references = 1,
                            .data = memory,
                            .bytes = bytes,
                            .device = device->device,
                            .device_index = device->device_index};
    sb_status status = sb_tensor_over(storage, memory, dtype, 4, dims, NULL, tensor, call->error);
    sb_storage_release(storage);
    return status;
}

/* Computes all scores or probabilities (`stage`), and runs the graph on them. */
static sb_status run_graph(sb_call *call, const sb_cuda_attention_call *flex, sb_attention_stage stage, sb_dtype dtype,
                           const sb_tensor *y, const sb_graph *graph, const char *name, sb_value *result) {
    sb_cuda_attention_call made = *flex;
    sb_tensor *scores;
    SB_TRY(make_room(call, &made.attention, dtype, y->storage, &scores));
    made.attention.stage = stage;
    made.parameters.stage = stage;
    sb_cuda_attention_yields(&made, NULL, scores);
    sb_status status = sb_cuda_attention_run(call, &made);
    sb_value value = sb_value_of_tensor(scores);
    if (status == SB_OK)
        status = sb_call_run_graph(call, graph, 1, &value, result);
    sb_tensor_release(scores);
    if (status == SB_OK)
        status = sb_flex_attention_check(call, &made.attention, dtype, name, result);
    if (status == SB_OK && result->tensor->storage->device == NULL)
        status = sb_call_fail(call, SB_ERROR_INTERNAL, "the graph %s gives a tensor on the host", name);
    return status;
}

/* What a graph gave takes the place of scores, or of weights. */
static void give(sb_cuda_attention_call *made, const sb_tensor *tensor) {
    sb_attention_array array = sb_attention_array_of(tensor, 0);
    made->parameters.given = (sb_cuda_attention_array){array.data, array.batch, array.head, array.row, array.column};
    made->parameters.given_dtype = tensor->dtype;
    sb_cuda_work_reads(&made->work, tensor);
}

static sb_status mix(sb_call *call, const sb_cuda_attention_call *made) {
    const sb_attention_work *a = &made->attention;
    sb_cuda_work work = made->work;
    char types[16];
    snprintf(types, sizeof types, "%s%s", sb_dtype_name(a->dtype), a->wide ? "_wide" : "");
    work.parameters = &made->parameters;
    work.parameter_bytes = sizeof made->parameters;
    return sb_cuda_launch_each(call, &work, "attention", "sb_cuda_attention_mix", types,
                               a->batch * a->heads * a->queries * a->value_width);
}

/* The output, by `graphs` score_mod and prob_mod; what they give is the caller's to release. */
static sb_status run_flex(sb_call *call, sb_cuda_attention_call *made, sb_dtype between, const sb_tensor *y,
                          const sb_graph *const graphs[2], sb_value *results) {
    if (graphs[0] != NULL) {
        SB_TRY(run_graph(call, made, SB_ATTENTION_SCORE, between, y, graphs[0], "score_mod", &results[0]));
        give(made, results[0].tensor);
        made->parameters.scale = 1;
    }
    if (graphs[1] == NULL) {
        sb_cuda_attention_yields(made, y, NULL);
        return sb_cuda_attention_run(call, made);
    }
    SB_TRY(run_graph(call, made, SB_ATTENTION_PROBABILITY, between, y, graphs[1], "prob_mod", &results[1]));
    give(made, results[1].tensor);
    sb_cuda_attention_yields(made, y, NULL);
    return mix(call, made);
}

static sb_status launch_flex(sb_call *call) {
    sb_cuda_attention_call made;
    sb_dtype between;
    sb_tensor *y;
    const sb_graph *graphs[2];
    sb_value results[2] = {{0}};
    sb_flex_attention_graphs(call->node, &graphs[0], &graphs[1]);
    SB_TRY(sb_flex_attention_describe(call, &made.attention, &between));
    SB_TRY(sb_call_output(call, 0, &y));
    sb_cuda_attention_describe(call, &made);
    made.parameters.used_fresh = sb_cuda_work_used(&made.work, call, K, 2);
    sb_status status = run_flex(call, &made, between, y, graphs, results);
    for (int g = 0; g < 2; g++)
        sb_value_release(&results[g]);
    return status;
}

const sb_kernel sb_cuda_kernels_flex_attention[] = {
    {.op = "FlexAttention",
     .domain = "ai.onnx.preview",
     .name = "attention",
     .supports = supports_flex,
     .bounded = bounded_flex,
     .launch = launch_flex},
    {0},
};
