/* Attention that a model writes as nodes of 16 bits: one kernel of the device against the nodes one by one. */
#include <stdio.h>
#include <string.h>

#include "harness/graphs.h"
#include "ops/attention_nodes.h"
#include "ops/real.h"

typedef struct attention_shape {
    int64_t samples, heads, rows, keys, width, value_width;
} attention_shape;

/* What lies in the nodes between the products. */
enum {
    SCALES = 1,
    DIVIDES = 2,
    ROOT = 4, /* divides by no power of two */
    MASKS = 8,
    MASK_OF_ROWS = 16,
    MASK_FIRST = 32, /* mask + scores */
    MASK_LOW = 64,   /* hides by -10000 in place of -inf */
    MASK_WILD = 128, /* with NaN and +inf among it */
    MASKS_TWICE = 256
};

/* How the factors lie. */
enum { KEYS_IN_LINES = 1, HEADS_BEHIND_ROWS = 2, VALUES_APART = 4 };

/* A mask of numbers of which many hide a key, and in some rows all do. */
static void fill_mask(harness *h, const sb_tensor *mask, unsigned kind) {
    int64_t keys = mask->dims[mask->rank - 1];
    for (int64_t i = 0; i < sb_tensor_elements(mask); i++) {
        bool hidden = random_between(&h->random, 0, 2) == 0 || i / keys % 5 == 3;
        float value = (float)random_between(&h->random, -100, 100) / 16;
        value = hidden ? (kind & MASK_LOW) != 0 ? -10000.0f : -sb_infinity_f32() : value;
        if ((kind & MASK_WILD) != 0 && random_between(&h->random, 0, 40) == 0)
            value = i % 2 == 0 ? sb_infinity_f32() : sb_nan_f32();
        sb_real_store_f32(mask->dtype, mask->data, i, value);
    }
}

/* Numbers of ordinary size. */
static void fill_factor(harness *h, const sb_tensor *tensor, float scale) {
    for (int64_t i = 0; i < sb_tensor_elements(tensor); i++)
        sb_real_store_f32(tensor->dtype, tensor->data, i,
                          (float)random_between(&h->random, -1000, 1000) * scale / 1000);
}

/* A tensor whose dimensions lie in memory in that order; packed, with ordinary numbers or any elements. */
static sb_tensor *laid_tensor(harness *h, sb_dtype dtype, const int64_t *dims, const int *order, float scale) {
    int64_t memory[4];
    int back[4];
    sb_tensor *tensor = NULL, *view = NULL;
    for (int d = 0; d < 4; d++) {
        memory[d] = dims[order[d]];
        back[order[d]] = d;
    }
    if (scale == 0) {
        tensor = make_tensor(h, dtype, 4, memory, PACKED);
    } else {
        MUST(sb_tensor_create(dtype, 4, memory, &tensor, error));
        fill_factor(h, tensor, scale);
    }
    MUST(sb_tensor_transpose(tensor, back, &view, error));
    sb_tensor_release(tensor);
    return view;
}

static sb_value_id add_factor(harness *h, builder *b, sb_dtype dtype, const int64_t *dims, unsigned lies, bool keys,
                              float scale, sb_tensor **tensors) {
    bool behind = (lies & HEADS_BEHIND_ROWS) != 0, lines = keys && (lies & KEYS_IN_LINES) != 0;
    const int order[] = {0, behind ? lines ? 3 : 2 : 1, behind ? 1 : lines ? 3 : 2, lines ? 2 : 3};
    sb_value_id value = graph_input(h, b, dtype, 4, dims, PACKED, tensors);
    sb_tensor **tensor = &tensors[b->graph->input_count - 1];
    sb_tensor_release(*tensor);
    *tensor = laid_tensor(h, dtype, dims, order, scale);
    return value;
}

static sb_value_id add_mask(harness *h, builder *b, const attention_shape *s, sb_dtype dtype, unsigned kind,
                            sb_value_id scores, sb_tensor **tensors) {
    const int64_t dims[] = {s->samples, 1, (kind & MASK_OF_ROWS) != 0 ? s->rows : 1, s->keys};
    sb_value_id mask = graph_input(h, b, dtype, 4, dims, PACKED, tensors);
    fill_mask(h, tensors[b->graph->input_count - 1], kind);
    return (kind & MASK_FIRST) != 0 ? builder_binary(b, "Add", mask, scores) : builder_binary(b, "Add", scores, mask);
}

/* The nodes between scores and softmax. */
static sb_value_id add_steps(harness *h, builder *b, const attention_shape *s, sb_dtype dtype, unsigned kind,
                             sb_value_id scores, sb_tensor **tensors) {
    if ((kind & SCALES) != 0)
        scores = builder_binary(b, "Mul", scores, graph_scalar(b, dtype, 0.3f));
    if ((kind & DIVIDES) != 0)
        scores = builder_binary(b, "Div", scores, graph_scalar(b, dtype, (kind & ROOT) != 0 ? 5.65685f : 8.0f));
    if ((kind & MASKS) != 0)
        scores = add_mask(h, b, s, dtype, kind, scores, tensors);
    if ((kind & MASKS_TWICE) != 0)
        scores = add_mask(h, b, s, dtype, kind ^ MASK_OF_ROWS, scores, tensors);
    return scores;
}

static sb_value_id add_softmax(builder *b, sb_value_id scores) {
    sb_attributes attributes = {0};
    set_graph_int(&attributes, "axis", -1);
    return builder_node(b, "Softmax", 1, &scores, &attributes);
}

/* That the graph has become a node which is computed in one kernel, not node by node. */
static void check_kernel(harness *h, const builder *b) {
    const sb_node *node = b->graph->nodes[0];
    const sb_graph *body = b->graph->node_count == 1 ? sb_node_graph(node, "body") : NULL;
    sb_attention_nodes nodes;
    if (body != NULL && body->node_count == 3 &&
        sb_attention_nodes_match(body, body->nodes[0], body->nodes[1], body->nodes[2], &nodes))
        return;
    printf("DIFFERS %s: it is not attention\n", h->name);
    h->failed++;
}

static void run_graph(harness *h, builder *b, sb_value_id result, sb_tensor **tensors) {
    bool ran = h->chosen && !h->list;
    harness_run_fused(h, b, result, tensors);
    if (ran)
        check_kernel(h, b);
    release_all(tensors, HARNESS_INPUTS);
    builder_destroy(b);
}

static void run_attention(harness *h, const attention_shape *s, sb_dtype dtype, unsigned kind, unsigned lies,
                          bool awkward) {
    builder b = builder_create();
    sb_tensor *tensors[HARNESS_INPUTS] = {NULL};
    const int64_t q[] = {s->samples, s->heads, s->rows, s->width}, k[] = {s->samples, s->heads, s->width, s->keys};
    const int64_t v[] = {s->samples, s->heads, s->keys, s->value_width};
    sb_value_id query = add_factor(h, &b, dtype, q, lies, false, awkward ? 0 : 2, tensors);
    sb_value_id key = add_factor(h, &b, dtype, k, lies, true, awkward ? 0 : 2, tensors);
    sb_value_id value = (lies & VALUES_APART) != 0 ? graph_input(h, &b, dtype, 4, v, APART, tensors)
                                                   : add_factor(h, &b, dtype, v, lies, false, awkward ? 0 : 3, tensors);
    sb_value_id scores = builder_binary(&b, "MatMul", query, key);
    sb_value_id weights = add_softmax(&b, add_steps(h, &b, s, dtype, kind, scores, tensors));
    run_graph(h, &b, builder_binary(&b, "MatMul", weights, value), tensors);
}

/* Every kernel, with tiles of rows, chunks of keys and widths that are not full. */
HARNESS_GROUP(attention_nodes, shapes, HARNESS_CPU_IF_ANY | HARNESS_CUDA) {
    static const attention_shape shapes[] = {
        {1, 1, 16, 16, 16, 16},    {2, 2, 5, 7, 8, 24},      {1, 2, 64, 64, 64, 64},
        {1, 1, 65, 65, 32, 32},    {1, 1, 128, 128, 64, 64}, {1, 2, 3, 130, 72, 40},
        {1, 1, 17, 200, 128, 128}, {2, 1, 1, 1, 96, 8},      {1, 1, 33, 256, 80, 64}};
    static const unsigned kinds[] = {DIVIDES | MASKS | MASK_LOW,
                                     0,
                                     SCALES | MASKS | MASK_OF_ROWS | MASK_FIRST,
                                     DIVIDES | ROOT,
                                     SCALES | DIVIDES | MASKS | MASKS_TWICE,
                                     MASKS};
    static const unsigned ways[] = {KEYS_IN_LINES | HEADS_BEHIND_ROWS, KEYS_IN_LINES, 0, KEYS_IN_LINES | VALUES_APART};
    for (int i = 0; i < 36; i++)
        run_attention(h, &shapes[i % 9], i / 9 % 2 == 0 ? SB_F16 : SB_BF16, kinds[(i + i / 9) % 6], ways[i % 4],
                      i / 18 != 0);
}

/* Every kernel with blocks of 64 rows and of 32, which the fake device's four multiprocessors have from eight blocks on. */
HARNESS_GROUP(attention_nodes, large_blocks, HARNESS_CPU_IF_ANY | HARNESS_CUDA) {
    static const attention_shape shapes[] = {{1, 4, 67, 100, 16, 8}, {1, 2, 100, 70, 8, 24}, {4, 1, 67, 30, 80, 8},
                                             {2, 1, 100, 9, 8, 72},  {1, 4, 67, 130, 8, 16}, {1, 2, 100, 140, 8, 8},
                                             {1, 4, 65, 200, 8, 72}, {1, 2, 97, 250, 80, 8}};
    for (int i = 0; i < 16; i++)
        run_attention(h, &shapes[i % 8], i < 8 ? SB_F16 : SB_BF16,
                      i % 3 == 0 ? MASKS | DIVIDES : SCALES | MASKS | MASK_OF_ROWS, KEYS_IN_LINES | HEADS_BEHIND_ROWS,
                      i == 8);
}

/* More than 256 keys, so that lanes of the sum have two, and blocks of 16 rows and of 32. */
HARNESS_GROUP(attention_nodes, two_lanes, HARNESS_CPU_IF_ANY | HARNESS_CUDA) {
    static const attention_shape shapes[] = {{1, 1, 257, 257, 8, 8},
                                             {1, 1, 64, 300, 72, 8},
                                             {1, 1, 65, 512, 8, 16},
                                             {2, 2, 66, 260, 8, 8},
                                             {1, 1, 64, 511, 8, 72}};
    static const unsigned kinds[] = {MASKS, SCALES | MASKS | MASK_OF_ROWS | MASK_LOW, DIVIDES | ROOT};
    for (int i = 0; i < 10; i++)
        run_attention(h, &shapes[i % 5], i < 5 ? SB_F16 : SB_BF16, kinds[i % 3], i == 4 ? 0 : KEYS_IN_LINES, i == 8);
}

/* More keys than stay in registers: chunks and blocks of the sum that are not full, and several of either. */
HARNESS_GROUP(attention_nodes, long_rows, HARNESS_CPU_IF_ANY | HARNESS_CUDA) {
    static const attention_shape shapes[] = {{1, 1, 66, 577, 8, 8},
                                             {1, 1, 64, 600, 72, 40},
                                             {1, 1, 67, 513, 16, 8},
                                             {1, 1, 64, 4096, 8, 8},
                                             {1, 1, 64, 4165, 8, 8}};
    static const unsigned kinds[] = {MASKS, SCALES | MASKS | MASK_OF_ROWS | MASK_LOW, DIVIDES | ROOT};
    for (int i = 0; i < 8; i++)
        run_attention(h, &shapes[i % 5], i < 5 ? SB_F16 : SB_BF16, kinds[i % 3], KEYS_IN_LINES, i == 6);
}

/* What softmax meets: rows that are all hidden, by -inf and by -10000, NaN and +inf among the addends, one key, no key, no row
 * and no width. */
HARNESS_GROUP(attention_nodes, corners, HARNESS_CPU_IF_ANY | HARNESS_CUDA) {
    static const attention_shape shapes[] = {{5, 1, 9, 31, 16, 8}, {4, 1, 2, 1, 8, 8},   {1, 2, 7, 0, 8, 8},
                                             {1, 1, 0, 5, 8, 8},   {1, 1, 4, 5, 0, 8},   {1, 1, 4, 5, 8, 0},
                                             {0, 2, 4, 5, 8, 8},   {5, 1, 1, 129, 8, 8}, {1, 1, 11, 127, 24, 16}};
    static const unsigned kinds[] = {MASKS, MASKS | MASK_LOW | MASK_OF_ROWS, MASKS | MASK_WILD,
                                     DIVIDES | MASKS | MASK_OF_ROWS};
    for (int i = 0; i < 72; i++)
        run_attention(h, &shapes[i % 9], i % 2 == 0 ? SB_F16 : SB_BF16, kinds[i / 9 % 4],
                      KEYS_IN_LINES | (i % 3 == 0 ? HEADS_BEHIND_ROWS : 0), i >= 54);
}

/* Other numbers of dimensions, factors that all samples or heads share, and a scale and a mask of one element. */
HARNESS_GROUP(attention_nodes, ranks, HARNESS_CPU_IF_ANY | HARNESS_CUDA) {
    static const struct {
        int ranks[4]; /* of the factors and the mask */
        int64_t q[5], k[5], v[5], mask[5];
    } shapes[] = {{{2, 2, 2, 2}, {20, 16}, {16, 33}, {33, 8}, {20, 33}},
                  {{3, 3, 3, 1}, {3, 20, 16}, {3, 16, 33}, {3, 33, 8}, {33}},
                  {{5, 5, 5, 0}, {2, 2, 3, 4, 8}, {2, 2, 3, 8, 9}, {2, 2, 3, 9, 8}, {0}},
                  {{4, 3, 2, 3}, {2, 3, 20, 16}, {3, 16, 30}, {30, 16}, {1, 20, 1}},
                  {{3, 4, 4, 4}, {1, 20, 16}, {2, 3, 16, 30}, {1, 3, 30, 16}, {2, 1, 20, 30}},
                  {{2, 2, 4, 2}, {20, 16}, {16, 30}, {2, 3, 30, 16}, {1, 1}}};
    for (int i = 0; i < 24; i++) {
        int s = i % 6;
        sb_dtype dtype = i / 6 % 2 == 0 ? SB_F16 : SB_BF16;
        layout layout = i / 12 == 0 ? PACKED : (enum layout)random_between(&h->random, 0, LAYOUTS - 1);
        builder b = builder_create();
        sb_tensor *tensors[HARNESS_INPUTS] = {NULL};
        sb_value_id query = graph_input(h, &b, dtype, shapes[s].ranks[0], shapes[s].q, layout, tensors);
        sb_value_id key = graph_input(h, &b, dtype, shapes[s].ranks[1], shapes[s].k, layout, tensors);
        sb_value_id value = graph_input(h, &b, dtype, shapes[s].ranks[2], shapes[s].v, layout, tensors);
        sb_value_id number = graph_input(h, &b, dtype, 1, (int64_t[]){1}, PACKED, tensors);
        sb_value_id mask = graph_input(h, &b, dtype, shapes[s].ranks[3], shapes[s].mask, layout, tensors);
        for (size_t t = 0; t < b.graph->input_count && i % 12 < 6; t++) {
            if (sb_tensor_is_contiguous(tensors[t]))
                fill_factor(h, tensors[t], 2);
        }
        sb_value_id scores = builder_binary(&b, "Mul", number, builder_binary(&b, "MatMul", query, key));
        sb_value_id weights = add_softmax(&b, builder_binary(&b, "Add", mask, scores));
        run_graph(h, &b, builder_binary(&b, "MatMul", weights, value), tensors);
    }
}
