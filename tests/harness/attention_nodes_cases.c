/* Attention that a model writes as nodes of 16 bits: one kernel of the device against the nodes one by one. */
#include <string.h>

#include "harness/graphs.h"
#include "ops/real.h"

typedef struct attention_shape {
    int64_t samples, heads, rows, keys, width, value_width;
} attention_shape;

/* What lies in the nodes between the products. */
enum { SCALES = 1, DIVIDES = 2, ROOT = 4, MASKS = 8, MASK_OF_ROWS = 16, MASK_FIRST = 32 };

/* A mask of numbers, of which many are -inf, and in some rows all. */
static void fill_mask(harness *h, const sb_tensor *mask) {
    int64_t keys = mask->dims[mask->rank - 1];
    for (int64_t i = 0; i < sb_tensor_elements(mask); i++) {
        bool hidden = random_between(&h->random, 0, 2) == 0 || i / keys % 5 == 3;
        float value = (float)random_between(&h->random, -100, 100) / 16;
        sb_real_store_f32(mask->dtype, mask->data, i, hidden ? -sb_infinity_f32() : value);
    }
}

/* Scores of ordinary size, unless anything is wanted. */
static void fill_factor(harness *h, const sb_tensor *tensor, float scale) {
    for (int64_t i = 0; i < sb_tensor_elements(tensor); i++)
        sb_real_store_f32(tensor->dtype, tensor->data, i,
                          (float)random_between(&h->random, -1000, 1000) * scale / 1000);
}

/* The keys, with those of a line side by side, as a Transpose shows them, or packed the other way. */
static sb_tensor *turned(sb_tensor *tensor) {
    sb_tensor *view = NULL;
    int order[4] = {0, 1, 3, 2};
    MUST(sb_tensor_transpose(tensor, order, &view, error));
    sb_tensor_release(tensor);
    return view;
}

static sb_value_id add_mask(harness *h, builder *b, const attention_shape *s, sb_dtype dtype, unsigned kind,
                            sb_value_id scores, sb_tensor **tensors) {
    const int64_t dims[] = {s->samples, 1, (kind & MASK_OF_ROWS) != 0 ? s->rows : 1, s->keys};
    sb_value_id mask = graph_input(h, b, dtype, 4, dims, PACKED, tensors);
    fill_mask(h, tensors[b->graph->input_count - 1]);
    return (kind & MASK_FIRST) != 0 ? builder_binary(b, "Add", mask, scores) : builder_binary(b, "Add", scores, mask);
}

static void run_attention(harness *h, const attention_shape *s, sb_dtype dtype, unsigned kind, bool awkward,
                          bool turns) {
    builder b = builder_create();
    sb_tensor *tensors[SB_WALK_OPERANDS] = {NULL};
    const int64_t q[] = {s->samples, s->heads, s->rows, s->width}, k[] = {s->samples, s->heads, s->width, s->keys};
    const int64_t v[] = {s->samples, s->heads, s->keys, s->value_width},
                  lines[] = {s->samples, s->heads, s->keys, s->width};
    sb_value_id query = graph_input(h, &b, dtype, 4, q, PACKED, tensors);
    sb_value_id key = graph_input(h, &b, dtype, 4, k, PACKED, tensors);
    sb_value_id value = graph_input(h, &b, dtype, 4, v, awkward ? APART : PACKED, tensors);
    if (turns) {
        sb_tensor_release(tensors[1]);
        tensors[1] = turned(make_tensor(h, dtype, 4, lines, PACKED));
    }
    if (!awkward) {
        sb_tensor *plain = NULL;
        MUST(sb_tensor_create(dtype, 4, turns ? lines : k, &plain, error));
        fill_factor(h, tensors[0], 2);
        fill_factor(h, plain, 2);
        fill_factor(h, tensors[2], 3);
        sb_tensor_release(tensors[1]);
        tensors[1] = turns ? turned(plain) : plain;
    }
    sb_value_id scores = builder_binary(&b, "MatMul", query, key);
    if ((kind & SCALES) != 0)
        scores = builder_binary(&b, "Mul", scores, graph_scalar(&b, dtype, 0.3f));
    if ((kind & DIVIDES) != 0)
        scores = builder_binary(&b, "Div", scores, graph_scalar(&b, dtype, (kind & ROOT) != 0 ? 5.65685f : 8.0f));
    if ((kind & MASKS) != 0)
        scores = add_mask(h, &b, s, dtype, kind, scores, tensors);
    sb_attributes attributes = {0};
    set_graph_int(&attributes, "axis", -1);
    sb_value_id weights = builder_node(&b, "Softmax", 1, &scores, &attributes);
    harness_run_fused(h, &b, builder_binary(&b, "MatMul", weights, value), tensors);
    release_all(tensors, SB_WALK_OPERANDS);
    builder_destroy(&b);
}

HARNESS_GROUP(attention_nodes, shapes, HARNESS_CPU_IF_ANY | HARNESS_CUDA) {
    static const attention_shape shapes[] = {
        {1, 1, 16, 16, 16, 16},    {2, 2, 5, 7, 8, 24},      {1, 2, 64, 64, 64, 64},
        {1, 1, 65, 65, 32, 32},    {1, 1, 128, 128, 64, 64}, {1, 2, 3, 130, 72, 40},
        {1, 1, 17, 200, 128, 128}, {2, 1, 1, 1, 96, 8},      {1, 1, 33, 256, 80, 64}};
    static const unsigned kinds[] = {DIVIDES | MASKS,
                                     0,
                                     SCALES | MASKS | MASK_OF_ROWS | MASK_FIRST,
                                     DIVIDES | ROOT,
                                     SCALES | DIVIDES | MASKS | MASK_OF_ROWS,
                                     MASKS};
    for (int i = 0; i < 36; i++)
        run_attention(h, &shapes[i % 9], i / 9 % 2 == 0 ? SB_F16 : SB_BF16, kinds[(i + i / 9) % 6], i / 18 != 0,
                      i % 3 != 2);
}
