/* Small networks of f16 and bf16, of the kinds that people run: an encoder, a residual network, one of separable
 * convolutions, a recurrent one, a decoder step over a cache. All bits are those of the definitions, whatever the
 * instruction set, the number of threads, the passes and the layout of the inputs are, and on a device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "numerics/convert.h"
#include "session_support.h"

#define MOST_INPUTS 4

/* ---- values ---- */

/* Numbers around 0, of which some are zeros and a few are large. */
static sb_tensor *halves(sb_dtype dtype, int rank, const int64_t *dims, float scale, uint64_t seed) {
    random_source source = {seed};
    sb_tensor *tensor;
    MUST(sb_tensor_create(dtype, rank, dims, &tensor, error));
    uint16_t *data = sb_tensor_mutable_data(tensor);
    for (int64_t i = 0; i < sb_tensor_elements(tensor); i++) {
        float value = (float)random_between(&source, -1000, 1000) * scale / 1000;
        int64_t kind = random_between(&source, 0, 99);
        value = kind < 5 ? 0.0f : kind == 5 ? 8 * value : value;
        data[i] = dtype == SB_F16 ? sb_f16_from_f32(value) : sb_bf16_from_f32(value);
    }
    return tensor;
}

/* A network on its way. */
typedef struct network {
    builder b;
    sb_dtype dtype;
    uint64_t seed;
    int input_count;
    sb_tensor *inputs[MOST_INPUTS];
} network;

static sb_value_id input(network *net, int rank, const int64_t *dims) {
    net->inputs[net->input_count++] = halves(net->dtype, rank, dims, 2, ++net->seed);
    return builder_input(&net->b, net->dtype, rank, dims);
}

static sb_value_id constant(network *net, float scale, int rank, const int64_t *dims) {
    sb_tensor *tensor = halves(net->dtype, rank, dims, scale, ++net->seed);
    tensor->storage->dispensable = true; /* as the importer says of what it has read */
    return builder_constant(&net->b, tensor);
}

/* From 0.5 to 1.5, as scales and variances are. */
static sb_value_id near_one(network *net, int64_t count) {
    sb_tensor *tensor = halves(net->dtype, 1, &count, 0.5f, ++net->seed);
    uint16_t *data = sb_tensor_mutable_data(tensor);
    for (int64_t i = 0; i < count; i++) {
        float value = net->dtype == SB_F16 ? sb_f16_to_f32(data[i]) : sb_bf16_to_f32(data[i]);
        value = 1 + (value > 0.5f || value < -0.5f ? 0 : value);
        data[i] = net->dtype == SB_F16 ? sb_f16_from_f32(value) : sb_bf16_from_f32(value);
    }
    return builder_constant(&net->b, tensor);
}

static sb_value_id number(network *net, float value) {
    uint16_t bits = net->dtype == SB_F16 ? sb_f16_from_f32(value) : sb_bf16_from_f32(value);
    sb_tensor *tensor;
    MUST(sb_tensor_from_data(net->dtype, 0, NULL, &bits, &tensor, error));
    return builder_constant(&net->b, tensor);
}

/* ---- layers ---- */

static sb_value_id linear(network *net, sb_value_id x, int64_t from, int64_t to) {
    sb_value_id w = constant(net, 0.2f, 2, (int64_t[]){from, to}), bias = constant(net, 0.2f, 1, &to);
    return builder_binary(&net->b, "Add", builder_binary(&net->b, "MatMul", x, w), bias);
}

static sb_value_id layer_norm(network *net, sb_value_id x, int64_t width) {
    sb_value_id in[] = {x, near_one(net, width), constant(net, 0.1f, 1, &width)};
    return attribute_node(&net->b, "LayerNormalization", 3, in, "axis", true, 1, (int64_t[]){-1});
}

static sb_value_id gelu(network *net, sb_value_id x) {
    builder *b = &net->b;
    sb_value_id erf = builder_unary(b, "Erf", builder_binary(b, "Div", x, number(net, 1.41421356f)));
    sb_value_id sum = builder_binary(b, "Add", erf, number(net, 1));
    return builder_binary(b, "Mul", builder_binary(b, "Mul", x, sum), number(net, 0.5f));
}

static sb_value_id softmax(network *net, sb_value_id x) {
    return attribute_node(&net->b, "Softmax", 1, &x, "axis", true, 1, (int64_t[]){-1});
}

static sb_value_id heads(network *net, sb_value_id x, int64_t count, int64_t size, const int64_t *permutation) {
    return transpose(&net->b, reshape(&net->b, x, 4, (int64_t[]){0, 0, count, size}), 4, permutation);
}

/* Attention of `query` over keys [batch][head][size][past] and values [batch][head][past][size]. */
static sb_value_id attend(network *net, sb_value_id query, sb_value_id keys, sb_value_id values, int64_t width) {
    builder *b = &net->b;
    sb_value_id scores = builder_binary(b, "Div", builder_binary(b, "MatMul", query, keys), number(net, 3));
    sb_value_id mixed = builder_binary(b, "MatMul", softmax(net, scores), values);
    return reshape(b, transpose(b, mixed, 4, (int64_t[]){0, 2, 1, 3}), 3, (int64_t[]){0, 0, width});
}

static void add_encoder(network *net) {
    enum { WIDTH = 36, HEADS = 4, SIZE = 9, TOKENS = 13, MIDDLE = 70 };
    builder *b = &net->b;
    sb_value_id x = input(net, 3, (int64_t[]){2, TOKENS, WIDTH});
    for (int layer = 0; layer < 2; layer++) {
        sb_value_id query = heads(net, linear(net, x, WIDTH, WIDTH), HEADS, SIZE, (int64_t[]){0, 2, 1, 3});
        sb_value_id key = heads(net, linear(net, x, WIDTH, WIDTH), HEADS, SIZE, (int64_t[]){0, 2, 3, 1});
        sb_value_id value = heads(net, linear(net, x, WIDTH, WIDTH), HEADS, SIZE, (int64_t[]){0, 2, 1, 3});
        sb_value_id mixed = linear(net, attend(net, query, key, value, WIDTH), WIDTH, WIDTH);
        x = layer_norm(net, builder_binary(b, "Add", mixed, x), WIDTH);
        sb_value_id y = linear(net, gelu(net, linear(net, x, WIDTH, MIDDLE)), MIDDLE, WIDTH);
        x = layer_norm(net, builder_binary(b, "Add", y, x), WIDTH);
    }
    mark_output(b, x);
}

typedef struct window {
    int64_t kernel, stride, pad, groups;
} window;

static sb_value_id convolve(network *net, sb_value_id x, int64_t from, int64_t to, window window) {
    sb_attributes attributes = {0};
    const int64_t strides[] = {window.stride, window.stride};
    const int64_t pads[] = {window.pad, window.pad, window.pad, window.pad};
    sb_value_id w = constant(net, 0.3f, 4, (int64_t[]){to, from / window.groups, window.kernel, window.kernel});
    MUST(sb_attributes_add_ints(&attributes, "strides", false, 2, strides, error));
    MUST(sb_attributes_add_ints(&attributes, "pads", false, 4, pads, error));
    MUST(sb_attributes_add_ints(&attributes, "group", true, 1, &window.groups, error));
    x = builder_node(&net->b, "Conv", 2, (sb_value_id[]){x, w}, &attributes);
    sb_value_id in[] = {x, near_one(net, to), constant(net, 0.2f, 1, &to), constant(net, 0.2f, 1, &to),
                        near_one(net, to)};
    return builder_node(&net->b, "BatchNormalization", 5, in, NULL);
}

static sb_value_id pool(network *net, const char *op, sb_value_id x, int64_t kernel, int64_t stride) {
    sb_attributes attributes = {0};
    MUST(sb_attributes_add_ints(&attributes, "kernel_shape", false, 2, (int64_t[]){kernel, kernel}, error));
    MUST(sb_attributes_add_ints(&attributes, "strides", false, 2, (int64_t[]){stride, stride}, error));
    MUST(sb_attributes_add_ints(&attributes, "pads", false, 4, (int64_t[]){1, 1, 1, 1}, error));
    return builder_node(&net->b, op, 1, &x, &attributes);
}

static sb_value_id classify(network *net, sb_value_id x, int64_t channels) {
    builder *b = &net->b;
    sb_value_id flat = builder_unary(b, "Flatten", builder_unary(b, "GlobalAveragePool", x));
    sb_value_id in[] = {flat, constant(net, 0.2f, 2, (int64_t[]){11, channels}),
                        constant(net, 0.2f, 1, (int64_t[]){11})};
    return attribute_node(b, "Gemm", 3, in, "transB", true, 1, (int64_t[]){1});
}

static void add_residual(network *net) {
    builder *b = &net->b;
    sb_value_id x = input(net, 4, (int64_t[]){2, 3, 19, 17});
    x = builder_unary(b, "Relu", convolve(net, x, 3, 16, (window){7, 2, 3, 1}));
    x = pool(net, "MaxPool", x, 3, 2);
    for (int block = 0; block < 2; block++) {
        int64_t from = block == 0 ? 16 : 32;
        sb_value_id y = builder_unary(b, "Relu", convolve(net, x, from, 16, (window){1, 1, 0, 1}));
        y = builder_unary(b, "Relu", convolve(net, y, 16, 16, (window){3, 1 + block, 1, 1}));
        y = convolve(net, y, 16, 32, (window){1, 1, 0, 1});
        x = convolve(net, x, from, 32, (window){1, 1 + block, 0, 1});
        x = builder_unary(b, "Relu", builder_binary(b, "Add", y, x));
    }
    mark_output(b, classify(net, pool(net, "AveragePool", x, 2, 1), 32));
}

static void add_separable(network *net) {
    builder *b = &net->b;
    sb_value_id x = input(net, 4, (int64_t[]){1, 3, 15, 14}), least = number(net, 0), most = number(net, 6);
    x = builder_node(b, "Clip", 3, (sb_value_id[]){convolve(net, x, 3, 8, (window){3, 2, 1, 1}), least, most}, NULL);
    for (int block = 0; block < 2; block++) {
        sb_value_id y = convolve(net, x, 8, 24, (window){1, 1, 0, 1});
        y = builder_node(b, "Clip", 3, (sb_value_id[]){y, least, most}, NULL);
        y = convolve(net, y, 24, 24, (window){3, 1, 1, 24});
        y = builder_node(b, "Clip", 3, (sb_value_id[]){y, least, most}, NULL);
        x = builder_binary(b, "Add", convolve(net, y, 24, 8, (window){1, 1, 0, 1}), x);
    }
    mark_output(b, classify(net, x, 8));
}

static void add_recurrent(network *net) {
    enum { FEATURES = 10, HIDDEN = 18 };
    sb_value_id x = input(net, 3, (int64_t[]){7, 3, FEATURES});
    sb_value_id in[] = {x, constant(net, 0.4f, 3, (int64_t[]){1, 4 * HIDDEN, FEATURES}),
                        constant(net, 0.4f, 3, (int64_t[]){1, 4 * HIDDEN, HIDDEN}),
                        constant(net, 0.2f, 2, (int64_t[]){1, 8 * HIDDEN})};
    sb_value_id y = attribute_node(&net->b, "LSTM", 4, in, "hidden_size", true, 1, (int64_t[]){HIDDEN});
    mark_output(&net->b, reshape(&net->b, y, 3, (int64_t[]){7, 3, HIDDEN}));
}

/* Two tokens behind five in the cache, which grows. */
static void add_decoder(network *net) {
    enum { WIDTH = 32, HEADS = 2, SIZE = 16, PAST = 5, VOCABULARY = 1100 };
    builder *b = &net->b;
    sb_value_id x = input(net, 3, (int64_t[]){3, 2, WIDTH});
    sb_value_id past_keys = input(net, 4, (int64_t[]){3, HEADS, PAST, SIZE});
    sb_value_id past_values = input(net, 4, (int64_t[]){3, HEADS, PAST, SIZE});
    const int64_t order[] = {0, 2, 1, 3};
    sb_value_id y = layer_norm(net, x, WIDTH);
    sb_value_id keys = concat(b, past_keys, heads(net, linear(net, y, WIDTH, WIDTH), HEADS, SIZE, order), 2);
    sb_value_id values = concat(b, past_values, heads(net, linear(net, y, WIDTH, WIDTH), HEADS, SIZE, order), 2);
    sb_value_id query = heads(net, linear(net, y, WIDTH, WIDTH), HEADS, SIZE, order);
    sb_value_id turned = transpose(b, keys, 4, (int64_t[]){0, 1, 3, 2});
    x = builder_binary(b, "Add", x, linear(net, attend(net, query, turned, values, WIDTH), WIDTH, WIDTH));
    y = linear(net, layer_norm(net, x, WIDTH), WIDTH, 4 * WIDTH);
    sb_value_id cube = builder_binary(b, "Mul", builder_binary(b, "Mul", y, y), y);
    sb_value_id inner = builder_binary(b, "Add", y, builder_binary(b, "Mul", cube, number(net, 0.044715f)));
    inner = builder_unary(b, "Tanh", builder_binary(b, "Mul", inner, number(net, 0.7978846f)));
    y = builder_binary(b, "Mul", builder_binary(b, "Mul", y, number(net, 0.5f)),
                       builder_binary(b, "Add", inner, number(net, 1)));
    x = builder_binary(b, "Add", x, linear(net, y, 4 * WIDTH, WIDTH));
    mark_output(b, builder_binary(b, "MatMul", x, constant(net, 0.3f, 2, (int64_t[]){WIDTH, VOCABULARY})));
    mark_output(b, keys);
    mark_output(b, values);
}

static const struct {
    const char *name;
    void (*add)(network *net);
} networks[] = {{"encoder", add_encoder},
                {"residual network", add_residual},
                {"separable convolutions", add_separable},
                {"LSTM", add_recurrent},
                {"decoder", add_decoder}};
#define NETWORKS (sizeof networks / sizeof networks[0])

/* ---- running ---- */

static network start_network(size_t index, sb_dtype dtype) {
    network net = {.b = builder_create(), .dtype = dtype, .seed = 100 * index};
    networks[index].add(&net);
    return net;
}

static sb_model *finish_network(network *net, sb_isa isa, bool passes, bool reference_only) {
    sb_model *model;
    sb_model_options options = SB_MODEL_OPTIONS_DEFAULT;
    options.isa = isa;
    options.passes = passes;
    options.reference_only = reference_only;
    builder_finish(&net->b);
    MUST(sb_model_make(graph_source, &net->b, &options, &model, error));
    return model;
}

/* The same elements, in a layout with a gap behind each and the dimensions of memory reversed. */
static sb_tensor *strided(const sb_tensor *tensor) {
    int64_t dims[SB_MAX_RANK + 1];
    int permutation[SB_MAX_RANK + 1];
    sb_tensor *wide, *cut, *view;
    for (int d = 0; d < tensor->rank; d++)
        dims[d] = tensor->dims[tensor->rank - 1 - d] * (d == tensor->rank - 1 ? 2 : 1);
    MUST(sb_tensor_create(tensor->dtype, tensor->rank, dims, &wide, error));
    MUST(sb_tensor_slice(wide, tensor->rank - 1, 0, tensor->dims[0], 2, &cut, error));
    for (int d = 0; d < tensor->rank; d++)
        permutation[d] = tensor->rank - 1 - d;
    MUST(sb_tensor_transpose(cut, permutation, &view, error));
    sb_tensor_copy_elements(view, tensor);
    sb_tensor_release(wide);
    sb_tensor_release(cut);
    return view;
}

static void release_inputs(network *net) {
    release_all(net->inputs, net->input_count);
}

/* Outputs that are all alike, or no numbers, would say nothing. */
static void check_telling(const sb_tensor *tensor) {
    const uint16_t *bits = (const uint16_t *)(const void *)tensor->data;
    int64_t count = sb_tensor_elements(tensor), finite = 0, different = 0;
    uint16_t exponent = tensor->dtype == SB_F16 ? 0x7c00 : 0x7f80;
    for (int64_t i = 0; i < count; i++) {
        finite += (bits[i] & exponent) != exponent;
        different += i > 0 && bits[i] != bits[i - 1];
    }
    assert_int_equal(finite, count);
    assert_true(count > 10 && different > count / 2);
}

/* The outputs by definition. */
static int define(size_t index, sb_dtype dtype, sb_tensor **expected) {
    network net = start_network(index, dtype);
    sb_model *model = finish_network(&net, SB_ISA_SCALAR, false, true);
    sb_session *session = cpu_session(model);
    int count = sb_model_output_count(model);
    run_session(session, net.inputs, expected);
    for (int i = 0; i < count; i++)
        check_telling(expected[i]);
    sb_session_destroy(session);
    sb_model_release(model);
    release_inputs(&net);
    return count;
}

static void run_and_check(sb_model *model, const network *net, int threads, bool gaps, int count,
                          sb_tensor *const *expected) {
    sb_tensor *inputs[MOST_INPUTS], *outputs[MOST_VALUES];
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    options.threads = threads;
    sb_session *session = session_with(model, &options);
    for (int i = 0; i < net->input_count; i++)
        inputs[i] = gaps ? strided(net->inputs[i]) : sb_tensor_retain(net->inputs[i]);
    for (int round = 0; round < 2; round++) {
        run_session(session, inputs, outputs);
        for (int i = 0; i < count; i++)
            check_same(NULL, outputs[i], expected[i]);
        release_all(outputs, count);
    }
    release_all(inputs, net->input_count);
    sb_session_destroy(session);
}

static void check_on_cpu(size_t index, sb_dtype dtype) {
    sb_tensor *expected[MOST_VALUES];
    int count = define(index, dtype, expected);
    for (int isa = SB_ISA_SCALAR; isa <= SB_ISA_AVX512; isa++) {
        sb_isa resolved;
        for (int passes = 0; passes < 2 && sb_isa_resolve((sb_isa)isa, &resolved, NULL) == SB_OK; passes++) {
            network net = start_network(index, dtype);
            sb_model *model = finish_network(&net, resolved, passes != 0, false);
            for (int threads = 1; threads <= 3; threads++) {
                run_and_check(model, &net, threads, false, count, expected);
                run_and_check(model, &net, threads, true, count, expected);
            }
            sb_model_release(model);
            release_inputs(&net);
        }
    }
    release_all(expected, count);
}

static void test_cpu(void **state) {
    (void)state;
    for (size_t index = 0; index < NETWORKS; index++) {
        print_message("%s\n", networks[index].name);
        check_on_cpu(index, SB_F16);
        check_on_cpu(index, SB_BF16);
    }
}

/* Constants whose elements have been let go. */
static int count_gone(const sb_model *model) {
    const sb_graph *graph = model->entries[0].graph;
    int gone = 0;
    for (size_t v = 0; v < graph->value_count; v++)
        gone += graph->values[v].fact.constant != NULL && graph->values[v].fact.constant->data == NULL;
    return gone;
}

/* In a session on the host first, which packs the largest weights and lets their elements go: the device wants them. */
static void check_on_device(const setting *s, size_t index, sb_dtype dtype) {
    sb_tensor *expected[MOST_VALUES], *outputs[MOST_VALUES];
    int count = define(index, dtype, expected);
    network net = start_network(index, dtype);
    sb_model *model = finish_network(&net, SB_ISA_SCALAR, true, false);
    run_and_check(model, &net, 1, false, count, expected);
    assert_int_equal(count_gone(model), networks[index].add == add_decoder);
    sb_session *session = session_on(s->device, model, NULL, NULL, SB_GRAPHS_BUILD, NULL);
    for (int round = 0; round < 2; round++) {
        run_session(session, net.inputs, outputs);
        for (int i = 0; i < count; i++)
            check_same(s->device, outputs[i], expected[i]);
        release_all(outputs, count);
    }
    assert_int_equal(count_gone(model), 0);
    sb_session_destroy(session);
    sb_model_release(model);
    release_inputs(&net);
    release_all(expected, count);
}

static void test_device(void **state) {
    (void)state;
    setting s = start_device();
    for (size_t index = 0; index < NETWORKS; index++) {
        print_message("%s\n", networks[index].name);
        check_on_device(&s, index, SB_F16);
        check_on_device(&s, index, SB_BF16);
    }
    finish(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
