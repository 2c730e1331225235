/* Sessions that bind states: recurrence without feeding, several entry graphs over one state, slots, updates inside of
 * If, Loop and Scan, versions that outputs show, threads, and runs that fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "stateful.h"
#include "support/folder.h"

/* ---- a pair of any model ---- */

#define STEPS 10000

/* An LSTM whose h and c are a state, against one that is fed by hand. */
static void test_recurrence(void **unused) {
    sb_model *model = lstm_model();
    sb_state *state = lstm_state(model, NULL, 2);
    sb_session *bound = bound_session(model, state, NULL, NULL), *plain = bound_session(model, NULL, NULL, NULL);
    sb_tensor *h = contents(state, "h"), *c = contents(state, "c"), *outputs[LSTM_OUTPUTS], *expected[LSTM_OUTPUTS];
    for (uint64_t step = 0; step < STEPS; step++) {
        sb_tensor *x = numbers(3, (int64_t[]){1, 2, 4}, 100 + step);
        run_tensors(bound, (sb_tensor *[]){x, NULL, NULL}, outputs);
        run_tensors(plain, (sb_tensor *[]){x, h, c}, expected);
        check_equal(outputs[0], expected[0]);
        assert_null(outputs[1]); /* they are the state's */
        assert_null(outputs[2]);
        sb_tensor_release(x);
        sb_tensor_release(h);
        sb_tensor_release(c);
        sb_tensor_release(outputs[0]);
        sb_tensor_release(expected[0]);
        h = expected[1];
        c = expected[2];
    }
    sb_tensor *left = contents(state, "h"), *right = contents(state, "c");
    check_equal(left, h);
    check_equal(right, c);
    assert_int_equal(version_of(state, "h"), STEPS);
    assert_int_equal(counted(state).runs, STEPS);
    assert_int_equal(counted(state).updates, 2 * STEPS);
    sb_tensor *all[] = {h, c, left, right};
    for (int i = 0; i < 4; i++)
        sb_tensor_release(all[i]);
    sb_session_destroy(bound);
    sb_session_destroy(plain);
    sb_state_release(state);
    sb_model_release(model);
}

/* ---- slots ---- */

#define SLOTS 64

/* One step of a state with one slot. */
static sb_tensor *step_alone(sb_session *session, sb_tensor *x, int64_t slot) {
    sb_tensor *row, *outputs[LSTM_OUTPUTS];
    MUST(sb_tensor_slice(x, 1, slot, 1, 1, &row, error));
    run_tensors(session, (sb_tensor *[]){row, NULL, NULL}, outputs);
    sb_tensor_release(row);
    return outputs[0];
}

/* 64 slots of one state, of which some begin anew, some go on from another's, against as many states of one slot. */
static void test_slots(void **unused) {
    sb_model *model = lstm_model();
    sb_state *state = lstm_state(model, NULL, SLOTS), *single[SLOTS];
    sb_session *session = bound_session(model, state, NULL, NULL), *alone[SLOTS];
    random_source source = {3};
    for (int slot = 0; slot < SLOTS; slot++) {
        single[slot] = lstm_state(model, NULL, 1);
        alone[slot] = bound_session(model, single[slot], NULL, NULL);
    }
    for (uint64_t step = 0; step < 50; step++) {
        int64_t leaves = random_between(&source, 0, SLOTS - 1), from = random_between(&source, 0, SLOTS - 1),
                to = random_between(&source, 0, SLOTS - 1);
        MUST(sb_state_reset_slot(state, leaves, error));
        MUST(sb_state_reset(single[leaves], error));
        MUST(sb_state_copy_slot(state, from, to, error));
        MUST(sb_state_copy(single[to], single[from], error));
        sb_tensor *x = numbers(3, (int64_t[]){1, SLOTS, 4}, 500 + step), *outputs[LSTM_OUTPUTS];
        run_tensors(session, (sb_tensor *[]){x, NULL, NULL}, outputs);
        for (int64_t slot = 0; slot < SLOTS; slot++) {
            sb_tensor *expected = step_alone(alone[slot], x, slot), *actual;
            MUST(sb_tensor_slice(outputs[0], 2, slot, 1, 1, &actual, error));
            check_equal(actual, expected);
            sb_tensor_release(actual);
            sb_tensor_release(expected);
        }
        sb_tensor_release(x);
        sb_tensor_release(outputs[0]);
    }
    for (int slot = 0; slot < SLOTS; slot++) {
        sb_session_destroy(alone[slot]);
        sb_state_release(single[slot]);
    }
    sb_session_destroy(session);
    sb_state_release(state);
    sb_model_release(model);
}

/* ---- entry graphs ---- */

/* Three sessions, of three graphs, take turns with one state. */
static void test_entries(void **unused) {
    sb_model *model = slots_model();
    sb_state *state = slots_state(model, NULL, 2);
    sb_session *step = bound_session(model, state, "step", NULL), *look = bound_session(model, state, "look", NULL),
               *add = bound_session(model, state, "add", NULL), *spread = bound_session(model, state, "spread", NULL);
    float v[8] = {1, 2, 3, 4, 1, 2, 3, 4}, w[4] = {0};
    for (uint64_t turn = 0; turn < 20; turn++) {
        sb_tensor *x = numbers(2, (int64_t[]){2, 4}, turn), *row = numbers(1, (int64_t[]){4}, 50 + turn), *y, *sum,
                  *negative;
        const float *given = sb_tensor_data(x), *more = sb_tensor_data(row);
        run_tensors(step, &x, &y);
        for (int i = 0; i < 8; i++)
            v[i] = 0.5f * v[i] + given[i];
        for (int i = 0; i < 4; i++)
            w[i] = w[i] + (v[i] + v[i + 4]);
        assert_memory_equal(sb_tensor_data(y), v, sizeof v);
        run_tensors(add, &row, NULL);
        for (int i = 0; i < 4; i++)
            w[i] = w[i] + more[i];
        run_tensors(spread, &row, &negative);
        float all_of_w = (w[0] + w[2]) + (w[1] + w[3]); /* the order of numerics.md */
        for (int i = 0; i < 4; i++) {
            w[i] = more[i] + all_of_w;
            assert_true(((const float *)sb_tensor_data(negative))[i] == -w[i]);
        }
        run_tensors(look, NULL, &sum);
        for (int i = 0; i < 8; i++)
            assert_true(((const float *)sb_tensor_data(sum))[i] == v[i] + w[i % 4]);
        assert_memory_equal(sb_tensor_data(y), v, sizeof v); /* an output stays what it was */
        sb_tensor *all[] = {x, row, y, sum, negative};
        for (int i = 0; i < 5; i++)
            sb_tensor_release(all[i]);
    }
    assert_int_equal(version_of(state, "v"), 20);
    assert_int_equal(version_of(state, "w"), 60);
    assert_int_equal(counted(state).updates, 80);
    /* Of w in each of its three graphs, but for their first runs; v is an output too. */
    assert_int_equal(counted(state).updates_in_place, 57);
    assert_int_equal(counted(state).copies, 23);
    sb_session_destroy(step);
    sb_session_destroy(look);
    sb_session_destroy(add);
    sb_session_destroy(spread);
    sb_state_release(state);
    sb_model_release(model);
}

typedef struct worker {
    sb_model *model;
    sb_state *state;
} worker;

static void *add_many(void *context) {
    const worker *worker = context;
    static const float ones[] = {1, 1, 1, 1};
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_session *session;
    sb_tensor *x, *copy;
    sb_state_variable variable;
    options.threads = 1;
    options.state = worker->state;
    options.entry = "add";
    bool went_well = sb_session_create(worker->model, &options, &session, NULL) == SB_OK &&
                     sb_tensor_from_data(SB_F32, 1, (int64_t[]){4}, ones, &x, NULL) == SB_OK;
    for (int i = 0; i < 200 && went_well; i++) {
        went_well = sb_session_run_tensors(session, &x, NULL, NULL) == SB_OK &&
                    sb_state_get(worker->state, 1, &copy, NULL) == SB_OK;
        sb_state_describe(worker->state, 1, &variable);
        if (went_well)
            sb_tensor_release(copy);
    }
    sb_tensor_release(x);
    sb_session_destroy(session);
    return went_well ? context : NULL;
}

/* Runs of several threads come one after the other. */
static void test_threads(void **unused) {
    enum { THREADS = 4 };
    sb_model *model = slots_model();
    sb_state *state = slots_state(model, NULL, 1);
    pthread_t threads[THREADS];
    worker worker = {model, state};
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, &worker), 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, &worker);
    }
    sb_tensor *w = contents(state, "w");
    for (int i = 0; i < 4; i++)
        assert_true(((const float *)sb_tensor_data(w))[i] == 200.0f * THREADS);
    sb_tensor_release(w);
    sb_state_release(state);
    sb_model_release(model);
}

/* ---- versions ---- */

/* a := b, b := a transposed, both shown as they were; c := c, which changes nothing. */
static sb_status add_swap(sb_builder *b, sb_error *error) {
    static const int64_t dims[] = {2, 2};
    static const char *const names[] = {"a", "b", "c"};
    sb_builder_variable variables[3];
    sb_builder_value values[3], turned;
    for (int i = 0; i < 3; i++) {
        sb_value_description square = described(names[i], SB_F32, 2, dims);
        sb_tensor *initial = numbers(2, dims, (uint64_t)i + 1);
        sb_status status = sb_builder_add_variable(b, &square, initial, NULL, &variables[i], error);
        sb_tensor_release(initial);
        SB_TRY(status);
        SB_TRY(sb_builder_read(b, variables[i], &values[i], error));
        SB_TRY(sb_builder_output(b, values[i], error));
    }
    SB_TRY(sb_builder_op(b, "Transpose", 1, &values[0], 0, NULL, &turned, error));
    SB_TRY(sb_builder_update(b, variables[0], values[1], error));
    SB_TRY(sb_builder_update(b, variables[2], values[2], error));
    return sb_builder_update(b, variables[1], turned, error);
}

static sb_tensor *turned_copy(sb_tensor *tensor) {
    sb_tensor *view, *copy;
    MUST(sb_tensor_transpose(tensor, (int[]){1, 0}, &view, error));
    MUST(sb_tensor_contiguous(view, &copy, error));
    sb_tensor_release(view);
    return copy;
}

static void test_swap(void **unused) {
    sb_builder *b;
    sb_model *model;
    sb_state *state;
    MUST(sb_builder_create(&b, error));
    MUST(build_and_destroy(b, add_swap(b, error), &model, error));
    MUST(sb_state_create(model, NULL, &state, error));
    sb_session *session = bound_session(model, state, NULL, NULL);
    sb_tensor *expected[3] = {contents(state, "a"), contents(state, "b"), contents(state, "c")};
    for (int run = 0; run < 5; run++) {
        sb_tensor *outputs[3];
        run_tensors(session, NULL, outputs);
        for (int i = 0; i < 3; i++)
            check_equal(outputs[i], expected[i]);
        sb_tensor *turned = turned_copy(expected[0]);
        sb_tensor_release(expected[0]);
        expected[0] = expected[1];
        expected[1] = turned;
        sb_tensor *found[3] = {contents(state, "a"), contents(state, "b"), contents(state, "c")};
        for (int i = 0; i < 3; i++) {
            check_equal(found[i], expected[i]);
            sb_tensor_release(found[i]);
            sb_tensor_release(outputs[i]);
        }
    }
    assert_int_equal(counted(state).copies, 5 * (3 + 2 + 2)); /* outputs; what swaps, out of the way and in */
    for (int i = 0; i < 3; i++)
        sb_tensor_release(expected[i]);
    sb_session_destroy(session);
    sb_state_release(state);
    sb_model_release(model);
}

/* An update is not written in place while somebody still reads the version before. */
static void test_late_reader(void **unused) {
    sb_model *model = late_reader_model();
    sb_state *state, *other;
    MUST(sb_state_create(model, NULL, &state, error));
    MUST(sb_state_create(model, NULL, &other, error));
    sb_session *session = bound_session(model, state, NULL, NULL);
    for (uint64_t run = 0; run < 5; run++) {
        sb_tensor *x = numbers(1, (int64_t[]){4}, run), *y, *expected;
        sb_session *fresh = bound_session(model, other, NULL, NULL); /* whose first run updates nothing in place */
        MUST(sb_state_copy(other, state, error));
        run_tensors(session, &x, &y);
        run_tensors(fresh, &x, &expected);
        check_equal(y, expected);
        check_same_contents(state, other);
        sb_tensor *all[] = {x, y, expected};
        for (int i = 0; i < 3; i++)
            sb_tensor_release(all[i]);
        sb_session_destroy(fresh);
    }
    assert_int_equal(counted(state).updates_in_place, 0);
    sb_session_destroy(session);
    sb_state_release(state);
    sb_state_release(other);
    sb_model_release(model);
}

/* ---- updates inside of nodes ---- */

static sb_status advance(sb_builder *b, sb_builder_variable variable, const char *op, sb_builder_value operand,
                         sb_error *error) {
    sb_builder_value version, next;
    SB_TRY(sb_builder_read(b, variable, &version, error));
    SB_TRY(add_binary(b, op, version, operand, &next, error));
    return sb_builder_update(b, variable, next, error);
}

static sb_status add_control_node(sb_builder *b, const char *op, int count, const sb_builder_value *inputs,
                                  int attribute_count, const sb_builder_attribute *attributes, sb_error *error) {
    sb_builder_node node = SB_BUILDER_NODE_DEFAULT;
    node.op = op;
    node.input_count = count;
    node.inputs = inputs;
    node.attribute_count = attribute_count;
    node.attributes = attributes;
    node.output_count = 0;
    return sb_builder_add_node(b, &node, NULL, error);
}

/* v: + x where the sum of x is above 0, in an If. u: doubled in each of 3 iterations of a Loop.
 * s: + each row of x, in a Scan. */
static sb_status add_control(sb_builder *b, sb_error *error) {
    static const float zero = 0, two = 2;
    static const int64_t row_dims[] = {2}, trips = 3;
    static const char *const names[] = {"v", "u", "s"};
    sb_builder_variable variables[3];
    sb_builder_value x, sum, nothing, condition, factor, count, rows, i, go_on, row, column;
    sb_builder_graph graphs[2], body, scan;
    for (int v = 0; v < 3; v++) {
        sb_value_description pair = described(names[v], SB_F32, 1, row_dims);
        sb_tensor *initial = numbers(1, row_dims, (uint64_t)v + 30);
        sb_status status = sb_builder_add_variable(b, &pair, initial, NULL, &variables[v], error);
        sb_tensor_release(initial);
        SB_TRY(status);
    }
    SB_TRY(add_input(b, "x", 2, (int64_t[]){2, 2}, &x, error));
    SB_TRY(add_constant(b, "zero", SB_F32, 0, NULL, &zero, &nothing, error));
    SB_TRY(add_constant(b, "two", SB_F32, 0, NULL, &two, &factor, error));
    SB_TRY(add_constant(b, "trips", SB_S64, 0, NULL, &trips, &count, error));
    SB_TRY(sb_builder_op(b, "ReduceSum", 1, &x, 1, (sb_builder_attribute[]){sb_attribute_int("keepdims", 0)}, &sum,
                         error));
    SB_TRY(add_binary(b, "Greater", sum, nothing, &condition, error));
    SB_TRY(sb_builder_begin_graph(b, "then", error));
    SB_TRY(advance(b, variables[0], "Add", sum, error));
    SB_TRY(sb_builder_end_graph(b, &graphs[0], error));
    SB_TRY(sb_builder_begin_graph(b, "else", error));
    SB_TRY(sb_builder_end_graph(b, &graphs[1], error));
    SB_TRY(add_control_node(b, "If", 1, &condition, 2,
                            (sb_builder_attribute[]){sb_attribute_graph("then_branch", graphs[0]),
                                                     sb_attribute_graph("else_branch", graphs[1])},
                            error));
    SB_TRY(sb_builder_begin_graph(b, "body", error));
    SB_TRY(sb_builder_input(b, &(sb_value_description){.name = "i"}, &i, error));
    SB_TRY(sb_builder_input(b, &(sb_value_description){.name = "go_on"}, &go_on, error));
    SB_TRY(advance(b, variables[1], "Mul", factor, error));
    SB_TRY(sb_builder_output(b, go_on, error));
    SB_TRY(sb_builder_end_graph(b, &body, error));
    SB_TRY(add_control_node(b, "Loop", 2, (sb_builder_value[]){count, 0}, 1,
                            (sb_builder_attribute[]){sb_attribute_graph("body", body)}, error));
    SB_TRY(sb_builder_begin_graph(b, "scan", error));
    SB_TRY(sb_builder_input(b, &(sb_value_description){.name = "row"}, &row, error));
    SB_TRY(sb_builder_op(b, "Relu", 1, &row, 0, NULL, &column, error));
    SB_TRY(advance(b, variables[2], "Add", column, error));
    SB_TRY(sb_builder_output(b, column, error));
    SB_TRY(sb_builder_end_graph(b, &scan, error));
    sb_builder_node node = SB_BUILDER_NODE_DEFAULT;
    node.op = "Scan";
    node.input_count = 1;
    node.inputs = &x;
    node.attribute_count = 2;
    node.attributes =
        (sb_builder_attribute[]){sb_attribute_graph("body", scan), sb_attribute_int("num_scan_inputs", 1)};
    SB_TRY(sb_builder_add_node(b, &node, &rows, error));
    return sb_builder_output(b, rows, error);
}

static void check_numbers(sb_state *state, const char *name, const float *expected) {
    sb_tensor *found = contents(state, name);
    assert_memory_equal(sb_tensor_data(found), expected, 2 * sizeof *expected);
    sb_tensor_release(found);
}

static void test_control(void **unused) {
    sb_builder *b;
    sb_model *model;
    sb_state *state;
    MUST(sb_builder_create(&b, error));
    MUST(build_and_destroy(b, add_control(b, error), &model, error));
    MUST(sb_state_create(model, NULL, &state, error));
    sb_session *session = bound_session(model, state, NULL, NULL);
    sb_tensor *first[3] = {contents(state, "v"), contents(state, "u"), contents(state, "s")};
    float v[2], u[2], s[2];
    memcpy(v, sb_tensor_data(first[0]), sizeof v);
    memcpy(u, sb_tensor_data(first[1]), sizeof u);
    memcpy(s, sb_tensor_data(first[2]), sizeof s);
    for (uint64_t run = 0; run < 12; run++) {
        sb_tensor *x = numbers(2, (int64_t[]){2, 2}, run), *rows;
        const float *given = sb_tensor_data(x);
        float sum = given[0] + given[1] + given[2] + given[3];
        run_tensors(session, &x, &rows);
        for (int i = 0; i < 2; i++) {
            v[i] = sum > 0 ? v[i] + sum : v[i];
            u[i] = u[i] * 2 * 2 * 2;
            for (int row = 0; row < 2; row++)
                s[i] = s[i] + (given[2 * row + i] > 0 ? given[2 * row + i] : 0);
        }
        check_numbers(state, "v", v);
        check_numbers(state, "u", u);
        check_numbers(state, "s", s);
        sb_tensor_release(x);
        sb_tensor_release(rows);
    }
    for (int i = 0; i < 3; i++)
        sb_tensor_release(first[i]);
    sb_session_destroy(session);
    sb_state_release(state);
    sb_model_release(model);
}

/* ---- what is refused, and runs that fail ---- */

static void test_refused(void **unused) {
    sb_model *model = slots_model(), *other = slots_model(), *lstm = lstm_model();
    sb_state *state = slots_state(model, NULL, 2), *pairs = lstm_state(lstm, NULL, 2);
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_session *session;
    sb_error error;
    options.entry = "step";
    assert_int_equal(sb_session_create(model, &options, &session, &error), SB_ERROR_UNSUPPORTED);
    ASSERT_SAYS(error, "bind a state");
    options.state = state;
    assert_int_equal(sb_session_create(other, &options, &session, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "another model");
    options.entry = "stride";
    assert_int_equal(sb_session_create(model, &options, &session, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "no entry graph 'stride'");
    session = bound_session(lstm, pairs, NULL, NULL);
    sb_tensor *x = numbers(3, (int64_t[]){1, 2, 4}, 1), *h = numbers(3, (int64_t[]){1, 2, 3}, 1), *outputs[3];
    sb_tensor *wide = numbers(3, (int64_t[]){1, 3, 4}, 1);
    assert_int_equal(sb_session_run_tensors(session, (sb_tensor *[]){x, h, NULL}, outputs, &error),
                     SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "input h is a variable of the state");
    assert_int_equal(sb_session_run_tensors(session, (sb_tensor *[]){wide, NULL, NULL}, outputs, &error),
                     SB_ERROR_SHAPE);
    ASSERT_SAYS(error, "batch");
    assert_int_equal(version_of(pairs, "h"), 0);
    run_tensors(session, (sb_tensor *[]){x, NULL, NULL}, outputs);
    sb_tensor *all[] = {x, h, wide, outputs[0]};
    for (int i = 0; i < 4; i++)
        sb_tensor_release(all[i]);
    sb_session_destroy(session);
    sb_state_release(state);
    sb_state_release(pairs);
    sb_model_release(model);
    sb_model_release(other);
    sb_model_release(lstm);
}

/* Graph "turn" makes the next versions of a and b, whose extents have names of their own; graph "join" calls both extents k,
 * and adds them. */
static sb_status add_named(sb_builder *b, const char *entry, const char *first, const char *second, sb_error *error) {
    static const char *const names[] = {"a", "b", "aN", "bN"};
    static const int64_t dims[] = {-1};
    sb_builder_value inputs[2], output;
    SB_TRY(sb_builder_entry(b, entry, error));
    for (int i = 0; i < 2; i++) {
        const char *symbol = i == 0 ? first : second;
        sb_value_description input = {
            .name = names[i], .kind = SB_KIND_TENSOR, .dtype = SB_F32, .rank = 1, .dims = dims, .dim_texts = &symbol};
        SB_TRY(sb_builder_input(b, &input, &inputs[i], error));
    }
    for (int i = 0; i < 2 && strcmp(entry, "turn") == 0; i++) {
        sb_builder_node node = SB_BUILDER_NODE_DEFAULT;
        node.op = "Neg";
        node.input_count = 1;
        node.inputs = &inputs[i];
        node.output_count = 1;
        node.output_names = &names[2 + i];
        SB_TRY(sb_builder_add_node(b, &node, &output, error));
        SB_TRY(sb_builder_output(b, output, error));
    }
    if (strcmp(entry, "turn") == 0)
        return SB_OK;
    SB_TRY(add_binary(b, "Add", inputs[0], inputs[1], &output, error));
    return sb_builder_output(b, output, error);
}

/* Variables whose extents a graph calls by one name have to have one extent: those are looked at in each run that others
 * do not stand for. */
static void test_named_extents(void **unused) {
    static const char *const symbols[] = {"n", "m"};
    static const sb_state_pair pairs[] = {{"a", "aN", -1, NULL}, {"b", "bN", -1, NULL}};
    sb_builder *b;
    sb_model *model;
    MUST(sb_builder_create(&b, error));
    MUST(add_named(b, "turn", "n", "m", error));
    MUST(build_and_destroy(b, add_named(b, "join", "k", "k", error), &model, error));
    for (int64_t m = 2; m <= 3; m++) {
        sb_state_options options = SB_STATE_OPTIONS_DEFAULT;
        sb_state *state;
        sb_error error = {SB_OK, ""};
        options.pair_count = options.symbol_count = 2;
        options.pairs = pairs;
        options.symbols = symbols;
        options.symbol_values = (int64_t[]){2, m};
        MUST(sb_state_create(model, &options, &state, error));
        sb_session *turn = bound_session(model, state, "turn", NULL), *join = bound_session(model, state, "join", NULL);
        sb_tensor *outputs[2], *sum = NULL;
        run_tensors(turn, (sb_tensor *[]){NULL, NULL}, outputs);
        sb_status status = sb_session_run_tensors(join, (sb_tensor *[]){NULL, NULL}, &sum, &error);
        assert_int_equal(status, m == 2 ? SB_OK : SB_ERROR_SHAPE);
        if (m == 3)
            ASSERT_SAYS(error, "input b: extent 3 of dimension 0 is called k, which is 2 elsewhere");
        sb_tensor_release(sum);
        sb_session_destroy(turn);
        sb_session_destroy(join);
        sb_state_release(state);
    }
    sb_model_release(model);
}

/* Looks at the state in the middle of a run of its own, and ends the run behind node `ends_at`. */
typedef struct watcher {
    sb_state *state;
    int ends_at, seen;
    sb_status looked;
} watcher;

static sb_status watch(void *context, sb_node_event *event, sb_error *error) {
    watcher *watcher = context;
    sb_tensor *tensor;
    (void)event;
    watcher->looked = sb_state_get(watcher->state, 0, &tensor, error);
    if (watcher->seen++ != watcher->ends_at)
        return SB_OK;
    error->status = SB_ERROR_LIMIT;
    strcpy(error->message, "the observer has seen enough");
    return SB_ERROR_LIMIT;
}

/* A run that fails before an update changes nothing; one that fails behind leaves the state torn, until it is reset. */
static void test_failing_runs(void **unused) {
    sb_model *model = slots_model();
    sb_state *state = slots_state(model, NULL, 2), *expected = slots_state(model, NULL, 2);
    watcher watcher = {state, -1, 0, SB_OK};
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_session *session;
    sb_error error;
    options.threads = 1;
    options.state = state;
    options.entry = "spread";
    options.observer = watch;
    options.observer_context = &watcher;
    MUST(sb_session_create(model, &options, &session, error));
    sb_tensor *x = numbers(1, (int64_t[]){4}, 9), *y, *copy;
    int torn = 0;
    run_tensors(session, &x, &y); /* from the second run on, a variable is updated where it lies */
    sb_tensor_release(y);
    for (int ends_at = 0;; ends_at++) {
        watcher.seen = 0;
        watcher.ends_at = ends_at;
        MUST(sb_state_reset(state, error));
        sb_status status = sb_session_run_tensors(session, &x, &y, &error);
        assert_int_equal(watcher.looked, SB_ERROR_INVALID_ARGUMENT);
        if (status == SB_OK) {
            assert_true(ends_at > torn); /* not in the first nodes, … */
            assert_true(torn > 0);       /* … but in one */
            break;
        }
        assert_int_equal(status, SB_ERROR_LIMIT);
        if (sb_state_get(state, 0, &copy, &error) == SB_OK) {
            sb_tensor_release(copy);
            check_same_contents(state, expected);
            continue;
        }
        torn++;
        assert_int_equal(error.status, SB_ERROR_LIMIT);
        ASSERT_SAYS(error, "the state is torn");
        ASSERT_SAYS(error, "the observer has seen enough");
        assert_int_equal(sb_session_run_tensors(session, &x, &y, &error), SB_ERROR_LIMIT);
        assert_int_equal(sb_state_save(state, "torn", &error), SB_ERROR_LIMIT);
        assert_int_equal(sb_state_reset_slot(state, 0, &error), SB_ERROR_LIMIT);
    }
    sb_tensor_release(x);
    sb_tensor_release(y);
    sb_session_destroy(session);
    sb_state_release(state);
    sb_state_release(expected);
    sb_model_release(model);
}

/* Ends runs of "spread", of which it is the observer, later and later, until one has torn the state. */
static void tear(sb_session *session, watcher *watcher, sb_tensor *x) {
    sb_tensor *copy = NULL, *y;
    sb_error error;
    for (watcher->ends_at = 0; sb_state_get(watcher->state, 0, &copy, &error) == SB_OK; watcher->ends_at++) {
        sb_tensor_release(copy);
        watcher->seen = 0;
        assert_int_equal(sb_session_run_tensors(session, &x, &y, &error), SB_ERROR_LIMIT);
    }
    ASSERT_SAYS(error, "the state is torn");
    watcher->ends_at = -1;
}

/* What gives every variable contents makes a torn state whole; what gives them to a slot or a variable is refused. */
static void test_healing(void **unused) {
    sb_model *model = slots_model();
    sb_state *state = slots_state(model, NULL, 2), *other = slots_state(model, NULL, 2);
    watcher watcher = {state, -1, 0, SB_OK};
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_session *session, *same = bound_session(model, other, "spread", NULL);
    sb_tensor *x = numbers(1, (int64_t[]){4}, 9), *w = numbers(1, (int64_t[]){4}, 8), *y, *expected;
    sb_error error;
    options.threads = 1;
    options.state = state;
    options.entry = "spread";
    options.observer = watch;
    options.observer_context = &watcher;
    MUST(sb_session_create(model, &options, &session, error));
    run_tensors(session, &x, &y); /* from the second run on, a variable is updated where it lies */
    sb_tensor_release(y);
    MUST(sb_state_set(other, 1, w, error));
    MUST(sb_state_save(other, folder_path("whole"), error));
    MUST(sb_state_save_slot(other, 0, folder_path("slot"), error));
    for (int way = 0; way < 3; way++) {
        tear(session, &watcher, x);
        assert_int_equal(sb_state_set(state, 1, w, &error), SB_ERROR_LIMIT);
        assert_int_equal(sb_state_restore_slot(state, 0, folder_path("slot"), &error), SB_ERROR_LIMIT);
        assert_int_equal(sb_state_copy_slot(state, 0, 1, &error), SB_ERROR_LIMIT);
        assert_int_equal(sb_state_copy(other, state, &error), SB_ERROR_LIMIT);
        assert_int_equal(sb_session_run_tensors(session, &x, &y, &error), SB_ERROR_LIMIT);
        MUST(sb_state_restore(other, folder_path("whole"), error));
        if (way == 0)
            MUST(sb_state_copy(state, other, error));
        else if (way == 1)
            MUST(sb_state_restore(state, folder_path("whole"), error));
        else {
            MUST(sb_state_reset(state, error));
            MUST(sb_state_reset(other, error));
        }
        check_same_contents(state, other);
        run_tensors(session, &x, &y);
        run_tensors(same, &x, &expected);
        check_equal(y, expected);
        check_same_contents(state, other);
        sb_tensor_release(y);
        sb_tensor_release(expected);
    }
    sb_tensor_release(x);
    sb_tensor_release(w);
    sb_session_destroy(session);
    sb_session_destroy(same);
    sb_state_release(state);
    sb_state_release(other);
    sb_model_release(model);
}

/* Every allocation of a run failing: the state is as before, or torn, and never half. */
static void test_memory(void **unused) {
    sb_model *model = slots_model();
    sb_tensor *x = numbers(1, (int64_t[]){4}, 9), *y;
    for (int runs = 0; runs < 3; runs++) {
        for (int64_t successes = 0;; successes++) {
            sb_error error = {SB_OK, ""};
            sb_state *state = slots_state(model, NULL, 2), *expected = slots_state(model, NULL, 2);
            sb_session *session = bound_session(model, state, "spread", NULL),
                       *same = bound_session(model, expected, "spread", NULL);
            for (int run = 0; run < runs; run++) {
                run_tensors(session, &x, &y);
                sb_tensor_release(y);
                run_tensors(same, &x, &y);
                sb_tensor_release(y);
            }
            sb_allocation_fail_after(successes, false);
            sb_status status = sb_session_run_tensors(session, &x, &y, &error);
            sb_allocation_fail_after(-1, false);
            if (status == SB_OK)
                sb_tensor_release(y);
            else
                check_same_contents(state, expected);
            sb_session_destroy(session);
            sb_session_destroy(same);
            sb_state_release(state);
            sb_state_release(expected);
            if (status == SB_OK)
                break;
            assert_int_equal(status, SB_ERROR_OUT_OF_MEMORY);
        }
    }
    sb_tensor_release(x);
    sb_model_release(model);
}

/* The name of a test, to run that alone. */
int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recurrence),
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_entries),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_swap),
        cmocka_unit_test(test_late_reader),
        cmocka_unit_test(test_control),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_named_extents),
        cmocka_unit_test(test_failing_runs),
        cmocka_unit_test_setup_teardown(test_healing, folder_open, folder_close),
        cmocka_unit_test(test_memory),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
