/* Runs in flight that append to a variable with a capacity: each begins where the one before it will have ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "session_support.h"
#include "state/stateful.h"

#define IN_FLIGHT 3

/* x [2] of indices, past [p, 3]: present = past with rows x of a table behind; outputs minus these rows. A pair. */
typedef struct appender {
    setting s;
    char input[32], output[32];
    sb_state *state, *expected;
    sb_session *session, *other;
} appender;

static sb_model *make_model(appender *a) {
    static const int64_t two[] = {2}, past[] = {-1, 3}, table[] = {50, 3};
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_S64, 1, two), old = builder_input(&b, SB_F32, 2, past);
    sb_value_id rows = builder_binary(&b, "Gather", builder_constant(&b, random_tensor(SB_F32, 2, table, 3)), x);
    sb_value_id present = concat(&b, old, rows, 0);
    mark_output(&b, present);
    mark_output(&b, builder_unary(&b, "Neg", rows));
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

static void begin(appender *a, sb_graph_mode mode) {
    *a = (appender){.s = start_device()};
    a->s.model = make_model(a);
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

static uint64_t append(sb_session *session, int64_t first, int64_t second) {
    sb_tensor *x;
    uint64_t run;
    MUST(sb_tensor_from_data(SB_S64, 1, (int64_t[]){2}, (int64_t[]){first, second}, &x, error));
    sb_value values[2] = {sb_value_of_tensor(x)};
    sb_error error = {SB_OK, ""};
    if (sb_session_enqueue(session, values, &run, &error) != SB_OK)
        fail_msg("%s", error.message);
    sb_tensor_release(x);
    return run;
}

static void arrive(sb_session *session, uint64_t run) {
    sb_value outputs[2];
    sb_error error = {SB_OK, ""};
    if (sb_session_wait(session, run, outputs, &error) != SB_OK)
        fail_msg("%s", error.message);
    sb_value_release(&outputs[1]);
}

static void append_to_both(const appender *a, int64_t first) {
    arrive(a->session, append(a->session, first, first + 1));
    arrive(a->s.cpu, append(a->s.cpu, first, first + 1));
}

/* From one plan to the next, in two queues. */
static void test_bits(void **unused) {
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        appender a;
        begin(&a, mode);
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
            begin(&a, mode);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
