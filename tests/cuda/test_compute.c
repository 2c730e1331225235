/* Around computing on a device: which kernels there are and which not, what programs of bodies refuse, the ranges that
 * tensors lie in, copies that need no kernel, and quotients by products. What kernels compute: tests/harness. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cuda/common/compute.h"
#include "cuda/queue/staging.h"
#include "driver_choice.h"
#include "host_kernels.h"
#include "ops/binary.h"
#include "ops/unary.h"
#include "support/graph_builder.h"
#include "support/random.h"

/* The device's functions, on the host. */
#include "cuda/host_words.h"

#include "cuda/common/words.cuh"
#include "cuda/contraction/epilogue.h"

typedef struct setting {
    const fake_cuda_control *fake;
    sb_cuda_device *device;
    sb_cuda_queue queue;
} setting;

static setting set_up(void) {
    setting setting = {.fake = fresh_fake()};
    const sb_cuda_driver *driver = NULL;
    define_host_kernels(setting.fake);
    MUST(sb_cuda_driver_open(library, &driver, NULL, NULL, error));
    MUST(sb_cuda_device_open(driver, 0, &host_images, &setting.device, error));
    MUST(sb_cuda_stream_create(setting.device, &setting.queue.stream, error));
    return setting;
}

static void tear_down(setting *setting) {
    sb_cuda_stream_destroy(setting->queue.stream);
    sb_cuda_device_release(setting->device);
    check_nothing_lives(setting->fake);
}

/* ---- which kernels there are ---- */

#define NAME(op) #op,
static const char *const unary_names[] = {SB_UNARY_OPS(NAME) "GeluTanh"};
static const char *const binary_names[] = {SB_BINARY_OPS(NAME) "Fmod", "ShiftRight", "Max", "Min", "Pow"};

/* The kernels' name of a row: BitShift is two operators. */
static const char *binary_name(int row) {
    return row == SB_BINARY_ROW_BitShift ? "ShiftLeft" : binary_names[row];
}

/* Where an operator has no loop there is no kernel, and the reverse. */
static void check_found(const setting *setting, const char *name, int inputs, sb_dtype dtype, bool wanted) {
    sb_cuda_operation operation = {NULL, 0};
    sb_error error = {SB_OK, ""};
    sb_status status = sb_cuda_find_elementwise(setting->device, name, inputs, dtype, &operation, &error);
    if (status != (wanted ? SB_OK : SB_ERROR_UNSUPPORTED))
        fail_msg("%s of %s: %s", name, sb_dtype_name(dtype), wanted ? error.message : "there is a kernel");
    assert_true(wanted == (operation.kernel != NULL));
    if (!wanted && dtype != SB_STRING)
        assert_says(error, "no GPU kernel for");
}

static void test_operators(void **unused) {
    setting setting = set_up();
    for (int dtype = 1; dtype < SB_DTYPE_COUNT; dtype++) {
        for (int row = 0; row < SB_UNARY_ROWS; row++)
            check_found(&setting, unary_names[row], 1, (sb_dtype)dtype, sb_unary_loops_scalar[row][dtype] != NULL);
        for (int row = 0; row < SB_BINARY_ROWS; row++)
            check_found(&setting, binary_name(row), 2, (sb_dtype)dtype, sb_binary_loops_scalar[row][dtype] != NULL);
    }
    tear_down(&setting);
}

/* The embedded images have every kernel, in machine code and in PTX. */
static void test_embedded(void **unused) {
    static const int computes[] = {80, 90, 120};
    if (!has_all_architectures())
        skip();
    for (int c = 0; c < 3; c++) {
        const fake_cuda_control *fake = fresh_fake();
        fake_device described = {"Fake", computes[c], 4, 1 << 24};
        fake->set_devices(1, &described);
        sb_cuda_device *device = NULL;
        const sb_cuda_kernel *kernel;
        sb_cuda_operation operation;
        MUST(sb_cuda_device_open(open_fake(), 0, NULL, &device, error));
        for (int dtype = 1; dtype < SB_STRING; dtype++) {
            MUST(sb_cuda_find_copy(device, (sb_dtype)dtype, &kernel, error));
            for (int row = 0; row < SB_UNARY_ROWS; row++) {
                if (sb_unary_loops_scalar[row][dtype] != NULL)
                    MUST(sb_cuda_find_elementwise(device, unary_names[row], 1, (sb_dtype)dtype, &operation, error));
            }
            for (int row = 0; row < SB_BINARY_ROWS; row++) {
                if (sb_binary_loops_scalar[row][dtype] != NULL)
                    MUST(sb_cuda_find_elementwise(device, binary_name(row), 2, (sb_dtype)dtype, &operation, error));
            }
        }
        sb_cuda_device_release(device);
    }
}

/* More values than the program of a body can keep; as many as it can are cases of the harness (fused.values). */
static void test_programs(void **unused) {
    for (int values = 7; values <= 12; values++) {
        builder b = builder_create();
        sb_value_id kept[16], x = builder_input(&b, SB_F32, 1, (int64_t[]){37}), sum = builder_unary(&b, "Abs", x);
        for (int i = 0; i < values; i++)
            kept[i] = sum = builder_binary(&b, "Add", sum, x);
        for (int i = 0; i < values; i++)
            sum = builder_binary(&b, "Mul", sum, kept[i]);
        MUST(sb_graph_add_output(b.graph, sum, error));
        builder_finish(&b);
        sb_cuda_epilogue_plan *plan = NULL;
        sb_error error;
        const sb_fact *facts[1] = {&b.graph->values[x].fact};
        sb_status status = sb_cuda_epilogue_plan_create(b.graph, 0, facts, &plan, &error);
        assert_int_equal(status, values <= 8 ? SB_OK : SB_ERROR_UNSUPPORTED);
        if (status == SB_OK)
            sb_cuda_epilogue_plan_destroy(plan);
        builder_destroy(&b);
    }
}

/* ---- copies and ranges ---- */

/* Packed tensors are copied by the driver, others by a kernel; text by nobody. */
static void test_copies(void **unused) {
    setting setting = set_up();
    sb_cuda_memory *memory = NULL;
    const sb_cuda_kernel *kernel = NULL;
    sb_error error;
    int64_t dims[] = {7, 5}, across[] = {1, 7};
    sb_tensor *from = NULL, *to = NULL, *transposed = NULL;
    assert_int_equal(sb_cuda_find_copy(setting.device, SB_STRING, &kernel, &error), SB_ERROR_UNSUPPORTED);
    MUST(sb_cuda_memory_create(setting.device, 2 * 35 * sizeof(float), &memory, error));
    char *data = (char *)(uintptr_t)memory->address;
    MUST(sb_tensor_wrap(SB_F32, 2, dims, NULL, data, NULL, NULL, &from, error));
    MUST(sb_tensor_wrap(SB_F32, 2, dims, NULL, data + 35 * sizeof(float), NULL, NULL, &to, error));
    MUST(sb_tensor_wrap(SB_F32, 2, dims, across, data, NULL, NULL, &transposed, error));
    MUST(sb_cuda_find_copy(setting.device, SB_F32, &kernel, error));
    int64_t before = sb_cuda_device_counters(setting.device).kernels;
    MUST(sb_cuda_enter(setting.device, error));
    MUST(sb_cuda_launch_copy(&setting.queue, 0, kernel, to, from, error));
    assert_int_equal(sb_cuda_device_counters(setting.device).kernels, before);
    MUST(sb_cuda_launch_copy(&setting.queue, 0, kernel, to, transposed, error));
    assert_int_equal(sb_cuda_device_counters(setting.device).kernels, before + 1);
    MUST(sb_cuda_leave(setting.device, SB_OK, error));
    MUST(sb_cuda_stream_synchronize(setting.queue.stream, error));
    sb_tensor_release(transposed);
    sb_tensor_release(to);
    sb_tensor_release(from);
    sb_cuda_memory_release(memory);
    tear_down(&setting);
}

static void test_ranges(void **unused) {
    char data[1000];
    sb_tensor *tensor = NULL, *reversed = NULL, *empty = NULL;
    int64_t dims[] = {3, 5}, strides[] = {10, 1};
    MUST(sb_tensor_wrap(SB_F32, 2, dims, strides, data + 100, NULL, NULL, &tensor, error));
    sb_cuda_range range = sb_cuda_tensor_range(tensor, true);
    assert_int_equal(range.address, (uintptr_t)(data + 100));
    assert_int_equal(range.bytes, (2 * 10 + 4 + 1) * 4);
    assert_true(range.written);
    MUST(sb_tensor_slice(tensor, 0, 2, 3, -1, &reversed, error));
    range = sb_cuda_tensor_range(reversed, false);
    assert_int_equal(range.address, (uintptr_t)(data + 100));
    assert_int_equal(range.bytes, (2 * 10 + 4 + 1) * 4);
    MUST(sb_tensor_slice(tensor, 1, 0, 0, 1, &empty, error));
    assert_int_equal(sb_cuda_tensor_range(empty, true).bytes, 0);
    sb_tensor_release(empty);
    sb_tensor_release(reversed);
    sb_tensor_release(tensor);
}

/* ---- places ---- */

/* Quotients by products, at both sides of every multiple. */
static void test_divisions(void **unused) {
    random_source random = {3};
    for (int round = 0; round < 200000; round++) {
        int shift = (int)random_between(&random, 0, 30), wide_shift = (int)random_between(&random, 0, 50);
        uint32_t narrow = (uint32_t)(random_bits(&random) % (UINT64_C(1) << (shift + 1))) >> 1;
        int64_t wide = (int64_t)(random_bits(&random) % (UINT64_C(1) << (wide_shift + 1)));
        narrow = narrow == 0 ? 1 : narrow;
        wide = wide == 0 ? 1 : wide;
        sb_cuda_divisor divisor = sb_cuda_divisor_of(narrow);
        for (int side = -1; side <= 1; side++) {
            uint32_t value = (uint32_t)((random_bits(&random) >> 33) / narrow * narrow + (uint32_t)side) & INT32_MAX;
            assert_int_equal(sb_cuda_divide(value, &divisor), value / narrow);
            int64_t large = (int64_t)(random_bits(&random) >> 12) / wide * wide + side;
            large = large < 0 ? 0 : large;
            assert_int_equal(sb_cuda_divide_large(large, wide, 1.0 / (double)wide), large / wide);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operators), cmocka_unit_test(test_embedded), cmocka_unit_test(test_programs),
        cmocka_unit_test(test_copies),    cmocka_unit_test(test_ranges),   cmocka_unit_test(test_divisions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
