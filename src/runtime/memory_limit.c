#include "runtime/memory_limit.h"

#include "base/machine_memory.h"

iv_status iv_memory_limit_begin(int64_t limit, iv_memory_budget **budget, iv_error *error) {
    if (limit < 0)
        return iv_fail(
            error, IV_ERROR_INVALID_ARGUMENT,
            "a memory limit of %lld bytes: give a positive number, or 0 for what the machine has",
            (long long)limit);
    *budget = iv_memory_budget_create(limit != 0 ? limit : iv_machine_memory());
    return *budget != NULL ? IV_OK : iv_fail_memory(error, sizeof *budget);
}
