/* A cache that TensorScatter updates: written where it lies, as soon as nobody needs it as it was, and left alone by a run
 * that is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cache_update.h"

#define RUNS 12

static void run_kind(const update_kind *kind, int64_t in_place) {
    sb_model *model = cache_update_model(kind);
    sb_state *state = state_on(NULL, model);
    sb_session *session = bound_session(model, state, NULL, NULL);
    float expected[UPDATE_ELEMENTS];
    sb_tensor *initial = contents(state, "cache");
    memcpy(expected, sb_tensor_data(initial), sizeof expected);
    sb_tensor_release(initial);
    for (int64_t run = 0; run < RUNS; run++) {
        int64_t last = kind->circular ? 100 : UPDATE_ROWS - UPDATE_COUNT, first = run % (last + 1),
                second = last - first;
        sb_tensor *inputs[] = {numbers(3, (int64_t[]){UPDATE_BATCH, UPDATE_COUNT, UPDATE_WIDTH}, (uint64_t)run),
                               start_list(first, second)},
                  *output;
        run_tensors(session, inputs, &output);
        update_by_hand(expected, inputs[0], first, second);
        check_cache(state, expected);
        sb_tensor *all[] = {inputs[0], inputs[1], output};
        for (int i = 0; i < 3; i++)
            sb_tensor_release(all[i]);
    }
    assert_int_equal(counted(state).updates, RUNS);
    assert_int_equal(counted(state).updates_in_place, in_place);
    assert_int_equal(counted(state).copies, RUNS - in_place);
    sb_session_destroy(session);
    sb_state_release(state);
    sb_model_release(model);
}

/* All but the first run, which shows what memory there must be. */
static void test_in_place(void **unused) {
    run_kind(&(update_kind){.circular = false}, RUNS - 1);
    run_kind(&(update_kind){.circular = true}, RUNS - 1);
}

static void test_late_reader(void **unused) {
    run_kind(&(update_kind){.late = true}, 0);
}

/* A full cache refuses rows, and is what it was: not torn, and the next run goes on. */
static void test_refused(void **unused) {
    sb_model *model = cache_update_model(&(update_kind){.circular = false});
    sb_state *state = state_on(NULL, model);
    sb_session *session = bound_session(model, state, NULL, NULL);
    float expected[UPDATE_ELEMENTS];
    sb_tensor *initial = contents(state, "cache");
    memcpy(expected, sb_tensor_data(initial), sizeof expected);
    sb_tensor_release(initial);
    for (int64_t run = 0; run < RUNS; run++) {
        bool fits = run % 3 != 2;
        int64_t second = fits ? 2 : run % 2 == 0 ? -1 : UPDATE_ROWS - UPDATE_COUNT + 1;
        sb_tensor *inputs[] = {numbers(3, (int64_t[]){UPDATE_BATCH, UPDATE_COUNT, UPDATE_WIDTH}, (uint64_t)run),
                               start_list(0, second)},
                  *output = NULL;
        sb_error error;
        sb_status status = sb_session_run_tensors(session, inputs, &output, &error);
        assert_int_equal(status, fits ? SB_OK : SB_ERROR_SHAPE);
        if (fits)
            update_by_hand(expected, inputs[0], 0, second);
        else
            ASSERT_SAYS(error, "which sample 1 is to have, lie outside of the cache's 6");
        check_cache(state, expected);
        sb_tensor *all[] = {inputs[0], inputs[1], output};
        for (int i = 0; i < 3; i++)
            sb_tensor_release(all[i]);
    }
    assert_int_equal(counted(state).updates, RUNS - RUNS / 3);
    assert_int_equal(counted(state).updates_in_place, RUNS - RUNS / 3 - 1);
    sb_session_destroy(session);
    sb_state_release(state);
    sb_model_release(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_late_reader),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
