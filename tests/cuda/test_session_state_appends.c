/* Runs in flight that append to a variable with a capacity: each begins where the one before it will have ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "session_support.h"
#include "state/stateful.h"

#define IN_FLIGHT 3

#define MOST_INPUTS 3

/* x [2] of indices, past [p, 3]: present = past with rows x of a table behind; outputs minus these rows. A pair. And z [n]
 * where asked for, with output |z|, which a run has to wait for when it is too large for pinned memory. */
typedef struct appender {
    setting s;
    char input[32], output[32];
    sb_state *state, *expected;
    sb_session *session, *other;
} appender;

static sb_model *make_model(appender *a, bool with_more) {
    static const int64_t two[] = {2}, past[] = {-1, 3}, table[] = {50, 3}, any[] = {-1};
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_S64, 1, two), old = builder_input(&b, SB_F32, 2, past);
    sb_value_id rows = builder_binary(&b, "Gather", builder_constant(&b, random_tensor(SB_F32, 2, table, 3)), x);
    sb_value_id present = concat(&b, old, rows, 0);
    mark_output(&b, present);
    mark_output(&b, builder_unary(&b, "Neg", rows));
    if (with_more)
        mark_output(&b, builder_unary(&b, "Abs", builder_open_input(&b, SB_F32, 1, any, "m")));
    snprintf(a->input, sizeof a->input, "%s", b.graph->values[old].name);
    snprintf(a->output, sizeof a->output, "%s", b.graph->values[present].name);
    return model_of(&b, false);
}

static const char *symbol_of(sb_model *model, const char *input) {
    const sb_graph *graph = model->entries[0].graph;
    for (size_t i = 0; i < graph->input_count; i++) {
        const sb_value_info *info = &graph->values[graph->inputs[i]];
        if (strcmp(info->name, input) == 0)
            return sb_dim_symbol_name(info->fact.dims[0]);
    }
    return NULL;
}

static sb_state *make_state(const appender *a, sb_device *device) {
    sb_state_options options = SB_STATE_OPTIONS_DEFAULT;
    sb_capacity capacity = {symbol_of(a->s.model, a->input), 40, 8};
    sb_state *state;
    options.device = device;
    options.pair_count = 1;
    options.pairs = &(sb_state_pair){a->input, a->output, -1, NULL};
    options.capacity_count = 1;
    options.capacities = &capacity;
    MUST(sb_state_create(a->s.model, &options, &state, error));
    return state;
}

static void begin(appender *a, sb_graph_mode mode, bool with_more) {
    *a = (appender){.s = start_device()};
    a->s.model = make_model(a, with_more);
    a->state = make_state(a, a->s.device);
    a->expected = make_state(a, NULL);
    sb_session_options options = options_on(a->s.device);
    options.state = a->state;
    options.graphs = mode;
    a->session = session_with(a->s.model, &options);
    a->other = session_with(a->s.model, &options);
    a->s.cpu = bound_session(a->s.model, a->expected, NULL, NULL);
}

static void end(appender *a) {
    sb_session_destroy(a->session);
    sb_session_destroy(a->other);
    sb_state_release(a->state);
    sb_state_release(a->expected);
    finish(&a->s);
}

/* `z` is NULL where the model has none. */
static sb_status try_append(sb_session *session, int64_t first, int64_t second, sb_tensor *z, uint64_t *run,
                            sb_error *error) {
    sb_tensor *x;
    MUST(sb_tensor_from_data(SB_S64, 1, (int64_t[]){2}, (int64_t[]){first, second}, &x, error));
    sb_value values[MOST_INPUTS] = {sb_value_of_tensor(x)};
    if (z != NULL)
        values[2] = sb_value_of_tensor(z);
    sb_status status = sb_session_enqueue(session, values, run, error);
    sb_tensor_release(x);
    return status;
}

static uint64_t append(sb_session *session, int64_t first, int64_t second) {
    uint64_t run;
    sb_error error = {SB_OK, ""};
    if (try_append(session, first, second, NULL, &run, &error) != SB_OK)
        fail_msg("%s", error.message);
    return run;
}

static void arrive(sb_session *session, uint64_t run) {
    sb_value outputs[MOST_INPUTS] = {{0}};
    sb_error error = {SB_OK, ""};
    if (sb_session_wait(session, run, outputs, &error) != SB_OK)
        fail_msg("%s", error.message);
    for (int i = 0; i < MOST_INPUTS; i++)
        sb_value_release(&outputs[i]);
}

static void append_to_both(const appender *a, int64_t first) {
    arrive(a->session, append(a->session, first, first + 1));
    arrive(a->s.cpu, append(a->s.cpu, first, first + 1));
}

/* From one plan to the next, in two queues. */
static void test_bits(void **unused) {
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        appender a;
        begin(&a, mode, false);
        for (int round = 0; round < 12; round++) {
            uint64_t runs[IN_FLIGHT];
            sb_session *session = round % 4 == 3 ? a.other : a.session;
            if (round % 6 == 0) {
                MUST(sb_state_reset(a.state, error));
                MUST(sb_state_reset(a.expected, error));
            }
            for (int i = 0; i < IN_FLIGHT; i++) {
                sb_run_report report;
                runs[i] = append(session, round, 3 * round + i);
                sb_session_last_run(session, &report);
                assert_string_equal(report.reason, "");
                arrive(a.s.cpu, append(a.s.cpu, round, 3 * round + i));
            }
            if (round % 2 == 0)
                check_same_contents(a.state, a.expected);
            for (int i = 0; i < IN_FLIGHT; i++)
                arrive(session, runs[i]);
            check_same_contents(a.state, a.expected);
        }
        assert_true(counted(a.state).updates_in_place > 0);
        end(&a);
    }
}

/* An appending run that reads outside of the table has changed nothing that was there: behind it the state is as it
 * was, unless a run that is queued behind it has reckoned with its rows. */
static void test_faults(void **unused) {
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        for (int behind = 0; behind < 2; behind++) {
            appender a;
            sb_error error = {SB_OK, ""};
            sb_value outputs[2];
            begin(&a, mode, false);
            for (int warm = 0; warm < 3; warm++)
                append_to_both(&a, warm);
            int64_t in_place = counted(a.state).updates_in_place;
            uint64_t bad = append(a.session, 7, 600), last = behind != 0 ? append(a.session, 8, 9) : 0;
            assert_int_equal(sb_session_wait(a.session, bad, outputs, &error), SB_ERROR_SHAPE);
            assert_says(error, "outside");
            assert_true(in_place > 0);
            if (behind != 0) {
                assert_int_equal(sb_session_wait(a.session, last, outputs, &error), SB_ERROR_SHAPE);
                assert_says(error, "the state is torn, since run 4 failed");
                MUST(sb_state_copy(a.state, a.expected, error));
            }
            check_same_contents(a.state, a.expected);
            append_to_both(&a, 11);
            check_same_contents(a.state, a.expected);
            end(&a);
        }
    }
}

/* Both states with a run of z's extent. */
static void append_more_to_both(const appender *a, int64_t first, sb_tensor *z) {
    sb_session *sessions[] = {a->session, a->s.cpu};
    for (int i = 0; i < 2; i++) {
        uint64_t run;
        MUST(try_append(sessions[i], first, first + 1, z, &run, error));
        arrive(sessions[i], run);
    }
}

/* The second of two appending runs is complete when it has been enqueued, or fails before it has been given. In the first
 * case it has reckoned with the first one's rows, so that the state is torn when these turn out to be missing; in the
 * second nobody has. A good first run has its rows in both. */
static void check_complete_behind(sb_graph_mode mode, bool first_is_good, bool second_is_good) {
    static const int64_t few = 3, many = (16 << 20) + 1;
    appender a;
    sb_error error = {SB_OK, ""};
    sb_value outputs[MOST_INPUTS];
    uint64_t first, second = 0;
    bool torn = !first_is_good && second_is_good;
    begin(&a, mode, true);
    sb_tensor *z = random_tensor(SB_F32, 1, &few, 1), *large = random_tensor(SB_F32, 1, &many, 2);
    for (int warm = 0; warm < 3; warm++)
        append_more_to_both(&a, warm, z);
    MUST(try_append(a.session, 7, first_is_good ? 8 : 600, z, &first, error));
    sb_status status = try_append(a.session, 9, second_is_good ? 10 : 700, large, &second, &error);
    if (first_is_good && second_is_good) {
        sb_run_report report;
        sb_session_last_run(a.session, &report);
        assert_string_equal(report.reason, "its outputs are too large to wait in pinned memory");
        assert_int_equal(status, SB_OK);
        arrive(a.session, second);
    } else {
        assert_int_equal(status, SB_ERROR_SHAPE);
        assert_int_equal(strncmp(error.message, "node ", 5) == 0, !torn);
        if (torn)
            assert_says(error, "the state is torn, since run 4 failed");
        assert_int_equal(second, 0);
    }
    status = sb_session_wait(a.session, first, outputs, &error);
    assert_int_equal(status, first_is_good ? SB_OK : SB_ERROR_SHAPE);
    if (first_is_good) {
        for (int i = 0; i < MOST_INPUTS; i++)
            sb_value_release(&outputs[i]);
        MUST(try_append(a.s.cpu, 7, 8, z, &first, error));
        arrive(a.s.cpu, first);
    } else {
        assert_says(error, "run 4: node ");
    }
    if (first_is_good && second_is_good) {
        MUST(try_append(a.s.cpu, 9, 10, z, &second, error));
        arrive(a.s.cpu, second);
    }
    if (torn) {
        sb_tensor *held;
        assert_int_equal(sb_state_get(a.state, 0, &held, &error), SB_ERROR_SHAPE);
        assert_says(error, "the state is torn, since run 4 failed");
        MUST(sb_state_copy(a.state, a.expected, error));
    }
    check_same_contents(a.state, a.expected);
    append_more_to_both(&a, 11, z);
    check_same_contents(a.state, a.expected);
    MUST(try_append(a.session, 7, 600, z, &first, error)); /* which nobody follows */
    assert_int_equal(sb_session_wait(a.session, first, outputs, &error), SB_ERROR_SHAPE);
    check_same_contents(a.state, a.expected);
    release_all((sb_tensor *[]){z, large}, 2);
    end(&a);
}

static void test_complete_behind(void **unused) {
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        for (int good = 0; good < 4; good++)
            check_complete_behind(mode, good % 2 != 0, good / 2 != 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_complete_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
