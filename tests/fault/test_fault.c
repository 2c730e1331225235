/* Every allocation of loading, running and releasing a model fails once: the call reports it, and nothing is left behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include <invar/invar.h>

#include "support/failing.h"

#define MOST_VALUES 16

typedef struct subject {
    const char *name; /* of the case, to tell which one failed */
    const char *file; /* of the model */
    char folder[512];
    iv_value inputs[MOST_VALUES]; /* read once, before allocations fail */
} subject;

static iv_status run_loaded(const subject *subject, iv_model *model, iv_error *error) {
    iv_session *session = NULL;
    iv_session_options options = IV_SESSION_OPTIONS_DEFAULT;
    options.threads = 1; /* threads would fail at different allocations each time */
    iv_status status = iv_session_create(model, &options, &session, error);
    iv_value outputs[MOST_VALUES] = {{IV_KIND_NONE, {NULL}}};
    if (status == IV_OK)
        status = iv_session_run(session, subject->inputs, outputs, error);
    if (status == IV_OK) {
        for (int i = 0; i < iv_model_output_count(model); i++)
            iv_value_release(&outputs[i]);
    }
    iv_session_destroy(session);
    return status;
}

static iv_status load_and_run(void *context) {
    const subject *subject = context;
    char path[600];
    snprintf(path, sizeof path, "%s/%s", subject->folder, subject->file);
    iv_model *model = NULL;
    iv_error error = {IV_OK, ""};
    iv_status status = iv_model_load(path, NULL, &model, &error);
    if (status == IV_OK)
        status = run_loaded(subject, model, &error);
    iv_model_release(model);
    if (status != IV_OK && status != IV_ERROR_OUT_OF_MEMORY)
        print_error("%s: %s: %s\n", subject->name, iv_status_name(status), error.message);
    return status;
}

static void load_inputs(subject *subject) {
    char path[600];
    iv_error error;
    iv_model *model = NULL;
    snprintf(path, sizeof path, "%s/%s", subject->folder, subject->file);
    if (iv_model_load(path, NULL, &model, &error) != IV_OK)
        fail_msg("%s: %s", subject->name, error.message);
    assert_in_range(iv_model_input_count(model), 0, MOST_VALUES);
    assert_in_range(iv_model_output_count(model), 0, MOST_VALUES);
    for (int i = 0; i < iv_model_input_count(model); i++) {
        snprintf(path, sizeof path, "%s/test_data_set_0/input_%d.pb", subject->folder, i);
        if (iv_onnx_value_load(path, iv_model_input(model, i), &subject->inputs[i], &error) != IV_OK)
            fail_msg("%s: %s", subject->name, error.message);
    }
    iv_model_release(model);
}

static void test_standard_case(void **state) {
    subject subject = {.name = *state, .file = "model.onnx"};
    snprintf(subject.folder, sizeof subject.folder, "%s/%s", ONNX_TEST_DATA, subject.name);
    load_inputs(&subject);
    check_failing_allocations(load_and_run, &subject);
    for (int i = 0; i < MOST_VALUES; i++)
        iv_value_release(&subject.inputs[i]);
}

static void test_digits(void **state) {
    subject subject = {.name = "digits", .file = "digits.onnx"};
    snprintf(subject.folder, sizeof subject.folder, "%s", DIGITS);
    iv_error error;
    iv_tensor *samples = NULL, *one = NULL;
    assert_int_equal(iv_tensor_load(DIGITS "/samples.npy", NULL, &samples, &error), IV_OK);
    assert_int_equal(iv_tensor_slice(samples, 0, 0, 1, 1, &one, &error), IV_OK);
    subject.inputs[0] = iv_value_of_tensor(one);
    check_failing_allocations(load_and_run, &subject);
    iv_value_release(&subject.inputs[0]);
    iv_tensor_release(samples);
}

/* clang-format off */
#define CASE(folder) {folder, test_standard_case, NULL, NULL, folder}
/* clang-format on */

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE("node/test_add_bcast"),
        CASE("node/test_averagepool_2d_pads"),
        CASE("node/test_batchnorm_epsilon"),
        CASE("node/test_basic_conv_with_padding"),
        CASE("node/test_gemm_all_attributes"),
        CASE("node/test_lstm_with_peepholes"),
        CASE("node/test_layer_normalization_2d_axis1_expanded"),
        CASE("node/test_softmax_axis_1"),
        CASE("node/test_if"),
        CASE("node/test_if_opt"),
        CASE("node/test_if_seq"),
        CASE("node/test_loop11"),
        CASE("node/test_loop13_seq"),
        CASE("node/test_loop16_seq_none"),
        CASE("node/test_scan9_sum"),
        CASE("node/test_sequence_map_add_2_sequences"),
        CASE("node/test_einsum_transpose"),
        CASE("node/test_resize_upsample_sizes_cubic"),
        CASE("node/test_resize_upsample_sizes_nearest"),
        CASE("node/test_quantizelinear_axis"),
        CASE("node/test_strnormalizer_export_monday_casesensintive_lower"),
        CASE("simple/test_sequence_model1"),
        CASE("simple/test_expand_shape_model1"),
        CASE("pytorch-operator/test_operator_basic"),
        CASE("pytorch-operator/test_operator_conv"),
        {"digits", test_digits, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
