/* States by themselves: what they hold, contents, slots, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "stateful.h"
#include "support/failing.h"
#include "support/folder.h"

static void test_described(void **unused) {
    sb_model *model = slots_model();
    sb_state *state = slots_state(model, NULL, 3);
    sb_state_variable v, w;
    assert_int_equal(sb_state_variable_count(state), 2);
    assert_int_equal(sb_state_variable_index(state, "w"), 1);
    assert_int_equal(sb_state_variable_index(state, "x"), -1);
    sb_state_describe(state, 0, &v);
    sb_state_describe(state, 1, &w);
    assert_string_equal(v.name, "v");
    assert_int_equal(v.dtype, SB_F32);
    assert_int_equal(v.rank, 2);
    assert_int_equal(v.dims[0], 3);
    assert_int_equal(v.dims[1], 4);
    assert_int_equal(v.slot_axis, 0);
    assert_int_equal(v.slots, 3);
    assert_false(v.on_device);
    assert_int_equal(v.version, 0);
    assert_int_equal(w.slot_axis, -1);
    assert_int_equal(w.slots, 0);
    sb_model_release(model); /* the state keeps it */
    sb_tensor *tensor = contents(state, "v");
    for (int i = 0; i < 12; i++)
        assert_true(((const float *)sb_tensor_data(tensor))[i] == (float)(i % 4 + 1));
    sb_tensor_release(tensor);
    sb_state_release(state);
}

static void test_contents(void **unused) {
    sb_model *model = slots_model();
    sb_state *state = slots_state(model, NULL, 2);
    sb_error error;
    sb_tensor *given = numbers(2, (int64_t[]){2, 4}, 5), *wrong = numbers(2, (int64_t[]){3, 4}, 5);
    sb_tensor *turned;
    MUST(sb_state_set(state, 0, given, error));
    assert_int_equal(version_of(state, "v"), 1);
    sb_tensor *found = contents(state, "v");
    check_equal(found, given);
    assert_int_equal(sb_state_set(state, 0, wrong, &error), SB_ERROR_SHAPE);
    ASSERT_SAYS(error, "variable v is f32[2,4], and the tensor f32[3,4]");
    assert_int_equal(sb_state_set(state, 2, given, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_state_get(state, -1, &turned, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_null(turned);
    /* What was copied out stays. */
    MUST(sb_state_reset(state, error));
    check_equal(found, given);
    assert_int_equal(version_of(state, "v"), 0);
    sb_state *other = slots_state(model, NULL, 2), *larger = slots_state(model, NULL, 3);
    check_same_contents(state, other);
    MUST(sb_state_set(state, 0, given, error));
    MUST(sb_state_copy(other, state, error));
    check_same_contents(state, other);
    MUST(sb_state_copy(other, other, error));
    assert_int_equal(sb_state_copy(larger, state, &error), SB_ERROR_INVALID_ARGUMENT);
    sb_tensor_release(given);
    sb_tensor_release(wrong);
    sb_tensor_release(found);
    sb_state_release(state);
    sb_state_release(other);
    sb_state_release(larger);
    sb_model_release(model);
}

/* Slot by slot, along the first axis and along one in the middle. */
static void check_slots(sb_state *state, const char *name, int axis, int64_t slots) {
    sb_error error;
    sb_tensor *first = contents(state, name);
    int index = sb_state_variable_index(state, name);
    sb_tensor *given = numbers(sb_tensor_rank(first), sb_tensor_dims(first), 7);
    MUST(sb_state_set(state, index, given, error));
    MUST(sb_state_copy_slot(state, 1, 2, error));
    MUST(sb_state_reset_slot(state, 0, error));
    assert_int_equal(version_of(state, name), 3);
    sb_tensor *after = contents(state, name);
    for (int64_t slot = 0; slot < slots; slot++) {
        sb_tensor *actual, *expected;
        MUST(sb_tensor_slice(after, axis, slot, 1, 1, &actual, error));
        MUST(sb_tensor_slice(slot == 0 ? first : given, axis, slot == 2 ? 1 : slot, 1, 1, &expected, error));
        check_equal(actual, expected);
        sb_tensor_release(actual);
        sb_tensor_release(expected);
    }
    assert_int_equal(sb_state_reset_slot(state, slots, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "there is no slot");
    assert_int_equal(sb_state_copy_slot(state, 0, -1, &error), SB_ERROR_INVALID_ARGUMENT);
    sb_tensor_release(first);
    sb_tensor_release(given);
    sb_tensor_release(after);
}

static void test_slots(void **unused) {
    sb_model *model = slots_model(), *lstm = lstm_model();
    sb_state *state = slots_state(model, NULL, 4), *pairs = lstm_state(lstm, NULL, 5);
    check_slots(state, "v", 0, 4);
    check_slots(pairs, "h", 1, 5);
    assert_int_equal(version_of(state, "w"), 0); /* which has no slots */
    sb_state_release(state);
    sb_state_release(pairs);
    sb_model_release(model);
    sb_model_release(lstm);
}

#define MANY 100000 /* slots, of more than 8 bytes each */

/* Bytes that what `work` does needs above what is allocated before it. */
static int64_t peak_of(void (*work)(sb_state *state), sb_state *state) {
    sb_allocation_counters before = sb_allocation_count();
    void *filler = sb_allocate((size_t)(before.peak_bytes - before.live_bytes) + 1);
    assert_non_null(filler);
    int64_t full = sb_allocation_count().peak_bytes;
    work(state);
    int64_t peak = sb_allocation_count().peak_bytes;
    sb_free(filler);
    return peak - full;
}

static void reset_one(sb_state *state) {
    MUST(sb_state_reset_slot(state, 7, error));
}

static void copy_one(sb_state *state) {
    MUST(sb_state_copy_slot(state, 7, 9, error));
}

static void save_one(sb_state *state) {
    MUST(sb_state_save_slot(state, 7, folder_path("slot"), error));
}

static void restore_one(sb_state *state) {
    MUST(sb_state_restore_slot(state, 8, folder_path("slot"), error));
}

/* What is done with a slot takes what a slot takes, however many there are. */
static void test_slot_work(void **unused) {
    static void (*const works[])(sb_state * state) = {reset_one, copy_one, save_one, restore_one};
    sb_model *model = slots_model(), *lstm = lstm_model();
    sb_state *states[] = {slots_state(model, NULL, MANY), lstm_state(lstm, NULL, MANY)};
    for (int kind = 0; kind < 2; kind++) {
        for (size_t i = 0; i < sizeof works / sizeof works[0]; i++)
            assert_true(peak_of(works[i], states[kind]) < MANY);
        sb_state_release(states[kind]);
    }
    sb_model_release(model);
    sb_model_release(lstm);
}

/* ---- what is refused ---- */

static sb_status refuse(sb_model *model, int count, const sb_state_pair *pairs, const char *entry, const char *says) {
    static const char *const symbols[] = {"batch", "past"};
    static const int64_t values[] = {2, 3};
    sb_state_options options = SB_STATE_OPTIONS_DEFAULT;
    sb_state *state;
    sb_error error = {SB_OK, ""};
    options.entry = entry;
    options.pair_count = count;
    options.pairs = pairs;
    options.symbol_count = 2;
    options.symbols = symbols;
    options.symbol_values = values;
    sb_status status = sb_state_create(model, &options, &state, &error);
    ASSERT_SAYS(error, says);
    return status;
}

static void test_refused(void **unused) {
    sb_model *lstm = lstm_model(), *slots = slots_model();
    sb_state *state;
    sb_error error;
    sb_state_pair pair = {"h", "hN", -1, NULL};
    assert_int_equal(refuse(lstm, 0, NULL, NULL, "without variables"), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(refuse(lstm, 1, &pair, "other", "no entry graph 'other'"), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(refuse(lstm, 1, (sb_state_pair[]){{"k", "hN", -1, NULL}}, NULL, "no input 'k'"),
                     SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(refuse(lstm, 1, (sb_state_pair[]){{"h", "k", -1, NULL}}, NULL, "no output 'k'"),
                     SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(refuse(lstm, 2, (sb_state_pair[]){pair, pair}, NULL, "paired with two inputs"),
                     SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(refuse(lstm, 2, (sb_state_pair[]){pair, {"h", "cN", -1, NULL}}, NULL, "two variables"),
                     SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(refuse(lstm, 1, (sb_state_pair[]){{"h", "hN", 3, NULL}}, NULL, "no axis 3"),
                     SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(refuse(lstm, 1, (sb_state_pair[]){{"x", "hN", -1, NULL}}, NULL, "output hN is f32[1,batch,3]"),
                     SB_ERROR_SHAPE);
    sb_tensor *wrong = numbers(1, (int64_t[]){5}, 1);
    assert_int_equal(refuse(lstm, 1, (sb_state_pair[]){{"h", "hN", -1, wrong}}, NULL, "its initial tensor f32[5]"),
                     SB_ERROR_SHAPE);
    sb_tensor_release(wrong);
    assert_int_equal(sb_state_create(slots, NULL, &state, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "variable v is f32[slots,4]: give extent 0 a value");
    assert_int_equal(try_slots_state(slots, NULL, -1, &state, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(try_slots_state(slots, NULL, INT64_MAX / 2, &state, &error), SB_ERROR_SHAPE);
    sb_model_release(lstm);
    sb_model_release(slots);
}

/* A cache that a Concat makes longer in every run. */
static void test_growing(void **unused) {
    static const int64_t dims[] = {-1, 2}, one[] = {1, 2};
    static const char *const past[] = {"past", NULL};
    sb_value_description cache = {
        .name = "cache", .kind = SB_KIND_TENSOR, .dtype = SB_F32, .rank = 2, .dims = dims, .dim_texts = past};
    sb_builder *b;
    sb_builder_value old, x, grown;
    sb_model *model;
    MUST(sb_builder_create(&b, error));
    MUST(sb_builder_input(b, &cache, &old, error));
    MUST(add_input(b, "x", 2, one, &x, error));
    sb_builder_attribute axis = sb_attribute_int("axis", 0);
    sb_builder_node node = SB_BUILDER_NODE_DEFAULT;
    node.op = "Concat";
    node.input_count = 2;
    node.inputs = (sb_builder_value[]){old, x};
    node.attribute_count = 1;
    node.attributes = &axis;
    node.output_names = (const char *const[]){"longer"};
    MUST(sb_builder_add_node(b, &node, &grown, error));
    MUST(sb_builder_output(b, grown, error));
    MUST(sb_builder_build(b, NULL, &model, error));
    sb_builder_destroy(b);
    assert_int_equal(refuse(model, 1, (sb_state_pair[]){{"cache", "longer", -1, NULL}}, NULL,
                            "extent 0 grows in every run. Give it a capacity"),
                     SB_ERROR_UNSUPPORTED);
    sb_model_release(model);
}

/* ---- memory ---- */

static sb_status live(void *context) {
    sb_model *model = context;
    sb_state *state, *other = NULL;
    sb_tensor *tensor = NULL;
    sb_error error = {SB_OK, ""};
    SB_TRY(try_slots_state(model, NULL, 2, &state, &error));
    sb_status status = try_slots_state(model, NULL, 2, &other, &error);
    if (status == SB_OK)
        status = sb_state_get(state, 0, &tensor, &error);
    if (status == SB_OK)
        status = sb_state_set(state, 0, tensor, &error);
    if (status == SB_OK)
        status = sb_state_reset_slot(state, 1, &error);
    if (status == SB_OK)
        status = sb_state_copy_slot(state, 0, 1, &error);
    if (status == SB_OK)
        status = sb_state_copy(other, state, &error);
    if (status == SB_OK)
        status = sb_state_reset(state, &error);
    if (status != SB_OK) { /* nothing is torn by it */
        sb_allocation_fail_after(-1, false);
        sb_tensor_release(tensor);
        assert_int_equal(sb_state_get(state, 0, &tensor, &error), SB_OK);
    }
    sb_tensor_release(tensor);
    sb_state_release(state);
    sb_state_release(other);
    return status;
}

static void test_memory(void **unused) {
    sb_model *model = slots_model();
    check_failing_allocations(live, model);
    sb_state_options options = SB_STATE_OPTIONS_DEFAULT;
    sb_state *state;
    sb_error error;
    options.memory_limit = 1000;
    options.symbol_count = 1;
    options.symbols = (const char *const[]){"slots"};
    options.symbol_values = (int64_t[]){1000};
    assert_int_equal(sb_state_create(model, &options, &state, &error), SB_ERROR_OUT_OF_MEMORY);
    options.struct_bytes += 8;
    assert_int_equal(sb_state_create(model, &options, &state, &error), SB_ERROR_INVALID_ARGUMENT);
    sb_state_release(NULL);
    sb_model_release(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_described), cmocka_unit_test(test_contents),
        cmocka_unit_test(test_slots),     cmocka_unit_test_setup_teardown(test_slot_work, folder_open, folder_close),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_growing),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
