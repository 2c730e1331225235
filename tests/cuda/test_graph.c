/* Graphs: captured and built ones give what the tasks give one by one, and failures leave the stream usable. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cuda/driver/memory.h"
#include "cuda/queue/graph.h"
#include "cuda/queue/trace.h"
#include "support/failing.h"
#include "support/must.h"
#include "support/random.h"
#include "with_fake.h"

/* out = 3 out + in: the order of tasks shows in every element. */
typedef struct mix_parameters {
    uint32_t *out;
    const uint32_t *in;
    int count;
} mix_parameters;

static void run_mix(const void *given, const unsigned grid[3], const unsigned block[3], unsigned shared_bytes) {
    const mix_parameters *parameters = given;
    for (int i = 0; i < parameters->count; i++)
        parameters->out[i] = 3 * parameters->out[i] + parameters->in[i] + 1;
}

#define BUFFERS 6
#define COUNT 32
#define BYTES (COUNT * sizeof(uint32_t))

typedef struct setting {
    sb_cuda_device *device;
    sb_cuda_queue queue;
    sb_cuda_memory *buffers[BUFFERS];
    sb_cuda_pinned *host; /* one part for each buffer */
    const sb_cuda_kernel *mix;
} setting;

static void tear_down(setting *setting) {
    if (setting->queue.stream != NULL)
        (void)sb_cuda_stream_synchronize(setting->queue.stream, NULL);
    sb_cuda_task_list_destroy(setting->queue.record);
    sb_cuda_pinned_destroy(setting->host);
    for (int i = 0; i < BUFFERS; i++)
        sb_cuda_memory_release(setting->buffers[i]);
    sb_cuda_stream_destroy(setting->queue.stream);
    sb_cuda_device_release(setting->device);
}

static sb_status set_up(const sb_cuda_driver *driver, setting *setting, sb_error *error) {
    SB_TRY(sb_cuda_device_open(driver, 0, &test_images, &setting->device, error));
    SB_TRY(sb_cuda_stream_create(setting->device, &setting->queue.stream, error));
    SB_TRY(sb_cuda_task_list_create(&setting->queue.record, error));
    for (int i = 0; i < BUFFERS; i++)
        SB_TRY(sb_cuda_memory_create(setting->device, BYTES, &setting->buffers[i], error));
    SB_TRY(sb_cuda_pinned_create(setting->device, BUFFERS * BYTES, &setting->host, error));
    return sb_cuda_kernel_find(setting->device, "test", "first", sizeof(mix_parameters), &setting->mix, error);
}

static const fake_cuda_control *fake_with_kernel(void) {
    const fake_cuda_control *fake = fresh_fake();
    fake->define_kernel("first", sizeof(mix_parameters), run_mix);
    return fake;
}

static sb_status mix(const setting *setting, int out, int in, sb_error *error) {
    CUdeviceptr to = setting->buffers[out]->address, from = setting->buffers[in]->address;
    mix_parameters parameters = {(uint32_t *)(uintptr_t)to, (const uint32_t *)(uintptr_t)from, COUNT};
    sb_cuda_range ranges[] = {{to, BYTES, true}, {from, BYTES, false}};
    sb_cuda_task task = {.kind = SB_CUDA_KERNEL,
                         .kernel = {.kernel = setting->mix,
                                    .grid = {1, 1, 1},
                                    .block = {COUNT, 1, 1},
                                    .parameters = &parameters,
                                    .range_count = 2,
                                    .ranges = ranges}};
    return sb_cuda_launch(&setting->queue, &task, error);
}

static CUdeviceptr host_part(const setting *setting, int part) {
    return (CUdeviceptr)(uintptr_t)setting->host->data + (CUdeviceptr)part * BYTES;
}

static sb_status copy(const setting *setting, sb_cuda_task_kind kind, CUdeviceptr to, CUdeviceptr from,
                      sb_error *error) {
    sb_cuda_task task = {.kind = kind, .step = -1, .copy = {to, from, BYTES}};
    return sb_cuda_launch(&setting->queue, &task, error);
}

/* `count` tasks of all kinds over all buffers; equal seeds give equal tasks. Buffers are filled
 * first and fetched at the end. */
static sb_status launch_random(const setting *setting, uint64_t seed, int count, sb_error *error) {
    random_source source = {seed};
    for (int i = 0; i < BUFFERS; i++)
        SB_TRY(copy(setting, SB_CUDA_COPY_TO_DEVICE, setting->buffers[i]->address, host_part(setting, i), error));
    for (int i = 0; i < count; i++) {
        int one = (int)random_between(&source, 0, BUFFERS - 1);
        int other = (one + (int)random_between(&source, 1, BUFFERS - 1)) % BUFFERS;
        CUdeviceptr first = setting->buffers[one]->address, second = setting->buffers[other]->address;
        switch (random_between(&source, 0, 9)) {
        case 0:
            SB_TRY(copy(setting, SB_CUDA_COPY_ON_DEVICE, first, second, error));
            break;
        case 1: {
            /* Half a buffer: the halves are independent. */
            sb_cuda_task task = {.kind = SB_CUDA_FILL,
                                 .fill = {first + (i % 2) * BYTES / 2, BYTES / 2, (unsigned char)i}};
            SB_TRY(sb_cuda_launch(&setting->queue, &task, error));
            break;
        }
        case 2:
            SB_TRY(copy(setting, SB_CUDA_COPY_TO_HOST, host_part(setting, one), first, error));
            break;
        default:
            SB_TRY(mix(setting, one, other, error));
        }
    }
    for (int i = 0; i < BUFFERS; i++)
        SB_TRY(copy(setting, SB_CUDA_COPY_TO_HOST, host_part(setting, i), setting->buffers[i]->address, error));
    return SB_OK;
}

static void start_values(const setting *setting, uint32_t salt) {
    uint32_t *values = setting->host->data;
    for (uint32_t i = 0; i < BUFFERS * COUNT; i++)
        values[i] = i * 2654435761u + salt;
}

/* Launches the graph and compares with `expected`. */
static void check_replay(const setting *setting, const sb_cuda_graph *graph, uint32_t salt, const uint32_t *expected) {
    start_values(setting, salt);
    MUST(sb_cuda_enter(setting->device, error));
    MUST(sb_cuda_graph_launch(graph, setting->queue.stream, error));
    MUST(sb_cuda_leave(setting->device, SB_OK, error));
    MUST(sb_cuda_stream_synchronize(setting->queue.stream, error));
    assert_memory_equal(setting->host->data, expected, BUFFERS * BYTES);
}

static void run_eager(setting *setting, uint64_t seed, int count, uint32_t salt, uint32_t *values) {
    start_values(setting, salt);
    sb_cuda_task_list_clear(setting->queue.record);
    MUST(sb_cuda_enter(setting->device, error));
    MUST(launch_random(setting, seed, count, error));
    MUST(sb_cuda_leave(setting->device, SB_OK, error));
    MUST(sb_cuda_stream_synchronize(setting->queue.stream, error));
    memcpy(values, setting->host->data, BUFFERS * BYTES);
}

static void test_replays(void **unused) {
    const fake_cuda_control *fake = fake_with_kernel();
    setting setting = {0};
    MUST(set_up(open_fake(), &setting, error));
    uint32_t expected[2][BUFFERS * COUNT];
    for (uint64_t seed = 1; seed <= 60; seed++) {
        int count = (int)seed;
        run_eager(&setting, seed, count, 1, expected[0]);
        run_eager(&setting, seed, count, 2, expected[1]);
        sb_cuda_graph *built = NULL, *captured = NULL;
        MUST(sb_cuda_graph_build(setting.device, setting.queue.record, false, &built, error));
        assert_int_equal(built->task_count, count + 2 * BUFFERS);
        sb_cuda_counters before = sb_cuda_device_counters(setting.device);
        MUST(sb_cuda_enter(setting.device, error));
        MUST(sb_cuda_capture_begin(&setting.queue, error));
        sb_status status = launch_random(&setting, seed, count, NULL);
        MUST(sb_cuda_capture_end(&setting.queue, status, &captured, error));
        MUST(sb_cuda_leave(setting.device, SB_OK, error));
        assert_int_equal(captured->task_count, count + 2 * BUFFERS);
        sb_cuda_counters after = sb_cuda_device_counters(setting.device);
        assert_memory_equal(&before, &after, sizeof before);
        for (uint32_t i = 0; i < 4; i++) {
            check_replay(&setting, built, 1 + i % 2, expected[i % 2]);
            check_replay(&setting, captured, 1 + i % 2, expected[i % 2]);
        }
        after = sb_cuda_device_counters(setting.device);
        assert_int_equal(after.graph_launches, before.graph_launches + 8);
        assert_int_equal(after.copies_to_device, before.copies_to_device + 8 * BUFFERS);
        assert_int_equal(after.kernels, before.kernels + 8 * built->tasks.kernels);
        sb_cuda_graph_destroy(built);
        sb_cuda_graph_destroy(captured);
    }
    tear_down(&setting);
    check_nothing_lives(fake);
}

/* a = f(a, b); c = f(c, d); a = f(a, c): one edge each from the two independent ones, and none
 * where another way exists. */
static void test_edges(void **unused) {
    const fake_cuda_control *fake = fake_with_kernel();
    setting setting = {0};
    MUST(set_up(open_fake(), &setting, error));
    MUST(sb_cuda_enter(setting.device, error));
    MUST(mix(&setting, 0, 1, error)); /* 0 */
    MUST(mix(&setting, 2, 3, error)); /* 1 */
    MUST(mix(&setting, 0, 2, error)); /* 2: after 0 and 1 */
    MUST(mix(&setting, 0, 2, error)); /* 3: after 2, and by it after 0 and 1 */
    MUST(mix(&setting, 4, 1, error)); /* 4: reads what 0 only reads */
    MUST(mix(&setting, 1, 5, error)); /* 5: writes what 0 and 4 read */
    MUST(sb_cuda_leave(setting.device, SB_OK, error));
    sb_cuda_graph *graph = NULL;
    MUST(sb_cuda_graph_build(setting.device, setting.queue.record, false, &graph, error));
    assert_int_equal(graph->edge_count, 2 + 1 + 2);
    sb_cuda_graph_destroy(graph);
    sb_cuda_graph_destroy(NULL);
    tear_down(&setting);
    check_nothing_lives(fake);
}

/* The list of test_settled, whose last task is apart and would read two buffers ahead. */
static sb_cuda_task_list *make_settled(const setting *setting, const int ahead[2], bool comes_early) {
    const int count = sb_cuda_task_list_count(setting->queue.record);
    sb_cuda_task_list *list = NULL;
    MUST(sb_cuda_task_list_create(&list, error));
    for (int i = 0; i < count; i++) {
        sb_cuda_task task = sb_cuda_task_list_at(setting->queue.record, i);
        if (i == count - 1) {
            task.kernel.apart = true;
            task.kernel.settled = (sb_cuda_settled){.place = offsetof(mix_parameters, count),
                                                    .count = 2,
                                                    .ranges = {{setting->buffers[ahead[0]]->address, 4, false},
                                                               {setting->buffers[ahead[1]]->address, 4, false}},
                                                    .comes_early = comes_early};
        }
        MUST(sb_cuda_task_list_append(list, &task, error));
    }
    return list;
}

/* What a graph of it makes of buffer 2. The kernel that is told that something is settled gets SB_CUDA_SETTLED as its count, and does nothing. */
static void check_settled(const setting *setting, const sb_cuda_task_list *list, bool dependent_launch,
                          bool is_settled) {
    sb_cuda_graph *graph = NULL;
    MUST(sb_cuda_graph_build(setting->device, list, dependent_launch, &graph, error));
    assert_int_equal(graph->settled_count, is_settled);
    start_values(setting, 1);
    const uint32_t *values = setting->host->data;
    uint32_t expected[COUNT];
    for (int i = 0; i < COUNT; i++) {
        expected[i] = 3 * values[2 * COUNT + i] + values[COUNT + i] + 1;
        expected[i] = is_settled ? expected[i] : 3 * expected[i] + values[i] + 1;
    }
    MUST(sb_cuda_enter(setting->device, error));
    MUST(sb_cuda_graph_launch(graph, setting->queue.stream, error));
    MUST(sb_cuda_leave(setting->device, SB_OK, error));
    MUST(sb_cuda_stream_synchronize(setting->queue.stream, error));
    MUST(sb_cuda_enter(setting->device, error));
    const sb_cuda_task fetch = {
        .kind = SB_CUDA_COPY_TO_HOST, .step = -1, .copy = {host_part(setting, 5), setting->buffers[2]->address, BYTES}};
    const sb_cuda_queue queue = {.stream = setting->queue.stream};
    MUST(sb_cuda_launch(&queue, &fetch, error));
    MUST(sb_cuda_leave(setting->device, SB_OK, error));
    MUST(sb_cuda_stream_synchronize(setting->queue.stream, error));
    assert_memory_equal(values + 5 * COUNT, expected, BYTES);
    sb_cuda_graph_destroy(graph);
}

/* Buffers that copies write are settled, and those that nobody writes; not what a kernel writes, beside another one or not. */
static void test_settled(void **unused) {
    const fake_cuda_control *fake = fake_with_kernel();
    setting setting = {0};
    MUST(set_up(open_fake(), &setting, error));
    MUST(sb_cuda_enter(setting.device, error));
    for (int i = 0; i < 3; i++)
        MUST(copy(&setting, SB_CUDA_COPY_TO_DEVICE, setting.buffers[i]->address, host_part(&setting, i), error));
    MUST(mix(&setting, 2, 1, error));
    MUST(mix(&setting, 4, 0, error));
    MUST(mix(&setting, 2, 0, error));
    MUST(sb_cuda_leave(setting.device, SB_OK, error));
    for (int number = 0; number < 8; number++) {
        static const int ahead[4][2] = {{0, 0}, {0, 3}, {4, 4}, {0, 4}};
        sb_cuda_task_list *list = make_settled(&setting, ahead[number / 2], number % 2 == 0);
        check_settled(&setting, list, true, number / 2 < 2);
        check_settled(&setting, list, false, false);
        sb_cuda_task_list_destroy(list);
    }
    tear_down(&setting);
    check_nothing_lives(fake);
}

/* The test of the test: a task that does not tell what it reads gives other bits here. */
static void test_missing_range(void **unused) {
    const fake_cuda_control *fake = fake_with_kernel();
    setting setting = {0};
    MUST(set_up(open_fake(), &setting, error));
    sb_cuda_task_list *silent = NULL;
    MUST(sb_cuda_task_list_create(&silent, error));
    uint32_t expected[BUFFERS * COUNT];
    run_eager(&setting, 7, 30, 1, expected);
    for (int i = 0; i < sb_cuda_task_list_count(setting.queue.record); i++) {
        sb_cuda_task task = sb_cuda_task_list_at(setting.queue.record, i);
        if (task.kind == SB_CUDA_KERNEL)
            task.kernel.range_count = 1;
        MUST(sb_cuda_task_list_append(silent, &task, error));
    }
    sb_cuda_graph *graph = NULL;
    MUST(sb_cuda_graph_build(setting.device, silent, false, &graph, error));
    start_values(&setting, 1);
    MUST(sb_cuda_enter(setting.device, error));
    MUST(sb_cuda_graph_launch(graph, setting.queue.stream, error));
    MUST(sb_cuda_leave(setting.device, SB_OK, error));
    MUST(sb_cuda_stream_synchronize(setting.queue.stream, error));
    assert_memory_not_equal(setting.host->data, expected, BUFFERS * BYTES);
    sb_cuda_graph_destroy(graph);
    sb_cuda_task_list_destroy(silent);
    tear_down(&setting);
    check_nothing_lives(fake);
}

typedef sb_status interference(setting *setting, sb_error *error);

/* Begins to capture, lets `interfere` do something, and gives what ending says. */
static sb_status capture_with(setting *setting, interference *interfere, sb_error *error) {
    sb_cuda_graph *graph = NULL;
    MUST(sb_cuda_enter(setting->device, error));
    MUST(sb_cuda_capture_begin(&setting->queue, error));
    sb_status status = mix(setting, 0, 1, error);
    if (status == SB_OK)
        status = interfere(setting, error);
    if (status == SB_OK)
        status = mix(setting, 1, 2, error);
    status = sb_cuda_capture_end(&setting->queue, status, &graph, error);
    status = sb_cuda_leave(setting->device, status, error);
    sb_cuda_graph_destroy(graph);
    return status;
}

static sb_status do_nothing(setting *setting, sb_error *error) {
    return SB_OK;
}

static sb_status allocate_memory(setting *setting, sb_error *error) {
    sb_cuda_memory *memory = NULL;
    sb_status status = sb_cuda_memory_create(setting->device, 64, &memory, error);
    sb_cuda_memory_release(memory);
    return status;
}

/* As somebody would who does not look at what it gives. */
static sb_status allocate_carelessly(setting *setting, sb_error *error) {
    assert_int_not_equal(allocate_memory(setting, NULL), SB_OK);
    return SB_OK;
}

static sb_status wait_for_stream(setting *setting, sb_error *error) {
    return sb_cuda_stream_synchronize(setting->queue.stream, error);
}

static sb_status fail_with_shape(setting *setting, sb_error *error) {
    return sb_fail(error, SB_ERROR_SHAPE, "the node has another shape");
}

static sb_status bypass(setting *setting, sb_error *error) {
    const sb_cuda_driver *driver = setting->device->driver;
    assert_int_equal(driver->cuMemsetD8Async(setting->buffers[0]->address, 0, 4, setting->queue.stream->handle),
                     CUDA_SUCCESS);
    return SB_OK;
}

static sb_status copy_pageable(setting *setting, sb_error *error) {
    static char ordinary[BYTES];
    return copy(setting, SB_CUDA_COPY_TO_DEVICE, setting->buffers[0]->address, (CUdeviceptr)(uintptr_t)ordinary, error);
}

static void test_failed_captures(void **unused) {
    static const struct {
        interference *interfere;
        sb_status status;
        const char *says;
    } cases[] = {
        {allocate_memory, SB_ERROR_DEVICE, "cuMemAlloc failed with CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
        {allocate_carelessly, SB_ERROR_DEVICE, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
        {wait_for_stream, SB_ERROR_DEVICE, "cuStreamSynchronize"},
        {fail_with_shape, SB_ERROR_SHAPE, "the node has another shape"},
        {bypass, SB_ERROR_INTERNAL, "3 tasks were captured and 2 recorded"},
        {copy_pageable, SB_ERROR_DEVICE, "cuMemcpyHtoDAsync"},
    };
    const fake_cuda_control *fake = fake_with_kernel();
    setting setting = {0};
    MUST(set_up(open_fake(), &setting, error));
    uint32_t expected[BUFFERS * COUNT], again[BUFFERS * COUNT];
    run_eager(&setting, 3, 20, 1, expected);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sb_error error = {SB_OK, ""};
        assert_int_equal(capture_with(&setting, cases[i].interfere, &error), cases[i].status);
        assert_says(error, cases[i].says);
        /* The stream and the device are as good as before. */
        run_eager(&setting, 3, 20, 1, again);
        assert_memory_equal(expected, again, sizeof expected);
        assert_int_equal(capture_with(&setting, do_nothing, &error), SB_OK);
    }
    assert_int_equal(fake->live().graphs, 0);
    tear_down(&setting);
    check_nothing_lives(fake);
}

static void test_not_capturable(void **unused) {
    const fake_cuda_control *fake = fake_with_kernel();
    setting setting = {0};
    MUST(set_up(open_fake(), &setting, error));
    sb_cuda_stream *legacy = NULL;
    sb_cuda_trace *trace = NULL;
    sb_error error;
    MUST(sb_cuda_stream_wrap(setting.device, NULL, &legacy, error));
    MUST(sb_cuda_trace_create(setting.device, &trace, error));
    sb_cuda_queue queues[] = {{.stream = legacy, .record = setting.queue.record},
                              {.stream = setting.queue.stream},
                              {.stream = setting.queue.stream, .record = setting.queue.record, .trace = trace}};
    static const sb_status statuses[] = {SB_ERROR_DEVICE, SB_ERROR_INTERNAL, SB_ERROR_INTERNAL};
    MUST(sb_cuda_enter(setting.device, error));
    for (int i = 0; i < 3; i++)
        assert_int_equal(sb_cuda_capture_begin(&queues[i], &error), statuses[i]);
    assert_int_equal(sb_cuda_capture_begin(&setting.queue, &error), SB_OK);
    assert_int_equal(sb_cuda_capture_begin(&setting.queue, &error), SB_ERROR_INTERNAL);
    assert_int_equal(sb_cuda_capture_end(&setting.queue, SB_ERROR_SHAPE, NULL, &error), SB_ERROR_SHAPE);
    MUST(sb_cuda_leave(setting.device, SB_OK, error));
    sb_cuda_trace_destroy(trace);
    sb_cuda_stream_destroy(legacy);
    tear_down(&setting);
    check_nothing_lives(fake);
}

/* ---- every failure ---- */

static sb_status use_graphs(void *context) {
    setting setting = {0};
    sb_cuda_graph *built = NULL, *captured = NULL;
    sb_status status = set_up(context, &setting, NULL);
    if (status == SB_OK)
        status = sb_cuda_enter(setting.device, NULL);
    if (status == SB_OK) {
        status = sb_cuda_capture_begin(&setting.queue, NULL);
        if (status == SB_OK)
            status = sb_cuda_capture_end(&setting.queue, launch_random(&setting, 5, 12, NULL), &captured, NULL);
        if (status == SB_OK)
            status = sb_cuda_graph_build(setting.device, setting.queue.record, false, &built, NULL);
        if (status == SB_OK)
            status = sb_cuda_graph_launch(captured, setting.queue.stream, NULL);
        if (status == SB_OK)
            status = sb_cuda_graph_launch(built, setting.queue.stream, NULL);
        status = sb_cuda_leave(setting.device, status, NULL);
    }
    if (status == SB_OK)
        status = sb_cuda_stream_synchronize(setting.queue.stream, NULL);
    sb_cuda_graph_destroy(built);
    sb_cuda_graph_destroy(captured);
    tear_down(&setting);
    return status;
}

static void test_failing_calls(void **unused) {
    const fake_cuda_control *fake = fake_with_kernel();
    sb_cuda_driver driver = *open_fake();
    check_failing_calls(fake, use_graphs, &driver, CUDA_ERROR_UNKNOWN);
    check_failing_calls(fake, use_graphs, &driver, CUDA_ERROR_OUT_OF_MEMORY);
    check_failing_calls(fake, use_graphs, &driver, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void test_failing_allocations(void **unused) {
    const fake_cuda_control *fake = fake_with_kernel();
    sb_cuda_driver driver = *open_fake();
    check_failing_allocations(use_graphs, &driver);
    check_nothing_lives(fake);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replays),         cmocka_unit_test(test_edges),
        cmocka_unit_test(test_settled),         cmocka_unit_test(test_missing_range),
        cmocka_unit_test(test_failed_captures), cmocka_unit_test(test_not_capturable),
        cmocka_unit_test(test_failing_calls),   cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
