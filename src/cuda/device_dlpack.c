/* DLPack tensors on devices. See <invar/dlpack.h>. */
#include "base/allocation.h"
#include "cuda/device_open.h"
#include "tensor/dlpack.h"

/* What keeps imported memory: the structure that it came in, and the device. */
typedef struct import {
    void (*release)(void *managed);
    void *managed;
    iv_cuda_device *device;
} import;

static void release_import(void *context) {
    import *import = context;
    import->release(import->managed);
    iv_cuda_device_release(import->device);
    iv_free(import);
}

static iv_status check_device(const iv_device *device, const DLTensor *from, iv_error *error) {
    if (from->device.device_type != kDLCUDA)
        return iv_fail(error, IV_ERROR_UNSUPPORTED,
                       "the DLPack tensor is on device type %d: copy it to the CPU (type 1) or to CUDA device %d (type 2) "
                       "first",
                       (int)from->device.device_type, device->cuda->index);
    if (from->device.device_id == device->cuda->index)
        return IV_OK;
    return iv_fail(error, IV_ERROR_INVALID_ARGUMENT,
                   "the DLPack tensor is on CUDA device %d, not on device %d (%s): copy it there first",
                   (int)from->device.device_id, device->cuda->index, device->cuda->name);
}

static iv_status wrap_on(iv_device *device, const DLTensor *from, void (*release)(void *managed), void *managed,
                         iv_tensor **tensor, iv_error *error) {
    if (from->device.device_type == kDLCPU)
        return iv_dlpack_wrap(from, release, managed, tensor, error);
    IV_TRY(check_device(device, from, error));
    import *fresh = iv_allocate(sizeof *fresh);
    if (fresh == NULL)
        return iv_fail_memory(error, sizeof *fresh);
    iv_status status = iv_dlpack_wrap(from, release_import, fresh, tensor, error);
    if (status != IV_OK) {
        iv_free(fresh);
        return status;
    }
    *fresh = (import){release, managed, iv_cuda_device_retain(device->cuda)};
    (*tensor)->storage->device = device->cuda;
    (*tensor)->storage->device_index = device->cuda->index;
    return IV_OK;
}

iv_status iv_tensor_from_dlpack_on(iv_device *device, DLManagedTensorVersioned *managed, iv_tensor **tensor,
                                   iv_error *error) {
    IV_TRY(iv_dlpack_check(managed, error));
    return wrap_on(device, &managed->dl_tensor, iv_dlpack_release, managed, tensor, error);
}

iv_status iv_tensor_from_dlpack_legacy_on(iv_device *device, DLManagedTensor *managed, iv_tensor **tensor,
                                          iv_error *error) {
    if (managed == NULL)
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT, "no DLPack tensor given");
    return wrap_on(device, &managed->dl_tensor, iv_dlpack_release_legacy, managed, tensor, error);
}
