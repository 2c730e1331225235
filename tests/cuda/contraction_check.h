/* Contractions on a device, alone and with nodes behind them, against the nodes one by one. */
#ifndef CONTRACTION_CHECK_H
#define CONTRACTION_CHECK_H

#include "cuda/contraction/tiles.h"
#include "device_calls.h"
#include "ops/real.h"

static inline void release_all(sb_tensor **tensors, size_t count) {
    for (size_t i = 0; i < count; i++)
        sb_tensor_release(tensors[i]);
}

static inline sb_value_id add_input(builder *b, random_source *random, sb_dtype dtype, int rank, const int64_t *dims,
                                    layout layout, sb_tensor **tensors) {
    sb_value_id value = builder_input(b, dtype, rank, dims);
    tensors[b->graph->input_count - 1] = make_tensor(random, dtype, rank, dims, layout);
    return value;
}

static inline sb_value_id add_scalar(builder *b, sb_dtype dtype, float value) {
    sb_tensor *tensor = NULL;
    MUST(sb_tensor_create(dtype, 0, NULL, &tensor, error));
    sb_real_store_f32(dtype, tensor->data, 0, value);
    return builder_constant(b, tensor);
}

static inline void add_floats(sb_attributes *attributes, const char *name, float value) {
    MUST(sb_attributes_add_floats(attributes, name, true, 1, &value, error));
}

static inline void add_int(sb_attributes *attributes, const char *name, int64_t value) {
    MUST(sb_attributes_add_ints(attributes, name, true, 1, &value, error));
}

/* Makes the graph one node, runs that on the device with each shape of tiles from `first` to `last`
 * (-1: the one that is chosen), and compares with the nodes one by one. `inputs` are those of the
 * graph. */
static inline void check_contraction(const setting *setting, builder *b, sb_value_id result, sb_tensor **inputs,
                                     int first, int last, const char *what) {
    sb_tensor *in[SB_WALK_OPERANDS] = {NULL}, *out[1] = {NULL};
    sb_graph *graph = b->graph;
    MUST(sb_graph_add_output(graph, result, error));
    builder_finish(b);
    size_t value_count = graph->value_count;
    sb_tensor **values = calloc(value_count, sizeof *values);
    assert_non_null(values);
    evaluate_graph(b, inputs, values);
    MUST(sb_pass_fuse(graph, b->scope, error));
    if (graph->node_count != 1)
        fail_msg("%s: %s stays alone", what, graph->nodes[0]->name);
    uint64_t constants = 0;
    const sb_node *node = graph->nodes[0];
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == SB_NO_VALUE)
            continue;
        in[i] = values[node->inputs[i]];
        if (graph->values[node->inputs[i]].fact.constant != NULL)
            constants |= UINT64_C(1) << i;
    }
    for (int tile = first; tile <= last; tile++) {
        uint32_t fault;
        sb_cuda_tile_force(tile);
        run_node(setting, b, node, in, constants, out, &fault);
        if (!sb_tensor_equal(out[0], values[result]))
            fail_msg("%s: %s gives other bits with tiles of %s", what, node->name,
                     tile >= 0 ? sb_cuda_tile_at(tile)->name : "its choice");
        sb_tensor_release(out[0]);
    }
    sb_cuda_tile_force(-1);
    release_all(values, value_count);
    free(values);
}

#endif
