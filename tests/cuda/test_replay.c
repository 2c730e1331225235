/* Graphs of the kernels that models use: without arguments over the fake driver, with the file name
 * of a driver's library (libcuda.so.1) on its first device. What is replayed has the bits of the
 * tasks one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "cuda/common/compute.h"
#include "cuda/driver/memory.h"
#include "cuda/queue/graph.h"
#include "cuda/queue/trace.h"
#include "host_kernels.h"
#include "support/must.h"
#include "support/random.h"
#include "with_fake.h"

static const char *library = FAKE_CUDA;

#define BUFFERS 8
#define ROWS 37
#define COLUMNS 53
#define ELEMENTS (ROWS * COLUMNS)
#define BYTES (ELEMENTS * sizeof(uint32_t))
#define OPERATIONS 4

typedef struct setting {
    const fake_cuda_control *fake;
    sb_cuda_device *device;
    sb_cuda_queue queue;
    sb_cuda_memory *memory[BUFFERS];
    /* Views of each buffer: as it is, its transpose, and packed with the extents of that. */
    sb_tensor *tensors[BUFFERS], *transposed[BUFFERS], *reshaped[BUFFERS];
    sb_cuda_pinned *host;
    sb_cuda_operation operations[OPERATIONS];
    const sb_cuda_kernel *copy;
} setting;

static void set_up(setting *setting) {
    static const char *const ops[OPERATIONS] = {"Add", "Sub", "Mul", "BitwiseXor"};
    static const int64_t dims[] = {ROWS, COLUMNS}, transposed_dims[] = {COLUMNS, ROWS},
                         transposed_strides[] = {1, COLUMNS};
    const sb_cuda_driver *driver = NULL;
    bool is_fake = strcmp(library, FAKE_CUDA) == 0;
    if (is_fake) {
        setting->fake = fresh_fake();
        define_host_kernels(setting->fake);
    }
    MUST(sb_cuda_driver_open(library, &driver, NULL, NULL, error));
    MUST(sb_cuda_device_open(driver, 0, is_fake ? &host_images : NULL, &setting->device, error));
    MUST(sb_cuda_stream_create(setting->device, &setting->queue.stream, error));
    MUST(sb_cuda_task_list_create(&setting->queue.record, error));
    MUST(sb_cuda_pinned_create(setting->device, BUFFERS * BYTES, &setting->host, error));
    for (int i = 0; i < BUFFERS; i++) {
        MUST(sb_cuda_memory_create(setting->device, BYTES, &setting->memory[i], error));
        void *data = (void *)(uintptr_t)setting->memory[i]->address;
        MUST(sb_tensor_wrap(SB_U32, 2, dims, NULL, data, NULL, NULL, &setting->tensors[i], error));
        MUST(sb_tensor_wrap(SB_U32, 2, transposed_dims, transposed_strides, data, NULL, NULL, &setting->transposed[i],
                            error));
        MUST(sb_tensor_wrap(SB_U32, 2, transposed_dims, NULL, data, NULL, NULL, &setting->reshaped[i], error));
    }
    for (int i = 0; i < OPERATIONS; i++)
        MUST(sb_cuda_find_elementwise(setting->device, ops[i], 2, SB_U32, &setting->operations[i], error));
    MUST(sb_cuda_find_copy(setting->device, SB_U32, &setting->copy, error));
}

static void tear_down(setting *setting) {
    for (int i = 0; i < BUFFERS; i++) {
        sb_tensor_release(setting->tensors[i]);
        sb_tensor_release(setting->transposed[i]);
        sb_tensor_release(setting->reshaped[i]);
        sb_cuda_memory_release(setting->memory[i]);
    }
    sb_cuda_pinned_destroy(setting->host);
    sb_cuda_task_list_destroy(setting->queue.record);
    sb_cuda_stream_destroy(setting->queue.stream);
    sb_cuda_device_release(setting->device);
    if (setting->fake != NULL)
        check_nothing_lives(setting->fake);
}

static sb_status copy_whole(const setting *setting, sb_cuda_task_kind kind, int buffer, sb_error *error) {
    CUdeviceptr on_device = setting->memory[buffer]->address;
    CUdeviceptr on_host = (CUdeviceptr)(uintptr_t)setting->host->data + (CUdeviceptr)buffer * BYTES;
    bool there = kind == SB_CUDA_COPY_TO_DEVICE;
    sb_cuda_task task = {
        .kind = kind, .step = -1, .copy = {there ? on_device : on_host, there ? on_host : on_device, BYTES}};
    return sb_cuda_launch(&setting->queue, &task, error);
}

/* One task: mostly arithmetic on two or three buffers, sometimes a copy between strides, a packed
 * copy or a fill. Outputs are never read by the same task under other strides. */
static sb_status launch_one(const setting *setting, random_source *source, int step, sb_error *error) {
    static const sb_cuda_elementwise_options options = {0};
    int out = (int)random_between(source, 0, BUFFERS - 1);
    int left = (out + (int)random_between(source, 1, BUFFERS - 1)) % BUFFERS;
    int right = (int)random_between(source, 0, BUFFERS - 1);
    switch (random_between(source, 0, 9)) {
    case 0:
        return sb_cuda_launch_copy(&setting->queue, step, setting->copy, setting->transposed[out],
                                   setting->reshaped[left], error);
    case 1:
        return sb_cuda_launch_copy(&setting->queue, step, setting->copy, setting->tensors[out], setting->tensors[left],
                                   error);
    case 2: {
        sb_cuda_task task = {.kind = SB_CUDA_FILL,
                             .step = step,
                             .fill = {setting->memory[out]->address + 4 * (CUdeviceptr)step, 100, (unsigned char)step}};
        return sb_cuda_launch(&setting->queue, &task, error);
    }
    default:
        return sb_cuda_launch_elementwise(
            &setting->queue, step, &setting->operations[random_between(source, 0, OPERATIONS - 1)], &options,
            setting->tensors[out], 2, (const sb_tensor *const[]){setting->tensors[left], setting->tensors[right]},
            error);
    }
}

static sb_status launch_all(const setting *setting, uint64_t seed, int count, sb_error *error) {
    random_source source = {seed};
    for (int i = 0; i < BUFFERS; i++)
        SB_TRY(copy_whole(setting, SB_CUDA_COPY_TO_DEVICE, i, error));
    for (int i = 0; i < count; i++)
        SB_TRY(launch_one(setting, &source, i, error));
    for (int i = 0; i < BUFFERS; i++)
        SB_TRY(copy_whole(setting, SB_CUDA_COPY_TO_HOST, i, error));
    return SB_OK;
}

static void fill_host(const setting *setting, uint64_t seed) {
    random_source source = {seed};
    uint32_t *values = setting->host->data;
    for (size_t i = 0; i < BUFFERS * ELEMENTS; i++)
        values[i] = (uint32_t)random_bits(&source);
}

/* Runs tasks or a graph on fresh inputs and gives the sum of all that comes back. */
static uint64_t run(const setting *setting, const sb_cuda_graph *graph, uint64_t tasks, int count, uint64_t inputs) {
    fill_host(setting, inputs);
    MUST(sb_cuda_enter(setting->device, error));
    if (graph != NULL)
        MUST(sb_cuda_graph_launch(graph, setting->queue.stream, error));
    else
        MUST(launch_all(setting, tasks, count, error));
    MUST(sb_cuda_leave(setting->device, SB_OK, error));
    MUST(sb_cuda_stream_synchronize(setting->queue.stream, error));
    uint64_t sum = 1;
    const uint32_t *values = setting->host->data;
    for (size_t i = 0; i < BUFFERS * ELEMENTS; i++)
        sum = sum * 6364136223846793005u + values[i];
    return sum;
}

static void test_replay(void **unused) {
    setting setting = {0};
    set_up(&setting);
    for (uint64_t seed = 1; seed <= 10; seed++) {
        int count = 12 * (int)seed;
        sb_cuda_graph *built = NULL, *captured = NULL;
        sb_cuda_task_list_clear(setting.queue.record);
        uint64_t first = run(&setting, NULL, seed, count, 1);
        MUST(sb_cuda_graph_build(setting.device, setting.queue.record, false, &built, error));
        MUST(sb_cuda_enter(setting.device, error));
        MUST(sb_cuda_capture_begin(&setting.queue, error));
        sb_status status = launch_all(&setting, seed, count, NULL);
        MUST(sb_cuda_capture_end(&setting.queue, status, &captured, error));
        MUST(sb_cuda_leave(setting.device, SB_OK, error));
        assert_true(run(&setting, built, 0, 0, 1) == first);
        assert_true(run(&setting, captured, 0, 0, 1) == first);
        for (uint64_t inputs = 2; inputs < 12; inputs++) {
            uint64_t expected = run(&setting, NULL, seed, count, inputs);
            assert_true(expected != first);
            assert_true(run(&setting, built, 0, 0, inputs) == expected);
            assert_true(run(&setting, captured, 0, 0, inputs) == expected);
        }
        sb_cuda_graph_destroy(built);
        sb_cuda_graph_destroy(captured);
    }
    tear_down(&setting);
}

/* Tasks of one stream follow each other, and a trace tells when. */
static void test_trace(void **unused) {
    setting setting = {0};
    set_up(&setting);
    MUST(sb_cuda_trace_create(setting.device, &setting.queue.trace, error));
    run(&setting, NULL, 1, 40, 1);
    double before = 0;
    int count = sb_cuda_trace_count(setting.queue.trace);
    assert_int_equal(count, 40 + 2 * BUFFERS);
    for (int i = 0; i < count; i++) {
        sb_cuda_span span;
        MUST(sb_cuda_trace_span(setting.queue.trace, i, &span, error));
        assert_true(span.start_ns >= before && span.end_ns >= span.start_ns);
        before = span.end_ns;
    }
    assert_true(before > 0);
    sb_cuda_trace_destroy(setting.queue.trace);
    tear_down(&setting);
}

int main(int argc, char **argv) {
    if (argc > 1)
        library = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
