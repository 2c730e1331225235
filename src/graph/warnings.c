#include "graph/warnings.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/allocation.h"

sb_status sb_warn(sb_warnings *warnings, sb_error *error, const char *format, ...) {
    if (warnings == NULL || warnings->count > SB_MOST_WARNINGS)
        return SB_OK;
    char text[SB_ERROR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    bool last = warnings->count == SB_MOST_WARNINGS;
    char *copy = sb_duplicate_string(last ? "more was tolerated than is listed" : text);
    if (copy == NULL ||
        !sb_grow((void **)&warnings->texts, &warnings->capacity, warnings->count + 1, sizeof *warnings->texts)) {
        sb_free(copy);
        return sb_fail_memory(error, sizeof text);
    }
    warnings->texts[warnings->count++] = copy;
    return SB_OK;
}

void sb_warnings_clear(sb_warnings *warnings) {
    for (size_t i = 0; i < warnings->count; i++)
        sb_free(warnings->texts[i]);
    sb_free(warnings->texts);
    *warnings = (sb_warnings){0};
}
