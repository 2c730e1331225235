/* States on a device against the same states on the CPU: entry graphs that take turns, nodes and variables on different
 * sides, updates inside If, Loop and Scan, and faults in queued runs. Over the fake driver, or, where an argument names
 * another (libcuda.so.1) and the library has its kernels, over that: test_cuda_states. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "api/variable_models.h"
#include "session_driver.h"
#include "state/stateful.h"

#define SLOTS 5

/* ---- runs on both sides ---- */

/* One entry graph with a state on the device or beside it, and with a state on the CPU. */
typedef struct pair {
    sb_session *session, *cpu;
    int rank;      /* of its input x, [SLOTS, 4] or [4]; 0: it has none */
    bool silent;   /* without an output */
    bool one_node; /* "look" and "add" */
} pair;

/* A run that was queued, and the output that it is to have; NULL: none. */
typedef struct flight {
    sb_session *session;
    uint64_t run;
    sb_tensor *expected;
} flight;

static pair pair_of(const setting *s, sb_device *device, const char *entry, sb_state *state, sb_state *expected,
                    sb_graph_mode mode, const char *force_cpu) {
    pair p = {.session = session_on(device, s->model, state, entry, mode, force_cpu),
              .cpu = session_on(NULL, s->model, expected, entry, SB_GRAPHS_AUTO, NULL)};
    p.rank = strcmp(entry, "step") == 0 ? 2 : strcmp(entry, "look") == 0 ? 0 : 1;
    p.silent = strcmp(entry, "add") == 0;
    p.one_node = p.silent || p.rank == 0;
    return p;
}

static void destroy_pair(pair *p) {
    sb_session_destroy(p->session);
    sb_session_destroy(p->cpu);
}

static sb_tensor *input_of(const pair *p, uint64_t seed) {
    static const int64_t dims[] = {SLOTS, 4};
    return p->rank == 0 ? NULL : numbers(p->rank, dims + 2 - p->rank, seed);
}

/* Runs on the CPU, and gives the device the same run without waiting for it. */
static flight take_off(const pair *p, uint64_t seed) {
    flight f = {.session = p->session};
    sb_tensor *x = input_of(p, seed);
    sb_value value = x != NULL ? sb_value_of_tensor(x) : (sb_value){0};
    run_session(p->cpu, &x, &f.expected);
    MUST(sb_session_enqueue(p->session, &value, &f.run, error));
    sb_tensor_release(x);
    return f;
}

static void land(const setting *s, const flight *f) {
    sb_value output = {0};
    MUST(sb_session_wait(f->session, f->run, &output, error));
    if (f->expected != NULL) {
        check_same(s->device, output.tensor, f->expected);
        sb_value_release(&output);
        sb_tensor_release(f->expected);
    }
}

/* One run on either side, the other's not before it is over. */
static void run_pair(const setting *s, const pair *p, uint64_t seed) {
    sb_tensor *x = input_of(p, seed), *y = NULL, *expected = NULL;
    run_session(p->cpu, &x, &expected);
    run_session(p->session, &x, &y);
    assert_true(p->silent == (expected == NULL));
    if (expected != NULL)
        check_same(s->device, y, expected);
    release_all((sb_tensor *[]){x, y, expected}, 3);
}

/* A graph is made of two steps at least. */
static void check_recorded(sb_session *session, sb_graph_mode mode, bool one_node) {
    sb_graph_report report = report_of(session);
    assert_string_equal(report.reason, "");
    assert_int_equal(report.failed, 0);
    assert_true((report.recorded > 0) == (mode != SB_GRAPHS_OFF && !one_node));
}

/* ---- two sessions, one state ---- */

#define TURNS 150

/* A turn is a run that is waited for, or up to four that stay in flight until they are in the way or the turn comes up
 * to look at the contents. */
static void take_turns(const char *first, const char *second, sb_graph_mode mode) {
    setting s = start_on_driver();
    random_source source = {11 + (uint64_t)mode};
    s.model = slots_model();
    sb_state *state = slots_state(s.model, s.device, SLOTS), *expected = slots_state(s.model, NULL, SLOTS);
    pair pairs[] = {pair_of(&s, s.device, first, state, expected, mode, NULL),
                    pair_of(&s, s.device, second, state, expected, mode, NULL)};
    flight flights[2][QUEUED];
    int flying[2] = {0}, deepest = 0;
    for (uint64_t turn = 0; turn < TURNS; turn++) {
        int which = (int)random_between(&source, 0, 1), count = (int)random_between(&source, 0, QUEUED);
        if (count == 0 || flying[which] + count > QUEUED) {
            while (flying[which] > 0) /* the last first: every wait is for those before it as well */
                land(&s, &flights[which][--flying[which]]);
        }
        if (count == 0)
            run_pair(&s, &pairs[which], turn);
        for (int i = 0; i < count; i++)
            flights[which][flying[which]++] = take_off(&pairs[which], 10 * turn + (uint64_t)i);
        deepest = flying[which] > deepest ? flying[which] : deepest;
        if (random_between(&source, 0, 3) == 0)
            check_same_contents(state, expected);
    }
    for (int which = 0; which < 2; which++) {
        while (flying[which] > 0)
            land(&s, &flights[which][--flying[which]]);
        check_recorded(pairs[which].session, mode, pairs[which].one_node);
        destroy_pair(&pairs[which]);
    }
    assert_int_equal(deepest, QUEUED);
    check_same_contents(state, expected);
    assert_int_equal(counted(state).runs, counted(expected).runs);
    assert_true(counted(state).runs > TURNS);
    sb_state_release(state);
    sb_state_release(expected);
    finish(&s);
}

static void test_two_entries(void **unused) {
    static const char *const entries[][2] = {{"step", "look"},   {"step", "add"},   {"step", "spread"},
                                             {"spread", "look"}, {"add", "spread"}, {"step", "step"}};
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
            take_turns(entries[i][0], entries[i][1], mode);
    }
}

/* ---- two sides ---- */

#define EVERY_OP "Add,Mul,ReduceSum,Neg,Fused"
#define ALL_ON_CPU -1

/* Where nodes of a graph that updates and of one that reads run. */
typedef struct sides {
    const char *updater, *reader; /* what is kept on the CPU … */
    int on_cpu[2];                /* … how many nodes that are at least; ALL_ON_CPU: all */
} sides;

typedef struct places {
    int here, there;
} places;

static void count_place(void *context, const sb_placed_node *node) {
    places *found = context;
    if (strcmp(node->op, SB_TRANSFER) != 0)
        *(node->on_device ? &found->there : &found->here) += 1;
}

static void check_places(sb_session *session, int on_cpu) {
    places found = {0};
    sb_session_visit_placement(session, count_place, &found);
    if (on_cpu == ALL_ON_CPU)
        assert_true(found.here > 0 && found.there == 0);
    else if (on_cpu == 0)
        assert_true(found.here == 0 && found.there > 0);
    else
        assert_true(found.here >= on_cpu && found.there > 0);
}

/* "step" and "spread" update, "look" and "spread" read: in an order by chance, `reader` also with its turn of queued
 * runs. */
static void run_sides(const sides *sides, bool home_on_device, sb_graph_mode mode) {
    setting s = start_on_driver();
    random_source source = {23};
    s.model = slots_model();
    sb_state *state = slots_state(s.model, home_on_device ? s.device : NULL, SLOTS);
    sb_state *expected = slots_state(s.model, NULL, SLOTS);
    pair step = pair_of(&s, s.device, "step", state, expected, mode, sides->updater);
    pair look = pair_of(&s, s.device, "look", state, expected, mode, sides->reader);
    pair spread = pair_of(&s, s.device, "spread", state, expected, mode, sides->reader);
    pair *pairs[] = {&step, &look, &spread};
    for (uint64_t turn = 0; turn < 30; turn++) {
        int which = turn < 3 ? (int)turn : (int)random_between(&source, 0, 2);
        if (random_between(&source, 0, 2) == 0) {
            flight first = take_off(pairs[which], 2 * turn), second = take_off(pairs[which], 2 * turn + 1);
            land(&s, &first);
            land(&s, &second);
        } else {
            run_pair(&s, pairs[which], 2 * turn);
        }
        check_same_contents(state, expected);
    }
    check_places(step.session, sides->on_cpu[0]);
    check_places(look.session, sides->on_cpu[1]);
    check_places(spread.session, sides->on_cpu[1]);
    for (int i = 0; i < 3; i++)
        destroy_pair(pairs[i]);
    sb_state_release(state);
    sb_state_release(expected);
    finish(&s);
}

static void test_sides(void **unused) {
    static const sides cases[] = {{EVERY_OP, NULL, {ALL_ON_CPU, 0}},
                                  {NULL, EVERY_OP, {0, ALL_ON_CPU}},
                                  {EVERY_OP, EVERY_OP, {ALL_ON_CPU, ALL_ON_CPU}},
                                  {"ReduceSum", NULL, {1, 0}},
                                  {NULL, NULL, {0, 0}}};
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            run_sides(&cases[i], true, mode);
            run_sides(&cases[i], false, mode);
        }
    }
}

/* A state of the host under a session on the CPU and one on the device, which take turns to update what the other reads. */
static void test_shared_by_sides(void **unused) {
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        setting s = start_on_driver();
        random_source source = {29};
        s.model = slots_model();
        sb_state *state = slots_state(s.model, NULL, SLOTS), *expected = slots_state(s.model, NULL, SLOTS);
        pair pairs[4];
        for (int i = 0; i < 4; i++)
            pairs[i] =
                pair_of(&s, i % 2 == 0 ? s.device : NULL, i < 2 ? "step" : "spread", state, expected, mode, NULL);
        for (uint64_t turn = 0; turn < 40; turn++) {
            run_pair(&s, &pairs[random_between(&source, 0, 3)], turn);
            check_same_contents(state, expected);
        }
        for (int i = 0; i < 4; i++)
            destroy_pair(&pairs[i]);
        sb_state_release(state);
        sb_state_release(expected);
        finish(&s);
    }
}

/* ---- updates inside If, Loop and Scan ---- */

typedef enum inside { INSIDE_IF, INSIDE_LOOP, INSIDE_SCAN, INSIDES } inside;

static sb_status build_inside(sb_builder *b, inside which, sb_error *error) {
    return which == INSIDE_IF     ? build_if(b, error)
           : which == INSIDE_LOOP ? build_loop(b, error)
                                  : build_scan(b, 0, error);
}

static sb_model *inside_model(inside which) {
    sb_builder *b;
    sb_model *model;
    MUST(sb_builder_create(&b, error));
    MUST(build_and_destroy(b, build_inside(b, which, error), &model, error));
    return model;
}

/* A state without symbols, whose variables [2] begin with other numbers than zeros, which a Loop would only double. */
static sb_state *plain_state(sb_model *model, sb_device *home) {
    sb_state_options options = SB_STATE_OPTIONS_DEFAULT;
    sb_state *state;
    options.device = home;
    MUST(sb_state_create(model, &options, &state, error));
    for (int i = 0; i < sb_state_variable_count(state); i++) {
        sb_tensor *first = numbers(1, (int64_t[]){2}, 100 + (uint64_t)i);
        MUST(sb_state_set(state, i, first, error));
        sb_tensor_release(first);
    }
    return state;
}

/* Nodes of the graphs inside, which advance the variables. */
static void count_body(void *context, const sb_placed_node *node) {
    if (node->depth > 0 && strcmp(node->op, "If") != 0)
        count_place(context, node);
}

static void run_inside(inside which, bool home_on_device, sb_graph_mode mode) {
    enum { RUNS = 16 };
    static const int outputs[] = {0, 2, 2};
    setting s = start_on_driver();
    s.model = inside_model(which);
    sb_state *state = plain_state(s.model, home_on_device ? s.device : NULL), *expected = plain_state(s.model, NULL);
    sb_session *session = session_on(s.device, s.model, state, NULL, mode, NULL);
    s.cpu = session_on(NULL, s.model, expected, NULL, SB_GRAPHS_AUTO, NULL);
    for (uint64_t run = 0; run < RUNS; run++) {
        int64_t dims[] = {run % 5 == 4 ? 7 : 3, 2};
        sb_tensor *x = which == INSIDE_SCAN ? numbers(2, dims, run) : numbers(1, dims + 1, run), *wanted[2];
        sb_value given = sb_value_of_tensor(x), found[2] = {{0}};
        uint64_t number;
        run_session(s.cpu, &x, wanted);
        if (run % 3 == 2) {
            MUST(sb_session_enqueue(session, &given, &number, error));
            MUST(sb_session_wait(session, number, found, error));
        } else {
            MUST(sb_session_run(session, &given, found, error));
        }
        for (int i = 0; i < outputs[which]; i++) {
            check_same(s.device, found[i].tensor, wanted[i]);
            sb_value_release(&found[i]);
            sb_tensor_release(wanted[i]);
        }
        check_same_contents(state, expected);
        sb_tensor_release(x);
    }
    places bodies = {0};
    sb_session_visit_placement(session, count_body, &bodies);
    assert_true(bodies.there > 0 && bodies.here == 0);
    assert_true(counted(state).updates >= RUNS);
    sb_session_destroy(session);
    sb_state_release(state);
    sb_state_release(expected);
    finish(&s);
}

static void test_inside(void **unused) {
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        for (inside which = INSIDE_IF; which < INSIDES; which++) {
            run_inside(which, true, mode);
            run_inside(which, false, mode);
        }
    }
}

/* ---- faults ---- */

#define TABLE 50
static const int64_t six[] = {6}, table_dims[] = {TABLE};

/* v [6]; x [6], s64; v := v + what lies at x in a table; output -v, the new one. */
static sb_status add_lookup(sb_builder *b, sb_error *error) {
    sb_value_description variable = described("v", SB_F32, 1, six), input = described("x", SB_S64, 1, six);
    sb_builder_variable v;
    sb_builder_value x, table, found, old, next, y;
    sb_tensor *data = numbers(1, table_dims, 3);
    sb_status status = sb_builder_constant(b, "table", data, &table, error);
    sb_tensor_release(data);
    SB_TRY(status);
    SB_TRY(sb_builder_add_variable(b, &variable, NULL, NULL, &v, error));
    SB_TRY(sb_builder_input(b, &input, &x, error));
    SB_TRY(add_binary(b, "Gather", table, x, &found, error));
    SB_TRY(sb_builder_read(b, v, &old, error));
    SB_TRY(add_binary(b, "Add", old, found, &next, error));
    SB_TRY(sb_builder_update(b, v, next, error));
    SB_TRY(sb_builder_op(b, "Neg", 1, &next, 0, NULL, &y, error));
    return sb_builder_output(b, y, error);
}

static sb_model *lookup_model(void) {
    sb_builder *b;
    sb_model *model;
    MUST(sb_builder_create(&b, error));
    MUST(build_and_destroy(b, add_lookup(b, error), &model, error));
    return model;
}

static uint64_t look_up(sb_session *session, int64_t seed, int64_t last) {
    const int64_t places[] = {seed % TABLE, 3 * seed % TABLE, 0, TABLE - 1, -TABLE, last};
    sb_tensor *x;
    uint64_t run;
    MUST(sb_tensor_from_data(SB_S64, 1, six, places, &x, error));
    sb_value value = sb_value_of_tensor(x);
    MUST(sb_session_enqueue(session, &value, &run, error));
    sb_tensor_release(x);
    return run;
}

static flight fly(const setting *s, sb_session *session, int64_t seed) {
    flight f = {.session = session};
    sb_value output = {0};
    f.run = look_up(session, seed, -1);
    uint64_t run = look_up(s->cpu, seed, -1);
    MUST(sb_session_wait(s->cpu, run, &output, error));
    f.expected = output.tensor;
    return f;
}

static void check_wait_fails(sb_session *session, uint64_t run, const char *says) {
    sb_value output = {0};
    sb_error error = {SB_OK, ""};
    assert_int_equal(sb_session_wait(session, run, &output, &error), SB_ERROR_SHAPE);
    assert_int_equal(output.kind, SB_KIND_NONE);
    ASSERT_SAYS(error, says);
    ASSERT_SAYS(error, "outside");
}

/* Of four runs in flight, number `bad` reads outside of the table. Those before it have their bits; those behind, and
 * whoever wants the contents, learn which run tore the state; a reset makes it whole, and the same session goes on. */
static void check_torn(const setting *s, sb_session *session, sb_state *state, sb_state *expected, int bad,
                       int64_t outside) {
    flight flights[QUEUED];
    sb_tensor *copy;
    sb_error error;
    char since[64];
    for (int i = 0; i < QUEUED; i++) {
        if (i < bad)
            flights[i] = fly(s, session, 5 + i);
        else
            flights[i] = (flight){session, look_up(session, i, i == bad ? outside : 1), NULL};
    }
    snprintf(since, sizeof since, "since run %llu failed", (unsigned long long)flights[bad].run);
    for (int i = 0; i < QUEUED; i++) {
        if (i < bad)
            land(s, &flights[i]);
        else
            check_wait_fails(session, flights[i].run, i == bad ? "node " : since);
    }
    assert_int_equal(sb_state_get(state, 0, &copy, &error), SB_ERROR_SHAPE);
    ASSERT_SAYS(error, "the state is torn");
    ASSERT_SAYS(error, since);
    MUST(sb_state_reset(state, error));
    MUST(sb_state_reset(expected, error));
    check_same_contents(state, expected);
}

static void test_faults(void **unused) {
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        setting s = start_on_driver();
        s.model = lookup_model();
        sb_state_options options = SB_STATE_OPTIONS_DEFAULT;
        sb_state *state, *expected;
        MUST(sb_state_create(s.model, &options, &expected, error));
        options.device = s.device;
        MUST(sb_state_create(s.model, &options, &state, error));
        sb_session *session = session_on(s.device, s.model, state, NULL, mode, NULL);
        s.cpu = session_on(NULL, s.model, expected, NULL, SB_GRAPHS_AUTO, NULL);
        for (int round = 0; round < 3 * QUEUED; round++) {
            check_torn(&s, session, state, expected, round % QUEUED, round % 2 == 0 ? TABLE : -TABLE - 1);
            for (int turn = 0; turn < round % 3; turn++) {
                flight flights[QUEUED];
                for (int i = 0; i < QUEUED; i++)
                    flights[i] = fly(&s, session, round + QUEUED * turn + i);
                for (int i = 0; i < QUEUED; i++)
                    land(&s, &flights[i]);
                check_same_contents(state, expected);
            }
        }
        check_recorded(session, mode, false);
        sb_session_destroy(session);
        sb_state_release(state);
        sb_state_release(expected);
        finish(&s);
    }
}

int main(int argc, char **argv) {
    if (argc > 1)
        library = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_entries), cmocka_unit_test(test_sides),  cmocka_unit_test(test_shared_by_sides),
        cmocka_unit_test(test_inside),      cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, keep_device, let_go_of_device);
}
