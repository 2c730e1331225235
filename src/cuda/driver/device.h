/* A device that is in use: its primary context, what has been counted, and whether it still works. */
#ifndef SB_CUDA_DRIVER_DEVICE_H
#define SB_CUDA_DRIVER_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "cuda/driver/driver.h"
#include "cuda/driver/image.h"

#define SB_CUDA_NAME_BYTES 128
#define SB_CUDA_KERNEL_BUCKETS 512

/* What has been done on a device since it was opened. X(name, what it counts) */
#define SB_CUDA_COUNTERS(X)                                                                                            \
    X(device_allocations) /* blocks of device memory ever made */                                                      \
    X(device_blocks)      /* … and those that live */                                                                \
    X(device_bytes)       /* in live blocks */                                                                         \
    X(device_bytes_most)  /* the most that these have been */                                                          \
    X(host_allocations)   /* blocks of pinned host memory ever made */                                                 \
    X(host_blocks)                                                                                                     \
    X(host_bytes)                                                                                                      \
    X(copies_to_device) /* tasks given to streams, by themselves or in graphs */                                       \
    X(bytes_to_device)                                                                                                 \
    X(copies_to_host)                                                                                                  \
    X(bytes_to_host)                                                                                                   \
    X(copies_on_device)                                                                                                \
    X(fills)                                                                                                           \
    X(kernels)                                                                                                         \
    X(graph_launches)

typedef struct sb_cuda_counters {
#define SB_CUDA_COUNTER(name) int64_t name;
    SB_CUDA_COUNTERS(SB_CUDA_COUNTER)
#undef SB_CUDA_COUNTER
} sb_cuda_counters;

/* Shared by everything on the device, which keeps it alive. Any thread may use it. */
typedef struct sb_cuda_device {
    const sb_cuda_driver *driver;
    const sb_cuda_images *images;
    atomic_int references;
    int index;
    CUdevice handle;
    CUcontext context; /* the primary one, which the CUDA runtime and other libraries use too */
    int compute;       /* 90 for 9.0 */
    int multiprocessors;
    int shared_bytes; /* the most shared memory that a block can have */
    /* Bytes that memory gives at most for each multiprocessor in one of its clocks; 0: the driver does not say. */
    double memory_rate;
    char name[SB_CUDA_NAME_BYTES];

    pthread_mutex_t kernel_lock;
    struct sb_cuda_module *modules;                         /* loaded ones: kernel.c; under kernel_lock */
    struct sb_cuda_kernel *kernels[SB_CUDA_KERNEL_BUCKETS]; /* loaded ones by name; under kernel_lock */
    atomic_int
        hopper_code; /* whether there are kernels of Hopper's own instructions: cuda/contraction/gemm16_hopper.c */

    atomic_int
        attention; /* how rows of attention are computed: sb_cuda_attention_choice of cuda/attention/attention.h */

    atomic_bool is_lost; /* whether a failure has made the device unusable … */
    pthread_mutex_t lost_lock;
    sb_error lost; /* … and the first such failure; under lost_lock */

    struct {
#define SB_CUDA_COUNTER(name) atomic_llong name;
        SB_CUDA_COUNTERS(SB_CUDA_COUNTER)
#undef SB_CUDA_COUNTER
    } counters;
} sb_cuda_device;

/* Adds to one of the device's counters. */
#define SB_CUDA_COUNT(device, name, amount)                                                                            \
    atomic_fetch_add_explicit(&(device)->counters.name, (amount), memory_order_relaxed)

/** Opens device `index` of the driver with kernels from `images` (NULL: those in the library, which may have none).
 *
 * Retains the device's primary context and leaves the calling thread's current context as it was. The caller owns one
 * reference. Errors: INVALID_ARGUMENT when there is no such device; DEVICE; OUT_OF_MEMORY. */
sb_status sb_cuda_device_open(const sb_cuda_driver *driver, int index, const sb_cuda_images *images,
                              sb_cuda_device **device, sb_error *error);
sb_cuda_device *sb_cuda_device_retain(sb_cuda_device *device);
/** Drops a reference; the last one unloads the kernels and lets go of the primary context. NULL is allowed. */
void sb_cuda_device_release(sb_cuda_device *device);

/** Makes the device's context current in this thread, whatever was current before. Every call that
 * succeeds is followed by one sb_cuda_leave in the same thread; pairs may be nested. Fails with the
 * original message when the device was lost. */
sb_status sb_cuda_enter(sb_cuda_device *device, sb_error *error);
/** Makes current what was so before sb_cuda_enter. Gives `status` back; when that is SB_OK and the
 * driver fails now, that failure. */
sb_status sb_cuda_leave(sb_cuda_device *device, sb_status status, sb_error *error);

/** As the two above for code that gives things back, which goes on whatever happens: a lost device
 * is no reason not to try. What sb_cuda_enter_to_release says goes to sb_cuda_leave_released. */
bool sb_cuda_enter_to_release(sb_cuda_device *device);
void sb_cuda_leave_released(sb_cuda_device *device, bool entered);

/** Gives something back by a function of the driver, whose failure nobody could do anything about. */
#define SB_CUDA_GIVE_BACK(device, call, handle)                                                                        \
    do {                                                                                                               \
        bool entered_ = sb_cuda_enter_to_release(device);                                                              \
        (device)->driver->call(handle);                                                                                \
        sb_cuda_leave_released((device), entered_);                                                                    \
    } while (0)

/** SB_OK for CUDA_SUCCESS; otherwise reports the failure of the driver's function `call` with the
 * device's name, and remembers it if it makes the device unusable. */
sb_status sb_cuda_check(sb_cuda_device *device, CUresult result, const char *call, sb_error *error);

/** Calls a function of the driver and checks its result: SB_CUDA_DO(device, error, cuMemAlloc, &address, bytes). */
#define SB_CUDA_DO(device, error, call, ...)                                                                           \
    sb_cuda_check((device), (device)->driver->call(__VA_ARGS__), #call, (error))

/** Adds to the counters. */
void sb_cuda_device_count(sb_cuda_device *device, const sb_cuda_counters *more);
/** The counters so far. */
sb_cuda_counters sb_cuda_device_counters(sb_cuda_device *device);

#endif
