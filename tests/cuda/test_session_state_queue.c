/* Runs with a state in flight: one behind the other in the session's queue, waited for by whoever else wants the state,
 * and what is left of them when one has torn it. The fake device does nothing in a queue until somebody waits for that
 * queue, so a turn that is taken too early gives wrong bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>
#include <pthread.h>

#include "session_support.h"
#include "state/stateful.h"

#define UNKNOWN 999
#define MOST_OUTPUTS 2

/* ---- sessions and runs ---- */

static int waits(const setting *s) {
    return s->fake->calls("cuStreamSynchronize") + s->fake->calls("cuEventSynchronize");
}

/* Inputs that are NULL are the state's. */
static sb_status try_enqueue(sb_session *session, int count, sb_tensor *const *inputs, uint64_t *run, sb_error *error) {
    sb_value values[MOST_VALUES];
    for (int i = 0; i < count; i++)
        values[i] = inputs[i] != NULL ? sb_value_of_tensor(inputs[i]) : (sb_value){0};
    return sb_session_enqueue(session, values, run, error);
}

static uint64_t enqueue_one(sb_session *session, sb_tensor *input) {
    uint64_t run;
    MUST(try_enqueue(session, 1, &input, &run, error));
    return run;
}

static void check_polled(sb_session *session, uint64_t run, bool expected) {
    bool done = !expected;
    MUST(sb_session_poll(session, run, &done, error));
    assert_int_equal(done, expected);
}

/* The run's only output that is not the state's, at `index`, is `expected`, which goes. */
static void arrive(const setting *s, sb_session *session, uint64_t run, int index, sb_tensor *expected) {
    sb_value outputs[MOST_OUTPUTS] = {{0}};
    sb_error error = {SB_OK, ""};
    if (sb_session_wait(session, run, outputs, &error) != SB_OK)
        fail_msg("%s", error.message);
    if (expected != NULL) {
        check_same(s->device, outputs[index].tensor, expected);
        sb_value_release(&outputs[index]);
        sb_tensor_release(expected);
    }
}

static void check_left_to_device(sb_session *session) {
    sb_run_report report;
    sb_session_last_run(session, &report);
    assert_string_equal(report.reason, "");
    assert_false(report.synchronous);
}

/* ---- bits ---- */

/* Up to four runs in flight of a recurrence whose graph is recorded and replayed, with updates that are copied ("step")
 * or written where the variable lies ("spread"). */
static void check_in_flight(const char *entry, sb_graph_mode mode, bool device_outputs, int depth) {
    enum { RUNS = 20 };
    bool in_place = strcmp(entry, "spread") == 0;
    setting s = start_device();
    s.model = slots_model();
    sb_state *state = slots_state(s.model, s.device, 3), *expected = slots_state(s.model, NULL, 3);
    sb_session_options options = options_on(s.device);
    options.state = state;
    options.entry = entry;
    options.graphs = mode;
    options.device_outputs = device_outputs;
    options.queue_depth = depth;
    sb_session *session = session_with(s.model, &options);
    s.cpu = bound_session(s.model, expected, entry, NULL);
    sb_tensor *wanted[RUNS];
    for (int run = 0; run < RUNS; run++) {
        sb_tensor *x =
            in_place ? numbers(1, (int64_t[]){4}, (uint64_t)run) : numbers(2, (int64_t[]){3, 4}, (uint64_t)run);
        run_session(s.cpu, &x, &wanted[run]);
        if (run >= depth)
            arrive(&s, session, (uint64_t)(run - depth + 1), 0, wanted[run - depth]);
        int before = waits(&s);
        uint64_t number = enqueue_one(session, x);
        assert_int_equal(number, run + 1);
        check_left_to_device(session);
        if (run >= 10) { /* each order of blocks that outputs on the device have has been recorded */
            assert_int_equal(waits(&s), before);
            check_polled(session, number, false);
        }
        sb_tensor_release(x);
    }
    for (int run = RUNS - depth; run < RUNS; run++)
        arrive(&s, session, (uint64_t)(run + 1), 0, wanted[run]);
    check_same_contents(state, expected);
    assert_int_equal(report_of(session).failed, 0);
    assert_int_equal(report_of(session).recorded > 0, mode != SB_GRAPHS_OFF);
    assert_int_equal(counted(state).updates_in_place, in_place ? RUNS - 1 : 0);
    assert_int_equal(counted(state).runs, RUNS);
    sb_session_destroy(session);
    sb_state_release(state);
    sb_state_release(expected);
    finish(&s);
}

static void test_bits(void **unused) {
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        for (int depth = 1; depth <= QUEUED; depth++) {
            for (int where = 0; where < 2; where++) {
                check_in_flight("step", mode, where != 0, depth);
                check_in_flight("spread", mode, where != 0, depth);
            }
        }
    }
}

/* Whatever looks at the state or changes it comes behind the runs that are queued: counters are exact. */
static void test_state_functions(void **unused) {
    setting s = start_device();
    s.model = slots_model();
    sb_state *state = slots_state(s.model, s.device, 3), *expected = slots_state(s.model, NULL, 3);
    sb_state *copy = slots_state(s.model, NULL, 3);
    sb_session *session = session_on(s.device, s.model, state, "step", SB_GRAPHS_BUILD, NULL);
    s.cpu = bound_session(s.model, expected, "step", NULL);
    for (int round = 0; round < 12; round++) {
        uint64_t runs[3];
        sb_tensor *wanted[3], *row = numbers(1, (int64_t[]){4}, 7);
        for (int i = 0; i < 3; i++) {
            sb_tensor *x = numbers(2, (int64_t[]){3, 4}, (uint64_t)(10 * round + i));
            run_session(s.cpu, &x, &wanted[i]);
            runs[i] = enqueue_one(session, x);
            sb_tensor_release(x);
        }
        switch (round % 6) {
        case 0:
            assert_int_equal(counted(state).runs, counted(expected).runs);
            assert_int_equal(counted(state).updates, counted(expected).updates);
            break;
        case 1:
            MUST(sb_state_copy(copy, state, error));
            check_same_contents(copy, expected);
            break;
        case 2:
            MUST(sb_state_set(state, 1, row, error));
            MUST(sb_state_set(expected, 1, row, error));
            break;
        case 3:
            MUST(sb_state_copy_slot(state, 0, 2, error));
            MUST(sb_state_copy_slot(expected, 0, 2, error));
            break;
        case 4:
            MUST(sb_state_reset(state, error));
            MUST(sb_state_reset(expected, error));
            break;
        default:
            MUST(sb_state_copy(state, copy, error));
            MUST(sb_state_copy(expected, copy, error));
        }
        check_same_contents(state, expected);
        for (int i = 2; i >= 0; i--)
            arrive(&s, session, runs[i], 0, wanted[i]);
        sb_tensor_release(row);
    }
    sb_session_destroy(session);
    sb_state_release(state);
    sb_state_release(expected);
    sb_state_release(copy);
    finish(&s);
}

/* ---- several sessions ---- */

/* Two graphs in two queues, in changing order, with up to three runs of each in flight. */
static void test_turns(void **unused) {
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        setting s = start_device();
        random_source source = {5};
        s.model = slots_model();
        sb_state *state = slots_state(s.model, s.device, 3), *expected = slots_state(s.model, NULL, 3);
        static const char *const entries[] = {"step", "spread", "look"};
        sb_session *sessions[3], *by_hand[3];
        for (int i = 0; i < 3; i++) {
            sessions[i] = session_on(s.device, s.model, state, entries[i], mode, NULL);
            by_hand[i] = bound_session(s.model, expected, entries[i], NULL);
        }
        for (int round = 0; round < 20; round++) {
            uint64_t runs[8];
            int which[8], used[3] = {0};
            sb_tensor *wanted[8];
            for (int i = 0; i < 8; i++) {
                do
                    which[i] = (int)random_between(&source, 0, 2);
                while (used[which[i]] == QUEUED);
                used[which[i]]++;
                sb_tensor *x = which[i] == 0 ? numbers(2, (int64_t[]){3, 4}, (uint64_t)(10 * round + i))
                                             : numbers(1, (int64_t[]){4}, (uint64_t)(10 * round + i));
                run_session(by_hand[which[i]], &x, &wanted[i]);
                runs[i] = enqueue_one(sessions[which[i]], x);
                check_left_to_device(sessions[which[i]]);
                sb_tensor_release(x);
            }
            for (int i = 0; i < 8; i++)
                arrive(&s, sessions[which[i]], runs[i], 0, wanted[i]);
        }
        check_same_contents(state, expected);
        assert_int_equal(counted(state).runs, 160);
        for (int i = 0; i < 3; i++) {
            sb_session_destroy(sessions[i]);
            sb_session_destroy(by_hand[i]);
        }
        sb_state_release(state);
        sb_state_release(expected);
        finish(&s);
    }
}

#define THREADS 2
#define RUNS_PER_THREAD 300

typedef struct adder {
    sb_model *model;
    sb_state *state;
    sb_device *device;
    int64_t looked;
} adder;

/* Adds 1 to w in every run, with up to four in flight, and waits for them in changing order. */
static void *add_ones(void *context) {
    const adder *adder = context;
    sb_session *session = session_on(adder->device, adder->model, adder->state, "add", SB_GRAPHS_AUTO, NULL);
    sb_tensor *one;
    MUST(sb_tensor_from_data(SB_F32, 1, (int64_t[]){4}, (float[]){1, 1, 1, 1}, &one, error));
    for (int run = 0; run < RUNS_PER_THREAD; run += 4) {
        uint64_t runs[4];
        bool done;
        int count = 1 + run % 3;
        for (int i = 0; i < 4; i++) {
            runs[i] = enqueue_one(session, one);
            if (i >= count)
                MUST(sb_session_wait(session, runs[i - count], NULL, error));
        }
        MUST(sb_session_poll(session, runs[3], &done, error));
        for (int i = 3; i >= 4 - count; i--)
            MUST(sb_session_wait(session, runs[i], NULL, error));
    }
    sb_tensor_release(one);
    sb_session_destroy(session);
    return NULL;
}

/* Sees w and the counters grow, and each whole. */
static void *look_on(void *context) {
    adder *adder = context;
    float before = 0;
    for (int64_t runs = 0; runs < THREADS * RUNS_PER_THREAD; adder->looked++) {
        sb_tensor *w;
        int index = sb_state_variable_index(adder->state, "w");
        sb_state_variable variable;
        MUST(sb_state_get(adder->state, index, &w, error));
        sb_state_describe(adder->state, index, &variable);
        const float *data = sb_tensor_data(w);
        assert_true(data[0] >= before && data[0] == data[3] && (float)variable.version >= data[0]);
        before = data[0];
        runs = counted(adder->state).runs;
        assert_true((float)runs >= before);
        sb_tensor_release(w);
    }
    return NULL;
}

static void test_threads(void **unused) {
    setting s = start_device();
    s.model = slots_model();
    adder adder = {.model = s.model, .state = slots_state(s.model, s.device, 2), .device = s.device};
    pthread_t threads[THREADS + 1];
    for (int i = 0; i <= THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i < THREADS ? add_ones : look_on, &adder), 0);
    for (int i = 0; i <= THREADS; i++)
        pthread_join(threads[i], NULL);
    sb_tensor *w = contents(adder.state, "w");
    for (int i = 0; i < 4; i++)
        assert_true(((const float *)sb_tensor_data(w))[i] == THREADS * RUNS_PER_THREAD);
    assert_int_equal(counted(adder.state).runs, THREADS * RUNS_PER_THREAD);
    assert_int_equal(version_of(adder.state, "w"), THREADS * RUNS_PER_THREAD);
    assert_true(adder.looked > 0);
    sb_tensor_release(w);
    sb_state_release(adder.state);
    finish(&s);
}

/* ---- the end of sessions, states and models ---- */

/* Runs are in flight when their session goes: the state has them, also for the next session. Everybody else has let go
 * of state and model by then. */
static void test_destroyed(void **unused) {
    for (int last = 0; last < 2; last++) {
        setting s = start_device();
        s.model = slots_model();
        sb_state *state = slots_state(s.model, s.device, 3), *expected = slots_state(s.model, NULL, 3);
        sb_session *session = session_on(s.device, s.model, state, "step", SB_GRAPHS_BUILD, NULL);
        s.cpu = bound_session(s.model, expected, "step", NULL);
        for (int i = 0; i < QUEUED; i++) {
            sb_tensor *x = numbers(2, (int64_t[]){3, 4}, (uint64_t)i), *y;
            run_session(s.cpu, &x, &y);
            enqueue_one(session, x);
            release_all((sb_tensor *[]){x, y}, 2);
        }
        if (last != 0) {
            sb_state_release(state);
            sb_model_release(s.model);
            s.model = NULL;
            sb_session_destroy(session);
        } else {
            sb_session_destroy(session);
            check_same_contents(state, expected);
            assert_int_equal(counted(state).runs, QUEUED);
            sb_state_release(state);
        }
        sb_state_release(expected);
        finish(&s);
    }
}

/* ---- faults ---- */

/* x [6] of indices, z [n], old [6]: next = old + table[x], outputs -next and, where asked for, |z|; a pair old, next. */
static sb_model *looking_up(char *input, char *output, bool with_more) {
    static const int64_t six[] = {6}, table[] = {50}, any[] = {-1};
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_S64, 1, six), old = builder_input(&b, SB_F32, 1, six);
    sb_value_id more = with_more ? builder_input(&b, SB_F32, 1, any) : SB_NO_VALUE;
    sb_value_id data = builder_constant(&b, random_tensor(SB_F32, 1, table, 3));
    sb_value_id next = builder_binary(&b, "Add", old, builder_binary(&b, "Gather", data, x));
    mark_output(&b, next);
    mark_output(&b, builder_unary(&b, "Neg", next));
    if (with_more)
        mark_output(&b, builder_unary(&b, "Abs", more));
    snprintf(input, 32, "%s", b.graph->values[old].name);
    snprintf(output, 32, "%s", b.graph->values[next].name);
    return model_of(&b, false);
}

typedef struct lookup {
    setting s;
    char input[32], output[32];
    sb_state *state, *expected;
    sb_session *session;
} lookup;

static sb_state *paired(const lookup *l, sb_device *device) {
    sb_state_options options = SB_STATE_OPTIONS_DEFAULT;
    sb_state *state;
    options.device = device;
    options.pair_count = 1;
    options.pairs = &(sb_state_pair){l->input, l->output, -1, NULL};
    MUST(sb_state_create(l->s.model, &options, &state, error));
    return state;
}

static lookup start_lookup(sb_graph_mode mode, bool with_more) {
    lookup l = {.s = start_device()};
    l.s.model = looking_up(l.input, l.output, with_more);
    l.state = paired(&l, l.s.device);
    l.expected = paired(&l, NULL);
    l.session = session_on(l.s.device, l.s.model, l.state, NULL, mode, NULL);
    l.s.cpu = bound_session(l.s.model, l.expected, NULL, NULL);
    return l;
}

static void finish_lookup(lookup *l) {
    sb_session_destroy(l->session);
    sb_state_release(l->state);
    sb_state_release(l->expected);
    finish(&l->s);
}

static sb_tensor *indices(int64_t last) {
    sb_tensor *tensor;
    MUST(sb_tensor_from_data(SB_S64, 1, (int64_t[]){6}, (int64_t[]){1, 2, 3, 4, 5, last}, &tensor, error));
    return tensor;
}

static uint64_t look_up(sb_session *session, int64_t last) {
    sb_tensor *x = indices(last);
    uint64_t run;
    MUST(try_enqueue(session, 2, (sb_tensor *[]){x, NULL}, &run, error));
    sb_tensor_release(x);
    return run;
}

/* The same on the CPU. */
static sb_tensor *expect(const lookup *l, int64_t last) {
    sb_tensor *x = indices(last), *outputs[2];
    run_session(l->s.cpu, (sb_tensor *[]){x, NULL}, outputs);
    sb_tensor_release(x);
    return outputs[1];
}

static void check_failed(sb_session *session, uint64_t run, const char *says, const char *also) {
    sb_value outputs[MOST_OUTPUTS];
    sb_error error = {SB_OK, ""};
    assert_int_equal(sb_session_wait(session, run, outputs, &error), SB_ERROR_SHAPE);
    assert_says(error, says);
    assert_says(error, also);
    assert_int_equal(outputs[0].kind, SB_KIND_NONE);
}

/* The text that names a run as the one that tore the state, from behind run `behind`. */
static const char *torn_since(uint64_t behind, uint64_t run) {
    static char text[128];
    snprintf(text, sizeof text, "run %llu: the state is torn, since run %llu failed after it had changed",
             (unsigned long long)behind, (unsigned long long)run);
    return text;
}

static void check_torn(sb_state *state, uint64_t run) {
    sb_tensor *copy;
    sb_error error;
    char text[64];
    snprintf(text, sizeof text, "the state is torn, since run %llu failed", (unsigned long long)run);
    assert_int_equal(sb_state_get(state, 0, &copy, &error), SB_ERROR_SHAPE);
    assert_says(error, text);
    assert_says(error, "outside");
}

/* Who finds out. */
typedef enum finder { IN_ORDER, FROM_BEHIND, BY_RESET, BY_OTHER_SESSION, BY_GET, FINDERS } finder;

/* The second of four runs reads outside of the table: the first has its results, the second its own reason, those
 * behind the second's, whoever is the first to look; a reset heals, and what the waits say stays what it was. */
static void check_fault_among_four(lookup *l, finder finder) {
    sb_tensor *good = expect(l, 7);
    uint64_t runs[4] = {look_up(l->session, 7), look_up(l->session, 600), look_up(l->session, 8),
                        look_up(l->session, 9)};
    int64_t counted_before = counted(l->expected).runs;
    if (finder == BY_RESET)
        MUST(sb_state_reset(l->state, error));
    if (finder == BY_GET)
        check_torn(l->state, runs[1]);
    if (finder == BY_OTHER_SESSION) {
        sb_session *other = session_on(l->s.device, l->s.model, l->state, NULL, SB_GRAPHS_OFF, NULL);
        sb_tensor *x = indices(1);
        sb_error error;
        uint64_t run = 7;
        assert_int_equal(try_enqueue(other, 2, (sb_tensor *[]){x, NULL}, &run, &error), SB_ERROR_SHAPE);
        assert_says(error, "the state is torn");
        assert_int_equal(run, 0);
        sb_tensor_release(x);
        sb_session_destroy(other);
    }
    if (finder == FROM_BEHIND) {
        check_failed(l->session, runs[3], torn_since(runs[3], runs[1]), "outside");
        check_failed(l->session, runs[2], torn_since(runs[2], runs[1]), "outside");
        arrive(&l->s, l->session, runs[0], 1, good);
        check_failed(l->session, runs[1], "node ", "outside");
    } else {
        arrive(&l->s, l->session, runs[0], 1, good);
        check_failed(l->session, runs[1], "node ", "outside");
        check_failed(l->session, runs[2], torn_since(runs[2], runs[1]), "outside");
        check_failed(l->session, runs[3], torn_since(runs[3], runs[1]), "outside");
    }
    assert_int_equal(counted(l->state).runs, counted_before);
    if (finder != BY_RESET) {
        sb_tensor *x = indices(1);
        sb_error error;
        uint64_t run;
        check_torn(l->state, runs[1]);
        assert_int_not_equal(try_enqueue(l->session, 2, (sb_tensor *[]){x, NULL}, &run, &error), SB_OK);
        assert_says(error, "the state is torn");
        sb_tensor_release(x);
        MUST(sb_state_reset(l->state, error));
    }
    MUST(sb_state_reset(l->expected, error));
}

static void test_faults(void **unused) {
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        for (int warm = 0; warm < 4; warm++) {
            for (finder finder = IN_ORDER; finder < FINDERS; finder++) {
                lookup l = start_lookup(mode, false);
                for (int run = 0; run < warm; run++)
                    arrive(&l.s, l.session, look_up(l.session, run), 1, expect(&l, run));
                check_fault_among_four(&l, finder);
                for (int run = 0; run < 3; run++)
                    arrive(&l.s, l.session, look_up(l.session, run), 1, expect(&l, run));
                check_same_contents(l.state, l.expected);
                finish_lookup(&l);
            }
        }
    }
}

/* table [50] and sum [6] are variables: "add" makes sum := sum + table[x], "find" reads the table only. */
static sb_status add_table(sb_builder *b, sb_error *error) {
    static const int64_t fifty[] = {50}, six[] = {6};
    sb_value_description table = {.name = "table", .kind = SB_KIND_TENSOR, .dtype = SB_F32, .rank = 1, .dims = fifty};
    sb_value_description sum = table, input = table;
    sum.name = "sum";
    sum.dims = input.dims = six;
    input.name = "x";
    input.dtype = SB_S64;
    sb_builder_variable variables[2];
    sb_builder_value x, old, found;
    SB_TRY(sb_builder_add_variable(b, &table, NULL, NULL, &variables[0], error));
    SB_TRY(sb_builder_add_variable(b, &sum, NULL, NULL, &variables[1], error));
    for (int i = 0; i < 2; i++) {
        SB_TRY(sb_builder_entry(b, i == 0 ? "find" : "change", error));
        SB_TRY(sb_builder_input(b, &input, &x, error));
        SB_TRY(sb_builder_read(b, variables[0], &old, error));
        SB_TRY(add_binary(b, "Gather", old, x, &found, error));
        SB_TRY(sb_builder_output(b, found, error));
        if (i != 0) {
            SB_TRY(add_binary(b, "Add", old, old, &old, error));
            SB_TRY(sb_builder_update(b, variables[0], old, error));
            SB_TRY(sb_builder_update(b, variables[1], found, error));
        }
    }
    return SB_OK;
}

/* Runs that only read a state do not tear it: those behind a fault have their results. */
static void test_fault_of_reader(void **unused) {
    setting s = start_device();
    sb_builder *b;
    MUST(sb_builder_create(&b, error));
    MUST(build_and_destroy(b, add_table(b, error), &s.model, error));
    sb_state *state = state_on(s.device, s.model);
    sb_session *find = session_on(s.device, s.model, state, "find", SB_GRAPHS_BUILD, NULL);
    sb_session *change = session_on(s.device, s.model, state, "change", SB_GRAPHS_BUILD, NULL);
    for (int round = 0; round < 4; round++) {
        sb_tensor *good = indices(7), *bad = indices(600);
        uint64_t runs[4] = {enqueue_one(find, good), enqueue_one(find, bad), enqueue_one(find, good)};
        runs[3] = enqueue_one(change, good);
        check_failed(find, runs[1], "node ", "outside");
        for (int i = 0; i < 4; i++) {
            sb_value output;
            if (i == 1)
                continue;
            MUST(sb_session_wait(i < 3 ? find : change, runs[i], &output, error));
            sb_value_release(&output);
        }
        release_all((sb_tensor *[]){good, bad}, 2);
        assert_int_equal(counted(state).runs, 3 * (round + 1));
    }
    sb_session_destroy(find);
    sb_session_destroy(change);
    sb_state_release(state);
    finish(&s);
}

/* ---- runs that the host takes part in, or that cannot be given ---- */

/* A run that is complete when it has been enqueued comes behind one that has torn the state. */
static void test_synchronous_behind_torn(void **unused) {
    static const int64_t few = 3, many = (16 << 20) + 1;
    lookup l = start_lookup(SB_GRAPHS_OFF, true);
    for (int faulty = 0; faulty < 2; faulty++) {
        sb_tensor *x = indices(faulty != 0 ? 600 : 1), *good = indices(2), *z = random_tensor(SB_F32, 1, &few, 1);
        sb_tensor *large = random_tensor(SB_F32, 1, &many, 1);
        sb_value outputs[3];
        uint64_t first, second;
        sb_error error;
        MUST(try_enqueue(l.session, 3, (sb_tensor *[]){x, NULL, z}, &first, error));
        sb_status status = try_enqueue(l.session, 3, (sb_tensor *[]){good, NULL, large}, &second, &error);
        if (faulty != 0) {
            assert_int_equal(status, SB_ERROR_SHAPE);
            assert_says(error, "the state is torn, since run 3 failed");
            assert_int_equal(sb_session_wait(l.session, first, outputs, &error), SB_ERROR_SHAPE);
            assert_says(error, "run 3: node ");
        } else {
            assert_int_equal(status, SB_OK);
            MUST(sb_session_wait(l.session, second, outputs, error));
            for (int i = 0; i < 3; i++)
                sb_value_release(&outputs[i]);
            MUST(sb_session_wait(l.session, first, outputs, error));
            for (int i = 0; i < 3; i++)
                sb_value_release(&outputs[i]);
            assert_int_equal(counted(l.state).runs, 2);
        }
        release_all((sb_tensor *[]){x, good, z, large}, 4);
    }
    finish_lookup(&l);
}

typedef struct enqueue_outcomes {
    int torn, whole;
} enqueue_outcomes;

/* The error of the run that failed to be enqueued, behind run `first`, and what it has left. */
static void check_failed_enqueue(lookup *l, uint64_t first, sb_tensor *good, const sb_error *error,
                                 enqueue_outcomes *outcomes) {
    sb_error reason;
    sb_tensor *copy;
    if (good == NULL) {
        assert_int_equal(error->status, SB_ERROR_SHAPE);
        assert_says(*error, "the state is torn, since run 4 failed");
        check_failed(l->session, first, "run 4: node ", "outside");
        check_torn(l->state, first);
        return;
    }
    assert_int_equal(error->status, SB_ERROR_DEVICE);
    assert_says(*error, "CUDA_ERROR_UNKNOWN");
    arrive(&l->s, l->session, first, 1, good);
    if (sb_state_get(l->state, 0, &copy, &reason) == SB_OK) {
        sb_tensor_release(copy);
        check_same_contents(l->state, l->expected);
        outcomes->whole++;
    } else {
        assert_says(reason, "the state is torn, since a run failed");
        assert_says(reason, "CUDA_ERROR_UNKNOWN");
        outcomes->torn++;
    }
}

/* Call number `skip` of the fourth run's enqueueing fails, behind a run that is good or has torn the state. */
static bool fail_to_enqueue(const char *call, int skip, bool faulty, enqueue_outcomes *outcomes) {
    lookup l = start_lookup(SB_GRAPHS_OFF, false);
    sb_error error = {SB_OK, ""};
    uint64_t run;
    for (int warm = 0; warm < 3; warm++)
        arrive(&l.s, l.session, look_up(l.session, warm), 1, expect(&l, warm));
    sb_tensor *good = faulty ? NULL : expect(&l, 7), *x = indices(5);
    uint64_t first = look_up(l.session, faulty ? 600 : 7);
    l.s.fake->plan_failure(call, skip, UNKNOWN);
    sb_status status = try_enqueue(l.session, 2, (sb_tensor *[]){x, NULL}, &run, &error);
    bool happened = l.s.fake->failure_happened();
    l.s.fake->plan_failure(NULL, -1, 0);
    sb_tensor_release(x);
    assert_int_equal(status != SB_OK, happened);
    if (happened)
        check_failed_enqueue(&l, first, good, &error, outcomes);
    else
        sb_tensor_release(good);
    finish_lookup(&l);
    return happened;
}

/* A run that cannot be given to the device whole: before its first update it leaves the state and those queued as they
 * are; later it tears the state, and those queued have their results. Behind one that has torn it, it says so. */
static void test_failing_enqueue(void **unused) {
    static const char *const calls[] = {"cuMemcpyHtoDAsync", "cuLaunchKernelEx", "cuMemcpyDtoDAsync",
                                        "cuMemcpyDtoHAsync", "cuEventRecord"};
    enqueue_outcomes outcomes = {0};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        for (int faulty = 0; faulty < 2; faulty++) {
            int skip = 0;
            while (fail_to_enqueue(calls[i], skip, faulty != 0, &outcomes))
                skip++;
            assert_true(skip > 0);
        }
    }
    assert_true(outcomes.torn >= 3);  /* the copy to the variable, that of the faults, the mark */
    assert_true(outcomes.whole >= 5); /* the input, the kernels, the output */
}

static sb_status see_node(void *context, sb_node_event *event, sb_error *error) {
    (void)event;
    (void)error;
    ++*(int *)context;
    return SB_OK;
}

static void check_reason(const setting *s, sb_state *state, const sb_session_options *given, const char *reason,
                         const char *op) {
    sb_session_options options = *given;
    options.state = state;
    options.entry = "step";
    sb_session *session = session_with(s->model, &options);
    for (uint64_t i = 0; i < 3; i++) {
        sb_tensor *x = numbers(2, (int64_t[]){3, 4}, i), *y;
        sb_run_report report;
        run_session(s->cpu, &x, &y);
        uint64_t run = enqueue_one(session, x);
        sb_session_last_run(session, &report);
        assert_string_equal(report.reason, reason);
        assert_true(report.synchronous);
        assert_true((op == NULL) == (report.op == NULL) && (op == NULL || strcmp(op, report.op) == 0));
        check_polled(session, run, true);
        arrive(s, session, run, 0, y);
        sb_tensor_release(x);
    }
    sb_session_destroy(session);
}

/* What keeps a run from being left to the device, in words. */
static void test_synchronous(void **unused) {
    int seen = 0;
    for (int home = 0; home < 2; home++) {
        setting s = start_device();
        s.model = slots_model();
        sb_state *state = slots_state(s.model, home == 0 ? s.device : NULL, 3);
        sb_state *expected = slots_state(s.model, NULL, 3);
        s.cpu = bound_session(s.model, expected, "step", NULL);
        sb_session_options options = options_on(s.device);
        if (home != 0)
            check_reason(&s, state, &options, "the state lies on the host", NULL);
        options.observer = see_node;
        options.observer_context = &seen;
        check_reason(&s, state, &options, "an observer is called after each node", NULL);
        options = options_on(s.device);
        options.force_cpu = "ReduceSum";
        if (home == 0)
            check_reason(&s, state, &options, "it runs on the CPU", "ReduceSum");
        options.force_cpu = "Add";
        if (home == 0)
            check_reason(&s, state, &options, "it runs on the CPU, and updates a variable that lies on the device",
                         "Fused");
        options = options_on(NULL);
        if (home != 0)
            check_reason(&s, state, &options, "the session has no device", NULL);
        check_same_contents(state, expected);
        sb_state_release(state);
        sb_state_release(expected);
        finish(&s);
    }
    assert_true(seen > 0);
}

/* The name of a test, to run that alone. */
int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_state_functions),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_destroyed),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_fault_of_reader),
        cmocka_unit_test(test_synchronous_behind_torn),
        cmocka_unit_test(test_failing_enqueue),
        cmocka_unit_test(test_synchronous),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
