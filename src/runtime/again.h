/* Runs that do what one before them did. Behind a plan's first few runs on a device most of a run is known: a decoder's
 * token enters the same variables, launches one recording, and leaves next versions where they were. What of that follows
 * from the plan and the recording is found once, and such a run only asks whether it is one: then it takes the blocks of
 * what leaves, and launches. */
#ifndef SB_RUNTIME_AGAIN_H
#define SB_RUNTIME_AGAIN_H

#include "runtime/runner.h"

/** Forgets what is known. */
void sb_again_clear(sb_again *again);

/** Before a plan's first run, in which it has been found: finds out whether its runs may be such, and makes the mailbox by which these
 * get their table. Errors: OUT_OF_MEMORY; DEVICE. */
sb_status sb_again_find(sb_runner *runner, sb_error *error);

/** After a run that has found all next versions in place: notes what it has launched. */
void sb_again_note(sb_runner *runner);

/** Launches the run in progress, whose plan has been found, if it is like one that was noted; *done says whether. What it makes
 * is then held, and there is memory for handing it over; else nothing has happened. Errors: OUT_OF_MEMORY, before
 * anything has; DEVICE. */
sb_status sb_again_run(sb_runner *runner, sb_outbox *outbox, bool *done, sb_error *error);

#endif
