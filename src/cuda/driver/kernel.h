/* Kernels on a device: found by module and name, loaded when first wanted. */
#ifndef SB_CUDA_DRIVER_KERNEL_H
#define SB_CUDA_DRIVER_KERNEL_H

#include "cuda/driver/device.h"

/* A kernel of a loaded module. It takes one parameter, a struct by value, so that a launch can be
 * recorded and repeated without knowing what is in it. Immutable; belongs to the device. */
typedef struct sb_cuda_kernel {
    const char *module;
    char *name;
    CUfunction function;
    size_t parameter_bytes; /* of the struct; at most SB_CUDA_PARAMETER_BYTES */
    int most_threads;       /* per block */
    int static_shared_bytes;
    struct sb_cuda_kernel *next;      /* of its module */
    struct sb_cuda_kernel *next_hash; /* of its bucket */
} sb_cuda_kernel;

/* What every device takes; newer ones take more. */
#define SB_CUDA_PARAMETER_BYTES 4096

/** Finds kernel `name` of `module`, whose struct of parameters has `parameter_bytes` bytes, and
 * loads the module if this is the first kernel of it on this device: to be done ahead of a run, and
 * never while this thread captures a stream, when the driver forbids loading. `module` must outlive
 * the device. The kernel lives as long as the device. Any thread may call this. Errors: UNSUPPORTED
 * when the build has no such kernels for the device; DEVICE; OUT_OF_MEMORY; INTERNAL when the
 * module lacks the kernel. */
sb_status sb_cuda_kernel_find(sb_cuda_device *device, const char *module, const char *name, size_t parameter_bytes,
                              const sb_cuda_kernel **kernel, sb_error *error);

/** Unloads everything; the device's last holder calls this. */
void sb_cuda_unload_modules(sb_cuda_device *device);

#endif
