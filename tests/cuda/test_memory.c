/* Memory of the device and of the host, and copies between them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cuda/queue/staging.h"
#include "support/failing.h"
#include "with_fake.h"

static sb_cuda_device *open_device(void) {
    sb_cuda_device *device = NULL;
    sb_error error = {SB_OK, ""};
    if (sb_cuda_device_open(open_fake(), 0, &test_images, &device, &error) != SB_OK)
        fail_msg("%s", error.message);
    return device;
}

static void test_blocks(void **unused) {
    const fake_cuda_control *fake = fresh_fake();
    sb_cuda_device *device = open_device();
    sb_cuda_memory *first = NULL, *empty = NULL;
    sb_cuda_pinned *pinned = NULL;
    sb_error error;
    assert_int_equal(sb_cuda_memory_create(device, 1000, &first, &error), SB_OK);
    assert_int_equal(first->address % 256, 0);
    assert_int_equal(sb_cuda_memory_create(device, 0, &empty, &error), SB_OK);
    assert_true(empty->address != 0 && empty->address != first->address);
    assert_int_equal(sb_cuda_pinned_create(device, 500, &pinned, &error), SB_OK);
    memset(pinned->data, 1, 500);
    sb_cuda_counters counters = sb_cuda_device_counters(device);
    assert_int_equal(counters.device_allocations, 2);
    assert_int_equal(counters.device_blocks, 2);
    assert_int_equal(counters.device_bytes, 1000);
    assert_int_equal(counters.device_bytes_most, 1000);
    assert_int_equal(counters.host_allocations, 1);
    assert_int_equal(counters.host_blocks, 1);
    assert_int_equal(counters.host_bytes, 500);
    sb_cuda_memory_retain(first);
    sb_cuda_memory_release(first);
    assert_int_equal(fake->live().memory, 2);
    sb_cuda_memory_release(first);
    sb_cuda_memory_release(empty);
    sb_cuda_memory_release(NULL);
    sb_cuda_pinned_destroy(pinned);
    sb_cuda_pinned_destroy(NULL);
    counters = sb_cuda_device_counters(device);
    assert_int_equal(counters.device_allocations, 2);
    assert_int_equal(counters.device_blocks, 0);
    assert_int_equal(counters.device_bytes, 0);
    assert_int_equal(counters.device_bytes_most, 1000);
    assert_int_equal(counters.host_blocks, 0);
    assert_int_equal(counters.host_bytes, 0);
    sb_cuda_device_release(device);
    check_nothing_lives(fake);
}

/* What is on a device keeps it. */
static void test_lifetime(void **unused) {
    const fake_cuda_control *fake = fresh_fake();
    sb_cuda_device *device = open_device();
    sb_cuda_memory *memory = NULL;
    assert_int_equal(sb_cuda_memory_create(device, 8, &memory, NULL), SB_OK);
    sb_cuda_device_release(device);
    assert_int_equal(fake->live().contexts, 1);
    sb_cuda_memory_release(memory);
    check_nothing_lives(fake);
}

static void test_out_of_memory(void **unused) {
    const fake_cuda_control *fake = fresh_fake();
    sb_cuda_device *device = open_device();
    sb_cuda_memory *memory = NULL, *more = NULL;
    sb_error error;
    assert_int_equal(sb_cuda_memory_create(device, (size_t)1 << 29, &memory, &error), SB_OK);
    assert_int_equal(sb_cuda_memory_create(device, (size_t)1 << 30, &more, &error), SB_ERROR_OUT_OF_MEMORY);
    assert_says(error, "no room for 1073741824 bytes (536870912 of 1073741824 are free)");
    assert_says(error, "CUDA_ERROR_OUT_OF_MEMORY");
    assert_int_equal(sb_cuda_device_counters(device).device_allocations, 1);
    /* That was no reason to give up the device. */
    assert_int_equal(sb_cuda_memory_create(device, 1 << 20, &more, &error), SB_OK);
    sb_cuda_memory_release(more);
    sb_cuda_memory_release(memory);
    fake->plan_failure("cuMemHostAlloc", 0, CUDA_ERROR_OUT_OF_MEMORY);
    sb_cuda_pinned *pinned = NULL;
    assert_int_equal(sb_cuda_pinned_create(device, 4096, &pinned, &error), SB_ERROR_OUT_OF_MEMORY);
    assert_says(error, "4096 bytes of pinned host memory");
    sb_cuda_device_release(device);
    check_nothing_lives(fake);
}

/* ---- copies ---- */

typedef struct setting {
    sb_cuda_device *device;
    sb_cuda_stream *stream;
    sb_cuda_staging *staging;
    sb_cuda_memory *memory;
} setting;

static void tear_down(setting *setting) {
    sb_cuda_memory_release(setting->memory);
    sb_cuda_staging_destroy(setting->staging);
    sb_cuda_stream_destroy(setting->stream);
    sb_cuda_device_release(setting->device);
}

static sb_status set_up(const sb_cuda_driver *driver, size_t staging_bytes, size_t bytes, setting *setting) {
    sb_error *error = NULL;
    sb_status status = sb_cuda_device_open(driver, 0, &test_images, &setting->device, error);
    if (status == SB_OK)
        status = sb_cuda_stream_create(setting->device, &setting->stream, error);
    if (status == SB_OK)
        status = sb_cuda_staging_create(setting->device, staging_bytes, &setting->staging, error);
    if (status == SB_OK)
        status = sb_cuda_memory_create(setting->device, bytes, &setting->memory, error);
    return status;
}

#define PIECE 64

static void check_round_trip(size_t piece, size_t bytes) {
    const fake_cuda_control *fake = fresh_fake();
    setting setting = {0};
    assert_int_equal(set_up(open_fake(), piece, bytes, &setting), SB_OK);
    sb_cuda_queue queue = {.stream = setting.stream};
    unsigned char *sent = malloc(bytes + 1), *received = malloc(bytes + 1);
    assert_true(sent != NULL && received != NULL);
    for (size_t i = 0; i < bytes; i++)
        sent[i] = (unsigned char)(7 * i + i / 64);
    memset(received, 0, bytes);
    sb_error error = {SB_OK, ""};
    if (sb_cuda_upload(setting.staging, &queue, setting.memory->address, sent, bytes, &error) != SB_OK ||
        sb_cuda_download(setting.staging, &queue, received, setting.memory->address, bytes, &error) != SB_OK)
        fail_msg("%s", error.message);
    assert_memory_equal(sent, received, bytes);
    sb_cuda_counters counters = sb_cuda_device_counters(setting.device);
    int64_t pieces = (int64_t)((bytes + piece - 1) / piece);
    assert_int_equal(counters.copies_to_device, pieces);
    assert_int_equal(counters.copies_to_host, pieces);
    assert_int_equal(counters.bytes_to_device, bytes);
    assert_int_equal(counters.bytes_to_host, bytes);
    free(sent);
    free(received);
    tear_down(&setting);
    check_nothing_lives(fake);
}

/* The fake copies as late as it may, so a block that is used again too early gives wrong bytes. */
static void test_round_trips(void **unused) {
    static const size_t sizes[] = {0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE - 1, 10 * PIECE + 5};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        check_round_trip(PIECE, sizes[i]);
    /* So large that several threads fill the blocks. */
    check_round_trip((1 << 20) + 768, (9 << 20) + 5);
}

/* Copies in the order of the queue, more than blocks may be on their way with, of many sizes: the bytes are those of
 * the moment, though the device copies as late as it may, and the host waits only once the blocks have run out, or where
 * there is no memory for another. */
static void check_uploads_later(bool out_of_memory) {
    const fake_cuda_control *fake = fresh_fake();
    setting setting = {0};
    enum { BYTES = 3 * SB_CUDA_MOST_STAGING_BLOCKS * PIECE };
    assert_int_equal(set_up(open_fake(), PIECE, BYTES, &setting), SB_OK);
    sb_cuda_queue queue = {.stream = setting.stream};
    unsigned char sent[BYTES], received[BYTES], part[BYTES];
    for (size_t i = 0; i < BYTES; i++)
        sent[i] = (unsigned char)(5 * i + i / 61);
    int blocks = fake->live().host_memory;
    size_t offset = 0;
    if (out_of_memory)
        fake->plan_failure("cuMemHostAlloc", 0, CUDA_ERROR_OUT_OF_MEMORY);
    for (size_t bytes = 1; offset < BYTES; bytes = bytes % 97 * 3 % 200 + 1) {
        sb_error error = {SB_OK, ""};
        bytes = bytes < BYTES - offset ? bytes : BYTES - offset;
        memcpy(part, sent + offset, bytes);
        if (sb_cuda_upload_later(setting.staging, &queue, setting.memory->address + offset, part, bytes, &error) !=
            SB_OK)
            fail_msg("%s", error.message);
        memset(part, 0xee, bytes);
        offset += bytes;
        if (offset < (SB_CUDA_MOST_STAGING_BLOCKS / 2) * PIECE / 4 && !out_of_memory)
            assert_int_equal(fake->calls("cuEventSynchronize") + fake->calls("cuStreamSynchronize"), 0);
    }
    assert_true(fake->calls("cuEventSynchronize") > 0);
    assert_int_equal(fake->failure_happened(), out_of_memory);
    fake->plan_failure(NULL, -1, 0);
    assert_true(out_of_memory || fake->live().host_memory == blocks + SB_CUDA_MOST_STAGING_BLOCKS - 2);
    assert_int_equal(sb_cuda_download(setting.staging, &queue, received, setting.memory->address, BYTES, NULL), SB_OK);
    assert_memory_equal(sent, received, BYTES);
    tear_down(&setting);
    check_nothing_lives(fake);
}

static void test_uploads_later(void **unused) {
    check_uploads_later(false);
    check_uploads_later(true);
}

/* A kernel that fails while the copies wait for it: the copy reports it. */
static void test_failure_before_copy(void **unused) {
    const fake_cuda_control *fake = fresh_fake();
    setting setting = {0};
    assert_int_equal(set_up(open_fake(), PIECE, PIECE, &setting), SB_OK);
    sb_cuda_queue queue = {.stream = setting.stream};
    const sb_cuda_kernel *kernel;
    sb_error error;
    assert_int_equal(sb_cuda_kernel_find(setting.device, "test", "first", 0, &kernel, &error), SB_OK);
    sb_cuda_task task = {.kind = SB_CUDA_KERNEL, .kernel = {.kernel = kernel, .grid = {1, 1, 1}, .block = {1, 1, 1}}};
    assert_int_equal(sb_cuda_enter(setting.device, &error), SB_OK);
    fake->break_kernel(CUDA_ERROR_MISALIGNED_ADDRESS);
    sb_status status = sb_cuda_launch(&queue, &task, &error);
    assert_int_equal(sb_cuda_leave(setting.device, status, &error), SB_OK);
    char bytes[PIECE];
    assert_int_equal(sb_cuda_download(setting.staging, &queue, bytes, setting.memory->address, PIECE, &error),
                     SB_ERROR_DEVICE);
    assert_says(error, "CUDA_ERROR_MISALIGNED_ADDRESS");
    tear_down(&setting);
    check_nothing_lives(fake);
}

static void test_outside(void **unused) {
    const fake_cuda_control *fake = fresh_fake();
    setting setting = {0};
    assert_int_equal(set_up(open_fake(), PIECE, 100, &setting), SB_OK);
    sb_cuda_queue queue = {.stream = setting.stream};
    char bytes[101] = {0};
    sb_error error;
    assert_int_equal(sb_cuda_upload(setting.staging, &queue, setting.memory->address, bytes, 101, &error),
                     SB_ERROR_DEVICE);
    assert_says(error, "CUDA_ERROR_INVALID_VALUE");
    assert_string_not_equal(fake->complaint(), "");
    tear_down(&setting);
}

static sb_status copy_there_and_back(void *context) {
    setting setting = {0};
    char bytes[3 * PIECE + 1] = {0};
    sb_status status = set_up(context, PIECE, sizeof bytes, &setting);
    sb_cuda_queue queue = {.stream = setting.stream};
    for (int again = 0; again < 5 && status == SB_OK; again++)
        status = sb_cuda_upload_later(setting.staging, &queue, setting.memory->address, bytes, sizeof bytes, NULL);
    if (status == SB_OK)
        status = sb_cuda_upload(setting.staging, &queue, setting.memory->address, bytes, sizeof bytes, NULL);
    if (status == SB_OK)
        status = sb_cuda_download(setting.staging, &queue, bytes, setting.memory->address, sizeof bytes, NULL);
    tear_down(&setting);
    return status;
}

static void test_failing_calls(void **unused) {
    const fake_cuda_control *fake = fresh_fake();
    sb_cuda_driver driver = *open_fake();
    check_failing_calls(fake, copy_there_and_back, &driver, CUDA_ERROR_UNKNOWN);
    check_failing_calls(fake, copy_there_and_back, &driver, CUDA_ERROR_OUT_OF_MEMORY);
    check_failing_calls(fake, copy_there_and_back, &driver, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void test_failing_allocations(void **unused) {
    const fake_cuda_control *fake = fresh_fake();
    sb_cuda_driver driver = *open_fake();
    check_failing_allocations(copy_there_and_back, &driver);
    check_nothing_lives(fake);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_lifetime),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_uploads_later),
        cmocka_unit_test(test_failure_before_copy),
        cmocka_unit_test(test_outside),
        cmocka_unit_test(test_failing_calls),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
