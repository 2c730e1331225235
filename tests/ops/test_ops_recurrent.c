/* RNN, GRU and LSTM: the definition against its formulas, and lengths that no row can have. */
#include "ops/node_cases.h"

#include "numerics/chain.h"
#include "numerics/elementary.h"

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
    node_must_run(&runner, SB_ISA_BEST, outputs);
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
    assert_int_equal(node_run(&runner, SB_ISA_BEST, outputs, &error), SB_ERROR_SHAPE);
    assert_int_equal(node_run(&runner, SB_ISA_SCALAR, outputs, &error), SB_ERROR_SHAPE);
    node_clear(&runner);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(definition_follows_the_formulas),
        cmocka_unit_test(wrong_lengths_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
