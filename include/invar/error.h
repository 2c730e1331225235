/* Status codes and error reports.
 *
 * Every call that can fail returns an `iv_status` and takes an `iv_error *` as its last argument. The
 * error is a plain struct that the caller owns (usually on the stack), so that reporting a failure
 * never allocates. It is written only when the call fails, and may be NULL. */
#ifndef INVAR_ERROR_H
#define INVAR_ERROR_H

#if defined(__GNUC__)
#define IV_API __attribute__((visibility("default")))
#define IV_MUST_CHECK __attribute__((warn_unused_result))
#else
#define IV_API
#define IV_MUST_CHECK
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** What went wrong. The numbers are part of the binary interface. */
typedef enum iv_status {
    IV_OK = 0,
    IV_ERROR_INVALID_ARGUMENT = 1, /**< the caller passed something that the function's contract excludes */
    IV_ERROR_OUT_OF_MEMORY = 2,    /**< an allocation failed or would exceed a limit; everything was unwound */
    IV_ERROR_IO = 3,               /**< the operating system refused a file operation */
    IV_ERROR_INVALID_FILE = 4,     /**< a file is damaged, truncated or not of the format it claims */
    IV_ERROR_INVALID_MODEL = 5,    /**< a model breaks the rules of its own standard */
    IV_ERROR_UNSUPPORTED = 6,      /**< valid, but outside what Invar does; the message names the way out */
    IV_ERROR_SHAPE = 7,            /**< shapes or dtypes do not fit each other or the model */
    IV_ERROR_DIFFERENT = 8,        /**< a comparison found a difference */
    IV_ERROR_DEVICE = 9,           /**< a device or its driver failed */
    IV_ERROR_INTERNAL = 10,        /**< a defect in Invar: please report it */
    IV_ERROR_INTERRUPTED = 11,     /**< the caller asked a run to end: see iv_session_interrupt */
    IV_ERROR_LIMIT = 12            /**< a run needs more iterations than the caller allows it */
} iv_status;

/** Bytes of `iv_error::message`, the terminating NUL included. */
#define IV_ERROR_MESSAGE_BYTES 2048

/** The report of a failure: a code and one sentence in UTF-8 that names the culprit and the remedy. */
typedef struct iv_error {
    iv_status status;
    char message[IV_ERROR_MESSAGE_BYTES];
} iv_error;

/** A short fixed name of a status, such as "invalid model". Never NULL; static storage. */
IV_API const char *iv_status_name(iv_status status);

#ifdef __cplusplus
}
#endif
#endif
