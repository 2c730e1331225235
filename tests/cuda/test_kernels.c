/* Kernels against the CPU's loops, bit for bit: without arguments over the fake driver, which runs the kernels' sources
 * on the host; with the file name of a driver's library (libcuda.so.1), on its first device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cuda/common/compute.h"
#include "cuda/queue/staging.h"
#include "driver_choice.h"
#include "host_kernels.h"
#include "ops/binary.h"
#include "ops/unary.h"
#include "support/random.h"
#include "tensor/walk.h"

/* ---- a device and tensors on it ---- */

typedef struct setting {
    const fake_cuda_control *fake;
    sb_cuda_device *device;
    sb_cuda_queue queue;
    sb_cuda_staging *staging;
    random_source random;
} setting;

static setting set_up(const sb_cuda_images *images) {
    setting setting = {.random = {42}};
    const sb_cuda_driver *driver = NULL;
    if (is_fake()) {
        setting.fake = fresh_fake();
        define_host_kernels(setting.fake);
    }
    MUST(sb_cuda_driver_open(library, &driver, NULL, NULL, error));
    MUST(sb_cuda_device_open(driver, 0, is_fake() ? images : NULL, &setting.device, error));
    MUST(sb_cuda_stream_create(setting.device, &setting.queue.stream, error));
    MUST(sb_cuda_staging_create(setting.device, 1 << 16, &setting.staging, error));
    return setting;
}

static void tear_down(setting *setting) {
    sb_cuda_staging_destroy(setting->staging);
    sb_cuda_stream_destroy(setting->queue.stream);
    sb_cuda_device_release(setting->device);
    if (setting->fake != NULL)
        check_nothing_lives(setting->fake);
}

/* A tensor on the host and one on the device with the same strides. */
typedef struct pair {
    sb_tensor *host, *device;
    size_t bytes; /* of the storage */
} pair;

static void release_memory(void *memory) {
    sb_cuda_memory_release(memory);
}

/* Strides such that dimension order[0] is the slowest, with a gap of one element in each row. */
static void fill_strides(int rank, const int64_t *dims, const int *order, int64_t *strides, size_t *elements) {
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        int d = order != NULL ? order[i] : i;
        strides[d] = stride;
        stride *= dims[d] > 0 ? dims[d] : 1;
        stride += order != NULL && i == rank - 1;
    }
    *elements = (size_t)stride;
}

static pair make_pair(setting *setting, sb_dtype dtype, int rank, const int64_t *dims, const int *order) {
    pair pair = {0};
    int64_t strides[SB_MAX_RANK];
    size_t elements;
    sb_cuda_memory *memory = NULL;
    fill_strides(rank, dims, order, strides, &elements);
    pair.bytes = elements * sb_dtype_size(dtype);
    void *data = calloc(elements, sb_dtype_size(dtype));
    assert_non_null(data);
    MUST(sb_tensor_wrap(dtype, rank, dims, strides, data, free, data, &pair.host, error));
    MUST(sb_cuda_memory_create(setting->device, pair.bytes, &memory, error));
    MUST(sb_tensor_wrap(dtype, rank, dims, strides, (void *)(uintptr_t)memory->address, release_memory, memory,
                        &pair.device, error));
    return pair;
}

static void release_pair(pair *pair) {
    sb_tensor_release(pair->host);
    sb_tensor_release(pair->device);
}

static void upload(const setting *setting, const pair *pair) {
    MUST(sb_cuda_upload(setting->staging, &setting->queue, (CUdeviceptr)(uintptr_t)pair->device->data, pair->host->data,
                        pair->bytes, error));
}

/* The device's storage as a tensor on the host. */
static sb_tensor *download(const setting *setting, const pair *pair) {
    sb_tensor *tensor = NULL;
    void *data = malloc(pair->bytes);
    assert_non_null(data);
    MUST(sb_cuda_download(setting->staging, &setting->queue, data, (CUdeviceptr)(uintptr_t)pair->device->data,
                          pair->bytes, error));
    MUST(sb_tensor_wrap(pair->host->dtype, pair->host->rank, pair->host->dims, pair->host->strides, data, free, data,
                        &tensor, error));
    return tensor;
}

static void check_equal(const setting *setting, const pair *pair, const char *what) {
    sb_tensor *found = download(setting, pair);
    if (!sb_tensor_equal(found, pair->host))
        fail_msg("%s of %s: the device has other bits", what, sb_dtype_name(pair->host->dtype));
    sb_tensor_release(found);
}

/* Awkward values of any type: few different ones, every magnitude, infinities, NaN, zeros of both signs, subnormals. */
static void fill(setting *setting, const pair *pair) {
    size_t size = sb_dtype_size(pair->host->dtype), count = pair->bytes / size;
    static const double special[] = {0.0, -0.0, 1.0, -1.0, 2.0, 3.0, 0.5, -2.5, 1e-30, 7.0, 100.0, -0.75};
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = random_bits(&setting->random);
        double value = special[bits >> 32 & 7];
        bool plain = (bits >> 40 & 1) != 0;
        char *at = pair->host->data + i * size;
        switch (pair->host->dtype) {
        case SB_BOOL:
            *at = (char)(bits & 1);
            break;
        case SB_F64:
            memcpy(at, plain ? (const void *)&value : &bits, size);
            break;
        case SB_F32: {
            float narrow = (float)value;
            memcpy(at, plain ? (const void *)&narrow : &bits, size);
            break;
        }
        default:
            bits = plain ? bits >> 60 : bits;
            memcpy(at, &bits, size);
        }
    }
}

/* ---- shapes ---- */

typedef struct shape {
    const char *name;
    int rank;
    int64_t dims[4];
    bool permuted[3];      /* operand 0 is the output: strides in another order, with gaps */
    unsigned broadcast[3]; /* dimensions in which the operand has extent 1 */
} shape;

static const shape shapes[] = {
    {"packed", 1, {1031}, {false, false, false}, {0, 0, 0}},
    {"scalar", 0, {0}, {false, false, false}, {0, 0, 0}},
    {"empty", 2, {3, 0}, {false, false, false}, {0, 0, 0}},
    {"transposed inputs", 3, {5, 7, 11}, {false, true, true}, {0, 0, 0}},
    {"transposed output", 4, {3, 4, 5, 6}, {true, false, true}, {0, 0, 0}},
    {"broadcast right", 3, {6, 10, 9}, {false, false, false}, {0, 0, 3}},
    {"broadcast both", 3, {6, 10, 9}, {false, false, false}, {0, 1, 4}},
    {"rows", 3, {3, 5, 16}, {false, false, false}, {0, 0, 2}},
    {"rows of one value", 3, {3, 5, 8}, {false, false, false}, {0, 4, 3}},
    {"strided rows", 3, {3, 6, 12}, {false, true, false}, {0, 0, 1}},
    {"matrix of tiles", 2, {70, 37}, {false, true, true}, {0, 0, 0}},
    {"matrices of tiles", 3, {33, 3, 40}, {false, true, false}, {0, 0, 0}},
    {"matrices in another order", 3, {33, 17, 3}, {true, false, false}, {0, 0, 0}},
    {"broadcast scalar", 2, {40, 9}, {false, true, false}, {0, 0, 3}},
};
#define SHAPES (sizeof shapes / sizeof shapes[0])

static pair make_operand(setting *setting, const shape *shape, int operand, sb_dtype dtype) {
    static const int orders[5][4] = {{0}, {0}, {1, 0}, {1, 2, 0}, {2, 0, 3, 1}};
    int64_t dims[SB_MAX_RANK];
    for (int d = 0; d < shape->rank; d++)
        dims[d] = (shape->broadcast[operand] >> d & 1) != 0 ? 1 : shape->dims[d];
    bool permuted = shape->permuted[operand] && shape->rank > 1;
    pair pair = make_pair(setting, dtype, shape->rank, dims, permuted ? orders[shape->rank] : NULL);
    fill(setting, &pair);
    upload(setting, &pair);
    return pair;
}

/* The CPU's loop over the host's tensors. */
static void run_loop(sb_walk_row *loop, void *context, int operands, const pair *pairs) {
    const sb_tensor *tensors[3];
    for (int i = 0; i < operands; i++)
        tensors[i] = pairs[i].host;
    sb_walk walk;
    sb_walk_start(&walk, pairs[0].host->rank, pairs[0].host->dims, operands, tensors);
    sb_walk_run(&walk, loop, context);
}

static sb_status launch(const setting *setting, const sb_cuda_operation *operation,
                        const sb_cuda_elementwise_options *options, int inputs, const pair *pairs, sb_error *error) {
    const sb_tensor *tensors[2] = {pairs[1].device, inputs > 1 ? pairs[2].device : NULL};
    SB_TRY(sb_cuda_enter(setting->device, error));
    sb_status status =
        sb_cuda_launch_elementwise(&setting->queue, 0, operation, options, pairs[0].device, inputs, tensors, error);
    return sb_cuda_leave(setting->device, status, error);
}

static bool gives_truth(const char *op) {
#define NAME(op, unused) #op,
    static const char *const questions[] = {SB_UNARY_QUESTIONS(NAME, ) SB_UNARY_TRUTHS(NAME, ) SB_BINARY_TRUTHS(NAME, )
                                                SB_BINARY_COMPARISONS(NAME, )};
#undef NAME
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        if (strcmp(op, questions[i]) == 0)
            return true;
    }
    return false;
}

/* ---- operators of one input ---- */

#define NAME(op) #op,
static const char *const unary_names[] = {SB_UNARY_OPS(NAME) "GeluTanh"};

static void check_unary(setting *setting, int row, sb_dtype dtype, const sb_cuda_operation *operation,
                        const shape *shape, const sb_unary_params *params) {
    const char *op = unary_names[row];
    pair pairs[2] = {make_operand(setting, shape, 0, gives_truth(op) ? SB_BOOL : dtype),
                     make_operand(setting, shape, 1, dtype)};
    sb_cuda_elementwise_options options = {.a = params->a, .b = params->b};
    sb_unary_params copy = *params;
    run_loop(sb_unary_loops_scalar[row][dtype], &copy, 2, pairs);
    MUST(launch(setting, operation, &options, 1, pairs, error));
    char what[128];
    snprintf(what, sizeof what, "%s, %s", op, shape->name);
    check_equal(setting, &pairs[0], what);
    release_pair(&pairs[0]);
    release_pair(&pairs[1]);
}

static void test_unary(void **unused) {
    static const sb_unary_params params[] = {{0.25f, 1.5f, false}, {0, 1, false}, {1.6732632f, 1.050701f, false}};
    setting setting = set_up(&host_images);
    for (int row = 0; row < SB_UNARY_ROWS; row++) {
        int found = 0;
        for (int dtype = 1; dtype < SB_DTYPE_COUNT; dtype++) {
            sb_cuda_operation operation = {NULL, 0};
            sb_error error;
            sb_status status =
                sb_cuda_find_elementwise(setting.device, unary_names[row], 1, (sb_dtype)dtype, &operation, &error);
            if (sb_unary_loops_scalar[row][dtype] == NULL) {
                assert_int_equal(status, SB_ERROR_UNSUPPORTED);
                assert_says(error, "no GPU kernel for");
                continue;
            }
            if (status != SB_OK)
                fail_msg("%s", error.message);
            found++;
            for (size_t s = 0; s < SHAPES; s++)
                check_unary(&setting, row, (sb_dtype)dtype, &operation, &shapes[s], &params[s % 3]);
        }
        assert_true(found > 0);
    }
    tear_down(&setting);
}

/* Every f16 and bf16 there is. */
static void test_unary_halves(void **unused) {
    static const shape all = {"all", 1, {65536}, {false}, {0}};
    static const sb_unary_params params = {0.25f, 1.5f, false};
    setting setting = set_up(&host_images);
    for (int row = 0; row < SB_UNARY_ROWS; row++) {
        for (int dtype = SB_F16; dtype <= SB_BF16; dtype++) {
            sb_cuda_operation operation = {NULL, 0};
            if (sb_unary_loops_scalar[row][dtype] == NULL)
                continue;
            MUST(sb_cuda_find_elementwise(setting.device, unary_names[row], 1, (sb_dtype)dtype, &operation, error));
            bool truth = gives_truth(unary_names[row]);
            pair pairs[2] = {make_operand(&setting, &all, 0, truth ? SB_BOOL : (sb_dtype)dtype),
                             make_operand(&setting, &all, 1, (sb_dtype)dtype)};
            for (int i = 0; i < 65536; i++)
                ((uint16_t *)(void *)pairs[1].host->data)[i] = (uint16_t)i;
            upload(&setting, &pairs[1]);
            sb_cuda_elementwise_options options = {.a = params.a, .b = params.b};
            sb_unary_params copy = params;
            run_loop(sb_unary_loops_scalar[row][dtype], &copy, 2, pairs);
            MUST(launch(&setting, &operation, &options, 1, pairs, error));
            check_equal(&setting, &pairs[0], unary_names[row]);
            release_pair(&pairs[0]);
            release_pair(&pairs[1]);
        }
    }
    tear_down(&setting);
}

/* ---- operators of two inputs ---- */

static const char *const binary_names[] = {SB_BINARY_OPS(NAME) "Fmod", "ShiftRight", "Max", "Min", "Pow"};

/* The kernels' name of a row: BitShift is two operators. */
static const char *binary_name(int row) {
    return row == SB_BINARY_ROW_BitShift ? "ShiftLeft" : binary_names[row];
}

static void check_binary(setting *setting, int row, sb_dtype dtype, const sb_cuda_operation *operation,
                         const shape *shape, const pair *flag) {
    const char *op = binary_name(row);
    pair pairs[3] = {make_operand(setting, shape, 0, gives_truth(op) ? SB_BOOL : dtype),
                     make_operand(setting, shape, 1, dtype), make_operand(setting, shape, 2, dtype)};
    sb_binary_context context = {false};
    run_loop(sb_binary_loops_scalar[row][dtype], &context, 3, pairs);
    upload(setting, flag);
    sb_cuda_elementwise_options options = {.fault = (uint32_t *)(void *)flag->device->data};
    MUST(launch(setting, operation, &options, 2, pairs, error));
    char what[128];
    snprintf(what, sizeof what, "%s, %s", op, shape->name);
    check_equal(setting, &pairs[0], what);
    sb_tensor *noted = download(setting, flag);
    assert_int_equal(*(const uint32_t *)(const void *)noted->data, context.divided_by_zero);
    sb_tensor_release(noted);
    for (int i = 0; i < 3; i++)
        release_pair(&pairs[i]);
}

static void test_binary(void **unused) {
    setting setting = set_up(&host_images);
    pair flag = make_pair(&setting, SB_U32, 0, NULL, NULL);
    for (int row = 0; row < SB_BINARY_ROWS; row++) {
        int found = 0;
        for (int dtype = 1; dtype < SB_DTYPE_COUNT; dtype++) {
            sb_cuda_operation operation = {NULL, 0};
            sb_error error;
            sb_status status =
                sb_cuda_find_elementwise(setting.device, binary_name(row), 2, (sb_dtype)dtype, &operation, &error);
            if (sb_binary_loops_scalar[row][dtype] == NULL) {
                assert_int_equal(status, SB_ERROR_UNSUPPORTED);
                continue;
            }
            if (status != SB_OK)
                fail_msg("%s", error.message);
            found++;
            for (size_t s = 0; s < SHAPES; s++)
                check_binary(&setting, row, (sb_dtype)dtype, &operation, &shapes[s], &flag);
        }
        assert_true(found > 0);
    }
    release_pair(&flag);
    tear_down(&setting);
}

/* Remainders come from the device's own fmod, which has to be exact: every distance of exponents,
 * subnormals among them. */
static void test_remainders(void **unused) {
    static const shape many = {"many", 1, {1 << 17}, {false}, {0}};
    static const int rows[] = {SB_BINARY_ROW_Mod, SB_BINARY_ROW_Fmod};
    setting setting = set_up(&host_images);
    sb_cuda_elementwise_options options = {0};
    for (int i = 0; i < 4; i++) {
        sb_dtype dtype = i < 2 ? SB_F32 : SB_F64;
        sb_cuda_operation operation = {NULL, 0};
        MUST(sb_cuda_find_elementwise(setting.device, binary_names[rows[i % 2]], 2, dtype, &operation, error));
        pair pairs[3] = {make_operand(&setting, &many, 0, dtype), make_operand(&setting, &many, 1, dtype),
                         make_operand(&setting, &many, 2, dtype)};
        for (int64_t at = 0; at < many.dims[0]; at++) {
            for (int operand = 1; operand < 3; operand++) {
                uint64_t bits = random_bits(&setting.random);
                char *data = pairs[operand].host->data;
                /* Half of them with few different exponents, the least ones. */
                bits = (at & 1) != 0 ? bits & 0x803fffffffffffff : bits;
                uint32_t narrow = (uint32_t)(bits >> 32) & ((at & 1) != 0 ? 0x83ffffffu : UINT32_MAX);
                memcpy(data + at * (dtype == SB_F32 ? 4 : 8), dtype == SB_F32 ? (void *)&narrow : (void *)&bits,
                       dtype == SB_F32 ? 4 : 8);
            }
        }
        upload(&setting, &pairs[1]);
        upload(&setting, &pairs[2]);
        sb_binary_context context = {false};
        run_loop(sb_binary_loops_scalar[rows[i % 2]][dtype], &context, 3, pairs);
        MUST(launch(&setting, &operation, &options, 2, pairs, error));
        check_equal(&setting, &pairs[0], binary_names[rows[i % 2]]);
        for (int operand = 0; operand < 3; operand++)
            release_pair(&pairs[operand]);
    }
    tear_down(&setting);
}

/* ---- copies ---- */

static void test_copy(void **unused) {
    setting setting = set_up(&host_images);
    const sb_cuda_kernel *kernel = NULL;
    sb_error error;
    assert_int_equal(sb_cuda_find_copy(setting.device, SB_STRING, &kernel, &error), SB_ERROR_UNSUPPORTED);
    for (int dtype = 1; dtype < SB_STRING; dtype++) {
        MUST(sb_cuda_find_copy(setting.device, (sb_dtype)dtype, &kernel, error));
        for (size_t s = 0; s < SHAPES; s++) {
            pair to = make_operand(&setting, &shapes[s], 0, (sb_dtype)dtype);
            pair from = make_operand(&setting, &shapes[s], 1, (sb_dtype)dtype);
            sb_tensor *source = NULL;
            MUST(sb_tensor_broadcast(from.host, to.host->rank, to.host->dims, &source, error));
            sb_tensor_copy_elements(to.host, source);
            sb_tensor_release(source);
            int64_t kernels = sb_cuda_device_counters(setting.device).kernels;
            MUST(sb_cuda_enter(setting.device, error));
            MUST(sb_cuda_launch_copy(&setting.queue, 0, kernel, to.device, from.device, error));
            MUST(sb_cuda_leave(setting.device, SB_OK, error));
            check_equal(&setting, &to, shapes[s].name);
            /* Packed tensors need no kernel. */
            if (s == 0)
                assert_int_equal(sb_cuda_device_counters(setting.device).kernels, kernels);
            release_pair(&to);
            release_pair(&from);
        }
    }
    assert_true(sb_cuda_device_counters(setting.device).kernels > 0);
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

/* The embedded images have every kernel, in machine code and in PTX. */
static void test_embedded(void **unused) {
    static const int computes[] = {80, 90, 120};
    if (!has_all_architectures() || !is_fake())
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

int main(int argc, char **argv) {
    if (argc > 1)
        library = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copy),         cmocka_unit_test(test_ranges), cmocka_unit_test(test_unary),
        cmocka_unit_test(test_unary_halves), cmocka_unit_test(test_binary), cmocka_unit_test(test_remainders),
        cmocka_unit_test(test_embedded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
