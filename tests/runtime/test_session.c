/* Models and sessions through the public interface: sharing, order of release, wrong inputs, observers, and that a row of a batch
 * has the bits that it has alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include <invar/invar.h>

#include "base/allocation.h"

static iv_model *load_digits(void) {
    iv_model *model;
    iv_error error = {IV_OK, ""};
    if (iv_model_load(DIGITS_FOLDER "/digits.onnx", NULL, &model, &error) != IV_OK)
        fail_msg("%s", error.message);
    return model;
}

static iv_tensor *load_samples(void) {
    iv_tensor *samples;
    assert_int_equal(iv_tensor_load(DIGITS_FOLDER "/samples.npy", NULL, &samples, NULL), IV_OK);
    return samples;
}

static iv_tensor *run(iv_session *session, iv_tensor *input) {
    iv_tensor *output;
    iv_error error = {IV_OK, ""};
    if (iv_session_run_tensors(session, &input, &output, &error) != IV_OK)
        fail_msg("%s", error.message);
    return output;
}

static void check_equal(const iv_tensor *left, const iv_tensor *right) {
    iv_comparison comparison;
    assert_int_equal(iv_tensor_compare(left, right, 0, 0, &comparison, NULL), IV_OK);
    assert_int_equal(comparison.different, 0);
}

/* Every batch size and every position: row i of a batch of n has the bits of sample i alone. */
static void test_rows_do_not_depend_on_the_batch(void **state) {
    (void)state;
    iv_model *model = load_digits();
    iv_session *session;
    iv_tensor *samples = load_samples();
    int64_t count = iv_tensor_dims(samples)[0];
    assert_int_equal(iv_session_create(model, NULL, &session, NULL), IV_OK);
    iv_tensor *all = run(session, samples);
    for (int64_t size = 1; size <= count; size += size < 4 ? 1 : 5) {
        for (int64_t start = 0; start + size <= count; start++) {
            iv_tensor *part, *expected;
            assert_int_equal(iv_tensor_slice(samples, 0, start, size, 1, &part, NULL), IV_OK);
            assert_int_equal(iv_tensor_slice(all, 0, start, size, 1, &expected, NULL), IV_OK);
            iv_tensor *output = run(session, part);
            check_equal(output, expected);
            iv_tensor_release(output);
            iv_tensor_release(expected);
            iv_tensor_release(part);
        }
    }
    iv_tensor_release(all);
    iv_tensor_release(samples);
    iv_session_destroy(session);
    iv_model_release(model);
}

static void test_release_in_any_order(void **state) {
    (void)state;
    int64_t blocks = iv_allocation_count().live_blocks;
    iv_model *model = load_digits();
    iv_session *session;
    iv_tensor *samples = load_samples();
    assert_int_equal(iv_session_create(model, NULL, &session, NULL), IV_OK);
    iv_model_release(model);
    iv_tensor *output = run(session, samples);
    iv_session_destroy(session);
    iv_tensor_release(samples);
    assert_int_equal(iv_tensor_dims(output)[1], 10); /* the output outlives everything else */
    iv_tensor_release(output);
    assert_int_equal(iv_allocation_count().live_blocks, blocks);
}

static void test_wrong_inputs(void **state) {
    (void)state;
    iv_model *model = load_digits();
    iv_session *session;
    iv_tensor *wrong, *output;
    iv_error error;
    assert_int_equal(iv_session_create(model, NULL, &session, NULL), IV_OK);
    assert_int_equal(iv_tensor_create(IV_F64, 4, (int64_t[]){1, 1, 8, 8}, &wrong, NULL), IV_OK);
    assert_int_equal(iv_session_run_tensors(session, &wrong, &output, &error), IV_ERROR_SHAPE);
    assert_non_null(strstr(error.message, "f64[1,1,8,8]"));
    iv_tensor_release(wrong);
    assert_int_equal(iv_tensor_create(IV_F32, 4, (int64_t[]){1, 1, 8, 9}, &wrong, NULL), IV_OK);
    assert_int_equal(iv_session_run_tensors(session, &wrong, &output, &error), IV_ERROR_SHAPE);
    assert_null(output);
    iv_tensor_release(wrong);
    wrong = NULL;
    assert_int_equal(iv_session_run_tensors(session, &wrong, &output, &error), IV_ERROR_SHAPE);
    assert_non_null(strstr(error.message, "missing"));
    iv_session_destroy(session);
    iv_model_release(model);
}

/* ---- threads ---- */

typedef struct worker {
    iv_model *model;
    iv_tensor *samples, *output;
} worker;

static void *work(void *context) {
    worker *worker = context;
    iv_session *session;
    iv_session_options options = IV_SESSION_OPTIONS_DEFAULT;
    options.threads = 2;
    if (iv_session_create(worker->model, &options, &session, NULL) != IV_OK)
        return NULL;
    for (int i = 0; i < 10; i++) {
        iv_tensor_release(worker->output);
        worker->output = NULL;
        if (iv_session_run_tensors(session, &worker->samples, &worker->output, NULL) != IV_OK)
            break;
    }
    iv_session_destroy(session);
    return NULL;
}

static void test_sessions_share_a_model(void **state) {
    (void)state;
    iv_model *model = load_digits();
    iv_tensor *samples = load_samples();
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
        iv_tensor_release(workers[i].output);
    iv_tensor_release(samples);
    iv_model_release(model);
}

/* ---- observers ---- */

typedef struct observed {
    int nodes;
    const char *stop_at; /* the op at which to stop, or NULL */
} observed;

static iv_status observe(void *context, iv_node_event *event, iv_error *error) {
    observed *seen = context;
    seen->nodes++;
    assert_true(event->end_ns >= event->start_ns);
    if (seen->stop_at == NULL || strcmp(event->op, seen->stop_at) != 0)
        return IV_OK;
    strcpy(error->message, "stopped");
    return error->status = IV_ERROR_DIFFERENT;
}

static void test_observers_see_and_stop(void **state) {
    (void)state;
    iv_model *model;
    iv_model_options model_options = IV_MODEL_OPTIONS_DEFAULT;
    model_options.passes = false;
    assert_int_equal(iv_model_load(DIGITS_FOLDER "/digits.onnx", &model_options, &model, NULL), IV_OK);
    iv_tensor *samples = load_samples(), *output;
    observed seen = {0};
    iv_session_options options = IV_SESSION_OPTIONS_DEFAULT;
    iv_session *session;
    options.observer = observe;
    options.observer_context = &seen;
    assert_int_equal(iv_session_create(model, &options, &session, NULL), IV_OK);
    output = run(session, samples);
    iv_tensor_release(output);
    int all = seen.nodes;
    assert_true(all > 3);
    seen = (observed){.stop_at = "Relu"};
    iv_error error;
    assert_int_equal(iv_session_run_tensors(session, &samples, &output, &error), IV_ERROR_DIFFERENT);
    assert_string_equal(error.message, "stopped");
    assert_true(seen.nodes < all);
    seen = (observed){0};
    iv_tensor_release(run(session, samples)); /* a stopped run leaves the session usable */
    assert_int_equal(seen.nodes, all);
    iv_tensor_release(samples);
    iv_session_destroy(session);
    iv_model_release(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_do_not_depend_on_the_batch),
        cmocka_unit_test(test_release_in_any_order),
        cmocka_unit_test(test_wrong_inputs),
        cmocka_unit_test(test_sessions_share_a_model),
        cmocka_unit_test(test_observers_see_and_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
