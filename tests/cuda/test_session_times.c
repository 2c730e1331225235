/* Sessions that measure: what a task observer is told, and what measuring leaves as it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "cuda/driver/device_open.h"
#include "session_models.h"

#define MOST_SPANS 200

/* What observers were told in one run. */
typedef struct told {
    size_t spans;
    sb_task_span items[MOST_SPANS];
    int runs, nodes, transfers, transfers_to_device;
    sb_status answer; /* of the task observer */
} told;

static sb_status note_tasks(void *context, const sb_task_span *spans, size_t count, sb_error *error) {
    told *told = context;
    assert_true(count <= MOST_SPANS);
    memcpy(told->items, spans, count * sizeof *spans);
    told->spans = count;
    told->runs++;
    if (told->answer != SB_OK)
        snprintf(error->message, sizeof error->message, "the observer has had enough");
    return error->status = told->answer;
}

/* Looks at everything that it is shown. */
static sb_status note_node(void *context, sb_node_event *event, sb_error *error) {
    told *told = context;
    (void)error;
    assert_null(event->outputs);
    assert_int_equal(event->output_count, 0);
    assert_true(event->end_ns >= event->start_ns);
    assert_true(event->output_bytes > 0);
    bool transfer = strcmp(event->op, SB_TRANSFER) == 0;
    told->transfers += transfer;
    told->transfers_to_device += transfer && event->on_device;
    told->nodes += !transfer;
    return SB_OK;
}

static int64_t clock_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static bool is_named(const sb_task_span *span, const char *op) {
    return span->name != NULL && strcmp(span->op, op) == 0;
}

static int count_spans(const told *told, const char *op) {
    int count = 0;
    for (size_t i = 0; i < told->spans; i++)
        count += is_named(&told->items[i], op);
    return count;
}

static void check_spans(const told *told, int64_t before) {
    for (size_t i = 0; i < told->spans; i++) {
        const sb_task_span *span = &told->items[i];
        assert_non_null(span->task);
        assert_non_null(span->name); /* nothing was shown to an observer */
        assert_int_equal(span->depth, 0);
        assert_int_equal(span->stream, 0);
        assert_true(span->start_ns >= before && span->end_ns > span->start_ns);
        if (i > 0)
            assert_true(span->start_ns >= told->items[i - 1].end_ns);
    }
}

/* Every task of every run is reported, in order, with what it was for; runs are given step by step; the bits stay. */
static void test_tasks(void **unused) {
    setting s = start(network, false);
    told told = {0};
    sb_session_options options = options_on(s.device);
    options.task_observer = note_tasks;
    options.task_observer_context = &told;
    options.force_cpu = "Softmax";
    sb_session *session = session_with(s.model, &options);
    for (uint64_t run = 0; run < 4; run++) {
        sb_tensor *inputs[NETWORK_INPUTS];
        network_inputs(inputs, 5, run);
        sb_device_counters first = counters_of(s.device);
        int64_t before = clock_ns();
        run_both(session, s.cpu, s.device, NETWORK_INPUTS, inputs, NETWORK_OUTPUTS);
        sb_device_counters last = counters_of(s.device);
        assert_int_equal(told.runs, run + 1);
        check_spans(&told, before);
        assert_int_equal(told.spans, last.kernels - first.kernels + last.copies_to_device - first.copies_to_device +
                                         last.copies_to_host - first.copies_to_host + last.copies_on_device -
                                         first.copies_on_device);
        assert_int_equal(last.graph_launches, 0);
        assert_int_equal(count_spans(&told, "Tanh"), 1);
        assert_int_equal(count_spans(&told, "Mul"), 2);
        assert_int_equal(count_spans(&told, "Softmax"), 0);
        /* Two inputs together, what Softmax reads and makes, three outputs, of which one is transposed first;
         * in the first run the constant too. */
        assert_int_equal(count_spans(&told, SB_TRANSFER), run == 0 ? 8 : 7);
        release_all(inputs, NETWORK_INPUTS);
    }
    assert_int_equal(report_of(session).recorded, 0);
    sb_session_destroy(session);
    finish(&s);
}

/* An observer of times causes no copy that would not be made without it. */
static void test_times_only(void **unused) {
    setting s = start(network, false);
    told told = {0};
    sb_session_options options = options_on(s.device);
    sb_session *plain = session_with(s.model, &options);
    options.observer = note_node;
    options.observer_context = &told;
    options.observer_times_only = true;
    sb_session *session = session_with(s.model, &options);
    sb_tensor *inputs[NETWORK_INPUTS];
    network_inputs(inputs, 5, 3);
    run_both(plain, s.cpu, s.device, NETWORK_INPUTS, inputs, NETWORK_OUTPUTS);
    sb_device_counters start = counters_of(s.device);
    run_both(plain, s.cpu, s.device, NETWORK_INPUTS, inputs, NETWORK_OUTPUTS);
    sb_device_counters middle = counters_of(s.device);
    run_both(session, s.cpu, s.device, NETWORK_INPUTS, inputs, NETWORK_OUTPUTS);
    sb_device_counters end = counters_of(s.device);
    assert_int_equal(end.copies_to_host - middle.copies_to_host, middle.copies_to_host - start.copies_to_host);
    assert_int_equal(end.copies_to_device - middle.copies_to_device, middle.copies_to_device - start.copies_to_device);
    assert_int_equal(told.transfers_to_device, NETWORK_INPUTS);
    assert_int_equal(told.transfers, NETWORK_INPUTS + NETWORK_OUTPUTS);
    assert_int_equal(told.nodes, 11);
    release_all(inputs, NETWORK_INPUTS);
    sb_session_destroy(session);
    sb_session_destroy(plain);
    finish(&s);
}

/* What the task observer says is the run's result; the session goes on afterwards. */
static void test_refusal(void **unused) {
    setting s = start(network, true);
    told told = {.answer = SB_ERROR_LIMIT};
    sb_session_options options = options_on(s.device);
    options.task_observer = note_tasks;
    options.task_observer_context = &told;
    sb_session *session = session_with(s.model, &options);
    sb_tensor *inputs[NETWORK_INPUTS], *outputs[NETWORK_OUTPUTS];
    sb_error error = {SB_OK, ""};
    network_inputs(inputs, 2, 9);
    assert_int_equal(sb_session_run_tensors(session, inputs, outputs, &error), SB_ERROR_LIMIT);
    assert_says(error, "the observer has had enough");
    told.answer = SB_OK;
    run_both(session, s.cpu, s.device, NETWORK_INPUTS, inputs, NETWORK_OUTPUTS);
    assert_int_equal(told.runs, 2);
    release_all(inputs, NETWORK_INPUTS);
    sb_session_destroy(session);
    finish(&s);
}

/* ---- every call failing ---- */

typedef struct attempt {
    const fake_cuda_control *fake;
    sb_tensor *input;
} attempt;

/* Two nodes: what is tried is the measuring. */
static sb_model *small_model(void) {
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, 1, (int64_t[]){4});
    mark_output(&b, builder_unary(&b, "Tanh", builder_unary(&b, "Relu", x)));
    return model_of(&b, false);
}

static sb_status run_measured(const attempt *attempt, sb_model *model, sb_device *device) {
    told told = {0};
    sb_session_options options = options_on(device);
    sb_session *session;
    sb_tensor *output;
    options.task_observer = note_tasks;
    options.task_observer_context = &told;
    SB_TRY(sb_session_create(model, &options, &session, NULL));
    sb_status status = sb_session_run_tensors(session, &attempt->input, &output, NULL);
    if (status == SB_OK)
        sb_tensor_release(output);
    sb_session_destroy(session);
    return status;
}

static sb_status attempt_run(void *context) {
    const attempt *attempt = context;
    sb_device_options options = SB_DEVICE_OPTIONS_DEFAULT;
    sb_device *device;
    define_host_kernels(attempt->fake);
    options.cuda_driver = FAKE_CUDA;
    SB_TRY(sb_device_open(&options, 0, &device, NULL));
    sb_model *model = small_model();
    sb_status status = run_measured(attempt, model, device);
    sb_model_release(model);
    sb_device_release(device);
    return status;
}

static void test_failing_calls(void **unused) {
    attempt attempt = {fake_with_kernels(), random_tensor(SB_F32, 1, (int64_t[]){4}, 5)};
    open_fake(); /* which is kept from now on */
    check_failing_calls(attempt.fake, attempt_run, &attempt, 2);
    check_failing_calls(attempt.fake, attempt_run, &attempt, 700);
    sb_tensor_release(attempt.input);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tasks),
        cmocka_unit_test(test_times_only),
        cmocka_unit_test(test_refusal),
        cmocka_unit_test(test_failing_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
