#include "cuda/queue/run_queue.h"

#include "base/allocation.h"
#include "cuda/common/compute.h"
#include "cuda/list.h"
#include "cuda/queue/graph.h"
#include "cuda/queue/join.h"
#include "cuda/queue/mailbox.h"
#include "cuda/queue/trace.h"

/* Bytes of each of the pinned blocks that copies go through: large enough that a block's fixed costs (some 10 us) do
 * not show beside its transfer (20 GB/s and more). */
#define STAGING_BYTES (4u << 20)

static sb_cuda_run_queue *own(sb_queue *queue) {
    return (sb_cuda_run_queue *)queue;
}

/* ---- a device ---- */

static void *retain_device(void *handle) {
    return sb_cuda_device_retain(handle);
}

static void release_device(void *handle) {
    sb_cuda_device_release(handle);
}

static void count(void *handle, sb_device_counters *counters) {
    sb_cuda_counters all = sb_cuda_device_counters(handle);
    *counters = (sb_device_counters){
        .device_allocations = all.device_allocations,
        .device_bytes = all.device_bytes,
        .device_bytes_most = all.device_bytes_most,
        .copies_to_device = all.copies_to_device,
        .bytes_to_device = all.bytes_to_device,
        .copies_to_host = all.copies_to_host,
        .bytes_to_host = all.bytes_to_host,
        .copies_on_device = all.copies_on_device,
        .kernels = all.kernels,
        .graph_launches = all.graph_launches,
    };
}

static bool is_lost(const void *handle) {
    return atomic_load(&((const sb_cuda_device *)handle)->is_lost);
}

static sb_status enter(void *handle, sb_error *error) {
    return sb_cuda_enter(handle, error);
}

static sb_status leave(void *handle, sb_status status, sb_error *error) {
    return sb_cuda_leave(handle, status, error);
}

/* ---- a queue ---- */

static void destroy_queue(sb_queue *queue) {
    sb_cuda_run_queue *run = own(queue);
    if (run->tasks.stream != NULL)
        (void)sb_cuda_stream_synchronize(run->tasks.stream, NULL);
    sb_cuda_block_pool_close(run->pool);
    sb_cuda_staging_destroy(run->staging);
    sb_cuda_memory_release(run->arrivals);
    sb_cuda_stream_destroy(run->tasks.stream);
    sb_cuda_device_release(queue->device);
    sb_free(run);
}

static sb_status fill_queue(sb_cuda_run_queue *queue, void *stream, sb_error *error) {
    sb_cuda_device *device = queue->base.device;
    if (stream != NULL)
        SB_TRY(sb_cuda_stream_wrap(device, stream, &queue->tasks.stream, error));
    else
        SB_TRY(sb_cuda_stream_create(device, &queue->tasks.stream, error));
    SB_TRY(sb_cuda_staging_create(device, STAGING_BYTES, &queue->staging, error));
    SB_TRY(sb_cuda_enter(device, error));
    SB_TRY(sb_cuda_leave(device, sb_cuda_arrivals_create(&queue->tasks, &queue->arrivals, error), error));
    return sb_cuda_block_pool_create(queue, error);
}

static sb_status create_queue(void *handle, void *stream, bool dependent_launch, sb_queue **queue, sb_error *error) {
    sb_cuda_device *device = handle;
    sb_cuda_run_queue *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    fresh->base = (sb_queue){.interface = &sb_cuda_device_interface,
                             .device = sb_cuda_device_retain(device),
                             .device_index = device->index,
                             .target = &fresh->tasks};
    fresh->tasks.dependent_launch = dependent_launch;
    sb_status status = fill_queue(fresh, stream, error);
    if (status != SB_OK) {
        destroy_queue(&fresh->base);
        return status;
    }
    *queue = &fresh->base;
    return SB_OK;
}

static sb_status wait_for_stream(void *handle, void *stream, sb_error *error) {
    sb_cuda_device *device = handle;
    SB_TRY(sb_cuda_enter(device, error));
    sb_status status = SB_CUDA_DO(device, error, cuStreamSynchronize, stream);
    return sb_cuda_leave(device, status, error);
}

static sb_status wait_for(sb_queue *queue, sb_error *error) {
    return sb_cuda_stream_synchronize(own(queue)->tasks.stream, error);
}

/* ---- marks ---- */

static sb_status create_mark(sb_queue *queue, sb_mark **mark, sb_error *error) {
    return sb_cuda_event_create(queue->device, false, (sb_cuda_event **)mark, error);
}

static void destroy_mark(sb_mark *mark) {
    sb_cuda_event_destroy((sb_cuda_event *)mark);
}

static sb_status set_mark(sb_queue *queue, sb_mark *mark, sb_error *error) {
    return sb_cuda_event_record((sb_cuda_event *)mark, own(queue)->tasks.stream, error);
}

static sb_status ask_mark(const sb_mark *mark, bool *reached, sb_error *error) {
    return sb_cuda_event_reached((const sb_cuda_event *)mark, reached, error);
}

static sb_status wait_for_mark(const sb_mark *mark, sb_error *error) {
    return sb_cuda_event_synchronize((const sb_cuda_event *)mark, error);
}

/* ---- memory of the host ---- */

/* A block for users, over the pinned memory that it stands for. */
typedef struct pinned_block {
    sb_host_block base;
    sb_cuda_pinned *pinned;
} pinned_block;

static sb_status create_host_block(sb_queue *queue, size_t bytes, sb_host_block **block, sb_error *error) {
    pinned_block *fresh = sb_allocate_array(1, sizeof *fresh);
    if (fresh == NULL)
        return sb_fail_memory(error, sizeof *fresh);
    sb_status status = sb_cuda_pinned_create(queue->device, bytes, &fresh->pinned, error);
    if (status != SB_OK) {
        sb_free(fresh);
        return status;
    }
    fresh->base = (sb_host_block){fresh->pinned->data, bytes};
    *block = &fresh->base;
    return SB_OK;
}

static void destroy_host_block(sb_host_block *block) {
    sb_cuda_pinned_destroy(((pinned_block *)block)->pinned);
    sb_free(block);
}

/* ---- copies ---- */

static CUdeviceptr address_of(const sb_tensor *tensor) {
    return (CUdeviceptr)(uintptr_t)tensor->data;
}

static size_t bytes_of(const sb_tensor *tensor) {
    return (size_t)sb_tensor_elements(tensor) * sb_dtype_size(tensor->dtype);
}

static sb_status upload(sb_queue *queue, const sb_tensor *to, sb_tensor *from, sb_error *error) {
    sb_tensor *dense;
    SB_TRY(sb_tensor_contiguous(from, &dense, error));
    sb_status status =
        sb_cuda_upload_later(own(queue)->staging, &own(queue)->tasks, address_of(to), dense->data, bytes_of(to), error);
    sb_tensor_release(dense);
    return status;
}

static sb_status copy(sb_queue *queue, int step, const sb_tensor *to, const sb_tensor *from, sb_error *error) {
    const sb_cuda_kernel *kernel;
    SB_TRY(sb_cuda_find_copy(queue->device, to->dtype, &kernel, error));
    return sb_cuda_launch_copy(&own(queue)->tasks, step, kernel, to, from, error);
}

/* A view is packed on the device first. */
static sb_status pack(sb_queue *queue, const sb_tensor *from, sb_tensor **packed, sb_error *error) {
    sb_storage *storage;
    SB_TRY(sb_queue_storage(queue, bytes_of(from), &storage, error));
    sb_status status = sb_tensor_over(storage, storage->data, from->dtype, from->rank, from->dims, NULL, packed, error);
    sb_storage_release(storage);
    if (status != SB_OK)
        return status;
    status = copy(queue, -1, *packed, from, error);
    if (status != SB_OK)
        sb_tensor_release(*packed);
    return status;
}

static sb_status download(sb_queue *queue, const sb_tensor *to, const sb_tensor *from, sb_error *error) {
    sb_tensor *packed = NULL;
    if (!sb_tensor_is_contiguous(from))
        SB_TRY(pack(queue, from, &packed, error));
    sb_status status = sb_cuda_download(own(queue)->staging, &own(queue)->tasks, to->data,
                                        address_of(packed != NULL ? packed : from), bytes_of(to), error);
    sb_tensor_release(packed);
    return status;
}

static sb_status fetch(sb_queue *queue, void *to, const sb_tensor *from, sb_error *error) {
    sb_tensor *packed = NULL;
    if (!sb_tensor_is_contiguous(from))
        SB_TRY(pack(queue, from, &packed, error));
    sb_cuda_task task = {.kind = SB_CUDA_COPY_TO_HOST,
                         .step = -1,
                         .copy = {.to = (CUdeviceptr)(uintptr_t)to,
                                  .from = address_of(packed != NULL ? packed : from),
                                  .bytes = bytes_of(from)}};
    sb_status status = sb_cuda_launch(&own(queue)->tasks, &task, error);
    sb_tensor_release(packed); /* whoever gets the memory next comes behind in the queue */
    return status;
}

static sb_status clear(sb_queue *queue, const sb_tensor *tensor, sb_error *error) {
    sb_cuda_task task = {
        .kind = SB_CUDA_FILL, .step = -1, .fill = {.to = address_of(tensor), .bytes = bytes_of(tensor), .value = 0}};
    return sb_cuda_launch(&own(queue)->tasks, &task, error);
}

/* ---- recording ---- */

static void forget_record(sb_cuda_run_queue *queue) {
    sb_cuda_task_list_destroy(queue->tasks.record);
    queue->tasks.record = NULL;
    queue->base.is_recording = queue->base.is_capturing = false;
}

static sb_status record(sb_queue *queue, bool capture, sb_error *error) {
    sb_cuda_run_queue *run = own(queue);
    SB_TRY(sb_cuda_task_list_create(&run->tasks.record, error));
    sb_status status = capture ? sb_cuda_capture_begin(&run->tasks, error) : SB_OK;
    if (status != SB_OK) {
        forget_record(run);
        return status;
    }
    queue->is_recording = true;
    queue->is_capturing = capture;
    return SB_OK;
}

static sb_status build(sb_cuda_run_queue *run, sb_cuda_graph **graph, sb_error *error) {
    sb_cuda_device *device = run->base.device;
    sb_cuda_task_list *joined = NULL;
    SB_TRY(sb_cuda_tasks_join(device, run->tasks.record, &joined, error));
    sb_status status = sb_cuda_graph_build(device, joined, run->tasks.dependent_launch, graph, error);
    sb_cuda_task_list_destroy(joined);
    return status;
}

static sb_status stop(sb_queue *queue, sb_status status, sb_recording **recording, sb_error *error) {
    sb_cuda_run_queue *run = own(queue);
    sb_cuda_graph *graph = NULL;
    if (queue->is_capturing)
        status = sb_cuda_capture_end(&run->tasks, status, &graph, error);
    else if (status == SB_OK)
        status = build(run, &graph, error);
    forget_record(run);
    if (status == SB_OK)
        *recording = (sb_recording *)graph;
    return status;
}

static sb_status launch(sb_queue *queue, const sb_recording *recording, sb_error *error) {
    return sb_cuda_graph_launch((const sb_cuda_graph *)recording, own(queue)->tasks.stream, error);
}

static void measure_recording(const sb_recording *recording, int64_t *tasks, int64_t *edges) {
    const sb_cuda_graph *graph = (const sb_cuda_graph *)recording;
    *tasks = graph->task_count;
    *edges = graph->edge_count;
}

static void destroy_recording(sb_recording *recording) {
    sb_cuda_graph_destroy((sb_cuda_graph *)recording);
}

/* ---- measuring ---- */

static sb_status create_trace(sb_queue *queue, sb_trace **trace, sb_error *error) {
    return sb_cuda_trace_create(queue->device, (sb_cuda_trace **)trace, error);
}

static void destroy_trace(sb_trace *trace) {
    sb_cuda_trace_destroy((sb_cuda_trace *)trace);
}

static sb_status restart_trace(sb_queue *queue, sb_trace *trace, sb_error *error) {
    return sb_cuda_trace_restart((sb_cuda_trace *)trace, own(queue)->tasks.stream, error);
}

static void attach_trace(sb_queue *queue, sb_trace *trace) {
    own(queue)->tasks.trace = (sb_cuda_trace *)trace;
}

static int trace_count(const sb_trace *trace) {
    return sb_cuda_trace_count((const sb_cuda_trace *)trace);
}

static sb_status trace_task(const sb_trace *trace, int index, sb_measured_task *task, sb_error *error) {
    sb_cuda_span span;
    SB_TRY(sb_cuda_trace_span((const sb_cuda_trace *)trace, index, &span, error));
    *task = (sb_measured_task){span.name, span.start_ns, span.end_ns};
    return SB_OK;
}

const sb_device_interface sb_cuda_device_interface = {
    .retain = retain_device,
    .release = release_device,
    .count = count,
    .is_lost = is_lost,
    .find_kernel = sb_cuda_find_kernel,
    .enter = enter,
    .leave = leave,
    .create_queue = create_queue,
    .wait_for_stream = wait_for_stream,
    .destroy_queue = destroy_queue,
    .wait = wait_for,
    .create_mark = create_mark,
    .destroy_mark = destroy_mark,
    .set_mark = set_mark,
    .ask_mark = ask_mark,
    .wait_for_mark = wait_for_mark,
    .storage = sb_cuda_run_queue_storage,
    .storage_at = sb_cuda_run_queue_storage_at,
    .create_host_block = create_host_block,
    .destroy_host_block = destroy_host_block,
    .create_mailbox = sb_cuda_mailbox_create,
    .destroy_mailbox = sb_cuda_mailbox_destroy,
    .receive = sb_cuda_mailbox_receive,
    .leave_words = sb_cuda_mailbox_leave,
    .collect_words = sb_cuda_mailbox_collect,
    .upload = upload,
    .download = download,
    .fetch = fetch,
    .clear = clear,
    .copy = copy,
    .record = record,
    .stop = stop,
    .launch = launch,
    .measure_recording = measure_recording,
    .destroy_recording = destroy_recording,
    .create_trace = create_trace,
    .destroy_trace = destroy_trace,
    .restart_trace = restart_trace,
    .attach_trace = attach_trace,
    .trace_count = trace_count,
    .trace_task = trace_task,
};
