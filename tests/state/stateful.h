/* Small models with variables, and what tests of states share. Include after cmocka.h. */
#ifndef SB_TESTS_STATEFUL_H
#define SB_TESTS_STATEFUL_H

#include "api/building.h"
#include "base/allocation.h"
#include "support/random.h"
#include "tensor/tensor.h"

/* ---- tensors ---- */

static inline sb_tensor *numbers(int rank, const int64_t *dims, uint64_t seed) {
    random_source source = {seed};
    sb_tensor *tensor;
    MUST(sb_tensor_create(SB_F32, rank, dims, &tensor, error));
    float *data = sb_tensor_mutable_data(tensor);
    for (int64_t i = 0; i < sb_tensor_elements(tensor); i++)
        data[i] = (float)random_between(&source, -2000, 2000) / 1024;
    return tensor;
}

static inline void check_equal(const sb_tensor *actual, const sb_tensor *expected) {
    assert_non_null(actual);
    if (!sb_tensor_equal(actual, expected))
        fail_msg("the tensors differ");
}

/* ---- models ---- */

static inline sb_status build_and_destroy(sb_builder *b, sb_status status, sb_model **model, sb_error *error) {
    if (status == SB_OK)
        status = sb_builder_build(b, NULL, model, error);
    sb_builder_destroy(b);
    return status;
}

/* Two variables: v [slots, 4], each slot of which begins with 1, 2, 3, 4, and w [4], which begins with zeros. Entries:
 *
 *     step    x [slots, 4] makes y = 0.5 v + x; v := y, w := w + the sum of y over the slots; output y
 *     look    output v + w
 *     add     x [4]; w := w + x; no output
 *     spread  x [4]; w := x + the sum of w, which is read before it is overwritten; output -w, made behind */
static inline sb_status add_slots_model(sb_builder *b, sb_error *error) {
    static const float first[] = {1, 2, 3, 4}, half = 0.5f;
    static const char *const symbol[] = {"slots", NULL};
    static const int64_t dims[] = {-1, 4}, axis = 0;
    sb_value_description whole = {
        .name = "v", .kind = SB_KIND_TENSOR, .dtype = SB_F32, .rank = 2, .dims = dims, .dim_texts = symbol};
    sb_value_description plain = {.name = "w", .kind = SB_KIND_TENSOR, .dtype = SB_F32, .rank = 1, .dims = &dims[1]};
    sb_value_description input = whole, row = plain;
    sb_variable_options slots = SB_VARIABLE_OPTIONS_DEFAULT;
    sb_builder_variable v, w;
    sb_builder_value x, old, factor, scaled, y, axes, sum, total, next;
    sb_tensor *initial;
    slots.slots = true;
    input.name = row.name = "x";
    SB_TRY(sb_tensor_from_data(SB_F32, 1, &dims[1], first, &initial, error));
    sb_status status = sb_builder_add_variable(b, &whole, initial, &slots, &v, error);
    sb_tensor_release(initial);
    SB_TRY(status);
    SB_TRY(sb_builder_add_variable(b, &plain, NULL, NULL, &w, error));
    SB_TRY(sb_builder_entry(b, "step", error));
    SB_TRY(sb_builder_input(b, &input, &x, error));
    SB_TRY(add_constant(b, "half", SB_F32, 0, NULL, &half, &factor, error));
    SB_TRY(add_constant(b, "axes", SB_S64, 1, (int64_t[]){1}, &axis, &axes, error));
    SB_TRY(sb_builder_read(b, v, &old, error));
    SB_TRY(add_binary(b, "Mul", old, factor, &scaled, error));
    SB_TRY(add_binary(b, "Add", scaled, x, &y, error));
    SB_TRY(sb_builder_op(b, "ReduceSum", 2, (sb_builder_value[]){y, axes}, 1,
                         (sb_builder_attribute[]){sb_attribute_int("keepdims", 0)}, &sum, error));
    SB_TRY(sb_builder_read(b, w, &total, error));
    SB_TRY(add_binary(b, "Add", total, sum, &next, error));
    SB_TRY(sb_builder_update(b, v, y, error));
    SB_TRY(sb_builder_update(b, w, next, error));
    SB_TRY(sb_builder_output(b, y, error));
    SB_TRY(sb_builder_entry(b, "look", error));
    SB_TRY(sb_builder_read(b, v, &old, error));
    SB_TRY(sb_builder_read(b, w, &total, error));
    SB_TRY(add_binary(b, "Add", old, total, &sum, error));
    SB_TRY(sb_builder_output(b, sum, error));
    SB_TRY(sb_builder_entry(b, "add", error));
    SB_TRY(sb_builder_input(b, &row, &x, error));
    SB_TRY(sb_builder_read(b, w, &total, error));
    SB_TRY(add_binary(b, "Add", total, x, &next, error));
    SB_TRY(sb_builder_update(b, w, next, error));
    SB_TRY(sb_builder_entry(b, "spread", error));
    SB_TRY(sb_builder_input(b, &row, &x, error));
    SB_TRY(add_constant(b, "axes", SB_S64, 1, (int64_t[]){1}, &axis, &axes, error));
    SB_TRY(sb_builder_read(b, w, &total, error));
    SB_TRY(sb_builder_op(b, "ReduceSum", 2, (sb_builder_value[]){total, axes}, 0, NULL, &sum, error));
    SB_TRY(add_binary(b, "Add", x, sum, &next, error));
    SB_TRY(sb_builder_update(b, w, next, error));
    SB_TRY(sb_builder_op(b, "Neg", 1, &next, 0, NULL, &y, error));
    return sb_builder_output(b, y, error);
}

static inline sb_status make_slots_model(sb_model **model, sb_error *error) {
    sb_builder *b;
    SB_TRY(sb_builder_create(&b, error));
    return build_and_destroy(b, add_slots_model(b, error), model, error);
}

/* w := x + the sum of w; output: w + softmax of w, by a node behind the one that makes the update,
 * and read from version i. */
static inline sb_status add_late_reader(sb_builder *b, sb_error *error) {
    static const int64_t dims[] = {4};
    sb_value_description row = described("w", SB_F32, 1, dims);
    sb_tensor *initial = numbers(1, dims, 4);
    sb_builder_variable w;
    sb_builder_value x, old, sum, next, shares, late;
    sb_status status = sb_builder_add_variable(b, &row, initial, NULL, &w, error);
    sb_tensor_release(initial);
    SB_TRY(status);
    SB_TRY(add_input(b, "x", 1, dims, &x, error));
    SB_TRY(sb_builder_read(b, w, &old, error));
    SB_TRY(sb_builder_op(b, "ReduceSum", 1, &old, 0, NULL, &sum, error));
    SB_TRY(add_binary(b, "Add", x, sum, &next, error));
    SB_TRY(sb_builder_update(b, w, next, error));
    SB_TRY(sb_builder_op(b, "Softmax", 1, &next, 0, NULL, &shares, error));
    SB_TRY(add_binary(b, "Add", old, shares, &late, error));
    return sb_builder_output(b, late, error);
}

static inline sb_model *late_reader_model(void) {
    sb_builder *b;
    sb_model *model;
    MUST(sb_builder_create(&b, error));
    MUST(build_and_destroy(b, add_late_reader(b, error), &model, error));
    return model;
}

/* An LSTM of one direction over x [1, batch, inputs], with inputs h and c [1, batch, units] of the graph: makes y
 * [1, 1, batch, units], hN and cN. */
#define LSTM_INPUTS 3
#define LSTM_OUTPUTS 3
static inline sb_status add_lstm_node(sb_builder *b, sb_builder_value x, int64_t inputs, int64_t units,
                                      sb_builder_value *outputs, sb_error *error) {
    static const char *const names[] = {"y", "hN", "cN"};
    const int64_t dims[] = {1, -1, units}, weights[] = {1, 4 * units, inputs}, recurrent[] = {1, 4 * units, units};
    sb_builder_value h, c, w, r;
    SB_TRY(add_input(b, "h", 3, dims, &h, error));
    SB_TRY(add_input(b, "c", 3, dims, &c, error));
    sb_tensor *left = numbers(3, weights, 1), *right = numbers(3, recurrent, 2);
    sb_status status = sb_builder_constant(b, "w", left, &w, error);
    if (status == SB_OK)
        status = sb_builder_constant(b, "r", right, &r, error);
    sb_tensor_release(left);
    sb_tensor_release(right);
    SB_TRY(status);
    sb_builder_attribute size = sb_attribute_int("hidden_size", units);
    sb_builder_node node = SB_BUILDER_NODE_DEFAULT;
    node.op = "LSTM";
    node.input_count = 7;
    node.inputs = (sb_builder_value[]){x, w, r, 0, 0, h, c};
    node.attribute_count = 1;
    node.attributes = &size;
    node.output_count = 3;
    node.output_names = names;
    return sb_builder_add_node(b, &node, outputs, error);
}

/* That node alone, of 4 inputs and 3 hidden units, in a graph without variables. */
static inline sb_status add_lstm(sb_builder *b, sb_error *error) {
    static const int64_t dims[] = {1, -1, 4};
    sb_builder_value x, outputs[LSTM_OUTPUTS];
    SB_TRY(add_input(b, "x", 3, dims, &x, error));
    SB_TRY(add_lstm_node(b, x, 4, 3, outputs, error));
    for (int i = 0; i < LSTM_OUTPUTS; i++)
        SB_TRY(sb_builder_output(b, outputs[i], error));
    return SB_OK;
}

static inline sb_model *lstm_model(void) {
    sb_builder *b;
    sb_model *model;
    MUST(sb_builder_create(&b, error));
    MUST(build_and_destroy(b, add_lstm(b, error), &model, error));
    return model;
}

static inline sb_model *slots_model(void) {
    sb_model *model;
    MUST(make_slots_model(&model, error));
    return model;
}

/* ---- states and sessions ---- */

/* Of the variables that the model was built with; `home` NULL: on the host. */
static inline sb_status try_state_on(sb_device *home, sb_model *model, sb_state **state, sb_error *error) {
    sb_state_options options = SB_STATE_OPTIONS_DEFAULT;
    options.device = home;
    return sb_state_create(model, &options, state, error);
}

static inline sb_state *state_on(sb_device *home, sb_model *model) {
    sb_state *state;
    MUST(try_state_on(home, model, &state, error));
    return state;
}

static inline sb_status try_slots_state(sb_model *model, sb_device *device, int64_t slots, sb_state **state,
                                        sb_error *error) {
    static const char *const symbols[] = {"slots"};
    sb_state_options options = SB_STATE_OPTIONS_DEFAULT;
    options.device = device;
    options.symbol_count = 1;
    options.symbols = symbols;
    options.symbol_values = &slots;
    return sb_state_create(model, &options, state, error);
}

static inline sb_state *slots_state(sb_model *model, sb_device *device, int64_t slots) {
    sb_state *state;
    MUST(try_slots_state(model, device, slots, &state, error));
    return state;
}

/* h and c of the LSTM. */
static inline sb_status try_lstm_state(sb_model *model, sb_device *device, int64_t batch, sb_state **state,
                                       sb_error *error) {
    static const char *const symbols[] = {"batch"};
    static const sb_state_pair pairs[] = {{"h", "hN", 1, NULL}, {"c", "cN", 1, NULL}};
    sb_state_options options = SB_STATE_OPTIONS_DEFAULT;
    options.device = device;
    options.pair_count = 2;
    options.pairs = pairs;
    options.symbol_count = 1;
    options.symbols = symbols;
    options.symbol_values = &batch;
    return sb_state_create(model, &options, state, error);
}

static inline sb_state *lstm_state(sb_model *model, sb_device *device, int64_t batch) {
    sb_state *state;
    MUST(try_lstm_state(model, device, batch, &state, error));
    return state;
}

static inline sb_session *bound_session(sb_model *model, sb_state *state, const char *entry, sb_device *device) {
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_session *session;
    options.threads = 1;
    options.state = state;
    options.entry = entry;
    options.device = device;
    MUST(sb_session_create(model, &options, &session, error));
    return session;
}

static inline void run_tensors(sb_session *session, sb_tensor *const *inputs, sb_tensor **outputs) {
    MUST(sb_session_run_tensors(session, inputs, outputs, error));
}

static inline sb_tensor *contents(sb_state *state, const char *name) {
    sb_tensor *tensor;
    int index = sb_state_variable_index(state, name);
    assert_true(index >= 0);
    MUST(sb_state_get(state, index, &tensor, error));
    return tensor;
}

static inline int64_t version_of(sb_state *state, const char *name) {
    sb_state_variable variable;
    sb_state_describe(state, sb_state_variable_index(state, name), &variable);
    return variable.version;
}

static inline sb_state_counters counted(sb_state *state) {
    sb_state_counters counters;
    sb_state_count(state, &counters);
    return counters;
}

/* Both states hold equal bits and versions. */
static inline void check_same_contents(sb_state *left, sb_state *right) {
    assert_int_equal(sb_state_variable_count(left), sb_state_variable_count(right));
    for (int i = 0; i < sb_state_variable_count(left); i++) {
        sb_tensor *first, *second;
        sb_state_variable a, b;
        MUST(sb_state_get(left, i, &first, error));
        MUST(sb_state_get(right, i, &second, error));
        check_equal(first, second);
        sb_tensor_release(first);
        sb_tensor_release(second);
        sb_state_describe(left, i, &a);
        sb_state_describe(right, i, &b);
        assert_int_equal(a.version, b.version);
    }
}

#endif
