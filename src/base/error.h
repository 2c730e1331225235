/* Making error reports, inside the library. */
#ifndef SB_BASE_ERROR_H
#define SB_BASE_ERROR_H

#include <stddef.h>

#include <samebit/error.h>

/** Fills `*error` (if not NULL) with `status` and a printf-style message, cut to fit, and returns `status`. */
sb_status sb_fail(sb_error *error, sb_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/** Puts a printf-style prefix before the message of an error that is already set; returns its status. */
sb_status sb_fail_within(sb_error *error, sb_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** The report of a failed allocation of `bytes` bytes, which says when the thread's
 * memory budget is what refused it. */
sb_status sb_fail_memory(sb_error *error, size_t bytes);

/** Returns from the calling function when `expression` is not SB_OK. For functions that own nothing yet. */
#define SB_TRY(expression)                                                                                             \
    do {                                                                                                               \
        sb_status sb_try_status_ = (expression);                                                                       \
        if (sb_try_status_ != SB_OK)                                                                                   \
            return sb_try_status_;                                                                                     \
    } while (0)

#endif
