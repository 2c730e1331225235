/* Conv: the definition against plain loops. */
#include "ops/node_cases.h"

static const sb_dtype float_dtypes[] = {SB_F32, SB_F16, SB_BF16};

/* The definition on a small image, tap by tap. */
static void definition_runs_taps_then_channels(void **unused) {
    random_source source = {4};
    for (int round = 0; round < 20; round++) {
        sb_value outputs[NODE_OUTPUTS] = {{0}};
        int64_t stride = random_between(&source, 1, 2), pad = random_between(&source, 0, 2);
        node_runner runner = {.op = "Conv", .version = 11, .input_count = 3, .output_count = 1};
        add_ints(&runner, "strides", 2, (int64_t[]){stride, stride});
        add_ints(&runner, "pads", 4, (int64_t[]){pad, pad, pad, pad});
        runner.inputs[0] = random_tensor(&source, (distribution)(round % 3), SB_F32, 4, (int64_t[]){1, 3, 5, 6});
        runner.inputs[1] = random_tensor(&source, (distribution)(round % 3), SB_F32, 4, (int64_t[]){2, 3, 3, 2});
        runner.inputs[2] = random_tensor(&source, (distribution)(round % 3), SB_F32, 1, (int64_t[]){2});
        node_must_run(&runner, SB_ISA_BEST, outputs);
        const sb_tensor *x = runner.inputs[0], *w = runner.inputs[1], *b = runner.inputs[2];
        const sb_tensor *y = outputs[0].tensor;
        for (int64_t i = 0; i < sb_tensor_elements(y); i++) {
            int64_t m = i / (y->dims[2] * y->dims[3]), row = i / y->dims[3] % y->dims[2];
            int64_t column = i % y->dims[3];
            float acc = 0.0f;
            for (int64_t t = 0; t < 18; t++) {
                int64_t c = t % 3, kx = t / 3 % 2, ky = t / 6;
                int64_t iy = row * stride + ky - pad, ix = column * stride + kx - pad;
                float value = 0.0f;
                if (iy >= 0 && iy < 5 && ix >= 0 && ix < 6)
                    value =
                        ((const float *)(void *)x->data)[c * x->strides[1] + iy * x->strides[2] + ix * x->strides[3]];
                acc =
                    fmaf(value,
                         ((const float *)(void *)
                              w->data)[m * w->strides[0] + c * w->strides[1] + ky * w->strides[2] + kx * w->strides[3]],
                         acc);
            }
            acc = acc + ((const float *)(void *)b->data)[m * b->strides[0]];
            assert_same_floats("Conv", &acc, (const float *)(void *)y->data + i, 1);
        }
        release_outputs(outputs);
        node_clear(&runner);
    }
}

static void wrong_shapes_are_refused(void **unused) {
    static const int64_t cases[][2][4] = {{{1, 3, 5, 5}, {4, 2, 2, 2}}, {{1, 3, 1, 1}, {4, 3, 3, 3}}};
    random_source source = {5};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sb_error error;
        sb_value outputs[NODE_OUTPUTS] = {{0}};
        node_runner runner = {.op = "Conv", .version = 11, .input_count = 2, .output_count = 1};
        runner.inputs[0] = random_tensor(&source, ORDINARY, SB_F32, 4, cases[i][0]);
        runner.inputs[1] = random_tensor(&source, ORDINARY, SB_F32, 4, cases[i][1]);
        assert_int_equal(node_run(&runner, SB_ISA_BEST, outputs, &error), SB_ERROR_SHAPE);
        node_clear(&runner);
    }
}

/* With offsets of zero, a deformable convolution samples exactly what Conv reads. */
static void deformable_without_offsets_is_a_convolution(void **unused) {
    random_source source = {6};
    for (int round = 0; round < 12; round++) {
        sb_dtype dtype = round % 4 == 3 ? SB_F64 : float_dtypes[round % 4];
        int64_t offset_groups = random_between(&source, 1, 2);
        sb_value outputs[2][NODE_OUTPUTS] = {{{0}}};
        node_runner runners[2] = {{.op = "Conv", .version = 11, .input_count = 3, .output_count = 1},
                                  {.op = "DeformConv", .version = 19, .input_count = 4, .output_count = 1}};
        sb_tensor *x = random_tensor(&source, ORDINARY, dtype, 4, (int64_t[]){2, 4, 6, 5});
        sb_tensor *w = random_tensor(&source, ORDINARY, dtype, 4, (int64_t[]){6, 2, 3, 2});
        sb_tensor *bias = random_tensor(&source, ORDINARY, dtype, 1, (int64_t[]){6});
        sb_tensor *zero = NULL, *offsets = NULL;
        assert_int_equal(sb_tensor_create(dtype, 0, NULL, &zero, NULL), SB_OK);
        assert_int_equal(sb_tensor_broadcast(zero, 4, (int64_t[]){2, 12 * offset_groups, 6, 6}, &offsets, NULL), SB_OK);
        sb_tensor_release(zero);
        for (int i = 0; i < 2; i++) {
            add_int(&runners[i], "group", 2);
            add_ints(&runners[i], "pads", 4, (int64_t[]){1, 1, 1, 1});
            runners[i].inputs[0] = sb_tensor_retain(x);
            runners[i].inputs[1] = sb_tensor_retain(w);
            runners[i].inputs[2 + i] = sb_tensor_retain(bias);
        }
        add_int(&runners[1], "offset_group", offset_groups);
        runners[1].inputs[2] = offsets;
        for (int i = 0; i < 2; i++)
            node_must_run(&runners[i], SB_ISA_BEST, outputs[i]);
        assert_true(sb_tensor_equal(outputs[0][0].tensor, outputs[1][0].tensor));
        for (int i = 0; i < 2; i++) {
            release_outputs(outputs[i]);
            node_clear(&runners[i]);
        }
        sb_tensor_release(x);
        sb_tensor_release(w);
        sb_tensor_release(bias);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(definition_runs_taps_then_channels),
        cmocka_unit_test(wrong_shapes_are_refused),
        cmocka_unit_test(deformable_without_offsets_is_a_convolution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
