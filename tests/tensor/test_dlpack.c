/* DLPack: the layout of its structures, export, import, and structures that contradict themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <samebit/dlpack.h>

#include "support/failing.h"
#include "tensor/random_view.h"

static int no_leak(void **state) {
    return sb_allocation_count().live_blocks == 0 ? 0 : -1;
}

/* The binary interface that other libraries were compiled with. */
_Static_assert(sizeof(DLDataType) == 4 && sizeof(DLDevice) == 8 && sizeof(DLTensor) == 48 &&
                   offsetof(DLTensor, ndim) == 16 && offsetof(DLTensor, dtype) == 20 &&
                   offsetof(DLTensor, shape) == 24 && offsetof(DLTensor, strides) == 32 &&
                   offsetof(DLTensor, byte_offset) == 40 && sizeof(DLManagedTensor) == 64 &&
                   sizeof(DLManagedTensorVersioned) == 80 && offsetof(DLManagedTensorVersioned, flags) == 24 &&
                   offsetof(DLManagedTensorVersioned, dl_tensor) == 32,
               "DLPack 1.x");

static void test_round_trip(void **state) {
    static model plan;
    random_source source = {31};
    static const unsigned char codes[][2] = {
        [SB_BOOL] = {kDLBool, 8},  [SB_U8] = {kDLUInt, 8},    [SB_U16] = {kDLUInt, 16},    [SB_U32] = {kDLUInt, 32},
        [SB_U64] = {kDLUInt, 64},  [SB_S8] = {kDLInt, 8},     [SB_S16] = {kDLInt, 16},     [SB_S32] = {kDLInt, 32},
        [SB_S64] = {kDLInt, 64},   [SB_F16] = {kDLFloat, 16}, [SB_BF16] = {kDLBfloat, 16}, [SB_F32] = {kDLFloat, 32},
        [SB_F64] = {kDLFloat, 64}, [SB_F8E4M3FN] = {10, 8},   [SB_F8E4M3FNUZ] = {11, 8},   [SB_F8E5M2] = {12, 8},
        [SB_F8E5M2FNUZ] = {13, 8}, [SB_F8E8M0] = {14, 8},     [SB_F6E2M3] = {15, 6},       [SB_F6E3M2] = {16, 6},
        [SB_F4E2M1] = {17, 4},     [SB_S4] = {kDLInt, 4},     [SB_U4] = {kDLUInt, 4},      [SB_S2] = {kDLInt, 2},
        [SB_U2] = {kDLUInt, 2}};
    for (int dtype = SB_BOOL; dtype < SB_DTYPE_COUNT; dtype++) {
        if (dtype == SB_STRING)
            continue;
        for (int round = 0; round < 20; round++) {
            sb_tensor *tensor = model_random(&source, (sb_dtype)dtype, &plan), *again = NULL;
            DLManagedTensorVersioned *managed = NULL;
            assert_int_equal(sb_tensor_to_dlpack(tensor, &managed, NULL), SB_OK);
            assert_int_equal(managed->version.major, 1);
            /* Bit 2: elements of less than 8 bits take a byte each. */
            assert_int_equal(managed->flags, DLPACK_FLAG_BITMASK_READ_ONLY | (codes[dtype][1] < 8 ? 4 : 0));
            assert_int_equal(managed->dl_tensor.device.device_type, kDLCPU);
            assert_int_equal(managed->dl_tensor.dtype.code, codes[dtype][0]);
            assert_int_equal(managed->dl_tensor.dtype.bits, codes[dtype][1]);
            assert_int_equal(managed->dl_tensor.dtype.lanes, 1);
            assert_ptr_equal(managed->dl_tensor.data, sb_tensor_data(tensor));
            sb_tensor_release(tensor);
            assert_int_equal(sb_tensor_from_dlpack(managed, &again, NULL), SB_OK);
            assert_int_equal(sb_tensor_dtype(again), dtype);
            model_check(again, &plan);
            sb_tensor_release(again);
        }
    }
    sb_tensor *text = NULL;
    DLManagedTensorVersioned *managed = NULL;
    assert_int_equal(sb_tensor_create(SB_STRING, 0, NULL, &text, NULL), SB_OK);
    assert_int_equal(sb_tensor_to_dlpack(text, &managed, NULL), SB_ERROR_UNSUPPORTED);
    assert_null(managed);
    sb_tensor_release(text);
}

static int deleted;
static void delete_versioned(DLManagedTensorVersioned *self) {
    deleted++;
}
static void delete_legacy(DLManagedTensor *self) {
    deleted++;
}

static int32_t memory[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
static int64_t shape[2] = {2, 3}, strides[2] = {-4, 1};

static DLTensor good(void) {
    return (DLTensor){.data = memory,
                      .device = {kDLCPU, 0},
                      .ndim = 2,
                      .dtype = {kDLInt, 32, 1},
                      .shape = shape,
                      .strides = strides,
                      .byte_offset = 4 * sizeof *memory};
}

static void test_import(void **state) {
    static const int32_t expected[] = {4, 5, 6, 0, 1, 2};
    DLManagedTensorVersioned versioned = {.version = {1, 7}, .deleter = delete_versioned, .dl_tensor = good()};
    DLManagedTensor legacy = {.dl_tensor = good(), .deleter = delete_legacy};
    sb_tensor *tensors[2] = {NULL}, *copy = NULL;
    deleted = 0;
    assert_int_equal(sb_tensor_from_dlpack(&versioned, &tensors[0], NULL), SB_OK);
    assert_int_equal(sb_tensor_from_dlpack_legacy(&legacy, &tensors[1], NULL), SB_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sb_tensor_contiguous(tensors[i], &copy, NULL), SB_OK);
        assert_memory_equal(sb_tensor_data(copy), expected, sizeof expected);
        sb_tensor_release(copy);
        assert_int_equal(deleted, i);
        sb_tensor_release(tensors[i]);
        assert_int_equal(deleted, i + 1);
    }
    /* Row-major without strides; nobody to tell; nothing inside. */
    versioned.deleter = NULL;
    versioned.dl_tensor.strides = NULL;
    assert_int_equal(sb_tensor_from_dlpack(&versioned, &tensors[0], NULL), SB_OK);
    assert_true(sb_tensor_is_contiguous(tensors[0]));
    sb_tensor_release(tensors[0]);
    legacy.deleter = NULL;
    legacy.dl_tensor =
        (DLTensor){.device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 64, 1}, .shape = (int64_t[]){0, 5}};
    assert_int_equal(sb_tensor_from_dlpack_legacy(&legacy, &tensors[0], NULL), SB_OK);
    assert_int_equal(sb_tensor_elements(tensors[0]), 0);
    sb_tensor_release(tensors[0]);
}

static void expect_refusal(const DLTensor *tensor, sb_status status, const char *words) {
    DLManagedTensorVersioned versioned = {.version = {1, 0}, .deleter = delete_versioned, .dl_tensor = *tensor};
    DLManagedTensor legacy = {.dl_tensor = *tensor, .deleter = delete_legacy};
    sb_tensor *imported = NULL;
    sb_error errors[2];
    assert_int_equal(sb_tensor_from_dlpack(&versioned, &imported, &errors[0]), status);
    assert_int_equal(sb_tensor_from_dlpack_legacy(&legacy, &imported, &errors[1]), status);
    for (int i = 0; i < 2; i++) {
        if (strstr(errors[i].message, words) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", errors[i].message, words);
    }
    assert_null(imported);
}

static void test_refusals(void **state) {
    DLTensor tensor;
    sb_tensor *imported = NULL;
    sb_error error;
    deleted = 0;
    tensor = good(), tensor.device.device_type = kDLCUDA;
    expect_refusal(&tensor, SB_ERROR_UNSUPPORTED, "device type 2");
    tensor = good(), tensor.dtype.lanes = 4;
    expect_refusal(&tensor, SB_ERROR_UNSUPPORTED, "4 lanes");
    tensor = good(), tensor.dtype.bits = 3;
    expect_refusal(&tensor, SB_ERROR_UNSUPPORTED, "3 bits");
    tensor = good(), tensor.dtype.bits = 4;
    expect_refusal(&tensor, SB_ERROR_UNSUPPORTED, "packed elements of s4");
    tensor = good(), tensor.dtype.code = kDLComplex;
    expect_refusal(&tensor, SB_ERROR_UNSUPPORTED, "code 5");
    tensor = good(), tensor.ndim = 13;
    expect_refusal(&tensor, SB_ERROR_SHAPE, "rank 13");
    tensor = good(), tensor.ndim = -1;
    expect_refusal(&tensor, SB_ERROR_SHAPE, "rank -1");
    tensor = good(), tensor.shape = NULL;
    expect_refusal(&tensor, SB_ERROR_INVALID_ARGUMENT, "no extents");
    tensor = good(), tensor.shape = (int64_t[]){-2, 3};
    expect_refusal(&tensor, SB_ERROR_SHAPE, "negative");
    tensor = good(), tensor.shape = (int64_t[]){INT64_MAX, 3};
    expect_refusal(&tensor, SB_ERROR_SHAPE, "overflows");
    tensor = good(), tensor.strides = (int64_t[]){INT64_MIN, 1};
    expect_refusal(&tensor, SB_ERROR_INVALID_ARGUMENT, "dimension 0");
    tensor = good(), tensor.byte_offset = UINT64_MAX;
    expect_refusal(&tensor, SB_ERROR_INVALID_ARGUMENT, "offset");
    tensor = good(), tensor.byte_offset = 6;
    expect_refusal(&tensor, SB_ERROR_INVALID_ARGUMENT, "not aligned");
    tensor = good(), tensor.data = NULL;
    expect_refusal(&tensor, SB_ERROR_INVALID_ARGUMENT, "no memory");
    tensor = good(), tensor.data = NULL, tensor.byte_offset = 0;
    expect_refusal(&tensor, SB_ERROR_INVALID_ARGUMENT, "no memory");
    /* Of another major version, nothing behind the version is looked at. */
    DLManagedTensorVersioned newer = {.version = {2, 0}, .deleter = delete_versioned};
    assert_int_equal(sb_tensor_from_dlpack(&newer, &imported, &error), SB_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "version 2.0"));
    assert_int_equal(sb_tensor_from_dlpack(NULL, &imported, NULL), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_tensor_from_dlpack_legacy(NULL, &imported, NULL), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(deleted, 0);
}

static sb_status there_and_back(void *context) {
    sb_tensor *tensor = NULL, *again = NULL;
    DLManagedTensorVersioned *managed = NULL;
    sb_status status = sb_tensor_create(SB_F32, 1, &(const int64_t){4}, &tensor, NULL);
    if (status == SB_OK)
        status = sb_tensor_to_dlpack(tensor, &managed, NULL);
    if (status == SB_OK) {
        status = sb_tensor_from_dlpack(managed, &again, NULL);
        if (status != SB_OK)
            managed->deleter(managed);
    }
    sb_tensor_release(tensor);
    sb_tensor_release(again);
    return status;
}

static void test_memory(void **state) {
    check_failing_allocations(there_and_back, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_round_trip, no_leak),
        cmocka_unit_test_teardown(test_import, no_leak),
        cmocka_unit_test_teardown(test_refusals, no_leak),
        cmocka_unit_test_teardown(test_memory, no_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
