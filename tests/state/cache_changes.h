/* What tests of capacities with failures share: a script of runs as a fixture, and what changes a whole state. Include
 * after cmocka.h. */
#ifndef SB_TESTS_CACHE_CHANGES_H
#define SB_TESTS_CACHE_CHANGES_H

#include "cache.h"
#include "support/folder.h"

#define CACHE_CAPACITY 20
#define MOST_WARM 4 /* runs before one that something fails in */

static inline int open_script(void **context) {
    static cache_script script;
    sb_model *model = cache_model();
    script = write_script(model);
    sb_model_release(model);
    *context = &script;
    return 0;
}

static inline int close_script(void **context) {
    drop_script(*context);
    return 0;
}

/* ---- whole states ---- */

typedef enum change { SAVE, RESTORE, COPY, TRIM, RESET, CHANGES } change;

#define RUNS_BEFORE 3 /* of the state that is changed */
#define RUNS_OF_OTHER 5

/* Changes the state by the other one, or by the file that it has been saved to. */
static inline sb_status try_change(change change, sb_state *state, sb_state *other, const char *path, sb_error *error) {
    switch (change) {
    case SAVE:
        return sb_state_save(state, path, error);
    case RESTORE:
        return sb_state_restore(state, path, error);
    case COPY:
        return sb_state_copy(state, other, error);
    case TRIM:
        return sb_state_trim(state, "past", 4, error);
    default:
        return sb_state_reset(state, error);
    }
}

/* How many runs of the script a state has behind it then. */
static inline int runs_after(change change) {
    static const int after[CHANGES] = {RUNS_BEFORE, RUNS_OF_OTHER, RUNS_OF_OTHER, 2, 0};
    return after[change];
}

#endif
