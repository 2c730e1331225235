#include "cuda/driver/device_description.h"

#include <stdio.h>
#include <string.h>

/* Fails with the driver's own words when a call fails. */
#define ASK(driver, error, call, ...)                                                                                  \
    do {                                                                                                               \
        CUresult result_ = (driver)->call(__VA_ARGS__);                                                                \
        if (result_ != CUDA_SUCCESS)                                                                                   \
            return sb_cuda_fail((driver), result_, #call, (error));                                                    \
    } while (0)

/* What can be learned without starting the device. */
static sb_status ask_properties(const sb_cuda_driver *driver, CUdevice device, sb_cuda_description *entry,
                                sb_error *error) {
    sb_device_description *description = &entry->description;
    size_t bytes = 0;
    ASK(driver, error, cuDeviceGetName, entry->name, (int)sizeof entry->name, device);
    entry->name[sizeof entry->name - 1] = '\0';
    ASK(driver, error, cuDeviceGetAttribute, &description->compute_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
        device);
    ASK(driver, error, cuDeviceGetAttribute, &description->compute_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        device);
    ASK(driver, error, cuDeviceGetAttribute, &description->multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
        device);
    ASK(driver, error, cuDeviceTotalMem, &bytes, device);
    description->memory_bytes = (int64_t)bytes;
    return SB_OK;
}

/* In the device's context. */
static sb_status ask_free_memory(const sb_cuda_driver *driver, sb_cuda_description *entry, sb_error *error) {
    size_t unused = 0, total = 0;
    ASK(driver, error, cuMemGetInfo, &unused, &total);
    entry->description.memory_free_bytes = (int64_t)unused;
    return SB_OK;
}

/* Only a context can tell how much memory is free. Without an sb_cuda_device: this must not run out
 * of memory of our own, so that whatever fails is the device's answer. */
static sb_status ask_context(const sb_cuda_driver *driver, CUdevice device, sb_cuda_description *entry,
                             sb_error *error) {
    CUcontext context;
    ASK(driver, error, cuDevicePrimaryCtxRetain, &context, device);
    CUresult pushed = driver->cuCtxPushCurrent(context);
    sb_status status = pushed == CUDA_SUCCESS ? ask_free_memory(driver, entry, error)
                                              : sb_cuda_fail(driver, pushed, "cuCtxPushCurrent", error);
    if (pushed == CUDA_SUCCESS)
        driver->cuCtxPopCurrent(&context);
    driver->cuDevicePrimaryCtxRelease(device);
    return status;
}

static sb_status ask(const sb_cuda_driver *driver, int index, sb_cuda_description *entry, sb_error *error) {
    CUdevice device;
    ASK(driver, error, cuDeviceGet, &device, index);
    SB_TRY(ask_properties(driver, device, entry, error));
    return ask_context(driver, device, entry, error);
}

static void describe_kernels(const sb_cuda_driver *driver, sb_cuda_description *entry) {
    sb_device_description *description = &entry->description;
    char why[SB_CUDA_WHY_BYTES];
    const sb_cuda_image *image =
        sb_cuda_choose_image(&sb_cuda_embedded_images, NULL,
                             10 * description->compute_major + description->compute_minor, driver->version, why);
    if (image == NULL) {
        snprintf(entry->why, sizeof entry->why, "%s", why);
        return;
    }
    snprintf(entry->kernels, sizeof entry->kernels, "%s%s", image->architecture,
             image->kind == SB_CUDA_PTX ? " (compiled when first used)" : "");
    description->kernels = entry->kernels;
}

void sb_cuda_describe_device(const sb_cuda_driver *driver, int index, sb_cuda_description *entry) {
    entry->description =
        (sb_device_description){.index = index, .name = entry->name, .memory_free_bytes = -1, .why = entry->why};
    strcpy(entry->name, "name unknown");
    sb_error answer = {SB_OK, ""};
    if (ask(driver, index, entry, &answer) == SB_OK)
        describe_kernels(driver, entry);
    else
        snprintf(entry->why, sizeof entry->why, "%s", answer.message);
}
