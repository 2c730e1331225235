/* Finding the driver, and saying what is wrong with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include <samebit/device.h>

#include "support/failing.h"
#include "with_fake.h"

/* The fake under another name: a driver that was opened stays open under its name, so what must
 * open anew needs a name of its own. Freed by the caller. */
static char *another_name(void) {
    static int count;
    char *name = malloc(4096);
    assert_non_null(name);
    const char *base = strrchr(FAKE_CUDA, '/');
    int used = snprintf(name, 4096, "%.*s", (int)(base - FAKE_CUDA), FAKE_CUDA);
    for (count++; used < 4000 && used - (int)(base - FAKE_CUDA) < 2 * count; used += 2)
        strcpy(name + used, "/.");
    strcpy(name + used, base);
    return name;
}

static sb_status open_as(const char *name, sb_driver_state *state, int *version, sb_error *error) {
    const sb_cuda_driver *driver = NULL;
    return sb_cuda_driver_open(name, &driver, state, version, error);
}

static void test_opening(void **unused) {
    const fake_cuda_control *fake = fresh_fake();
    const sb_cuda_driver *first = open_fake(), *second = open_fake();
    assert_ptr_equal(first, second);
    assert_int_equal(first->version, 13000);
    assert_int_equal(first->device_count, 1);
    assert_true(fake->calls("cuInit") <= 1);
}

static void test_no_driver(void **unused) {
    sb_driver_state state;
    sb_error error;
    int version = -1;
    assert_int_equal(open_as("/no/such/libcuda.so.1", &state, &version, &error), SB_ERROR_UNSUPPORTED);
    assert_int_equal(state, SB_DRIVER_MISSING);
    assert_int_equal(version, 0);
    assert_says(error, "no CUDA driver");
    assert_says(error, "/no/such/libcuda.so.1");
    assert_says(error, "SAMEBIT_CUDA_DRIVER");
    char longer[SB_CUDA_LIBRARY_BYTES + 10];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(open_as(longer, &state, NULL, &error), SB_ERROR_UNSUPPORTED);
    assert_int_equal(state, SB_DRIVER_MISSING);
}

static void test_no_cuda_in_library(void **unused) {
    sb_driver_state state;
    sb_error error;
    assert_int_equal(open_as("libm.so.6", &state, NULL, &error), SB_ERROR_DEVICE);
    assert_int_equal(state, SB_DRIVER_FAILED);
    assert_says(error, "libm.so.6 is not a CUDA driver");
}

static void test_too_old(void **unused) {
    const fake_cuda_control *fake = fresh_fake();
    fake->set_version(11080);
    char *name = another_name();
    sb_driver_state state;
    sb_error error;
    int version = 0;
    assert_int_equal(open_as(name, &state, &version, &error), SB_ERROR_UNSUPPORTED);
    assert_int_equal(state, SB_DRIVER_TOO_OLD);
    assert_int_equal(version, 11080);
    assert_says(error, "too old");
    assert_says(error, "for CUDA 11.8");
    assert_says(error, "needs 12.3");
    /* Nothing is remembered: after an update the same name works. */
    fake->set_version(12030);
    assert_int_equal(open_as(name, &state, &version, &error), SB_OK);
    assert_int_equal(state, SB_DRIVER_READY);
    assert_int_equal(version, 12030);
    free(name);
}

static void test_no_device(void **unused) {
    const fake_cuda_control *fake = fresh_fake();
    fake->set_devices(0, NULL);
    char *name = another_name();
    sb_driver_state state;
    sb_error error;
    assert_int_equal(open_as(name, &state, NULL, &error), SB_ERROR_DEVICE);
    assert_int_equal(state, SB_DRIVER_NO_DEVICE);
    assert_says(error, "no CUDA device");
    assert_says(error, "CUDA_ERROR_NO_DEVICE");
    assert_says(error, "CUDA_VISIBLE_DEVICES");
    free(name);
}

static void test_broken(void **unused) {
    const struct {
        const char *call;
        int result;
        const char *says;
    } cases[] = {
        {"cuInit", CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "restart the machine"},
        {"cuInit", CUDA_ERROR_UNKNOWN, "dmesg"},
        {"cuInit", 12345, "an error without a name (12345"},
        {"cuDeviceGetCount", CUDA_ERROR_DEINITIALIZED, "cuDeviceGetCount failed with CUDA_ERROR_DEINITIALIZED"},
        {"cuDriverGetVersion", CUDA_ERROR_STUB_LIBRARY, "stub"},
        {"cuGetProcAddress", CUDA_ERROR_UNKNOWN, "has no function"},
    };
    const fake_cuda_control *fake = fresh_fake();
    char *name = another_name();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fake->plan_failure(cases[i].call, 0, cases[i].result);
        sb_driver_state state;
        sb_error error;
        assert_int_equal(open_as(name, &state, NULL, &error), SB_ERROR_DEVICE);
        assert_int_equal(state, SB_DRIVER_FAILED);
        assert_says(error, cases[i].says);
        assert_says(error, name);
    }
    fake->hide("cuGraphLaunch");
    sb_error error;
    assert_int_equal(open_as(name, NULL, NULL, &error), SB_ERROR_DEVICE);
    assert_says(error, "has no function cuGraphLaunch");
    free(name);
}

static void test_sticky(void **unused) {
    assert_true(sb_cuda_is_sticky(CUDA_ERROR_ILLEGAL_ADDRESS));
    assert_true(sb_cuda_is_sticky(CUDA_ERROR_LAUNCH_FAILED));
    assert_false(sb_cuda_is_sticky(CUDA_ERROR_OUT_OF_MEMORY));
    assert_false(sb_cuda_is_sticky(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES));
    assert_false(sb_cuda_is_sticky(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));
    fresh_fake();
    sb_error error;
    assert_int_equal(sb_cuda_fail(open_fake(), CUDA_ERROR_OUT_OF_MEMORY, "cuMemAlloc", &error), SB_ERROR_OUT_OF_MEMORY);
    assert_says(error, "cuMemAlloc failed with CUDA_ERROR_OUT_OF_MEMORY (2: fake error 2)");
    assert_int_equal(sb_cuda_fail(open_fake(), CUDA_ERROR_ILLEGAL_ADDRESS, "cuStreamSynchronize", NULL),
                     SB_ERROR_DEVICE);
}

/* ---- the list of devices ---- */

static const fake_device three[] = {
    {"Fake A100", 80, 108, 40000000000},
    {"Fake T4", 75, 40, 16000000000},
    {"Fake H200", 90, 132, 140000000000},
};

static sb_device_list *list_as(const char *name) {
    sb_device_options options = SB_DEVICE_OPTIONS_DEFAULT;
    options.cuda_driver = name;
    sb_device_list *list = NULL;
    sb_error error = {SB_OK, ""};
    if (sb_device_list_create(&options, &list, &error) != SB_OK)
        fail_msg("%s", error.message);
    return list;
}

static void test_list(void **unused) {
    const fake_cuda_control *fake = fresh_fake();
    fake->set_devices(3, three);
    char *name = another_name();
    sb_device_list *list = list_as(name);
    const sb_driver_description *driver = sb_device_list_driver(list);
    assert_int_equal(driver->state, SB_DRIVER_READY);
    assert_int_equal(driver->version, 13000);
    assert_string_equal(driver->library, name);
    assert_string_equal(driver->why, "");
    assert_int_equal(sb_device_list_count(list), 3);
    for (int i = 0; i < 3; i++) {
        const sb_device_description *device = sb_device_list_at(list, i);
        assert_int_equal(device->index, i);
        assert_string_equal(device->name, three[i].name);
        assert_int_equal(10 * device->compute_major + device->compute_minor, three[i].compute);
        assert_int_equal(device->multiprocessors, three[i].multiprocessors);
        assert_int_equal(device->memory_bytes, three[i].bytes);
        assert_int_equal(device->memory_free_bytes, three[i].bytes);
    }
    if (has_all_architectures()) {
        assert_string_equal(sb_device_list_at(list, 0)->kernels, "sm_80");
        assert_null(sb_device_list_at(list, 1)->kernels);
        assert_non_null(strstr(sb_device_list_at(list, 1)->why, "need compute capability 8.0"));
    } else if (sb_cuda_embedded_images.count == 0) {
        assert_null(sb_device_list_at(list, 0)->kernels);
        assert_non_null(strstr(sb_device_list_at(list, 0)->why, "SAMEBIT_CUDA_ARCHITECTURES=all"));
    }
    check_nothing_lives(fake);
    sb_device_list_release(list);
    free(name);
}

static void test_list_without_driver(void **unused) {
    sb_device_list *list = list_as("/no/such/driver");
    assert_int_equal(sb_device_list_count(list), 0);
    assert_int_equal(sb_device_list_driver(list)->state, SB_DRIVER_MISSING);
    assert_non_null(strstr(sb_device_list_driver(list)->why, "/no/such/driver"));
    sb_device_list_release(list);
    sb_device_options options = {sizeof options + 1, NULL};
    sb_error error;
    assert_int_equal(sb_device_list_create(&options, &list, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_says(error, "SB_DEVICE_OPTIONS_DEFAULT");
}

/* The environment names the driver when the options do not. */
static void test_environment(void **unused) {
    fresh_fake();
    sb_device_list *list = NULL;
    sb_error error;
    setenv("SAMEBIT_CUDA_DRIVER", FAKE_CUDA, 1);
    assert_int_equal(sb_device_list_create(NULL, &list, &error), SB_OK);
    assert_string_equal(sb_device_list_driver(list)->library, FAKE_CUDA);
    sb_device_list_release(list);
    setenv("SAMEBIT_CUDA_DRIVER", "", 1);
    assert_int_equal(sb_device_list_create(NULL, &list, &error), SB_OK);
    assert_string_equal(sb_device_list_driver(list)->library, "libcuda.so.1");
    sb_device_list_release(list);
    unsetenv("SAMEBIT_CUDA_DRIVER");
}

/* Whatever call fails, the list is made, says what failed, and leaves nothing behind. */
static void test_list_with_failing_calls(void **unused) {
    const fake_cuda_control *fake = fresh_fake();
    open_fake();
    fake->reset();
    for (int skip = 0;; skip++) {
        fake->plan_failure(NULL, skip, CUDA_ERROR_UNKNOWN);
        sb_device_list *list = list_as(FAKE_CUDA);
        bool happened = fake->failure_happened();
        fake->plan_failure(NULL, -1, 0);
        const sb_device_description *device = sb_device_list_at(list, 0);
        /* Only what gives back the context may fail unnoticed. */
        if (happened && device->memory_free_bytes < 0)
            assert_non_null(strstr(device->why, "CUDA_ERROR_UNKNOWN"));
        sb_device_list_release(list);
        check_nothing_lives(fake);
        if (!happened) {
            assert_true(skip > 6);
            break;
        }
        fake->reset();
    }
}

static sb_status list_once(void *context) {
    sb_device_options options = SB_DEVICE_OPTIONS_DEFAULT;
    options.cuda_driver = FAKE_CUDA;
    sb_device_list *list = NULL;
    sb_status status = sb_device_list_create(&options, &list, NULL);
    sb_device_list_release(list);
    return status;
}

static void test_list_without_memory(void **unused) {
    const fake_cuda_control *fake = fresh_fake();
    check_failing_allocations(list_once, NULL);
    check_nothing_lives(fake);
}

/* ---- the choice of an image ---- */

static const char *chosen(int compute, int version) {
    char why[SB_CUDA_WHY_BYTES] = "";
    const sb_cuda_image *image = sb_cuda_choose_image(&test_images, "test", compute, version, why);
    if (image == NULL)
        assert_string_not_equal(why, "");
    return image != NULL ? image->architecture : "none";
}

static void test_choice(void **unused) {
    assert_string_equal(chosen(80, 13000), "sm_80");
    assert_string_equal(chosen(86, 13000), "sm_80");
    assert_string_equal(chosen(89, 13020), "sm_80");
    assert_string_equal(chosen(90, 13000), "sm_90a");
    assert_string_equal(chosen(100, 13000), "compute_90");
    assert_string_equal(chosen(120, 13000), "compute_90");
    assert_string_equal(chosen(75, 13000), "none");
    /* An older driver loads neither the machine code nor the PTX of a newer toolkit. */
    assert_string_equal(chosen(90, 12080), "none");
    static const sb_cuda_images older = {12080, 3, test_image_table};
    char why[SB_CUDA_WHY_BYTES];
    assert_string_equal(sb_cuda_choose_image(&older, "test", 90, 12030, why)->architecture, "sm_90a");
    assert_null(sb_cuda_choose_image(&older, "test", 100, 12030, why));
    assert_non_null(strstr(why, "compiled by CUDA 12.8"));
    assert_non_null(strstr(why, "for CUDA 12.3"));
    static const sb_cuda_images none = {0, 0, NULL};
    assert_null(sb_cuda_choose_image(&none, NULL, 90, 13000, why));
    assert_non_null(strstr(why, "SAMEBIT_CUDA_ARCHITECTURES=all"));
    assert_null(sb_cuda_choose_image(&test_images, "other", 90, 13000, why));
    assert_non_null(strstr(why, "module other"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opening),
        cmocka_unit_test(test_no_driver),
        cmocka_unit_test(test_no_cuda_in_library),
        cmocka_unit_test(test_too_old),
        cmocka_unit_test(test_no_device),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_sticky),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_list_without_driver),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_list_with_failing_calls),
        cmocka_unit_test(test_list_without_memory),
        cmocka_unit_test(test_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
