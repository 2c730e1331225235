#include "runtime/memory_limit.h"

#include "base/machine_memory.h"

sb_status sb_memory_limit_begin(int64_t limit, sb_memory_budget **budget, sb_error *error) {
    if (limit < 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "a memory limit of %lld bytes: give a positive number, or 0 for what the machine has",
                       (long long)limit);
    *budget = sb_memory_budget_create(limit != 0 ? limit : sb_machine_memory());
    return *budget != NULL ? SB_OK : sb_fail_memory(error, sizeof *budget);
}
