/* A cache on a device that TensorScatter updates: written where it lies, whoever gives the work, and refused with a fault. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "session_support.h"
#include "state/cache_update.h"

#define RUNS 6 /* the first, recording, replaying */

static void run_kind(const update_kind *kind, sb_graph_mode mode) {
    setting s = start_device();
    s.model = cache_update_model(kind);
    sb_state *state = state_on(s.device, s.model), *expected = state_on(NULL, s.model);
    sb_session *session = session_on(s.device, s.model, state, NULL, mode, NULL);
    s.cpu = session_on(NULL, s.model, expected, NULL, mode, NULL);
    for (int64_t run = 0; run < RUNS; run++) {
        int64_t last = kind->circular ? 100 : UPDATE_ROWS - UPDATE_COUNT, first = run % (last + 1);
        sb_tensor *inputs[] = {numbers(3, (int64_t[]){UPDATE_BATCH, UPDATE_COUNT, UPDATE_WIDTH}, (uint64_t)run),
                               start_list(first, last - first)};
        run_both(session, s.cpu, s.device, 2, inputs, 1);
        check_same_contents(state, expected);
        release_all(inputs, 2);
    }
    assert_int_equal(counted(state).updates_in_place, kind->late ? 0 : RUNS - 1);
    sb_session_destroy(session);
    sb_session_destroy(s.cpu);
    s.cpu = NULL;
    sb_state_release(state);
    sb_state_release(expected);
    finish(&s);
}

static void test_in_place(void **unused) {
    for (sb_graph_mode mode = SB_GRAPHS_OFF; mode <= SB_GRAPHS_BUILD; mode++) {
        run_kind(&(update_kind){.circular = false}, mode);
        run_kind(&(update_kind){.circular = true}, mode);
        run_kind(&(update_kind){.late = true}, mode);
    }
}

/* The host learns of rows that do not exist when the device has worked: the state is torn until it is made whole. */
static void test_refused(void **unused) {
    setting s = start_device();
    s.model = cache_update_model(&(update_kind){.circular = false});
    sb_state *state = state_on(s.device, s.model);
    sb_session *session = session_on(s.device, s.model, state, NULL, SB_GRAPHS_AUTO, NULL);
    for (int64_t run = 0; run < RUNS; run++) {
        bool fits = run != RUNS - 1;
        sb_tensor *inputs[] = {numbers(3, (int64_t[]){UPDATE_BATCH, UPDATE_COUNT, UPDATE_WIDTH}, (uint64_t)run),
                               start_list(0, fits ? 1 : UPDATE_ROWS)},
                  *output = NULL;
        sb_error error;
        assert_int_equal(sb_session_run_tensors(session, inputs, &output, &error), fits ? SB_OK : SB_ERROR_SHAPE);
        if (!fits)
            ASSERT_SAYS(error, "TensorScatter");
        release_all((sb_tensor *[]){inputs[0], inputs[1], output}, 3);
    }
    MUST(sb_state_reset(state, error));
    sb_tensor *inputs[] = {numbers(3, (int64_t[]){UPDATE_BATCH, UPDATE_COUNT, UPDATE_WIDTH}, 1), start_list(4, 0)},
              *output;
    run_session(session, inputs, &output);
    release_all((sb_tensor *[]){inputs[0], inputs[1], output}, 3);
    sb_session_destroy(session);
    sb_state_release(state);
    finish(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_in_place), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
