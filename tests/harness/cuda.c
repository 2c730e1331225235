/* Nodes by a device's kernels: over the fake driver, which runs the kernels' sources
 * on the host, or over a real one. */
#include "harness/harness.h"

#include "base/allocation.h"
#include "cuda/common/compute.h"
#include "cuda/host_kernels.h"
#include "cuda/list.h"
#include "cuda/queue/graph.h"
#include "cuda/queue/staging.h"
#include "cuda/with_fake.h"

struct harness_device {
    const fake_cuda_control *fake; /* NULL over a real driver */
    sb_cuda_device *device;
    sb_cuda_queue queue;
    sb_cuda_staging *staging;
    sb_cuda_pinned *fault;
    sb_cuda_memory *arrivals;
};

void harness_open_device(harness *h) {
    static harness_device only;
    const sb_cuda_driver *driver = NULL;
    if (h->device != NULL)
        return;
    only = (harness_device){0};
    if (h->driver == NULL) {
        only.fake = fresh_fake();
        define_host_kernels(only.fake);
    }
    MUST(sb_cuda_driver_open(h->driver != NULL ? h->driver : FAKE_CUDA, &driver, NULL, NULL, error));
    MUST(sb_cuda_device_open(driver, 0, only.fake != NULL ? &host_images : NULL, &only.device, error));
    MUST(sb_cuda_stream_create(only.device, &only.queue.stream, error));
    MUST(sb_cuda_staging_create(only.device, 1 << 16, &only.staging, error));
    MUST(sb_cuda_pinned_create(only.device, 64, &only.fault, error));
    MUST(sb_cuda_enter(only.device, error));
    MUST(sb_cuda_arrivals_create(&only.queue, &only.arrivals, error));
    MUST(sb_cuda_leave(only.device, SB_OK, error));
    h->device = &only;
}

/* Blocks that counted themselves have left nothing behind. */
static void check_arrivals(const harness_device *own) {
    uint32_t words[SB_CUDA_ARRIVALS];
    MUST(sb_cuda_enter(own->device, error));
    MUST(sb_cuda_download(own->staging, &own->queue, (char *)words, own->arrivals->address, sizeof words, error));
    MUST(sb_cuda_leave(own->device, SB_OK, error));
    for (int i = 0; i < SB_CUDA_ARRIVALS; i++) {
        if (words[i] != 0)
            harness_fail("%u blocks have counted themselves in word %d and nobody has set it back", words[i], i);
    }
}

void harness_choose_attention(harness *h, sb_cuda_attention_choice choice) {
    if ((h->sides & HARNESS_CUDA) != 0 && !h->list) {
        harness_open_device(h);
        sb_cuda_attention_choose(h->device->device, choice);
    }
}

void harness_close_device(harness *h) {
    harness_device *own = h->device;
    if (own == NULL)
        return;
    h->device = NULL;
    check_arrivals(own);
    sb_cuda_memory_release(own->arrivals);
    sb_cuda_pinned_destroy(own->fault);
    sb_cuda_staging_destroy(own->staging);
    sb_cuda_stream_destroy(own->queue.stream);
    sb_cuda_device_release(own->device);
    if (own->fake != NULL)
        check_nothing_lives(own->fake);
}

/* ---- tensors ---- */

static void release_memory(void *memory) {
    sb_cuda_memory_release(memory);
}

/* The tensor's whole storage on the device, and the same view of it. */
static sb_tensor *to_device(const harness_device *own, const sb_tensor *host) {
    sb_cuda_memory *memory = NULL;
    sb_tensor *tensor = NULL;
    size_t before = (size_t)(host->data - (char *)host->storage->data);
    MUST(sb_cuda_memory_create(own->device, host->storage->bytes, &memory, error));
    MUST(sb_cuda_upload(own->staging, &own->queue, memory->address, host->storage->data, host->storage->bytes, error));
    MUST(sb_tensor_wrap(host->dtype, host->rank, host->dims, host->strides,
                        (void *)(uintptr_t)(memory->address + before), release_memory, memory, &tensor, error));
    tensor->storage->device = own->device;
    return tensor;
}

/* A tensor of the device's, on the host and contiguous. */
static sb_tensor *to_host(const harness_device *own, const sb_tensor *device) {
    sb_tensor *tensor = NULL, *packed = NULL;
    sb_cuda_range range = sb_cuda_tensor_range(device, false);
    char *data = malloc(range.bytes + 1);
    assert_non_null(data);
    MUST(sb_cuda_download(own->staging, &own->queue, data, range.address, range.bytes, error));
    MUST(sb_tensor_wrap(device->dtype, device->rank, device->dims, device->strides,
                        data + ((uintptr_t)device->data - range.address), NULL, NULL, &tensor, error));
    MUST(sb_tensor_create(device->dtype, device->rank, device->dims, &packed, error));
    sb_tensor_copy_elements(packed, tensor);
    sb_tensor_release(tensor);
    free(data);
    return packed;
}

/* ---- what a call needs ---- */

typedef struct device_frame {
    sb_frame frame;
    const harness_device *own;
    sb_tensor *workspace[32];
    int workspace_count;
    sb_tensor *outputs[HARNESS_OUTPUTS]; /* bytes that were asked for, kept while a recording writes to them */
    const int64_t *table;                /* where the used extents are; NULL: none is used partly */
    const uint32_t *used_axes;           /* of each input */
    sb_tensor *const *known;             /* inputs whose elements are in the table; NULL: none's */
} device_frame;

static sb_status allocate(device_frame *frame, size_t bytes, sb_tensor **tensor, sb_error *error) {
    sb_cuda_memory *memory = NULL;
    int64_t size = (int64_t)bytes;
    SB_TRY(sb_cuda_memory_create(frame->own->device, bytes, &memory, error));
    SB_TRY(sb_tensor_wrap(SB_U8, 1, &size, NULL, (void *)(uintptr_t)memory->address, release_memory, memory, tensor,
                          error));
    (*tensor)->storage->device = frame->own->device;
    return SB_OK;
}

static sb_status allocate_output(sb_frame *frame, const sb_call *call, int index, size_t bytes, sb_storage **storage,
                                 char **data) {
    sb_tensor *tensor = NULL;
    SB_TRY(allocate((device_frame *)frame, bytes, &tensor, call->error));
    *storage = sb_storage_retain(tensor->storage);
    *data = tensor->data;
    sb_tensor_release(((device_frame *)frame)->outputs[index]);
    ((device_frame *)frame)->outputs[index] = tensor;
    return SB_OK;
}

static sb_status allocate_workspace(sb_frame *frame, const sb_call *call, size_t bytes, void **memory) {
    device_frame *own = (device_frame *)frame;
    assert_true(own->workspace_count < 32);
    sb_tensor **tensor = &own->workspace[own->workspace_count++];
    SB_TRY(allocate(own, bytes, tensor, call->error));
    *memory = (*tensor)->data;
    return SB_OK;
}

static sb_status copy(sb_frame *frame, const sb_call *call, sb_tensor *to, const sb_tensor *from) {
    const sb_cuda_kernel *kernel;
    SB_TRY(sb_cuda_find_copy(sb_cuda_call_device(call), to->dtype, &kernel, call->error));
    return sb_cuda_launch_copy(sb_cuda_call_queue(call), call->target->step, kernel, to, from, call->error);
}

/* ---- a run ---- */

/* The kernel, which is asked before the run with the values known beforehand, as a plan does. */
static const sb_kernel *find_kernel(const harness_device *own, const harness_node *node, void **state, char *why) {
    const sb_kernel *kernel = NULL;
    harness_facts facts;
    MUST(harness_facts_make(node, node->constants, &facts, error));
    sb_kernel_query query = {
        .node = node->node, .inputs = facts.pointers, .outputs = facts.outputs, .device = own->device};
    MUST(sb_cuda_find_kernel(&query, &kernel, why, error));
    *state = NULL;
    if (kernel != NULL && kernel->prepare != NULL)
        MUST(kernel->prepare(&query, state, error));
    harness_facts_clear(&facts);
    return kernel;
}

static const int64_t *used(sb_frame *frame, const sb_call *call, int input, int axis) {
    const device_frame *own = (device_frame *)frame;
    return own->table != NULL && (own->used_axes[input] >> axis & 1) != 0 ? own->table : NULL;
}

/* Behind the used extent, for each input room for its elements. */
static const int64_t *known(sb_frame *frame, const sb_call *call, int input) {
    const device_frame *own = (device_frame *)frame;
    bool there = own->table != NULL && own->known != NULL && own->known[input] != NULL;
    return there ? own->table + 1 + input * HARNESS_KNOWN : NULL;
}

static sb_status read_workspace(sb_frame *frame, const sb_call *call, void *to, const void *from, size_t bytes) {
    const harness_device *own = ((device_frame *)frame)->own;
    return sb_cuda_download(own->staging, &own->queue, to, (CUdeviceptr)(uintptr_t)from, bytes, call->error);
}

static device_frame frame_of(const harness_device *own) {
    return (device_frame){.frame = {.allocate = allocate_output,
                                    .workspace = allocate_workspace,
                                    .copy = copy,
                                    .used = used,
                                    .known = known,
                                    .read = read_workspace},
                          .own = own};
}

static void release_frame(device_frame *frame) {
    for (int i = 0; i < frame->workspace_count; i++)
        sb_tensor_release(frame->workspace[i]);
    for (int i = 0; i < HARNESS_OUTPUTS; i++)
        sb_tensor_release(frame->outputs[i]);
}

/* What the kernel derives of an input that is known beforehand; NULL: nothing. */
static const void *derive(device_frame *frame, const harness_node *node, const sb_kernel *kernel,
                          const harness_facts *facts, const sb_value *in, const sb_call_target *target) {
    sb_kernel_query query = {.node = node->node, .inputs = facts->pointers, .outputs = facts->outputs};
    sb_derived_form form;
    MUST(sb_kernel_derives(kernel, &query, &form, error));
    if (form.input < 0 || (node->constants >> form.input & 1) == 0)
        return NULL;
    assert_true(frame->workspace_count < 32);
    sb_tensor **derived = &frame->workspace[frame->workspace_count++];
    MUST(allocate(frame, form.bytes, derived, error));
    MUST(sb_kernel_derive(kernel, node->node, SB_ISA_BEST, NULL, target, in[form.input].tensor, (*derived)->data,
                          error));
    return (*derived)->data;
}

/* The inputs where the kernel wants them. */
static void bring_inputs(const harness_device *own, const harness_node *node, const sb_kernel *kernel, sb_value *in) {
    for (int i = 0; i < node->node->input_count; i++) {
        if (node->inputs[i] != NULL)
            in[i] = sb_value_of_tensor((kernel->host_inputs >> i & 1) != 0 ? sb_tensor_retain(node->inputs[i])
                                                                           : to_device(own, node->inputs[i]));
    }
}

/* Gives a call's work to the queue, and waits for it. What is derived belongs to no call, so a queue that records does not
 * record it. */
static void launch(const sb_cuda_queue *queue, const harness_node *node, const sb_kernel *kernel, void *state,
                   device_frame *frame, const sb_value *in, sb_value *out) {
    const harness_device *own = frame->own;
    sb_call_target target = {.queue = queue, .fault = own->fault->data};
    sb_call_target aside = {.queue = &own->queue, .fault = own->fault->data};
    sb_error failure = {SB_OK, ""};
    harness_facts facts;
    memset(own->fault->data, 0, sizeof(uint32_t));
    MUST(harness_facts_make(node, kernel->host_inputs, &facts, error));
    MUST(sb_cuda_enter(own->device, error));
    sb_call call = {.node = node->node,
                    .input_count = node->node->input_count,
                    .inputs = in,
                    .output_count = node->node->output_count,
                    .facts = facts.outputs,
                    .outputs = out,
                    .frame = &frame->frame,
                    .state = state,
                    .derived = derive(frame, node, kernel, &facts, in, &aside),
                    .target = &target,
                    .error = &failure};
    if (sb_call_run(&call, kernel->launch) != SB_OK)
        harness_fail("%s", failure.message);
    MUST(sb_cuda_leave(own->device, SB_OK, error));
    MUST(sb_cuda_stream_synchronize(own->queue.stream, error));
    harness_facts_clear(&facts);
}

static harness_outcome outcome_of(const harness_device *own, char *why) {
    uint32_t fault;
    memcpy(&fault, own->fault->data, sizeof fault);
    snprintf(why, SB_WHY_BYTES, "fault %u", fault);
    return fault == 0 ? HARNESS_RAN : HARNESS_REFUSED;
}

static void release_values(int count, sb_value *values) {
    for (int i = 0; i < count; i++)
        sb_value_release(&values[i]);
}

static void collect(const harness_device *own, const harness_node *node, const sb_value *out, sb_tensor **outputs) {
    for (int i = 0; i < node->node->output_count; i++)
        outputs[i] = out[i].kind != SB_KIND_NONE ? to_host(own, out[i].tensor) : NULL;
}

/* That nothing has changed beside the elements of an output that lies as `place` does. */
static void check_surroundings(const harness_device *own, const sb_tensor *place, const sb_tensor *device,
                               const sb_tensor *found) {
    sb_storage *storage = NULL;
    sb_tensor *whole = NULL;
    size_t bytes = place->storage->bytes, before = (size_t)(place->data - (char *)place->storage->data);
    char *there = malloc(bytes + 1);
    assert_non_null(there);
    MUST(sb_storage_create(bytes, &storage, error));
    memcpy(storage->data, place->storage->data, bytes);
    MUST(sb_tensor_over(storage, (char *)storage->data + before, place->dtype, place->rank, place->dims, place->strides,
                        &whole, error));
    sb_tensor_copy_elements(whole, found);
    MUST(sb_cuda_download(own->staging, &own->queue, there, (CUdeviceptr)(uintptr_t)device->data - before, bytes,
                          error));
    if (memcmp(there, storage->data, bytes) != 0)
        harness_fail("the device has written beside its output");
    sb_tensor_release(whole);
    sb_storage_release(storage);
    free(there);
}

harness_outcome harness_run_device(harness *h, const harness_node *node, sb_tensor **outputs, char *why) {
    sb_value in[HARNESS_INPUTS] = {{0}}, out[HARNESS_OUTPUTS] = {{0}};
    void *state;
    harness_open_device(h);
    const harness_device *own = h->device;
    const sb_kernel *kernel = find_kernel(own, node, &state, why);
    if (kernel == NULL)
        return HARNESS_ABSENT;
    device_frame frame = frame_of(own);
    bring_inputs(own, node, kernel, in);
    if (node->place != NULL)
        out[0] = sb_value_of_tensor(to_device(own, node->place));
    launch(&own->queue, node, kernel, state, &frame, in, out);
    collect(own, node, out, outputs);
    if (node->place != NULL && outcome_of(own, why) == HARNESS_RAN)
        check_surroundings(own, node->place, out[0].tensor, outputs[0]);
    release_values(HARNESS_OUTPUTS, out);
    release_values(HARNESS_INPUTS, in);
    release_frame(&frame);
    if (kernel->release != NULL)
        kernel->release(state);
    return outcome_of(own, why);
}

/* ---- raw functions ---- */

/* The result of `give`, a function that gives one task, on tensors of the device. */
static sb_tensor *run_raw(harness *h, const sb_tensor *place, int count, sb_tensor *const *inputs, const void *context,
                          sb_status (*give)(const harness_device *own, const void *context, const sb_tensor *to,
                                            const sb_tensor *const *from, sb_error *error)) {
    sb_tensor *from[2] = {NULL}, *found;
    harness_open_device(h);
    const harness_device *own = h->device;
    sb_tensor *to = to_device(own, place);
    for (int i = 0; i < count; i++)
        from[i] = to_device(own, inputs[i]);
    memset(own->fault->data, 0, sizeof(uint32_t));
    MUST(sb_cuda_enter(own->device, error));
    MUST(give(own, context, to, (const sb_tensor *const *)from, error));
    MUST(sb_cuda_leave(own->device, SB_OK, error));
    MUST(sb_cuda_stream_synchronize(own->queue.stream, error));
    found = to_host(own, to);
    check_surroundings(own, place, to, found);
    for (int i = 0; i < count; i++)
        sb_tensor_release(from[i]);
    sb_tensor_release(to);
    return found;
}

static sb_status give_copy(const harness_device *own, const void *context, const sb_tensor *to,
                           const sb_tensor *const *from, sb_error *error) {
    const sb_cuda_kernel *kernel;
    SB_TRY(sb_cuda_find_copy(own->device, to->dtype, &kernel, error));
    return sb_cuda_launch_copy(&own->queue, 0, kernel, to, from[0], error);
}

static sb_status give_join(const harness_device *own, const void *op, const sb_tensor *to, const sb_tensor *const *from,
                           sb_error *error) {
    sb_cuda_operation operation;
    sb_cuda_elementwise_options options = {.fault = own->fault->data};
    SB_TRY(sb_cuda_find_elementwise(own->device, op, 2, from[0]->dtype, &operation, error));
    return sb_cuda_launch_elementwise(&own->queue, 0, &operation, &options, to, 2, from, error);
}

sb_tensor *harness_copy_on_device(harness *h, const sb_tensor *place, const sb_tensor *from) {
    return run_raw(h, place, 1, (sb_tensor *const[]){(sb_tensor *)from}, NULL, give_copy);
}

sb_tensor *harness_join_on_device(harness *h, const char *op, const sb_tensor *place, sb_tensor *const inputs[2],
                                  bool *fault) {
    char why[SB_WHY_BYTES];
    sb_tensor *found = run_raw(h, place, 2, inputs, op, give_join);
    *fault = outcome_of(h->device, why) != HARNESS_RAN;
    return found;
}

/* ---- timing ---- */

/* A node whose tasks have been given once and recorded: a call gives them again, between two events. */
typedef struct timing {
    const harness_device *own;
    const sb_kernel *kernel;
    void *state;
    device_frame frame;
    sb_value in[HARNESS_INPUTS], out[HARNESS_OUTPUTS];
    sb_cuda_queue queue;
    sb_cuda_graph *graph; /* NULL: there is nothing to do */
    sb_cuda_event *start, *end;
} timing;

static void *prepare_timing(harness *h, const harness_node *node) {
    char why[SB_WHY_BYTES];
    void *state;
    harness_open_device(h);
    const sb_kernel *kernel = find_kernel(h->device, node, &state, why);
    if (kernel == NULL)
        return NULL;
    timing *made = calloc(1, sizeof *made);
    assert_non_null(made);
    *made = (timing){
        .own = h->device, .kernel = kernel, .state = state, .frame = frame_of(h->device), .queue = h->device->queue};
    MUST(sb_cuda_task_list_create(&made->queue.record, error));
    bring_inputs(made->own, node, kernel, made->in);
    launch(&made->queue, node, kernel, state, &made->frame, made->in, made->out);
    if (sb_cuda_task_list_count(made->queue.record) != 0)
        MUST(sb_cuda_graph_build(made->own->device, made->queue.record, false, &made->graph, error));
    MUST(sb_cuda_event_create(made->own->device, true, &made->start, error));
    MUST(sb_cuda_event_create(made->own->device, true, &made->end, error));
    return made;
}

static double call_timing(void *of) {
    timing *made = of;
    sb_cuda_stream *stream = made->own->queue.stream;
    double nanoseconds;
    if (made->graph == NULL)
        return 0;
    MUST(sb_cuda_enter(made->own->device, error));
    MUST(sb_cuda_event_record(made->start, stream, error));
    MUST(sb_cuda_graph_launch(made->graph, stream, error));
    MUST(sb_cuda_event_record(made->end, stream, error));
    MUST(sb_cuda_leave(made->own->device, SB_OK, error));
    MUST(sb_cuda_event_synchronize(made->end, error));
    MUST(sb_cuda_event_elapsed(made->start, made->end, &nanoseconds, error));
    return nanoseconds * 1e-3;
}

static void release_timing(void *of) {
    timing *made = of;
    sb_cuda_event_destroy(made->start);
    sb_cuda_event_destroy(made->end);
    sb_cuda_graph_destroy(made->graph);
    sb_cuda_task_list_destroy(made->queue.record);
    release_values(HARNESS_OUTPUTS, made->out);
    release_values(HARNESS_INPUTS, made->in);
    release_frame(&made->frame);
    if (made->kernel->release != NULL)
        made->kernel->release(made->state);
    free(made);
}

static void empty_device_caches(harness *h) {
    sb_cuda_memory *memory = NULL;
    size_t bytes = harness_beyond_caches();
    void *other = calloc(bytes, 1);
    assert_non_null(other);
    MUST(sb_cuda_memory_create(h->device->device, bytes, &memory, error));
    MUST(sb_cuda_upload(h->device->staging, &h->device->queue, memory->address, other, bytes, error));
    MUST(sb_cuda_stream_synchronize(h->device->queue.stream, error));
    sb_cuda_memory_release(memory);
    free(other);
}

const harness_contestant harness_device_kernel = {prepare_timing, call_timing, release_timing, empty_device_caches};

/* ---- at a capacity ---- */

/* Whether the kernel can be told of all used extents. Fused nodes that run node by node are the runtime's affair. */
static bool can_be_told(const harness_capacity *capacity, const harness_node *node, const sb_kernel *kernel) {
    harness_facts facts;
    bool told = strcmp(kernel->name, "node by node") != 0;
    MUST(harness_facts_make(node, node->constants, &facts, error));
    sb_kernel_query query = {.node = node->node, .inputs = facts.pointers, .outputs = facts.outputs};
    for (int i = 0; i < node->node->input_count; i++) {
        told = told && (capacity->axes[i] == 0 || (kernel->host_inputs >> i & 1) == 0);
        bool elsewhere = capacity->known[0] != NULL && capacity->known[0][i] != NULL;
        told = told && (!elsewhere || (kernel->known_inputs >> i & 1) != 0);
        for (int d = 0; d < SB_MAX_RANK; d++) {
            if ((capacity->bounded[i] >> d & 1) != 0)
                told = told && kernel->bounded != NULL && kernel->bounded(&query, i, d);
        }
    }
    harness_facts_clear(&facts);
    return told;
}

/* The output that begins where input 0 lies. */
static sb_value output_over(const sb_tensor *host, const sb_tensor *input) {
    sb_tensor *tensor = NULL;
    MUST(sb_tensor_over(input->storage, input->data, host->dtype, host->rank, host->dims, host->strides, &tensor,
                        error));
    return sb_value_of_tensor(tensor);
}

/* The table of a run: its used extent, and the elements that its inputs have. */
static void write_table(const harness_device *own, const harness_capacity *capacity, int turn,
                        const sb_cuda_memory *table) {
    int64_t numbers[1 + HARNESS_INPUTS * HARNESS_KNOWN] = {capacity->used[turn]};
    for (int i = 0; capacity->known[turn] != NULL && i < capacity->node->node->input_count; i++) {
        sb_tensor *elements = capacity->known[turn][i], *packed;
        if (elements == NULL)
            continue;
        assert_true(elements->dtype == SB_S64 && sb_tensor_elements(elements) <= HARNESS_KNOWN);
        MUST(sb_tensor_contiguous(elements, &packed, error));
        memcpy(numbers + 1 + i * HARNESS_KNOWN, packed->data, (size_t)sb_tensor_elements(packed) * sizeof *numbers);
        sb_tensor_release(packed);
    }
    MUST(sb_cuda_upload(own->staging, &own->queue, table->address, numbers, sizeof numbers, error));
}

/* Garbage in the outputs, so that what the replay does not write shows. */
static void spoil_outputs(const harness_device *own, device_frame *frame) {
    for (int i = 0; i < HARNESS_OUTPUTS; i++) {
        const sb_tensor *bytes = frame->outputs[i];
        if (bytes == NULL || bytes->dims[0] == 0)
            continue;
        void *garbage = malloc((size_t)bytes->dims[0]);
        assert_non_null(garbage);
        memset(garbage, 0xa5, (size_t)bytes->dims[0]);
        MUST(sb_cuda_upload(own->staging, &own->queue, (CUdeviceptr)(uintptr_t)bytes->data, garbage,
                            (size_t)bytes->dims[0], error));
        free(garbage);
    }
}

/* The second inputs take the place of the first. */
static void replace_inputs(const harness_device *own, const harness_capacity *capacity, const sb_kernel *kernel,
                           const sb_value *in) {
    for (int i = 0; i < capacity->node->node->input_count; i++) {
        const sb_tensor *host = capacity->inputs[1][i];
        if (host == NULL || (kernel->host_inputs >> i & 1) != 0)
            continue;
        size_t before = (size_t)(host->data - (char *)host->storage->data);
        MUST(sb_cuda_upload(own->staging, &own->queue, (CUdeviceptr)(uintptr_t)in[i].tensor->data - before,
                            host->storage->data, host->storage->bytes, error));
    }
}

static void replay(const harness_device *own, const sb_cuda_task_list *list) {
    sb_cuda_graph *graph = NULL;
    if (sb_cuda_task_list_count(list) == 0)
        return;
    memset(own->fault->data, 0, sizeof(uint32_t));
    MUST(sb_cuda_graph_build(own->device, list, false, &graph, error));
    MUST(sb_cuda_enter(own->device, error));
    MUST(sb_cuda_graph_launch(graph, own->queue.stream, error));
    MUST(sb_cuda_leave(own->device, SB_OK, error));
    MUST(sb_cuda_stream_synchronize(own->queue.stream, error));
    sb_cuda_graph_destroy(graph);
}

harness_outcome harness_run_at_capacity(harness *h, const harness_capacity *capacity,
                                        sb_tensor *outputs[2][HARNESS_OUTPUTS], char *why) {
    sb_value in[HARNESS_INPUTS] = {{0}}, out[HARNESS_OUTPUTS] = {{0}};
    harness_node node = *capacity->node;
    void *state;
    harness_open_device(h);
    const harness_device *own = h->device;
    node.inputs = capacity->inputs[0];
    const sb_kernel *kernel = find_kernel(own, &node, &state, why);
    if (kernel == NULL)
        return HARNESS_ABSENT;
    harness_outcome outcome = HARNESS_ABSENT;
    if (can_be_told(capacity, &node, kernel)) {
        sb_cuda_memory *table = NULL;
        sb_cuda_queue queue = own->queue;
        device_frame frame = frame_of(own);
        MUST(sb_cuda_task_list_create(&queue.record, error));
        MUST(sb_cuda_memory_create(own->device, (1 + HARNESS_INPUTS * HARNESS_KNOWN) * sizeof(int64_t), &table, error));
        write_table(own, capacity, 0, table);
        frame.table = h->plant_used ? NULL : (const int64_t *)(uintptr_t)table->address;
        frame.used_axes = capacity->axes;
        frame.known = capacity->known[0];
        bring_inputs(own, &node, kernel, in);
        if (capacity->over != NULL)
            out[0] = output_over(capacity->over, in[0].tensor);
        launch(&queue, &node, kernel, state, &frame, in, out);
        collect(own, &node, out, outputs[0]);
        outcome = outcome_of(own, why);
        write_table(own, capacity, 1, table);
        spoil_outputs(own, &frame);
        replace_inputs(own, capacity, kernel, in);
        replay(own, queue.record);
        collect(own, &node, out, outputs[1]);
        if (outcome == HARNESS_RAN)
            outcome = outcome_of(own, why);
        sb_cuda_task_list_destroy(queue.record);
        release_values(HARNESS_OUTPUTS, out);
        release_values(HARNESS_INPUTS, in);
        release_frame(&frame);
        sb_cuda_memory_release(table);
    }
    if (kernel->release != NULL)
        kernel->release(state);
    return outcome;
}
