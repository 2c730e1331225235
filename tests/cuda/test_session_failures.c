/* Sessions whose driver fails, and nodes whose data are wrong: what is reported, that results are never wrong,
 * and that nothing is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "host_schedules.h"
#include "session_models.h"

#define RUNS 5
#define ILLEGAL_ADDRESS 700 /* sticky */
#define OUT_OF_MEMORY 2
#define UNKNOWN 999

/* ---- every call of the driver, in turn ---- */

typedef struct life {
    const fake_cuda_control *fake;
    sb_graph_mode mode;
    const char *force_cpu;
    bool device_outputs, sticky;
    sb_tensor *inputs[RUNS][NETWORK_INPUTS], *expected[RUNS][NETWORK_OUTPUTS];
    int recordings_failed; /* runs that went well although recording had failed */
    int reported;
} life;

static void check_says_why(const char *message) {
    if (strstr(message, "failed with CUDA_ERROR") == NULL && strstr(message, "no room for") == NULL)
        fail_msg("this does not say what happened: %s", message);
}

static void check_outputs(const life *life, sb_device *device, sb_tensor **outputs, int run) {
    for (int i = 0; i < NETWORK_OUTPUTS; i++) {
        sb_error error = {SB_OK, ""};
        sb_tensor *host;
        /* Copying may be what fails. */
        if (sb_tensor_to_host(device, outputs[i], &host, &error) == SB_OK) {
            assert_true(sb_tensor_equal(host, life->expected[run][i]));
            sb_tensor_release(host);
        } else {
            assert_true(life->fake->failure_happened());
            check_says_why(error.message);
        }
        sb_tensor_release(outputs[i]);
    }
}

static void check_report(life *life, sb_session *session) {
    sb_graph_report report = report_of(session);
    if (report.failed == 0) {
        assert_string_equal(report.reason, "");
        return;
    }
    life->recordings_failed++;
    assert_true(life->fake->failure_happened());
    check_says_why(report.reason);
}

/* A run fails once, or for good when the device is lost. */
static sb_status check_failed_run(const life *life, sb_session *session, sb_device *device, int run,
                                  const sb_error *first) {
    sb_error error = {SB_OK, ""};
    sb_tensor *outputs[NETWORK_OUTPUTS];
    assert_true(life->fake->failure_happened());
    check_says_why(first->message);
    for (int again = 0; again < 2; again++) {
        sb_status status = sb_session_run_tensors(session, life->inputs[run], outputs, &error);
        if (status == SB_OK) {
            assert_false(life->sticky);
            check_outputs(life, device, outputs, run);
        } else {
            if (!life->sticky)
                fail_msg("after \"%s\": %s", first->message, error.message);
            assert_says(error, "lost earlier");
            assert_says(error, "CUDA_ERROR_ILLEGAL_ADDRESS");
        }
    }
    return first->status;
}

static sb_status run_all(life *life, sb_session *session, sb_device *device, sb_error *error) {
    sb_status first = SB_OK;
    for (int run = 0; run < RUNS; run++) {
        sb_tensor *outputs[NETWORK_OUTPUTS];
        sb_status status = sb_session_run_tensors(session, life->inputs[run], outputs, error);
        if (status == SB_OK) {
            check_outputs(life, device, outputs, run);
            check_report(life, session);
            continue;
        }
        for (int i = 0; i < NETWORK_OUTPUTS; i++)
            assert_null(outputs[i]);
        status = check_failed_run(life, session, device, run, error);
        first = first == SB_OK ? status : first;
        if (life->sticky)
            break;
    }
    return first;
}

/* A device's, a model's and a session's whole life. */
static sb_status live(life *life) {
    sb_device_options where = SB_DEVICE_OPTIONS_DEFAULT;
    sb_device *device = NULL;
    sb_session *session = NULL;
    sb_error error = {SB_OK, ""};
    where.cuda_driver = FAKE_CUDA;
    sb_model *model = network(false);
    sb_status status = sb_device_open(&where, 0, &device, &error);
    if (status == SB_OK) {
        sb_session_options options = options_on(device);
        options.graphs = life->mode;
        options.force_cpu = life->force_cpu;
        options.device_outputs = life->device_outputs;
        status = sb_session_create(model, &options, &session, &error);
    }
    if (status == SB_OK)
        status = run_all(life, session, device, &error);
    if (status != SB_OK)
        check_says_why(error.message);
    sb_session_destroy(session);
    sb_device_release(device);
    sb_model_release(model);
    return status;
}

static void check_failures(life *life, int result) {
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
        life->reported += status != SB_OK;
        if (!happened) {
            assert_int_equal(status, SB_OK);
            return;
        }
        assert_true(skip < 10000);
    }
}

static void test_failing_calls(void **unused) {
    static const int results[] = {OUT_OF_MEMORY, UNKNOWN, ILLEGAL_ADDRESS};
    life life = {.fake = fake_with_kernels()};
    open_fake(); /* which is kept from now on */
    sb_model *model = network(false);
    sb_session *cpu = cpu_session(model);
    for (int run = 0; run < RUNS; run++) {
        network_inputs(life.inputs[run], run == 3 ? 2 : 3, (uint64_t)run);
        run_session(cpu, life.inputs[run], life.expected[run]);
    }
    sb_session_destroy(cpu);
    sb_model_release(model);
    for (size_t r = 0; r < sizeof results / sizeof results[0]; r++) {
        for (sb_graph_mode mode = SB_GRAPHS_CAPTURE; mode <= SB_GRAPHS_BUILD; mode++) {
            if ((r == 0 && mode == SB_GRAPHS_BUILD) || (r == 1 && mode == SB_GRAPHS_CAPTURE))
                continue; /* to save time */
            life.mode = mode;
            life.force_cpu = r == 1 ? "Softmax" : NULL;
            life.device_outputs = r == 0;
            life.sticky = results[r] == ILLEGAL_ADDRESS;
            life.recordings_failed = life.reported = 0;
            check_failures(&life, results[r]);
            assert_true(life.reported > 0);
            assert_true(life.sticky == (life.recordings_failed == 0));
        }
    }
    for (int run = 0; run < RUNS; run++) {
        release_all(life.inputs[run], NETWORK_INPUTS);
        release_all(life.expected[run], NETWORK_OUTPUTS);
    }
}

/* ---- memory of the host, in turn ---- */

/* Runs with each of the library's allocations failing: a report, or right bits; and the session goes on. */
static void test_failing_allocations(void **unused) {
    setting s = start(network, false);
    sb_tensor *inputs[NETWORK_INPUTS], *expected[NETWORK_OUTPUTS], *outputs[NETWORK_OUTPUTS];
    network_inputs(inputs, 3, 1);
    run_session(s.cpu, inputs, expected);
    for (sb_graph_mode mode = SB_GRAPHS_CAPTURE; mode <= SB_GRAPHS_BUILD; mode++) {
        bool failed = true;
        for (int64_t successes = 0; failed; successes += 9) {
            sb_session *session = open_session(&s, mode, false, NULL);
            int run = 0;
            failed = false;
            sb_allocation_fail_after(successes, false);
            for (; run < 4; run++) {
                sb_error error = {SB_OK, ""};
                sb_status status = sb_session_run_tensors(session, inputs, outputs, &error);
                if (status != SB_OK) {
                    assert_int_equal(status, SB_ERROR_OUT_OF_MEMORY);
                    failed = true;
                    continue;
                }
                for (int i = 0; i < NETWORK_OUTPUTS; i++)
                    assert_true(sb_tensor_equal(outputs[i], expected[i]));
                release_all(outputs, NETWORK_OUTPUTS);
                failed = failed || report_of(session).failed > 0;
            }
            sb_allocation_fail_after(-1, false);
            run_session(session, inputs, outputs);
            for (int i = 0; i < NETWORK_OUTPUTS; i++)
                assert_true(sb_tensor_equal(outputs[i], expected[i]));
            release_all(outputs, NETWORK_OUTPUTS);
            sb_session_destroy(session);
        }
    }
    release_all(inputs, NETWORK_INPUTS);
    release_all(expected, NETWORK_OUTPUTS);
    finish(&s);
}

/* ---- kernels with maps and workspaces of their own ---- */

#define LONG_ROW 20000

/* A row that many blocks normalise, and what it adds up to, by parts as well. */
static sb_model *long_row(bool passes) {
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, 2, (int64_t[]){1, LONG_ROW});
    sb_value_id scale = builder_constant(&b, random_tensor(SB_F32, 1, (int64_t[]){LONG_ROW}, 80));
    sb_value_id y = builder_node(&b, "LayerNormalization", 2, (sb_value_id[]){x, scale}, NULL);
    sb_value_id both = concat(&b, y, concat(&b, x, y, 1), 1);
    mark_output(&b, builder_node(&b, "ReduceSum", 2, (sb_value_id[]){both, integers(&b, 1, (int64_t[]){1})}, NULL));
    return model_of(&b, passes);
}

#define KEYS 600
#define HEAD 128

/* Two queries over keys of two splits, which the copy engine brings and the last block folds. */
static sb_model *few_rows(bool passes) {
    builder b = builder_create();
    sb_value_id keys = builder_input(&b, SB_F16, 4, (int64_t[]){1, 1, KEYS, HEAD});
    sb_value_id queries = builder_constant(&b, random_tensor(SB_F16, 4, (int64_t[]){1, 2, 1, HEAD}, 82));
    mark_output(&b, builder_node(&b, "Attention", 3, (sb_value_id[]){queries, keys, keys}, NULL));
    return model_of(&b, passes);
}

/* Runs with each of a session's allocations, or calls of the driver, failing in turn; what follows goes well. */
static void check_failing_run(const setting *s, sb_tensor *input, sb_tensor *expected, bool calls) {
    bool happened = true;
    for (int successes = 0; happened; successes++) {
        sb_session *session = open_session(s, SB_GRAPHS_OFF, false, NULL);
        sb_error error = {SB_OK, ""};
        sb_tensor *output;
        if (calls)
            s->fake->plan_failure(NULL, successes, OUT_OF_MEMORY);
        else
            sb_allocation_fail_after(successes, false);
        sb_status status = sb_session_run_tensors(session, &input, &output, &error);
        happened = calls ? s->fake->failure_happened() : status != SB_OK;
        s->fake->plan_failure(NULL, -1, 0);
        sb_allocation_fail_after(-1, false);
        if (status == SB_OK)
            assert_true(sb_tensor_equal(output, expected));
        else if (calls)
            check_says_why(error.message);
        else
            assert_int_equal(status, SB_ERROR_OUT_OF_MEMORY);
        if (status == SB_OK)
            sb_tensor_release(output);
        run_session(session, &input, &output);
        assert_true(sb_tensor_equal(output, expected));
        sb_tensor_release(output);
        sb_session_destroy(session);
    }
}

static void check_failing_runs(sb_model *(*model)(bool passes), sb_dtype dtype, int rank, const int64_t *dims) {
    setting s = start(model, false);
    sb_tensor *input = random_tensor(dtype, rank, dims, 81), *expected;
    run_session(s.cpu, &input, &expected);
    check_failing_run(&s, input, expected, true);
    check_failing_run(&s, input, expected, false);
    sb_tensor_release(input);
    sb_tensor_release(expected);
    finish(&s);
}

static void test_failing_long_row(void **unused) {
    check_failing_runs(long_row, SB_F32, 2, (int64_t[]){1, LONG_ROW});
}

static void test_failing_few_rows(void **unused) {
    check_failing_runs(few_rows, SB_F16, 4, (int64_t[]){1, 1, KEYS, HEAD});
    assert_non_null(strstr(host_last_rings().kernel, "attention16_stream"));
}

/* ---- a device that is lost ---- */

/* A kernel of run `when` does something illegal: that run says so, later ones give the device nothing more to do. */
static void test_lost_device(void **unused) {
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        for (int when = 0; when < 4; when++) {
            setting s = start(network, false);
            sb_session_options options = options_on(s.device);
            options.graphs = mode;
            sb_session *session = session_with(s.model, &options), *other;
            sb_tensor *inputs[NETWORK_INPUTS], *outputs[NETWORK_OUTPUTS];
            sb_error error = {SB_OK, ""}, first = {SB_OK, ""};
            network_inputs(inputs, 3, 1);
            for (int run = 0; run < when; run++) {
                run_session(session, inputs, outputs);
                release_all(outputs, NETWORK_OUTPUTS);
            }
            s.fake->break_kernel(ILLEGAL_ADDRESS);
            assert_int_equal(sb_session_run_tensors(session, inputs, outputs, &first), SB_ERROR_DEVICE);
            assert_null(outputs[0]);
            assert_says(first, "CUDA_ERROR_ILLEGAL_ADDRESS");
            int kernels = s.fake->calls("cuLaunchKernelEx"), graphs = s.fake->calls("cuGraphLaunch"),
                copies = s.fake->calls("cuMemcpyHtoDAsync");
            for (int again = 0; again < 2; again++) {
                assert_int_equal(sb_session_run_tensors(session, inputs, outputs, &error), SB_ERROR_DEVICE);
                assert_says(error, "lost earlier");
                assert_says(error, "CUDA_ERROR_ILLEGAL_ADDRESS");
            }
            assert_int_equal(sb_session_create(s.model, &options, &other, &error), SB_ERROR_DEVICE);
            assert_says(error, "lost earlier");
            assert_int_equal(s.fake->calls("cuLaunchKernelEx"), kernels);
            assert_int_equal(s.fake->calls("cuGraphLaunch"), graphs);
            assert_int_equal(s.fake->calls("cuMemcpyHtoDAsync"), copies);
            release_all(inputs, NETWORK_INPUTS);
            sb_session_destroy(session);
            finish(&s);
        }
    }
}

/* A device that is lost while its tasks are recorded is not given them once more. */
static void test_lost_while_recording(void **unused) {
    setting s = start(network, false);
    sb_session *session = open_session(&s, SB_GRAPHS_CAPTURE, false, NULL);
    sb_tensor *inputs[NETWORK_INPUTS], *outputs[NETWORK_OUTPUTS];
    sb_error error = {SB_OK, ""};
    network_inputs(inputs, 3, 1);
    run_session(session, inputs, outputs);
    release_all(outputs, NETWORK_OUTPUTS);
    int kernels = s.fake->calls("cuLaunchKernelEx");
    s.fake->plan_failure("cuGraphInstantiateWithFlags", 0, ILLEGAL_ADDRESS);
    assert_int_equal(sb_session_run_tensors(session, inputs, outputs, &error), SB_ERROR_DEVICE);
    assert_says(error, "cuGraphInstantiateWithFlags failed with CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_true(s.fake->calls("cuLaunchKernelEx") <= 2 * kernels); /* the first run's, and those captured */
    release_all(inputs, NETWORK_INPUTS);
    sb_session_destroy(session);
    finish(&s);
}

/* ---- data that are wrong ---- */

static void check_fault(sb_session *session, const sb_error *reference, int64_t last_x, int64_t last_y, const char *op,
                        const char *says) {
    sb_tensor *inputs[2] = {six_of(20, last_x), six_of(2, last_y)}, *output = NULL;
    sb_error error = {SB_OK, ""};
    assert_int_equal(sb_session_run_tensors(session, inputs, &output, &error), reference->status);
    assert_null(output);
    assert_says(error, "node ");
    assert_says(error, op);
    assert_says(error, says);
    release_all(inputs, 2);
}

/* Bad data in any of the runs (eager, recording, replaying), then good ones again. */
static void test_faults(void **unused) {
    for (int passes = 0; passes < 2; passes++) {
        setting s = start(lookup, passes != 0);
        sb_error by_zero = {SB_OK, ""}, outside = {SB_OK, ""};
        sb_tensor *bad[2] = {six_of(20, 1), six_of(2, 0)}, *output;
        assert_int_not_equal(sb_session_run_tensors(s.cpu, bad, &output, &by_zero), SB_OK);
        release_all(bad, 2);
        bad[0] = six_of(20, 200);
        bad[1] = six_of(2, 2);
        assert_int_not_equal(sb_session_run_tensors(s.cpu, bad, &output, &outside), SB_OK);
        release_all(bad, 2);
        for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
            for (int when = 0; when < 5; when++) {
                sb_session_options options = options_on(s.device);
                options.graphs = mode;
                options.require_device = true;
                options.device_outputs = when % 2 == 1;
                sb_session *session = session_with(s.model, &options);
                for (int run = 0; run < 7; run++) {
                    sb_tensor *inputs[2] = {six_of(20 + run, 30), six_of(2, 3)};
                    if (run == when || run == when + 2)
                        check_fault(session, &by_zero, 1, 0, "Div", "zero");
                    if (run == when || run == when + 1)
                        check_fault(session, &outside, 200, 2, "Gather", "outside");
                    run_both(session, s.cpu, s.device, 2, inputs, 1);
                    release_all(inputs, 2);
                }
                assert_int_equal(report_of(session).failed, 0);
                sb_session_destroy(session);
            }
        }
        finish(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failing_calls),    cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_failing_long_row), cmocka_unit_test(test_failing_few_rows),
        cmocka_unit_test(test_lost_device),      cmocka_unit_test(test_lost_while_recording),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
