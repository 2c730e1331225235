/* Tasks: carried out, recorded, counted, measured; and which of them must keep their order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "cuda/driver/memory.h"
#include "cuda/queue/trace.h"
#include "support/failing.h"
#include "with_fake.h"

typedef struct add_parameters {
    float *out;
    const float *in;
    float amount;
    int count;
} add_parameters;

static void run_add(const void *given, const unsigned grid[3], const unsigned block[3], unsigned shared_bytes) {
    const add_parameters *parameters = given;
    for (int i = 0; i < parameters->count; i++)
        parameters->out[i] = parameters->in[i] + parameters->amount;
}

#define COUNT 100
#define BYTES (COUNT * sizeof(float))

typedef struct setting {
    sb_cuda_device *device;
    sb_cuda_stream *stream;
    sb_cuda_task_list *list;
    sb_cuda_trace *trace;
    sb_cuda_memory *in, *out;
    sb_cuda_pinned *host;
    const sb_cuda_kernel *add;
    sb_cuda_queue queue;
} setting;

static void tear_down(setting *setting) {
    if (setting->stream != NULL)
        (void)sb_cuda_stream_synchronize(setting->stream, NULL);
    sb_cuda_trace_destroy(setting->trace);
    sb_cuda_task_list_destroy(setting->list);
    sb_cuda_pinned_destroy(setting->host);
    sb_cuda_memory_release(setting->in);
    sb_cuda_memory_release(setting->out);
    sb_cuda_stream_destroy(setting->stream);
    sb_cuda_device_release(setting->device);
}

static sb_status set_up(const sb_cuda_driver *driver, setting *setting, sb_error *error) {
    SB_TRY(sb_cuda_device_open(driver, 0, &test_images, &setting->device, error));
    SB_TRY(sb_cuda_stream_create(setting->device, &setting->stream, error));
    SB_TRY(sb_cuda_task_list_create(&setting->list, error));
    SB_TRY(sb_cuda_trace_create(setting->device, &setting->trace, error));
    SB_TRY(sb_cuda_memory_create(setting->device, BYTES, &setting->in, error));
    SB_TRY(sb_cuda_memory_create(setting->device, BYTES, &setting->out, error));
    SB_TRY(sb_cuda_pinned_create(setting->device, BYTES, &setting->host, error));
    SB_TRY(sb_cuda_kernel_find(setting->device, "test", "first", sizeof(add_parameters), &setting->add, error));
    setting->queue = (sb_cuda_queue){.stream = setting->stream, .record = setting->list, .trace = setting->trace};
    return SB_OK;
}

/* in = 3 everywhere by a fill and a copy, out = in + amount, host = out. */
static sb_status launch_all(const setting *setting, float amount, sb_error *error) {
    add_parameters parameters = {(float *)(uintptr_t)setting->out->address,
                                 (const float *)(uintptr_t)setting->in->address, amount, COUNT};
    sb_cuda_range ranges[] = {{setting->out->address, BYTES, true}, {setting->in->address, BYTES, false}};
    CUdeviceptr host = (CUdeviceptr)(uintptr_t)setting->host->data;
    const sb_cuda_task tasks[] = {
        {.kind = SB_CUDA_FILL, .step = 0, .fill = {.to = setting->in->address, .bytes = BYTES}},
        {.kind = SB_CUDA_COPY_TO_DEVICE, .step = 1, .copy = {setting->in->address, host, BYTES / 2}},
        {.kind = SB_CUDA_COPY_ON_DEVICE, .step = 2, .copy = {setting->out->address, setting->in->address, BYTES}},
        {.kind = SB_CUDA_COPY_ON_DEVICE, .step = 2, .copy = {setting->out->address, setting->in->address, 0}},
        {.kind = SB_CUDA_KERNEL,
         .step = 3,
         .kernel = {.kernel = setting->add,
                    .grid = {1, 1, 1},
                    .block = {COUNT, 1, 1},
                    .parameters = &parameters,
                    .range_count = 2,
                    .ranges = ranges}},
        {.kind = SB_CUDA_COPY_TO_HOST, .step = -1, .copy = {host, setting->out->address, BYTES}},
    };
    for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++)
        SB_TRY(sb_cuda_launch(&setting->queue, &tasks[i], error));
    /* The parameters belong to the launch from then on. */
    memset(&parameters, 0xff, sizeof parameters);
    return SB_OK;
}

static sb_status launch_and_wait(const setting *setting, sb_error *error) {
    float *host = setting->host->data;
    for (int i = 0; i < COUNT; i++)
        host[i] = (float)i;
    SB_TRY(sb_cuda_enter(setting->device, error));
    sb_status status = launch_all(setting, 0.5f, error);
    SB_TRY(sb_cuda_leave(setting->device, status, error));
    return sb_cuda_stream_synchronize(setting->stream, error);
}

static const fake_cuda_control *fake_with_kernel(void) {
    const fake_cuda_control *fake = fresh_fake();
    fake->define_kernel("first", sizeof(add_parameters), run_add);
    return fake;
}

static void test_launch(void **unused) {
    const fake_cuda_control *fake = fake_with_kernel();
    setting setting = {0};
    sb_error error = {SB_OK, ""};
    if (set_up(open_fake(), &setting, &error) != SB_OK || launch_and_wait(&setting, &error) != SB_OK)
        fail_msg("%s", error.message);
    const float *host = setting.host->data;
    for (int i = 0; i < COUNT; i++)
        assert_true(host[i] == (i < COUNT / 2 ? (float)i : 0.0f) + 0.5f);

    sb_cuda_counters counters = sb_cuda_device_counters(setting.device);
    assert_int_equal(counters.kernels, 1);
    assert_int_equal(counters.fills, 1);
    assert_int_equal(counters.copies_to_device, 1);
    assert_int_equal(counters.bytes_to_device, BYTES / 2);
    assert_int_equal(counters.copies_on_device, 1);
    assert_int_equal(counters.copies_to_host, 1);
    assert_int_equal(counters.bytes_to_host, BYTES);

    /* A copy of nothing is no task. */
    assert_int_equal(sb_cuda_task_list_count(setting.list), 5);
    static const sb_cuda_task_kind kinds[] = {SB_CUDA_FILL, SB_CUDA_COPY_TO_DEVICE, SB_CUDA_COPY_ON_DEVICE,
                                              SB_CUDA_KERNEL, SB_CUDA_COPY_TO_HOST};
    static const char *const names[] = {"fill", "copy to device", "copy on device", "first", "copy to host"};
    assert_int_equal(sb_cuda_trace_count(setting.trace), 5);
    double before = 0;
    for (int i = 0; i < 5; i++) {
        sb_cuda_task task = sb_cuda_task_list_at(setting.list, i);
        assert_int_equal(task.kind, kinds[i]);
        assert_string_equal(sb_cuda_task_name(&task), names[i]);
        sb_cuda_span span;
        assert_int_equal(sb_cuda_trace_span(setting.trace, i, &span, &error), SB_OK);
        assert_string_equal(span.name, names[i]);
        assert_int_equal(span.step, task.step);
        assert_true(span.start_ns >= before && span.end_ns > span.start_ns);
        before = span.end_ns;
    }
    sb_cuda_task kernel = sb_cuda_task_list_at(setting.list, 3);
    const add_parameters *parameters = kernel.kernel.parameters;
    assert_true(parameters->amount == 0.5f && parameters->count == COUNT);
    assert_int_equal(kernel.kernel.range_count, 2);
    assert_int_equal(kernel.kernel.ranges[0].address, setting.out->address);
    assert_true(kernel.kernel.ranges[0].written && !kernel.kernel.ranges[1].written);
    tear_down(&setting);
    check_nothing_lives(fake);
}

/* Many tasks, so that the list's memory moves; each launched again from the list gives the same. */
static void test_list(void **unused) {
    const fake_cuda_control *fake = fake_with_kernel();
    setting setting = {0};
    sb_error error;
    assert_int_equal(set_up(open_fake(), &setting, &error), SB_OK);
    setting.queue.trace = NULL;
    assert_int_equal(sb_cuda_enter(setting.device, &error), SB_OK);
    for (int i = 0; i < 100; i++)
        assert_int_equal(launch_all(&setting, (float)i, &error), SB_OK);
    assert_int_equal(sb_cuda_task_list_count(setting.list), 500);
    sb_cuda_queue again = {.stream = setting.stream};
    for (int i = 0; i < 100; i++) {
        sb_cuda_task task = sb_cuda_task_list_at(setting.list, 5 * i + 3);
        const add_parameters *parameters = task.kernel.parameters;
        assert_true(parameters->amount == (float)i);
        assert_int_equal((uintptr_t)parameters % 16, 0);
        assert_int_equal(task.kernel.ranges[1].address, setting.in->address);
        assert_int_equal(sb_cuda_launch(&again, &task, &error), SB_OK);
    }
    assert_int_equal(sb_cuda_leave(setting.device, SB_OK, &error), SB_OK);
    assert_int_equal(sb_cuda_task_list_count(setting.list), 500);
    sb_cuda_task_list_clear(setting.list);
    assert_int_equal(sb_cuda_task_list_count(setting.list), 0);
    tear_down(&setting);
    check_nothing_lives(fake);
}

/* A task that the driver refuses leaves no record. */
static void test_refused(void **unused) {
    const fake_cuda_control *fake = fake_with_kernel();
    setting setting = {0};
    sb_error error;
    assert_int_equal(set_up(open_fake(), &setting, &error), SB_OK);
    assert_int_equal(sb_cuda_enter(setting.device, &error), SB_OK);
    fake->plan_failure("cuLaunchKernelEx", 0, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    assert_int_equal(launch_all(&setting, 1, &error), SB_ERROR_DEVICE);
    assert_says(error, "kernel first: device 0 (Fake H200): CUDA: cuLaunchKernelEx");
    assert_int_equal(sb_cuda_task_list_count(setting.list), 3);
    assert_int_equal(sb_cuda_trace_count(setting.trace), 3);
    assert_int_equal(sb_cuda_device_counters(setting.device).kernels, 0);
    assert_int_equal(launch_all(&setting, 1, &error), SB_OK);
    assert_int_equal(sb_cuda_task_list_count(setting.list), 8);
    assert_int_equal(sb_cuda_trace_count(setting.trace), 8);
    static const struct {
        unsigned grid[3], block[3], shared;
        const char *says;
    } shapes[] = {
        {{0, 1, 1}, {32, 1, 1}, 0, "grid of 0x1x1"},
        {{1, 65536, 1}, {32, 1, 1}, 0, "grid of 1x65536x1"},
        {{1, 1, 1}, {1025, 1, 1}, 0, "1025x1x1 threads"},
        {{1, 1, 1}, {64, 32, 1}, 0, "a block can have 1024"},
        {{1, 1, 1}, {32, 0, 1}, 0, "32x0x1 threads"},
        {{1, 1, 1}, {32, 1, 1}, 300000, "300000 bytes of shared memory"},
    };
    add_parameters parameters = {0};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        sb_cuda_task task = {
            .kind = SB_CUDA_KERNEL,
            .kernel = {.kernel = setting.add, .shared_bytes = shapes[i].shared, .parameters = &parameters}};
        memcpy(task.kernel.grid, shapes[i].grid, sizeof task.kernel.grid);
        memcpy(task.kernel.block, shapes[i].block, sizeof task.kernel.block);
        assert_int_equal(sb_cuda_launch(&setting.queue, &task, &error), SB_ERROR_INTERNAL);
        assert_says(error, shapes[i].says);
    }
    assert_int_equal(sb_cuda_task_list_count(setting.list), 8);
    assert_int_equal(sb_cuda_leave(setting.device, SB_OK, &error), SB_OK);
    tear_down(&setting);
    check_nothing_lives(fake);
}

static bool conflict(sb_cuda_range one, sb_cuda_range other) {
    static const sb_cuda_kernel kernel = {.name = (char *)"kernel"};
    sb_cuda_task first = {.kind = SB_CUDA_KERNEL, .kernel = {.kernel = &kernel, .range_count = 1, .ranges = &one}};
    sb_cuda_task second = {.kind = SB_CUDA_KERNEL, .kernel = {.kernel = &kernel, .range_count = 1, .ranges = &other}};
    assert_int_equal(sb_cuda_tasks_conflict(&first, &second), sb_cuda_tasks_conflict(&second, &first));
    return sb_cuda_tasks_conflict(&first, &second);
}

static void test_conflicts(void **unused) {
    sb_cuda_range written = {1000, 100, true}, read = {1000, 100, false}, behind = {1100, 50, true},
                  inner = {1050, 1, true}, inner_read = {1050, 1, false}, empty = {1050, 0, true};
    assert_true(conflict(written, written));
    assert_true(conflict(written, read));
    assert_false(conflict(read, read));
    assert_false(conflict(written, behind));
    assert_true(conflict(written, inner));
    assert_true(conflict(read, inner));
    assert_true(conflict(written, inner_read));
    assert_false(conflict(read, inner_read));
    assert_false(conflict(written, empty));
    sb_cuda_task copy = {.kind = SB_CUDA_COPY_ON_DEVICE, .copy = {.to = 5000, .from = 1000, .bytes = 10}};
    sb_cuda_task same_source = {.kind = SB_CUDA_COPY_TO_HOST, .copy = {.to = 9000, .from = 1000, .bytes = 10}};
    sb_cuda_task fill_source = {.kind = SB_CUDA_FILL, .fill = {.to = 1009, .bytes = 10}};
    sb_cuda_task upload = {.kind = SB_CUDA_COPY_TO_DEVICE, .copy = {.to = 7000, .from = 9005, .bytes = 10}};
    assert_false(sb_cuda_tasks_conflict(&copy, &same_source));
    assert_true(sb_cuda_tasks_conflict(&copy, &fill_source));
    assert_true(sb_cuda_tasks_conflict(&same_source, &upload));
    assert_false(sb_cuda_tasks_conflict(&copy, &upload));
}

/* ---- every failure ---- */

static sb_status do_all(void *context) {
    setting setting = {0};
    sb_status status = set_up(context, &setting, NULL);
    if (status == SB_OK)
        status = launch_and_wait(&setting, NULL);
    for (int i = 0; status == SB_OK && i < sb_cuda_trace_count(setting.trace); i++) {
        sb_cuda_span span;
        status = sb_cuda_trace_span(setting.trace, i, &span, NULL);
    }
    /* No task without its record, and none recorded that was not carried out. */
    if (setting.device != NULL && setting.list != NULL) {
        sb_cuda_counters counters = sb_cuda_device_counters(setting.device);
        assert_int_equal(sb_cuda_task_list_count(setting.list),
                         counters.kernels + counters.fills + counters.copies_on_device + counters.copies_to_device +
                             counters.copies_to_host);
    }
    tear_down(&setting);
    return status;
}

static void test_failing_calls(void **unused) {
    const fake_cuda_control *fake = fresh_fake();
    sb_cuda_driver driver = *open_fake();
    check_failing_calls(fake, do_all, &driver, CUDA_ERROR_UNKNOWN);
    check_failing_calls(fake, do_all, &driver, CUDA_ERROR_LAUNCH_TIMEOUT);
}

static void test_failing_allocations(void **unused) {
    const fake_cuda_control *fake = fresh_fake();
    sb_cuda_driver driver = *open_fake();
    check_failing_allocations(do_all, &driver);
    check_nothing_lives(fake);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launch),        cmocka_unit_test(test_list),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_conflicts),
        cmocka_unit_test(test_failing_calls), cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
