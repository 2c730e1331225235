#include <stdio.h>
#include <string.h>

#include <samebit/device.h>

#include "base/allocation.h"
#include "base/configuration.h"
#include "cuda/driver/device.h"
#include "cuda/driver/device_open.h"

typedef struct entry {
    sb_device_description description;
    char name[SB_CUDA_NAME_BYTES];
    char kernels[64];
    char why[SB_ERROR_MESSAGE_BYTES];
} entry;

struct sb_device_list {
    sb_driver_description driver;
    char *library;
    char why[SB_ERROR_MESSAGE_BYTES];
    int count;
    entry *entries;
};

const char *sb_driver_state_name(sb_driver_state state) {
    switch (state) {
    case SB_DRIVER_READY:
        return "ready";
    case SB_DRIVER_MISSING:
        return "missing";
    case SB_DRIVER_TOO_OLD:
        return "too old";
    case SB_DRIVER_NO_DEVICE:
        return "no device";
    case SB_DRIVER_FAILED:
        return "failed";
    }
    return "unknown state";
}

/* Fails with the driver's own words when a call fails. */
#define ASK(driver, error, call, ...)                                                                                  \
    do {                                                                                                               \
        CUresult result_ = (driver)->call(__VA_ARGS__);                                                                \
        if (result_ != CUDA_SUCCESS)                                                                                   \
            return sb_cuda_fail((driver), result_, #call, (error));                                                    \
    } while (0)

/* What can be learned without starting the device. */
static sb_status ask_properties(const sb_cuda_driver *driver, CUdevice device, entry *entry, sb_error *error) {
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
static sb_status ask_free_memory(const sb_cuda_driver *driver, entry *entry, sb_error *error) {
    size_t unused = 0, total = 0;
    ASK(driver, error, cuMemGetInfo, &unused, &total);
    entry->description.memory_free_bytes = (int64_t)unused;
    return SB_OK;
}

/* Only a context can tell how much memory is free. Without an sb_cuda_device: this must not run out
 * of memory of our own, so that whatever fails is the device's answer. */
static sb_status ask_context(const sb_cuda_driver *driver, CUdevice device, entry *entry, sb_error *error) {
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

static sb_status ask(const sb_cuda_driver *driver, int index, entry *entry, sb_error *error) {
    CUdevice device;
    ASK(driver, error, cuDeviceGet, &device, index);
    SB_TRY(ask_properties(driver, device, entry, error));
    return ask_context(driver, device, entry, error);
}

static void describe_kernels(const sb_cuda_driver *driver, entry *entry) {
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

/* A device that does not answer is described as far as it goes. */
static void describe(const sb_cuda_driver *driver, int index, entry *entry) {
    entry->description =
        (sb_device_description){.index = index, .name = entry->name, .memory_free_bytes = -1, .why = entry->why};
    strcpy(entry->name, "name unknown");
    sb_error answer = {SB_OK, ""};
    if (ask(driver, index, entry, &answer) == SB_OK)
        describe_kernels(driver, entry);
    else
        snprintf(entry->why, sizeof entry->why, "%s", answer.message);
}

static sb_status describe_all(const sb_cuda_driver *driver, sb_device_list *list, sb_error *error) {
    list->entries = sb_allocate_array((size_t)driver->device_count, sizeof *list->entries);
    if (list->entries == NULL)
        return sb_fail_memory(error, (size_t)driver->device_count * sizeof *list->entries);
    list->count = driver->device_count;
    for (int i = 0; i < list->count; i++)
        describe(driver, i, &list->entries[i]);
    return SB_OK;
}

sb_status sb_device_read_options(const sb_device_options *given, sb_device_options *options, sb_error *error) {
    if (given == NULL)
        return SB_OK;
    if (given->struct_bytes < sizeof given->struct_bytes || given->struct_bytes > sizeof *given)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "sb_device_options has %zu bytes where this library knows %zu: start from "
                       "SB_DEVICE_OPTIONS_DEFAULT",
                       given->struct_bytes, sizeof *given);
    memcpy(options, given, given->struct_bytes);
    return SB_OK;
}

sb_status sb_device_list_create(const sb_device_options *given, sb_device_list **list, sb_error *error) {
    sb_device_options options = SB_DEVICE_OPTIONS_DEFAULT;
    SB_TRY(sb_device_read_options(given, &options, error));
    const char *library =
        options.cuda_driver != NULL ? options.cuda_driver : sb_configuration_from_environment().cuda_driver;
    sb_device_list *created = sb_allocate_array(1, sizeof *created);
    if (created == NULL)
        return sb_fail_memory(error, sizeof *created);
    created->library = sb_duplicate_string(library);
    if (created->library == NULL) {
        sb_device_list_release(created);
        return sb_fail_memory(error, strlen(library) + 1);
    }
    created->driver.library = created->library;
    created->driver.why = created->why;
    const sb_cuda_driver *driver = NULL;
    sb_error answer = {SB_OK, ""};
    if (sb_cuda_driver_open(library, &driver, &created->driver.state, &created->driver.version, &answer) != SB_OK) {
        snprintf(created->why, sizeof created->why, "%s", answer.message);
        *list = created;
        return SB_OK;
    }
    sb_status status = describe_all(driver, created, error);
    if (status != SB_OK) {
        sb_device_list_release(created);
        return status;
    }
    *list = created;
    return SB_OK;
}

void sb_device_list_release(sb_device_list *list) {
    if (list == NULL)
        return;
    sb_free(list->entries);
    sb_free(list->library);
    sb_free(list);
}

const sb_driver_description *sb_device_list_driver(const sb_device_list *list) {
    return &list->driver;
}

int sb_device_list_count(const sb_device_list *list) {
    return list->count;
}

const sb_device_description *sb_device_list_at(const sb_device_list *list, int index) {
    return &list->entries[index].description;
}
