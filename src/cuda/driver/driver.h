/* The CUDA driver: its library opened at run time, its functions in a table, its failures as sb_errors. */
#ifndef SB_CUDA_DRIVER_DRIVER_H
#define SB_CUDA_DRIVER_DRIVER_H

#include <stdbool.h>

#include <samebit/device.h>

#include "base/error.h"
#include "cuda/driver/driver_types.h"

/* The oldest release of the driver interface that has every function of driver_calls.h, and the
 * first driver that has it. */
#define SB_CUDA_LEAST_VERSION 12030
#define SB_CUDA_LEAST_DRIVER "545"

#define SB_CUDA_LIBRARY_BYTES 4096

/* An opened driver. Immutable; lives until the process ends. */
typedef struct sb_cuda_driver {
    char library[SB_CUDA_LIBRARY_BYTES]; /* the file name it was opened by */
    int version;                         /* of the interface: 13000 for 13.0 */
    int device_count;                    /* at least 1 */
#define SB_CUDA_CALL(name, version, arguments) CUresult(*name) arguments;
#include "cuda/driver/driver_calls.h"
#undef SB_CUDA_CALL
} sb_cuda_driver;

/** Opens the driver in the library `library` (a file name as for dlopen) and initialises it, or gives the one that this
 * process has already opened by that name. Any thread may call this.
 *
 * `*state` (may be NULL) tells which way it failed, and `*version` (may be NULL) the driver's version as far as it was
 * found out, 0 otherwise. A failure leaves nothing open and may be tried again. Errors: UNSUPPORTED when the driver is
 * MISSING or TOO_OLD; DEVICE when it has NO_DEVICE or has FAILED. */
sb_status sb_cuda_driver_open(const char *library, const sb_cuda_driver **driver, sb_driver_state *state, int *version,
                              sb_error *error);

/** Reports the failure `result` (not CUDA_SUCCESS) of the driver's function `call`: OUT_OF_MEMORY
 * when the device lacks memory, else DEVICE. The message has the call, the driver's name and text
 * of the error and, where one is known, the remedy. */
sb_status sb_cuda_fail(const sb_cuda_driver *driver, CUresult result, const char *call, sb_error *error);

/** Whether a failure of this kind makes the device unusable for the rest of the process: every
 * later call would report it again. */
bool sb_cuda_is_sticky(CUresult result);

/** "13.0" for 13000, in `text`, which is returned. */
#define SB_CUDA_VERSION_BYTES 24
char *sb_cuda_version_text(int version, char text[SB_CUDA_VERSION_BYTES]);

#endif
