/* Options that say on which device a model runs, and reports of where its nodes ran. */
#ifndef CLI_PLACEMENT_H
#define CLI_PLACEMENT_H

#include "manifest.h"
#include "support.h"

/** Opens the device that --device names, and sets the session's options by it, --force-cpu and --require-device; what
 * these point to is the arguments'. With `auto` and no device, says so on stderr, and `*device` is NULL. Exit codes;
 * the caller releases the device. */
int open_device(const arguments *arguments, sb_session_options *options, sb_device **device);

/* Operators that ran on the CPU although there is a device. */
typedef struct cpu_operators {
    manifest seen; /* operator and the first reason */
} cpu_operators;

/** Adds what the session's last run left on the CPU. *nodes (may be NULL) is how many nodes.
 * False when memory runs out. */
bool add_cpu_operators(cpu_operators *operators, sb_session *session, int *nodes);
void free_cpu_operators(cpu_operators *operators);
/** Holds the operators to the list that --allow-cpu names: EXIT_DIFFERENT, with a line for each, when one is not in it.
 * Entries that are no longer needed are pointed out. */
int check_allowed(const arguments *arguments, const cpu_operators *operators);

/** After a run on the device (NULL: the CPU): does what --explain-placement asks for. */
void explain_placement(const arguments *arguments, sb_session *session, const sb_device *device);
/** The same, and what --allow-cpu asks for. Exit codes. */
int report_placement(const arguments *arguments, sb_session *session, const sb_device *device);

#endif
