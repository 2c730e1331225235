/* Looking inside models: counts, symbols, bodies, and memory that runs out; and what observers may
 * do with what they see. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <invar/invar.h>

#include "support/failing.h"

static iv_model *load_digits(bool passes) {
    iv_model *model;
    iv_error error = {IV_OK, ""};
    iv_model_options options = IV_MODEL_OPTIONS_DEFAULT;
    options.passes = passes;
    if (iv_model_load(DIGITS_FOLDER "/digits.onnx", &options, &model, &error) != IV_OK)
        fail_msg("%s", error.message);
    return model;
}

/* A snapshot for a batch; of any size when `batch` is negative. */
static iv_inspection *inspect(const iv_model *model, int64_t batch) {
    iv_inspection *graph;
    iv_error error = {IV_OK, ""};
    iv_inspect_options options = IV_INSPECT_OPTIONS_DEFAULT;
    options.symbol_count = batch >= 0;
    options.symbols = (const char *const[]){"batch"};
    options.symbol_values = &batch;
    if (iv_model_inspect(model, &options, &graph, &error) != IV_OK)
        fail_msg("%s", error.message);
    return graph;
}

static const iv_inspected_node *find_node(const iv_inspection *graph, const char *name) {
    for (int i = 0; i < iv_inspection_node_count(graph); i++) {
        if (strcmp(iv_inspection_node(graph, i)->name, name) == 0)
            return iv_inspection_node(graph, i);
    }
    fail_msg("no node %s", name);
    return NULL;
}

static void test_counts(void **state) {
    (void)state;
    iv_model *model = load_digits(false);
    iv_inspection *graph = inspect(model, -1);
    iv_model_release(model); /* the snapshot stands alone */
    assert_int_equal(iv_inspection_node_count(graph), 17);
    const iv_inspected_node *conv = find_node(graph, "conv1.out");
    assert_string_equal(conv->op, "Conv");
    assert_int_equal(conv->parameters, 16 * 9 + 16);
    /* 64 places × 16 channels, each 9 multiply-adds and a bias. */
    assert_string_equal(conv->flops, "19456*batch");
    assert_int_equal(conv->flop_count, -1);
    assert_null(conv->kernel);
    assert_string_equal(iv_inspection_value(graph, conv->outputs[0])->fact, "f32[batch,16,8,8]");
    assert_true(iv_inspection_value(graph, conv->inputs[1])->initialiser);
    assert_int_equal(iv_inspection_value(graph, conv->inputs[1])->elements, 16 * 9);
    assert_false(iv_inspection_value(graph, iv_inspection_input(graph, 0))->initialiser);
    assert_int_equal(iv_inspection_totals(graph)->parameters, 18827);
    assert_int_equal(iv_inspection_totals(graph)->parameter_bytes, 4 * 18827);
    assert_int_equal(iv_inspection_totals(graph)->nodes_without_flops, 0);
    iv_inspection_release(graph);
}

/* Passes move nodes into bodies, and neither parameters nor operations get lost on the way. */
static void test_passes_keep_the_counts(void **state) {
    (void)state;
    int64_t flops[2], parameters[2];
    for (int passes = 0; passes < 2; passes++) {
        iv_model *model = load_digits(passes != 0);
        iv_inspection *graph = inspect(model, 7);
        flops[passes] = iv_inspection_totals(graph)->flop_count;
        parameters[passes] = iv_inspection_totals(graph)->parameters;
        bool fused = false;
        for (int i = 0; i < iv_inspection_node_count(graph); i++) {
            const iv_inspected_node *node = iv_inspection_node(graph, i);
            assert_non_null(node->kernel);
            fused =
                fused || (node->body_count == 1 && iv_inspection_node_count(node->bodies[0]) > 1);
        }
        assert_int_equal(fused, passes);
        iv_inspection_release(graph);
        iv_model_release(model);
    }
    assert_true(flops[0] > 0 && flops[0] % 7 == 0);
    assert_int_equal(flops[0], flops[1]);
    assert_int_equal(parameters[0], parameters[1]);
}

static void test_wrong_options(void **state) {
    (void)state;
    iv_model *model = load_digits(true);
    iv_inspection *graph;
    iv_error error;
    int64_t value = -1;
    iv_inspect_options options = IV_INSPECT_OPTIONS_DEFAULT;
    options.symbol_count = 1;
    options.symbols = (const char *const[]){"batch"};
    options.symbol_values = &value;
    assert_int_equal(iv_model_inspect(model, &options, &graph, &error), IV_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "batch"));
    options.struct_bytes++;
    assert_int_equal(iv_model_inspect(model, &options, &graph, &error), IV_ERROR_INVALID_ARGUMENT);
    iv_model_release(model);
    iv_inspection_release(NULL);
}

static iv_status inspect_and_release(void *context) {
    iv_inspection *graph = NULL;
    iv_error error;
    iv_status status = iv_model_inspect(context, NULL, &graph, &error);
    if (status == IV_OK) {
        assert_int_equal(iv_inspection_totals(graph)->nodes_without_flops, 0);
        assert_non_null(iv_inspection_totals(graph)->flops);
    }
    iv_inspection_release(graph);
    return status;
}

static void test_memory_runs_out(void **state) {
    (void)state;
    iv_model *model = load_digits(true);
    check_failing_allocations(inspect_and_release, model);
    iv_model_release(model);
}

/* ---- observers ---- */

typedef enum replacement { KEEP, HALVE_ROWS, ZERO } replacement;

typedef struct watching {
    const char *name;
    replacement replacement;
    int seen;
} watching;

static iv_status replace_output(void *context, iv_node_event *event, iv_error *error) {
    watching *watching = context;
    watching->seen++;
    if (strcmp(event->name, watching->name) != 0 || watching->replacement == KEEP)
        return IV_OK;
    iv_tensor *old = event->outputs[0].tensor, *fresh;
    int64_t dims[IV_MAX_RANK];
    memcpy(dims, iv_tensor_dims(old), (size_t)iv_tensor_rank(old) * sizeof *dims);
    dims[0] = watching->replacement == HALVE_ROWS ? dims[0] / 2 : dims[0];
    iv_status status =
        iv_tensor_create(iv_tensor_dtype(old), iv_tensor_rank(old), dims, &fresh, error);
    if (status != IV_OK)
        return status;
    iv_value_release(&event->outputs[0]);
    event->outputs[0] = iv_value_of_tensor(fresh);
    return IV_OK;
}

static iv_status run_watched(watching *watching, iv_tensor **output, iv_error *error) {
    iv_model *model = load_digits(false);
    iv_session *session;
    iv_tensor *samples;
    iv_session_options options = IV_SESSION_OPTIONS_DEFAULT;
    options.observer = replace_output;
    options.observer_context = watching;
    assert_int_equal(iv_tensor_load(DIGITS_FOLDER "/samples.npy", NULL, &samples, NULL), IV_OK);
    assert_int_equal(iv_session_create(model, &options, &session, NULL), IV_OK);
    iv_status status = iv_session_run_tensors(session, &samples, output, error);
    iv_session_destroy(session);
    iv_tensor_release(samples);
    iv_model_release(model);
    return status;
}

static void test_replaced_values_flow_on(void **state) {
    (void)state;
    iv_tensor *output;
    iv_error error;
    watching watching = {"logits", ZERO, 0};
    assert_int_equal(run_watched(&watching, &output, &error), IV_OK);
    assert_int_equal(watching.seen, 17);
    iv_tensor *contiguous;
    assert_int_equal(iv_tensor_contiguous(output, &contiguous, NULL), IV_OK);
    const float *probabilities = iv_tensor_data(contiguous);
    for (int64_t i = 0; i < iv_tensor_elements(contiguous); i++)
        assert_true(probabilities[i] == 0.1f);
    iv_tensor_release(contiguous);
    iv_tensor_release(output);
}

static void test_replacements_of_another_shape_are_refused(void **state) {
    (void)state;
    iv_tensor *output = NULL;
    iv_error error;
    watching watching = {"logits", HALVE_ROWS, 0};
    int64_t before = iv_allocation_count().live_blocks;
    assert_int_equal(run_watched(&watching, &output, &error), IV_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "logits"));
    assert_null(output);
    assert_int_equal(iv_allocation_count().live_blocks, before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_passes_keep_the_counts),
        cmocka_unit_test(test_wrong_options),
        cmocka_unit_test(test_memory_runs_out),
        cmocka_unit_test(test_replaced_values_flow_on),
        cmocka_unit_test(test_replacements_of_another_shape_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
