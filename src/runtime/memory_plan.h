/* The memory plan: values whose lifetimes do not overlap share bytes of one arena. */
#ifndef IV_RUNTIME_MEMORY_PLAN_H
#define IV_RUNTIME_MEMORY_PLAN_H

#include "runtime/plan.h"

/** Sets plan->offsets and plan->arena_bytes. Values that may outlive the run, or whose size is open, get no place (-1); nor do
 * views, but for those that plan->copied lists. On failure the plan stays as it was. */
iv_status iv_memory_plan(iv_plan *plan, const iv_program *program, iv_error *error);

/** Puts before a report that the plan's memory is too large which node's output has the largest part of it, and returns
 * `status`. */
iv_status iv_memory_plan_blame(const iv_plan *plan, const iv_program *program, iv_status status,
                               iv_error *error);

#endif
