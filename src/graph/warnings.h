/* What was tolerated while a model was read: sentences for whoever made the file. */
#ifndef SB_GRAPH_WARNINGS_H
#define SB_GRAPH_WARNINGS_H

#include "base/error.h"

/** The most warnings that are kept; one more says that there were others. */
#define SB_MOST_WARNINGS 1000

typedef struct sb_warnings {
    size_t count, capacity;
    char **texts; /* owned */
} sb_warnings;

/** Adds a warning; `warnings` may be NULL: nobody wants them. Fails with OUT_OF_MEMORY alone. */
sb_status sb_warn(sb_warnings *warnings, sb_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** Frees all and makes it empty. */
void sb_warnings_clear(sb_warnings *warnings);

#endif
