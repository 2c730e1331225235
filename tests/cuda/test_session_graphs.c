/* Sessions that replay graphs: whatever changes between runs, the bits are those of the CPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>
#include <pthread.h>

#include "cuda/driver/device_open.h"
#include "cuda/queue/stream.h"
#include "session_models.h"

static void check_no_failure(sb_session *session) {
    sb_graph_report report = report_of(session);
    if (report.failed != 0)
        fail_msg("%d of %d segments failed: %s", report.failed, report.segments, report.reason);
}

/* ---- changing inputs ---- */

static void test_many_runs(void **unused) {
    for (int passes = 0; passes < 2; passes++) {
        setting s = start(network, passes != 0);
        for (int f = 0; f < FORCED; f++) {
            for (sb_graph_mode mode = SB_GRAPHS_CAPTURE; mode <= SB_GRAPHS_BUILD; mode++) {
                sb_session *session = open_session(&s, mode, false, forced[f]);
                sb_device_counters before = counters_of(s.device);
                for (uint64_t run = 0; run < 55; run++) {
                    sb_tensor *inputs[NETWORK_INPUTS];
                    network_inputs(inputs, 5, run);
                    run_both(session, s.cpu, s.device, NETWORK_INPUTS, inputs, NETWORK_OUTPUTS);
                    release_all(inputs, NETWORK_INPUTS);
                }
                sb_graph_report report = report_of(session);
                check_no_failure(session);
                assert_true(report.segments >= 1);
                assert_int_equal(report.recorded, report.segments);
                assert_true(report.tasks >= 2 * report.segments);
                assert_true((report.edges > 0) == (mode == SB_GRAPHS_BUILD));
                assert_true(counters_of(s.device).graph_launches - before.graph_launches >= 53 * report.segments);
                sb_session_destroy(session);
            }
        }
        finish(&s);
    }
}

/* Inputs on the device, in more places than graphs are kept for, and as views of other strides. */
static void test_inputs_elsewhere(void **unused) {
    setting s = start(network, false);
    for (sb_graph_mode mode = SB_GRAPHS_CAPTURE; mode <= SB_GRAPHS_BUILD; mode++) {
        sb_session *session = open_session(&s, mode, true, NULL);
        sb_tensor *places[7][NETWORK_INPUTS];
        for (uint64_t p = 0; p < 7; p++) {
            sb_tensor *host[NETWORK_INPUTS];
            network_inputs(host, 5, p);
            for (int i = 0; i < NETWORK_INPUTS; i++) {
                sb_tensor *view = sb_tensor_retain(host[i]), *moved;
                if (p >= 5) { /* columns first */
                    sb_tensor_release(view);
                    MUST(sb_tensor_transpose(host[i], (int[]){1, 0}, &view, error));
                }
                moved = to_device(s.device, view);
                sb_tensor_release(view);
                if (p >= 5) {
                    MUST(sb_tensor_transpose(moved, (int[]){1, 0}, &view, error));
                    sb_tensor_release(moved);
                    moved = view;
                }
                places[p][i] = moved;
            }
            release_all(host, NETWORK_INPUTS);
        }
        random_source source = {9};
        for (int run = 0; run < 60; run++) {
            /* At first two places that take turns, then any. */
            int64_t p = run < 20 ? run % 2 : random_between(&source, 0, 6);
            run_both(session, s.cpu, s.device, NETWORK_INPUTS, places[p], NETWORK_OUTPUTS);
        }
        check_no_failure(session);
        for (int p = 0; p < 7; p++)
            release_all(places[p], NETWORK_INPUTS);
        sb_session_destroy(session);
    }
    finish(&s);
}

/* ---- outputs that stay ---- */

/* Outputs that the caller keeps are not written again. */
static void test_kept_outputs(void **unused) {
    setting s = start(network, false);
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        sb_session *session = open_session(&s, mode, true, NULL);
        sb_tensor *kept[20][NETWORK_OUTPUTS], *expected[20][NETWORK_OUTPUTS];
        for (uint64_t run = 0; run < 20; run++) {
            sb_tensor *inputs[NETWORK_INPUTS];
            network_inputs(inputs, 3, run);
            run_session(session, inputs, kept[run]);
            run_session(s.cpu, inputs, expected[run]);
            release_all(inputs, NETWORK_INPUTS);
            if (run % 3 == 2) /* some go early, which makes room for others */
                release_all(kept[run - 1], NETWORK_OUTPUTS);
        }
        check_no_failure(session);
        for (int run = 0; run < 20; run++) {
            for (int i = 0; i < NETWORK_OUTPUTS && kept[run][i] != NULL; i++)
                check_same(s.device, kept[run][i], expected[run][i]);
            release_all(expected[run], NETWORK_OUTPUTS);
        }
        sb_session_destroy(session); /* what is kept outlives its session */
        for (int run = 0; run < 20; run++)
            release_all(kept[run], NETWORK_OUTPUTS);
    }
    finish(&s);
}

/* The next state is the next run's state, in the memory where it was made;
 * the caller lets go of the old one at once, or late. */
static void test_recurrence(void **unused) {
    setting s = start(recurrence, false);
    for (int late = 0; late < 2; late++) {
        for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
            sb_session *session = open_session(&s, mode, true, NULL);
            sb_tensor *host = random_tensor(SB_F32, 2, (int64_t[]){4, 8}, 1), *x = to_device(s.device, host);
            sb_tensor *state = to_device(s.device, host), *expected = sb_tensor_retain(host), *older = NULL;
            sb_device_counters before = {0};
            int recorded = 0;
            for (int run = 0; run < 60; run++) {
                sb_tensor *outputs[RECURRENCE_OUTPUTS], *right[RECURRENCE_OUTPUTS];
                if (run == 12) {
                    before = counters_of(s.device);
                    recorded = s.fake->calls("cuGraphInstantiateWithFlags");
                }
                sb_device_counters now = counters_of(s.device);
                run_session(session, (sb_tensor *[]){state, x}, outputs);
                sb_device_counters after = counters_of(s.device);
                assert_int_equal(after.copies_to_device - now.copies_to_device,
                                 run == 0 && late == 0 && mode == SB_GRAPHS_OFF);
                assert_int_equal(after.copies_to_host, now.copies_to_host);
                run_session(s.cpu, (sb_tensor *[]){expected, host}, right);
                check_same(s.device, outputs[0], right[0]);
                check_same(s.device, outputs[1], right[1]);
                sb_tensor_release(outputs[1]);
                sb_tensor_release(right[1]);
                sb_tensor_release(expected);
                sb_tensor_release(older);
                older = late != 0 ? state : NULL;
                if (late == 0)
                    sb_tensor_release(state);
                state = outputs[0];
                expected = right[0];
            }
            sb_device_counters after = counters_of(s.device);
            check_no_failure(session);
            assert_int_equal(s.fake->calls("cuGraphInstantiateWithFlags"), recorded);
            assert_int_equal(after.graph_launches - before.graph_launches, mode != SB_GRAPHS_OFF ? 48 : 0);
            assert_int_equal(after.device_allocations, before.device_allocations);
            sb_tensor_release(state);
            sb_tensor_release(older);
            sb_tensor_release(expected);
            sb_tensor_release(host);
            sb_tensor_release(x);
            sb_session_destroy(session);
        }
    }
    finish(&s);
}

/* Keys and values grow on the device, step by step, in more lengths than plans are kept for;
 * several passes over the same lengths. */
static void test_decoder(void **unused) {
    for (int passes = 0; passes < 2; passes++) {
        setting s = start(decoder, passes != 0);
        for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
            sb_session *session = open_session(&s, mode, true, NULL);
            for (int text = 0; text < 4; text++) {
                int64_t none[] = {1, 2, 0, 4};
                sb_tensor *on_host[DECODER_INPUTS], *on_device[DECODER_INPUTS];
                for (int i = 1; i < DECODER_INPUTS; i++) {
                    on_host[i] = random_tensor(SB_F32, 4, none, 1);
                    on_device[i] = to_device(s.device, on_host[i]);
                }
                for (uint64_t step = 0; step < (text == 0 ? 14 : 5); step++) {
                    sb_tensor *outputs[DECODER_OUTPUTS], *expected[DECODER_OUTPUTS];
                    on_host[0] = random_tensor(SB_F32, 4, (int64_t[]){1, 2, 1, 4}, 100 * (uint64_t)text + step);
                    on_device[0] = to_device(s.device, on_host[0]);
                    run_session(s.cpu, on_host, expected);
                    sb_device_counters before = counters_of(s.device);
                    run_session(session, on_device, outputs);
                    sb_device_counters after = counters_of(s.device);
                    assert_int_equal(after.copies_to_host, before.copies_to_host);
                    assert_true(text == 0 || after.copies_to_device == before.copies_to_device);
                    for (int i = 0; i < DECODER_OUTPUTS; i++)
                        check_same(s.device, outputs[i], expected[i]);
                    release_all(on_host, DECODER_INPUTS);
                    release_all(on_device, DECODER_INPUTS);
                    sb_tensor_release(outputs[0]);
                    sb_tensor_release(expected[0]);
                    memcpy(on_host + 1, expected + 1, 2 * sizeof *expected);
                    memcpy(on_device + 1, outputs + 1, 2 * sizeof *outputs);
                }
                check_no_failure(session);
                release_all(on_host + 1, 2);
                release_all(on_device + 1, 2);
            }
            sb_session_destroy(session);
        }
        finish(&s);
    }
}

/* ---- memory that moves ---- */

/* Larger extents make the arena move, and other plans' graphs stale. */
static void test_growing_extents(void **unused) {
    setting s = start(network, false);
    for (sb_graph_mode mode = SB_GRAPHS_CAPTURE; mode <= SB_GRAPHS_BUILD; mode++) {
        for (int device_outputs = 0; device_outputs < 2; device_outputs++) {
            sb_session *session = open_session(&s, mode, device_outputs != 0, NULL);
            uint64_t seed = 0;
            for (int64_t rows = 1; rows <= 300; rows = 3 * rows + 1) {
                for (int run = 0; run < 4; run++) {
                    for (int64_t extent = rows; extent > 0; extent /= 2) {
                        sb_tensor *inputs[NETWORK_INPUTS];
                        network_inputs(inputs, extent, seed++);
                        run_both(session, s.cpu, s.device, NETWORK_INPUTS, inputs, NETWORK_OUTPUTS);
                        release_all(inputs, NETWORK_INPUTS);
                    }
                }
            }
            check_no_failure(session);
            sb_session_destroy(session);
        }
    }
    finish(&s);
}

/* ---- who else is there ---- */

typedef struct worker {
    sb_session *session, *cpu;
    sb_device *device;
    uint64_t seed;
    const char *failure; /* NULL when all went well */
    sb_error error;
} worker;

static bool same_on_host(worker *worker, sb_tensor *actual, const sb_tensor *expected) {
    sb_tensor *host;
    if (sb_tensor_to_host(worker->device, actual, &host, &worker->error) != SB_OK)
        return false;
    bool same = sb_tensor_equal(host, expected);
    sb_tensor_release(host);
    return same;
}

static void *work(void *context) {
    worker *worker = context;
    for (uint64_t run = 0; run < 30 && worker->failure == NULL; run++) {
        sb_tensor *inputs[NETWORK_INPUTS], *outputs[NETWORK_OUTPUTS], *expected[NETWORK_OUTPUTS];
        network_inputs(inputs, 4 + (int64_t)(run % 3), worker->seed + run);
        if (sb_session_run_tensors(worker->cpu, inputs, expected, &worker->error) != SB_OK)
            worker->failure = "the CPU's run failed";
        else if (sb_session_run_tensors(worker->session, inputs, outputs, &worker->error) != SB_OK)
            worker->failure = "the run failed";
        for (int i = 0; i < NETWORK_OUTPUTS && worker->failure == NULL; i++) {
            if (!same_on_host(worker, outputs[i], expected[i]))
                worker->failure = "the bits differ";
        }
        release_all(inputs, NETWORK_INPUTS);
        release_all(outputs, NETWORK_OUTPUTS);
        release_all(expected, NETWORK_OUTPUTS);
    }
    return NULL;
}

/* Sessions of one model on threads of their own, one capturing while others allocate and run. */
static void test_threads(void **unused) {
    enum { THREADS = 3 };
    setting s = start(network, false);
    for (sb_graph_mode mode = SB_GRAPHS_CAPTURE; mode <= SB_GRAPHS_BUILD; mode++) {
        worker workers[THREADS] = {0};
        pthread_t threads[THREADS];
        for (int t = 0; t < THREADS; t++) {
            workers[t] = (worker){.session = open_session(&s, mode, t % 2 == 0, NULL),
                                  .cpu = cpu_session(s.model),
                                  .device = s.device,
                                  .seed = 1000 * (uint64_t)t};
            assert_int_equal(pthread_create(&threads[t], NULL, work, &workers[t]), 0);
        }
        for (int t = 0; t < THREADS; t++) {
            pthread_join(threads[t], NULL);
            if (workers[t].failure != NULL)
                fail_msg("%s: %s", workers[t].failure, workers[t].error.message);
            check_no_failure(workers[t].session);
            sb_session_destroy(workers[t].session);
            sb_session_destroy(workers[t].cpu);
        }
    }
    finish(&s);
}

typedef struct watched {
    int nodes, on_device, transfers;
} watched;

static sb_status watch(void *context, sb_node_event *event, sb_error *error) {
    watched *watched = context;
    if (strcmp(event->op, SB_TRANSFER) == 0) {
        watched->transfers++;
        return SB_OK;
    }
    watched->nodes++;
    watched->on_device += event->on_device;
    for (int i = 0; i < event->output_count; i++) {
        if (event->outputs[i].kind == SB_KIND_TENSOR && sb_tensor_is_on_device(event->outputs[i].tensor))
            return sb_fail(error, SB_ERROR_INTERNAL, "node %s shows a tensor on the device", event->name);
    }
    return SB_OK;
}

/* An observer sees each node for itself, so nothing is recorded. */
static void test_observer(void **unused) {
    setting s = start(network, false);
    watched watched = {0};
    sb_session_options options = options_on(s.device);
    options.graphs = SB_GRAPHS_CAPTURE;
    options.observer = watch;
    options.observer_context = &watched;
    sb_session *session = session_with(s.model, &options);
    sb_device_counters before = counters_of(s.device);
    for (uint64_t run = 0; run < 4; run++) {
        sb_tensor *inputs[NETWORK_INPUTS];
        network_inputs(inputs, 5, run);
        run_both(session, s.cpu, s.device, NETWORK_INPUTS, inputs, NETWORK_OUTPUTS);
        release_all(inputs, NETWORK_INPUTS);
    }
    assert_int_equal(counters_of(s.device).graph_launches, before.graph_launches);
    assert_int_equal(watched.nodes, 4 * (int)s.model->entries[0].graph->node_count);
    assert_int_equal(watched.on_device, watched.nodes);
    assert_int_equal(watched.transfers, 4 * (NETWORK_INPUTS + NETWORK_OUTPUTS));
    assert_int_equal(report_of(session).recorded, 0);
    sb_session_destroy(session);
    finish(&s);
}

/* The caller's stream: what the caller has given it before comes before. */
static void test_callers_stream(void **unused) {
    setting s = start(network, false);
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        sb_cuda_stream *stream;
        MUST(sb_cuda_stream_create(sb_cuda_device_behind(s.device), &stream, error));
        sb_session_options options = options_on(s.device);
        options.graphs = mode;
        options.stream = stream->handle;
        sb_session *session = session_with(s.model, &options);
        for (uint64_t run = 0; run < 5; run++) {
            sb_tensor *inputs[NETWORK_INPUTS];
            network_inputs(inputs, 5, run);
            run_both(session, s.cpu, s.device, NETWORK_INPUTS, inputs, NETWORK_OUTPUTS);
            release_all(inputs, NETWORK_INPUTS);
        }
        check_no_failure(session);
        sb_session_destroy(session);
        sb_cuda_stream_destroy(stream);
    }
    finish(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_runs),      cmocka_unit_test(test_inputs_elsewhere),
        cmocka_unit_test(test_kept_outputs),   cmocka_unit_test(test_recurrence),
        cmocka_unit_test(test_decoder),        cmocka_unit_test(test_growing_extents),
        cmocka_unit_test(test_threads),        cmocka_unit_test(test_observer),
        cmocka_unit_test(test_callers_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
