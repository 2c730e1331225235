#include "cuda/queue/stream.h"

#include "base/allocation.h"

sb_status sb_cuda_stream_create(sb_cuda_device *device, sb_cuda_stream **stream, sb_error *error) {
    sb_cuda_stream *created = sb_allocate_array(1, sizeof *created);
    if (created == NULL)
        return sb_fail_memory(error, sizeof *created);
    created->owned = true;
    sb_status status = sb_cuda_enter(device, error);
    if (status == SB_OK) {
        status = SB_CUDA_DO(device, error, cuStreamCreate, &created->handle, CU_STREAM_NON_BLOCKING);
        bool made = status == SB_OK;
        status = sb_cuda_leave(device, status, error);
        if (status != SB_OK && made)
            device->driver->cuStreamDestroy(created->handle);
    }
    if (status != SB_OK) {
        sb_free(created);
        return status;
    }
    created->device = sb_cuda_device_retain(device);
    *stream = created;
    return SB_OK;
}

sb_status sb_cuda_stream_wrap(sb_cuda_device *device, CUstream handle, sb_cuda_stream **stream, sb_error *error) {
    CUcontext context = NULL;
    SB_TRY(sb_cuda_enter(device, error));
    sb_status status = SB_CUDA_DO(device, error, cuStreamGetCtx, handle, &context);
    SB_TRY(sb_cuda_leave(device, status, error));
    if (context != device->context)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "the stream is not of the primary context of device %d (%s): make it there", device->index,
                       device->name);
    sb_cuda_stream *created = sb_allocate_array(1, sizeof *created);
    if (created == NULL)
        return sb_fail_memory(error, sizeof *created);
    created->handle = handle;
    created->device = sb_cuda_device_retain(device);
    *stream = created;
    return SB_OK;
}

void sb_cuda_stream_destroy(sb_cuda_stream *stream) {
    if (stream == NULL)
        return;
    sb_cuda_device *device = stream->device;
    if (stream->owned)
        SB_CUDA_GIVE_BACK(device, cuStreamDestroy, stream->handle);
    sb_free(stream);
    sb_cuda_device_release(device);
}

sb_status sb_cuda_stream_synchronize(sb_cuda_stream *stream, sb_error *error) {
    sb_cuda_device *device = stream->device;
    SB_TRY(sb_cuda_enter(device, error));
    sb_status status = SB_CUDA_DO(device, error, cuStreamSynchronize, stream->handle);
    return sb_cuda_leave(device, status, error);
}

sb_status sb_cuda_stream_wait(sb_cuda_stream *stream, const sb_cuda_event *event, sb_error *error) {
    return SB_CUDA_DO(stream->device, error, cuStreamWaitEvent, stream->handle, event->handle, 0);
}

sb_status sb_cuda_event_create(sb_cuda_device *device, bool timed, sb_cuda_event **event, sb_error *error) {
    sb_cuda_event *created = sb_allocate_array(1, sizeof *created);
    if (created == NULL)
        return sb_fail_memory(error, sizeof *created);
    sb_status status = sb_cuda_enter(device, error);
    if (status == SB_OK) {
        status = SB_CUDA_DO(device, error, cuEventCreate, &created->handle,
                            timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
        bool made = status == SB_OK;
        status = sb_cuda_leave(device, status, error);
        if (status != SB_OK && made)
            device->driver->cuEventDestroy(created->handle);
    }
    if (status != SB_OK) {
        sb_free(created);
        return status;
    }
    created->device = sb_cuda_device_retain(device);
    *event = created;
    return SB_OK;
}

void sb_cuda_event_destroy(sb_cuda_event *event) {
    if (event == NULL)
        return;
    sb_cuda_device *device = event->device;
    SB_CUDA_GIVE_BACK(device, cuEventDestroy, event->handle);
    sb_free(event);
    sb_cuda_device_release(device);
}

sb_status sb_cuda_event_record(sb_cuda_event *event, sb_cuda_stream *stream, sb_error *error) {
    return SB_CUDA_DO(event->device, error, cuEventRecord, event->handle, stream->handle);
}

sb_status sb_cuda_event_reached(const sb_cuda_event *event, bool *reached, sb_error *error) {
    sb_cuda_device *device = event->device;
    SB_TRY(sb_cuda_enter(device, error));
    CUresult result = device->driver->cuEventQuery(event->handle);
    *reached = result == CUDA_SUCCESS;
    sb_status status = result == CUDA_ERROR_NOT_READY ? SB_OK : sb_cuda_check(device, result, "cuEventQuery", error);
    return sb_cuda_leave(device, status, error);
}

sb_status sb_cuda_event_synchronize(const sb_cuda_event *event, sb_error *error) {
    sb_cuda_device *device = event->device;
    SB_TRY(sb_cuda_enter(device, error));
    sb_status status = SB_CUDA_DO(device, error, cuEventSynchronize, event->handle);
    return sb_cuda_leave(device, status, error);
}

sb_status sb_cuda_event_elapsed(const sb_cuda_event *start, const sb_cuda_event *end, double *nanoseconds,
                                sb_error *error) {
    sb_cuda_device *device = start->device;
    float milliseconds = 0;
    SB_TRY(sb_cuda_enter(device, error));
    sb_status status = SB_CUDA_DO(device, error, cuEventElapsedTime, &milliseconds, start->handle, end->handle);
    *nanoseconds = 1e6 * (double)milliseconds;
    return sb_cuda_leave(device, status, error);
}
