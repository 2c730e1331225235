/* Every allocation of loading, running and releasing a model fails once: the call reports it, and
 * nothing is left behind. So it is, at a sample of places, with every model of the standard, and
 * with all that the command does around a run. */
#define _GNU_SOURCE /* nftw */
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <invar/invar.h>

#include "support/failing.h"
#include "support/random.h"

#define MOST_VALUES 64

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
    if (status != IV_OK && status != IV_ERROR_OUT_OF_MEMORY && status != IV_ERROR_SHAPE)
        print_error("%s: %s: %s\n", subject->name, iv_status_name(status), error.message);
    return status;
}

static iv_status load_inputs(subject *subject, iv_error *error) {
    char path[600];
    iv_model *model = NULL;
    snprintf(path, sizeof path, "%s/%s", subject->folder, subject->file);
    iv_status status = iv_model_load(path, NULL, &model, error);
    if (status != IV_OK)
        return status;
    assert_in_range(iv_model_input_count(model), 0, MOST_VALUES);
    assert_in_range(iv_model_output_count(model), 0, MOST_VALUES);
    for (int i = 0; i < iv_model_input_count(model) && status == IV_OK; i++) {
        snprintf(path, sizeof path, "%s/test_data_set_0/input_%d.pb", subject->folder, i);
        status = iv_onnx_value_load(path, iv_model_input(model, i), &subject->inputs[i], error);
    }
    iv_model_release(model);
    return status;
}

static void release_inputs(subject *subject) {
    for (int i = 0; i < MOST_VALUES; i++)
        iv_value_release(&subject->inputs[i]);
}

static void test_standard_case(void **state) {
    subject subject = {.name = *state, .file = "model.onnx"};
    iv_error error;
    snprintf(subject.folder, sizeof subject.folder, "%s/%s", ONNX_TEST_DATA, subject.name);
    if (load_inputs(&subject, &error) != IV_OK)
        fail_msg("%s: %s", subject.name, error.message);
    check_failing_allocations(load_and_run, &subject);
    release_inputs(&subject);
}

/* ---- every model, at some of its allocations ---- */

#define PLACES 16

static size_t tried, left_out;

/* False when the model does not run on its recorded inputs even with all memory there is. */
static bool sample_failures(const subject *subject) {
    random_source source = {tried};
    int64_t before = iv_allocation_count().allocations;
    if (load_and_run((void *)(uintptr_t)subject) != IV_OK)
        return false;
    int64_t count = iv_allocation_count().allocations - before,
            live = iv_allocation_count().live_blocks;
    for (int i = 0; i < PLACES; i++) {
        int64_t successes = random_between(&source, 0, count - 1);
        iv_allocation_fail_after(successes, i % 2 == 0);
        iv_status status = load_and_run((void *)(uintptr_t)subject);
        iv_allocation_fail_after(-1, false);
        if (status != IV_ERROR_OUT_OF_MEMORY || iv_allocation_count().live_blocks != live)
            fail_msg("%s: allocation %lld of %lld: %s, %lld blocks left", subject->name,
                     (long long)successes, (long long)count, iv_status_name(status),
                     (long long)(iv_allocation_count().live_blocks - live));
    }
    return true;
}

static int sample_folder(const char *path, const struct stat *about, int kind, struct FTW *where) {
    subject subject = {.name = path, .file = "model.onnx"};
    iv_error error;
    if (kind != FTW_F || strcmp(path + where->base, "model.onnx") != 0)
        return 0;
    snprintf(subject.folder, sizeof subject.folder, "%.*s", where->base - 1, path);
    /* Left out: operators of training, and recorded inputs that the model itself excludes. */
    if (load_inputs(&subject, &error) == IV_OK && sample_failures(&subject))
        tried++;
    else
        left_out++;
    release_inputs(&subject);
    return 0;
}

static void test_all_models(void **state) {
    nftw(ONNX_TEST_DATA, sample_folder, 16, FTW_PHYS);
    print_message("%zu models, %zu left out\n", tried, left_out);
    assert_true(tried > 1000);
    assert_true(left_out < 60);
}

/* ---- all that happens around runs ---- */

/* Replaces every output by a copy of itself. */
static iv_status replace_outputs(void *context, iv_node_event *event, iv_error *error) {
    for (int i = 0; i < event->output_count; i++) {
        iv_tensor *copy;
        if (event->outputs[i].kind != IV_KIND_TENSOR ||
            !iv_tensor_is_contiguous(event->outputs[i].tensor))
            continue;
        const iv_tensor *output = event->outputs[i].tensor;
        iv_status status =
            iv_tensor_from_data(iv_tensor_dtype(output), iv_tensor_rank(output),
                                iv_tensor_dims(output), iv_tensor_data(output), &copy, error);
        if (status != IV_OK)
            return status;
        iv_value_release(&event->outputs[i]);
        event->outputs[i] = iv_value_of_tensor(copy);
    }
    return IV_OK;
}

/* Two runs of different extents with an observer: the digest of both outputs. */
static iv_status run_observed(iv_model *model, iv_tensor *const *inputs, iv_error *error) {
    iv_session *session = NULL;
    iv_session_options options = IV_SESSION_OPTIONS_DEFAULT;
    iv_value outputs[2] = {{IV_KIND_NONE, {NULL}}};
    char digest[IV_DIGEST_TEXT_BYTES];
    options.threads = 1;
    options.observer = replace_outputs;
    iv_status status = iv_session_create(model, &options, &session, error);
    for (int i = 0; i < 2 && status == IV_OK; i++) {
        iv_value input = iv_value_of_tensor(inputs[i]);
        status = iv_session_run(session, &input, &outputs[i], error);
    }
    iv_session_destroy(session);
    if (status == IV_OK)
        status = iv_digest_values(2, outputs, digest, error);
    iv_value_release(&outputs[0]);
    iv_value_release(&outputs[1]);
    return status;
}

static iv_status inspect(const iv_model *model, iv_error *error) {
    const char *symbols[] = {"batch"};
    iv_inspect_options options = IV_INSPECT_OPTIONS_DEFAULT;
    iv_inspection *inspection;
    options.symbol_count = 1;
    options.symbols = symbols;
    options.symbol_values = (int64_t[]){4};
    iv_status status = iv_model_inspect(model, &options, &inspection, error);
    if (status == IV_OK)
        iv_inspection_release(inspection);
    return status;
}

/* Writes both tensors as .npz, reads them back, and compares. */
static iv_status store(iv_tensor *const *tensors, iv_error *error) {
    const char *names[] = {"first", "second"};
    char **read_names;
    iv_tensor **read;
    int count;
    iv_comparison comparison;
    iv_status status = iv_tensors_save("test_fault.npz", 2, names, tensors, error);
    if (status != IV_OK)
        return status;
    status = iv_tensors_load("test_fault.npz", &count, &read_names, &read, error);
    if (status == IV_OK) {
        assert_int_equal(count, 2);
        status = iv_tensor_compare(read[1], tensors[1], 0, 0, &comparison, error);
        iv_tensors_free(count, read_names, read);
    }
    return status;
}

static iv_status do_everything(void *context) {
    iv_tensor *const *inputs = context;
    iv_error error = {IV_OK, ""};
    iv_model *model = NULL;
    iv_status status = iv_model_load(DIGITS "/digits.onnx", NULL, &model, &error);
    if (status == IV_OK)
        status = inspect(model, &error);
    if (status == IV_OK)
        status = run_observed(model, inputs, &error);
    if (status == IV_OK)
        status = store(inputs, &error);
    iv_model_release(model);
    if (status != IV_OK && status != IV_ERROR_OUT_OF_MEMORY)
        print_error("%s: %s\n", iv_status_name(status), error.message);
    return status;
}

static void test_around_runs(void **state) {
    iv_tensor *samples, *inputs[2];
    assert_int_equal(iv_tensor_load(DIGITS "/samples.npy", NULL, &samples, NULL), IV_OK);
    assert_int_equal(iv_tensor_slice(samples, 0, 0, 1, 1, &inputs[0], NULL), IV_OK);
    assert_int_equal(iv_tensor_slice(samples, 0, 2, 2, -1, &inputs[1], NULL), IV_OK);
    check_failing_allocations(do_everything, inputs);
    iv_tensor_release(inputs[0]);
    iv_tensor_release(inputs[1]);
    iv_tensor_release(samples);
    unlink("test_fault.npz");
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
        CASE("node/test_maxpool_2d_pads"),
        CASE("node/test_matmul_3d"),
        CASE("node/test_gru_with_initial_bias"),
        CASE("node/test_simple_rnn_with_initial_bias"),
        {"digits", test_digits, NULL, NULL, NULL},
        cmocka_unit_test(test_all_models),
        cmocka_unit_test(test_around_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
