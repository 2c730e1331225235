/* The fake driver: streams, events, what runs in them, and capture. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_internal.h"

/* ---- running ---- */

operation copy_operation(const operation *from) {
    operation copy = *from;
    copy.next = NULL;
    if (from->kind == KERNEL_RUN && from->parameters != NULL) {
        copy.parameters = malloc(from->function->parameter_bytes);
        if (copy.parameters == NULL)
            abort();
        memcpy(copy.parameters, from->parameters, from->function->parameter_bytes);
    }
    return copy;
}

void free_operation(operation *operation) {
    free(operation->parameters);
    operation->parameters = NULL;
}

static CUresult lose(const struct CUstream_st *stream, CUresult result) {
    set_sticky(stream->object.context->device, result);
    return result;
}

static CUresult run_copy(struct CUstream_st *stream, const operation *copy) {
    bool to_inside = inside(copy->to_device ? MEMORY : HOST_MEMORY, copy->to, copy->bytes);
    bool from_inside = inside(copy->from_device ? MEMORY : HOST_MEMORY, copy->from, copy->bytes);
    if (copy->bytes == 0)
        return CUDA_SUCCESS;
    if (!to_inside || !from_inside) {
        complain("a copy of %zu bytes runs when its memory is gone", copy->bytes);
        return lose(stream, CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    memmove((void *)copy->to, (const void *)copy->from, copy->bytes);
    return CUDA_SUCCESS;
}

static CUresult run_fill(struct CUstream_st *stream, const operation *fill) {
    if (!inside(MEMORY, fill->to, fill->bytes)) {
        complain("a fill of %zu bytes runs when its memory is gone", fill->bytes);
        return lose(stream, CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    memset((void *)fill->to, fill->value, fill->bytes);
    return CUDA_SUCCESS;
}

static CUresult run_kernel(struct CUstream_st *stream, const operation *kernel) {
    if (fake.broken_kernel != 0) {
        CUresult result = fake.broken_kernel;
        fake.broken_kernel = 0;
        return lose(stream, result);
    }
    if (kernel->function->run != NULL)
        kernel->function->run(kernel->parameters, kernel->grid, kernel->block, kernel->shared_bytes);
    return CUDA_SUCCESS;
}

static CUresult run(struct CUstream_st *stream, const operation *operation) {
    fake.clock += 0.001;
    switch (operation->kind) {
    case KERNEL_RUN:
        return run_kernel(stream, operation);
    case COPY:
        return run_copy(stream, operation);
    case FILL:
        return run_fill(stream, operation);
    case EVENT_RECORD:
        operation->event->done = operation->ticket;
        operation->event->milliseconds = fake.clock;
        return CUDA_SUCCESS;
    case EVENT_WAIT:
        return operation->event->done < operation->ticket ? drain(operation->event->stream) : CUDA_SUCCESS;
    }
    return CUDA_ERROR_UNKNOWN;
}

/* Operations behind one that has lost the device are dropped. */
CUresult drain(struct CUstream_st *stream) {
    static int depth; /* streams drain others that they wait for */
    if (stream->first != NULL && depth++ == 0)
        allow_device_memory(true);
    else if (stream->first == NULL)
        return fake.sticky[stream->object.context->device];
    while (stream->first != NULL) {
        operation *operation = stream->first;
        stream->first = operation->next;
        if (stream->first == NULL)
            stream->last = NULL;
        if (fake.sticky[stream->object.context->device] == CUDA_SUCCESS)
            run(stream, operation);
        free_operation(operation);
        free(operation);
    }
    if (--depth == 0)
        allow_device_memory(false);
    return fake.sticky[stream->object.context->device];
}

CUresult drain_all(void) {
    for (object *object = fake.objects; object != NULL; object = object->next) {
        if (object->kind == STREAM)
            drain((struct CUstream_st *)object);
    }
    for (int i = 0; i < FAKE_MOST_DEVICES; i++) {
        if (fake.contexts[i].legacy != NULL)
            drain(fake.contexts[i].legacy);
    }
    return CUDA_SUCCESS;
}

void free_stream(struct CUstream_st *stream) {
    while (stream->first != NULL) {
        operation *operation = stream->first;
        stream->first = operation->next;
        free_operation(operation);
        free(operation);
    }
}

/* ---- capture ---- */

static CUresult invalidate(capture *capture, CUresult result) {
    capture->invalid = true;
    return result;
}

CUresult forbid_while_capturing(void) {
    for (capture *capture = fake.captures; capture != NULL; capture = capture->next) {
        bool own = pthread_equal(capture->thread, pthread_self()) != 0;
        if (capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
            (capture->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && own))
            return invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    return CUDA_SUCCESS;
}

/* The legacy stream waits for every blocking stream of its context: not possible while one is captured. */
static CUresult check_legacy(const struct CUstream_st *stream) {
    for (capture *capture = fake.captures; capture != NULL && stream->legacy; capture = capture->next) {
        if (capture->origin->blocking && capture->origin->object.context == stream->object.context)
            return invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    }
    return CUDA_SUCCESS;
}

static bool add_edges(int *count, node **edges, int more, node *const *others) {
    for (int i = 0; i < more; i++) {
        bool known = false;
        for (int j = 0; j < *count; j++)
            known = known || edges[j] == others[i];
        if (known)
            continue;
        if (*count == MOST_EDGES)
            return false;
        edges[(*count)++] = others[i];
    }
    return true;
}

static void leave_capture(const capture *capture) {
    for (object *object = fake.objects; object != NULL; object = object->next) {
        struct CUstream_st *stream = (struct CUstream_st *)object;
        struct CUevent_st *event = (struct CUevent_st *)object;
        if (object->kind == STREAM && stream->capture == capture) {
            stream->capture = NULL;
            stream->edge_count = 0;
        }
        if (object->kind == EVENT && event->capture == capture) {
            event->capture = NULL;
            event->edge_count = 0;
        }
    }
}

static void end_capture(capture *ended) {
    leave_capture(ended);
    for (capture **link = &fake.captures; *link != NULL; link = &(*link)->next) {
        if (*link == ended) {
            *link = ended->next;
            break;
        }
    }
    free(ended);
}

void forget_captures(void) {
    while (fake.captures != NULL)
        end_capture(fake.captures);
}

CUresult cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
    START("%p, %d", (void *)handle, mode);
    struct CUstream_st *stream = find_stream(handle);
    if (stream == NULL)
        return finish(CUDA_ERROR_INVALID_HANDLE);
    if (stream->legacy)
        return finish(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (stream->capture != NULL)
        return finish(CUDA_ERROR_INVALID_VALUE);
    capture *begun = calloc(1, sizeof *begun);
    if (begun == NULL)
        abort();
    *begun = (capture){.mode = mode, .thread = pthread_self(), .origin = stream, .next = fake.captures};
    begun->graph = add(GRAPH, sizeof *begun->graph);
    fake.captures = begun;
    stream->capture = begun;
    stream->edge_count = 0;
    return finish(CUDA_SUCCESS);
}

/* Whether `wanted` is one of the nodes or comes before one of them. */
static bool reaches(const node *wanted, int count, node *const *nodes) {
    for (int i = 0; i < count; i++) {
        if (nodes[i] == wanted || reaches(wanted, nodes[i]->edge_count, nodes[i]->edges))
            return true;
    }
    return false;
}

static bool all_joined(const capture *capture) {
    const struct CUstream_st *origin = capture->origin;
    for (const object *object = fake.objects; object != NULL; object = object->next) {
        const struct CUstream_st *stream = (const struct CUstream_st *)object;
        if (object->kind != STREAM || stream->capture != capture)
            continue;
        for (int i = 0; i < stream->edge_count; i++) {
            if (!reaches(stream->edges[i], origin->edge_count, origin->edges))
                return false;
        }
    }
    return true;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph) {
    START_GIVING_BACK("%p", (void *)handle);
    struct CUstream_st *stream = find_stream(handle);
    *graph = NULL;
    if (stream == NULL || stream->capture == NULL)
        return finish(CUDA_ERROR_INVALID_VALUE);
    capture *capture = stream->capture;
    if (capture->origin != stream)
        return finish(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && pthread_equal(capture->thread, pthread_self()) == 0)
        return finish(invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD));
    struct CUgraph_st *captured = capture->graph;
    if (result == CUDA_SUCCESS && capture->invalid)
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (result == CUDA_SUCCESS && !all_joined(capture))
        result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    end_capture(capture);
    if (result == CUDA_SUCCESS) {
        *graph = captured;
    } else {
        free_graph(captured);
        drop(captured);
    }
    return finish(result);
}

/* ---- giving work to streams ---- */

/* The legacy stream, for the handle NULL, is made when it is first wanted. */
struct CUstream_st *find_stream(CUstream handle) {
    struct CUctx_st *context = current_context();
    if (handle == NULL && context != NULL) {
        if (context->legacy == NULL) {
            context->legacy = calloc(1, sizeof *context->legacy);
            if (context->legacy == NULL)
                abort();
            context->legacy->legacy = context->legacy->blocking = true;
            context->legacy->object.context = context;
        }
        return context->legacy;
    }
    if (handle != NULL && is_live(STREAM, handle))
        return handle;
    complain("a stream is used that does not live");
    return NULL;
}

static void append(struct CUstream_st *stream, const operation *given) {
    operation *copy = malloc(sizeof *copy);
    if (copy == NULL)
        abort();
    *copy = copy_operation(given);
    if (stream->last != NULL)
        stream->last->next = copy;
    else
        stream->first = copy;
    stream->last = copy;
}

/* Blocking streams and the legacy stream run in the order of the calls. */
static void keep_legacy_order(struct CUstream_st *stream) {
    struct CUctx_st *context = stream->object.context;
    if (!stream->blocking)
        return;
    for (object *object = fake.objects; object != NULL; object = object->next) {
        struct CUstream_st *other = (struct CUstream_st *)object;
        if (object->kind == STREAM && object->context == context && other->blocking && stream->legacy)
            drain(other);
    }
    if (!stream->legacy && context->legacy != NULL)
        drain(context->legacy);
}

CUresult enqueue(struct CUstream_st *stream, const operation *operation) {
    CUresult result = check_legacy(stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture == NULL) {
        keep_legacy_order(stream);
        append(stream, operation);
        return CUDA_SUCCESS;
    }
    if (stream->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    stream->edges[0] = add_node(stream->capture->graph, operation, stream->edge_count, stream->edges);
    stream->edge_count = 1;
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
    START("%s, %ux%ux%u, %ux%ux%u, %u, %p", function->name, config->gridDimX, config->gridDimY, config->gridDimZ,
          config->blockDimX, config->blockDimY, config->blockDimZ, config->sharedMemBytes, (void *)config->hStream);
    struct CUstream_st *stream = find_stream(config->hStream);
    if (stream == NULL)
        return finish(CUDA_ERROR_INVALID_HANDLE);
    if (config->gridDimX == 0 || config->gridDimY == 0 || config->gridDimZ == 0 ||
        config->blockDimX * config->blockDimY * config->blockDimZ == 0)
        return finish(CUDA_ERROR_INVALID_VALUE);
    operation kernel = {.kind = KERNEL_RUN,
                        .function = function,
                        .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                        .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                        .shared_bytes = config->sharedMemBytes,
                        .parameters = function->parameter_bytes > 0 ? parameters[0] : NULL};
    return finish(enqueue(stream, &kernel));
}

/* A copy whose side of the host is ordinary memory: the driver takes what is there now, or waits.
 * While capturing, the node would read whatever is at that address at the time of the replay, so
 * the fake refuses. */
static CUresult copy_pageable(struct CUstream_st *stream, const operation *copy) {
    if (stream->capture != NULL)
        return invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    keep_legacy_order(stream);
    CUresult result = drain(stream);
    if (result == CUDA_SUCCESS)
        memmove((void *)copy->to, (const void *)copy->from, copy->bytes);
    return result;
}

static CUresult copy(CUstream handle, const operation *copy) {
    struct CUstream_st *stream = find_stream(handle);
    if (stream == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    bool to_inside = inside(copy->to_device ? MEMORY : HOST_MEMORY, copy->to, copy->bytes);
    bool from_inside = inside(copy->from_device ? MEMORY : HOST_MEMORY, copy->from, copy->bytes);
    if ((copy->to_device && !to_inside) || (copy->from_device && !from_inside)) {
        complain("a copy of %zu bytes reaches outside device memory", copy->bytes);
        return CUDA_ERROR_INVALID_VALUE;
    }
    return to_inside && from_inside ? enqueue(stream, copy) : copy_pageable(stream, copy);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    START("%#llx, %p, %zu, %p", to, from, bytes, (void *)stream);
    return finish(copy(
        stream,
        &(operation){.kind = COPY, .to = (uintptr_t)to, .from = (uintptr_t)from, .bytes = bytes, .to_device = true}));
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    START("%p, %#llx, %zu, %p", to, from, bytes, (void *)stream);
    return finish(copy(
        stream,
        &(operation){.kind = COPY, .to = (uintptr_t)to, .from = (uintptr_t)from, .bytes = bytes, .from_device = true}));
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    START("%#llx, %#llx, %zu, %p", to, from, bytes, (void *)stream);
    return finish(copy(stream, &(operation){.kind = COPY,
                                            .to = (uintptr_t)to,
                                            .from = (uintptr_t)from,
                                            .bytes = bytes,
                                            .to_device = true,
                                            .from_device = true}));
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream handle) {
    START("%#llx, %d, %zu, %p", to, value, count, (void *)handle);
    struct CUstream_st *stream = find_stream(handle);
    if (stream == NULL)
        return finish(CUDA_ERROR_INVALID_HANDLE);
    if (!inside(MEMORY, (uintptr_t)to, count)) {
        complain("a fill of %zu bytes reaches outside device memory", count);
        return finish(CUDA_ERROR_INVALID_VALUE);
    }
    return finish(enqueue(stream, &(operation){.kind = FILL, .to = (uintptr_t)to, .bytes = count, .value = value}));
}

/* ---- streams ---- */

CUresult cuStreamCreate(CUstream *stream, unsigned int flags) {
    START("%u", flags);
    if (current_context() == NULL)
        return finish(CUDA_ERROR_INVALID_CONTEXT);
    *stream = add(STREAM, sizeof **stream);
    (*stream)->blocking = flags != CU_STREAM_NON_BLOCKING;
    return finish(CUDA_SUCCESS);
}

CUresult cuStreamDestroy(CUstream handle) {
    START_GIVING_BACK("%p", (void *)handle);
    struct CUstream_st *stream = handle != NULL ? find_stream(handle) : NULL;
    if (stream == NULL)
        return finish(CUDA_ERROR_INVALID_HANDLE);
    if (stream->capture != NULL) {
        complain("a stream is destroyed while it is captured");
        if (stream->capture->origin == stream) {
            struct CUgraph_st *graph = stream->capture->graph;
            end_capture(stream->capture);
            free_graph(graph);
            drop(graph);
        }
    }
    /* What was given to it still runs. */
    drain(stream);
    for (object *object = fake.objects; object != NULL; object = object->next) {
        if (object->kind == EVENT && ((struct CUevent_st *)object)->stream == stream)
            ((struct CUevent_st *)object)->stream = NULL;
    }
    drop(stream);
    return finish(result);
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *context) {
    START("%p", (void *)handle);
    const struct CUstream_st *stream = find_stream(handle);
    if (stream == NULL)
        return finish(CUDA_ERROR_INVALID_HANDLE);
    *context = stream->object.context;
    return finish(CUDA_SUCCESS);
}

CUresult cuStreamSynchronize(CUstream handle) {
    START("%p", (void *)handle);
    struct CUstream_st *stream = find_stream(handle);
    if (stream == NULL)
        return finish(CUDA_ERROR_INVALID_HANDLE);
    if (stream->capture != NULL)
        return finish(invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
    result = check_legacy(stream);
    if (result != CUDA_SUCCESS)
        return finish(result);
    keep_legacy_order(stream);
    return finish(drain(stream));
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags) {
    START("%p, %p, %u", (void *)handle, (void *)event, flags);
    struct CUstream_st *stream = find_stream(handle);
    if (stream == NULL || !is_live(EVENT, event))
        return finish(CUDA_ERROR_INVALID_HANDLE);
    if (event->capture == NULL) {
        if (stream->capture != NULL)
            return finish(invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION));
        operation wait = {.kind = EVENT_WAIT, .event = event, .ticket = event->ticket};
        return finish(event->ticket > 0 ? enqueue(stream, &wait) : CUDA_SUCCESS);
    }
    if (stream->legacy)
        return finish(invalidate(event->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT));
    if (stream->capture != NULL && stream->capture != event->capture) {
        stream->capture->invalid = true;
        return finish(invalidate(event->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE));
    }
    stream->capture = event->capture;
    if (!add_edges(&stream->edge_count, stream->edges, event->edge_count, event->edges))
        abort();
    return finish(CUDA_SUCCESS);
}

/* ---- events ---- */

CUresult cuEventCreate(CUevent *event, unsigned int flags) {
    START("%u", flags);
    if (current_context() == NULL)
        return finish(CUDA_ERROR_INVALID_CONTEXT);
    *event = add(EVENT, sizeof **event);
    (*event)->timed = (flags & CU_EVENT_DISABLE_TIMING) == 0;
    return finish(CUDA_SUCCESS);
}

CUresult cuEventDestroy(CUevent event) {
    START_GIVING_BACK("%p", (void *)event);
    if (!is_live(EVENT, event)) {
        complain("an event is destroyed that does not live");
        return finish(CUDA_ERROR_INVALID_HANDLE);
    }
    /* Streams may still have it before them. */
    drain_all();
    drop(event);
    return finish(result);
}

CUresult cuEventRecord(CUevent event, CUstream handle) {
    START("%p, %p", (void *)event, (void *)handle);
    struct CUstream_st *stream = find_stream(handle);
    if (stream == NULL || !is_live(EVENT, event))
        return finish(CUDA_ERROR_INVALID_HANDLE);
    if (stream->capture != NULL) {
        if (stream->capture->invalid)
            return finish(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        event->capture = stream->capture;
        event->edge_count = stream->edge_count;
        memcpy(event->edges, stream->edges, sizeof event->edges);
        return finish(CUDA_SUCCESS);
    }
    event->capture = NULL;
    event->stream = stream;
    operation record = {.kind = EVENT_RECORD, .event = event, .ticket = ++event->ticket};
    return finish(enqueue(stream, &record));
}

/* What asks an event must not do so while the event, or this thread, is in a capture. */
static CUresult check_event(CUevent event) {
    if (!is_live(EVENT, event))
        return CUDA_ERROR_INVALID_HANDLE;
    if (event->capture != NULL)
        return invalidate(event->capture, CUDA_ERROR_CAPTURED_EVENT);
    return forbid_while_capturing();
}

/* Asking moves nothing on: the event happens when somebody waits. */
CUresult cuEventQuery(CUevent event) {
    START("%p", (void *)event);
    result = check_event(event);
    if (result == CUDA_SUCCESS && event->done < event->ticket)
        result = CUDA_ERROR_NOT_READY;
    return finish(result);
}

CUresult cuEventSynchronize(CUevent event) {
    START("%p", (void *)event);
    result = check_event(event);
    if (result == CUDA_SUCCESS && event->done < event->ticket)
        result = drain(event->stream);
    return finish(result);
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end) {
    START("%p, %p", (void *)begin, (void *)end);
    if (!is_live(EVENT, begin) || !is_live(EVENT, end) || !begin->timed || !end->timed || begin->ticket == 0 ||
        end->ticket == 0)
        return finish(CUDA_ERROR_INVALID_HANDLE);
    if (begin->done < begin->ticket || end->done < end->ticket)
        return finish(CUDA_ERROR_NOT_READY);
    *milliseconds = (float)(end->milliseconds - begin->milliseconds);
    return finish(CUDA_SUCCESS);
}
