/* Packed forms on a device: of weights that change, recorded and replayed, against the same network fed by hand on the
 * CPU; and of constants, packed once. Over the fake driver, or, where an argument names another (libcuda.so.1) and the
 * library has its kernels, over that: test_cuda_derived. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "session_driver.h"
#include "state/training.h"

#define ILLEGAL_ADDRESS 700 /* sticky */
#define UNKNOWN 999
#define STEPS 1000
#define EAGER_STEPS 100
#define FORMS 1 /* the filter's: matrix products read their weights as they lie */

static sb_status try_session(sb_model *model, sb_state *state, const char *entry, sb_device *device, sb_graph_mode mode,
                             sb_session **session, sb_error *error) {
    sb_session_options options = options_on(device);
    options.state = state;
    options.entry = entry;
    options.graphs = mode;
    return sb_session_create(model, &options, session, error);
}

/* ---- training ---- */

/* A step on the device, and the weights' packed form with each. */
static void train(sb_graph_mode mode, bool at_home, int steps) {
    setting s = start_on_driver();
    s.model = learning_model(SB_F32, false);
    sb_state *state = state_on(at_home ? s.device : NULL, s.model);
    sb_session *session = session_on(s.device, s.model, state, "train", mode, NULL);
    teacher t = start_teacher(SB_F32);
    for (int step = 0; step < steps; step++) {
        if (!step_agrees(&t, session, (uint64_t)step))
            fail_msg("mode %d: step %d differs", (int)mode, step);
        assert_int_equal(counted(state).derivations, at_home ? (step + 1) * FORMS : 0);
    }
    check_weights(&t, state);
    assert_true(t.changes > t.steps / 2);
    assert_int_equal(report_of(session).failed, 0);
    assert_true((report_of(session).recorded > 0) == (mode != SB_GRAPHS_OFF));
    end_teacher(&t);
    sb_session_destroy(session);
    sb_state_release(state);
    finish(&s);
}

static void test_training(void **unused) {
    train(SB_GRAPHS_OFF, true, EAGER_STEPS);
    train(SB_GRAPHS_CAPTURE, true, STEPS);
    train(SB_GRAPHS_BUILD, true, STEPS);
}

/* The other side reads a copy in each run, of which nothing is kept. */
static void test_home_on_host(void **unused) {
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++)
        train(mode, false, 10);
}

/* ---- training and rollout ---- */

static void test_two_sessions(void **unused) {
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        random_source source = {17};
        setting s = start_on_driver();
        s.model = learning_model(SB_F32, false);
        sb_state *state = state_on(s.device, s.model);
        sb_session *step = session_on(s.device, s.model, state, "train", mode, NULL),
                   *rollout = session_on(s.device, s.model, state, "rollout", mode, NULL);
        teacher t = start_teacher(SB_F32);
        int64_t expected = 0;
        bool current = false;
        for (uint64_t turn = 0; turn < 120; turn++) {
            bool trains = random_between(&source, 0, 2) == 0;
            if (random_between(&source, 0, 9) == 0) {
                MUST(sb_state_reset(state, error));
                set_weights(&t, contents(state, "filter"), contents(state, "matrix"));
                current = false;
            }
            expected += !current;
            assert_true(trains ? step_agrees(&t, step, turn) : rollout_agrees(&t, rollout, turn));
            assert_int_equal(counted(state).derivations, expected);
            current = !trains;
        }
        check_weights(&t, state);
        assert_int_equal(report_of(step).failed + report_of(rollout).failed, 0);
        end_teacher(&t);
        sb_session_destroy(step);
        sb_session_destroy(rollout);
        sb_state_release(state);
        finish(&s);
    }
}

#define DEPTH 4

/* Steps that are given to the device before the ones ahead have been waited for, in which the version counts. */
static void test_queued(void **unused) {
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        setting s = start_on_driver();
        s.model = learning_model(SB_F32, false);
        sb_state *state = state_on(s.device, s.model);
        sb_session_options options = options_on(s.device);
        options.state = state;
        options.entry = "train";
        options.graphs = mode;
        options.queue_depth = DEPTH;
        sb_session *session = session_with(s.model, &options);
        teacher t = start_teacher(SB_F32);
        for (uint64_t turn = 0; turn < 10; turn++) {
            sb_value inputs[2], found[STEP_OUTPUTS];
            uint64_t runs[DEPTH];
            sb_tensor *expected[STEP_OUTPUTS + 2];
            for (uint64_t i = 0; i < DEPTH; i++) {
                inputs[0] = sb_value_of_tensor(typed_numbers(SB_F32, 4, image_dims, DEPTH * turn + i));
                inputs[1] = sb_value_of_tensor(typed_numbers(SB_F32, 2, target_dims, DEPTH * turn + i));
                MUST(sb_session_enqueue(session, inputs, &runs[i], error));
                sb_value_release(&inputs[0]);
                sb_value_release(&inputs[1]);
            }
            for (uint64_t i = 0; i < DEPTH; i++) {
                sb_tensor *given[] = {typed_numbers(SB_F32, 4, image_dims, DEPTH * turn + i),
                                      typed_numbers(SB_F32, 2, target_dims, DEPTH * turn + i), t.weights[0],
                                      t.weights[1]};
                run_session(t.step, given, expected);
                MUST(sb_session_wait(session, runs[i], found, error));
                for (int o = 0; o < STEP_OUTPUTS; o++) {
                    check_same(s.device, found[o].tensor, expected[o]);
                    sb_value_release(&found[o]);
                }
                release_all(given, 2);
                release_all(expected, STEP_OUTPUTS);
                set_weights(&t, expected[STEP_OUTPUTS], expected[STEP_OUTPUTS + 1]);
            }
        }
        assert_int_equal(counted(state).derivations, 10 * DEPTH * FORMS);
        check_weights(&t, state);
        end_teacher(&t);
        sb_session_destroy(session);
        sb_state_release(state);
        finish(&s);
    }
}

static void test_stale(void **unused) {
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        setting s = start_on_driver();
        check_stale_shows(SB_F32, s.device, mode);
        finish(&s);
    }
}

/* ---- constants ---- */

static sb_value_id conv(builder *b, sb_value_id x, sb_value_id w) {
    return builder_binary(b, "Conv", x, w);
}

#define LAYERS 2

/* Two convolutions with weights that are constants, or inputs. */
static sb_model *layers(bool constant) {
    static const int64_t x_dims[] = {2, 3, 9, 9}, w_dims[LAYERS][4] = {{5, 3, 3, 3}, {6, 5, 2, 2}};
    builder b = builder_create();
    sb_value_id value = builder_input(&b, SB_F32, 4, x_dims);
    for (int i = 0; i < LAYERS; i++) {
        sb_value_id w = constant ? builder_constant(&b, random_tensor(SB_F32, 4, w_dims[i], 30 + (uint64_t)i))
                                 : builder_input(&b, SB_F32, 4, w_dims[i]);
        value = builder_unary(&b, "Relu", conv(&b, value, w));
    }
    mark_output(&b, value);
    return model_of(&b, true);
}

static void layer_inputs(sb_tensor **inputs) {
    static const int64_t x_dims[] = {2, 3, 9, 9}, w_dims[LAYERS][4] = {{5, 3, 3, 3}, {6, 5, 2, 2}};
    inputs[0] = random_tensor(SB_F32, 4, x_dims, 1);
    for (int i = 0; i < LAYERS; i++)
        inputs[1 + i] = random_tensor(SB_F32, 4, w_dims[i], 30 + (uint64_t)i);
}

/* The kernels that the device has run for a run of the session, whose output is to be `expected`. */
static int64_t kernels_of_run(const setting *s, sb_session *session, sb_tensor **inputs, sb_tensor *expected) {
    int64_t before = counters_of(s->device).kernels;
    sb_tensor *y;
    run_session(session, inputs, &y);
    check_same(s->device, y, expected);
    sb_tensor_release(y);
    return counters_of(s->device).kernels - before;
}

/* Weights that are constants are packed once for all runs and sessions; others in each run. */
static void test_constants(void **unused) {
    setting s = start_on_driver();
    sb_model *fed = layers(false);
    s.model = layers(true);
    sb_session_options options = options_on(s.device);
    options.graphs = SB_GRAPHS_OFF;
    sb_session *sessions[] = {session_with(s.model, &options), session_with(s.model, &options)},
               *given = session_with(fed, &options), *cpu = cpu_session(fed);
    sb_tensor *inputs[1 + LAYERS], *expected;
    layer_inputs(inputs);
    run_session(cpu, inputs, &expected);
    int64_t packing = kernels_of_run(&s, sessions[0], inputs, expected);
    int64_t bare = kernels_of_run(&s, sessions[0], inputs, expected);
    assert_int_equal(packing, bare + LAYERS);
    for (int i = 0; i < 3; i++)
        assert_int_equal(kernels_of_run(&s, sessions[1], inputs, expected), bare);
    for (int i = 0; i < 3; i++)
        assert_int_equal(kernels_of_run(&s, given, inputs, expected), packing);
    release_all(inputs, 1 + LAYERS);
    sb_tensor_release(expected);
    sb_session_destroy(sessions[0]);
    sb_session_destroy(sessions[1]);
    sb_session_destroy(given);
    sb_session_destroy(cpu);
    sb_model_release(fed);
    finish(&s);
}

/* ---- failures ---- */

#define RUNS 4 /* eager, recording, replaying twice */

typedef struct life {
    const fake_cuda_control *fake;
    sb_graph_mode mode;
    bool constant; /* two layers of constants; else a network that learns */
    sb_tensor *inputs[2], *expected[RUNS];
    int recovered;
} life;

static sb_status live_run(const life *life, sb_session *session, int run, sb_error *error) {
    sb_tensor *outputs[STEP_OUTPUTS];
    SB_TRY(sb_session_run_tensors(session, (sb_tensor **)life->inputs, outputs, error));
    check_equal(outputs[0], life->expected[run]);
    release_all(outputs, life->constant ? 1 : STEP_OUTPUTS);
    return SB_OK;
}

/* After a run that failed, where the device still works: as if it were the first. */
static void recover(life *life, sb_state *state, sb_session *session) {
    if (state != NULL && sb_state_reset(state, NULL) != SB_OK)
        return;
    for (int run = 0; run < 2; run++)
        life->recovered += live_run(life, session, run, NULL) == SB_OK;
}

static sb_status live(life *life) {
    sb_device_options where = SB_DEVICE_OPTIONS_DEFAULT;
    sb_device *device = NULL;
    sb_state *state = NULL;
    sb_session *session = NULL;
    sb_error error = {SB_OK, ""};
    where.cuda_driver = FAKE_CUDA;
    sb_model *model = life->constant ? layers(true) : learning_model(SB_F32, false);
    sb_status status = sb_device_open(&where, 0, &device, &error);
    if (status == SB_OK && !life->constant)
        status = try_state_on(device, model, &state, &error);
    if (status == SB_OK)
        status = try_session(model, state, life->constant ? NULL : "train", device, life->mode, &session, &error);
    for (int run = 0; run < RUNS && status == SB_OK; run++)
        status = live_run(life, session, run, &error);
    if (status != SB_OK && session != NULL)
        recover(life, state, session);
    sb_session_destroy(session);
    sb_state_release(state);
    sb_device_release(device);
    sb_model_release(model);
    return status;
}

/* What the CPU says. */
static void find_expected(life *life) {
    sb_model *model = life->constant ? layers(true) : learning_model(SB_F32, false);
    sb_state *state = life->constant ? NULL : state_on(NULL, model);
    sb_session *session = bound_session(model, state, life->constant ? NULL : "train", NULL);
    for (int run = 0; run < RUNS; run++) {
        sb_tensor *outputs[STEP_OUTPUTS] = {NULL};
        run_session(session, life->inputs, outputs);
        life->expected[run] = outputs[0];
        release_all(outputs + 1, STEP_OUTPUTS - 1);
    }
    sb_session_destroy(session);
    sb_state_release(state);
    sb_model_release(model);
}

/* Every `stride`-th call of the driver failing in its turn. */
static void check_failures(life *life, int result, int stride) {
    for (int skip = 0;; skip += stride) {
        int64_t blocks = sb_allocation_count().live_blocks;
        life->fake->reset();
        define_host_kernels(life->fake);
        life->fake->plan_failure(NULL, skip, result);
        sb_status status = live(life);
        bool happened = life->fake->failure_happened();
        life->fake->plan_failure(NULL, -1, 0);
        check_nothing_lives(life->fake);
        assert_int_equal(sb_allocation_count().live_blocks, blocks);
        if (!happened) {
            assert_int_equal(status, SB_OK);
            return;
        }
        assert_true(skip < 10000);
    }
}

static void test_failing_calls(void **unused) {
    if (!is_fake())
        skip();
    for (int constant = 0; constant < 2; constant++) {
        life life = {.fake = fake_with_kernels(), .constant = constant != 0};
        if (life.constant) {
            static const int64_t x_dims[] = {2, 3, 9, 9};
            life.inputs[0] = random_tensor(SB_F32, 4, x_dims, 1);
        } else {
            life.inputs[0] = typed_numbers(SB_F32, 4, image_dims, 3);
            life.inputs[1] = typed_numbers(SB_F32, 2, target_dims, 3);
        }
        find_expected(&life);
        for (life.mode = SB_GRAPHS_OFF; life.mode <= SB_GRAPHS_BUILD; life.mode++) {
            check_failures(&life, UNKNOWN, life.mode == SB_GRAPHS_BUILD ? 1 : 5);
            check_failures(&life, ILLEGAL_ADDRESS, 7);
        }
        assert_true(life.recovered > 0);
        release_all(life.inputs, 2);
        release_all(life.expected, RUNS);
    }
}

int main(int argc, char **argv) {
    if (argc > 1)
        library = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training),      cmocka_unit_test(test_home_on_host), cmocka_unit_test(test_two_sessions),
        cmocka_unit_test(test_queued),        cmocka_unit_test(test_stale),        cmocka_unit_test(test_constants),
        cmocka_unit_test(test_failing_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
