/* Devices in use: contexts, kernels, losing a device. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "cuda/driver/kernel.h"
#include "cuda/driver/memory.h"
#include "cuda/queue/stream.h"
#include "support/failing.h"
#include "with_fake.h"

static sb_cuda_device *open_device(const sb_cuda_images *images) {
    sb_cuda_device *device = NULL;
    sb_error error = {SB_OK, ""};
    if (sb_cuda_device_open(open_fake(), 0, images, &device, &error) != SB_OK)
        fail_msg("%s", error.message);
    return device;
}

static void test_opening(void **unused) {
    const fake_cuda_control *fake = fresh_fake();
    sb_cuda_device *device = open_device(&test_images);
    assert_int_equal(device->compute, 90);
    assert_int_equal(device->index, 0);
    assert_string_equal(device->name, "Fake H200");
    assert_int_equal(fake->live().contexts, 1);
    sb_cuda_device_release(device);
    sb_cuda_device_release(NULL);
    check_nothing_lives(fake);
    sb_error error;
    assert_int_equal(sb_cuda_device_open(open_fake(), 1, NULL, &device, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_says(error, "no CUDA device 1");
    assert_int_equal(sb_cuda_device_open(open_fake(), -1, NULL, &device, &error), SB_ERROR_INVALID_ARGUMENT);
}

/* Whatever was current before is so again, and the primary context is shared, never made or destroyed. */
static void test_callers_context(void **unused) {
    const fake_cuda_control *fake = fresh_fake();
    const sb_cuda_driver *driver = open_fake();
    CUcontext callers = NULL, current = NULL;
    assert_int_equal(driver->cuDevicePrimaryCtxRetain(&callers, 0), CUDA_SUCCESS);
    sb_cuda_device *device = open_device(&test_images);
    assert_ptr_equal(device->context, callers);
    driver->cuCtxGetCurrent(&current);
    assert_null(current);
    sb_error error;
    assert_int_equal(sb_cuda_enter(device, &error), SB_OK);
    assert_int_equal(sb_cuda_enter(device, &error), SB_OK);
    driver->cuCtxGetCurrent(&current);
    assert_ptr_equal(current, callers);
    assert_int_equal(sb_cuda_leave(device, SB_OK, &error), SB_OK);
    driver->cuCtxGetCurrent(&current);
    assert_ptr_equal(current, callers);
    assert_int_equal(sb_cuda_leave(device, SB_ERROR_SHAPE, &error), SB_ERROR_SHAPE);
    driver->cuCtxGetCurrent(&current);
    assert_null(current);
    sb_cuda_memory *memory = NULL;
    assert_int_equal(sb_cuda_memory_create(device, 100, &memory, &error), SB_OK);
    sb_cuda_memory_release(memory);
    driver->cuCtxGetCurrent(&current);
    assert_null(current);
    sb_cuda_device_release(device);
    assert_int_equal(fake->live().contexts, 1);
    driver->cuDevicePrimaryCtxRelease(0);
    check_nothing_lives(fake);
}

static void test_kernels(void **unused) {
    const fake_cuda_control *fake = fresh_fake();
    sb_cuda_device *device = open_device(&test_images);
    const sb_cuda_kernel *first = NULL, *again = NULL, *second = NULL;
    sb_error error;
    assert_int_equal(fake->live().modules, 0);
    assert_int_equal(sb_cuda_kernel_find(device, "test", "first", 8, &first, &error), SB_OK);
    assert_int_equal(sb_cuda_kernel_find(device, "test", "second", 16, &second, &error), SB_OK);
    assert_int_equal(sb_cuda_kernel_find(device, "test", "first", 8, &again, &error), SB_OK);
    assert_ptr_equal(first, again);
    assert_string_equal(second->name, "second");
    assert_int_equal(first->parameter_bytes, 8);
    assert_int_equal(fake->calls("cuModuleLoadDataEx"), 1);
    assert_int_equal(fake->calls("cuModuleGetFunction"), 2);
    assert_true(logged(fake, "cuModuleLoadDataEx(FAKE sm_90a"));
    assert_true(logged(fake, "cuFuncSetAttribute(first, 8, 232448)"));

    assert_int_equal(sb_cuda_kernel_find(device, "test", "first", 9, &again, &error), SB_ERROR_INTERNAL);
    assert_says(error, "8 and with 9 bytes");
    assert_int_equal(sb_cuda_kernel_find(device, "test", "third", 8, &again, &error), SB_ERROR_INTERNAL);
    assert_says(error, "module test for sm_90a has no kernel third");
    assert_int_equal(sb_cuda_kernel_find(device, "none", "first", 8, &again, &error), SB_ERROR_UNSUPPORTED);
    assert_says(error, "module none");
    assert_int_equal(sb_cuda_kernel_find(device, "test", "first", 5000, &again, &error), SB_ERROR_INTERNAL);
    sb_cuda_device_release(device);
    check_nothing_lives(fake);
}

static void test_damaged_module(void **unused) {
    const fake_cuda_control *fake = fresh_fake();
    static const fake_device a100 = {"Fake A100", 80, 108, 1 << 20};
    fake->set_devices(1, &a100);
    sb_cuda_device *device = open_device(&test_images);
    const sb_cuda_kernel *kernel;
    sb_error error;
    assert_int_equal(sb_cuda_kernel_find(device, "bad", "first", 8, &kernel, &error), SB_ERROR_DEVICE);
    assert_says(error, "loading kernels bad for sm_80: device 0 (Fake A100)");
    assert_says(error, "CUDA_ERROR_INVALID_IMAGE");
    sb_cuda_device_release(device);
    check_nothing_lives(fake);
}

/* After a sticky failure nothing is tried again, the first message is kept, and everything can
 * still be given back. */
static void test_lost(void **unused) {
    const fake_cuda_control *fake = fresh_fake();
    sb_cuda_device *device = open_device(&test_images);
    sb_cuda_stream *stream = NULL, *other = NULL;
    sb_cuda_memory *memory = NULL, *more = NULL;
    sb_error error;
    assert_int_equal(sb_cuda_stream_create(device, &stream, &error), SB_OK);
    assert_int_equal(sb_cuda_memory_create(device, 64, &memory, &error), SB_OK);
    fake->plan_failure("cuStreamSynchronize", 0, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(sb_cuda_stream_synchronize(stream, &error), SB_ERROR_DEVICE);
    assert_says(error, "device 0 (Fake H200)");
    assert_says(error, "CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_says(error, "before this process has ended");
    int calls = fake->calls(NULL);
    assert_int_equal(sb_cuda_memory_create(device, 64, &more, &error), SB_ERROR_DEVICE);
    assert_says(error, "lost earlier: device 0 (Fake H200): CUDA: cuStreamSynchronize");
    assert_int_equal(sb_cuda_stream_create(device, &other, &error), SB_ERROR_DEVICE);
    assert_int_equal(sb_cuda_stream_synchronize(stream, NULL), SB_ERROR_DEVICE);
    assert_int_equal(fake->calls(NULL), calls);
    sb_cuda_memory_release(memory);
    sb_cuda_stream_destroy(stream);
    sb_cuda_device_release(device);
    check_nothing_lives(fake);
}

static void test_callers_stream(void **unused) {
    static const fake_device two[] = {{"Fake 0", 90, 4, 1 << 20}, {"Fake 1", 80, 4, 1 << 20}};
    const fake_cuda_control *fake = fresh_fake();
    fake->set_devices(2, two);
    sb_cuda_driver driver = *open_fake(); /* which was opened when there was one device */
    driver.device_count = 2;
    sb_cuda_device *device = NULL, *other = NULL;
    sb_cuda_stream *foreign = NULL, *stream = NULL;
    sb_error error;
    assert_int_equal(sb_cuda_device_open(&driver, 0, &test_images, &device, &error), SB_OK);
    assert_int_equal(sb_cuda_device_open(&driver, 1, &test_images, &other, &error), SB_OK);
    assert_string_equal(other->name, "Fake 1");
    assert_int_equal(sb_cuda_stream_create(other, &foreign, &error), SB_OK);
    assert_int_equal(sb_cuda_stream_wrap(device, foreign->handle, &stream, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_says(error, "not of the primary context of device 0 (Fake 0)");
    assert_int_equal(sb_cuda_stream_wrap(other, foreign->handle, &stream, &error), SB_OK);
    sb_cuda_stream_destroy(stream);
    assert_int_equal(fake->live().streams, 1);
    assert_int_equal(sb_cuda_stream_wrap(device, NULL, &stream, &error), SB_OK);
    sb_cuda_stream_destroy(stream);
    sb_cuda_stream_destroy(foreign);
    /* Each device gets the image that suits it. */
    const sb_cuda_kernel *kernel;
    assert_int_equal(sb_cuda_kernel_find(device, "test", "first", 8, &kernel, &error), SB_OK);
    assert_int_equal(sb_cuda_kernel_find(other, "test", "first", 8, &kernel, &error), SB_OK);
    assert_true(logged(fake, "cuModuleLoadDataEx(FAKE sm_90a"));
    assert_true(logged(fake, "cuModuleLoadDataEx(FAKE sm_80"));
    sb_cuda_device_release(device);
    sb_cuda_device_release(other);
    check_nothing_lives(fake);
}

/* ---- several threads ---- */

#define THREADS 8

typedef struct shared_work {
    sb_cuda_device *device;
    const sb_cuda_driver *drivers[THREADS];
    const sb_cuda_kernel *kernels[THREADS][2];
    atomic_int next, failures;
} shared_work;

static void *work_beside_others(void *given) {
    shared_work *work = given;
    int index = atomic_fetch_add(&work->next, 1);
    static const char *const names[] = {"first", "second"};
    for (int i = 0; i < 50; i++) {
        sb_cuda_memory *memory = NULL;
        bool right = sb_cuda_driver_open(FAKE_CUDA, &work->drivers[index], NULL, NULL, NULL) == SB_OK &&
                     sb_cuda_memory_create(work->device, 64, &memory, NULL) == SB_OK;
        for (int k = 0; k < 2; k++) {
            int which = (index + k) % 2;
            right = right && sb_cuda_kernel_find(work->device, "test", names[which], 8, &work->kernels[index][which],
                                                 NULL) == SB_OK;
        }
        sb_cuda_memory_release(memory);
        atomic_fetch_add(&work->failures, !right);
    }
    return NULL;
}

static void test_threads(void **unused) {
    const fake_cuda_control *fake = fresh_fake();
    shared_work work = {.device = open_device(&test_images)};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work_beside_others, &work), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&work.failures), 0);
    for (int i = 1; i < THREADS; i++) {
        assert_ptr_equal(work.drivers[i], work.drivers[0]);
        assert_memory_equal(work.kernels[i], work.kernels[0], sizeof work.kernels[0]);
    }
    sb_cuda_counters counters = sb_cuda_device_counters(work.device);
    assert_int_equal(counters.device_allocations, THREADS * 50);
    assert_int_equal(counters.device_blocks, 0);
    assert_int_equal(fake->calls("cuModuleLoadDataEx"), 1);
    assert_int_equal(fake->calls("cuModuleGetFunction"), 2);
    sb_cuda_device_release(work.device);
    check_nothing_lives(fake);
}

/* ---- every failure ---- */

static sb_status use_device(void *context) {
    sb_cuda_device *device = NULL;
    sb_cuda_stream *stream = NULL;
    sb_cuda_event *event = NULL;
    const sb_cuda_kernel *kernel;
    sb_error *error = NULL;
    sb_status status = sb_cuda_device_open(context, 0, &test_images, &device, error);
    if (status == SB_OK)
        status = sb_cuda_stream_create(device, &stream, error);
    if (status == SB_OK)
        status = sb_cuda_event_create(device, false, &event, error);
    if (status == SB_OK)
        status = sb_cuda_kernel_find(device, "test", "first", 8, &kernel, error);
    if (status == SB_OK)
        status = sb_cuda_kernel_find(device, "test", "second", 8, &kernel, error);
    if (status == SB_OK)
        status = sb_cuda_enter(device, error);
    if (status == SB_OK) {
        status = sb_cuda_event_record(event, stream, error);
        if (status == SB_OK)
            status = sb_cuda_stream_wait(stream, event, error);
        status = sb_cuda_leave(device, status, error);
    }
    if (status == SB_OK)
        status = sb_cuda_event_synchronize(event, error);
    if (status == SB_OK)
        status = sb_cuda_stream_synchronize(stream, error);
    sb_cuda_event_destroy(event);
    sb_cuda_stream_destroy(stream);
    sb_cuda_device_release(device);
    return status;
}

static void test_failing_calls(void **unused) {
    const fake_cuda_control *fake = fresh_fake();
    sb_cuda_driver driver = *open_fake();
    check_failing_calls(fake, use_device, &driver, CUDA_ERROR_UNKNOWN);
    check_failing_calls(fake, use_device, &driver, CUDA_ERROR_OUT_OF_MEMORY);
    check_failing_calls(fake, use_device, &driver, CUDA_ERROR_LAUNCH_FAILED);
}

static void test_failing_allocations(void **unused) {
    const fake_cuda_control *fake = fresh_fake();
    sb_cuda_driver driver = *open_fake();
    check_failing_allocations(use_device, &driver);
    check_nothing_lives(fake);
}

/* The embedded images hold what they should: the fake reads names of kernels from machine code and from PTX. */
static void test_embedded(void **unused) {
    static const struct {
        int compute;
        const char *name;
    } places[] = {{80, "sm_80"}, {86, "sm_80"}, {90, "sm_90a"}, {120, "compute_90"}};
    if (!has_all_architectures())
        skip();
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const fake_cuda_control *fake = fresh_fake();
        fake_device described = {"Fake", places[i].compute, 4, 1 << 20};
        fake->set_devices(1, &described);
        sb_cuda_device *device = open_device(NULL);
        const sb_cuda_kernel *kernel;
        sb_error error = {SB_OK, ""};
        if (sb_cuda_kernel_find(device, "copy", "sb_cuda_copy_32", 8, &kernel, &error) != SB_OK)
            fail_msg("%s", error.message);
        assert_int_equal(sb_cuda_kernel_find(device, "copy", "sb_cuda_copy_33", 8, &kernel, &error), SB_ERROR_INTERNAL);
        assert_says(error, places[i].name);
        sb_cuda_device_release(device);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opening),
        cmocka_unit_test(test_callers_context),
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_damaged_module),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_callers_stream),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_failing_calls),
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_embedded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
