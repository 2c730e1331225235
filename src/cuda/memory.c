#include "cuda/memory.h"

#include "base/allocation.h"

/* The driver refuses to allocate nothing. */
static size_t at_least_one(size_t bytes) {
    return bytes > 0 ? bytes : 1;
}

/* Adds what a caller of iv_cuda_memory_create wants to know when memory has run out. */
static iv_status explain_out_of_memory(iv_cuda_device *device, size_t bytes, iv_error *error) {
    size_t unused = 0, total = 0;
    if (device->driver->cuMemGetInfo(&unused, &total) != CUDA_SUCCESS)
        return iv_fail_within(error, IV_ERROR_OUT_OF_MEMORY, "no room for %zu bytes: ", bytes);
    return iv_fail_within(error, IV_ERROR_OUT_OF_MEMORY,
                          "no room for %zu bytes (%zu of %zu are free): ", bytes, unused, total);
}

iv_status iv_cuda_memory_create(iv_cuda_device *device, size_t bytes, iv_cuda_memory **memory,
                                iv_error *error) {
    iv_cuda_memory *created = iv_allocate_array(1, sizeof *created);
    if (created == NULL)
        return iv_fail_memory(error, sizeof *created);
    atomic_init(&created->references, 1);
    created->bytes = bytes;
    iv_status status = iv_cuda_enter(device, error);
    if (status == IV_OK) {
        status = IV_CUDA_DO(device, error, cuMemAlloc, &created->address, at_least_one(bytes));
        bool allocated = status == IV_OK;
        if (status == IV_ERROR_OUT_OF_MEMORY)
            explain_out_of_memory(device, bytes, error);
        status = iv_cuda_leave(device, status, error);
        if (status != IV_OK && allocated)
            device->driver->cuMemFree(created->address);
    }
    if (status != IV_OK) {
        iv_free(created);
        return status;
    }
    created->device = iv_cuda_device_retain(device);
    IV_CUDA_COUNT(device, device_allocations, 1);
    IV_CUDA_COUNT(device, device_blocks, 1);
    IV_CUDA_COUNT(device, device_bytes, (long long)bytes);
    *memory = created;
    return IV_OK;
}

iv_cuda_memory *iv_cuda_memory_retain(iv_cuda_memory *memory) {
    atomic_fetch_add(&memory->references, 1);
    return memory;
}

void iv_cuda_memory_release(iv_cuda_memory *memory) {
    if (memory == NULL || atomic_fetch_sub(&memory->references, 1) != 1)
        return;
    iv_cuda_device *device = memory->device;
    IV_CUDA_GIVE_BACK(device, cuMemFree, memory->address);
    IV_CUDA_COUNT(device, device_blocks, -1);
    IV_CUDA_COUNT(device, device_bytes, -(long long)memory->bytes);
    iv_free(memory);
    iv_cuda_device_release(device);
}

iv_status iv_cuda_pinned_create(iv_cuda_device *device, size_t bytes, iv_cuda_pinned **pinned,
                                iv_error *error) {
    iv_cuda_pinned *created = iv_allocate_array(1, sizeof *created);
    if (created == NULL)
        return iv_fail_memory(error, sizeof *created);
    created->bytes = bytes;
    iv_status status = iv_cuda_enter(device, error);
    if (status == IV_OK) {
        status = IV_CUDA_DO(device, error, cuMemHostAlloc, &created->data, at_least_one(bytes), 0);
        bool allocated = status == IV_OK;
        if (status == IV_ERROR_OUT_OF_MEMORY)
            iv_fail(error, status, "no room for %zu bytes of pinned host memory", bytes);
        status = iv_cuda_leave(device, status, error);
        if (status != IV_OK && allocated)
            device->driver->cuMemFreeHost(created->data);
    }
    if (status != IV_OK) {
        iv_free(created);
        return status;
    }
    created->device = iv_cuda_device_retain(device);
    IV_CUDA_COUNT(device, host_allocations, 1);
    IV_CUDA_COUNT(device, host_blocks, 1);
    IV_CUDA_COUNT(device, host_bytes, (long long)bytes);
    *pinned = created;
    return IV_OK;
}

void iv_cuda_pinned_destroy(iv_cuda_pinned *pinned) {
    if (pinned == NULL)
        return;
    iv_cuda_device *device = pinned->device;
    IV_CUDA_GIVE_BACK(device, cuMemFreeHost, pinned->data);
    IV_CUDA_COUNT(device, host_blocks, -1);
    IV_CUDA_COUNT(device, host_bytes, -(long long)pinned->bytes);
    iv_free(pinned);
    iv_cuda_device_release(device);
}

iv_status iv_cuda_device_of(iv_cuda_device *device, const void *address, int *index, iv_error *error) {
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    unsigned type = 0;
    int ordinal = -1;
    void *answers[] = {&type, &ordinal};
    IV_TRY(IV_CUDA_DO(device, error, cuPointerGetAttributes, 2, attributes, answers, (CUdeviceptr)(uintptr_t)address));
    *index = type == CU_MEMORYTYPE_DEVICE ? ordinal : -1;
    return IV_OK;
}
