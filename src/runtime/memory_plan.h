/* The memory plan: values whose lifetimes do not overlap share bytes of one arena. */
#ifndef SB_RUNTIME_MEMORY_PLAN_H
#define SB_RUNTIME_MEMORY_PLAN_H

#include "runtime/plan.h"

/** Sets plan->offsets and plan->arena_bytes. Values that may outlive the run, or whose size is open, get no place (-1);
 * nor do views, but for those that plan->copied lists. On failure the plan stays as it was. */
sb_status sb_memory_plan(sb_plan *plan, const sb_program *program, sb_error *error);

/** Puts before a report that the plan's memory is too large which node's output has the largest part of it,
 * and returns `status`. */
sb_status sb_memory_plan_blame(const sb_plan *plan, const sb_program *program, sb_status status, sb_error *error);

#endif
