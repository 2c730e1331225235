/* The devices of this machine. See <samebit/device.h>. */
#include <stdio.h>
#include <string.h>

#include <samebit/device.h>

#include "api/device_options.h"
#include "base/allocation.h"
#include "cuda/driver/device_description.h"

struct sb_device_list {
    sb_driver_description driver;
    char *library;
    char why[SB_ERROR_MESSAGE_BYTES];
    int count;
    sb_cuda_description *entries;
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

static sb_status describe_all(const sb_cuda_driver *driver, sb_device_list *list, sb_error *error) {
    list->entries = sb_allocate_array((size_t)driver->device_count, sizeof *list->entries);
    if (list->entries == NULL)
        return sb_fail_memory(error, (size_t)driver->device_count * sizeof *list->entries);
    list->count = driver->device_count;
    for (int i = 0; i < list->count; i++)
        sb_cuda_describe_device(driver, i, &list->entries[i]);
    return SB_OK;
}

sb_status sb_device_list_create(const sb_device_options *given, sb_device_list **list, sb_error *error) {
    sb_device_options options = SB_DEVICE_OPTIONS_DEFAULT;
    SB_TRY(sb_device_read_options(given, &options, error));
    const char *library = options.cuda_driver;
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
