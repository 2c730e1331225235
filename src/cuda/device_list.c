#include <stdio.h>
#include <string.h>

#include <invar/device.h>

#include "base/allocation.h"
#include "base/configuration.h"
#include "cuda/device.h"
#include "cuda/device_open.h"

typedef struct entry {
    iv_device_description description;
    char name[IV_CUDA_NAME_BYTES];
    char kernels[64];
    char why[IV_ERROR_MESSAGE_BYTES];
} entry;

struct iv_device_list {
    iv_driver_description driver;
    char *library;
    char why[IV_ERROR_MESSAGE_BYTES];
    int count;
    entry *entries;
};

const char *iv_driver_state_name(iv_driver_state state) {
    switch (state) {
    case IV_DRIVER_READY:
        return "ready";
    case IV_DRIVER_MISSING:
        return "missing";
    case IV_DRIVER_TOO_OLD:
        return "too old";
    case IV_DRIVER_NO_DEVICE:
        return "no device";
    case IV_DRIVER_FAILED:
        return "failed";
    }
    return "unknown state";
}

/* Fails with the driver's own words when a call fails. */
#define ASK(driver, error, call, ...)                                                              \
    do {                                                                                           \
        CUresult result_ = (driver)->call(__VA_ARGS__);                                            \
        if (result_ != CUDA_SUCCESS)                                                               \
            return iv_cuda_fail((driver), result_, #call, (error));                                \
    } while (0)

/* What can be learned without starting the device. */
static iv_status ask_properties(const iv_cuda_driver *driver, CUdevice device, entry *entry,
                                iv_error *error) {
    iv_device_description *description = &entry->description;
    size_t bytes = 0;
    ASK(driver, error, cuDeviceGetName, entry->name, (int)sizeof entry->name, device);
    entry->name[sizeof entry->name - 1] = '\0';
    ASK(driver, error, cuDeviceGetAttribute, &description->compute_major,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    ASK(driver, error, cuDeviceGetAttribute, &description->compute_minor,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    ASK(driver, error, cuDeviceGetAttribute, &description->multiprocessors,
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    ASK(driver, error, cuDeviceTotalMem, &bytes, device);
    description->memory_bytes = (int64_t)bytes;
    return IV_OK;
}

/* In the device's context. */
static iv_status ask_free_memory(const iv_cuda_driver *driver, entry *entry, iv_error *error) {
    size_t unused = 0, total = 0;
    ASK(driver, error, cuMemGetInfo, &unused, &total);
    entry->description.memory_free_bytes = (int64_t)unused;
    return IV_OK;
}

/* Only a context can tell how much memory is free. Without an iv_cuda_device: this must not run out
 * of memory of our own, so that whatever fails is the device's answer. */
static iv_status ask_context(const iv_cuda_driver *driver, CUdevice device, entry *entry,
                             iv_error *error) {
    CUcontext context;
    ASK(driver, error, cuDevicePrimaryCtxRetain, &context, device);
    CUresult pushed = driver->cuCtxPushCurrent(context);
    iv_status status = pushed == CUDA_SUCCESS
                           ? ask_free_memory(driver, entry, error)
                           : iv_cuda_fail(driver, pushed, "cuCtxPushCurrent", error);
    if (pushed == CUDA_SUCCESS)
        driver->cuCtxPopCurrent(&context);
    driver->cuDevicePrimaryCtxRelease(device);
    return status;
}

static iv_status ask(const iv_cuda_driver *driver, int index, entry *entry, iv_error *error) {
    CUdevice device;
    ASK(driver, error, cuDeviceGet, &device, index);
    IV_TRY(ask_properties(driver, device, entry, error));
    return ask_context(driver, device, entry, error);
}

static void describe_kernels(const iv_cuda_driver *driver, entry *entry) {
    iv_device_description *description = &entry->description;
    char why[IV_CUDA_WHY_BYTES];
    const iv_cuda_image *image = iv_cuda_choose_image(
        &iv_cuda_embedded_images, NULL,
        10 * description->compute_major + description->compute_minor, driver->version, why);
    if (image == NULL) {
        snprintf(entry->why, sizeof entry->why, "%s", why);
        return;
    }
    snprintf(entry->kernels, sizeof entry->kernels, "%s%s", image->architecture,
             image->kind == IV_CUDA_PTX ? " (compiled when first used)" : "");
    description->kernels = entry->kernels;
}

/* A device that does not answer is described as far as it goes. */
static void describe(const iv_cuda_driver *driver, int index, entry *entry) {
    entry->description = (iv_device_description){
        .index = index, .name = entry->name, .memory_free_bytes = -1, .why = entry->why};
    strcpy(entry->name, "name unknown");
    iv_error answer = {IV_OK, ""};
    if (ask(driver, index, entry, &answer) == IV_OK)
        describe_kernels(driver, entry);
    else
        snprintf(entry->why, sizeof entry->why, "%s", answer.message);
}

static iv_status describe_all(const iv_cuda_driver *driver, iv_device_list *list, iv_error *error) {
    list->entries = iv_allocate_array((size_t)driver->device_count, sizeof *list->entries);
    if (list->entries == NULL)
        return iv_fail_memory(error, (size_t)driver->device_count * sizeof *list->entries);
    list->count = driver->device_count;
    for (int i = 0; i < list->count; i++)
        describe(driver, i, &list->entries[i]);
    return IV_OK;
}

iv_status iv_device_read_options(const iv_device_options *given, iv_device_options *options,
                                 iv_error *error) {
    if (given == NULL)
        return IV_OK;
    if (given->struct_bytes < sizeof given->struct_bytes || given->struct_bytes > sizeof *given)
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT,
                       "iv_device_options has %zu bytes where this library knows %zu: start from "
                       "IV_DEVICE_OPTIONS_DEFAULT",
                       given->struct_bytes, sizeof *given);
    memcpy(options, given, given->struct_bytes);
    return IV_OK;
}

iv_status iv_device_list_create(const iv_device_options *given, iv_device_list **list,
                                iv_error *error) {
    iv_device_options options = IV_DEVICE_OPTIONS_DEFAULT;
    IV_TRY(iv_device_read_options(given, &options, error));
    const char *library = options.cuda_driver != NULL
                              ? options.cuda_driver
                              : iv_configuration_from_environment().cuda_driver;
    iv_device_list *created = iv_allocate_array(1, sizeof *created);
    if (created == NULL)
        return iv_fail_memory(error, sizeof *created);
    created->library = iv_duplicate_string(library);
    if (created->library == NULL) {
        iv_device_list_release(created);
        return iv_fail_memory(error, strlen(library) + 1);
    }
    created->driver.library = created->library;
    created->driver.why = created->why;
    const iv_cuda_driver *driver = NULL;
    iv_error answer = {IV_OK, ""};
    if (iv_cuda_driver_open(library, &driver, &created->driver.state, &created->driver.version,
                            &answer) != IV_OK) {
        snprintf(created->why, sizeof created->why, "%s", answer.message);
        *list = created;
        return IV_OK;
    }
    iv_status status = describe_all(driver, created, error);
    if (status != IV_OK) {
        iv_device_list_release(created);
        return status;
    }
    *list = created;
    return IV_OK;
}

void iv_device_list_release(iv_device_list *list) {
    if (list == NULL)
        return;
    iv_free(list->entries);
    iv_free(list->library);
    iv_free(list);
}

const iv_driver_description *iv_device_list_driver(const iv_device_list *list) {
    return &list->driver;
}

int iv_device_list_count(const iv_device_list *list) {
    return list->count;
}

const iv_device_description *iv_device_list_at(const iv_device_list *list, int index) {
    return &list->entries[index].description;
}
