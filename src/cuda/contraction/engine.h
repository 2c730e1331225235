/* Engines on a CUDA device. */
#ifndef SB_CUDA_CONTRACTION_ENGINE_H
#define SB_CUDA_CONTRACTION_ENGINE_H

#include "cuda/queue/stream.h"
#include "kernel/contraction/engine.h"
#include "kernel/device.h"

typedef struct sb_cuda_engine {
    sb_engine base;
    sb_cuda_device *device; /* one reference */
    sb_cuda_stream *stream; /* the one given last; NULL before the first */
} sb_cuda_engine;

static inline sb_cuda_engine *sb_cuda_engine_of(sb_engine *engine) {
    return (sb_cuda_engine *)engine;
}

/** An engine on a device, with the kernels of every schedule loaded: not while this thread captures a stream. The
 * caller gives it its number. Errors: UNSUPPORTED when there are no kernels for the device; DEVICE; OUT_OF_MEMORY. */
sb_status sb_cuda_engine_create(const sb_device *device, sb_engine **engine, sb_error *error);

/** The stream that a caller calls `handle`, kept until another one is asked for. Errors: INVALID_ARGUMENT when it is
 * another device's; DEVICE; OUT_OF_MEMORY. */
sb_status sb_cuda_engine_stream(sb_cuda_engine *engine, void *handle, sb_cuda_stream **stream, sb_error *error);

#endif
