/* A row of a batch has the bits that it has alone: small versions of the networks that are
 * benchmarked (residual convolutions, an encoder with attention, two recurrent layers), over
 * instruction sets, threads, sizes of batches and places in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/allocation.h"
#include "support/graph_builder.h"
#include "support/random.h"

#define LARGEST 9

static random_source numbers = {1};

static sb_tensor *random_tensor(int rank, const int64_t *dims, float scale) {
    sb_tensor *tensor;
    assert_int_equal(sb_tensor_create(SB_F32, rank, dims, &tensor, NULL), SB_OK);
    float *data = sb_tensor_mutable_data(tensor);
    for (int64_t i = 0; i < sb_tensor_elements(tensor); i++)
        data[i] = scale * (float)random_between(&numbers, -1000, 1000) / 1000;
    return tensor;
}

/* A random initialiser of up to four extents. */
#define WEIGHTS(b, scale, ...)                                                                                         \
    builder_constant(                                                                                                  \
        b, random_tensor((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__}, scale))

static sb_value_id list(builder *b, int64_t count, const int64_t *values) {
    sb_tensor *tensor;
    assert_int_equal(sb_tensor_from_data(SB_S64, 1, &count, values, &tensor, NULL), SB_OK);
    return builder_constant(b, tensor);
}

#define LIST(b, ...) list(b, (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

static void add_ints(sb_attributes *attributes, const char *name, bool scalar, int64_t count, const int64_t *values) {
    assert_int_equal(sb_attributes_add_ints(attributes, name, scalar, count, values, NULL), SB_OK);
}

/* ---- residual convolutions ---- */

static sb_value_id convolve(builder *b, sb_value_id x, int64_t from, int64_t to, int64_t kernel, int64_t stride) {
    sb_attributes attributes = {0};
    int64_t pad = kernel / 2;
    add_ints(&attributes, "strides", false, 2, (int64_t[]){stride, stride});
    add_ints(&attributes, "pads", false, 4, (int64_t[]){pad, pad, pad, pad});
    sb_value_id inputs[3] = {x, WEIGHTS(b, 0.3f, to, from, kernel, kernel), WEIGHTS(b, 0.1f, to)};
    return builder_node(b, "Conv", 3, inputs, &attributes);
}

static sb_value_id normalise_batch(builder *b, sb_value_id x, int64_t channels) {
    sb_tensor *variance = random_tensor(1, &channels, 0.4f);
    float *data = sb_tensor_mutable_data(variance);
    for (int64_t i = 0; i < channels; i++)
        data[i] += 1;
    sb_value_id inputs[5] = {x, WEIGHTS(b, 1, channels), WEIGHTS(b, 1, channels), WEIGHTS(b, 1, channels),
                             builder_constant(b, variance)};
    return builder_node(b, "BatchNormalization", 5, inputs, NULL);
}

static int build_residual(builder *b) {
    sb_value_id x = builder_input(b, SB_F32, 4, (int64_t[]){-1, 3, 21, 21});
    sb_attributes pool = {0};
    add_ints(&pool, "kernel_shape", false, 2, (int64_t[]){3, 3});
    add_ints(&pool, "strides", false, 2, (int64_t[]){2, 2});
    x = builder_unary(b, "Relu", normalise_batch(b, convolve(b, x, 3, 20, 7, 2), 20));
    x = builder_node(b, "MaxPool", 1, &x, &pool);
    for (int block = 0; block < 2; block++) {
        sb_value_id inner = builder_unary(b, "Relu", normalise_batch(b, convolve(b, x, 20, 11, 1, 1), 11));
        inner = builder_unary(b, "Relu", convolve(b, inner, 11, 11, 3, 1));
        x = builder_unary(b, "Relu", builder_binary(b, "Add", convolve(b, inner, 11, 20, 1, 1), x));
    }
    x = builder_unary(b, "Flatten", builder_unary(b, "GlobalAveragePool", x));
    x = builder_node(b, "Gemm", 3, (sb_value_id[]){x, WEIGHTS(b, 1, 20, 10), WEIGHTS(b, 1, 10)}, NULL);
    assert_int_equal(sb_graph_add_output(b->graph, builder_unary(b, "Softmax", x), NULL), SB_OK);
    return 0;
}

/* ---- an encoder with attention ---- */

enum { TIME = 13, WIDTH = 24, HEADS = 3 };

static sb_value_id linear(builder *b, sb_value_id x, int64_t from, int64_t to) {
    return builder_binary(b, "Add", builder_binary(b, "MatMul", x, WEIGHTS(b, 0.3f, from, to)), WEIGHTS(b, 0.1f, to));
}

static sb_value_id transpose(builder *b, sb_value_id x, const int64_t *order) {
    sb_attributes attributes = {0};
    add_ints(&attributes, "perm", false, 4, order);
    return builder_node(b, "Transpose", 1, &x, &attributes);
}

static sb_value_id heads(builder *b, sb_value_id x, bool transposed) {
    sb_value_id split = builder_binary(b, "Reshape", x, LIST(b, 0, -1, HEADS, WIDTH / HEADS));
    return transpose(b, split, transposed ? (int64_t[]){0, 2, 3, 1} : (int64_t[]){0, 2, 1, 3});
}

static sb_value_id normalise_rows(builder *b, sb_value_id x) {
    return builder_node(b, "LayerNormalization", 3, (sb_value_id[]){x, WEIGHTS(b, 1, WIDTH), WEIGHTS(b, 1, WIDTH)},
                        NULL);
}

static int build_encoder(builder *b) {
    sb_value_id x = builder_input(b, SB_F32, 3, (int64_t[]){-1, TIME, WIDTH});
    for (int layer = 0; layer < 2; layer++) {
        sb_value_id query = heads(b, linear(b, x, WIDTH, WIDTH), false),
                    key = heads(b, linear(b, x, WIDTH, WIDTH), true);
        sb_value_id value = heads(b, linear(b, x, WIDTH, WIDTH), false);
        sb_value_id weights = builder_unary(b, "Softmax", builder_binary(b, "MatMul", query, key));
        sb_value_id mixed = transpose(b, builder_binary(b, "MatMul", weights, value), (int64_t[]){0, 2, 1, 3});
        mixed = builder_binary(b, "Reshape", mixed, LIST(b, 0, -1, WIDTH));
        x = normalise_rows(b, builder_binary(b, "Add", linear(b, mixed, WIDTH, WIDTH), x));
        sb_value_id inner = linear(b, x, WIDTH, 2 * WIDTH);
        inner = builder_binary(b, "Mul", inner, builder_unary(b, "Erf", inner));
        x = normalise_rows(b, builder_binary(b, "Add", linear(b, inner, 2 * WIDTH, WIDTH), x));
    }
    assert_int_equal(sb_graph_add_output(b->graph, x, NULL), SB_OK);
    return 0;
}

/* ---- two recurrent layers ---- */

static sb_value_id recur(builder *b, const char *op, int gates, sb_value_id x, int64_t from, int64_t to) {
    sb_attributes attributes = {0};
    add_ints(&attributes, "hidden_size", true, 1, &to);
    sb_value_id inputs[4] = {x, WEIGHTS(b, 0.5f, 1, gates * to, from), WEIGHTS(b, 0.5f, 1, gates * to, to),
                             WEIGHTS(b, 0.5f, 1, 2 * gates * to)};
    sb_value_id y = builder_node(b, op, 4, inputs, &attributes);
    return builder_binary(b, "Squeeze", y, LIST(b, 1));
}

static int build_recurrent(builder *b) {
    sb_value_id x = builder_input(b, SB_F32, 3, (int64_t[]){7, -1, 10});
    x = recur(b, "LSTM", 4, x, 10, 19);
    x = recur(b, "GRU", 3, x, 19, 17);
    assert_int_equal(sb_graph_add_output(b->graph, linear(b, x, 17, 5), NULL), SB_OK);
    return 1;
}

/* ---- runs ---- */

typedef struct network {
    builder built;
    int axis; /* of the batch, in input and output */
    int rank;
    int64_t dims[4]; /* of the input */
} network;

static network build(int (*function)(builder *b), bool passes) {
    network made = {.built = builder_create()};
    sb_error error = {SB_OK, ""};
    numbers.state = 7;
    made.axis = function(&made.built);
    builder_finish(&made.built);
    if (passes && sb_passes_run(made.built.graph, made.built.scope, &error) != SB_OK)
        fail_msg("%s", error.message);
    const sb_fact *fact = &made.built.graph->values[made.built.graph->inputs[0]].fact;
    made.rank = fact->rank;
    for (int d = 0; d < made.rank; d++)
        sb_dim_is_constant(fact->dims[d], &made.dims[d]);
    return made;
}

static sb_tensor *slice(sb_tensor *tensor, int axis, int64_t start, int64_t count) {
    sb_tensor *part;
    assert_int_equal(sb_tensor_slice(tensor, axis, start, count, 1, &part, NULL), SB_OK);
    return part;
}

static sb_tensor *run_part(const network *network, sb_tensor *samples, int64_t start, int64_t count, bool reference,
                           sb_isa isa, int threads) {
    sb_tensor *input = slice(samples, network->axis, start, count), *output;
    builder_run(&network->built, reference, isa, threads, &input, &output);
    sb_tensor_release(input);
    return output;
}

static void check_rows(const network *network, sb_tensor *samples, sb_tensor *const *alone, bool reference, sb_isa isa,
                       int threads) {
    for (int64_t count = 1; count <= LARGEST; count += count < 3 ? 1 : 3) {
        for (int64_t start = 0; start + count <= LARGEST; start += 4) {
            sb_tensor *all = run_part(network, samples, start, count, reference, isa, threads);
            for (int64_t row = 0; row < count; row++) {
                sb_tensor *found = slice(all, network->axis, row, 1);
                if (!sb_tensor_equal(found, alone[start + row]))
                    fail_msg("row %lld of %lld, sample %lld, instruction set %s, %d threads", (long long)row,
                             (long long)count, (long long)(start + row), sb_isa_name(isa), threads);
                sb_tensor_release(found);
            }
            sb_tensor_release(all);
        }
    }
}

static void check_network(int (*function)(builder *b)) {
    network plain = build(function, false), fused = build(function, true);
    assert_true(fused.built.graph->node_count < plain.built.graph->node_count);
    int64_t dims[4];
    memcpy(dims, plain.dims, sizeof dims);
    dims[plain.axis] = LARGEST;
    sb_tensor *samples = random_tensor(plain.rank, dims, 1), *alone[LARGEST];
    for (int64_t i = 0; i < LARGEST; i++)
        alone[i] = run_part(&plain, samples, i, 1, true, SB_ISA_SCALAR, 1);
    /* Rows differ from each other: else nothing would show. */
    assert_false(sb_tensor_equal(alone[0], alone[1]));
    check_rows(&plain, samples, alone, true, SB_ISA_SCALAR, 1);
    for (int isa = SB_ISA_SCALAR; isa <= (int)sb_isa_detect(); isa++) {
        check_rows(&plain, samples, alone, false, (sb_isa)isa, 1);
        check_rows(&fused, samples, alone, false, (sb_isa)isa, 1);
        check_rows(&fused, samples, alone, false, (sb_isa)isa, 3);
    }
    for (int64_t i = 0; i < LARGEST; i++)
        sb_tensor_release(alone[i]);
    sb_tensor_release(samples);
    builder_destroy(&plain.built);
    builder_destroy(&fused.built);
}

static void test_residual(void **state) {
    check_network(build_residual);
}

static void test_encoder(void **state) {
    check_network(build_encoder);
}

static void test_recurrent(void **state) {
    check_network(build_recurrent);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_residual),
        cmocka_unit_test(test_encoder),
        cmocka_unit_test(test_recurrent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
