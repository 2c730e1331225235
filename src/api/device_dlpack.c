/* DLPack tensors on devices. See <samebit/dlpack.h>. */
#include "base/allocation.h"
#include "kernel/device.h"
#include "tensor/dlpack.h"

/* What keeps imported memory: the structure that it came in, and the device. */
typedef struct import {
    void (*release)(void *managed);
    void *managed;
    const sb_device_interface *interface;
    void *device; /* one reference */
} import;

static void release_import(void *context) {
    import *import = context;
    import->release(import->managed);
    import->interface->release(import->device);
    sb_free(import);
}

static sb_status check_device(const sb_device *device, const DLTensor *from, sb_error *error) {
    if (from->device.device_type != kDLCUDA)
        return sb_fail(
            error, SB_ERROR_UNSUPPORTED,
            "the DLPack tensor is on device type %d: copy it to the CPU (type 1) or to CUDA device %d (type 2) "
            "first",
            (int)from->device.device_type, device->index);
    if (from->device.device_id == device->index)
        return SB_OK;
    return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                   "the DLPack tensor is on CUDA device %d, not on device %d (%s): copy it there first",
                   (int)from->device.device_id, device->index, device->name);
}

static sb_status wrap_on(sb_device *device, const DLTensor *from, uint64_t flags, void (*release)(void *managed),
                         void *managed, sb_tensor **tensor, sb_error *error) {
    if (from->device.device_type == kDLCPU)
        return sb_dlpack_wrap(from, flags, release, managed, tensor, error);
    SB_TRY(check_device(device, from, error));
    import *fresh = sb_allocate(sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    sb_status status = sb_dlpack_wrap(from, flags, release_import, fresh, tensor, error);
    if (status != SB_OK) {
        sb_free(fresh);
        return status;
    }
    *fresh = (import){release, managed, device->interface, device->interface->retain(device->handle)};
    (*tensor)->storage->device = device->handle;
    (*tensor)->storage->device_index = device->index;
    return SB_OK;
}

sb_status sb_tensor_from_dlpack_on(sb_device *device, DLManagedTensorVersioned *managed, sb_tensor **tensor,
                                   sb_error *error) {
    SB_TRY(sb_dlpack_check(managed, error));
    return wrap_on(device, &managed->dl_tensor, managed->flags, sb_dlpack_release, managed, tensor, error);
}

sb_status sb_tensor_from_dlpack_legacy_on(sb_device *device, DLManagedTensor *managed, sb_tensor **tensor,
                                          sb_error *error) {
    if (managed == NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "no DLPack tensor given");
    return wrap_on(device, &managed->dl_tensor, 0, sb_dlpack_release_legacy, managed, tensor, error);
}
