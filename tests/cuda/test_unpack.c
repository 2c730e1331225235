/* Images that are compressed: unpacked, damaged, loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <lzma.h>

#include "cuda/driver/kernel.h"
#include "cuda/driver/unpack.h"
#include "support/failing.h"
#include "support/random.h"
#include "with_fake.h"

enum { PACKED_BYTES = 20000, PLAIN_BYTES = 5000 };

static char packed[PACKED_BYTES], plain[PLAIN_BYTES];

/* `packed` becomes an xz file of `bytes`. */
static sb_cuda_image pack(const char *bytes, size_t count) {
    size_t written = 0;
    assert_int_equal(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, (const uint8_t *)bytes, count,
                                             (uint8_t *)packed, &written, sizeof packed),
                     LZMA_OK);
    return (sb_cuda_image){"test", "sm_90a", SB_CUDA_CUBIN_EXACT, 90, packed, packed + written, true};
}

/* Half of it compresses well. */
static sb_cuda_image pack_plain(void) {
    random_source random = {7};
    for (int i = 0; i < PLAIN_BYTES; i++)
        plain[i] = (char)(i % 1000 < 500 ? i / 100 : random_between(&random, 0, 255));
    return pack(plain, sizeof plain);
}

static sb_status unpack_once(void *context) {
    char *bytes = NULL;
    sb_status status = sb_cuda_unpack(context, &bytes, NULL);
    if (status == SB_OK)
        sb_free(bytes);
    return status;
}

static void test_whole(void **unused) {
    sb_cuda_image image = pack_plain();
    char *bytes = NULL;
    assert_int_equal(sb_cuda_unpack(&image, &bytes, NULL), SB_OK);
    assert_memory_equal(bytes, plain, sizeof plain);
    assert_int_equal(bytes[sizeof plain], 0);
    sb_free(bytes);
    check_failing_allocations(unpack_once, &image);
    sb_cuda_image empty = pack("", 0);
    assert_int_equal(sb_cuda_unpack(&empty, &bytes, NULL), SB_OK);
    assert_int_equal(bytes[0], 0);
    sb_free(bytes);
}

/* Unpacks what is not, or no longer, what was packed: an error, and nothing is left. */
static bool is_refused(const sb_cuda_image *image) {
    int64_t blocks = sb_allocation_count().live_blocks;
    char *bytes = NULL;
    sb_error error = {SB_OK, ""};
    sb_status status = sb_cuda_unpack(image, &bytes, &error);
    if (status == SB_OK) {
        assert_memory_equal(bytes, plain, sizeof plain);
        sb_free(bytes);
    } else {
        assert_int_equal(status, SB_ERROR_INTERNAL);
        assert_says(error, "kernels test for sm_90a are damaged");
    }
    assert_int_equal(sb_allocation_count().live_blocks, blocks);
    return status != SB_OK;
}

/* A wrong bit is found wherever it is. */
static void test_damaged(void **unused) {
    sb_cuda_image image = pack_plain();
    size_t count = (size_t)(image.end - image.bytes);
    int unseen = 0;
    for (size_t i = 0; i < count; i++) {
        for (int bit = 0; bit < 8; bit++) {
            packed[i] ^= (char)(1 << bit);
            unseen += !is_refused(&image);
            packed[i] ^= (char)(1 << bit);
        }
    }
    assert_int_equal(unseen, 0);
    assert_false(is_refused(&image));
    for (size_t kept = 0; kept < count; kept++) {
        sb_cuda_image part = image;
        part.end = part.bytes + kept;
        assert_true(is_refused(&part));
    }
}

/* As an image of a device, which is loaded, or refused, when a kernel of it is wanted. */
static void test_loading(void **unused) {
    const fake_cuda_control *fake = fresh_fake();
    static const char text[] = "FAKE sm_90a first second";
    sb_cuda_image image = pack(text, sizeof text - 1);
    const sb_cuda_images images = {13000, 1, &image};
    sb_cuda_device *device = NULL;
    const sb_cuda_kernel *kernel = NULL;
    sb_error error = {SB_OK, ""};
    int64_t blocks = sb_allocation_count().live_blocks;
    assert_int_equal(sb_cuda_device_open(open_fake(), 0, &images, &device, &error), SB_OK);
    packed[20] ^= 1;
    assert_int_equal(sb_cuda_kernel_find(device, "test", "first", 8, &kernel, &error), SB_ERROR_INTERNAL);
    assert_says(error, "damaged");
    packed[20] ^= 1;
    assert_int_equal(sb_cuda_kernel_find(device, "test", "first", 8, &kernel, &error), SB_OK);
    memset(packed, 0, sizeof packed);
    assert_int_equal(sb_cuda_kernel_find(device, "test", "second", 8, &kernel, &error), SB_OK);
    sb_cuda_device_release(device);
    assert_int_equal(sb_allocation_count().live_blocks, blocks);
    check_nothing_lives(fake);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_loading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
