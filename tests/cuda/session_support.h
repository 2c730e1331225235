/* What tests of sessions on a device share: models from graphs, a device over the fake driver, runs
 * and what they should give. Include after cmocka.h. */
#ifndef SESSION_SUPPORT_H
#define SESSION_SUPPORT_H

#include <stdlib.h>
#include <string.h>

#include <samebit/samebit.h>

#include "host_kernels.h"
#include "runtime/model.h"
#include "support/graph_builder.h"
#include "support/must.h"
#include "support/random.h"
#include "with_fake.h"

/* ---- models ---- */

static inline void mark_output(builder *b, sb_value_id value) {
    MUST(sb_graph_add_output(b->graph, value, error));
}

/* Moves the builder's graph into a model. */
static inline sb_status graph_source(void *context, sb_graphs *graphs, sb_error *error) {
    builder *b = context;
    sb_graph *graph = b->graph;
    graphs->scope = b->scope;
    *b = (builder){0};
    return sb_graphs_add(graphs, "", graph, error);
}

/* A model of the builder's graph, which it takes over, as if it had come from a file. */
static inline sb_model *model_of(builder *b, bool passes) {
    sb_model *model;
    sb_model_options options = SB_MODEL_OPTIONS_DEFAULT;
    options.isa = SB_ISA_SCALAR;
    options.passes = passes;
    builder_finish(b);
    MUST(sb_model_make(graph_source, b, &options, &model, error));
    return model;
}

static inline sb_value_id attribute_node(builder *b, const char *op, int count, const sb_value_id *inputs,
                                         const char *name, bool scalar, size_t values, const int64_t *integers) {
    sb_attributes attributes = {0};
    MUST(sb_attributes_add_ints(&attributes, name, scalar, values, integers, error));
    return builder_node(b, op, count, inputs, &attributes);
}

static inline sb_value_id concat(builder *b, sb_value_id left, sb_value_id right, int64_t axis) {
    return attribute_node(b, "Concat", 2, (sb_value_id[]){left, right}, "axis", true, 1, &axis);
}

static inline sb_value_id transpose(builder *b, sb_value_id input, int rank, const int64_t *permutation) {
    return attribute_node(b, "Transpose", 1, &input, "perm", false, (size_t)rank, permutation);
}

static inline sb_value_id integers(builder *b, int count, const int64_t *values) {
    sb_tensor *tensor;
    MUST(sb_tensor_from_data(SB_S64, 1, (int64_t[]){count}, values, &tensor, error));
    return builder_constant(b, tensor);
}

static inline sb_value_id reshape(builder *b, sb_value_id input, int rank, const int64_t *dims) {
    return builder_binary(b, "Reshape", input, integers(b, rank, dims));
}

/* The name of the node that makes a value. */
static inline const char *maker(const builder *b, sb_value_id value) {
    return b->graph->nodes[b->graph->values[value].producer]->name;
}

/* ---- tensors ---- */

/* Numbers around 0 for floating-point dtypes, small integers for the rest. */
static inline sb_tensor *random_tensor(sb_dtype dtype, int rank, const int64_t *dims, uint64_t seed) {
    random_source source = {seed};
    sb_tensor *tensor;
    MUST(sb_tensor_create(dtype, rank, dims, &tensor, error));
    char *data = sb_tensor_mutable_data(tensor);
    size_t size = sb_dtype_size(dtype);
    for (int64_t i = 0; i < sb_tensor_elements(tensor); i++, data += size) {
        int64_t integer = random_between(&source, 0, 100);
        float single = (float)random_between(&source, -4000, 4000) / 1024;
        double number = (double)single;
        if (dtype == SB_F32)
            memcpy(data, &single, size);
        else if (dtype == SB_F64)
            memcpy(data, &number, size);
        else if (dtype == SB_BOOL)
            *data = (char)(integer & 1);
        else
            memcpy(data, &integer, size);
    }
    return tensor;
}

static inline sb_tensor *to_host(sb_device *device, sb_tensor *tensor) {
    sb_tensor *host;
    MUST(sb_tensor_to_host(device, tensor, &host, error));
    return host;
}

static inline sb_tensor *to_device(sb_device *device, sb_tensor *tensor) {
    sb_tensor *copy;
    MUST(sb_tensor_to_device(device, tensor, &copy, error));
    return copy;
}

/* Equal bits, wherever they lie. */
static inline void check_same(sb_device *device, sb_tensor *actual, sb_tensor *expected) {
    sb_tensor *left = to_host(device, actual), *right = to_host(device, expected);
    char first[SB_DIMS_TEXT_BYTES], second[SB_DIMS_TEXT_BYTES];
    if (!sb_tensor_equal(left, right))
        fail_msg("%s%s differs from %s%s", sb_dtype_name(left->dtype), sb_dims_text(left->rank, left->dims, first),
                 sb_dtype_name(right->dtype), sb_dims_text(right->rank, right->dims, second));
    sb_tensor_release(left);
    sb_tensor_release(right);
}

/* ---- devices and sessions ---- */

static inline const fake_cuda_control *fake_with_kernels(void) {
    setenv("FAKE_CUDA_GUARD", "1", 0);
    const fake_cuda_control *fake = fresh_fake();
    define_host_kernels(fake);
    return fake;
}

static inline sb_device *open_device(void) {
    sb_device_options options = SB_DEVICE_OPTIONS_DEFAULT;
    sb_device *device;
    options.cuda_driver = FAKE_CUDA;
    MUST(sb_device_open(&options, 0, &device, error));
    return device;
}

static inline sb_device_counters counters_of(sb_device *device) {
    sb_device_counters counters;
    sb_device_count(device, &counters);
    return counters;
}

static inline sb_session_options options_on(sb_device *device) {
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    options.threads = 1;
    options.device = device;
    return options;
}

static inline sb_session *session_with(sb_model *model, const sb_session_options *options) {
    sb_session *session;
    MUST(sb_session_create(model, options, &session, error));
    return session;
}

#define QUEUED 4 /* the most runs in flight */

/* A session that binds a state (NULL: none), for one run after the other or several in its queue. Without a device
 * (NULL) it is one on the CPU. */
static inline sb_session *session_on(sb_device *device, sb_model *model, sb_state *state, const char *entry,
                                     sb_graph_mode mode, const char *force_cpu) {
    sb_session_options options = options_on(device);
    options.state = state;
    options.entry = entry;
    options.graphs = mode;
    options.force_cpu = force_cpu;
    options.queue_depth = QUEUED;
    return session_with(model, &options);
}

static inline sb_session *cpu_session(sb_model *model) {
    sb_session_options options = options_on(NULL);
    return session_with(model, &options);
}

static inline void run_session(sb_session *session, sb_tensor *const *inputs, sb_tensor **outputs) {
    sb_error error = {SB_OK, ""};
    if (sb_session_run_tensors(session, inputs, outputs, &error) != SB_OK)
        fail_msg("%s", error.message);
}

static inline void release_all(sb_tensor **tensors, int count) {
    for (int i = 0; i < count; i++) {
        sb_tensor_release(tensors[i]);
        tensors[i] = NULL;
    }
}

#define MOST_VALUES 8

/* Runs on the device and on the CPU, with inputs that lie on the host for the latter, and compares the bits. */
static inline void run_both(sb_session *session, sb_session *cpu, sb_device *device, int input_count,
                            sb_tensor *const *inputs, int output_count) {
    sb_tensor *outputs[MOST_VALUES], *expected[MOST_VALUES], *on_host[MOST_VALUES];
    for (int i = 0; i < input_count; i++)
        on_host[i] = to_host(device, inputs[i]);
    run_session(cpu, on_host, expected);
    run_session(session, inputs, outputs);
    for (int i = 0; i < output_count; i++)
        check_same(device, outputs[i], expected[i]);
    release_all(outputs, output_count);
    release_all(expected, output_count);
    release_all(on_host, input_count);
}

static inline sb_graph_report report_of(sb_session *session) {
    sb_graph_report report;
    sb_session_graphs(session, &report);
    return report;
}

/* ---- what most tests start from ---- */

/* A device, and what has been allocated before. */
typedef struct setting {
    const fake_cuda_control *fake; /* NULL: the driver is a real one */
    int64_t blocks;
    sb_device *device;
    sb_model *model; /* NULL where the test has none or several … */
    sb_session *cpu; /* … of which this is a session on the CPU */
} setting;

static inline setting start_device(void) {
    setting s = {.fake = fake_with_kernels(), .blocks = sb_allocation_count().live_blocks};
    s.device = open_device();
    return s;
}

static inline setting start(sb_model *(*make)(bool passes), bool passes) {
    setting s = start_device();
    s.model = make(passes);
    s.cpu = cpu_session(s.model);
    return s;
}

/* The end: everything is given back, to the driver too. */
static inline void finish(setting *s) {
    sb_session_destroy(s->cpu);
    sb_model_release(s->model);
    sb_device_release(s->device);
    if (s->fake != NULL)
        check_nothing_lives(s->fake);
    assert_int_equal(sb_allocation_count().live_blocks, s->blocks);
}

static inline sb_session *open_session(const setting *s, sb_graph_mode mode, bool device_outputs,
                                       const char *force_cpu) {
    sb_session_options options = options_on(s->device);
    options.graphs = mode;
    options.device_outputs = device_outputs;
    options.force_cpu = force_cpu;
    return session_with(s->model, &options);
}

#endif
