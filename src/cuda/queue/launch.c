#include <stdint.h>
#include <string.h>

#include "cuda/queue/task.h"
#include "cuda/queue/trace.h"

const char *sb_cuda_task_name(const sb_cuda_task *task) {
    switch (task->kind) {
    case SB_CUDA_KERNEL:
        return task->kernel.kernel->name;
    case SB_CUDA_COPY_TO_DEVICE:
        return "copy to device";
    case SB_CUDA_COPY_TO_HOST:
        return "copy to host";
    case SB_CUDA_COPY_ON_DEVICE:
        return "copy on device";
    case SB_CUDA_FILL:
        return "fill";
    }
    return "unknown task";
}

/* ---- hazards ---- */

int sb_cuda_task_ranges(const sb_cuda_task *task, sb_cuda_range room[2], const sb_cuda_range **ranges) {
    *ranges = room;
    switch (task->kind) {
    case SB_CUDA_KERNEL:
        *ranges = task->kernel.ranges;
        return task->kernel.range_count;
    case SB_CUDA_COPY_TO_DEVICE:
    case SB_CUDA_COPY_TO_HOST:
    case SB_CUDA_COPY_ON_DEVICE:
        room[0] = (sb_cuda_range){task->copy.to, task->copy.bytes, true};
        room[1] = (sb_cuda_range){task->copy.from, task->copy.bytes, false};
        return 2;
    case SB_CUDA_FILL:
        room[0] = (sb_cuda_range){task->fill.to, task->fill.bytes, true};
        return 1;
    }
    return 0;
}

static bool ranges_conflict(const sb_cuda_range *one, const sb_cuda_range *other) {
    return (one->written || other->written) && one->bytes > 0 && other->bytes > 0 &&
           one->address < other->address + other->bytes && other->address < one->address + one->bytes;
}

bool sb_cuda_tasks_conflict(const sb_cuda_task *one, const sb_cuda_task *other) {
    sb_cuda_range one_room[2], other_room[2];
    const sb_cuda_range *one_ranges, *other_ranges;
    int one_count = sb_cuda_task_ranges(one, one_room, &one_ranges);
    int other_count = sb_cuda_task_ranges(other, other_room, &other_ranges);
    for (int i = 0; i < one_count; i++) {
        for (int j = 0; j < other_count; j++) {
            if (ranges_conflict(&one_ranges[i], &other_ranges[j]))
                return true;
        }
    }
    return false;
}

/* ---- launching ---- */

/* What the driver would answer with no more than "invalid value". */
static sb_status check_kernel(const sb_cuda_device *device, const sb_cuda_kernel_task *task, sb_error *error) {
    const unsigned *grid = task->grid, *block = task->block;
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (grid[0] < 1 || grid[1] < 1 || grid[2] < 1 || grid[0] > INT32_MAX || grid[1] > UINT16_MAX ||
        grid[2] > UINT16_MAX)
        return sb_fail(error, SB_ERROR_INTERNAL, "kernel %s: a grid of %ux%ux%u blocks is not possible",
                       task->kernel->name, grid[0], grid[1], grid[2]);
    if (threads < 1 || block[0] > 1024 || block[1] > 1024 || block[2] > 64 ||
        threads > (uint64_t)task->kernel->most_threads)
        return sb_fail(error, SB_ERROR_INTERNAL, "kernel %s: %ux%ux%u threads are not possible; a block can have %d",
                       task->kernel->name, block[0], block[1], block[2], task->kernel->most_threads);
    if ((uint64_t)task->shared_bytes + (uint64_t)task->kernel->static_shared_bytes > (uint64_t)device->shared_bytes)
        return sb_fail(error, SB_ERROR_INTERNAL,
                       "kernel %s: %u bytes of shared memory are not possible; a block can have %d", task->kernel->name,
                       task->shared_bytes, device->shared_bytes);
    return SB_OK;
}

static sb_status execute_kernel(sb_cuda_stream *stream, const sb_cuda_kernel_task *task, bool dependent_launch,
                                sb_error *error) {
    SB_TRY(check_kernel(stream->device, task, error));
    CUlaunchAttribute early = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                               .value = {.programmaticStreamSerializationAllowed = 1}};
    CUlaunchConfig config = {
        .gridDimX = task->grid[0],
        .gridDimY = task->grid[1],
        .gridDimZ = task->grid[2],
        .blockDimX = task->block[0],
        .blockDimY = task->block[1],
        .blockDimZ = task->block[2],
        .sharedMemBytes = task->shared_bytes,
        .hStream = stream->handle,
        .attrs = &early,
        .numAttrs = dependent_launch && stream->device->compute >= 90 ? 1 : 0,
    };
    /* The driver copies the struct before it returns, and does not write to it. */
    void *parameters[] = {(void *)(uintptr_t)task->parameters};
    sb_status status =
        SB_CUDA_DO(stream->device, error, cuLaunchKernelEx, &config, task->kernel->function, parameters, NULL);
    return status == SB_OK ? SB_OK : sb_fail_within(error, status, "kernel %s: ", task->kernel->name);
}

static sb_status execute(const sb_cuda_queue *queue, const sb_cuda_task *task, sb_error *error) {
    sb_cuda_stream *stream = queue->stream;
    sb_cuda_device *device = stream->device;
    const sb_cuda_copy_task *copy = &task->copy;
    switch (task->kind) {
    case SB_CUDA_KERNEL:
        /* Between events a kernel is measured, and for itself. */
        return execute_kernel(stream, &task->kernel,
                              queue->dependent_launch && !task->kernel.apart && queue->trace == NULL, error);
    case SB_CUDA_COPY_TO_DEVICE:
        return SB_CUDA_DO(device, error, cuMemcpyHtoDAsync, copy->to, (const void *)(uintptr_t)copy->from, copy->bytes,
                          stream->handle);
    case SB_CUDA_COPY_TO_HOST:
        return SB_CUDA_DO(device, error, cuMemcpyDtoHAsync, (void *)(uintptr_t)copy->to, copy->from, copy->bytes,
                          stream->handle);
    case SB_CUDA_COPY_ON_DEVICE:
        return SB_CUDA_DO(device, error, cuMemcpyDtoDAsync, copy->to, copy->from, copy->bytes, stream->handle);
    case SB_CUDA_FILL:
        return SB_CUDA_DO(device, error, cuMemsetD8Async, task->fill.to, task->fill.value, task->fill.bytes,
                          stream->handle);
    }
    return sb_fail(error, SB_ERROR_INTERNAL, "a task of unknown kind %d", (int)task->kind);
}

void sb_cuda_task_count(const sb_cuda_task *task, sb_cuda_counters *counters) {
    switch (task->kind) {
    case SB_CUDA_KERNEL:
        counters->kernels++;
        break;
    case SB_CUDA_COPY_TO_DEVICE:
        counters->copies_to_device++;
        counters->bytes_to_device += (int64_t)task->copy.bytes;
        break;
    case SB_CUDA_COPY_TO_HOST:
        counters->copies_to_host++;
        counters->bytes_to_host += (int64_t)task->copy.bytes;
        break;
    case SB_CUDA_COPY_ON_DEVICE:
        counters->copies_on_device++;
        break;
    case SB_CUDA_FILL:
        counters->fills++;
        break;
    }
}

static bool is_nothing(const sb_cuda_task *task) {
    return task->kind == SB_CUDA_FILL ? task->fill.bytes == 0 : task->kind != SB_CUDA_KERNEL && task->copy.bytes == 0;
}

sb_status sb_cuda_launch(const sb_cuda_queue *queue, const sb_cuda_task *task, sb_error *error) {
    if (is_nothing(task))
        return SB_OK;
    /* Recorded first, since that can run out of memory: a task is never carried out without its record. */
    if (queue->record != NULL)
        SB_TRY(sb_cuda_task_list_append(queue->record, task, error));
    if (queue->only_records)
        return SB_OK;
    sb_status status = SB_OK;
    if (queue->trace != NULL)
        status = sb_cuda_trace_begin(queue->trace, queue->stream, task, error);
    if (status == SB_OK)
        status = execute(queue, task, error);
    if (status != SB_OK) {
        if (queue->record != NULL)
            sb_cuda_task_list_drop_last(queue->record);
        return status;
    }
    /* What is captured is counted when it is launched. */
    if (!queue->stream->capturing) {
        sb_cuda_counters counters = {0};
        sb_cuda_task_count(task, &counters);
        sb_cuda_device_count(queue->stream->device, &counters);
    }
    return queue->trace != NULL ? sb_cuda_trace_end(queue->trace, queue->stream, error) : SB_OK;
}

/* ---- arrivals ---- */

sb_status sb_cuda_arrivals_create(sb_cuda_queue *queue, sb_cuda_memory **memory, sb_error *error) {
    const size_t bytes = SB_CUDA_ARRIVALS * sizeof(uint32_t);
    SB_TRY(sb_cuda_memory_create(queue->stream->device, bytes, memory, error));
    const sb_cuda_task clearing = {
        .kind = SB_CUDA_FILL, .step = -1, .fill = {.to = (*memory)->address, .bytes = bytes, .value = 0}};
    sb_status status = sb_cuda_launch(queue, &clearing, error);
    if (status != SB_OK) {
        sb_cuda_memory_release(*memory);
        *memory = NULL;
        return status;
    }
    queue->arrivals = (uint32_t *)(uintptr_t)(*memory)->address;
    return SB_OK;
}
