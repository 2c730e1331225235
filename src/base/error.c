#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"

const char *sb_status_name(sb_status status) {
    switch (status) {
    case SB_OK:
        return "ok";
    case SB_ERROR_INVALID_ARGUMENT:
        return "invalid argument";
    case SB_ERROR_OUT_OF_MEMORY:
        return "out of memory";
    case SB_ERROR_IO:
        return "input/output error";
    case SB_ERROR_INVALID_FILE:
        return "invalid file";
    case SB_ERROR_INVALID_MODEL:
        return "invalid model";
    case SB_ERROR_UNSUPPORTED:
        return "unsupported";
    case SB_ERROR_SHAPE:
        return "shape mismatch";
    case SB_ERROR_DIFFERENT:
        return "different";
    case SB_ERROR_DEVICE:
        return "device error";
    case SB_ERROR_INTERNAL:
        return "internal error";
    case SB_ERROR_INTERRUPTED:
        return "interrupted";
    case SB_ERROR_LIMIT:
        return "limit reached";
    }
    return "unknown status";
}

sb_status sb_fail(sb_error *error, sb_status status, const char *format, ...) {
    if (error == NULL)
        return status;
    error->status = status;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    return status;
}

sb_status sb_fail_within(sb_error *error, sb_status status, const char *format, ...) {
    if (error == NULL)
        return status;
    char prefix[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(prefix, sizeof prefix, format, arguments);
    va_end(arguments);

    size_t prefix_bytes = strlen(prefix);
    size_t message_bytes = strlen(error->message);
    size_t room = sizeof error->message - 1 - prefix_bytes;
    if (message_bytes > room)
        message_bytes = room;
    memmove(error->message + prefix_bytes, error->message, message_bytes);
    memcpy(error->message, prefix, prefix_bytes);
    error->message[prefix_bytes + message_bytes] = '\0';
    error->status = status;
    return status;
}

sb_status sb_fail_memory(sb_error *error, size_t bytes) {
    int64_t used, limit = sb_memory_budget_limit(&used);
    if (bytes > SIZE_MAX / 2 || (int64_t)bytes > limit - used)
        return sb_fail(error, SB_ERROR_OUT_OF_MEMORY,
                       "out of memory: %zu bytes do not fit the limit of %lld bytes, of which %lld are in use; "
                       "a higher memory limit allows them",
                       bytes, (long long)limit, (long long)used);
    return sb_fail(error, SB_ERROR_OUT_OF_MEMORY, "out of memory: could not allocate %zu bytes", bytes);
}
