#include "cuda/contraction/engine.h"

#include "base/allocation.h"
#include "cuda/contraction/gemm16.h"
#include "cuda/driver/device_open.h"
#include "cuda/logp/logp.h"
#include "cuda/queue/staging.h"

/* ---- blocks of memory ---- */

static sb_status locate(const sb_engine *engine, const void *address, int *index, sb_error *error) {
    return sb_cuda_device_of(((const sb_cuda_engine *)engine)->device, address, index, error);
}

/* Through a stream of its own, so that whatever stream uses the bytes later finds them there. */
static sb_status copy(sb_cuda_device *device, CUdeviceptr to, const void *bytes, size_t count, sb_error *error) {
    const size_t most = (size_t)1 << 20;
    sb_cuda_stream *stream = NULL;
    sb_cuda_staging *staging = NULL;
    sb_status status = sb_cuda_stream_create(device, &stream, error);
    if (status == SB_OK)
        status = sb_cuda_staging_create(device, count < most ? count : most, &staging, error);
    if (status == SB_OK) {
        const sb_cuda_queue queue = {.stream = stream};
        status = sb_cuda_upload(staging, &queue, to, bytes, count, error);
    }
    sb_cuda_staging_destroy(staging);
    sb_cuda_stream_destroy(stream);
    return status;
}

static sb_status upload(sb_engine *engine, const void *bytes, size_t count, void **block, const void **address,
                        sb_error *error) {
    sb_cuda_device *device = sb_cuda_engine_of(engine)->device;
    sb_cuda_memory *memory;
    SB_TRY(sb_cuda_memory_create(device, count, &memory, error));
    sb_status status = copy(device, memory->address, bytes, count, error);
    if (status != SB_OK) {
        sb_cuda_memory_release(memory);
        return status;
    }
    *block = memory;
    *address = (const void *)(uintptr_t)memory->address;
    return SB_OK;
}

static void release_block(void *block) {
    sb_cuda_memory_release(block);
}

/* ---- an engine ---- */

sb_status sb_cuda_engine_stream(sb_cuda_engine *engine, void *handle, sb_cuda_stream **stream, sb_error *error) {
    /* Making a stream known allocates, so the last one is kept: a program mostly has one. */
    if (engine->stream == NULL || engine->stream->handle != handle) {
        sb_cuda_stream *other = NULL;
        SB_TRY(sb_cuda_stream_wrap(engine->device, handle, &other, error));
        sb_cuda_stream_destroy(engine->stream);
        engine->stream = other;
    }
    *stream = engine->stream;
    return SB_OK;
}

static void destroy(sb_engine *base) {
    sb_cuda_engine *engine = sb_cuda_engine_of(base);
    sb_cuda_stream_destroy(engine->stream);
    sb_cuda_device_release(engine->device);
    sb_free(engine);
}

static const sb_engine_interface interface = {
    .destroy = destroy,
    .schedule_count = sb_gemm_device_schedule_count,
    .schedule_name = sb_gemm_device_schedule_name,
    .choose = sb_gemm_device_choose,
    .run = sb_gemm_on_device,
    .logp = &sb_logp_device_steps,
    .locate = locate,
    .upload = upload,
    .release_block = release_block,
};

static sb_status load_kernels(sb_cuda_engine *engine, sb_error *error) {
    SB_TRY(sb_gemm_schedules_load(engine->device, error));
    return sb_logp_device_load(engine->device, error);
}

sb_status sb_cuda_engine_create(const sb_device *device, sb_engine **engine, sb_error *error) {
    sb_cuda_engine *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->device = sb_cuda_device_retain(sb_cuda_device_behind(device));
    fresh->base =
        (sb_engine){.interface = &interface, .device_index = fresh->device->index, .device_name = fresh->device->name};
    sb_status status = load_kernels(fresh, error);
    if (status != SB_OK) {
        destroy(&fresh->base);
        return status;
    }
    *engine = &fresh->base;
    return SB_OK;
}
