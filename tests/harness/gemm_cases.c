/* Matrix products: without arguments over the fake driver; with the file name of a driver's library (libcuda.so.1),
 * on its first device. */
#include "cuda/contraction/tiles.h"
#include "harness/graphs.h"
#include "ops/real.h"

typedef struct operand {
    int rank;
    int64_t dims[5];
    layout layout;
} operand;

static void check_matmul(harness *h, sb_dtype dtype, const operand *a, const operand *b, int first, int last) {
    builder built = builder_create();
    sb_tensor *tensors[HARNESS_INPUTS] = {NULL};
    sb_value_id left = graph_input(h, &built, dtype, a->rank, a->dims, a->layout, tensors);
    sb_value_id right = graph_input(h, &built, dtype, b->rank, b->dims, b->layout, tensors);
    h->first_tile = first;
    h->last_tile = last;
    harness_run_fused(h, &built, builder_binary(&built, "MatMul", left, right), tensors);
    release_all(tensors, HARNESS_INPUTS);
    builder_destroy(&built);
}

/* Every shape of tiles with more than one tile along both axes and a rest, for chains of no, one,
 * many and not a multiple of the tile's k, however the operands lie. */
HARNESS_GROUP(gemm, tiles, HARNESS_CUDA) {
    static const int64_t depths[] = {0, 1, 7, 16, 64, 83, 200};
    for (int tile = 0; tile < sb_cuda_tile_count(); tile++) {
        const sb_cuda_tile *shape = sb_cuda_tile_at(tile);
        for (int round = 0; round < 10; round++) {
            int64_t k = depths[round % 7], m = shape->m + round % 3, n = shape->n + 3 + round % 2;
            layout left = (enum layout)(round % LAYOUTS);
            layout right = (enum layout)((round + round / LAYOUTS) % LAYOUTS);
            operand a = {2, {m, k}, left}, b = {2, {k, n}, right};
            check_matmul(h, SB_F32, &a, &b, tile, tile);
        }
    }
}

/* Extents that are multiples of 4, so that four elements are fetched and stored at once. */
HARNESS_GROUP(gemm, vectors, HARNESS_CUDA) {
    for (int round = 0; round < 4; round++) {
        layout left = round % 2 == 0 ? PACKED : TRANSPOSED;
        layout right = round / 2 == 0 ? PACKED : TRANSPOSED;
        operand a = {2, {136, 68}, left}, b = {2, {68, 140}, right};
        check_matmul(h, SB_F32, &a, &b, -1, sb_cuda_tile_count() - 1);
    }
}

static const struct {
    operand a, b;
} cases[] = {
    {{3, {3, 5, 17}, PACKED}, {3, {3, 17, 9}, PACKED}},
    {{4, {2, 3, 5, 17}, PACKED}, {4, {2, 1, 17, 9}, TRANSPOSED}},
    {{4, {2, 3, 5, 17}, TRANSPOSED}, {2, {17, 40}, PACKED}},
    {{4, {2, 3, 5, 16}, PACKED}, {2, {16, 40}, PACKED}}, /* one taller matrix */
    {{2, {5, 16}, SHIFTED}, {4, {2, 3, 16, 12}, APART}},
    {{4, {2, 1, 5, 17}, REVERSED}, {4, {1, 3, 17, 9}, REVERSED}},
    {{5, {2, 1, 2, 4, 3}, PACKED}, {5, {1, 3, 2, 3, 4}, PACKED}},
    {{1, {19}, PACKED}, {2, {19, 33}, PACKED}},
    {{1, {19}, REVERSED}, {3, {4, 19, 33}, PACKED}},
    {{2, {33, 19}, PACKED}, {1, {19}, APART}}, /* transposed */
    {{3, {4, 33, 19}, TRANSPOSED}, {1, {19}, PACKED}},
    {{3, {2, 50, 70}, PACKED}, {3, {2, 70, 6}, PACKED}},
    {{1, {70}, PACKED}, {1, {70}, PACKED}},
    {{3, {0, 5, 17}, PACKED}, {3, {1, 17, 9}, PACKED}},
    {{2, {0, 4}, PACKED}, {2, {4, 3}, PACKED}},
    {{2, {3, 4}, PACKED}, {2, {4, 0}, PACKED}},
    {{3, {2, 3, 0}, PACKED}, {3, {2, 0, 3}, PACKED}},
    {{2, {1, 130}, PACKED}, {2, {130, 100}, PACKED}},
    {{2, {8, 130}, PACKED}, {2, {130, 100}, TRANSPOSED}},
};
#define CASES ((int)(sizeof cases / sizeof cases[0]))

HARNESS_GROUP(gemm, batches, HARNESS_CUDA) {
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_matmul(h, SB_F32, &cases[i].a, &cases[i].b, -1, sb_cuda_tile_count() - 1);
    }
}

static void check_gemm(harness *h, sb_dtype dtype, int round, int first, int last) {
    static const operand addends[] = {
        {0, {0}, PACKED},      {1, {37}, PACKED},      {1, {1}, PACKED},          {2, {21, 1}, PACKED},
        {2, {21, 37}, PACKED}, {2, {1, 37}, REVERSED}, {2, {21, 37}, TRANSPOSED},
    };
    builder b = builder_create();
    sb_tensor *tensors[HARNESS_INPUTS] = {NULL};
    bool transposed_a = (round & 1) != 0, transposed_b = (round & 2) != 0;
    int64_t a_dims[] = {transposed_a ? 19 : 21, transposed_a ? 21 : 19};
    int64_t b_dims[] = {transposed_b ? 37 : 19, transposed_b ? 19 : 37};
    const operand *c = &addends[round % 7];
    sb_value_id inputs[3];
    inputs[0] = graph_input(h, &b, dtype, 2, a_dims, (enum layout)(round % LAYOUTS), tensors);
    inputs[1] = graph_input(h, &b, dtype, 2, b_dims, PACKED, tensors);
    if (round % 5 != 0)
        inputs[2] = graph_input(h, &b, dtype, c->rank, c->dims, c->layout, tensors);
    sb_attributes attributes = {0};
    bool whole = sb_dtype_is_integer(dtype);
    set_graph_float(&attributes, "alpha", round % 3 == 0 ? 1 : round % 3 == 1 ? whole ? -3 : 0.3f : 0);
    set_graph_float(&attributes, "beta", round % 4 == 0 ? 1 : round % 4 == 1 ? whole ? 7 : -1.7f : 0);
    set_graph_int(&attributes, "transA", transposed_a);
    set_graph_int(&attributes, "transB", transposed_b);
    sb_value_id result = builder_node(&b, "Gemm", round % 5 != 0 ? 3 : 2, inputs, &attributes);
    h->first_tile = first;
    h->last_tile = last;
    harness_run_fused(h, &b, result, tensors);
    release_all(tensors, HARNESS_INPUTS);
    builder_destroy(&b);
}

static const sb_dtype others[] = {SB_F16, SB_BF16, SB_F64, SB_S32, SB_S64, SB_U32, SB_U64};
#define OTHERS ((int)(sizeof others / sizeof others[0]))

HARNESS_GROUP(gemm, dtypes, HARNESS_CUDA) {
    for (int dtype = 0; dtype < OTHERS; dtype++) {
        for (int i = 0; i < CASES; i++)
            check_matmul(h, others[dtype], &cases[i].a, &cases[i].b, -1, -1);
        for (int round = 0; round < 21; round++)
            check_gemm(h, others[dtype], round, -1, -1);
    }
}

/* Chains whose every product is a negative number too small for f32: they end at -0, unless
 * something takes part that does not belong to them. */
HARNESS_GROUP(gemm, negative_zeros, HARNESS_CUDA) {
    for (int64_t k = 1; k < 90; k += 11) {
        builder b = builder_create();
        sb_tensor *tensors[HARNESS_INPUTS] = {NULL};
        int64_t left_dims[] = {9, k}, right_dims[] = {k, 35};
        sb_value_id left = graph_input(h, &b, SB_F32, 2, left_dims, PACKED, tensors);
        sb_value_id right = graph_input(h, &b, SB_F32, 2, right_dims, PACKED, tensors);
        for (int64_t i = 0; i < 9 * k; i++)
            ((float *)(void *)tensors[0]->data)[i] = 1e-30f;
        for (int64_t i = 0; i < k * 35; i++)
            ((float *)(void *)tensors[1]->data)[i] = -1e-30f;
        h->first_tile = -1;
        h->last_tile = sb_cuda_tile_count() - 1;
        harness_run_fused(h, &b, builder_binary(&b, "MatMul", left, right), tensors);
        release_all(tensors, HARNESS_INPUTS);
        builder_destroy(&b);
    }
}

HARNESS_GROUP(gemm, gemm, HARNESS_CUDA) {
    for (int round = 0; round < 40; round++)
        check_gemm(h, SB_F32, round, -1, round % 8 == 0 ? sb_cuda_tile_count() - 1 : -1);
}

/* Nodes behind a product: a bias, sums, differences and products with something of the whole shape or less, bounds. */
static sb_value_id add_epilogue(harness *h, builder *b, sb_value_id value, int rank, const int64_t *dims, int round,
                                sb_tensor **tensors) {
    int64_t narrow[5];
    int64_t last = dims[rank - 1];
    for (int d = 0; d < rank; d++)
        narrow[d] = (round >> d & 1) != 0 ? dims[d] : 1;
    value = builder_binary(b, "Add", value, graph_input(h, b, SB_F32, 1, &last, PACKED, tensors));
    if (round % 2 == 0) {
        sb_value_id other = graph_input(h, b, SB_F32, rank, dims, (enum layout)(round % LAYOUTS), tensors);
        value = round % 4 == 0 ? builder_binary(b, "Add", other, value) : builder_binary(b, "Sub", value, other);
        if (round % 8 == 6)
            value = builder_binary(b, "Mul", graph_input(h, b, SB_F32, rank, dims, PACKED, tensors), value);
    }
    if (round % 3 == 0)
        value = builder_unary(b, "Relu", value);
    value = builder_binary(b, "Mul", value,
                           graph_input(h, b, SB_F32, rank, narrow, (enum layout)(round / 2 % LAYOUTS), tensors));
    if (round % 4 == 1)
        value = builder_node(b, "Clip", 3,
                             (sb_value_id[]){value, graph_scalar(b, SB_F32, -1.5f), graph_scalar(b, SB_F32, 6)}, NULL);
    return value;
}

HARNESS_GROUP(gemm, epilogues, HARNESS_CUDA) {
    static const struct {
        operand a, b;
        int rank;
        int64_t dims[4];
    } products[] = {
        {{2, {21, 19}, PACKED}, {2, {19, 36}, PACKED}, 2, {21, 36}},
        {{4, {2, 3, 5, 17}, PACKED}, {4, {2, 3, 17, 9}, PACKED}, 4, {2, 3, 5, 9}},
        {{3, {2, 5, 17}, PACKED}, {2, {17, 40}, PACKED}, 3, {2, 5, 40}},
        {{3, {2, 50, 17}, PACKED}, {2, {17, 3}, PACKED}, 3, {2, 50, 3}},
        {{3, {2, 50, 17}, PACKED}, {1, {17}, PACKED}, 2, {2, 50}},
        {{1, {17}, PACKED}, {3, {3, 17, 20}, PACKED}, 2, {3, 20}},
    };
    for (int round = 0; round < 48; round++) {
        builder b = builder_create();
        sb_tensor *tensors[HARNESS_INPUTS] = {NULL};
        int which = round % 6;
        sb_value_id left = graph_input(h, &b, SB_F32, products[which].a.rank, products[which].a.dims, PACKED, tensors);
        sb_value_id right = graph_input(h, &b, SB_F32, products[which].b.rank, products[which].b.dims, PACKED, tensors);
        sb_value_id value = builder_binary(&b, "MatMul", left, right);
        value = add_epilogue(h, &b, value, products[which].rank, products[which].dims, round + round / 6, tensors);
        h->first_tile = -1;
        h->last_tile = round < 6 ? sb_cuda_tile_count() - 1 : -1;
        harness_run_fused(h, &b, value, tensors);
        release_all(tensors, HARNESS_INPUTS);
        builder_destroy(&b);
    }
}

/* ---- f16 and bf16, each of whose nodes rounds ---- */

/* An operand that broadcasts to the product's shape: along its columns, its rows, some of its batches or all of it, or a
 * number, which may be a constant. */
static sb_value_id add_operand(harness *h, builder *b, sb_dtype dtype, int rank, const int64_t *dims,
                               sb_tensor **tensors) {
    random_source *random = &h->random;
    int64_t narrow[5];
    int kind = (int)random_between(random, 0, 5);
    layout layout = random_between(random, 0, 1) == 0 ? PACKED : (enum layout)random_between(random, 0, LAYOUTS - 1);
    if (kind == 0)
        return graph_scalar(b, dtype, (float)random_between(random, -9, 9) / 4);
    if (kind <= 2)
        return graph_input(h, b, dtype, 1, &dims[rank - 1], layout, tensors);
    for (int d = 0; d < rank; d++)
        narrow[d] = kind == 5 && random_between(random, 0, 1) == 0 ? 1 : dims[d];
    if (kind == 4)
        narrow[rank - 1] = 1;
    return graph_input(h, b, dtype, rank, narrow, layout, tensors);
}

/* The nodes that a pass puts behind products of 16 bits, in any order and either way round. */
static sb_value_id add_rounded_node(harness *h, builder *b, sb_value_id value, sb_dtype dtype, int rank,
                                    const int64_t *dims, sb_tensor **tensors) {
    static const char *const names[] = {"Add", "Add", "Mul", "Sub", "Div"};
    int kind = (int)random_between(&h->random, 0, 7);
    if (kind == 5)
        return builder_unary(b, "Relu", value);
    if (kind == 6)
        return builder_unary(b, "Neg", value);
    if (kind == 7) {
        sb_value_id bounds[3] = {value, graph_scalar(b, dtype, -1.5f), graph_scalar(b, dtype, 6)};
        return builder_node(b, "Clip", 3, bounds, NULL);
    }
    sb_value_id other = add_operand(h, b, dtype, rank, dims, tensors);
    bool first = random_between(&h->random, 0, 3) != 0;
    return builder_binary(b, names[kind], first ? value : other, first ? other : value);
}

/* A factor of the product: sums of awkward elements are mostly NaN, so half of the cases have numbers. */
static sb_value_id add_factor(harness *h, builder *b, sb_dtype dtype, const operand *factor, bool awkward,
                              sb_tensor **tensors) {
    sb_value_id value = graph_input(h, b, dtype, factor->rank, factor->dims, factor->layout, tensors);
    const sb_storage *storage = tensors[b->graph->input_count - 1]->storage;
    for (size_t i = 0; i < storage->bytes / sb_dtype_size(dtype) && !awkward; i++)
        sb_real_store_f32(dtype, storage->data, (int64_t)i, (float)random_between(&h->random, -300, 300) / 128);
    return value;
}

static void check_rounded(harness *h, sb_dtype dtype, const operand *a, const operand *b_operand, int rank,
                          const int64_t *dims, int nodes) {
    builder b = builder_create();
    sb_tensor *tensors[HARNESS_INPUTS] = {NULL};
    bool awkward = random_between(&h->random, 0, 1) != 0;
    sb_value_id left = add_factor(h, &b, dtype, a, awkward, tensors);
    sb_value_id right = add_factor(h, &b, dtype, b_operand, awkward, tensors);
    sb_value_id value = builder_binary(&b, "MatMul", left, right);
    for (int i = 0; i < nodes; i++)
        value = add_rounded_node(h, &b, value, dtype, rank, dims, tensors);
    harness_run_fused(h, &b, value, tensors);
    release_all(tensors, HARNESS_INPUTS);
    builder_destroy(&b);
}

/* Extents that tiles of each kind divide or not: few rows, few columns, batches of one step, of two, and of none. */
HARNESS_GROUP(gemm, rounded_epilogues, HARNESS_CPU | HARNESS_CUDA) {
    static const struct {
        operand a, b;
        int rank;
        int64_t dims[4];
    } products[] = {
        {{2, {21, 19}, PACKED}, {2, {19, 36}, PACKED}, 2, {21, 36}},
        {{4, {2, 3, 5, 17}, PACKED}, {4, {2, 3, 17, 9}, PACKED}, 4, {2, 3, 5, 9}},
        {{4, {2, 3, 24, 64}, PACKED}, {4, {2, 3, 64, 40}, TRANSPOSED}, 4, {2, 3, 24, 40}},
        {{3, {2, 5, 16}, PACKED}, {2, {16, 40}, PACKED}, 3, {2, 5, 40}},
        {{3, {2, 50, 17}, PACKED}, {2, {17, 3}, PACKED}, 3, {2, 50, 3}},
        {{3, {2, 50, 64}, PACKED}, {1, {64}, PACKED}, 2, {2, 50}},
        {{1, {17}, PACKED}, {3, {3, 17, 20}, PACKED}, 2, {3, 20}},
        {{2, {3, 64}, PACKED}, {2, {64, 88}, PACKED}, 2, {3, 88}},
        {{2, {40, 128}, PACKED}, {2, {128, 136}, TRANSPOSED}, 2, {40, 136}},
        {{2, {150, 40}, PACKED}, {2, {40, 200}, PACKED}, 2, {150, 200}},
        {{3, {2, 130, 24}, PACKED}, {3, {2, 24, 72}, PACKED}, 3, {2, 130, 72}},
        {{2, {9, 0}, PACKED}, {2, {0, 24}, PACKED}, 2, {9, 24}},
    };
    static const int count = sizeof products / sizeof products[0];
    for (int round = 0; round < 10 * count; round++) {
        int which = round % count;
        check_rounded(h, round / count % 2 == 0 ? SB_F16 : SB_BF16, &products[which].a, &products[which].b,
                      products[which].rank, products[which].dims, 1 + round / count % 4);
    }
}

/* What Gemm does itself comes first: its factors and its sum are one rounding with the chain's. */
HARNESS_GROUP(gemm, rounded_gemms, HARNESS_CPU | HARNESS_CUDA) {
    for (int round = 0; round < 24; round++) {
        builder b = builder_create();
        sb_tensor *tensors[HARNESS_INPUTS] = {NULL};
        sb_dtype dtype = round % 2 == 0 ? SB_F16 : SB_BF16;
        bool transposed = round / 2 % 2 != 0;
        int64_t m = round % 3 == 0 ? 5 : 72, k = 64, n = round % 5 == 0 ? 33 : 48;
        int64_t dims[] = {m, n};
        operand left = {2, {m, k}, PACKED}, right = {2, {transposed ? n : k, transposed ? k : n}, PACKED};
        sb_value_id inputs[3] = {add_factor(h, &b, dtype, &left, round % 8 == 7, tensors),
                                 add_factor(h, &b, dtype, &right, round % 8 == 7, tensors)};
        if (round % 4 != 0)
            inputs[2] = graph_input(h, &b, dtype, 1 + round % 2, round % 2 == 0 ? &n : dims, PACKED, tensors);
        sb_attributes attributes = {0};
        set_graph_float(&attributes, "alpha", round % 3 == 0 ? 0.3f : 1);
        set_graph_float(&attributes, "beta", round % 7 == 0 ? -1.7f : 1);
        set_graph_int(&attributes, "transB", transposed);
        sb_value_id value = builder_node(&b, "Gemm", round % 4 != 0 ? 3 : 2, inputs, &attributes);
        for (int i = 0; i <= round % 3; i++)
            value = add_rounded_node(h, &b, value, dtype, 2, dims, tensors);
        harness_run_fused(h, &b, value, tensors);
        release_all(tensors, HARNESS_INPUTS);
        builder_destroy(&b);
    }
}
