/* Models and sessions through the public interface: sharing, order of release, wrong inputs, observers, and that a row
 * of a batch has the bits that it has alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include <samebit/samebit.h>

#include "base/allocation.h"
#include "support/failing.h"

static sb_model *load_digits(void) {
    sb_model *model;
    sb_error error = {SB_OK, ""};
    if (sb_model_load(DIGITS_FOLDER "/digits.onnx", NULL, &model, &error) != SB_OK)
        fail_msg("%s", error.message);
    return model;
}

static sb_tensor *load_samples(void) {
    sb_tensor *samples;
    assert_int_equal(sb_tensor_load(DIGITS_FOLDER "/samples.npy", NULL, &samples, NULL), SB_OK);
    return samples;
}

static sb_tensor *run(sb_session *session, sb_tensor *input) {
    sb_tensor *output;
    sb_error error = {SB_OK, ""};
    if (sb_session_run_tensors(session, &input, &output, &error) != SB_OK)
        fail_msg("%s", error.message);
    return output;
}

static void check_equal(const sb_tensor *left, const sb_tensor *right) {
    sb_comparison comparison;
    assert_int_equal(sb_tensor_compare(left, right, 0, 0, &comparison, NULL), SB_OK);
    assert_int_equal(comparison.different, 0);
}

/* Every batch size and every position: row i of a batch of n has the bits of sample i alone. */
static void test_rows_do_not_depend_on_the_batch(void **state) {
    (void)state;
    sb_model *model = load_digits();
    sb_session *session;
    sb_tensor *samples = load_samples();
    int64_t count = sb_tensor_dims(samples)[0];
    assert_int_equal(sb_session_create(model, NULL, &session, NULL), SB_OK);
    sb_tensor *all = run(session, samples);
    for (int64_t size = 1; size <= count; size += size < 4 ? 1 : 5) {
        for (int64_t start = 0; start + size <= count; start++) {
            sb_tensor *part, *expected;
            assert_int_equal(sb_tensor_slice(samples, 0, start, size, 1, &part, NULL), SB_OK);
            assert_int_equal(sb_tensor_slice(all, 0, start, size, 1, &expected, NULL), SB_OK);
            sb_tensor *output = run(session, part);
            check_equal(output, expected);
            sb_tensor_release(output);
            sb_tensor_release(expected);
            sb_tensor_release(part);
        }
    }
    sb_tensor_release(all);
    sb_tensor_release(samples);
    sb_session_destroy(session);
    sb_model_release(model);
}

static void test_release_in_any_order(void **state) {
    (void)state;
    int64_t blocks = sb_allocation_count().live_blocks;
    sb_model *model = load_digits();
    sb_session *session;
    sb_tensor *samples = load_samples();
    assert_int_equal(sb_session_create(model, NULL, &session, NULL), SB_OK);
    sb_model_release(model);
    sb_tensor *output = run(session, samples);
    sb_session_destroy(session);
    sb_tensor_release(samples);
    assert_int_equal(sb_tensor_dims(output)[1], 10); /* the output outlives everything else */
    sb_tensor_release(output);
    assert_int_equal(sb_allocation_count().live_blocks, blocks);
}

static void test_wrong_inputs(void **state) {
    (void)state;
    sb_model *model = load_digits();
    sb_session *session;
    sb_tensor *wrong, *output;
    sb_error error;
    assert_int_equal(sb_session_create(model, NULL, &session, NULL), SB_OK);
    assert_int_equal(sb_tensor_create(SB_F64, 4, (int64_t[]){1, 1, 8, 8}, &wrong, NULL), SB_OK);
    assert_int_equal(sb_session_run_tensors(session, &wrong, &output, &error), SB_ERROR_SHAPE);
    assert_non_null(strstr(error.message, "f64[1,1,8,8]"));
    sb_tensor_release(wrong);
    assert_int_equal(sb_tensor_create(SB_F32, 4, (int64_t[]){1, 1, 8, 9}, &wrong, NULL), SB_OK);
    assert_int_equal(sb_session_run_tensors(session, &wrong, &output, &error), SB_ERROR_SHAPE);
    assert_null(output);
    sb_tensor_release(wrong);
    wrong = NULL;
    assert_int_equal(sb_session_run_tensors(session, &wrong, &output, &error), SB_ERROR_SHAPE);
    assert_non_null(strstr(error.message, "missing"));
    sb_session_destroy(session);
    sb_model_release(model);
}

/* ---- threads ---- */

typedef struct worker {
    sb_model *model;
    sb_tensor *samples, *output;
} worker;

static void *work(void *context) {
    worker *worker = context;
    sb_session *session;
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    options.threads = 2;
    if (sb_session_create(worker->model, &options, &session, NULL) != SB_OK)
        return NULL;
    for (int i = 0; i < 10; i++) {
        sb_tensor_release(worker->output);
        worker->output = NULL;
        if (sb_session_run_tensors(session, &worker->samples, &worker->output, NULL) != SB_OK)
            break;
    }
    sb_session_destroy(session);
    return NULL;
}

static void test_sessions_share_a_model(void **state) {
    (void)state;
    sb_model *model = load_digits();
    sb_tensor *samples = load_samples();
    pthread_t threads[4];
    worker workers[4];
    for (int i = 0; i < 4; i++) {
        workers[i] = (worker){model, samples, NULL};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++) {
        assert_non_null(workers[i].output);
        check_equal(workers[i].output, workers[0].output);
    }
    for (int i = 0; i < 4; i++)
        sb_tensor_release(workers[i].output);
    sb_tensor_release(samples);
    sb_model_release(model);
}

/* ---- observers ---- */

typedef struct observed {
    int nodes;
    const char *stop_at; /* the op at which to stop, or NULL */
} observed;

static sb_status observe(void *context, sb_node_event *event, sb_error *error) {
    observed *seen = context;
    seen->nodes++;
    assert_true(event->end_ns >= event->start_ns);
    if (seen->stop_at == NULL || strcmp(event->op, seen->stop_at) != 0)
        return SB_OK;
    strcpy(error->message, "stopped");
    return error->status = SB_ERROR_DIFFERENT;
}

static void test_observers_see_and_stop(void **state) {
    (void)state;
    sb_model *model;
    sb_model_options model_options = SB_MODEL_OPTIONS_DEFAULT;
    model_options.passes = false;
    assert_int_equal(sb_model_load(DIGITS_FOLDER "/digits.onnx", &model_options, &model, NULL), SB_OK);
    sb_tensor *samples = load_samples(), *output;
    observed seen = {0};
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_session *session;
    options.observer = observe;
    options.observer_context = &seen;
    assert_int_equal(sb_session_create(model, &options, &session, NULL), SB_OK);
    output = run(session, samples);
    sb_tensor_release(output);
    int all = seen.nodes;
    assert_true(all > 3);
    seen = (observed){.stop_at = "Relu"};
    sb_error error;
    assert_int_equal(sb_session_run_tensors(session, &samples, &output, &error), SB_ERROR_DIFFERENT);
    assert_string_equal(error.message, "stopped");
    assert_true(seen.nodes < all);
    seen = (observed){0};
    sb_tensor_release(run(session, samples)); /* a stopped run leaves the session usable */
    assert_int_equal(seen.nodes, all);
    sb_tensor_release(samples);
    sb_session_destroy(session);
    sb_model_release(model);
}

/* Without a device, a run is complete when it has been enqueued: four wait to be fetched, in any order, and a full
 * queue says what to do. */
static void test_runs_on_the_host_are_done_at_once(void **state) {
    (void)state;
    sb_model *model = load_digits();
    sb_session *session;
    sb_error error = {SB_OK, ""};
    sb_tensor *samples = load_samples(), *expected[4];
    uint64_t runs[5];
    assert_int_equal(sb_session_create(model, NULL, &session, NULL), SB_OK);
    for (int i = 0; i < 4; i++) {
        sb_tensor *part;
        bool done = false;
        assert_int_equal(sb_tensor_slice(samples, 0, i, 2, 1, &part, NULL), SB_OK);
        expected[i] = run(session, part);
        sb_value input = sb_value_of_tensor(part);
        assert_int_equal(sb_session_enqueue(session, &input, &runs[i], &error), SB_OK);
        assert_int_equal(sb_session_poll(session, runs[i], &done, &error), SB_OK);
        assert_true(done);
        /* The fifth does not fit. */
        if (i == 3) {
            assert_int_equal(sb_session_enqueue(session, &input, &runs[4], &error), SB_ERROR_INVALID_ARGUMENT);
            assert_non_null(strstr(error.message, "wait for run 2 first"));
            assert_int_equal(runs[4], 0);
        }
        sb_tensor_release(part);
    }
    for (int i = 3; i >= 0; i--) {
        sb_value output;
        assert_int_equal(sb_session_wait(session, runs[i], &output, &error), SB_OK);
        check_equal(output.tensor, expected[i]);
        sb_value_release(&output);
        sb_tensor_release(expected[i]);
        assert_int_equal(sb_session_wait(session, runs[i], &output, &error), SB_ERROR_INVALID_ARGUMENT);
    }
    sb_run_report report;
    sb_session_last_run(session, &report);
    assert_int_equal(report.run, runs[3]);
    assert_true(report.synchronous);
    assert_string_equal(report.reason, "the session has no device");
    sb_tensor_release(samples);
    sb_session_destroy(session);
    sb_model_release(model);
}

typedef struct enqueueing {
    sb_model *model;
    sb_tensor *samples;
} enqueueing;

/* Two runs, of which one is never waited for. */
static sb_status enqueue_twice(void *context) {
    const enqueueing *given = context;
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_session *session = NULL;
    sb_value input = sb_value_of_tensor(given->samples), output;
    uint64_t first, second;
    options.threads = 1;
    sb_status status = sb_session_create(given->model, &options, &session, NULL);
    if (status == SB_OK)
        status = sb_session_enqueue(session, &input, &first, NULL);
    if (status == SB_OK)
        status = sb_session_enqueue(session, &input, &second, NULL);
    if (status == SB_OK) {
        status = sb_session_wait(session, second, &output, NULL);
        sb_value_release(&output);
    }
    sb_session_destroy(session);
    return status;
}

static void test_enqueueing_without_memory(void **state) {
    (void)state;
    enqueueing given = {load_digits(), load_samples()};
    assert_int_equal(enqueue_twice(&given), SB_OK); /* what the model prepares once is there */
    check_failing_allocations(enqueue_twice, &given);
    sb_tensor_release(given.samples);
    sb_model_release(given.model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_do_not_depend_on_the_batch),
        cmocka_unit_test(test_release_in_any_order),
        cmocka_unit_test(test_wrong_inputs),
        cmocka_unit_test(test_sessions_share_a_model),
        cmocka_unit_test(test_observers_see_and_stop),
        cmocka_unit_test(test_runs_on_the_host_are_done_at_once),
        cmocka_unit_test(test_enqueueing_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
