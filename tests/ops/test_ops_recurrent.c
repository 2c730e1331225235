/* RNN, GRU and LSTM: kernels against the definition, and the definition against its formulas. */
#include "ops/kernel_cases.h"

#include "numerics/chain.h"
#include "numerics/elementary.h"

static const char *const activation_names[] = {"Affine",   "Elu",        "HardSigmoid",    "LeakyRelu",
                                               "Relu",     "ScaledTanh", "Sigmoid",        "Softplus",
                                               "Softsign", "Tanh",       "ThresholdedRelu"};

static void add_activations(random_source *source, node_runner *runner, int count) {
    sb_string names[6];
    for (int i = 0; i < count; i++) {
        const char *name = activation_names[random_between(source, 0, 10)];
        names[i] = (sb_string){name, strlen(name)};
    }
    assert_int_equal(sb_attributes_add_strings(&runner->attributes, "activations", false, count, names, NULL), SB_OK);
}

static sb_tensor *random_lengths(random_source *source, int64_t batch, int64_t steps) {
    int32_t lengths[8];
    sb_tensor *tensor = NULL;
    for (int64_t i = 0; i < batch; i++)
        lengths[i] = (int32_t)random_between(source, 0, steps);
    assert_int_equal(sb_tensor_from_data(SB_S32, 1, &batch, lengths, &tensor, NULL), SB_OK);
    return tensor;
}

/* A random node of any kind, direction, layout and set of optional inputs. */
static void random_recurrent(random_source *source, distribution kind, int round, node_runner *runner) {
    static const char *const ops[] = {"RNN", "GRU", "LSTM"};
    static const char *const directions[] = {"forward", "reverse", "bidirectional"};
    int op = round % 3, gates = (int[]){1, 3, 4}[op], direction = (int)random_between(source, 0, 2);
    int64_t count = direction == 2 ? 2 : 1, steps = random_between(source, 0, 5);
    int64_t batch = random_between(source, 1, 4), inputs = random_between(source, 1, 20);
    int64_t hidden = random_between(source, 1, round % 10 == 0 ? 150 : 20);
    bool batch_first = random_bits(source) & 1;
    int64_t x[] = {batch_first ? batch : steps, batch_first ? steps : batch, inputs};
    int64_t state[] = {batch_first ? batch : count, batch_first ? count : batch, hidden};
    *runner =
        (node_runner){.op = ops[op], .version = 14, .input_count = op == 2 ? 8 : 6, .output_count = op == 2 ? 3 : 2};
    add_text(runner, "direction", directions[direction]);
    add_int(runner, "hidden_size", hidden);
    add_int(runner, "layout", batch_first);
    if (op == 1)
        add_int(runner, "linear_before_reset", random_between(source, 0, 1));
    if (op == 2)
        add_int(runner, "input_forget", random_between(source, 0, 1));
    if (random_between(source, 0, 2) == 0)
        add_float(runner, "clip", 0.5f);
    if (random_bits(source) & 1)
        add_activations(source, runner, (op + 1) * (int)count);
    runner->inputs[0] = random_tensor(source, kind, SB_F32, 3, x);
    runner->inputs[1] = random_tensor(source, kind, SB_F32, 3, (int64_t[]){count, gates * hidden, inputs});
    runner->inputs[2] = random_tensor(source, kind, SB_F32, 3, (int64_t[]){count, gates * hidden, hidden});
    if (random_bits(source) & 1)
        runner->inputs[3] = random_tensor(source, kind, SB_F32, 2, (int64_t[]){count, 2 * gates * hidden});
    if (random_bits(source) & 1)
        runner->inputs[4] = random_lengths(source, batch, steps);
    for (int i = 5; i < runner->input_count; i++) {
        if (random_bits(source) & 1)
            runner->inputs[i] = i < 7 ? random_tensor(source, kind, SB_F32, 3, state)
                                      : random_tensor(source, kind, SB_F32, 2, (int64_t[]){count, 3 * hidden});
    }
    runner->constants = random_bits(source) & 1 ? 6 : 0;
}

static void kernels_equal_the_definition(void **unused) {
    random_source source = {1};
    for (int round = 0; round < 150; round++) {
        node_runner runner;
        random_recurrent(&source, (distribution)(round / 3 % DISTRIBUTIONS), round, &runner);
        check_kernels(&runner);
    }
}

static float at3(const sb_tensor *t, int64_t i, int64_t j, int64_t k) {
    return ((const float *)(void *)t->data)[i * t->strides[0] + j * t->strides[1] + k * t->strides[2]];
}

/* An LSTM with bias, two steps, from the formulas. */
static void definition_follows_the_formulas(void **unused) {
    enum { STEPS = 3, INPUTS = 5, HIDDEN = 4 };
    random_source source = {2};
    sb_value outputs[NODE_OUTPUTS] = {{0}};
    node_runner runner = {.op = "LSTM", .version = 14, .input_count = 4, .output_count = 3};
    add_int(&runner, "hidden_size", HIDDEN);
    runner.inputs[0] = random_tensor(&source, ORDINARY, SB_F32, 3, (int64_t[]){STEPS, 1, INPUTS});
    runner.inputs[1] = random_tensor(&source, ORDINARY, SB_F32, 3, (int64_t[]){1, 4 * HIDDEN, INPUTS});
    runner.inputs[2] = random_tensor(&source, ORDINARY, SB_F32, 3, (int64_t[]){1, 4 * HIDDEN, HIDDEN});
    runner.inputs[3] = random_tensor(&source, ORDINARY, SB_F32, 3, (int64_t[]){1, 8 * HIDDEN, 1});
    sb_tensor *bias = NULL;
    assert_int_equal(sb_tensor_reshape(runner.inputs[3], 2, (int64_t[]){1, 8 * HIDDEN}, &bias, NULL), SB_OK);
    sb_tensor_release(runner.inputs[3]);
    runner.inputs[3] = bias;
    node_must_run(&runner, SB_ISA_BEST, 1, outputs);
    const sb_tensor *x = runner.inputs[0], *w = runner.inputs[1], *r = runner.inputs[2];
    float h[HIDDEN] = {0}, c[HIDDEN] = {0};
    for (int t = 0; t < STEPS; t++) {
        float pre[4 * HIDDEN];
        for (int g = 0; g < 4 * HIDDEN; g++) {
            float xw = 0, hr = 0;
            for (int k = 0; k < INPUTS; k++)
                xw = fmaf(at3(x, t, 0, k), at3(w, 0, g, k), xw);
            for (int k = 0; k < HIDDEN; k++)
                hr = fmaf(h[k], at3(r, 0, g, k), hr);
            const float *b = (const float *)(void *)bias->data;
            pre[g] = (xw + hr) + (b[g * bias->strides[1]] + b[(4 * HIDDEN + g) * bias->strides[1]]);
        }
        for (int j = 0; j < HIDDEN; j++) {
            float in = sb_sigmoid_f32(pre[j]), forget = sb_sigmoid_f32(pre[2 * HIDDEN + j]);
            float kept = forget * c[j], added = in * sb_tanh_f32(pre[3 * HIDDEN + j]);
            c[j] = kept + added;
            h[j] = sb_sigmoid_f32(pre[HIDDEN + j]) * sb_tanh_f32(c[j]);
        }
        assert_same_floats("Y", h, (const float *)(void *)outputs[0].tensor->data + t * HIDDEN, HIDDEN);
    }
    assert_same_floats("Y_h", h, (const float *)(void *)outputs[1].tensor->data, HIDDEN);
    assert_same_floats("Y_c", c, (const float *)(void *)outputs[2].tensor->data, HIDDEN);
    release_outputs(outputs);
    node_clear(&runner);
}

static void wrong_lengths_are_refused(void **unused) {
    random_source source = {3};
    sb_error error;
    sb_value outputs[NODE_OUTPUTS] = {{0}};
    node_runner runner = {.op = "RNN", .version = 14, .input_count = 5, .output_count = 2};
    runner.inputs[0] = random_tensor(&source, ORDINARY, SB_F32, 3, (int64_t[]){2, 1, 3});
    runner.inputs[1] = random_tensor(&source, ORDINARY, SB_F32, 3, (int64_t[]){1, 4, 3});
    runner.inputs[2] = random_tensor(&source, ORDINARY, SB_F32, 3, (int64_t[]){1, 4, 4});
    assert_int_equal(sb_tensor_from_data(SB_S32, 1, (int64_t[]){1}, (int32_t[]){3}, &runner.inputs[4], NULL), SB_OK);
    assert_int_equal(node_run(&runner, SB_ISA_BEST, 1, outputs, &error), SB_ERROR_SHAPE);
    assert_int_equal(node_run(&runner, SB_ISA_SCALAR, 1, outputs, &error), SB_ERROR_SHAPE);
    node_clear(&runner);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(definition_follows_the_formulas),
        cmocka_unit_test(wrong_lengths_are_refused),
        cmocka_unit_test(kernels_equal_the_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
