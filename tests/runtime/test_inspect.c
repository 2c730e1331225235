/* Looking inside models: counts, symbols, bodies, and memory that runs out; and what observers may
 * do with what they see. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <samebit/samebit.h>

#include "support/failing.h"

static sb_model *load_digits(bool passes) {
    sb_model *model;
    sb_error error = {SB_OK, ""};
    sb_model_options options = SB_MODEL_OPTIONS_DEFAULT;
    options.passes = passes;
    if (sb_model_load(DIGITS_FOLDER "/digits.onnx", &options, &model, &error) != SB_OK)
        fail_msg("%s", error.message);
    return model;
}

/* A snapshot for a batch; of any size when `batch` is negative. */
static sb_inspection *inspect(const sb_model *model, int64_t batch) {
    sb_inspection *graph;
    sb_error error = {SB_OK, ""};
    sb_inspect_options options = SB_INSPECT_OPTIONS_DEFAULT;
    options.symbol_count = batch >= 0;
    options.symbols = (const char *const[]){"batch"};
    options.symbol_values = &batch;
    if (sb_model_inspect(model, &options, &graph, &error) != SB_OK)
        fail_msg("%s", error.message);
    return graph;
}

static const sb_inspected_node *find_node(const sb_inspection *graph, const char *name) {
    for (int i = 0; i < sb_inspection_node_count(graph); i++) {
        if (strcmp(sb_inspection_node(graph, i)->name, name) == 0)
            return sb_inspection_node(graph, i);
    }
    fail_msg("no node %s", name);
    return NULL;
}

static void test_counts(void **state) {
    (void)state;
    sb_model *model = load_digits(false);
    sb_inspection *graph = inspect(model, -1);
    sb_model_release(model); /* the snapshot stands alone */
    assert_int_equal(sb_inspection_node_count(graph), 17);
    const sb_inspected_node *conv = find_node(graph, "conv1.out");
    assert_string_equal(conv->op, "Conv");
    assert_int_equal(conv->parameters, 16 * 9 + 16);
    /* 64 places × 16 channels, each 9 multiply-adds and a bias. */
    assert_string_equal(conv->flops, "19456*batch");
    assert_int_equal(conv->flop_count, -1);
    /* 64 and 16 × 64 numbers for each row of the batch, and the weights with the bias. */
    assert_string_equal(conv->bytes, "4352*batch+640");
    assert_int_equal(conv->byte_count, -1);
    assert_null(conv->kernel);
    assert_string_equal(sb_inspection_value(graph, conv->outputs[0])->fact, "f32[batch,16,8,8]");
    assert_true(sb_inspection_value(graph, conv->inputs[1])->initialiser);
    assert_int_equal(sb_inspection_value(graph, conv->inputs[1])->elements, 16 * 9);
    assert_false(sb_inspection_value(graph, sb_inspection_input(graph, 0))->initialiser);
    assert_int_equal(sb_inspection_totals(graph)->parameters, 18827);
    assert_int_equal(sb_inspection_totals(graph)->parameter_bytes, 4 * 18827);
    assert_int_equal(sb_inspection_totals(graph)->nodes_without_flops, 0);
    sb_inspection_release(graph);
}

/* Passes move nodes into bodies, and neither parameters nor operations get lost on the way. Bytes do: what is made and
 * used inside of a body need not be moved. */
static void test_passes_keep_the_counts(void **state) {
    (void)state;
    int64_t flops[2], parameters[2], moved[2] = {0};
    for (int passes = 0; passes < 2; passes++) {
        sb_model *model = load_digits(passes != 0);
        sb_inspection *graph = inspect(model, 7);
        flops[passes] = sb_inspection_totals(graph)->flop_count;
        parameters[passes] = sb_inspection_totals(graph)->parameters;
        bool fused = false;
        for (int i = 0; i < sb_inspection_node_count(graph); i++) {
            const sb_inspected_node *node = sb_inspection_node(graph, i);
            assert_non_null(node->kernel);
            assert_true(node->byte_count >= 0);
            moved[passes] += node->byte_count;
            fused = fused || (node->body_count == 1 && sb_inspection_node_count(node->bodies[0]) > 1);
        }
        assert_int_equal(fused, passes);
        sb_inspection_release(graph);
        sb_model_release(model);
    }
    assert_true(flops[0] > 0 && flops[0] % 7 == 0);
    assert_int_equal(flops[0], flops[1]);
    assert_int_equal(parameters[0], parameters[1]);
    assert_true(moved[1] > 0 && moved[1] < moved[0]);
}

static void test_wrong_options(void **state) {
    (void)state;
    sb_model *model = load_digits(true);
    sb_inspection *graph;
    sb_error error;
    int64_t value = -1;
    sb_inspect_options options = SB_INSPECT_OPTIONS_DEFAULT;
    options.symbol_count = 1;
    options.symbols = (const char *const[]){"batch"};
    options.symbol_values = &value;
    assert_int_equal(sb_model_inspect(model, &options, &graph, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "batch"));
    options.struct_bytes++;
    assert_int_equal(sb_model_inspect(model, &options, &graph, &error), SB_ERROR_INVALID_ARGUMENT);
    sb_model_release(model);
    sb_inspection_release(NULL);
}

static sb_status inspect_and_release(void *context) {
    sb_inspection *graph = NULL;
    sb_error error;
    sb_status status = sb_model_inspect(context, NULL, &graph, &error);
    if (status == SB_OK) {
        assert_int_equal(sb_inspection_totals(graph)->nodes_without_flops, 0);
        assert_non_null(sb_inspection_totals(graph)->flops);
    }
    sb_inspection_release(graph);
    return status;
}

static void test_memory_runs_out(void **state) {
    (void)state;
    sb_model *model = load_digits(true);
    check_failing_allocations(inspect_and_release, model);
    sb_model_release(model);
}

/* ---- observers ---- */

typedef enum replacement { KEEP, HALVE_ROWS, ZERO } replacement;

typedef struct watching {
    const char *name;
    replacement replacement;
    int seen;
} watching;

static sb_status replace_output(void *context, sb_node_event *event, sb_error *error) {
    watching *watching = context;
    watching->seen++;
    if (strcmp(event->name, watching->name) != 0 || watching->replacement == KEEP)
        return SB_OK;
    sb_tensor *old = event->outputs[0].tensor, *fresh;
    int64_t dims[SB_MAX_RANK];
    memcpy(dims, sb_tensor_dims(old), (size_t)sb_tensor_rank(old) * sizeof *dims);
    dims[0] = watching->replacement == HALVE_ROWS ? dims[0] / 2 : dims[0];
    sb_status status = sb_tensor_create(sb_tensor_dtype(old), sb_tensor_rank(old), dims, &fresh, error);
    if (status != SB_OK)
        return status;
    sb_value_release(&event->outputs[0]);
    event->outputs[0] = sb_value_of_tensor(fresh);
    return SB_OK;
}

static sb_status run_watched(watching *watching, sb_tensor **output, sb_error *error) {
    sb_model *model = load_digits(false);
    sb_session *session;
    sb_tensor *samples;
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    options.observer = replace_output;
    options.observer_context = watching;
    assert_int_equal(sb_tensor_load(DIGITS_FOLDER "/samples.npy", NULL, &samples, NULL), SB_OK);
    assert_int_equal(sb_session_create(model, &options, &session, NULL), SB_OK);
    sb_status status = sb_session_run_tensors(session, &samples, output, error);
    sb_session_destroy(session);
    sb_tensor_release(samples);
    sb_model_release(model);
    return status;
}

static void test_replaced_values_flow_on(void **state) {
    (void)state;
    sb_tensor *output;
    sb_error error;
    watching watching = {"logits", ZERO, 0};
    assert_int_equal(run_watched(&watching, &output, &error), SB_OK);
    assert_int_equal(watching.seen, 17);
    sb_tensor *contiguous;
    assert_int_equal(sb_tensor_contiguous(output, &contiguous, NULL), SB_OK);
    const float *probabilities = sb_tensor_data(contiguous);
    for (int64_t i = 0; i < sb_tensor_elements(contiguous); i++)
        assert_true(probabilities[i] == 0.1f);
    sb_tensor_release(contiguous);
    sb_tensor_release(output);
}

static void test_replacements_of_another_shape_are_refused(void **state) {
    (void)state;
    sb_tensor *output = NULL;
    sb_error error;
    watching watching = {"logits", HALVE_ROWS, 0};
    int64_t before = sb_allocation_count().live_blocks;
    assert_int_equal(run_watched(&watching, &output, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "logits"));
    assert_null(output);
    assert_int_equal(sb_allocation_count().live_blocks, before);
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
