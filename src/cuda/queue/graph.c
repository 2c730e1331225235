#include "cuda/queue/graph.h"

#include <string.h>

#include "base/allocation.h"

/* ---- what both ways share ---- */

static void add_list(sb_cuda_counters *counters, const sb_cuda_task_list *list) {
    for (int i = 0; i < sb_cuda_task_list_count(list); i++) {
        sb_cuda_task task = sb_cuda_task_list_at(list, i);
        sb_cuda_task_count(&task, counters);
    }
}

/* Makes `captured` executable, and destroys it in any case. */
static sb_status instantiate(sb_cuda_device *device, CUgraph captured, const sb_cuda_task_list *list,
                             sb_cuda_graph **graph, sb_error *error) {
    sb_cuda_graph *made = sb_allocate_array(1, sizeof *made);
    sb_status status = made != NULL ? SB_OK : sb_fail_memory(error, sizeof *made);
    if (status == SB_OK)
        status = SB_CUDA_DO(device, error, cuGraphInstantiateWithFlags, &made->executable, captured, 0);
    device->driver->cuGraphDestroy(captured);
    if (status != SB_OK) {
        sb_free(made);
        return status;
    }
    made->device = sb_cuda_device_retain(device);
    made->task_count = sb_cuda_task_list_count(list);
    add_list(&made->tasks, list);
    *graph = made;
    return SB_OK;
}

void sb_cuda_graph_destroy(sb_cuda_graph *graph) {
    if (graph == NULL)
        return;
    sb_cuda_device *device = graph->device;
    SB_CUDA_GIVE_BACK(device, cuGraphExecDestroy, graph->executable);
    sb_free(graph);
    sb_cuda_device_release(device);
}

sb_status sb_cuda_graph_launch(const sb_cuda_graph *graph, sb_cuda_stream *stream, sb_error *error) {
    sb_cuda_device *device = graph->device;
    SB_TRY(SB_CUDA_DO(device, error, cuGraphLaunch, graph->executable, stream->handle));
    sb_cuda_device_count(device, &graph->tasks);
    SB_CUDA_COUNT(device, graph_launches, 1);
    return SB_OK;
}

/* ---- capturing ---- */

sb_status sb_cuda_capture_begin(const sb_cuda_queue *queue, sb_error *error) {
    sb_cuda_stream *stream = queue->stream;
    if (queue->record == NULL || queue->trace != NULL || stream->capturing)
        return sb_fail(error, SB_ERROR_INTERNAL, "a captured queue has a list, no trace, and is not captured already");
    sb_cuda_task_list_clear(queue->record);
    SB_TRY(
        SB_CUDA_DO(stream->device, error, cuStreamBeginCapture, stream->handle, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    stream->capturing = true;
    return SB_OK;
}

static sb_status check_captured(const sb_cuda_queue *queue, CUgraph captured, sb_error *error) {
    sb_cuda_device *device = queue->stream->device;
    int recorded = sb_cuda_task_list_count(queue->record);
    size_t nodes = 0;
    SB_TRY(SB_CUDA_DO(device, error, cuGraphGetNodes, captured, NULL, &nodes));
    if (nodes != (size_t)recorded)
        return sb_fail(error, SB_ERROR_INTERNAL,
                       "%zu tasks were captured and %d recorded: something bypasses sb_cuda_launch", nodes, recorded);
    return SB_OK;
}

sb_status sb_cuda_capture_end(const sb_cuda_queue *queue, sb_status status, sb_cuda_graph **graph, sb_error *error) {
    sb_cuda_device *device = queue->stream->device;
    CUgraph captured = NULL;
    /* In any case: only this makes the stream usable again. */
    CUresult ended = device->driver->cuStreamEndCapture(queue->stream->handle, &captured);
    queue->stream->capturing = false;
    if (status == SB_OK)
        status = sb_cuda_check(device, ended, "cuStreamEndCapture", error);
    if (status == SB_OK)
        status = check_captured(queue, captured, error);
    if (status != SB_OK) {
        if (captured != NULL)
            device->driver->cuGraphDestroy(captured);
        return status;
    }
    return instantiate(device, captured, queue->record, graph, error);
}

/* ---- building ---- */

typedef struct builder {
    sb_cuda_device *device;
    const sb_cuda_task_list *list;
    int count;
    bool dependent_launch;
    CUgraph graph;
    CUgraphNode *nodes, *edges; /* `count` each; edges are those of the node in the making … */
    CUgraphNode *early;         /* … and those of them that go from kernel to kernel, with dependent launch */
    size_t early_count;
    bool is_settled;  /* whether the node in the making may read something ahead */
    uint64_t *before; /* bit sets: what comes before each node, by any way */
    size_t words;     /* of a set */
    int edge_count;   /* of all nodes */
    int settled_count;
} builder;

static bool is_before(const builder *builder, int node, int other) {
    return (builder->before[(size_t)node * builder->words + (size_t)other / 64] >> other % 64 & 1) != 0;
}

static void put_before(builder *builder, int node, int other) {
    uint64_t *set = &builder->before[(size_t)node * builder->words];
    const uint64_t *others = &builder->before[(size_t)other * builder->words];
    for (size_t i = 0; i < builder->words; i++)
        set[i] |= others[i];
    set[other / 64] |= (uint64_t)1 << other % 64;
}

/* The most bytes that a kernel's parameters are. */
#define MOST_PARAMETERS 4096

/* Whether the task may read something ahead, since no kernel before it writes that. What was given to the stream before the graph has ended
 * when the graph begins, and copies and fills when any kernel begins that comes behind them: it does by an edge to a kernel that waits for
 * their end, since the task touches the range itself. */
static bool is_settled(const builder *builder, int index, const sb_cuda_task *task) {
    const sb_cuda_settled *settled = &task->kernel.settled;
    const sb_cuda_task reading = {.kind = SB_CUDA_KERNEL,
                                  .kernel = {.range_count = settled->count, .ranges = settled->ranges}};
    if (!builder->dependent_launch || task->kind != SB_CUDA_KERNEL || settled->place == 0 ||
        task->kernel.kernel->parameter_bytes > MOST_PARAMETERS)
        return false;
    for (int other = 0; other < index; other++) {
        const sb_cuda_task earlier = sb_cuda_task_list_at(builder->list, other);
        if (earlier.kind == SB_CUDA_KERNEL && sb_cuda_tasks_conflict(&reading, &earlier))
            return false;
    }
    return true;
}

/* Whether a task may be launched before those that it waits for have ended. */
static bool is_early(const builder *builder, const sb_cuda_task *task) {
    if (!builder->dependent_launch || task->kind != SB_CUDA_KERNEL)
        return false;
    return !task->kernel.apart || (task->kernel.settled.comes_early && builder->is_settled);
}

/* From the latest conflict back: whatever that one waits for needs no edge. */
static size_t find_edges(builder *builder, int node, const sb_cuda_task *task) {
    const bool comes_early = is_early(builder, task);
    size_t count = 0;
    for (int other = node - 1; other >= 0; other--) {
        if (is_before(builder, node, other))
            continue;
        sb_cuda_task earlier = sb_cuda_task_list_at(builder->list, other);
        if (!sb_cuda_tasks_conflict(task, &earlier))
            continue;
        if (comes_early && earlier.kind == SB_CUDA_KERNEL)
            builder->early[builder->early_count++] = builder->nodes[other];
        else
            builder->edges[count++] = builder->nodes[other];
        put_before(builder, node, other);
    }
    return count;
}

/* Edges from kernels that let a kernel start early: it waits by itself, in its first instructions,
 * until they have ended. */
static sb_status add_early_edges(const builder *builder, CUgraphNode node, sb_error *error) {
    CUgraphEdgeData data = {.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                            .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    for (size_t i = 0; i < builder->early_count; i++)
        SB_TRY(SB_CUDA_DO(builder->device, error, cuGraphAddDependencies, builder->graph, &builder->early[i], &node,
                          &data, 1));
    return SB_OK;
}

static sb_status add_kernel(builder *builder, int index, size_t edges, const sb_cuda_task *whole, sb_error *error) {
    const sb_cuda_kernel_task *task = &whole->kernel;
    CUgraphNode *node = &builder->nodes[index];
    unsigned char own[MOST_PARAMETERS]; /* the driver copies them */
    void *parameters[] = {(void *)(uintptr_t)task->parameters};
    if (builder->is_settled) {
        const int32_t settled = SB_CUDA_SETTLED;
        memcpy(own, task->parameters, task->kernel->parameter_bytes);
        memcpy(own + task->settled.place, &settled, sizeof settled);
        parameters[0] = own;
        builder->settled_count++;
    }
    CUDA_KERNEL_NODE_PARAMS given = {
        .func = task->kernel->function,
        .gridDimX = task->grid[0],
        .gridDimY = task->grid[1],
        .gridDimZ = task->grid[2],
        .blockDimX = task->block[0],
        .blockDimY = task->block[1],
        .blockDimZ = task->block[2],
        .sharedMemBytes = task->shared_bytes,
        .kernelParams = parameters,
    };
    return SB_CUDA_DO(builder->device, error, cuGraphAddKernelNode, node, builder->graph, builder->edges, edges,
                      &given);
}

static sb_status add_copy(builder *builder, CUgraphNode *node, size_t edges, const sb_cuda_task *task,
                          sb_error *error) {
    bool from_host = task->kind == SB_CUDA_COPY_TO_DEVICE, to_host = task->kind == SB_CUDA_COPY_TO_HOST;
    const sb_cuda_copy_task *copy = &task->copy;
    CUDA_MEMCPY3D given = {
        .srcMemoryType = from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
        .srcHost = from_host ? (const void *)(uintptr_t)copy->from : NULL,
        .srcDevice = from_host ? 0 : copy->from,
        .srcPitch = copy->bytes,
        .srcHeight = 1,
        .dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
        .dstHost = to_host ? (void *)(uintptr_t)copy->to : NULL,
        .dstDevice = to_host ? 0 : copy->to,
        .dstPitch = copy->bytes,
        .dstHeight = 1,
        .WidthInBytes = copy->bytes,
        .Height = 1,
        .Depth = 1,
    };
    return SB_CUDA_DO(builder->device, error, cuGraphAddMemcpyNode, node, builder->graph, builder->edges, edges, &given,
                      builder->device->context);
}

static sb_status add_fill(builder *builder, CUgraphNode *node, size_t edges, const sb_cuda_fill_task *fill,
                          sb_error *error) {
    CUDA_MEMSET_NODE_PARAMS given = {.dst = fill->to,
                                     .pitch = fill->bytes,
                                     .value = fill->value,
                                     .elementSize = 1,
                                     .width = fill->bytes,
                                     .height = 1};
    return SB_CUDA_DO(builder->device, error, cuGraphAddMemsetNode, node, builder->graph, builder->edges, edges, &given,
                      builder->device->context);
}

static sb_status add_node(builder *builder, int index, sb_error *error) {
    sb_cuda_task task = sb_cuda_task_list_at(builder->list, index);
    CUgraphNode *node = &builder->nodes[index];
    builder->early_count = 0;
    builder->is_settled = is_settled(builder, index, &task);
    size_t edges = find_edges(builder, index, &task);
    builder->edge_count += (int)(edges + builder->early_count);
    switch (task.kind) {
    case SB_CUDA_KERNEL:
        SB_TRY(add_kernel(builder, index, edges, &task, error));
        return add_early_edges(builder, *node, error);
    case SB_CUDA_COPY_TO_DEVICE:
    case SB_CUDA_COPY_TO_HOST:
    case SB_CUDA_COPY_ON_DEVICE:
        return add_copy(builder, node, edges, &task, error);
    case SB_CUDA_FILL:
        return add_fill(builder, node, edges, &task.fill, error);
    }
    return sb_fail(error, SB_ERROR_INTERNAL, "a task of unknown kind %d", (int)task.kind);
}

/* With the device's context current. */
static sb_status build_entered(builder *builder, sb_cuda_graph **graph, sb_error *error) {
    sb_cuda_device *device = builder->device;
    SB_TRY(SB_CUDA_DO(device, error, cuGraphCreate, &builder->graph, 0));
    for (int i = 0; i < builder->count; i++) {
        sb_status status = add_node(builder, i, error);
        if (status != SB_OK) {
            device->driver->cuGraphDestroy(builder->graph);
            return status;
        }
    }
    SB_TRY(instantiate(device, builder->graph, builder->list, graph, error));
    (*graph)->edge_count = builder->edge_count;
    (*graph)->settled_count = builder->settled_count;
    return SB_OK;
}

static sb_status allocate(builder *builder, sb_error *error) {
    size_t count = (size_t)builder->count, set_words = 0;
    builder->words = (count + 63) / 64;
    builder->nodes = sb_allocate_array(count, sizeof *builder->nodes);
    builder->edges = sb_allocate_array(count, sizeof *builder->edges);
    builder->early = sb_allocate_array(count, sizeof *builder->early);
    if (!__builtin_mul_overflow(count, builder->words, &set_words))
        builder->before = sb_allocate_array(set_words, sizeof *builder->before);
    if (builder->nodes == NULL || builder->edges == NULL || builder->early == NULL || builder->before == NULL)
        return sb_fail_memory(error, set_words * sizeof *builder->before);
    return SB_OK;
}

sb_status sb_cuda_graph_build(sb_cuda_device *device, const sb_cuda_task_list *list, bool dependent_launch,
                              sb_cuda_graph **graph, sb_error *error) {
    builder builder = {.device = device,
                       .list = list,
                       .count = sb_cuda_task_list_count(list),
                       .dependent_launch = dependent_launch && device->compute >= 90};
    sb_cuda_graph *built = NULL;
    sb_status status = allocate(&builder, error);
    if (status == SB_OK)
        status = sb_cuda_enter(device, error);
    if (status == SB_OK) {
        status = build_entered(&builder, &built, error);
        status = sb_cuda_leave(device, status, error);
    }
    sb_free(builder.nodes);
    sb_free(builder.edges);
    sb_free(builder.early);
    sb_free(builder.before);
    if (status != SB_OK) {
        sb_cuda_graph_destroy(built);
        return status;
    }
    *graph = built;
    return SB_OK;
}
