/* Status codes and error reports.
 *
 * Every call that can fail returns an `sb_status` and takes an `sb_error *` as its last argument. The
 * error is a plain struct that the caller owns (usually on the stack), so that reporting a failure
 * never allocates. It is written only when the call fails, and may be NULL. */
#ifndef SAMEBIT_ERROR_H
#define SAMEBIT_ERROR_H

#if defined(__GNUC__)
#define SB_API __attribute__((visibility("default")))
#define SB_MUST_CHECK __attribute__((warn_unused_result))
#else
#define SB_API
#define SB_MUST_CHECK
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** What went wrong. The numbers are part of the binary interface. */
typedef enum sb_status {
    SB_OK = 0,
    SB_ERROR_INVALID_ARGUMENT = 1, /**< the caller passed something that the function's contract excludes */
    SB_ERROR_OUT_OF_MEMORY = 2,    /**< an allocation failed or would exceed a limit; everything was unwound */
    SB_ERROR_IO = 3,               /**< the operating system refused a file operation */
    SB_ERROR_INVALID_FILE = 4,     /**< a file is damaged, truncated or not of the format it claims */
    SB_ERROR_INVALID_MODEL = 5,    /**< a model breaks the rules of its own standard */
    SB_ERROR_UNSUPPORTED = 6,      /**< valid, but outside what Samebit does; the message names the way out */
    SB_ERROR_SHAPE = 7,            /**< shapes or dtypes do not fit each other or the model */
    SB_ERROR_DIFFERENT = 8,        /**< a comparison found a difference */
    SB_ERROR_DEVICE = 9,           /**< a device or its driver failed */
    SB_ERROR_INTERNAL = 10,        /**< a defect in Samebit: please report it */
    SB_ERROR_INTERRUPTED = 11,     /**< the caller asked a run to end: see sb_session_interrupt */
    SB_ERROR_LIMIT = 12            /**< more iterations of a run, or positions of a sequence, than the caller allows */
} sb_status;

/** Bytes of `sb_error::message`, the terminating NUL included. */
#define SB_ERROR_MESSAGE_BYTES 2048

/** The report of a failure: a code and one sentence in UTF-8 that names the culprit and the remedy. */
typedef struct sb_error {
    sb_status status;
    char message[SB_ERROR_MESSAGE_BYTES];
} sb_error;

/** A short fixed name of a status, such as "invalid model". Never NULL; static storage. */
SB_API const char *sb_status_name(sb_status status);

#ifdef __cplusplus
}
#endif
#endif
