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

#include <samebit/samebit.h>

#include "support/failing.h"
#include "support/random.h"

#define MOST_VALUES 64

typedef struct subject {
    const char *name; /* of the case, to tell which one failed */
    const char *file; /* of the model */
    char folder[512];
    sb_value inputs[MOST_VALUES]; /* read once, before allocations fail */
} subject;

static sb_status run_loaded(const subject *subject, sb_model *model, sb_error *error) {
    sb_session *session = NULL;
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    options.threads = 1; /* threads would fail at different allocations each time */
    sb_status status = sb_session_create(model, &options, &session, error);
    sb_value outputs[MOST_VALUES] = {{SB_KIND_NONE, {NULL}}};
    if (status == SB_OK)
        status = sb_session_run(session, subject->inputs, outputs, error);
    if (status == SB_OK) {
        for (int i = 0; i < sb_model_output_count(model); i++)
            sb_value_release(&outputs[i]);
    }
    sb_session_destroy(session);
    return status;
}

static sb_status load_and_run(void *context) {
    const subject *subject = context;
    char path[600];
    snprintf(path, sizeof path, "%s/%s", subject->folder, subject->file);
    sb_model *model = NULL;
    sb_error error = {SB_OK, ""};
    sb_status status = sb_model_load(path, NULL, &model, &error);
    if (status == SB_OK)
        status = run_loaded(subject, model, &error);
    sb_model_release(model);
    if (status != SB_OK && status != SB_ERROR_OUT_OF_MEMORY && status != SB_ERROR_SHAPE)
        print_error("%s: %s: %s\n", subject->name, sb_status_name(status), error.message);
    return status;
}

static sb_status load_inputs(subject *subject, sb_error *error) {
    char path[600];
    sb_model *model = NULL;
    snprintf(path, sizeof path, "%s/%s", subject->folder, subject->file);
    sb_status status = sb_model_load(path, NULL, &model, error);
    if (status != SB_OK)
        return status;
    assert_in_range(sb_model_input_count(model), 0, MOST_VALUES);
    assert_in_range(sb_model_output_count(model), 0, MOST_VALUES);
    for (int i = 0; i < sb_model_input_count(model) && status == SB_OK; i++) {
        snprintf(path, sizeof path, "%s/test_data_set_0/input_%d.pb", subject->folder, i);
        status = sb_onnx_value_load(path, sb_model_input(model, i), &subject->inputs[i], error);
    }
    sb_model_release(model);
    return status;
}

static void release_inputs(subject *subject) {
    for (int i = 0; i < MOST_VALUES; i++)
        sb_value_release(&subject->inputs[i]);
}

static void test_standard_case(void **state) {
    subject subject = {.name = *state, .file = "model.onnx"};
    sb_error error;
    snprintf(subject.folder, sizeof subject.folder, "%s/%s", ONNX_TEST_DATA, subject.name);
    if (load_inputs(&subject, &error) != SB_OK)
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
    int64_t before = sb_allocation_count().allocations;
    if (load_and_run((void *)(uintptr_t)subject) != SB_OK)
        return false;
    int64_t count = sb_allocation_count().allocations - before, live = sb_allocation_count().live_blocks;
    for (int i = 0; i < PLACES; i++) {
        int64_t successes = random_between(&source, 0, count - 1);
        sb_allocation_fail_after(successes, i % 2 == 0);
        sb_status status = load_and_run((void *)(uintptr_t)subject);
        sb_allocation_fail_after(-1, false);
        if (status != SB_ERROR_OUT_OF_MEMORY || sb_allocation_count().live_blocks != live)
            fail_msg("%s: allocation %lld of %lld: %s, %lld blocks left", subject->name, (long long)successes,
                     (long long)count, sb_status_name(status), (long long)(sb_allocation_count().live_blocks - live));
    }
    return true;
}

static int sample_folder(const char *path, const struct stat *about, int kind, struct FTW *where) {
    subject subject = {.name = path, .file = "model.onnx"};
    sb_error error;
    if (kind != FTW_F || strcmp(path + where->base, "model.onnx") != 0)
        return 0;
    snprintf(subject.folder, sizeof subject.folder, "%.*s", where->base - 1, path);
    /* Left out: operators of training, and recorded inputs that the model itself excludes. */
    if (load_inputs(&subject, &error) == SB_OK && sample_failures(&subject))
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
static sb_status replace_outputs(void *context, sb_node_event *event, sb_error *error) {
    for (int i = 0; i < event->output_count; i++) {
        sb_tensor *copy;
        if (event->outputs[i].kind != SB_KIND_TENSOR || !sb_tensor_is_contiguous(event->outputs[i].tensor))
            continue;
        const sb_tensor *output = event->outputs[i].tensor;
        sb_status status = sb_tensor_from_data(sb_tensor_dtype(output), sb_tensor_rank(output), sb_tensor_dims(output),
                                               sb_tensor_data(output), &copy, error);
        if (status != SB_OK)
            return status;
        sb_value_release(&event->outputs[i]);
        event->outputs[i] = sb_value_of_tensor(copy);
    }
    return SB_OK;
}

/* Two runs of different extents with an observer: the digest of both outputs. */
static sb_status run_observed(sb_model *model, sb_tensor *const *inputs, sb_error *error) {
    sb_session *session = NULL;
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_value outputs[2] = {{SB_KIND_NONE, {NULL}}};
    char digest[SB_DIGEST_TEXT_BYTES];
    options.threads = 1;
    options.observer = replace_outputs;
    sb_status status = sb_session_create(model, &options, &session, error);
    for (int i = 0; i < 2 && status == SB_OK; i++) {
        sb_value input = sb_value_of_tensor(inputs[i]);
        status = sb_session_run(session, &input, &outputs[i], error);
    }
    sb_session_destroy(session);
    if (status == SB_OK)
        status = sb_digest_values(2, outputs, digest, error);
    sb_value_release(&outputs[0]);
    sb_value_release(&outputs[1]);
    return status;
}

static sb_status inspect(const sb_model *model, sb_error *error) {
    const char *symbols[] = {"batch"};
    sb_inspect_options options = SB_INSPECT_OPTIONS_DEFAULT;
    sb_inspection *inspection;
    options.symbol_count = 1;
    options.symbols = symbols;
    options.symbol_values = (int64_t[]){4};
    sb_status status = sb_model_inspect(model, &options, &inspection, error);
    if (status == SB_OK)
        sb_inspection_release(inspection);
    return status;
}

/* Writes both tensors as .npz, reads them back, and compares. */
static sb_status store(sb_tensor *const *tensors, sb_error *error) {
    const char *names[] = {"first", "second"};
    char **read_names;
    sb_tensor **read;
    int count;
    sb_comparison comparison;
    sb_status status = sb_tensors_save("test_fault.npz", 2, names, tensors, error);
    if (status != SB_OK)
        return status;
    status = sb_tensors_load("test_fault.npz", &count, &read_names, &read, error);
    if (status == SB_OK) {
        assert_int_equal(count, 2);
        status = sb_tensor_compare(read[1], tensors[1], 0, 0, &comparison, error);
        sb_tensors_free(count, read_names, read);
    }
    return status;
}

static sb_status do_everything(void *context) {
    sb_tensor *const *inputs = context;
    sb_error error = {SB_OK, ""};
    sb_model *model = NULL;
    sb_status status = sb_model_load(DIGITS "/digits.onnx", NULL, &model, &error);
    if (status == SB_OK)
        status = inspect(model, &error);
    if (status == SB_OK)
        status = run_observed(model, inputs, &error);
    if (status == SB_OK)
        status = store(inputs, &error);
    sb_model_release(model);
    if (status != SB_OK && status != SB_ERROR_OUT_OF_MEMORY)
        print_error("%s: %s\n", sb_status_name(status), error.message);
    return status;
}

static void test_around_runs(void **state) {
    sb_tensor *samples, *inputs[2];
    assert_int_equal(sb_tensor_load(DIGITS "/samples.npy", NULL, &samples, NULL), SB_OK);
    assert_int_equal(sb_tensor_slice(samples, 0, 0, 1, 1, &inputs[0], NULL), SB_OK);
    assert_int_equal(sb_tensor_slice(samples, 0, 2, 2, -1, &inputs[1], NULL), SB_OK);
    check_failing_allocations(do_everything, inputs);
    sb_tensor_release(inputs[0]);
    sb_tensor_release(inputs[1]);
    sb_tensor_release(samples);
    unlink("test_fault.npz");
}

static void test_digits(void **state) {
    subject subject = {.name = "digits", .file = "digits.onnx"};
    snprintf(subject.folder, sizeof subject.folder, "%s", DIGITS);
    sb_error error;
    sb_tensor *samples = NULL, *one = NULL;
    assert_int_equal(sb_tensor_load(DIGITS "/samples.npy", NULL, &samples, &error), SB_OK);
    assert_int_equal(sb_tensor_slice(samples, 0, 0, 1, 1, &one, &error), SB_OK);
    subject.inputs[0] = sb_value_of_tensor(one);
    check_failing_allocations(load_and_run, &subject);
    sb_value_release(&subject.inputs[0]);
    sb_tensor_release(samples);
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
