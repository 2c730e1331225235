/* The memory limits of models and sessions. */
#ifndef SB_RUNTIME_MEMORY_LIMIT_H
#define SB_RUNTIME_MEMORY_LIMIT_H

#include "base/allocation.h"
#include "base/error.h"

/** Creates the budget for an option: `limit` bytes, or for 0 what the machine has. The caller
 * releases it. Errors: INVALID_ARGUMENT for a negative limit; OUT_OF_MEMORY. */
sb_status sb_memory_limit_begin(int64_t limit, sb_memory_budget **budget, sb_error *error);

#endif
