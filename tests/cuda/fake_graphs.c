/* The fake driver: graphs. */
#include <stdlib.h>
#include <string.h>

#include "fake_internal.h"

node *add_node(struct CUgraph_st *graph, const operation *operation, int edge_count, node *const *edges) {
    node *made = calloc(1, sizeof *made);
    if (made == NULL || edge_count > MOST_EDGES)
        abort();
    made->operation = copy_operation(operation);
    made->edge_count = edge_count;
    if (edge_count > 0)
        memcpy(made->edges, edges, (size_t)edge_count * sizeof *edges);
    made->next = graph->nodes;
    graph->nodes = made;
    graph->count++;
    return made;
}

void free_graph(struct CUgraph_st *graph) {
    while (graph->nodes != NULL) {
        node *node = graph->nodes;
        graph->nodes = node->next;
        free_operation(&node->operation);
        free(node);
    }
}

void free_executable(struct CUgraphExec_st *executable) {
    for (int i = 0; i < executable->count; i++)
        free_operation(&executable->operations[i]);
    free(executable->operations);
}

static bool has_node(const struct CUgraph_st *graph, const node *wanted) {
    for (const node *node = graph->nodes; node != NULL; node = node->next) {
        if (node == wanted)
            return true;
    }
    return false;
}

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags) {
    START("%u", flags);
    *graph = add(GRAPH, sizeof **graph);
    return finish(CUDA_SUCCESS);
}

CUresult cuGraphDestroy(CUgraph graph) {
    START_GIVING_BACK("%p", (void *)graph);
    if (!is_live(GRAPH, graph)) {
        complain("a graph is destroyed that does not live");
        return finish(CUDA_ERROR_INVALID_HANDLE);
    }
    free_graph(graph);
    drop(graph);
    return finish(result);
}

static CUresult add_checked(CUgraphNode *made, CUgraph graph, const CUgraphNode *edges, size_t count,
                            const operation *operation) {
    if (!is_live(GRAPH, graph))
        return CUDA_ERROR_INVALID_HANDLE;
    for (size_t i = 0; i < count; i++) {
        if (!has_node(graph, edges[i]))
            return CUDA_ERROR_INVALID_VALUE;
    }
    *made = add_node(graph, operation, (int)count, edges);
    return CUDA_SUCCESS;
}

CUresult cuGraphAddKernelNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *edges, size_t count,
                              const CUDA_KERNEL_NODE_PARAMS *parameters) {
    START("%s, after %zu", parameters->func->name, count);
    operation kernel = {.kind = KERNEL_RUN,
                        .function = parameters->func,
                        .grid = {parameters->gridDimX, parameters->gridDimY, parameters->gridDimZ},
                        .block = {parameters->blockDimX, parameters->blockDimY, parameters->blockDimZ},
                        .shared_bytes = parameters->sharedMemBytes,
                        .parameters = parameters->func->parameter_bytes > 0 ? parameters->kernelParams[0] : NULL};
    return finish(add_checked(made, graph, edges, count, &kernel));
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                const CUgraphEdgeData *data, size_t count) {
    START("%p, %zu, type %d", (void *)graph, count, data != NULL ? data->type : 0);
    if (!is_live(GRAPH, graph))
        return finish(CUDA_ERROR_INVALID_HANDLE);
    for (size_t i = 0; i < count; i++) {
        if (to[i]->edge_count == MOST_EDGES)
            return finish(CUDA_ERROR_OUT_OF_MEMORY);
        to[i]->edges[to[i]->edge_count++] = from[i];
    }
    return finish(CUDA_SUCCESS);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *edges, size_t count,
                              const CUDA_MEMCPY3D *copy, CUcontext context) {
    START("%zu, after %zu", copy->WidthInBytes, count);
    bool to_device = copy->dstMemoryType == CU_MEMORYTYPE_DEVICE,
         from_device = copy->srcMemoryType == CU_MEMORYTYPE_DEVICE;
    if (context == NULL || copy->Height != 1 || copy->Depth != 1)
        return finish(CUDA_ERROR_INVALID_VALUE);
    operation operation = {.kind = COPY,
                           .to = to_device ? (uintptr_t)copy->dstDevice : (uintptr_t)copy->dstHost,
                           .from = from_device ? (uintptr_t)copy->srcDevice : (uintptr_t)copy->srcHost,
                           .bytes = copy->WidthInBytes,
                           .to_device = to_device,
                           .from_device = from_device};
    return finish(add_checked(made, graph, edges, count, &operation));
}

CUresult cuGraphAddMemsetNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *edges, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS *parameters, CUcontext context) {
    START("%zu, after %zu", parameters->width, count);
    if (context == NULL || parameters->height != 1 || parameters->elementSize != 1)
        return finish(CUDA_ERROR_INVALID_VALUE);
    operation fill = {.kind = FILL,
                      .to = (uintptr_t)parameters->dst,
                      .bytes = parameters->width,
                      .value = (unsigned char)parameters->value};
    return finish(add_checked(made, graph, edges, count, &fill));
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
    START("%p", (void *)graph);
    if (!is_live(GRAPH, graph))
        return finish(CUDA_ERROR_INVALID_HANDLE);
    size_t room = *count;
    *count = 0;
    for (node *node = graph->nodes; node != NULL && (nodes == NULL || *count < room); node = node->next) {
        if (nodes != NULL)
            nodes[*count] = node;
        ++*count;
    }
    return finish(CUDA_SUCCESS);
}

static bool is_ready(const node *node) {
    for (int i = 0; i < node->edge_count; i++) {
        if (!node->edges[i]->done)
            return false;
    }
    return !node->done;
}

/* The newest node that may run: as far from the order of making as the edges allow. */
static node *next_ready(const struct CUgraph_st *graph) {
    for (node *node = graph->nodes; node != NULL; node = node->next) {
        if (is_ready(node))
            return node;
    }
    return NULL;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph, unsigned long long flags) {
    START("%p, %llu", (void *)graph, flags);
    if (!is_live(GRAPH, graph))
        return finish(CUDA_ERROR_INVALID_HANDLE);
    operation *operations = calloc((size_t)graph->count + 1, sizeof *operations);
    if (operations == NULL)
        abort();
    for (node *node = graph->nodes; node != NULL; node = node->next)
        node->done = false;
    int count = 0;
    for (node *node; (node = next_ready(graph)) != NULL; node->done = true)
        operations[count++] = copy_operation(&node->operation);
    if (count < graph->count) { /* a cycle */
        for (int i = 0; i < count; i++)
            free_operation(&operations[i]);
        free(operations);
        return finish(CUDA_ERROR_INVALID_VALUE);
    }
    *executable = add(EXECUTABLE, sizeof **executable);
    (*executable)->count = count;
    (*executable)->operations = operations;
    return finish(CUDA_SUCCESS);
}

/* Whether a launch of it has not run yet. */
static bool is_in_flight(const struct CUgraphExec_st *executable) {
    for (const object *object = fake.objects; object != NULL; object = object->next) {
        if (object->kind != STREAM)
            continue;
        for (const operation *next = ((const struct CUstream_st *)object)->first; next != NULL; next = next->next) {
            if (next->executable == executable)
                return true;
        }
    }
    return false;
}

CUresult cuGraphExecDestroy(CUgraphExec executable) {
    START_GIVING_BACK("%p", (void *)executable);
    if (!is_live(EXECUTABLE, executable)) {
        complain("an executable graph is destroyed that does not live");
        return finish(CUDA_ERROR_INVALID_HANDLE);
    }
    /* After a failure there may be no way to wait. */
    if (is_in_flight(executable) && !failure_happened())
        complain("an executable graph is destroyed while it is in flight");
    free_executable(executable);
    drop(executable);
    return finish(result);
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream handle) {
    START("%p, %p", (void *)executable, (void *)handle);
    struct CUstream_st *stream = find_stream(handle);
    if (!is_live(EXECUTABLE, executable) || stream == NULL)
        return finish(CUDA_ERROR_INVALID_HANDLE);
    for (int i = 0; i < executable->count && result == CUDA_SUCCESS; i++) {
        operation operation = executable->operations[i];
        operation.executable = executable;
        result = enqueue(stream, &operation);
    }
    return finish(result);
}
