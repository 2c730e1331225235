/* Running single nodes on a device as the runtime does, and their definition on the host. Include after cmocka.h. */
#ifndef DEVICE_CALLS_H
#define DEVICE_CALLS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/common/call.h"
#include "cuda/common/compute.h"
#include "cuda/list.h"
#include "cuda/queue/staging.h"
#include "driver_choice.h"
#include "host_kernels.h"
#include "numerics/convert.h"
#include "support/graph_builder.h"
#include "support/random.h"

typedef struct setting {
    const fake_cuda_control *fake;
    sb_cuda_device *device;
    sb_cuda_queue queue;
    sb_cuda_staging *staging;
    sb_cuda_pinned *fault;
    random_source random;
} setting;

static inline setting set_up(void) {
    setting setting = {.random = {42}};
    const sb_cuda_driver *driver = NULL;
    if (is_fake()) {
        setting.fake = fresh_fake();
        define_host_kernels(setting.fake);
    }
    MUST(sb_cuda_driver_open(library, &driver, NULL, NULL, error));
    MUST(sb_cuda_device_open(driver, 0, is_fake() ? &host_images : NULL, &setting.device, error));
    MUST(sb_cuda_stream_create(setting.device, &setting.queue.stream, error));
    MUST(sb_cuda_staging_create(setting.device, 1 << 16, &setting.staging, error));
    MUST(sb_cuda_pinned_create(setting.device, 64, &setting.fault, error));
    return setting;
}

static inline void tear_down(setting *setting) {
    sb_cuda_pinned_destroy(setting->fault);
    sb_cuda_staging_destroy(setting->staging);
    sb_cuda_stream_destroy(setting->queue.stream);
    sb_cuda_device_release(setting->device);
    if (setting->fake != NULL)
        check_nothing_lives(setting->fake);
}

/* ---- tensors ---- */

static inline void release_device_memory(void *memory) {
    sb_cuda_memory_release(memory);
}

/* The tensor's whole storage on the device, and the same view of it. */
static inline sb_tensor *to_device(const setting *setting, const sb_tensor *host) {
    sb_cuda_memory *memory = NULL;
    sb_tensor *tensor = NULL;
    size_t before = (size_t)(host->data - (char *)host->storage->data);
    MUST(sb_cuda_memory_create(setting->device, host->storage->bytes, &memory, error));
    MUST(sb_cuda_upload(setting->staging, &setting->queue, memory->address, host->storage->data, host->storage->bytes,
                        error));
    MUST(sb_tensor_wrap(host->dtype, host->rank, host->dims, host->strides,
                        (void *)(uintptr_t)(memory->address + before), release_device_memory, memory, &tensor, error));
    return tensor;
}

/* A contiguous tensor of the device's, on the host. */
static inline sb_tensor *to_host(const setting *setting, const sb_tensor *device) {
    sb_tensor *tensor = NULL, *packed = NULL;
    sb_cuda_range range = sb_cuda_tensor_range(device, false);
    char *data = malloc(range.bytes + 1);
    assert_non_null(data);
    MUST(sb_cuda_download(setting->staging, &setting->queue, data, range.address, range.bytes, error));
    MUST(sb_tensor_wrap(device->dtype, device->rank, device->dims, device->strides,
                        data + ((uintptr_t)device->data - range.address), NULL, NULL, &tensor, error));
    MUST(sb_tensor_create(device->dtype, device->rank, device->dims, &packed, error));
    sb_tensor_copy_elements(packed, tensor);
    sb_tensor_release(tensor);
    free(data);
    return packed;
}

/* Awkward values: few different ones, every magnitude, infinities, NaN, zeros of both signs, subnormals. */
static inline void fill_awkward(random_source *random, sb_dtype dtype, void *data, size_t count) {
    static const float special[] = {0.0f,   -0.0f, 1.0f,   -1.0f,  2.0f,     3.0f,   0.5f,    -2.5f,
                                    1e-30f, 7.0f,  100.0f, -0.75f, 65504.0f, 255.5f, -128.5f, 1e-40f};
    size_t size = sb_dtype_size(dtype);
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = random_bits(random);
        float narrow = special[bits >> 32 & 15];
        double wide = (double)narrow;
        bool plain = (bits >> 40 & 3) != 0;
        char *at = (char *)data + i * size;
        switch (dtype) {
        case SB_BOOL:
            *at = (char)(bits & 1);
            break;
        case SB_F64:
            memcpy(at, plain ? (const void *)&wide : &bits, size);
            break;
        case SB_F32:
            memcpy(at, plain ? (const void *)&narrow : &bits, size);
            break;
        case SB_F16:
        case SB_BF16: {
            uint16_t half = dtype == SB_F16 ? sb_f16_from_f32(narrow) : sb_bf16_from_f32(narrow);
            memcpy(at, plain ? (const void *)&half : &bits, size);
            break;
        }
        default:
            bits = plain ? bits >> 60 : bits;
            memcpy(at, &bits, size);
        }
    }
}

/* How a tensor lies in memory. */
typedef enum layout { PACKED, TRANSPOSED, REVERSED, APART, SHIFTED, LAYOUTS } layout;

/* A tensor with awkward values whose strides are those of `layout`. */
static inline sb_tensor *make_tensor(random_source *random, sb_dtype dtype, int rank, const int64_t *dims,
                                     layout layout) {
    int64_t strides[SB_MAX_RANK], stride = layout == APART ? 3 : 1, count = stride + 1, first = 0;
    sb_tensor *base = NULL, *tensor = NULL;
    for (int i = 0; i < rank; i++) {
        int d = layout == TRANSPOSED ? i : rank - 1 - i;
        strides[d] = stride;
        stride *= dims[d] > 0 ? dims[d] : 1;
    }
    count += stride;
    for (int d = 0; d < rank && layout == REVERSED; d++) {
        first += dims[d] > 0 ? (dims[d] - 1) * strides[d] : 0;
        strides[d] = -strides[d];
    }
    MUST(sb_tensor_create(dtype, 1, &count, &base, error));
    fill_awkward(random, dtype, base->data, (size_t)count);
    if (layout == SHIFTED)
        first = 1;
    MUST(sb_tensor_over(base->storage, base->data + first * (int64_t)sb_dtype_size(dtype), dtype, rank, dims, strides,
                        &tensor, error));
    sb_tensor_release(base);
    return tensor;
}

/* ---- the definition ---- */

static inline void make_fact(const builder *b, sb_fact *fact, sb_tensor *tensor, bool with_value) {
    MUST(sb_fact_of_tensor(fact, b->scope, tensor, with_value, error));
}

/* Evaluates one node on the host by its op's own definition; inputs NULL where omitted. */
static inline sb_status evaluate_node(const builder *b, const sb_node *node, sb_tensor *const *inputs,
                                      sb_tensor **outputs, sb_error *error) {
    sb_fact facts[SB_WALK_OPERANDS] = {{0}}, results[5] = {{0}};
    const sb_fact *pointers[SB_WALK_OPERANDS];
    sb_value in[SB_WALK_OPERANDS] = {{0}}, out[5] = {{0}};
    for (int i = 0; i < node->input_count; i++) {
        pointers[i] = inputs[i] != NULL ? &facts[i] : NULL;
        if (inputs[i] != NULL) {
            make_fact(b, &facts[i], inputs[i], true);
            in[i] = sb_value_of_tensor(inputs[i]);
        }
    }
    sb_status status = sb_node_infer(node, b->scope, pointers, results, error);
    if (status == SB_OK) {
        sb_call call = {.node = node,
                        .input_count = node->input_count,
                        .inputs = in,
                        .output_count = node->output_count,
                        .facts = results,
                        .outputs = out,
                        .error = error};
        status = sb_call_run(&call, node->op->eval);
    }
    for (int i = 0; i < node->output_count; i++) {
        outputs[i] = status == SB_OK ? out[i].tensor : NULL;
        sb_fact_clear(&results[i]);
    }
    for (int i = 0; i < node->input_count; i++)
        sb_fact_clear(&facts[i]);
    return status;
}

/* The value of each of the graph's values, node by node; `values` are the caller's to release. */
static inline void evaluate_graph(const builder *b, sb_tensor *const *inputs, sb_tensor **values) {
    const sb_graph *graph = b->graph;
    for (size_t v = 0; v < graph->value_count; v++) {
        sb_tensor *constant = graph->values[v].fact.constant;
        values[v] = constant != NULL ? sb_tensor_retain(constant) : NULL;
    }
    for (size_t i = 0; i < graph->input_count; i++)
        values[graph->inputs[i]] = sb_tensor_retain(inputs[i]);
    for (size_t n = 0; n < graph->node_count; n++) {
        const sb_node *node = graph->nodes[n];
        sb_tensor *in[SB_WALK_OPERANDS], *out[5] = {NULL};
        for (int i = 0; i < node->input_count; i++)
            in[i] = node->inputs[i] != SB_NO_VALUE ? values[node->inputs[i]] : NULL;
        MUST(evaluate_node(b, node, in, out, error));
        for (int i = 0; i < node->output_count; i++) {
            if (node->outputs[i] != SB_NO_VALUE) {
                sb_tensor_release(values[node->outputs[i]]);
                values[node->outputs[i]] = out[i];
            }
        }
    }
}

/* ---- the device ---- */

typedef struct device_frame {
    sb_frame frame;
    const setting *setting;
    sb_tensor *workspace[32];
    int workspace_count;
} device_frame;

static inline sb_status allocate_on_device(device_frame *frame, size_t bytes, sb_tensor **tensor, sb_error *error) {
    sb_cuda_memory *memory = NULL;
    int64_t size = (int64_t)bytes;
    SB_TRY(sb_cuda_memory_create(frame->setting->device, bytes, &memory, error));
    return sb_tensor_wrap(SB_U8, 1, &size, NULL, (void *)(uintptr_t)memory->address, release_device_memory, memory,
                          tensor, error);
}

static inline sb_status frame_allocate(sb_frame *frame, const sb_call *call, int index, size_t bytes,
                                       sb_storage **storage, char **data) {
    sb_tensor *tensor = NULL;
    SB_TRY(allocate_on_device((device_frame *)frame, bytes, &tensor, call->error));
    *storage = sb_storage_retain(tensor->storage);
    *data = tensor->data;
    sb_tensor_release(tensor);
    return SB_OK;
}

static inline sb_status frame_workspace(sb_frame *frame, const sb_call *call, size_t bytes, void **memory) {
    device_frame *own = (device_frame *)frame;
    assert_true(own->workspace_count < 32);
    sb_tensor **tensor = &own->workspace[own->workspace_count++];
    SB_TRY(allocate_on_device(own, bytes, tensor, call->error));
    *memory = (*tensor)->data;
    return SB_OK;
}

static inline sb_status frame_copy(sb_frame *frame, const sb_call *call, sb_tensor *to, const sb_tensor *from) {
    const sb_cuda_kernel *kernel;
    SB_TRY(sb_cuda_find_copy(sb_cuda_call_device(call), to->dtype, &kernel, call->error));
    return sb_cuda_launch_copy(sb_cuda_call_queue(call), call->target->step, kernel, to, from, call->error);
}

/* The device's kernel for a node whose inputs are these; `constants` says which are known
 * beforehand, a bit each. NULL: none, and `why` says why. */
static inline const sb_kernel *find_device_kernel(const builder *b, const sb_node *node, sb_tensor *const *inputs,
                                                  uint64_t constants, void **state, char *why) {
    sb_fact facts[SB_WALK_OPERANDS] = {{0}}, results[5] = {{0}};
    const sb_fact *pointers[SB_WALK_OPERANDS];
    const sb_kernel *kernel = NULL;
    for (int i = 0; i < node->input_count; i++) {
        pointers[i] = inputs[i] != NULL ? &facts[i] : NULL;
        if (inputs[i] != NULL)
            make_fact(b, &facts[i], inputs[i], (constants >> i & 1) != 0);
    }
    MUST(sb_node_infer(node, b->scope, pointers, results, error));
    sb_kernel_query query = {.node = node, .inputs = pointers, .outputs = results};
    MUST(sb_cuda_find_kernel(&query, &kernel, why, error));
    *state = NULL;
    if (kernel != NULL && kernel->prepare != NULL)
        MUST(kernel->prepare(&query, state, error));
    for (int i = 0; i < node->output_count; i++)
        sb_fact_clear(&results[i]);
    for (int i = 0; i < node->input_count; i++)
        sb_fact_clear(&facts[i]);
    return kernel;
}

/* What the kernel derives of an input that is known beforehand; NULL: nothing. */
static inline const void *derive_on_device(device_frame *frame, const sb_node *node, const sb_kernel *kernel,
                                           uint64_t constants, const sb_fact *const *facts, const sb_fact *results,
                                           const sb_value *in, const sb_call_target *target) {
    sb_kernel_query query = {.node = node, .inputs = facts, .outputs = results};
    sb_derived_form form;
    MUST(sb_kernel_derives(kernel, &query, &form, error));
    if (form.input < 0 || (constants >> form.input & 1) == 0)
        return NULL;
    assert_true(frame->workspace_count < 32);
    sb_tensor **derived = &frame->workspace[frame->workspace_count++];
    MUST(allocate_on_device(frame, form.bytes, derived, error));
    MUST(sb_kernel_derive(kernel, node, SB_ISA_BEST, NULL, target, in[form.input].tensor, (*derived)->data, error));
    return (*derived)->data;
}

/* Runs one node on the device; outputs are contiguous tensors on the host, NULL where not wanted.
 * *fault is what the kernels noted. */
static inline void run_node(const setting *setting, const builder *b, const sb_node *node, sb_tensor *const *inputs,
                            uint64_t constants, sb_tensor **outputs, uint32_t *fault) {
    char why[SB_WHY_BYTES] = "";
    void *state;
    const sb_kernel *kernel = find_device_kernel(b, node, inputs, constants, &state, why);
    if (kernel == NULL)
        fail_msg("%s: %s", node->op->name, why);
    device_frame frame = {.frame = {.allocate = frame_allocate, .workspace = frame_workspace, .copy = frame_copy},
                          .setting = setting};
    memset(setting->fault->data, 0, sizeof *fault);
    sb_call_target target = {.queue = &setting->queue, .fault = setting->fault->data};
    sb_fact facts[SB_WALK_OPERANDS] = {{0}}, results[5] = {{0}};
    const sb_fact *pointers[SB_WALK_OPERANDS];
    sb_value in[SB_WALK_OPERANDS] = {{0}}, out[5] = {{0}};
    for (int i = 0; i < node->input_count; i++) {
        pointers[i] = inputs[i] != NULL ? &facts[i] : NULL;
        if (inputs[i] == NULL)
            continue;
        bool on_host = (kernel->host_inputs >> i & 1) != 0;
        make_fact(b, &facts[i], inputs[i], on_host);
        in[i] = sb_value_of_tensor(on_host ? sb_tensor_retain(inputs[i]) : to_device(setting, inputs[i]));
    }
    MUST(sb_node_infer(node, b->scope, pointers, results, error));
    MUST(sb_cuda_enter(setting->device, error));
    {
        sb_error error_ = {SB_OK, ""};
        sb_call call = {.node = node,
                        .input_count = node->input_count,
                        .inputs = in,
                        .output_count = node->output_count,
                        .facts = results,
                        .outputs = out,
                        .frame = &frame.frame,
                        .state = state,
                        .derived = derive_on_device(&frame, node, kernel, constants, pointers, results, in, &target),
                        .target = &target,
                        .error = &error_};
        if (sb_call_run(&call, kernel->launch) != SB_OK)
            fail_msg("%s", error_.message);
    }
    MUST(sb_cuda_leave(setting->device, SB_OK, error));
    for (int i = 0; i < node->output_count; i++) {
        outputs[i] = out[i].kind != SB_KIND_NONE ? to_host(setting, out[i].tensor) : NULL;
        sb_value_release(&out[i]);
        sb_fact_clear(&results[i]);
    }
    MUST(sb_cuda_stream_synchronize(setting->queue.stream, error));
    memcpy(fault, setting->fault->data, sizeof *fault);
    for (int i = 0; i < node->input_count; i++) {
        sb_value_release(&in[i]);
        sb_fact_clear(&facts[i]);
    }
    for (int i = 0; i < frame.workspace_count; i++)
        sb_tensor_release(frame.workspace[i]);
    if (kernel->release != NULL)
        kernel->release(state);
}

#endif
