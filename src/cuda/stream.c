#include "cuda/stream.h"

#include "base/allocation.h"

iv_status iv_cuda_stream_create(iv_cuda_device *device, iv_cuda_stream **stream, iv_error *error) {
    iv_cuda_stream *created = iv_allocate_array(1, sizeof *created);
    if (created == NULL)
        return iv_fail_memory(error, sizeof *created);
    created->owned = true;
    iv_status status = iv_cuda_enter(device, error);
    if (status == IV_OK) {
        status =
            IV_CUDA_DO(device, error, cuStreamCreate, &created->handle, CU_STREAM_NON_BLOCKING);
        bool made = status == IV_OK;
        status = iv_cuda_leave(device, status, error);
        if (status != IV_OK && made)
            device->driver->cuStreamDestroy(created->handle);
    }
    if (status != IV_OK) {
        iv_free(created);
        return status;
    }
    created->device = iv_cuda_device_retain(device);
    *stream = created;
    return IV_OK;
}

iv_status iv_cuda_stream_wrap(iv_cuda_device *device, CUstream handle, iv_cuda_stream **stream,
                              iv_error *error) {
    CUcontext context = NULL;
    IV_TRY(iv_cuda_enter(device, error));
    iv_status status = IV_CUDA_DO(device, error, cuStreamGetCtx, handle, &context);
    IV_TRY(iv_cuda_leave(device, status, error));
    if (context != device->context)
        return iv_fail(error, IV_ERROR_INVALID_ARGUMENT,
                       "the stream is not of the primary context of device %d (%s): make it there",
                       device->index, device->name);
    iv_cuda_stream *created = iv_allocate_array(1, sizeof *created);
    if (created == NULL)
        return iv_fail_memory(error, sizeof *created);
    created->handle = handle;
    created->device = iv_cuda_device_retain(device);
    *stream = created;
    return IV_OK;
}

void iv_cuda_stream_destroy(iv_cuda_stream *stream) {
    if (stream == NULL)
        return;
    iv_cuda_device *device = stream->device;
    if (stream->owned)
        IV_CUDA_GIVE_BACK(device, cuStreamDestroy, stream->handle);
    iv_free(stream);
    iv_cuda_device_release(device);
}

iv_status iv_cuda_stream_synchronize(iv_cuda_stream *stream, iv_error *error) {
    iv_cuda_device *device = stream->device;
    IV_TRY(iv_cuda_enter(device, error));
    iv_status status = IV_CUDA_DO(device, error, cuStreamSynchronize, stream->handle);
    return iv_cuda_leave(device, status, error);
}

iv_status iv_cuda_stream_wait(iv_cuda_stream *stream, const iv_cuda_event *event, iv_error *error) {
    return IV_CUDA_DO(stream->device, error, cuStreamWaitEvent, stream->handle, event->handle, 0);
}

iv_status iv_cuda_event_create(iv_cuda_device *device, bool timed, iv_cuda_event **event,
                               iv_error *error) {
    iv_cuda_event *created = iv_allocate_array(1, sizeof *created);
    if (created == NULL)
        return iv_fail_memory(error, sizeof *created);
    iv_status status = iv_cuda_enter(device, error);
    if (status == IV_OK) {
        status = IV_CUDA_DO(device, error, cuEventCreate, &created->handle,
                            timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
        bool made = status == IV_OK;
        status = iv_cuda_leave(device, status, error);
        if (status != IV_OK && made)
            device->driver->cuEventDestroy(created->handle);
    }
    if (status != IV_OK) {
        iv_free(created);
        return status;
    }
    created->device = iv_cuda_device_retain(device);
    *event = created;
    return IV_OK;
}

void iv_cuda_event_destroy(iv_cuda_event *event) {
    if (event == NULL)
        return;
    iv_cuda_device *device = event->device;
    IV_CUDA_GIVE_BACK(device, cuEventDestroy, event->handle);
    iv_free(event);
    iv_cuda_device_release(device);
}

iv_status iv_cuda_event_record(iv_cuda_event *event, iv_cuda_stream *stream, iv_error *error) {
    return IV_CUDA_DO(event->device, error, cuEventRecord, event->handle, stream->handle);
}

iv_status iv_cuda_event_synchronize(iv_cuda_event *event, iv_error *error) {
    iv_cuda_device *device = event->device;
    IV_TRY(iv_cuda_enter(device, error));
    iv_status status = IV_CUDA_DO(device, error, cuEventSynchronize, event->handle);
    return iv_cuda_leave(device, status, error);
}

iv_status iv_cuda_event_elapsed(const iv_cuda_event *start, const iv_cuda_event *end,
                                double *nanoseconds, iv_error *error) {
    iv_cuda_device *device = start->device;
    float milliseconds = 0;
    IV_TRY(iv_cuda_enter(device, error));
    iv_status status =
        IV_CUDA_DO(device, error, cuEventElapsedTime, &milliseconds, start->handle, end->handle);
    *nanoseconds = 1e6 * (double)milliseconds;
    return iv_cuda_leave(device, status, error);
}
