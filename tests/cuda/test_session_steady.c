/* Sessions that go on: once inputs of some shapes have been seen twice, runs with such inputs take no memory any more,
 * on the device or on the host, but for outputs on the host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "session_models.h"

/* What a run leaves, once its outputs have been released. */
typedef struct footprint {
    int64_t device_allocations, device_bytes, host_blocks, host_bytes;
    int pinned_blocks, graphs;
} footprint;

static footprint footprint_of(const setting *s) {
    sb_device_counters counters = counters_of(s->device);
    sb_allocation_counters host = sb_allocation_count();
    fake_live live = s->fake->live();
    return (footprint){.device_allocations = counters.device_allocations,
                       .device_bytes = counters.device_bytes,
                       .host_blocks = host.live_blocks,
                       .host_bytes = host.live_bytes,
                       .pinned_blocks = live.host_memory,
                       .graphs = live.executables};
}

static void check_unchanged(const footprint *before, const footprint *now) {
    assert_int_equal(now->device_allocations, before->device_allocations);
    assert_int_equal(now->device_bytes, before->device_bytes);
    assert_int_equal(now->host_blocks, before->host_blocks);
    assert_int_equal(now->host_bytes, before->host_bytes);
    assert_int_equal(now->pinned_blocks, before->pinned_blocks);
    assert_int_equal(now->graphs, before->graphs);
}

/* Runs 3 and later, inputs and outputs on the host or on the device, with and without nodes on the CPU. */
static void test_nothing_grows(void **unused) {
    for (int passes = 0; passes < 2; passes++) {
        setting s = start(network, passes != 0);
        for (int f = 0; f < FORCED; f++) {
            for (int on_device = 0; on_device < 2; on_device++) {
                for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
                    sb_session *session = open_session(&s, mode, on_device != 0, forced[f]);
                    sb_tensor *inputs[NETWORK_INPUTS], *outputs[NETWORK_OUTPUTS];
                    network_inputs(inputs, 9, 1);
                    for (int i = 0; i < NETWORK_INPUTS && on_device != 0; i++) {
                        sb_tensor *host = inputs[i];
                        inputs[i] = to_device(s.device, host);
                        sb_tensor_release(host);
                    }
                    footprint before = {0};
                    for (int run = 0; run < 12; run++) {
                        run_session(session, inputs, outputs);
                        release_all(outputs, NETWORK_OUTPUTS);
                        footprint now = footprint_of(&s);
                        if (run > 2)
                            check_unchanged(&before, &now);
                        before = now;
                    }
                    run_both(session, s.cpu, s.device, NETWORK_INPUTS, inputs, NETWORK_OUTPUTS);
                    release_all(inputs, NETWORK_INPUTS);
                    sb_session_destroy(session);
                }
            }
        }
        finish(&s);
    }
}

/* A steady run calls no allocator, eagerly or replayed, whether inputs cross or not, and with nodes on the CPU between
 * those on the device, if their kernels need no memory of their own; but each output on the host gets its storage and,
 * with it, the memory of its elements. */
static void count_allocations(const setting *s, sb_session *session, sb_tensor *const *inputs, int output_count,
                              bool outputs_stay) {
    for (int run = 0; run < 9; run++) {
        sb_tensor *outputs[MOST_VALUES];
        int64_t device = counters_of(s->device).device_allocations, host = sb_allocation_count().allocations;
        run_session(session, inputs, outputs);
        if (run > 2) {
            assert_int_equal(counters_of(s->device).device_allocations, device);
            assert_int_equal(sb_allocation_count().allocations, host + (outputs_stay ? 0 : 2 * output_count));
        }
        release_all(outputs, output_count);
    }
    assert_int_equal(report_of(session).failed, 0);
}

static void recurrence_inputs(sb_tensor **inputs) {
    for (uint64_t i = 0; i < RECURRENCE_INPUTS; i++)
        inputs[i] = random_tensor(SB_F32, 2, (int64_t[]){4, 8}, i);
}

static void decoder_inputs(sb_tensor **inputs) {
    for (int i = 0; i < DECODER_INPUTS; i++)
        inputs[i] = random_tensor(SB_F32, 4, (int64_t[]){1, 2, i == 0 ? 1 : 7, 4}, (uint64_t)i);
}

static void two_network_inputs(sb_tensor **inputs) {
    network_inputs(inputs, 9, 2);
}

static void test_nothing_is_allocated(void **unused) {
    static const struct {
        sb_model *(*make)(bool passes);
        void (*make_inputs)(sb_tensor **inputs);
        int inputs, outputs;
        const char *forced;
    } cases[] = {{network, two_network_inputs, NETWORK_INPUTS, NETWORK_OUTPUTS, NULL},
                 {network, two_network_inputs, NETWORK_INPUTS, NETWORK_OUTPUTS, "Softmax"},
                 {recurrence, recurrence_inputs, RECURRENCE_INPUTS, RECURRENCE_OUTPUTS, NULL},
                 {decoder, decoder_inputs, DECODER_INPUTS, DECODER_OUTPUTS, NULL}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        for (int passes = 0; passes < 2; passes++) {
            setting s = start(cases[c].make, passes != 0);
            sb_tensor *inputs[2][MOST_VALUES];
            cases[c].make_inputs(inputs[0]);
            for (int i = 0; i < cases[c].inputs; i++)
                inputs[1][i] = to_device(s.device, inputs[0][i]);
            for (int where = 0; where < 4; where++) {
                for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
                    bool inputs_stay = where % 2 != 0, outputs_stay = where / 2 != 0;
                    sb_session *session = open_session(&s, mode, outputs_stay, cases[c].forced);
                    count_allocations(&s, session, inputs[inputs_stay], cases[c].outputs, outputs_stay);
                    sb_session_destroy(session);
                }
            }
            release_all(inputs[0], cases[c].inputs);
            release_all(inputs[1], cases[c].inputs);
            finish(&s);
        }
    }
}

/* As many shapes as plans are kept for, over and over in changing order. */
static void test_plans_in_turn(void **unused) {
    setting s = start(network, false);
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        sb_session *session = open_session(&s, mode, false, "Softmax");
        random_source source = {4};
        footprint before = {0};
        for (uint64_t run = 0; run < 80; run++) {
            int64_t rows = run < 32 ? 8 - (int64_t)(run % 8) : random_between(&source, 1, 8);
            sb_tensor *inputs[NETWORK_INPUTS];
            network_inputs(inputs, rows, run);
            run_both(session, s.cpu, s.device, NETWORK_INPUTS, inputs, NETWORK_OUTPUTS);
            release_all(inputs, NETWORK_INPUTS);
            footprint now = footprint_of(&s);
            if (run >= 32)
                check_unchanged(&before, &now);
            before = now;
        }
        assert_int_equal(report_of(session).failed, 0);
        sb_session_destroy(session);
    }
    finish(&s);
}

/* More shapes than plans are kept for: plans go and are made again, arenas grow, the bits stay right,
 * and memory is bounded. */
static void test_more_shapes_than_plans(void **unused) {
    setting s = start(network, false);
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        sb_session *session = open_session(&s, mode, mode == SB_GRAPHS_BUILD, NULL);
        random_source source = {5};
        int64_t most = 0;
        for (uint64_t run = 0; run < 150; run++) {
            sb_tensor *inputs[NETWORK_INPUTS];
            network_inputs(inputs, run % 5 == 0 ? 40 : random_between(&source, 0, 25), run);
            run_both(session, s.cpu, s.device, NETWORK_INPUTS, inputs, NETWORK_OUTPUTS);
            release_all(inputs, NETWORK_INPUTS);
            int64_t bytes = counters_of(s.device).device_bytes;
            if (run == 50)
                most = bytes;
            assert_true(run < 50 || bytes <= 2 * most);
        }
        sb_session_destroy(session);
    }
    finish(&s);
}

/* Sessions come and go: the model's constants stay on the device, everything else is given back. */
static void test_sessions_come_and_go(void **unused) {
    setting s = start(network, true);
    footprint before = {0};
    for (int round = 0; round < 6; round++) {
        sb_session *session = open_session(&s, round % 2 == 0 ? SB_GRAPHS_CAPTURE : SB_GRAPHS_BUILD, false, NULL);
        for (uint64_t run = 0; run < 4; run++) {
            sb_tensor *inputs[NETWORK_INPUTS];
            network_inputs(inputs, 6, run);
            run_both(session, s.cpu, s.device, NETWORK_INPUTS, inputs, NETWORK_OUTPUTS);
            release_all(inputs, NETWORK_INPUTS);
        }
        sb_session_destroy(session);
        footprint now = footprint_of(&s);
        if (round > 0) {
            assert_int_equal(now.device_bytes, before.device_bytes);
            assert_int_equal(now.host_blocks, before.host_blocks);
            assert_int_equal(now.pinned_blocks, before.pinned_blocks);
            assert_int_equal(now.graphs, 0);
        }
        before = now;
    }
    finish(&s);
}

/* A budget on the host's memory ends a run, and leaves the session usable. */
static void test_memory_limit(void **unused) {
    setting s = start(network, false);
    sb_session_options options = options_on(s.device);
    options.memory_limit = 200000;
    sb_session *session = session_with(s.model, &options);
    for (uint64_t run = 0; run < 6; run++) {
        sb_tensor *inputs[NETWORK_INPUTS], *outputs[NETWORK_OUTPUTS];
        sb_error error = {SB_OK, ""};
        network_inputs(inputs, run % 2 == 0 ? 4 : 20000, run);
        if (run % 2 == 0)
            run_both(session, s.cpu, s.device, NETWORK_INPUTS, inputs, NETWORK_OUTPUTS);
        else
            assert_int_equal(sb_session_run_tensors(session, inputs, outputs, &error), SB_ERROR_OUT_OF_MEMORY);
        release_all(inputs, NETWORK_INPUTS);
    }
    sb_session_destroy(session);
    finish(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_grows),        cmocka_unit_test(test_nothing_is_allocated),
        cmocka_unit_test(test_plans_in_turn),        cmocka_unit_test(test_more_shapes_than_plans),
        cmocka_unit_test(test_sessions_come_and_go), cmocka_unit_test(test_memory_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
