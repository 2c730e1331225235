/* Sessions of convolutional networks in f16 and bf16: convolutions write channels last, what follows keeps that order, and only
 * where it is not wanted is anything turned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "session_models.h"

/* The names of a run's tasks. */
typedef struct seen {
    int pixels, products, grouped, tiles, pools, turns, packings;
} seen;

static sb_status look(void *context, const sb_task_span *spans, size_t count, sb_error *error) {
    seen *seen = context;
    (void)error;
    for (size_t i = 0; i < count; i++) {
        const char *task = spans[i].task;
        seen->pixels += strstr(task, "gemm16_conv") != NULL;
        seen->products += strstr(task, "gemm16") != NULL && strstr(task, "gemm16_conv") == NULL;
        seen->turns += strstr(task, "conv16_turn") != NULL;
        seen->packings += strstr(task, "conv16_pack") != NULL;
        seen->grouped += strstr(task, "conv16_depthwise") != NULL || strstr(task, "conv16_grouped") != NULL;
        seen->pools += strstr(task, "pool16") != NULL;
        seen->tiles += strstr(task, "conv16_f16") != NULL || strstr(task, "conv16_narrow") != NULL;
    }
    return SB_OK;
}

/* A convolution with constant weights; square windows, padded to keep the extent when the stride is 1. */
static sb_value_id convolve(builder *b, sb_dtype dtype, sb_value_id x, int64_t channels, int64_t outputs,
                            int64_t kernel, int64_t stride, int64_t groups, bool with_bias) {
    static uint64_t seed;
    sb_value_id inputs[3] = {
        x,
        builder_constant(b, random_tensor(dtype, 4, (int64_t[]){outputs, channels / groups, kernel, kernel}, ++seed))};
    sb_attributes attributes = {0};
    int64_t half = kernel / 2;
    if (with_bias)
        inputs[2] = builder_constant(b, random_tensor(dtype, 1, &outputs, ++seed));
    MUST(sb_attributes_add_ints(&attributes, "pads", false, 4, (int64_t[]){half, half, half, half}, error));
    MUST(sb_attributes_add_ints(&attributes, "strides", false, 2, (int64_t[]){stride, stride}, error));
    MUST(sb_attributes_add_ints(&attributes, "group", true, 1, &groups, error));
    return builder_node(b, "Conv", with_bias ? 3 : 2, inputs, &attributes);
}

static sb_value_id normalise(builder *b, sb_dtype dtype, sb_value_id x, int64_t channels) {
    sb_value_id inputs[5] = {x};
    for (int i = 1; i < 5; i++) {
        sb_tensor *list = random_tensor(dtype, 1, &channels, 50 + (uint64_t)i);
        for (int64_t j = 0; j < channels && i == 4; j++) /* variances */
            ((uint16_t *)(void *)list->data)[j] &= 0x7fff;
        inputs[i] = builder_constant(b, list);
    }
    return builder_node(b, "BatchNormalization", 5, inputs, NULL);
}

static sb_value_id pool(builder *b, const char *op, sb_value_id x) {
    sb_attributes attributes = {0};
    MUST(sb_attributes_add_ints(&attributes, "kernel_shape", false, 2, (int64_t[]){3, 3}, error));
    MUST(sb_attributes_add_ints(&attributes, "strides", false, 2, (int64_t[]){2, 2}, error));
    MUST(sb_attributes_add_ints(&attributes, "pads", false, 4, (int64_t[]){1, 1, 1, 1}, error));
    return builder_node(b, op, 1, &x, &attributes);
}

/* A first layer, a pool, a residual block with a shorter way, a depthwise layer and a classifier; outputs from inside too,
 * one with its channels last, one through a view, and one whose shape needs a copy. */
#define OUTPUTS 5
static sb_model *network_of(sb_dtype dtype, bool passes) {
    builder b = builder_create();
    sb_value_id x = builder_input(&b, dtype, 4, (int64_t[]){-1, 3, 18, 14});
    sb_value_id first =
        builder_unary(&b, "Relu", normalise(&b, dtype, convolve(&b, dtype, x, 3, 16, 7, 2, 1, false), 16));
    sb_value_id pooled = pool(&b, "MaxPool", first); /* n 16 5 4 */
    sb_value_id left = convolve(&b, dtype, pooled, 16, 32, 1, 1, 1, true);
    left = builder_unary(&b, "Relu", convolve(&b, dtype, left, 32, 32, 3, 2, 1, false)); /* n 32 3 2 */
    left = convolve(&b, dtype, left, 32, 64, 1, 1, 1, true);
    sb_value_id right = convolve(&b, dtype, pooled, 16, 64, 1, 2, 1, false);
    sb_value_id sum = builder_unary(&b, "Relu", builder_binary(&b, "Add", left, right)); /* n 64 3 2 */
    sb_value_id deep = convolve(&b, dtype, sum, 64, 64, 3, 1, 64, true);
    sb_value_id odd = convolve(&b, dtype, deep, 64, 5, 3, 1, 1, true);
    sb_value_id mean = builder_unary(&b, "GlobalAveragePool", pool(&b, "AveragePool", sum));
    mark_output(&b, sum);
    mark_output(&b, transpose(&b, left, 4, (int64_t[]){0, 2, 3, 1}));
    mark_output(&b, odd);
    mark_output(&b, builder_binary(&b, "Reshape", sum, integers(&b, 2, (int64_t[]){0, -1})));
    mark_output(&b, convolve(&b, dtype, mean, 64, 24, 1, 1, 1, true));
    return model_of(&b, passes);
}

static sb_model *network_f16(bool passes) {
    return network_of(SB_F16, passes);
}

static sb_model *network_bf16(bool passes) {
    return network_of(SB_BF16, passes);
}

static void check(sb_model *(*make)(bool passes), bool device_outputs) {
    static const int64_t batches[] = {1, 3, 2};
    for (int passes = 0; passes < 2; passes++) {
        setting s = start(make, passes != 0);
        for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
            sb_session *session = open_session(&s, mode, device_outputs, NULL);
            for (int i = 0; i < 3 * 3; i++) {
                sb_dtype dtype = sb_model_input(s.model, 0)->dtype;
                sb_tensor *x = random_tensor(dtype, 4, (int64_t[]){batches[i / 3], 3, 18, 14}, 100 + (uint64_t)i);
                run_both(session, s.cpu, s.device, 1, &x, OUTPUTS);
                sb_tensor_release(x);
            }
            sb_session_destroy(session);
        }
        finish(&s);
    }
}

static void test_networks(void **unused) {
    check(network_f16, false);
    check(network_bf16, false);
}

static void test_outputs_on_device(void **unused) {
    check(network_f16, true);
}

/* Nothing is turned behind the first layer, which reads the network's input. */
static void test_ways(void **unused) {
    setting s = start(network_f16, true);
    seen seen = {0};
    sb_session_options options = options_on(s.device);
    options.task_observer = look;
    options.task_observer_context = &seen;
    sb_session *session = session_with(s.model, &options);
    sb_tensor *x = random_tensor(SB_F16, 4, (int64_t[]){2, 3, 18, 14}, 5), *outputs[OUTPUTS];
    run_session(session, &x, outputs);
    assert_int_equal(seen.packings, 4); /* of the weights of several taps, once */
    release_all(outputs, OUTPUTS);
    seen = (struct seen){0};
    run_session(session, &x, outputs);
    assert_int_equal(seen.tiles, 1); /* 3 channels */
    assert_int_equal(seen.grouped, 1);
    assert_int_equal(seen.pools, 2);
    assert_int_equal(seen.products, 3); /* 1 by 1 of stride 1 */
    assert_int_equal(seen.pixels, 3);
    assert_int_equal(seen.turns, 0);
    assert_int_equal(seen.packings, 0);
    release_all(outputs, OUTPUTS);
    sb_tensor_release(x);
    sb_session_destroy(session);
    finish(&s);
}

/* Maps that are joined and enlarged by copying on their way. */
static sb_model *network_of_joins(bool passes) {
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F16, 4, (int64_t[]){-1, 3, 9, 7});
    sb_value_id first = builder_unary(&b, "Relu", convolve(&b, SB_F16, x, 3, 16, 3, 1, 1, true));
    sb_value_id deep = convolve(&b, SB_F16, first, 16, 16, 5, 1, 16, true);
    sb_attributes axis = {0}, mode = {0};
    int64_t channels = 1;
    MUST(sb_attributes_add_ints(&axis, "axis", true, 1, &channels, error));
    sb_value_id joined = builder_node(&b, "Concat", 2, (sb_value_id[]){first, deep}, &axis);
    sb_string nearest = {"nearest", 7};
    MUST(sb_attributes_add_strings(&mode, "mode", true, 1, &nearest, error));
    sb_tensor *scales;
    MUST(sb_tensor_create(SB_F32, 1, (int64_t[]){4}, &scales, error));
    memcpy(scales->data, (float[]){1, 1, 2, 2}, 4 * sizeof(float));
    sb_value_id larger =
        builder_node(&b, "Resize", 3, (sb_value_id[]){joined, SB_NO_VALUE, builder_constant(&b, scales)}, &mode);
    mark_output(&b, convolve(&b, SB_F16, larger, 32, 8, 3, 1, 1, true));
    return model_of(&b, passes);
}

static void test_joins(void **unused) {
    setting s = start(network_of_joins, true);
    seen seen = {0};
    sb_session_options options = options_on(s.device);
    options.task_observer = look;
    options.task_observer_context = &seen;
    sb_session *session = session_with(s.model, &options);
    sb_tensor *x = random_tensor(SB_F16, 4, (int64_t[]){2, 3, 9, 7}, 5);
    run_both(session, s.cpu, s.device, 1, &x, 1);
    assert_int_equal(seen.grouped, 1);
    assert_int_equal(seen.pixels, 1);
    assert_int_equal(seen.turns, 0);
    sb_tensor_release(x);
    sb_session_destroy(session);
    finish(&s);
}

/* Each map and launch refused in turn: a report or the right bits, and the session goes on. */
static void test_failing_calls(void **unused) {
    static const char *const calls[] = {"cuTensorMapEncodeIm2col", "cuTensorMapEncodeTiled", "cuLaunchKernelEx"};
    setting s = start(network_bf16, true);
    sb_tensor *x = random_tensor(SB_BF16, 4, (int64_t[]){2, 3, 18, 14}, 5), *expected[OUTPUTS], *outputs[OUTPUTS];
    run_session(s.cpu, &x, expected);
    for (size_t call = 0; call < sizeof calls / sizeof calls[0]; call++) {
        int reported = 0;
        bool happened = true;
        for (int skip = 0; happened; skip++) {
            sb_session *session = open_session(&s, SB_GRAPHS_CAPTURE, false, NULL);
            s.fake->plan_failure(calls[call], skip, 2);
            for (int run = 0; run < 4; run++) {
                sb_error error = {SB_OK, ""};
                if (run == 3) {
                    happened = s.fake->failure_happened();
                    s.fake->plan_failure(NULL, -1, 0);
                }
                if (sb_session_run_tensors(session, &x, outputs, &error) != SB_OK) {
                    assert_true(run < 3 && s.fake->failure_happened());
                    assert_non_null(strstr(error.message, "failed with CUDA_ERROR"));
                    reported++;
                    continue;
                }
                for (int i = 0; i < OUTPUTS; i++)
                    assert_true(sb_tensor_equal(outputs[i], expected[i]));
                release_all(outputs, OUTPUTS);
            }
            sb_session_destroy(session);
        }
        assert_true(reported > 0);
    }
    release_all(expected, OUTPUTS);
    sb_tensor_release(x);
    finish(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_networks), cmocka_unit_test(test_outputs_on_device), cmocka_unit_test(test_ways),
        cmocka_unit_test(test_joins),    cmocka_unit_test(test_failing_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
