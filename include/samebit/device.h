/* Devices: the NVIDIA GPUs of this machine, as their driver reports them.
 *
 * Samebit links to no CUDA library. The driver is opened when it is first asked for, and everything
 * else works on a machine that has none. */
#ifndef SAMEBIT_DEVICE_H
#define SAMEBIT_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <samebit/error.h>
#include <samebit/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What there is of a CUDA driver. The numbers are part of the binary interface. */
typedef enum sb_driver_state {
    SB_DRIVER_READY = 0,     /**< at least one device */
    SB_DRIVER_MISSING = 1,   /**< its library cannot be opened */
    SB_DRIVER_TOO_OLD = 2,   /**< it lacks functions that Samebit needs */
    SB_DRIVER_NO_DEVICE = 3, /**< it works and finds no device */
    SB_DRIVER_FAILED = 4     /**< it is there and reports an error */
} sb_driver_state;

/** "ready", "missing", "too old", "no device", "failed". Never NULL; static storage. */
SB_API const char *sb_driver_state_name(sb_driver_state state);

/** The driver. */
typedef struct sb_driver_description {
    sb_driver_state state;
    const char *library; /**< the file that was opened, or should have been */
    int version;         /**< of the CUDA interface: 13000 for 13.0; 0 where it is not known */
    const char *why;     /**< what is wrong and what to do about it; "" when the state is READY */
} sb_driver_description;

/** A device. */
typedef struct sb_device_description {
    int index;         /**< from 0, in the driver's order (which CUDA_VISIBLE_DEVICES changes) */
    const char *name;  /**< "NVIDIA H200" */
    int compute_major; /**< the compute capability, 9 of 9.0 */
    int compute_minor;
    int multiprocessors;
    int64_t memory_bytes;
    int64_t memory_free_bytes; /**< -1 where the device could not be asked; `why` says why */
    /** The kernels that would run, such as "sm_90a" or "compute_90 (compiled when first used)"; NULL when there are
     * none for this device. */
    const char *kernels;
    const char *why; /**< why there are no kernels or no answer; "" when nothing is wrong */
} sb_device_description;

/** How to look. Start from SB_DEVICE_OPTIONS_DEFAULT. */
typedef struct sb_device_options {
    size_t struct_bytes; /**< sizeof(sb_device_options): lets the struct grow */
    /** File name of the driver's library, as for dlopen; NULL: what the environment variable
     * SAMEBIT_CUDA_DRIVER says, else libcuda.so.1. */
    const char *cuda_driver;
} sb_device_options;

#define SB_DEVICE_OPTIONS_DEFAULT                                                                                      \
    { sizeof(sb_device_options), NULL }

/** What was found. Immutable: any thread may read it. */
typedef struct sb_device_list sb_device_list;

/** Looks for the driver and its devices.
 *
 * A driver that is missing, old or broken is an answer, not a failure: the list is then empty and
 * sb_device_list_driver says why. To learn how much memory is free, the device's primary context is
 * retained for a moment, which starts the device if nobody else uses it. `options` may be NULL. The
 * caller releases the list. Any thread may call this. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_device_list_create(const sb_device_options *options, sb_device_list **list,
                                                     sb_error *error);
/** Frees a list. NULL is allowed. */
SB_API void sb_device_list_release(sb_device_list *list);

/* All pointers below are the list's; `index` must be in range. */

SB_API const sb_driver_description *sb_device_list_driver(const sb_device_list *list);
SB_API int sb_device_list_count(const sb_device_list *list);
SB_API const sb_device_description *sb_device_list_at(const sb_device_list *list, int index);

/* ---- a device in use ---- */

/** A device that sessions run on and tensors lie on. Shared: any thread may use it. */
typedef struct sb_device sb_device;

/** Opens device `index`: the caller releases it.
 *
 * Works in the device's primary context, which the CUDA runtime and PyTorch use too, and leaves the thread's
 * current context as it was. `options` may be NULL. Errors: UNSUPPORTED when there is no driver, it is too
 * old, or Samebit has no kernels for the device; DEVICE when there is no such device or it fails;
 * OUT_OF_MEMORY. The message says what to do. */
SB_API SB_MUST_CHECK sb_status sb_device_open(const sb_device_options *options, int index, sb_device **device,
                                              sb_error *error);
/** Lets go of a device. Sessions and tensors on it keep it in use. NULL is allowed. */
SB_API void sb_device_release(sb_device *device);
/** What it is called: "NVIDIA H200". Lives as long as the device. */
SB_API const char *sb_device_name(const sb_device *device);
SB_API int sb_device_index(const sb_device *device);

/** A contiguous copy of a tensor on a device; it has been made when this returns. The caller releases it. Errors:
 * UNSUPPORTED for text; INVALID_ARGUMENT for a tensor that already lies on a device; OUT_OF_MEMORY, DEVICE. */
SB_API SB_MUST_CHECK sb_status sb_tensor_to_device(sb_device *device, sb_tensor *tensor, sb_tensor **copy,
                                                   sb_error *error);
/** A contiguous copy on the host of a tensor, wherever it lies. The caller releases it. */
SB_API SB_MUST_CHECK sb_status sb_tensor_to_host(sb_device *device, sb_tensor *tensor, sb_tensor **copy,
                                                 sb_error *error);
/** Waits until the device has done what `stream` has been given, a CUstream of its primary context, or NULL for the
 * legacy stream: before memory that somebody else writes becomes an input of a session with another stream. Errors:
 * DEVICE, OUT_OF_MEMORY. */
SB_API SB_MUST_CHECK sb_status sb_device_wait(sb_device *device, void *stream, sb_error *error);
/** Whether the tensor's elements lie on a device: its data are then an address there,
 * which the host must not follow. */
SB_API bool sb_tensor_is_on_device(const sb_tensor *tensor);

/** What has been done on a device since it was opened, by everybody who uses this sb_device. */
typedef struct sb_device_counters {
    int64_t device_allocations; /**< blocks of device memory ever allocated */
    int64_t device_bytes;       /**< in those that live */
    int64_t device_bytes_most;  /**< the most that device_bytes has been */
    int64_t copies_to_device;   /**< host to device, in graphs too */
    int64_t bytes_to_device;
    int64_t copies_to_host;
    int64_t bytes_to_host;
    int64_t copies_on_device;
    int64_t kernels;
    int64_t graph_launches;
} sb_device_counters;

SB_API void sb_device_count(const sb_device *device, sb_device_counters *counters);

#ifdef __cplusplus
}
#endif
#endif
