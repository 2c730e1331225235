/* Making error reports, inside the library. */
#ifndef IV_BASE_ERROR_H
#define IV_BASE_ERROR_H

#include <stddef.h>

#include <invar/error.h>

/** Fills `*error` (if not NULL) with `status` and a printf-style message, cut to fit, and returns `status`. */
iv_status iv_fail(iv_error *error, iv_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Puts a printf-style prefix before the message of an error that is already set; returns its status. */
iv_status iv_fail_within(iv_error *error, iv_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** The report of a failed allocation of `bytes` bytes, which says when the thread's memory budget is what refused it. */
iv_status iv_fail_memory(iv_error *error, size_t bytes);

/** Returns from the calling function when `expression` is not IV_OK. For functions that own nothing yet. */
#define IV_TRY(expression)                                                                         \
    do {                                                                                           \
        iv_status iv_try_status_ = (expression);                                                   \
        if (iv_try_status_ != IV_OK)                                                               \
            return iv_try_status_;                                                                 \
    } while (0)

#endif
