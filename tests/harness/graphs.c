#include "harness/graphs.h"

#include "ops/real.h"

sb_value_id graph_input(harness *h, builder *b, sb_dtype dtype, int rank, const int64_t *dims, layout layout,
                        sb_tensor **tensors) {
    sb_value_id value = builder_input(b, dtype, rank, dims);
    tensors[b->graph->input_count - 1] = make_tensor(h, dtype, rank, dims, layout);
    return value;
}

sb_value_id graph_scalar(builder *b, sb_dtype dtype, float value) {
    sb_tensor *tensor = NULL;
    MUST(sb_tensor_create(dtype, 0, NULL, &tensor, error));
    sb_real_store_f32(dtype, tensor->data, 0, value);
    return builder_constant(b, tensor);
}

void set_graph_int(sb_attributes *attributes, const char *name, int64_t value) {
    MUST(sb_attributes_add_ints(attributes, name, true, 1, &value, error));
}

void set_graph_float(sb_attributes *attributes, const char *name, float value) {
    MUST(sb_attributes_add_floats(attributes, name, true, 1, &value, error));
}

void release_all(sb_tensor **tensors, size_t count) {
    for (size_t i = 0; i < count; i++)
        sb_tensor_release(tensors[i]);
}
