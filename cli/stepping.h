/* States from the command line: --state, --load-state and --save-state, and runs one after the other: --steps. */
#ifndef CLI_STEPPING_H
#define CLI_STEPPING_H

#include "running.h"

#define STATE_OPTIONS                                                                                                  \
    {"state", "INPUT=OUTPUT", true,                                                                                    \
     "Keep an output as that input of the next run; it begins with zeros, and its symbolic extents need --set"},       \
        {"steps", "FILE", false,                                                                                       \
         "Run once for each entry of the first axis of FILE.npy, the only input that is left, or of the arrays in "    \
         "FILE.npz, inputs by their names; outputs are stacked"},                                                      \
        {"save-state", "FILE", false, "Write the state behind the last run to FILE"}, {                                \
        "load-state", "FILE", false, "Begin with the state in FILE"                                                    \
    }

/** Whether --state makes this input, or output, a variable of the state. */
bool is_kept(const arguments *arguments, const char *name, bool input);

/** Creates the state that --state asks for, on the device and with the capacities of `options`, and loads what --load-state names: `*state` is
 * NULL without. The caller releases it. Exit codes as in options.h, after printing what is wrong. */
int open_state(const arguments *arguments, sb_model *model, const sb_session_options *options, sb_state **state);

/** Runs once, or with --steps once for each; `outputs` of `running` are then stacked. Inputs that --steps gives are
 * still missing in `running`. *nanoseconds: how long all of it took. Exit codes as above. */
int run_in_steps(const arguments *arguments, running *running, double *nanoseconds);

/** Does what --save-state asks for. Exit codes as above. */
int save_state(const arguments *arguments, const running *running);

#endif
