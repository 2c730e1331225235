/* SwiGLU behind a product of 16 bits that makes its gates and its values (ops/gated_nodes.h): one kernel of either side against the nodes
 * one by one. */
#include <stdio.h>
#include <string.h>

#include "harness/graphs.h"
#include "ops/gated_nodes.h"

typedef struct gated_shape {
    int64_t samples, rows, width, columns; /* of either half */
} gated_shape;

/* Weights as those of linear layers lie, a line for each column; with gaps behind lines, as a device has them. */
static sb_value_id add_weights(harness *h, builder *b, distribution kind, sb_dtype dtype, const gated_shape *s) {
    sb_tensor *lines = gapped_tensor(h, kind, dtype, 2, (int64_t[]){2 * s->columns, s->width}), *view;
    MUST(sb_tensor_transpose(lines, (int[]){1, 0}, &view, error));
    sb_tensor_release(lines);
    return builder_constant(b, view);
}

static sb_value_id add_gate(builder *b, sb_value_id product, int64_t columns) {
    sb_value_id halves[2] = {builder_value(b), builder_value(b)}, in[2] = {product, SB_NO_VALUE};
    sb_attributes attributes = {0};
    sb_tensor *sizes;
    MUST(sb_tensor_create(SB_S64, 1, (int64_t[]){2}, &sizes, error));
    for (int i = 0; i < 2; i++)
        ((int64_t *)sb_tensor_mutable_data(sizes))[i] = columns;
    in[1] = builder_constant(b, sizes);
    set_graph_int(&attributes, "axis", -1);
    MUST(sb_graph_add_node(b->graph, sb_op_find("", "Split"), 13, "halves", 2, in, 0, 2, halves, &attributes, NULL,
                           error));
    return builder_binary(b, "SwiGLU", halves[0], halves[1]);
}

static void run_gated(harness *h, const gated_shape *s, sb_dtype dtype, distribution kind, layout layout) {
    builder b = builder_create();
    sb_tensor *tensors[HARNESS_INPUTS] = {NULL};
    const int64_t dims[] = {s->samples, s->rows, s->width};
    sb_value_id rows = graph_input(h, &b, dtype, 3, dims, layout, tensors);
    if (layout == PACKED) {
        sb_tensor_release(tensors[0]);
        tensors[0] = packed_tensor(h, kind, dtype, 3, dims);
    }
    sb_value_id product = builder_binary(&b, "MatMul", rows, add_weights(h, &b, kind, dtype, s));
    bool ran = h->chosen && !h->list;
    harness_run_fused(h, &b, add_gate(&b, product, s->columns), tensors);
    if (ran && !sb_gated_nodes_are(b.graph->nodes[0])) {
        printf("DIFFERS %s: it is no gate behind a product\n", h->name);
        h->failed++;
    }
    release_all(tensors, HARNESS_INPUTS);
    builder_destroy(&b);
}

/* One row, as a decoder's step has, up to more than a tile's; columns and widths that tiles end in the middle of. */
HARNESS_GROUP(gated_product, shapes, HARNESS_CPU | HARNESS_CUDA) {
    static const int64_t rows[] = {1, 2, 8, 9, 17, 33, 64, 65, 130, 200}, widths[] = {64, 128, 24, 256, 192},
                         columns[] = {8, 64, 24, 136, 72, 264};
    for (int i = 0; i < 60; i++) {
        const gated_shape shape = {1, rows[i % 10], widths[i % 5 == 2 ? 2 : i / 10 % 5], columns[(i / 10 + i) % 6]};
        run_gated(h, &shape, i % 2 == 0 ? SB_BF16 : SB_F16, (distribution)(i / 5 % DISTRIBUTIONS), PACKED);
    }
}

/* Rows of several samples, which lie in any way, every kind of value, and nothing at all. */
HARNESS_GROUP(gated_product, rows, HARNESS_CPU | HARNESS_CUDA) {
    static const gated_shape shapes[] = {{2, 3, 64, 16}, {3, 1, 40, 8}, {1, 5, 7, 24},  {2, 9, 128, 40},
                                         {0, 3, 16, 8},  {2, 0, 64, 8}, {2, 1, 320, 72}};
    for (int i = 0; i < 42; i++)
        run_gated(h, &shapes[i % 7], i / 7 % 2 == 0 ? SB_F16 : SB_BF16, ORDINARY, (layout)(i / 7 % LAYOUTS));
}

/* Rows of no multiple of 16 bytes, which are copied where there is much to compute. */
HARNESS_GROUP(gated_product, odd_rows, HARNESS_CPU | HARNESS_CUDA) {
    static const gated_shape shapes[] = {
        {1, 200, 259, 72}, {2, 33, 197, 64}, {1, 1, 51, 136}, {1, 70, 515, 24}, {1, 64, 129, 56}};
    for (int i = 0; i < 30; i++)
        run_gated(h, &shapes[i % 5], i / 5 % 2 == 0 ? SB_F16 : SB_BF16, (distribution)(i % DISTRIBUTIONS), PACKED);
}
