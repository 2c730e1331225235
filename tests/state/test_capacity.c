/* Capacities on the host: caches that grow, plans that hold many extents, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <unistd.h>

#include "decoder.h"
#include "runtime/runner_internal.h"
#include "runtime/session_internal.h"

static sb_session *session_of(sb_model *model, sb_state *state) {
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_session *session;
    options.threads = 1;
    options.state = state;
    MUST(sb_session_create(model, &options, &session, error));
    return session;
}

static int plan_count(const sb_session *session) {
    int count = 0;
    for (const sb_plan *plan = session->runner->plans; plan != NULL; plan = plan->next)
        count++;
    return count;
}

static int64_t extent_of(sb_state *state) {
    int64_t extent;
    MUST(sb_state_extent(state, "past", &extent, error));
    return extent;
}

/* Runs of as many tokens as `chunks` says, in turn, until the cache is full, against the same by hand. */
static void check_runs(const char *file, int64_t least, const int64_t *chunks, int chunk_count) {
    random_source source = {5};
    decoder_by_hand hand;
    sb_model *model = load_decoder(file);
    sb_state *state = decoder_state(model, NULL, DECODER_POSITIONS, least);
    sb_session *session = session_of(model, state);
    begin_by_hand(&hand, model);
    int64_t used = 0, runs = 0;
    for (; used + chunks[runs % chunk_count] <= DECODER_POSITIONS; runs++) {
        sb_tensor *ids = decoder_ids(&source, chunks[runs % chunk_count]);
        sb_tensor *expected = step_by_hand(&hand, ids), *actual = bound_step(session, ids);
        assert_true(sb_tensor_equal(actual, expected));
        used += chunks[runs % chunk_count];
        assert_int_equal(extent_of(state), used);
        sb_tensor_release(ids);
        sb_tensor_release(actual);
        sb_tensor_release(expected);
    }
    check_cache(state, &hand);
    assert_string_equal(sb_session_exact_plans(session), "");
    sb_state_counters counters;
    sb_state_count(state, &counters);
    assert_int_equal(counters.runs, runs);
    assert_int_equal(counters.updates_in_place, runs * DECODER_PAIRS);
    assert_int_equal(counters.copies, 0);
    end_by_hand(&hand);
    sb_session_destroy(session);
    sb_state_release(state);
    sb_model_release(model);
}

static void test_tokens_one_by_one(void **context) {
    for (int i = 0; i < 2; i++)
        check_runs(decoder_files[i], 0, (int64_t[]){1}, 1);
}

static void test_chunks_of_several_tokens(void **context) {
    for (int i = 0; i < 2; i++)
        check_runs(decoder_files[i], 0, (int64_t[]){7, 1, 1, 19, 3, 1}, 6);
}

static void test_buckets(void **context) {
    for (int i = 0; i < 2; i++)
        check_runs(decoder_files[i], 10, (int64_t[]){1, 1, 5}, 3);
}

/* One plan for all lengths, and no memory that the runs before have not had. */
static void test_a_token_plans_nothing(void **context) {
    random_source source = {6};
    sb_model *model = load_decoder(decoder_files[0]);
    sb_state *state = decoder_state(model, NULL, DECODER_POSITIONS, 0);
    sb_session *session = session_of(model, state);
    const sb_plan *first = NULL;
    for (int64_t token = 0; token < DECODER_POSITIONS; token++) {
        sb_tensor *ids = decoder_ids(&source, 1), *logits = bound_step(session, ids);
        first = token == 0 ? session->runner->plan : first;
        assert_ptr_equal(session->runner->plan, first);
        assert_int_equal(plan_count(session), 1);
        sb_tensor_release(logits);
        sb_tensor_release(ids);
    }
    sb_session_destroy(session);
    sb_state_release(state);
    sb_model_release(model);
}

static void check_refused(sb_session *session, sb_state *state, int64_t tokens, const char *text) {
    random_source source = {7};
    sb_error error;
    sb_tensor *ids = decoder_ids(&source, tokens), *logits;
    int64_t before = extent_of(state);
    assert_int_equal(try_bound_step(session, ids, &logits, &error), SB_ERROR_SHAPE);
    if (strstr(error.message, text) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.message, text);
    assert_int_equal(extent_of(state), before);
    sb_tensor_release(ids);
}

/* A run that finds no room changes nothing, and the state can be used on. */
static void test_a_full_cache(void **context) {
    random_source source = {8};
    decoder_by_hand hand;
    sb_model *model = load_decoder(decoder_files[0]);
    sb_state *state = decoder_state(model, NULL, 20, 4);
    sb_session *session = session_of(model, state);
    begin_by_hand(&hand, model);
    for (int i = 0; i < 4; i++) {
        sb_tensor *ids = decoder_ids(&source, 5);
        sb_tensor *expected = step_by_hand(&hand, ids), *actual = bound_step(session, ids);
        assert_true(sb_tensor_equal(actual, expected));
        sb_tensor_release(ids);
        sb_tensor_release(actual);
        sb_tensor_release(expected);
    }
    check_refused(session, state, 1,
                  "extent past is 20, and its capacity, 20, leaves this run no room for more than 19");
    check_refused(session, state, 21, "extent past is 20");
    check_cache(state, &hand);
    for (int64_t left = 15; left >= 0; left -= 5) { /* which the run before has not left it with */
        MUST(sb_state_trim(state, "past", left, error));
        check_refused(session, state, 21, "its capacity");
        assert_int_equal(extent_of(state), left);
    }
    end_by_hand(&hand);
    sb_session_destroy(session);
    sb_state_release(state);
    sb_model_release(model);
}

/* Room for the tokens that a run has is enough, although plans are for more of them. */
static void test_a_nearly_full_cache(void **context) {
    static const int64_t chunks[] = {16, 16, 5, 3, 1, 1, 7, 1, 1, 9, 1, 1, 1, 1};
    for (int64_t least = 0; least < 3; least++) {
        random_source source = {12};
        decoder_by_hand hand;
        sb_model *model = load_decoder(decoder_files[0]);
        sb_state *state = decoder_state(model, NULL, 64, least == 2 ? 4 : 0);
        sb_capacity tokens = {"tokens", 16, least};
        sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
        sb_session *session;
        options.threads = 1;
        options.state = state;
        options.capacity_count = 1;
        options.capacities = &tokens;
        MUST(sb_session_create(model, &options, &session, error));
        begin_by_hand(&hand, model);
        for (size_t run = 0; run < sizeof chunks / sizeof chunks[0]; run++) {
            if (run + 2 > sizeof chunks / sizeof chunks[0])
                check_refused(session, state, 2, "extent past is 63, and its capacity, 64, leaves this run no room");
            sb_tensor *ids = decoder_ids(&source, chunks[run]);
            sb_tensor *expected = step_by_hand(&hand, ids), *actual = bound_step(session, ids);
            assert_true(sb_tensor_equal(actual, expected));
            assert_string_equal(sb_session_exact_plans(session), "");
            sb_tensor_release(ids);
            sb_tensor_release(actual);
            sb_tensor_release(expected);
        }
        assert_int_equal(extent_of(state), 64);
        check_refused(session, state, 1, "extent past is 64, and its capacity, 64, leaves this run no room");
        check_cache(state, &hand);
        end_by_hand(&hand);
        sb_session_destroy(session);
        sb_state_release(state);
        sb_model_release(model);
    }
}

/* What is trimmed is as if it had never been there. */
static void test_trimming(void **context) {
    random_source source = {9};
    decoder_by_hand hand;
    sb_error error;
    sb_model *model = load_decoder(decoder_files[1]);
    sb_state *state = decoder_state(model, NULL, 64, 0);
    sb_session *session = session_of(model, state);
    begin_by_hand(&hand, model);
    sb_tensor *kept = decoder_ids(&source, 9), *dropped = decoder_ids(&source, 6), *next = decoder_ids(&source, 4);
    sb_tensor_release(bound_step(session, kept));
    sb_tensor_release(bound_step(session, dropped));
    MUST(sb_state_trim(state, "past", 9, error));
    sb_tensor *actual = bound_step(session, next);
    sb_tensor_release(step_by_hand(&hand, kept));
    sb_tensor *expected = step_by_hand(&hand, next);
    assert_true(sb_tensor_equal(actual, expected));
    check_cache(state, &hand);
    assert_int_equal(sb_state_trim(state, "past", 14, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_state_trim(state, "past", -1, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_state_trim(state, "future", 0, &error), SB_ERROR_INVALID_ARGUMENT);
    MUST(sb_state_reset(state, error));
    assert_int_equal(extent_of(state), 0);
    sb_tensor_release(kept);
    sb_tensor_release(dropped);
    sb_tensor_release(next);
    sb_tensor_release(actual);
    sb_tensor_release(expected);
    end_by_hand(&hand);
    sb_session_destroy(session);
    sb_state_release(state);
    sb_model_release(model);
}

/* A saved cache goes on in a state of another capacity that has room for it, and in none that has not. */
static void test_saving(void **context) {
    random_source source = {10};
    sb_error error;
    char path[] = "/tmp/samebit-test-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    sb_model *model = load_decoder(decoder_files[0]);
    sb_state *state = decoder_state(model, NULL, 64, 0), *other = decoder_state(model, NULL, 40, 8);
    sb_state *small = decoder_state(model, NULL, 12, 0);
    sb_session *session = session_of(model, state), *after = session_of(model, other);
    sb_tensor *prompt = decoder_ids(&source, 13), *next = decoder_ids(&source, 2);
    sb_tensor_release(bound_step(session, prompt));
    MUST(sb_state_save(state, path, error));
    MUST(sb_state_restore(other, path, error));
    assert_int_equal(extent_of(other), 13);
    sb_tensor *left = bound_step(session, next), *right = bound_step(after, next);
    assert_true(sb_tensor_equal(left, right));
    assert_int_equal(sb_state_restore(small, path, &error), SB_ERROR_SHAPE);
    assert_non_null(strstr(error.message, "more rows than its capacity"));
    assert_int_equal(extent_of(small), 0);
    assert_int_equal(sb_state_copy(small, state, &error), SB_ERROR_INVALID_ARGUMENT);
    MUST(sb_state_copy(other, state, error));
    assert_int_equal(extent_of(other), 15);
    unlink(path);
    sb_tensor_release(left);
    sb_tensor_release(right);
    sb_tensor_release(prompt);
    sb_tensor_release(next);
    sb_session_destroy(session);
    sb_session_destroy(after);
    sb_state_release(state);
    sb_state_release(other);
    sb_state_release(small);
    sb_model_release(model);
}

static void test_refusals(void **context) {
    sb_error error;
    sb_state *state;
    sb_session *session;
    sb_model *model = load_decoder(decoder_files[0]);
    sb_capacity twice[] = {{"tokens", 4, 0}, {"tokens", 8, 0}}, unknown = {"frames", 4, 0}, none = {"tokens", 0, 0};
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    assert_int_equal(try_decoder_state(model, NULL, 0, 0, &state, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(try_decoder_state(model, NULL, 8, 9, &state, &error), SB_ERROR_INVALID_ARGUMENT);
    options.capacity_count = 2;
    options.capacities = twice;
    assert_int_equal(sb_session_create(model, &options, &session, &error), SB_ERROR_INVALID_ARGUMENT);
    options.capacity_count = 1;
    options.capacities = &unknown;
    assert_int_equal(sb_session_create(model, &options, &session, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "no input has an extent frames"));
    options.capacities = &none;
    assert_int_equal(sb_session_create(model, &options, &session, &error), SB_ERROR_INVALID_ARGUMENT);
    sb_model_release(model);
}

/* A capacity without a state: inputs of any length share a plan. */
static void test_inputs_of_any_length(void **context) {
    random_source source = {11};
    sb_model *model = load_decoder(decoder_files[0]);
    sb_capacity capacities[] = {{"tokens", 16, 0}, {"past", 32, 0}};
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    options.threads = 1;
    sb_session *exact, *open;
    MUST(sb_session_create(model, &options, &exact, error));
    options.capacity_count = 2;
    options.capacities = capacities;
    MUST(sb_session_create(model, &options, &open, error));
    for (int round = 0; round < 20; round++) {
        int64_t tokens = (int64_t)random_between(&source, 1, 16), past = (int64_t)random_between(&source, 0, 32);
        sb_tensor *inputs[DECODER_OUTPUTS] = {decoder_ids(&source, tokens)};
        sb_tensor *expected[DECODER_OUTPUTS], *actual[DECODER_OUTPUTS];
        for (int i = 1; i < DECODER_OUTPUTS; i++) {
            MUST(sb_tensor_create(SB_F32, 4, (int64_t[]){1, DECODER_HEADS, past, DECODER_WIDTH}, &inputs[i], error));
            for (int64_t e = 0; e < sb_tensor_elements(inputs[i]); e++)
                ((float *)sb_tensor_mutable_data(inputs[i]))[e] = (float)random_between(&source, -999, 999) / 512;
        }
        MUST(sb_session_run_tensors(exact, inputs, expected, error));
        MUST(sb_session_run_tensors(open, inputs, actual, error));
        for (int i = 0; i < DECODER_OUTPUTS; i++) {
            assert_true(sb_tensor_equal(actual[i], expected[i]));
            sb_tensor_release(inputs[i]);
            sb_tensor_release(actual[i]);
            sb_tensor_release(expected[i]);
        }
    }
    assert_string_equal(sb_session_exact_plans(open), "");
    assert_int_equal(plan_count(open), 1);
    sb_session_destroy(exact);
    sb_session_destroy(open);
    sb_model_release(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens_one_by_one), cmocka_unit_test(test_chunks_of_several_tokens),
        cmocka_unit_test(test_buckets),           cmocka_unit_test(test_a_token_plans_nothing),
        cmocka_unit_test(test_a_full_cache),      cmocka_unit_test(test_a_nearly_full_cache),
        cmocka_unit_test(test_trimming),          cmocka_unit_test(test_saving),
        cmocka_unit_test(test_refusals),          cmocka_unit_test(test_inputs_of_any_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
