#include "cuda/driver/device.h"

#include <string.h>

#include "base/allocation.h"
#include "cuda/driver/kernel.h"

sb_status sb_cuda_check(sb_cuda_device *device, CUresult result, const char *call, sb_error *error) {
    if (result == CUDA_SUCCESS)
        return SB_OK;
    sb_error unwanted;
    error = error != NULL ? error : &unwanted;
    sb_cuda_fail(device->driver, result, call, error);
    sb_status status = sb_fail_within(error, error->status, "device %d (%s): ", device->index, device->name);
    if (sb_cuda_is_sticky(result)) {
        pthread_mutex_lock(&device->lost_lock);
        if (device->lost.status == SB_OK)
            device->lost = *error;
        pthread_mutex_unlock(&device->lost_lock);
        atomic_store(&device->is_lost, true);
    }
    return status;
}

static sb_status check_not_lost(sb_cuda_device *device, sb_error *error) {
    if (!atomic_load(&device->is_lost))
        return SB_OK;
    pthread_mutex_lock(&device->lost_lock);
    sb_status status = sb_fail(error, device->lost.status, "lost earlier: %.1900s", device->lost.message);
    pthread_mutex_unlock(&device->lost_lock);
    return status;
}

sb_status sb_cuda_enter(sb_cuda_device *device, sb_error *error) {
    SB_TRY(check_not_lost(device, error));
    return SB_CUDA_DO(device, error, cuCtxPushCurrent, device->context);
}

sb_status sb_cuda_leave(sb_cuda_device *device, sb_status status, sb_error *error) {
    CUcontext popped;
    CUresult result = device->driver->cuCtxPopCurrent(&popped);
    return status != SB_OK ? status : sb_cuda_check(device, result, "cuCtxPopCurrent", error);
}

bool sb_cuda_enter_to_release(sb_cuda_device *device) {
    return device->driver->cuCtxPushCurrent(device->context) == CUDA_SUCCESS;
}

void sb_cuda_leave_released(sb_cuda_device *device, bool entered) {
    CUcontext popped;
    if (entered)
        device->driver->cuCtxPopCurrent(&popped);
}

static sb_status read_attributes(sb_cuda_device *device, sb_error *error) {
    int major = 0, minor = 0, clock = 0, memory_clock = 0, bits = 0;
    SB_TRY(SB_CUDA_DO(device, error, cuDeviceGetName, device->name, SB_CUDA_NAME_BYTES, device->handle));
    device->name[SB_CUDA_NAME_BYTES - 1] = '\0';
    const struct {
        int *value;
        CUdevice_attribute attribute;
    } wanted[] = {
        {&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
        {&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
        {&device->multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
        {&device->shared_bytes, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
        {&clock, CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
        {&memory_clock, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE},
        {&bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        SB_TRY(SB_CUDA_DO(device, error, cuDeviceGetAttribute, wanted[i].value, wanted[i].attribute, device->handle));
    device->compute = 10 * major + minor;
    /* Both clocks are in kHz, and memory gives bits twice in each of its own. */
    if (clock > 0 && device->multiprocessors > 0)
        device->memory_rate = 2.0 * memory_clock * (bits / 8) / clock / device->multiprocessors;
    return SB_OK;
}

sb_status sb_cuda_device_open(const sb_cuda_driver *driver, int index, const sb_cuda_images *images,
                              sb_cuda_device **device, sb_error *error) {
    if (index < 0 || index >= driver->device_count)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "there is no CUDA device %d: the driver knows %d, numbered from 0", index, driver->device_count);
    sb_cuda_device *opened = sb_allocate_array(1, sizeof *opened);
    if (opened == NULL)
        return sb_fail_memory(error, sizeof *opened);
    opened->driver = driver;
    opened->images = images != NULL ? images : &sb_cuda_embedded_images;
    opened->index = index;
    atomic_init(&opened->references, 1);
    strcpy(opened->name, "name unknown");
    pthread_mutex_init(&opened->kernel_lock, NULL);
    pthread_mutex_init(&opened->lost_lock, NULL);
    sb_status status = SB_CUDA_DO(opened, error, cuDeviceGet, &opened->handle, index);
    if (status == SB_OK)
        status = read_attributes(opened, error);
    if (status == SB_OK)
        status = SB_CUDA_DO(opened, error, cuDevicePrimaryCtxRetain, &opened->context, opened->handle);
    if (status != SB_OK) {
        opened->context = NULL;
        sb_cuda_device_release(opened);
        return status;
    }
    *device = opened;
    return SB_OK;
}

sb_cuda_device *sb_cuda_device_retain(sb_cuda_device *device) {
    atomic_fetch_add(&device->references, 1);
    return device;
}

void sb_cuda_device_release(sb_cuda_device *device) {
    if (device == NULL || atomic_fetch_sub(&device->references, 1) != 1)
        return;
    sb_cuda_unload_modules(device);
    if (device->context != NULL)
        device->driver->cuDevicePrimaryCtxRelease(device->handle);
    pthread_mutex_destroy(&device->lost_lock);
    pthread_mutex_destroy(&device->kernel_lock);
    sb_free(device);
}

void sb_cuda_device_count(sb_cuda_device *device, const sb_cuda_counters *more) {
#define ADD(name)                                                                                                      \
    if (more->name != 0)                                                                                               \
        SB_CUDA_COUNT(device, name, (long long)more->name);
    SB_CUDA_COUNTERS(ADD)
#undef ADD
}

sb_cuda_counters sb_cuda_device_counters(sb_cuda_device *device) {
#define COUNTER(name) .name = atomic_load(&device->counters.name),
    return (sb_cuda_counters){SB_CUDA_COUNTERS(COUNTER)};
#undef COUNTER
}
