/* Sessions with runs in flight. The fake device does nothing until somebody waits for it, so what is shared by mistake
 * between queued runs gives wrong bits, and what waits without need is seen in the calls of the driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "session_models.h"

#define MOST_IN_FLIGHT 4

/* ---- a run in flight ---- */

typedef struct flight {
    uint64_t run;
    sb_tensor *expected[MOST_VALUES];
} flight;

static int waits(const setting *s) {
    return s->fake->calls("cuStreamSynchronize") + s->fake->calls("cuEventSynchronize");
}

static void overwrite(sb_tensor *tensor) {
    memset(sb_tensor_mutable_data(tensor), 0x5a, (size_t)sb_tensor_elements(tensor) * sb_dtype_size(tensor->dtype));
}

static sb_status try_enqueue(sb_session *session, int count, sb_tensor *const *inputs, uint64_t *run, sb_error *error) {
    sb_value values[MOST_VALUES];
    for (int i = 0; i < count; i++)
        values[i] = sb_value_of_tensor(inputs[i]);
    return sb_session_enqueue(session, values, run, error);
}

/* Enqueues, and takes the inputs away: those on the host change at once, and those on the device are let go of. */
static flight depart(const setting *s, sb_session *session, int count, sb_tensor **inputs, bool on_device) {
    flight flight = {0};
    sb_tensor *given[MOST_VALUES];
    run_session(s->cpu, inputs, flight.expected);
    for (int i = 0; i < count; i++)
        given[i] = on_device ? to_device(s->device, inputs[i]) : sb_tensor_retain(inputs[i]);
    MUST(try_enqueue(session, count, given, &flight.run, error));
    release_all(given, count);
    for (int i = 0; i < count; i++) {
        overwrite(inputs[i]);
        if (on_device) { /* takes the memory of the one that was let go of, if nobody keeps it */
            sb_tensor *other = to_device(s->device, inputs[i]);
            sb_tensor_release(other);
        }
    }
    release_all(inputs, count);
    return flight;
}

static void arrive(const setting *s, sb_session *session, int count, flight *flight) {
    sb_value outputs[MOST_VALUES];
    MUST(sb_session_wait(session, flight->run, outputs, error));
    for (int i = 0; i < count; i++) {
        check_same(s->device, outputs[i].tensor, flight->expected[i]);
        sb_value_release(&outputs[i]);
    }
    release_all(flight->expected, count);
}

static void check_polled(sb_session *session, uint64_t run, bool expected) {
    bool done = !expected;
    MUST(sb_session_poll(session, run, &done, error));
    assert_int_equal(done, expected);
}

/* ---- bits ---- */

/* One, two, three and four runs in flight, whose inputs differ, and now and then their shapes. Once both shapes have
 * been recorded, enqueueing waits for nothing, and no run is done before somebody waits. */
static void check_in_flight(const setting *s, int depth, sb_graph_mode mode, bool device_inputs, bool device_outputs) {
    static const int64_t rows[] = {5, 5, 5, 5, 5, 5, 12, 5, 12, 12, 5, 12, 12, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5};
    enum { RUNS = sizeof rows / sizeof rows[0] };
    sb_session_options options = options_on(s->device);
    options.graphs = mode;
    options.device_outputs = device_outputs;
    options.queue_depth = depth;
    sb_session *session = session_with(s->model, &options);
    flight flights[RUNS];
    for (int run = 0; run < RUNS; run++) {
        sb_tensor *inputs[NETWORK_INPUTS];
        network_inputs(inputs, rows[run], (uint64_t)run);
        if (run >= depth)
            arrive(s, session, NETWORK_OUTPUTS, &flights[run - depth]);
        int before = waits(s);
        flights[run] = depart(s, session, NETWORK_INPUTS, inputs, device_inputs);
        assert_int_equal(flights[run].run, run + 1);
        if (run >= 14 && !device_inputs) { /* whose copies are waited for, in another stream */
            assert_int_equal(waits(s), before);
            check_polled(session, flights[run].run, false);
        }
        sb_run_report report;
        sb_session_last_run(session, &report);
        assert_int_equal(report.run, run + 1);
        assert_false(report.synchronous);
        assert_string_equal(report.reason, "");
    }
    for (int run = RUNS - depth; run < RUNS; run++)
        arrive(s, session, NETWORK_OUTPUTS, &flights[run]);
    assert_int_equal(report_of(session).failed, 0);
    sb_session_destroy(session);
}

static void test_bits(void **unused) {
    for (int passes = 0; passes < 2; passes++) {
        setting s = start(network, passes != 0);
        for (int depth = 1; depth <= MOST_IN_FLIGHT; depth++) {
            for (int where = 0; where < 4; where++) {
                for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++)
                    check_in_flight(&s, depth, mode, where % 2 != 0, where / 2 != 0);
            }
        }
        finish(&s);
    }
}

/* In any order; what comes after is not waited for by the session,
 * and runs behind a finished one are seen as they are. */
static void test_any_order(void **unused) {
    static const int orders[][MOST_IN_FLIGHT] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}};
    setting s = start(network, false);
    sb_session *session = open_session(&s, SB_GRAPHS_BUILD, false, NULL);
    for (int round = 0; round < 9; round++) {
        flight flights[MOST_IN_FLIGHT];
        for (int i = 0; i < MOST_IN_FLIGHT; i++) {
            sb_tensor *inputs[NETWORK_INPUTS];
            network_inputs(inputs, 4, (uint64_t)(10 * round + i));
            flights[i] = depart(&s, session, NETWORK_INPUTS, inputs, false);
        }
        for (int i = 0; i < MOST_IN_FLIGHT; i++) {
            arrive(&s, session, NETWORK_OUTPUTS, &flights[orders[round % 3][i]]);
            if (i + 1 < MOST_IN_FLIGHT)
                check_polled(session, flights[orders[round % 3][i + 1]].run, true); /* the fake has done everything */
        }
    }
    sb_session_destroy(session);
    finish(&s);
}

/* A run between queued ones: sb_session_run takes its place in the queue. */
static void test_run_between(void **unused) {
    setting s = start(network, false);
    sb_session *session = open_session(&s, SB_GRAPHS_CAPTURE, false, NULL);
    for (uint64_t round = 0; round < 5; round++) {
        sb_tensor *inputs[NETWORK_INPUTS];
        network_inputs(inputs, 4, round);
        flight first = depart(&s, session, NETWORK_INPUTS, inputs, false);
        network_inputs(inputs, 4, 100 + round);
        flight second = depart(&s, session, NETWORK_INPUTS, inputs, false);
        network_inputs(inputs, 4, 200 + round);
        run_both(session, s.cpu, s.device, NETWORK_INPUTS, inputs, NETWORK_OUTPUTS);
        release_all(inputs, NETWORK_INPUTS);
        assert_int_equal(second.run, first.run + 1);
        arrive(&s, session, NETWORK_OUTPUTS, &first);
        arrive(&s, session, NETWORK_OUTPUTS, &second);
    }
    sb_session_destroy(session);
    finish(&s);
}

/* More runs in flight than recordings are kept, each with outputs of its own on the device: recordings go that runs in
 * flight were launched from, and the fake complains if the device has not done those. */
static void test_many_in_flight(void **unused) {
    enum { MANY = 14 };
    setting s = start(network, false);
    for (sb_graph_mode mode = SB_GRAPHS_CAPTURE; mode <= SB_GRAPHS_BUILD; mode++) {
        sb_session_options options = options_on(s.device);
        options.graphs = mode;
        options.device_outputs = true;
        options.queue_depth = 16;
        sb_session *session = session_with(s.model, &options);
        for (int round = 0; round < 3; round++) {
            flight flights[MANY];
            for (int i = 0; i < MANY; i++) {
                sb_tensor *inputs[NETWORK_INPUTS];
                network_inputs(inputs, 6, (uint64_t)(100 * round + i));
                flights[i] = depart(&s, session, NETWORK_INPUTS, inputs, false);
            }
            for (int i = 0; i < MANY; i++)
                arrive(&s, session, NETWORK_OUTPUTS, &flights[i]);
        }
        assert_int_equal(report_of(session).failed, 0);
        sb_session_destroy(session);
    }
    finish(&s);
}

/* ---- the ring ---- */

static void test_full(void **unused) {
    setting s = start(network, false);
    for (int depth = 1; depth <= 3; depth++) {
        sb_session_options options = options_on(s.device);
        options.queue_depth = depth;
        sb_session *session = session_with(s.model, &options);
        sb_tensor *inputs[NETWORK_INPUTS], *outputs[NETWORK_OUTPUTS];
        flight flights[3];
        sb_error error = {SB_OK, ""};
        uint64_t run = 77;
        for (int i = 0; i < depth; i++) {
            network_inputs(inputs, 4, (uint64_t)i);
            flights[i] = depart(&s, session, NETWORK_INPUTS, inputs, false);
        }
        network_inputs(inputs, 4, 9);
        assert_int_equal(try_enqueue(session, NETWORK_INPUTS, inputs, &run, &error), SB_ERROR_INVALID_ARGUMENT);
        assert_says(error, "wait for run 1 first");
        assert_int_equal(run, 0);
        assert_int_equal(sb_session_run_tensors(session, inputs, outputs, &error), SB_ERROR_INVALID_ARGUMENT);
        arrive(&s, session, NETWORK_OUTPUTS, &flights[0]);
        run_both(session, s.cpu, s.device, NETWORK_INPUTS, inputs, NETWORK_OUTPUTS);
        for (int i = 1; i < depth; i++)
            arrive(&s, session, NETWORK_OUTPUTS, &flights[i]);
        release_all(inputs, NETWORK_INPUTS);
        sb_session_destroy(session);
    }
    finish(&s);
}

static void test_wrong_numbers(void **unused) {
    setting s = start(network, false);
    sb_session_options options = options_on(s.device);
    sb_session *session = session_with(s.model, &options);
    sb_tensor *inputs[NETWORK_INPUTS];
    sb_value outputs[NETWORK_OUTPUTS];
    sb_error error = {SB_OK, ""};
    bool done = true;
    network_inputs(inputs, 4, 1);
    flight flight = depart(&s, session, NETWORK_INPUTS, inputs, false);
    arrive(&s, session, NETWORK_OUTPUTS, &flight);
    assert_int_equal(sb_session_wait(session, 1, outputs, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_says(error, "run 1 is over");
    assert_int_equal(outputs[0].kind, SB_KIND_NONE);
    assert_int_equal(sb_session_poll(session, 1, &done, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_false(done);
    assert_int_equal(sb_session_wait(session, 0, outputs, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_session_wait(session, 2, outputs, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_says(error, "there is no run 2");
    sb_session_destroy(session);
    static const int depths[] = {-1, 0, 17};
    for (int i = 0; i < 3; i++) {
        options.queue_depth = depths[i];
        assert_int_equal(sb_session_create(s.model, &options, &session, &error), SB_ERROR_INVALID_ARGUMENT);
        assert_says(error, "queue_depth");
    }
    finish(&s);
}

/* Nobody waits: what the runs hold is given back, and the device has done them. */
static void test_destroyed(void **unused) {
    for (int on_device = 0; on_device < 2; on_device++) {
        setting s = start(network, false);
        sb_session *session = open_session(&s, SB_GRAPHS_BUILD, on_device != 0, NULL);
        flight flights[MOST_IN_FLIGHT];
        for (int i = 0; i < MOST_IN_FLIGHT; i++) {
            sb_tensor *inputs[NETWORK_INPUTS];
            network_inputs(inputs, 6, (uint64_t)i);
            flights[i] = depart(&s, session, NETWORK_INPUTS, inputs, on_device != 0);
        }
        sb_session_destroy(session);
        for (int i = 0; i < MOST_IN_FLIGHT; i++)
            release_all(flights[i].expected, NETWORK_OUTPUTS);
        finish(&s);
    }
}

/* ---- faults ---- */

static void check_faulty(sb_session *session, uint64_t run, const char *op, const char *says) {
    sb_value outputs[1];
    sb_error error = {SB_OK, ""};
    char number[32];
    snprintf(number, sizeof number, "run %llu: node ", (unsigned long long)run);
    assert_int_not_equal(sb_session_wait(session, run, outputs, &error), SB_OK);
    assert_int_equal(outputs[0].kind, SB_KIND_NONE);
    assert_says(error, number);
    assert_says(error, op);
    assert_says(error, says);
}

static uint64_t enqueue_bad(sb_session *session, int64_t last_x, int64_t last_y) {
    sb_tensor *inputs[2] = {six_of(20, last_x), six_of(2, last_y)};
    uint64_t run;
    MUST(try_enqueue(session, 2, inputs, &run, error));
    release_all(inputs, 2);
    return run;
}

/* A run divides by zero, one looks outside of the table; those before, between and behind have their results. */
static void test_faults(void **unused) {
    for (int passes = 0; passes < 2; passes++) {
        setting s = start(lookup, passes != 0);
        for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
            for (int order = 0; order < 2; order++) {
                sb_session *session = open_session(&s, mode, order != 0, NULL);
                for (int round = 0; round < 5; round++) {
                    sb_tensor *good[2] = {six_of(20 + round, 30), six_of(2, 3)};
                    flight first = depart(&s, session, 2, good, false);
                    uint64_t by_zero = enqueue_bad(session, 1, 0);
                    good[0] = six_of(30 + round, 31);
                    good[1] = six_of(2, 3);
                    flight third = depart(&s, session, 2, good, false);
                    uint64_t outside = enqueue_bad(session, 200, 2);
                    if (order != 0)
                        check_faulty(session, outside, "Gather", "outside");
                    arrive(&s, session, 1, &first);
                    check_faulty(session, by_zero, "Div", "zero");
                    arrive(&s, session, 1, &third);
                    if (order == 0)
                        check_faulty(session, outside, "Gather", "outside");
                }
                sb_session_destroy(session);
            }
        }
        finish(&s);
    }
}

/* One that divides by zero is asked for when three times as many runs as may be in flight have been and gone, some of them faulty too: its fault
 * is still its own, and nobody else's. */
static void test_fault_asked_for_late(void **unused) {
    setting s = start(lookup, true);
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        sb_session *session = open_session(&s, mode, true, NULL);
        for (int round = 0; round < 4; round++) {
            uint64_t by_zero = enqueue_bad(session, 1, 0);
            for (int i = 0; i < 3 * MOST_IN_FLIGHT; i++) {
                if (i % 3 == 1) {
                    check_faulty(session, enqueue_bad(session, 200, 2), "Gather", "outside");
                    continue;
                }
                sb_tensor *good[2] = {six_of(20 + i, 30), six_of(2, 3)};
                flight flight = depart(&s, session, 2, good, false);
                arrive(&s, session, 1, &flight);
            }
            check_faulty(session, by_zero, "Div", "zero");
        }
        sb_session_destroy(session);
    }
    finish(&s);
}

/* A run that could not be given to the device whole leaves no fault to the next. */
static void test_fault_of_a_failed_run(void **unused) {
    setting s = start(lookup, false);
    sb_session *session = open_session(&s, SB_GRAPHS_OFF, false, NULL);
    for (int warm = 0; warm < 2; warm++) {
        sb_tensor *good[2] = {six_of(20, 30), six_of(2, 3)};
        flight flight = depart(&s, session, 2, good, false);
        arrive(&s, session, 1, &flight);
    }
    sb_tensor *bad[2] = {six_of(20, 1), six_of(2, 0)}, *good[2] = {six_of(20, 30), six_of(2, 3)};
    uint64_t run;
    sb_error error = {SB_OK, ""};
    s.fake->plan_failure("cuEventRecord", 0, 999); /* the mark behind the run */
    assert_int_equal(try_enqueue(session, 2, bad, &run, &error), SB_ERROR_DEVICE);
    assert_true(s.fake->failure_happened());
    s.fake->plan_failure(NULL, -1, 0);
    release_all(bad, 2);
    flight flight = depart(&s, session, 2, good, false);
    arrive(&s, session, 1, &flight);
    sb_session_destroy(session);
    finish(&s);
}

/* ---- runs that the host takes part in ---- */

static sb_status see_node(void *context, sb_node_event *event, sb_error *error) {
    ++*(int *)context;
    (void)event;
    return error->status = SB_OK;
}

static sb_status see_tasks(void *context, const sb_task_span *spans, size_t count, sb_error *error) {
    ++*(int *)context;
    (void)spans;
    (void)count;
    return error->status = SB_OK;
}

/* Runs of such a session are complete when they have been enqueued, and the report says why. */
static void check_synchronous(const setting *s, const sb_session_options *options, const char *reason, const char *op) {
    sb_session *session = session_with(s->model, options);
    for (int round = 0; round < 3; round++) {
        flight flights[2];
        for (int i = 0; i < 2; i++) {
            sb_tensor *inputs[NETWORK_INPUTS];
            sb_run_report report;
            network_inputs(inputs, 4, (uint64_t)(2 * round + i));
            flights[i] = depart(s, session, NETWORK_INPUTS, inputs, false);
            check_polled(session, flights[i].run, true);
            sb_session_last_run(session, &report);
            assert_true(report.synchronous);
            assert_string_equal(report.reason, reason);
            assert_true((op == NULL) == (report.op == NULL) && (op == NULL) == (report.node == NULL));
            assert_true(op == NULL || strcmp(report.op, op) == 0);
        }
        arrive(s, session, NETWORK_OUTPUTS, &flights[1]);
        arrive(s, session, NETWORK_OUTPUTS, &flights[0]);
    }
    sb_session_destroy(session);
}

static void test_synchronous(void **unused) {
    setting s = start(network, false);
    int seen = 0;
    sb_session_options options = options_on(NULL);
    check_synchronous(&s, &options, "the session has no device", NULL);
    options = options_on(s.device);
    options.force_cpu = "Softmax";
    check_synchronous(&s, &options, "it runs on the CPU", "Softmax");
    options = options_on(s.device);
    options.observer = see_node;
    options.observer_context = &seen;
    check_synchronous(&s, &options, "an observer is called after each node", NULL);
    assert_true(seen > 0);
    options = options_on(s.device);
    options.task_observer = see_tasks;
    options.task_observer_context = &seen;
    seen = 0;
    check_synchronous(&s, &options, "a task observer is called after each run", NULL);
    assert_int_equal(seen, 6);
    sb_session *session = open_session(&s, SB_GRAPHS_BUILD, false, NULL);
    sb_run_report report;
    sb_session_last_run(session, &report);
    assert_int_equal(report.run, 0);
    assert_false(report.synchronous);
    sb_session_destroy(session);
    finish(&s);
}

static sb_model *positives(bool passes) {
    static const int64_t dims[] = {-1};
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, 1, dims);
    mark_output(&b, builder_unary(&b, "NonZero", builder_unary(&b, "Relu", x)));
    return model_of(&b, passes);
}

static sb_model *cut_off(bool passes) {
    static const int64_t dims[] = {-1};
    builder b = builder_create();
    mark_output(&b, builder_unary(&b, "Relu", builder_input(&b, SB_F32, 1, dims)));
    return model_of(&b, passes);
}

static void check_reason(const setting *s, sb_session *session, int64_t elements, const char *reason, const char *op) {
    sb_tensor *input = random_tensor(SB_F32, 1, &elements, 3);
    sb_run_report report;
    flight flight = depart(s, session, 1, &input, false);
    sb_session_last_run(session, &report);
    assert_string_equal(report.reason, reason);
    assert_int_equal(report.synchronous, reason[0] != '\0');
    assert_true(op == NULL ? report.op == NULL : strcmp(report.op, op) == 0);
    arrive(s, session, 1, &flight);
}

/* Shapes that follow from data, and outputs that are more than pinned memory is spent on. */
static void test_by_data_and_size(void **unused) {
    setting s = start(positives, false);
    sb_session *session = open_session(&s, SB_GRAPHS_BUILD, false, NULL);
    for (int run = 0; run < 3; run++)
        check_reason(&s, session, 20 + run, "its shapes follow from data", "NonZero");
    sb_session_destroy(session);
    finish(&s);
    s = start(cut_off, false);
    session = open_session(&s, SB_GRAPHS_BUILD, false, NULL);
    check_reason(&s, session, 100, "", NULL);
    check_reason(&s, session, (16 << 20) + 1, "its outputs are too large to wait in pinned memory", NULL);
    check_reason(&s, session, 16 << 20, "", NULL);
    sb_session_destroy(session);
    finish(&s);
}

/* An interrupt ends what is being enqueued, and nothing that the device has. */
static void test_interrupt(void **unused) {
    setting s = start(network, false);
    sb_session *session = open_session(&s, SB_GRAPHS_BUILD, false, NULL);
    for (uint64_t round = 0; round < 4; round++) {
        sb_tensor *inputs[NETWORK_INPUTS];
        uint64_t run;
        sb_error error = {SB_OK, ""};
        network_inputs(inputs, 4, round);
        flight first = depart(&s, session, NETWORK_INPUTS, inputs, false);
        network_inputs(inputs, 4, 10 + round);
        sb_session_interrupt(session);
        assert_int_equal(try_enqueue(session, NETWORK_INPUTS, inputs, &run, &error), SB_ERROR_INTERRUPTED);
        flight second = depart(&s, session, NETWORK_INPUTS, inputs, false);
        assert_int_equal(second.run, first.run + 1);
        arrive(&s, session, NETWORK_OUTPUTS, &first);
        arrive(&s, session, NETWORK_OUTPUTS, &second);
    }
    sb_session_destroy(session);
    finish(&s);
}

/* A run that needs too much leaves the one before it as it is. */
static void test_memory_limit(void **unused) {
    setting s = start(network, false);
    sb_session_options options = options_on(s.device);
    options.memory_limit = 200000;
    sb_session *session = session_with(s.model, &options);
    for (uint64_t round = 0; round < 4; round++) {
        sb_tensor *inputs[NETWORK_INPUTS];
        uint64_t run;
        sb_error error = {SB_OK, ""};
        network_inputs(inputs, 4, round);
        flight first = depart(&s, session, NETWORK_INPUTS, inputs, false);
        network_inputs(inputs, 20000, round);
        assert_int_equal(try_enqueue(session, NETWORK_INPUTS, inputs, &run, &error), SB_ERROR_OUT_OF_MEMORY);
        release_all(inputs, NETWORK_INPUTS);
        arrive(&s, session, NETWORK_OUTPUTS, &first);
    }
    sb_session_destroy(session);
    finish(&s);
}

/* ---- steady runs ---- */

/* Of recorded runs, enqueueing calls no allocator but for outputs on the host, and waits for nothing; waiting calls
 * none, and waits once. */
static void test_steady(void **unused) {
    for (int on_device = 0; on_device < 2; on_device++) {
        setting s = start(network, true);
        sb_tensor *inputs[NETWORK_INPUTS];
        network_inputs(inputs, 7, 1);
        for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
            sb_session *session = open_session(&s, mode, on_device != 0, NULL);
            uint64_t runs[40];
            for (int run = 0; run < 40; run++) {
                sb_value outputs[NETWORK_OUTPUTS];
                int64_t allocations = sb_allocation_count().allocations;
                int64_t there = counters_of(s.device).device_allocations;
                int waited = waits(&s);
                if (run >= 3) {
                    MUST(sb_session_wait(session, runs[run - 3], outputs, error));
                    for (int i = 0; i < NETWORK_OUTPUTS; i++)
                        sb_value_release(&outputs[i]);
                }
                if (run > 12) {
                    assert_int_equal(sb_allocation_count().allocations, allocations);
                    assert_true(waits(&s) - waited <= 1);
                }
                waited = waits(&s);
                MUST(try_enqueue(session, NETWORK_INPUTS, inputs, &runs[run], error));
                if (run > 12) {
                    assert_int_equal(waits(&s), waited);
                    assert_int_equal(sb_allocation_count().allocations,
                                     allocations + (on_device != 0 ? 0 : 2 * NETWORK_OUTPUTS));
                    assert_int_equal(counters_of(s.device).device_allocations, there);
                }
            }
            assert_int_equal(report_of(session).failed, 0);
            sb_session_destroy(session);
        }
        release_all(inputs, NETWORK_INPUTS);
        finish(&s);
    }
}

/* ---- failures ---- */

#define RUNS 6
#define ILLEGAL_ADDRESS 700 /* sticky */
#define OUT_OF_MEMORY 2
#define UNKNOWN 999

typedef struct life {
    const fake_cuda_control *fake;
    sb_model *(*make)(bool passes);
    int input_count, output_count;
    sb_graph_mode mode;
    bool device_outputs;
    sb_tensor *inputs[RUNS][MOST_VALUES], *expected[RUNS][MOST_VALUES];
} life;

static void check_outputs(const life *life, sb_device *device, sb_value *outputs, int run) {
    for (int i = 0; i < life->output_count; i++) {
        sb_tensor *host;
        /* Copying may be what fails. */
        if (sb_tensor_to_host(device, outputs[i].tensor, &host, NULL) == SB_OK) {
            assert_true(sb_tensor_equal(host, life->expected[run][i]));
            sb_tensor_release(host);
        }
        sb_value_release(&outputs[i]);
    }
}

/* Three runs in flight all the time: each is right or reports, and the others are not concerned. */
static sb_status fly_all(const life *life, sb_session *session, sb_device *device, sb_error *error) {
    uint64_t runs[RUNS];
    sb_status first = SB_OK;
    for (int run = 0; run < RUNS + 3; run++) {
        sb_error failure = {SB_OK, ""};
        sb_value outputs[MOST_VALUES];
        sb_status status = SB_OK;
        bool done;
        if (run >= 3 && runs[run - 3] != 0) {
            sb_status asked = sb_session_poll(session, runs[run - 3], &done, NULL);
            assert_true(asked == SB_OK || life->fake->failure_happened());
            status = sb_session_wait(session, runs[run - 3], outputs, &failure);
            if (status == SB_OK)
                check_outputs(life, device, outputs, run - 3);
        }
        if (status == SB_OK && run < RUNS) {
            status = try_enqueue(session, life->input_count, life->inputs[run], &runs[run], &failure);
            assert_true((status == SB_OK) == (runs[run] != 0));
        } else if (run < RUNS) {
            runs[run] = 0;
        }
        if (status == SB_OK)
            continue;
        assert_string_not_equal(failure.message, "");
        *error = first == SB_OK ? failure : *error;
        first = first == SB_OK ? status : first;
    }
    return first;
}

static sb_status live(const life *life) {
    sb_device_options where = SB_DEVICE_OPTIONS_DEFAULT;
    sb_device *device = NULL;
    sb_session *session = NULL;
    sb_error error = {SB_OK, ""};
    where.cuda_driver = FAKE_CUDA;
    sb_model *model = life->make(false);
    sb_status status = sb_device_open(&where, 0, &device, &error);
    if (status == SB_OK) {
        sb_session_options options = options_on(device);
        options.graphs = life->mode;
        options.device_outputs = life->device_outputs;
        status = sb_session_create(model, &options, &session, &error);
    }
    if (status == SB_OK)
        status = fly_all(life, session, device, &error);
    sb_session_destroy(session);
    sb_device_release(device);
    sb_model_release(model);
    return status;
}

static void check_failures(const life *life, int result) {
    int reported = 0;
    for (int skip = 0;; skip++) {
        life->fake->reset();
        define_host_kernels(life->fake);
        int64_t blocks = sb_allocation_count().live_blocks;
        life->fake->plan_failure(NULL, skip, result);
        sb_status status = live(life);
        bool happened = life->fake->failure_happened();
        life->fake->plan_failure(NULL, -1, 0);
        check_nothing_lives(life->fake);
        assert_int_equal(sb_allocation_count().live_blocks, blocks);
        reported += status != SB_OK;
        if (!happened) {
            assert_int_equal(status, SB_OK);
            break;
        }
        assert_true(skip < 10000);
    }
    assert_true(reported > 0);
}

static void expect_runs(life *life) {
    sb_model *model = life->make(false);
    sb_session *cpu = cpu_session(model);
    for (int run = 0; run < RUNS; run++)
        run_session(cpu, life->inputs[run], life->expected[run]);
    sb_session_destroy(cpu);
    sb_model_release(model);
}

static void forget_runs(life *life) {
    for (int run = 0; run < RUNS; run++) {
        release_all(life->inputs[run], life->input_count);
        release_all(life->expected[run], life->output_count);
    }
}

static life lookups(void) {
    life life = {.fake = fake_with_kernels(), .make = lookup, .input_count = 2, .output_count = 1};
    open_fake(); /* which is kept from now on */
    for (int run = 0; run < RUNS; run++) {
        life.inputs[run][0] = six_of(20 + run, 30);
        life.inputs[run][1] = six_of(2, 3);
    }
    expect_runs(&life);
    return life;
}

/* Every call of the driver in turn. */
static void test_failing_calls(void **unused) {
    static const int results[] = {OUT_OF_MEMORY, UNKNOWN, ILLEGAL_ADDRESS};
    life life = lookups();
    for (int r = 0; r < 3; r++) {
        life.mode = r == 1 ? SB_GRAPHS_BUILD : SB_GRAPHS_CAPTURE;
        life.device_outputs = r == 2;
        check_failures(&life, results[r]);
    }
    forget_runs(&life);
}

/* Every allocation of the library in turn. */
static void test_failing_allocations(void **unused) {
    life life = lookups();
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        setting s = start_device();
        s.model = lookup(false);
        life.mode = mode;
        sb_status status = SB_ERROR_OUT_OF_MEMORY;
        for (int64_t successes = 0; status != SB_OK; successes += mode == SB_GRAPHS_BUILD ? 1 : 5) {
            sb_session *session = NULL;
            sb_error error = {SB_OK, ""};
            sb_session_options options = options_on(s.device);
            options.graphs = mode;
            sb_allocation_fail_after(successes, false);
            status = sb_session_create(s.model, &options, &session, &error);
            if (status == SB_OK)
                status = fly_all(&life, session, s.device, &error);
            sb_allocation_fail_after(-1, false);
            assert_true(status == SB_OK || status == SB_ERROR_OUT_OF_MEMORY);
            if (session != NULL && report_of(session).failed > 0)
                status = SB_ERROR_OUT_OF_MEMORY; /* recording failed, which is no run's failure */
            if (session != NULL)
                assert_int_equal(fly_all(&life, session, s.device, &error), SB_OK);
            sb_session_destroy(session);
            assert_true(successes < 10000);
        }
        finish(&s);
    }
    forget_runs(&life);
}

/* A device that is lost under queued runs: each says so when it is waited for, and no more are taken. */
static void test_lost_device(void **unused) {
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        setting s = start(network, false);
        sb_session *session = open_session(&s, mode, false, NULL);
        sb_tensor *inputs[NETWORK_INPUTS], *outputs[NETWORK_OUTPUTS];
        sb_value none[NETWORK_OUTPUTS];
        uint64_t first, second, third;
        sb_error error = {SB_OK, ""};
        network_inputs(inputs, 3, 1);
        for (int run = 0; run < 3; run++) {
            run_session(session, inputs, outputs);
            release_all(outputs, NETWORK_OUTPUTS);
        }
        MUST(try_enqueue(session, NETWORK_INPUTS, inputs, &first, error));
        s.fake->break_kernel(ILLEGAL_ADDRESS);
        MUST(try_enqueue(session, NETWORK_INPUTS, inputs, &second, error));
        assert_int_equal(sb_session_wait(session, second, none, &error), SB_ERROR_DEVICE);
        assert_says(error, "CUDA_ERROR_ILLEGAL_ADDRESS");
        assert_int_equal(none[0].kind, SB_KIND_NONE);
        assert_int_equal(try_enqueue(session, NETWORK_INPUTS, inputs, &third, &error), SB_ERROR_DEVICE);
        assert_says(error, "lost earlier");
        assert_int_equal(sb_session_wait(session, first, none, &error), SB_ERROR_DEVICE);
        release_all(inputs, NETWORK_INPUTS);
        sb_session_destroy(session);
        finish(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_run_between),
        cmocka_unit_test(test_many_in_flight),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_wrong_numbers),
        cmocka_unit_test(test_destroyed),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_fault_asked_for_late),
        cmocka_unit_test(test_fault_of_a_failed_run),
        cmocka_unit_test(test_synchronous),
        cmocka_unit_test(test_by_data_and_size),
        cmocka_unit_test(test_interrupt),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_steady),
        cmocka_unit_test(test_failing_calls),
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_lost_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
