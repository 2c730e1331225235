/* Recurrent networks whose state lies on a device, against the CPU and against feeding by hand: slots that streams join
 * and leave, states that go from side to side and from process to process, and thousands of steps. Over the fake driver,
 * or, where an argument names another (libcuda.so.1) and the library has its kernels, over that: test_cuda_recurrent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session_driver.h"
#include "state/stateful.h"
#include "support/folder.h"

extern char **environ;

#define INPUTS 20
#define UNITS 37

/* An LSTM between two nodes of one operand: graphs are made of two steps at least. */
static sb_status add_network(sb_builder *b, sb_error *error) {
    static const int64_t dims[] = {1, -1, INPUTS};
    sb_builder_value x, between, outputs[LSTM_OUTPUTS], y;
    SB_TRY(add_input(b, "x", 3, dims, &x, error));
    SB_TRY(sb_builder_op(b, "Tanh", 1, &x, 0, NULL, &between, error));
    SB_TRY(add_lstm_node(b, between, INPUTS, UNITS, outputs, error));
    SB_TRY(sb_builder_op(b, "Sigmoid", 1, &outputs[0], 0, NULL, &y, error));
    SB_TRY(sb_builder_output(b, y, error));
    SB_TRY(sb_builder_output(b, outputs[1], error));
    return sb_builder_output(b, outputs[2], error);
}

static sb_model *network(void) {
    sb_builder *b;
    sb_model *model;
    MUST(sb_builder_create(&b, error));
    MUST(build_and_destroy(b, add_network(b, error), &model, error));
    return model;
}

static void check_recorded(sb_session *session, sb_graph_mode mode) {
    sb_graph_report report = report_of(session);
    assert_string_equal(report.reason, "");
    assert_int_equal(report.failed, 0);
    assert_true((report.recorded > 0) == (mode != SB_GRAPHS_OFF));
}

static sb_tensor *step_input(int64_t batch, uint64_t seed) {
    return numbers(3, (int64_t[]){1, batch, INPUTS}, seed);
}

/* ---- slots that streams join and leave ---- */

#define SLOTS 64
#define SLOT_RUNS 240
#define EVENTS 6 /* at most, before a run */

/* One state with many slots on the device or beside it, and for each slot a state of its own on the CPU. A slot that no
 * stream has is fed NaN. */
typedef struct streams {
    setting s;
    random_source source;
    sb_state *all, *alone[SLOTS];
    sb_session *session, *alone_sessions[SLOTS];
    bool taken[SLOTS];
    int joined, left, copied, moved;
} streams;

static streams start_streams(bool home_on_device, sb_graph_mode mode) {
    streams t = {.s = start_on_driver(), .source = {31 + (uint64_t)mode}};
    t.s.model = network();
    t.all = lstm_state(t.s.model, home_on_device ? t.s.device : NULL, SLOTS);
    t.session = session_on(t.s.device, t.s.model, t.all, NULL, mode, NULL);
    for (int i = 0; i < SLOTS; i++) {
        t.alone[i] = lstm_state(t.s.model, NULL, 1);
        t.alone_sessions[i] = session_on(NULL, t.s.model, t.alone[i], NULL, SB_GRAPHS_AUTO, NULL);
    }
    return t;
}

static void end_streams(streams *t) {
    sb_session_destroy(t->session);
    sb_state_release(t->all);
    for (int i = 0; i < SLOTS; i++) {
        sb_session_destroy(t->alone_sessions[i]);
        sb_state_release(t->alone[i]);
    }
    finish(&t->s);
}

/* A slot changes hands: a stream joins it, its stream leaves, it becomes a copy of another, or goes through a file, from
 * which the state alone gets it as well. */
static void change_slot(streams *t) {
    int slot = (int)random_between(&t->source, 0, SLOTS - 1), from = (int)random_between(&t->source, 0, SLOTS - 1);
    int64_t kind = random_between(&t->source, 0, 4);
    if (kind < 3) {
        MUST(sb_state_reset_slot(t->all, slot, error));
        MUST(sb_state_reset(t->alone[slot], error));
        *(t->taken[slot] ? &t->left : &t->joined) += 1;
        t->taken[slot] = !t->taken[slot];
    } else if (t->taken[from] && kind == 3) {
        MUST(sb_state_copy_slot(t->all, from, slot, error));
        MUST(sb_state_copy(t->alone[slot], t->alone[from], error));
        t->taken[slot] = true;
        t->copied++;
    } else if (t->taken[from]) {
        const char *path = folder_path("slot");
        MUST(sb_state_save_slot(t->all, from, path, error));
        MUST(sb_state_restore_slot(t->all, slot, path, error));
        MUST(sb_state_restore_slot(t->alone[slot], 0, path, error));
        t->taken[slot] = true;
        t->moved++;
    }
}

static void check_row(const sb_tensor *whole, int slot, const sb_tensor *row) {
    size_t bytes = UNITS * sizeof(float);
    assert_int_equal(sb_tensor_elements(row), UNITS);
    assert_memory_equal((const char *)sb_tensor_data(whole) + (size_t)slot * bytes, sb_tensor_data(row), bytes);
}

static void check_streams_contents(const streams *t) {
    static const char *const names[] = {"h", "c"};
    for (int n = 0; n < 2; n++) {
        sb_tensor *whole = contents(t->all, names[n]);
        for (int i = 0; i < SLOTS; i++) {
            sb_tensor *row = contents(t->alone[i], names[n]);
            if (t->taken[i])
                check_row(whole, i, row);
            sb_tensor_release(row);
        }
        sb_tensor_release(whole);
    }
}

static void run_streams(streams *t, uint64_t run) {
    sb_tensor *x = step_input(SLOTS, run), *y[LSTM_OUTPUTS], *rows[SLOTS] = {NULL};
    float *data = sb_tensor_mutable_data(x);
    for (int i = 0; i < SLOTS; i++, data += INPUTS) {
        sb_tensor *row, *outputs[LSTM_OUTPUTS];
        if (!t->taken[i]) {
            memset(data, 0xff, INPUTS * sizeof(float));
            continue;
        }
        MUST(sb_tensor_from_data(SB_F32, 3, (int64_t[]){1, 1, INPUTS}, data, &row, error));
        run_session(t->alone_sessions[i], (sb_tensor *[]){row, NULL, NULL}, outputs);
        rows[i] = outputs[0];
        sb_tensor_release(row);
    }
    run_session(t->session, (sb_tensor *[]){x, NULL, NULL}, y);
    for (int i = 0; i < SLOTS; i++) {
        if (rows[i] != NULL)
            check_row(y[0], i, rows[i]);
    }
    release_all(rows, SLOTS);
    release_all((sb_tensor *[]){x, y[0]}, 2);
}

static void check_streams(bool home_on_device, sb_graph_mode mode, uint64_t runs) {
    streams t = start_streams(home_on_device, mode);
    for (uint64_t run = 0; run < runs; run++) {
        for (int64_t events = random_between(&t.source, 0, EVENTS); events > 0; events--)
            change_slot(&t);
        run_streams(&t, run);
        if (run % 20 == 19)
            check_streams_contents(&t);
    }
    assert_true(t.joined > 20 && t.left > 20 && t.copied > 10 && t.moved > 10);
    check_recorded(t.session, mode);
    assert_int_equal(counted(t.all).runs, runs);
    end_streams(&t);
}

static void test_slots(void **unused) {
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        check_streams(true, mode, SLOT_RUNS);
        check_streams(false, mode, SLOT_RUNS / 3);
    }
}

/* ---- from side to side, and from process to process ---- */

#define LEG_RUNS 10
#define BATCH 3

/* What a walk through sides and processes does between two files: restores one, goes on for some runs on one side, and
 * saves the other. */
typedef struct leg {
    bool on_device, elsewhere;
    sb_graph_mode mode;
    const char *from, *to; /* no `from`: begins with the initial contents */
    uint64_t first;        /* of its runs, counted from the walk's beginning */
} leg;

static void run_steps(sb_session *session, uint64_t first, int count) {
    for (uint64_t run = first; run < first + (uint64_t)count; run++) {
        sb_tensor *x = step_input(BATCH, run), *y[LSTM_OUTPUTS];
        run_session(session, (sb_tensor *[]){x, NULL, NULL}, y);
        release_all((sb_tensor *[]){x, y[0]}, 2);
    }
}

static void go_leg(const leg *leg, sb_model *model, sb_device *device) {
    sb_device *side = leg->on_device ? device : NULL;
    sb_state *state = lstm_state(model, side, BATCH);
    sb_session *session = session_on(side, model, state, NULL, leg->mode, NULL);
    if (leg->from != NULL)
        MUST(sb_state_restore(state, leg->from, error));
    run_steps(session, leg->first, LEG_RUNS);
    MUST(sb_state_save(state, leg->to, error));
    sb_session_destroy(session);
    sb_state_release(state);
}

#define LEG_ARGUMENTS 7

/* The program that goes a leg elsewhere, which is this one: LIBRARY SIDE MODE FROM TO FIRST. */
static int go_elsewhere(char **arguments) {
    library = arguments[1];
    leg leg = {.on_device = strcmp(arguments[2], "device") == 0,
               .mode = (sb_graph_mode)atoi(arguments[3]),
               .from = arguments[4],
               .to = arguments[5],
               .first = strtoull(arguments[6], NULL, 10)};
    setting s = {.blocks = sb_allocation_count().live_blocks};
    if (leg.on_device)
        s = start_on_driver();
    s.model = network();
    go_leg(&leg, s.model, s.device);
    if (leg.on_device)
        finish(&s);
    else
        sb_model_release(s.model);
    return 0;
}

static void start_elsewhere(const leg *leg) {
    char mode[16], first[32], program[] = "/proc/self/exe";
    snprintf(mode, sizeof mode, "%d", (int)leg->mode);
    snprintf(first, sizeof first, "%llu", (unsigned long long)leg->first);
    char *arguments[] = {program,
                         (char *)(uintptr_t)library,
                         leg->on_device ? (char[]){"device"} : (char[]){"host"},
                         mode,
                         (char *)(uintptr_t)leg->from,
                         (char *)(uintptr_t)leg->to,
                         first,
                         NULL};
    pid_t process;
    int status = -1;
    assert_int_equal(posix_spawn(&process, program, NULL, NULL, arguments, environ), 0);
    assert_int_equal(waitpid(process, &status, 0), process);
    assert_int_equal(status, 0);
}

/* After each leg the file has what a state has that stayed on the CPU. */
static void test_walk(void **unused) {
    static const struct {
        bool on_device, elsewhere;
    } walk[] = {{false, false}, {true, false}, {false, false}, {true, false}, {true, true},
                {false, true},  {true, true},  {true, false},  {false, false}};
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        setting s = start_on_driver();
        s.model = network();
        sb_state *expected = lstm_state(s.model, NULL, BATCH), *found = lstm_state(s.model, s.device, BATCH);
        s.cpu = session_on(NULL, s.model, expected, NULL, SB_GRAPHS_AUTO, NULL);
        sb_session *session = session_on(s.device, s.model, found, NULL, mode, NULL);
        char paths[2][512];
        for (size_t i = 0; i < sizeof walk / sizeof walk[0]; i++) {
            snprintf(paths[i % 2], sizeof paths[0], "%s", folder_path(i % 2 == 0 ? "even" : "odd"));
            leg leg = {walk[i].on_device, walk[i].elsewhere,     mode, i > 0 ? paths[(i + 1) % 2] : NULL,
                       paths[i % 2],      (uint64_t)i * LEG_RUNS};
            if (leg.elsewhere)
                start_elsewhere(&leg);
            else
                go_leg(&leg, s.model, s.device);
            run_steps(s.cpu, leg.first, LEG_RUNS);
            MUST(sb_state_restore(found, leg.to, error));
            check_same_contents(found, expected);
        }
        MUST(sb_state_reset(found, error)); /* from what another process left, to a new beginning */
        MUST(sb_state_reset(expected, error));
        check_same_contents(found, expected);
        run_steps(session, 1, LEG_RUNS);
        run_steps(s.cpu, 1, LEG_RUNS);
        check_same_contents(found, expected);
        sb_session_destroy(session);
        sb_state_release(found);
        sb_state_release(expected);
        finish(&s);
    }
}

/* ---- many steps ---- */

#define STEPS 10000
#define FAKE_STEPS 300

/* An LSTM whose h and c its caller carries from run to run: outputs are the next inputs. */
typedef struct by_hand {
    sb_session *session;
    sb_tensor *h, *c;
} by_hand;

static by_hand start_by_hand(const setting *s, sb_device *device) {
    static const int64_t dims[] = {1, BATCH, UNITS};
    by_hand hand;
    sb_session_options options = options_on(device);
    options.device_outputs = device != NULL;
    hand.session = session_with(s->model, &options);
    MUST(sb_tensor_create(SB_F32, 3, dims, &hand.h, error));
    MUST(sb_tensor_create(SB_F32, 3, dims, &hand.c, error));
    memset(sb_tensor_mutable_data(hand.h), 0, (size_t)sb_tensor_elements(hand.h) * sizeof(float));
    memset(sb_tensor_mutable_data(hand.c), 0, (size_t)sb_tensor_elements(hand.c) * sizeof(float));
    return hand;
}

static sb_tensor *step_by_hand(by_hand *hand, sb_tensor *x) {
    sb_tensor *outputs[LSTM_OUTPUTS];
    run_session(hand->session, (sb_tensor *[]){x, hand->h, hand->c}, outputs);
    sb_tensor_release(hand->h);
    sb_tensor_release(hand->c);
    hand->h = outputs[1];
    hand->c = outputs[2];
    return outputs[0];
}

static void end_by_hand(by_hand *hand) {
    sb_session_destroy(hand->session);
    sb_tensor_release(hand->h);
    sb_tensor_release(hand->c);
}

#define MODES 3

static void check_steps(const setting *s, by_hand *hands, sb_session *const *sessions, sb_state *const *states,
                        int steps) {
    for (int step = 0; step < steps; step++) {
        sb_tensor *x = step_input(BATCH, (uint64_t)step), *expected = step_by_hand(&hands[0], x);
        sb_tensor *y = step_by_hand(&hands[1], x), *bound[LSTM_OUTPUTS];
        check_same(s->device, y, expected);
        sb_tensor_release(y);
        for (int mode = 0; mode < MODES; mode++) {
            run_session(sessions[mode], (sb_tensor *[]){x, NULL, NULL}, bound);
            if (!sb_tensor_equal(bound[0], expected))
                fail_msg("graphs %s: step %d differs", sb_graph_mode_name((sb_graph_mode)(SB_GRAPHS_OFF + mode)), step);
            sb_tensor_release(bound[0]);
            if (step % 100 == 99) {
                sb_tensor *h = contents(states[mode], "h"), *c = contents(states[mode], "c");
                check_same(s->device, h, hands[0].h);
                check_same(s->device, c, hands[0].c);
                release_all((sb_tensor *[]){h, c}, 2);
            }
        }
        release_all((sb_tensor *[]){x, expected}, 2);
    }
}

static void test_steps(void **unused) {
    int steps = is_fake() ? FAKE_STEPS : STEPS;
    setting s = start_on_driver();
    s.model = network();
    by_hand hands[] = {start_by_hand(&s, NULL), start_by_hand(&s, s.device)};
    sb_state *states[MODES];
    sb_session *sessions[MODES];
    for (int mode = 0; mode < MODES; mode++) {
        states[mode] = lstm_state(s.model, s.device, BATCH);
        sessions[mode] = session_on(s.device, s.model, states[mode], NULL, (sb_graph_mode)(SB_GRAPHS_OFF + mode), NULL);
    }
    check_steps(&s, hands, sessions, states, steps);
    for (int mode = 0; mode < MODES; mode++) {
        assert_int_equal(version_of(states[mode], "h"), steps);
        check_recorded(sessions[mode], (sb_graph_mode)(SB_GRAPHS_OFF + mode));
        sb_session_destroy(sessions[mode]);
        sb_state_release(states[mode]);
    }
    end_by_hand(&hands[0]);
    end_by_hand(&hands[1]);
    finish(&s);
}

static int start_group(void **kept) {
    return folder_open(kept) + keep_device(kept);
}

static int end_group(void **kept) {
    return let_go_of_device(kept) + folder_close(kept);
}

int main(int argc, char **argv) {
    if (argc == LEG_ARGUMENTS)
        return go_elsewhere(argv);
    if (argc > 1)
        library = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_steps),
    };
    return cmocka_run_group_tests(tests, start_group, end_group);
}
