/* Capacities with memory running out at every place, on the host: states and sessions are made whole or not at all, and
 * a run that fails leaves the cache, and how long it is, as before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cache_changes.h"
#include "support/failing.h"

/* ---- what is made ---- */

static sb_status make_state(void *model) {
    sb_state *state;
    sb_error error;
    SB_TRY(try_cache_state(model, NULL, CACHE_CAPACITY, 4, &state, &error));
    sb_state_release(state);
    return SB_OK;
}

static sb_status try_session(sb_model *model, sb_state *state, bool tokens, sb_session **session, sb_error *error) {
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    sb_capacity items[] = {{"tokens", 8, 2}, {"past", CACHE_CAPACITY, 0}};
    options.threads = 1;
    options.state = state;
    options.capacity_count = !tokens ? 0 : state != NULL ? 1 : 2;
    options.capacities = items;
    return sb_session_create(model, &options, session, error);
}

static sb_session *make_session(sb_model *model, sb_state *state, bool tokens) {
    sb_session *session;
    MUST(try_session(model, state, tokens, &session, error));
    return session;
}

typedef struct binding {
    sb_model *model;
    sb_state *state;
} binding;

static sb_status make_sessions(void *context) {
    const binding *given = context;
    sb_session *session;
    sb_error error;
    SB_TRY(try_session(given->model, given->state, true, &session, &error));
    sb_session_destroy(session);
    return SB_OK;
}

static void test_creating(void **context) {
    sb_model *model = cache_model();
    sb_state *state;
    MUST(try_cache_state(model, NULL, CACHE_CAPACITY, 4, &state, error));
    check_failing_allocations(make_state, model);
    check_failing_allocations(make_sessions, &(binding){model, state});
    check_failing_allocations(make_sessions, &(binding){model, NULL});
    sb_state_release(state);
    sb_model_release(model);
}

/* ---- runs ---- */

/* A session that has done `warm` runs of the script with its state. */
typedef struct life {
    sb_state *state;
    sb_session *session;
} life;

static void check_run(const life *l, const cache_script *script, int run) {
    sb_error error;
    sb_value outputs[CACHE_OUTPUTS];
    if (try_cache_run(l->session, script, run, outputs, &error) != SB_OK)
        fail_msg("%s", error.message);
    check_equal(outputs[0].tensor, script->mixed[run]);
    check_equal(outputs[1].tensor, script->length[run]);
    release_outputs(outputs);
    assert_int_equal(check_place(l->state, script), run + 1);
}

static life begin(sb_model *model, const cache_script *script, int64_t least, bool tokens, int warm) {
    life l;
    MUST(try_cache_state(model, NULL, CACHE_CAPACITY, least, &l.state, error));
    l.session = make_session(model, l.state, tokens);
    for (int run = 0; run < warm; run++)
        check_run(&l, script, run);
    return l;
}

static void end(life *l) {
    sb_session_destroy(l->session);
    sb_state_release(l->state);
}

/* What the model keeps for all its sessions from now on. */
static sb_model *warm_model(const cache_script *script) {
    sb_model *model = cache_model();
    life l = begin(model, script, 4, true, CACHE_RUNS);
    end(&l);
    return model;
}

/* Run `warm` of the script with an allocation failing: whether it nevertheless succeeded. */
static bool fail_once(sb_model *model, const cache_script *script, int64_t least, bool tokens, int warm,
                      int64_t successes, bool forever) {
    sb_error error = {SB_OK, ""};
    sb_value outputs[CACHE_OUTPUTS];
    int64_t blocks = sb_allocation_count().live_blocks;
    life l = begin(model, script, least, tokens, warm);
    sb_allocation_fail_after(successes, forever);
    sb_status status = try_cache_run(l.session, script, warm, outputs, &error);
    sb_allocation_fail_after(-1, false);
    assert_true(status == SB_OK || status == SB_ERROR_OUT_OF_MEMORY);
    release_outputs(outputs);
    int place = check_place(l.state, script); /* which is not torn */
    assert_int_equal(place, warm + (status == SB_OK));
    check_run(&l, script, place);
    MUST(sb_state_reset(l.state, error));
    check_run(&l, script, 0);
    assert_string_equal(sb_session_exact_plans(l.session), "");
    end(&l);
    assert_int_equal(sb_allocation_count().live_blocks, blocks);
    return status == SB_OK;
}

static void test_runs(void **context) {
    sb_model *model = warm_model(*context);
    int failures = 0;
    for (int kind = 0; kind < 4 * (MOST_WARM + 1) * 2; kind++) {
        int64_t least = kind % 2 * 4, successes = 0;
        bool tokens = kind / 2 % 2 != 0, forever = kind / 4 % 2 != 0;
        while (!fail_once(model, *context, least, tokens, kind / 8, successes, forever))
            successes++;
        failures += (int)successes;
    }
    assert_true(failures > 1000);
    sb_model_release(model);
}

/* ---- whole states ---- */

/* A state of three runs becomes the other, of five, or what is left of it, or stays as it was. */
static void check_change(sb_model *model, const cache_script *script, change change, const char *path) {
    sb_status status = SB_ERROR_OUT_OF_MEMORY;
    life other = begin(model, script, 4, false, RUNS_OF_OTHER);
    MUST(sb_state_save(other.state, path, error));
    for (int64_t successes = 0; status != SB_OK; successes++) {
        sb_error error = {SB_OK, ""};
        int64_t blocks = sb_allocation_count().live_blocks;
        life l = begin(model, script, 0, false, RUNS_BEFORE);
        sb_allocation_fail_after(successes, false);
        status = try_change(change, l.state, other.state, path, &error);
        sb_allocation_fail_after(-1, false);
        assert_true(status == SB_OK || status == SB_ERROR_OUT_OF_MEMORY);
        int place = check_place(l.state, script);
        assert_int_equal(place, status == SB_OK ? runs_after(change) : RUNS_BEFORE);
        assert_int_equal(check_place(other.state, script), RUNS_OF_OTHER);
        check_run(&l, script, place);
        end(&l);
        assert_int_equal(sb_allocation_count().live_blocks, blocks);
    }
    end(&other);
}

static void test_changes(void **context) {
    const char *path = folder_path("cache");
    sb_model *model = warm_model(*context);
    for (change change = SAVE; change < CHANGES; change++)
        check_change(model, *context, change, path);
    sb_model_release(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_creating),
        cmocka_unit_test(test_runs),
        cmocka_unit_test_setup_teardown(test_changes, folder_open, folder_close),
    };
    return cmocka_run_group_tests(tests, open_script, close_script);
}
