/* States with sessions on a device: contents there or on the host, replayed, beside nodes on the CPU, moved between
 * sides, and what becomes of them when the driver fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "session_support.h"
#include "state/stateful.h"
#include "support/folder.h"

#define ILLEGAL_ADDRESS 700 /* sticky */
#define UNKNOWN 999
#define RUNS 4 /* eager, recording, replaying twice */

/* ---- wherever the nodes run and the variables live ---- */

/* Every node in turn on the CPU, the home on either side: updates on the host with readers on the
 * device, and the reverse. */
static void test_sides(void **unused) {
    static const char *const forced[] = {
        NULL, "Mul", "Add", "ReduceSum", "Mul,ReduceSum", "Fused", "Add,Mul,ReduceSum"};
    for (int home = 0; home < 2; home++) {
        for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
            for (size_t f = 0; f < sizeof forced / sizeof forced[0]; f++) {
                setting s = start_device();
                s.model = slots_model();
                sb_state *expected = slots_state(s.model, NULL, 3);
                sb_state *state = slots_state(s.model, home == 0 ? s.device : NULL, 3);
                sb_session *cpu = session_on(NULL, s.model, expected, "step", mode, NULL);
                sb_session *session = session_on(s.device, s.model, state, "step", mode, forced[f]);
                sb_session *look = session_on(s.device, s.model, state, "look", mode, NULL);
                sb_session *cpu_look = session_on(NULL, s.model, expected, "look", mode, NULL);
                sb_session *spread = session_on(s.device, s.model, state, "spread", mode, forced[f]);
                sb_session *cpu_spread = session_on(NULL, s.model, expected, "spread", mode, NULL);
                for (uint64_t run = 0; run < RUNS; run++) {
                    sb_tensor *x = numbers(2, (int64_t[]){3, 4}, run), *y, *wanted;
                    run_session(session, &x, &y);
                    run_session(cpu, &x, &wanted);
                    check_same(s.device, y, wanted);
                    check_same_contents(state, expected);
                    release_all((sb_tensor *[]){x, y, wanted}, 3);
                    run_session(look, NULL, &y);
                    run_session(cpu_look, NULL, &wanted);
                    check_same(s.device, y, wanted);
                    release_all((sb_tensor *[]){y, wanted}, 2);
                    x = numbers(1, (int64_t[]){4}, run);
                    run_session(spread, &x, &y);
                    run_session(cpu_spread, &x, &wanted);
                    check_same(s.device, y, wanted);
                    check_same_contents(state, expected);
                    release_all((sb_tensor *[]){x, y, wanted}, 3);
                }
                if (forced[f] == NULL && home == 0)
                    assert_true(counted(state).updates_in_place > 0);
                sb_session *all[] = {cpu, session, look, cpu_look, spread, cpu_spread};
                for (int i = 0; i < 6; i++)
                    sb_session_destroy(all[i]);
                sb_state_release(state);
                sb_state_release(expected);
                finish(&s);
            }
        }
    }
}

/* What runs of the session copy of versions, each: to the side of the node that reads them, and home, what it makes. */
static void check_copies(const setting *s, sb_state *state, const char *entry, const char *force_cpu, int64_t copies,
                         int64_t bytes) {
    sb_session *session = session_on(s->device, s->model, state, entry, SB_GRAPHS_AUTO, force_cpu);
    for (uint64_t run = 0; run < RUNS; run++) {
        sb_tensor *x = numbers(1, (int64_t[]){4}, run), *y = NULL;
        sb_state_counters before = counted(state);
        run_session(session, &x, &y);
        sb_state_counters after = counted(state);
        assert_int_equal(after.copies - before.copies, copies);
        assert_int_equal(after.bytes_copied - before.bytes_copied, bytes);
        release_all((sb_tensor *[]){x, y}, 2);
    }
    sb_session_destroy(session);
}

/* "look" reads v [3, 4] and w [4], "add" reads w and updates it. */
static void test_counted_copies(void **unused) {
    for (int home = 0; home < 2; home++) {
        setting s = start_device();
        s.model = slots_model();
        sb_state *state = slots_state(s.model, home == 0 ? s.device : NULL, 3);
        const char *here = home == 0 ? NULL : "Add", *there = home == 0 ? "Add" : NULL; /* beside home */
        check_copies(&s, state, "look", here, 0, 0);
        check_copies(&s, state, "look", there, 2, 64);
        check_copies(&s, state, "add", there, 2, 32);
        sb_state_release(state);
        finish(&s);
    }
}

/* A version is read by a node behind the one that makes the next, which must not be written over it. */
static void test_late_reader(void **unused) {
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        setting s = start_device();
        s.model = late_reader_model();
        sb_state *state = state_on(s.device, s.model), *expected = state_on(NULL, s.model);
        sb_session *session = session_on(s.device, s.model, state, NULL, mode, NULL);
        s.cpu = session_on(NULL, s.model, expected, NULL, mode, NULL);
        for (uint64_t run = 0; run < 2 * RUNS; run++) {
            sb_tensor *x = numbers(1, (int64_t[]){4}, run);
            run_both(session, s.cpu, s.device, 1, &x, 1);
            check_same_contents(state, expected);
            sb_tensor_release(x);
        }
        assert_int_equal(counted(state).updates_in_place, 0);
        sb_session_destroy(session);
        sb_state_release(state);
        sb_state_release(expected);
        finish(&s);
    }
}

/* A recurrence on the device: recorded, replayed, and the state never on the host. */
static void test_steady(void **unused) {
    for (sb_graph_mode mode = SB_GRAPHS_CAPTURE; mode <= SB_GRAPHS_BUILD; mode++) {
        setting s = start_device();
        s.model = slots_model();
        sb_state *state = slots_state(s.model, s.device, 3);
        sb_session_options options = options_on(s.device);
        options.state = state;
        options.entry = "step";
        options.graphs = mode;
        options.require_device = true;
        sb_session *session = session_with(s.model, &options);
        sb_device_counters before = {0}, after;
        for (uint64_t run = 0; run < 20; run++) {
            sb_tensor *x = numbers(2, (int64_t[]){3, 4}, run), *y;
            if (run == 4)
                before = counters_of(s.device);
            run_session(session, &x, &y);
            release_all((sb_tensor *[]){x, y}, 2);
        }
        after = counters_of(s.device);
        assert_int_equal(report_of(session).failed, 0);
        assert_true(report_of(session).recorded > 0);
        assert_int_equal(after.copies_to_device - before.copies_to_device, 16); /* x … */
        assert_int_equal(after.copies_to_host - before.copies_to_host, 16);     /* … and y */
        assert_int_equal(after.device_allocations, before.device_allocations);
        assert_int_equal(counted(state).updates, 40);
        sb_session_destroy(session);
        sb_state_release(state);
        finish(&s);
    }
}

/* An LSTM, whose state goes to a file and on from there on the other side, slot by slot as well. */
static void test_other_side(void **unused) {
    setting s = start_device();
    s.model = lstm_model();
    sb_state *there = lstm_state(s.model, s.device, 4), *here = lstm_state(s.model, NULL, 4);
    sb_session *device = session_on(s.device, s.model, there, NULL, SB_GRAPHS_AUTO, NULL);
    sb_session *cpu = session_on(NULL, s.model, here, NULL, SB_GRAPHS_AUTO, NULL);
    for (uint64_t run = 0; run < 40; run++) {
        sb_tensor *x = numbers(3, (int64_t[]){1, 4, 4}, run), *y[LSTM_OUTPUTS], *wanted[LSTM_OUTPUTS];
        run_session(device, (sb_tensor *[]){x, NULL, NULL}, y);
        run_session(cpu, (sb_tensor *[]){x, NULL, NULL}, wanted);
        check_same(s.device, y[0], wanted[0]);
        release_all((sb_tensor *[]){x, y[0], wanted[0]}, 3);
        check_same_contents(there, here);
        const char *path = folder_path("side");
        sb_state *from = run % 2 == 0 ? there : here, *to = run % 2 == 0 ? here : there;
        switch (run / 2 % 4) {
        case 0:
            MUST(sb_state_reset_slot(from, 2, error));
            MUST(sb_state_save(from, path, error));
            MUST(sb_state_restore(to, path, error));
            break;
        case 1:
            MUST(sb_state_copy_slot(from, 1, 3, error));
            MUST(sb_state_copy(to, from, error));
            break;
        case 2:
            MUST(sb_state_save_slot(from, 3, path, error));
            MUST(sb_state_restore_slot(to, 0, path, error));
            MUST(sb_state_copy_slot(from, 3, 0, error));
            break;
        default:
            MUST(sb_state_reset(from, error));
            MUST(sb_state_copy(to, from, error));
        }
        check_same_contents(there, here);
    }
    sb_session_destroy(device);
    sb_session_destroy(cpu);
    sb_state_release(there);
    sb_state_release(here);
    finish(&s);
}

static void test_refused(void **unused) {
    setting s = start_device();
    s.model = slots_model();
    sb_state *state = slots_state(s.model, s.device, 2);
    sb_session_options options = options_on(NULL);
    sb_session *session;
    sb_error error;
    options.state = state;
    options.entry = "step";
    assert_int_equal(sb_session_create(s.model, &options, &session, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_says(error, "the state lies on device 0, and the session runs on the CPU");
    options.device = s.device;
    options.require_device = true;
    options.force_cpu = "ReduceSum";
    session = session_with(s.model, &options);
    sb_tensor *x = numbers(2, (int64_t[]){2, 4}, 1), *y;
    assert_int_equal(sb_session_run_tensors(session, &x, &y, &error), SB_ERROR_UNSUPPORTED);
    assert_says(error, "would run on the CPU, and the device is required");
    assert_null(strstr(error.message, "variable"));
    sb_session_destroy(session);
    options.force_cpu = "Add";
    session = session_with(s.model, &options);
    assert_int_equal(sb_session_run_tensors(session, &x, &y, &error), SB_ERROR_UNSUPPORTED);
    assert_says(error, " (Add): forced to the CPU by \"Add\", and it updates variable w on the device");
    assert_int_equal(version_of(state, "v"), 0);
    sb_tensor_release(x);
    sb_session_destroy(session);
    sb_state_release(state);
    finish(&s);
}

static void note_reason(void *context, const sb_placed_node *node) {
    if (strcmp(node->op, "Add") == 0)
        snprintf(context, 256, "%s", node->why != NULL ? node->why : "");
}

/* Where an update without a kernel on the device is said to take place, beside a state here or there. */
static void test_placement(void **unused) {
    for (int home = 0; home < 2; home++) {
        setting s = start_device();
        s.model = slots_model();
        sb_state *state = slots_state(s.model, home == 0 ? s.device : NULL, 2);
        sb_session *session = session_on(s.device, s.model, state, "step", SB_GRAPHS_AUTO, "Add");
        sb_tensor *x = numbers(2, (int64_t[]){2, 4}, 1), *y;
        char why[256] = "";
        run_session(session, &x, &y);
        assert_true(sb_session_visit_placement(session, note_reason, why) > 0);
        assert_string_equal(why, home != 0 ? "forced to the CPU by \"Add\""
                                           : "forced to the CPU by \"Add\"; variable w, which it updates, is copied "
                                             "to the device in each run");
        release_all((sb_tensor *[]){x, y}, 2);
        sb_session_destroy(session);
        sb_state_release(state);
        finish(&s);
    }
}

/* ---- failures ---- */

/* A run on the device that found data wrong has updated the state already: it is torn,
 * and whole again after a reset. */
static void test_fault(void **unused) {
    static const int64_t six[] = {6}, table[] = {50};
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        for (int when = 0; when < 4; when++) {
            setting s = start_device();
            builder b = builder_create();
            sb_value_id x = builder_input(&b, SB_S64, 1, six), old = builder_input(&b, SB_F32, 1, six);
            sb_value_id data = builder_constant(&b, random_tensor(SB_F32, 1, table, 3));
            sb_value_id next = builder_binary(&b, "Add", old, builder_binary(&b, "Gather", data, x));
            mark_output(&b, next);
            char input[32], output[32];
            snprintf(input, sizeof input, "%s", b.graph->values[old].name);
            snprintf(output, sizeof output, "%s", b.graph->values[next].name);
            s.model = model_of(&b, false);
            sb_state_options options = SB_STATE_OPTIONS_DEFAULT;
            options.device = s.device;
            options.pair_count = 1;
            options.pairs = &(sb_state_pair){input, output, -1, NULL};
            sb_state *state;
            MUST(sb_state_create(s.model, &options, &state, error));
            sb_session *session = session_on(s.device, s.model, state, NULL, mode, NULL);
            sb_tensor *good, *bad, *none, *copy;
            MUST(sb_tensor_from_data(SB_S64, 1, six, (int64_t[]){1, 2, 3, 4, 5, 6}, &good, error));
            MUST(sb_tensor_from_data(SB_S64, 1, six, (int64_t[]){1, 2, 3, 4, 5, 600}, &bad, error));
            for (int run = 0; run < when; run++)
                run_session(session, (sb_tensor *[]){good, NULL}, &none);
            sb_error error;
            assert_int_not_equal(sb_session_run_tensors(session, (sb_tensor *[]){bad, NULL}, &none, &error), SB_OK);
            assert_says(error, "outside");
            assert_int_not_equal(sb_state_get(state, 0, &copy, &error), SB_OK);
            assert_says(error, "the state is torn");
            assert_int_not_equal(sb_session_run_tensors(session, (sb_tensor *[]){good, NULL}, &none, &error), SB_OK);
            assert_says(error, "outside");
            MUST(sb_state_reset(state, error));
            run_session(session, (sb_tensor *[]){good, NULL}, &none);
            assert_int_equal(version_of(state, input), 1);
            release_all((sb_tensor *[]){good, bad}, 2);
            sb_session_destroy(session);
            sb_state_release(state);
            finish(&s);
        }
    }
}

typedef struct life {
    const fake_cuda_control *fake;
    sb_graph_mode mode;
    int home;
    sb_tensor *x;
    sb_tensor *expected[2][RUNS + 1]; /* v and w after each number of runs */
} life;

/* The state after a failure: torn or out of reach, with the reason,
 * or what it was after as many runs as its version says. */
static void check_state(const life *life, sb_state *state) {
    for (int i = 0; i < 2; i++) {
        sb_tensor *found;
        sb_state_variable variable;
        sb_error error = {SB_OK, ""};
        sb_state_describe(state, i, &variable);
        if (sb_state_get(state, i, &found, &error) != SB_OK) {
            assert_true(error.message[0] != '\0');
            continue;
        }
        assert_true(variable.version <= RUNS);
        check_equal(found, life->expected[i][variable.version]);
        sb_tensor_release(found);
    }
}

static sb_status live_on(const life *life, sb_model *model, sb_state *state, sb_session *session, sb_error *error) {
    sb_status status = SB_OK;
    for (int run = 0; run < RUNS && status == SB_OK; run++) {
        sb_tensor *x = life->x, *y;
        status = sb_session_run_tensors(session, &x, &y, error);
        if (status == SB_OK)
            sb_tensor_release(y);
    }
    check_state(life, state);
    if (status == SB_OK)
        status = sb_state_reset(state, error);
    return status;
}

static sb_status live(const life *life) {
    sb_device_options where = SB_DEVICE_OPTIONS_DEFAULT;
    sb_device *device = NULL;
    sb_state *state = NULL;
    sb_session *session = NULL;
    sb_error error = {SB_OK, ""};
    where.cuda_driver = FAKE_CUDA;
    sb_model *model = slots_model();
    sb_status status = sb_device_open(&where, 0, &device, &error);
    if (status == SB_OK)
        status = try_slots_state(model, life->home == 0 ? device : NULL, 2, &state, &error);
    if (status == SB_OK) {
        sb_session_options options = options_on(device);
        options.graphs = life->mode;
        options.state = state;
        options.entry = "step";
        status = sb_session_create(model, &options, &session, &error);
    }
    if (status == SB_OK)
        status = live_on(life, model, state, session, &error);
    sb_session_destroy(session);
    sb_state_release(state);
    sb_device_release(device);
    sb_model_release(model);
    return status;
}

static void check_failures(life *life, int result) {
    for (int skip = 0;; skip += life->mode == SB_GRAPHS_BUILD ? 1 : 7) {
        life->fake->reset();
        define_host_kernels(life->fake);
        life->fake->plan_failure(NULL, skip, result);
        sb_status status = live(life);
        bool happened = life->fake->failure_happened();
        life->fake->plan_failure(NULL, -1, 0);
        check_nothing_lives(life->fake);
        if (!happened) {
            assert_int_equal(status, SB_OK);
            break;
        }
        assert_true(skip < 10000);
    }
}

/* What the CPU says. */
static void find_expected(life *life) {
    sb_model *model = slots_model();
    sb_state *state = slots_state(model, NULL, 2);
    sb_session *session = bound_session(model, state, "step", NULL);
    for (int run = 0; run <= RUNS; run++) {
        sb_tensor *y;
        life->expected[0][run] = contents(state, "v");
        life->expected[1][run] = contents(state, "w");
        run_session(session, &life->x, &y);
        sb_tensor_release(y);
    }
    sb_session_destroy(session);
    sb_state_release(state);
    sb_model_release(model);
}

static void test_failing_calls(void **unused) {
    life life = {.fake = fake_with_kernels(), .x = numbers(2, (int64_t[]){2, 4}, 9)};
    find_expected(&life);
    for (life.mode = SB_GRAPHS_OFF; life.mode <= SB_GRAPHS_BUILD; life.mode++) {
        for (life.home = 0; life.home < 2; life.home++) {
            check_failures(&life, life.home == 0 ? UNKNOWN : ILLEGAL_ADDRESS);
        }
    }
    release_all(life.expected[0], RUNS + 1);
    release_all(life.expected[1], RUNS + 1);
    sb_tensor_release(life.x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sides),
        cmocka_unit_test(test_counted_copies),
        cmocka_unit_test(test_late_reader),
        cmocka_unit_test(test_steady),
        cmocka_unit_test_setup_teardown(test_other_side, folder_open, folder_close),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_placement),
        cmocka_unit_test(test_fault),
        cmocka_unit_test(test_failing_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
