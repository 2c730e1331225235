/* Variables whose next versions a plan's runs make where they lie, as recorded steps on a device do. Once a run has found them
 * all there, a later one whose tensors lie in the same way has them there too: nothing is left to look at but how far
 * extents with a capacity have come. */
#ifndef SB_RUNTIME_STAYING_H
#define SB_RUNTIME_STAYING_H

#include "runtime/runner.h"

struct sb_open_extents;

/** Whether the next versions that the run in progress has made are those that were noted. */
bool sb_staying_again(const sb_runner *runner);

/** Keeps the next versions that the run in progress has made, for the next function. */
void sb_staying_offer(const sb_runner *runner);
/** Notes what was offered, when the run has found all of it in place (sb_state_binding::in_place) and it says of each extent
 * the same. */
void sb_staying_note(const sb_runner *runner);

/** The state's extents behind a run whose versions are those that were noted. */
void sb_staying_extents(const sb_runner *runner, int64_t *extents);

/** Forgets what was noted. */
void sb_staying_forget(struct sb_open_extents *open, const sb_program *program);

#endif
