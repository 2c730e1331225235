#include "cuda/driver/memory.h"

#include "base/allocation.h"

/* The driver refuses to allocate nothing. */
static size_t at_least_one(size_t bytes) {
    return bytes > 0 ? bytes : 1;
}

/* Adds what a caller of sb_cuda_memory_create wants to know when memory has run out. */
static sb_status explain_out_of_memory(sb_cuda_device *device, size_t bytes, sb_error *error) {
    size_t unused = 0, total = 0;
    if (device->driver->cuMemGetInfo(&unused, &total) != CUDA_SUCCESS)
        return sb_fail_within(error, SB_ERROR_OUT_OF_MEMORY, "no room for %zu bytes: ", bytes);
    return sb_fail_within(error, SB_ERROR_OUT_OF_MEMORY, "no room for %zu bytes (%zu of %zu are free): ", bytes, unused,
                          total);
}

static void count_block(sb_cuda_device *device, long long bytes) {
    SB_CUDA_COUNT(device, device_allocations, 1);
    SB_CUDA_COUNT(device, device_blocks, 1);
    long long now = SB_CUDA_COUNT(device, device_bytes, bytes) + bytes;
    long long most = atomic_load(&device->counters.device_bytes_most);
    while (now > most && !atomic_compare_exchange_weak(&device->counters.device_bytes_most, &most, now))
        continue;
}

sb_status sb_cuda_memory_create(sb_cuda_device *device, size_t bytes, sb_cuda_memory **memory, sb_error *error) {
    sb_cuda_memory *created = sb_allocate_array(1, sizeof *created);
    if (created == NULL)
        return sb_fail_memory(error, sizeof *created);
    atomic_init(&created->references, 1);
    created->bytes = bytes;
    sb_status status = sb_cuda_enter(device, error);
    if (status == SB_OK) {
        status = SB_CUDA_DO(device, error, cuMemAlloc, &created->address, at_least_one(bytes));
        bool allocated = status == SB_OK;
        if (status == SB_ERROR_OUT_OF_MEMORY)
            explain_out_of_memory(device, bytes, error);
        status = sb_cuda_leave(device, status, error);
        if (status != SB_OK && allocated)
            device->driver->cuMemFree(created->address);
    }
    if (status != SB_OK) {
        sb_free(created);
        return status;
    }
    created->device = sb_cuda_device_retain(device);
    count_block(device, (long long)bytes);
    *memory = created;
    return SB_OK;
}

sb_cuda_memory *sb_cuda_memory_retain(sb_cuda_memory *memory) {
    atomic_fetch_add(&memory->references, 1);
    return memory;
}

void sb_cuda_memory_release(sb_cuda_memory *memory) {
    if (memory == NULL || atomic_fetch_sub(&memory->references, 1) != 1)
        return;
    sb_cuda_device *device = memory->device;
    SB_CUDA_GIVE_BACK(device, cuMemFree, memory->address);
    SB_CUDA_COUNT(device, device_blocks, -1);
    SB_CUDA_COUNT(device, device_bytes, -(long long)memory->bytes);
    sb_free(memory);
    sb_cuda_device_release(device);
}

sb_status sb_cuda_pinned_create(sb_cuda_device *device, size_t bytes, sb_cuda_pinned **pinned, sb_error *error) {
    sb_cuda_pinned *created = sb_allocate_array(1, sizeof *created);
    if (created == NULL)
        return sb_fail_memory(error, sizeof *created);
    created->bytes = bytes;
    sb_status status = sb_cuda_enter(device, error);
    if (status == SB_OK) {
        status = SB_CUDA_DO(device, error, cuMemHostAlloc, &created->data, at_least_one(bytes), 0);
        bool allocated = status == SB_OK;
        if (status == SB_ERROR_OUT_OF_MEMORY)
            sb_fail(error, status, "no room for %zu bytes of pinned host memory", bytes);
        status = sb_cuda_leave(device, status, error);
        if (status != SB_OK && allocated)
            device->driver->cuMemFreeHost(created->data);
    }
    if (status != SB_OK) {
        sb_free(created);
        return status;
    }
    created->device = sb_cuda_device_retain(device);
    SB_CUDA_COUNT(device, host_allocations, 1);
    SB_CUDA_COUNT(device, host_blocks, 1);
    SB_CUDA_COUNT(device, host_bytes, (long long)bytes);
    *pinned = created;
    return SB_OK;
}

void sb_cuda_pinned_destroy(sb_cuda_pinned *pinned) {
    if (pinned == NULL)
        return;
    sb_cuda_device *device = pinned->device;
    SB_CUDA_GIVE_BACK(device, cuMemFreeHost, pinned->data);
    SB_CUDA_COUNT(device, host_blocks, -1);
    SB_CUDA_COUNT(device, host_bytes, -(long long)pinned->bytes);
    sb_free(pinned);
    sb_cuda_device_release(device);
}

sb_status sb_cuda_device_of(sb_cuda_device *device, const void *address, int *index, sb_error *error) {
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    unsigned type = 0;
    int ordinal = -1;
    void *answers[] = {&type, &ordinal};
    SB_TRY(SB_CUDA_DO(device, error, cuPointerGetAttributes, 2, attributes, answers, (CUdeviceptr)(uintptr_t)address));
    *index = type == CU_MEMORYTYPE_DEVICE ? ordinal : -1;
    return SB_OK;
}
