/* Tensors: making, sharing, comparing; the arguments that are refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/failing.h"
#include "tensor/tensor.h"

static int no_leak(void **state) {
    return sb_allocation_count().live_blocks == 0 ? 0 : -1;
}

static void refused(sb_status status, sb_status expected, const sb_error *error, const char *words) {
    assert_int_equal(status, expected);
    assert_int_equal(error->status, expected);
    if (strstr(error->message, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error->message, words);
}

static void test_dtypes(void **state) {
    static const size_t sizes[SB_DTYPE_COUNT] = {0,  1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8,
                                                 16, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const int packed[] = {
        [SB_F4E2M1] = 4, [SB_S4] = 4, [SB_U4] = 4, [SB_S2] = 2, [SB_U2] = 2, [SB_F6E2M3] = 6, [SB_F6E3M2] = 6};
    for (int i = 0; i < SB_DTYPE_COUNT; i++) {
        sb_dtype dtype = (sb_dtype)i;
        assert_int_equal(sb_dtype_size(dtype), sizes[i]);
        assert_int_equal(sb_dtype_from_name(sb_dtype_name(dtype)), i);
        assert_int_equal(sb_dtype_is_float(dtype), i >= SB_F16 && i <= SB_F64);
        assert_int_equal(sb_dtype_is_integer(dtype), i >= SB_U8 && i <= SB_S64);
        assert_int_equal(sb_dtype_is_small(dtype), i > SB_STRING);
        assert_int_equal(sb_dtype_bits(dtype), i == SB_STRING ? 0 : packed[i] != 0 ? packed[i] : (int)(8 * sizes[i]));
    }
    static const int outside[] = {-1, SB_DTYPE_COUNT, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        assert_int_equal(sb_dtype_size((sb_dtype)outside[i]), 0);
        assert_int_equal(sb_dtype_bits((sb_dtype)outside[i]), 0);
        assert_false(sb_dtype_is_small((sb_dtype)outside[i]));
        assert_string_equal(sb_dtype_name((sb_dtype)outside[i]), "unknown");
    }
    assert_int_equal(sb_dtype_from_name("f8e5m2"), SB_F8E5M2);
    assert_int_equal(sb_dtype_from_name("float"), SB_DTYPE_NONE);
    assert_int_equal(sb_dtype_from_name(NULL), SB_DTYPE_NONE);
}

static void test_create(void **state) {
    sb_tensor *tensor = NULL;
    assert_int_equal(sb_tensor_create(SB_F32, 3, (const int64_t[]){2, 3, 4}, &tensor, NULL), SB_OK);
    assert_int_equal(sb_tensor_rank(tensor), 3);
    assert_int_equal(sb_tensor_elements(tensor), 24);
    assert_int_equal(sb_tensor_dtype(tensor), SB_F32);
    assert_memory_equal(sb_tensor_strides(tensor), ((const int64_t[]){12, 4, 1}), 24);
    assert_int_equal((uintptr_t)sb_tensor_data(tensor) % SB_ALIGNMENT, 0);
    assert_ptr_equal(sb_tensor_mutable_data(tensor), sb_tensor_data(tensor));
    const float *data = sb_tensor_data(tensor);
    for (int i = 0; i < 24; i++)
        assert_true(data[i] == 0);
    sb_tensor *same = sb_tensor_retain(tensor);
    sb_tensor_release(tensor);
    assert_ptr_equal(same, tensor);
    assert_int_equal(sb_tensor_elements(same), 24);
    sb_tensor_release(same);

    assert_int_equal(sb_tensor_create(SB_U8, 0, NULL, &tensor, NULL), SB_OK);
    assert_int_equal(sb_tensor_elements(tensor), 1);
    assert_true(sb_tensor_is_contiguous(tensor));
    sb_tensor_release(tensor);
    assert_int_equal(sb_tensor_create(SB_STRING, 2, (const int64_t[]){2, 0}, &tensor, NULL), SB_OK);
    assert_int_equal(sb_tensor_elements(tensor), 0);
    assert_true(sb_tensor_is_contiguous(tensor));
    sb_tensor_release(tensor);
    assert_null(sb_tensor_retain(NULL));
    sb_tensor_release(NULL);
}

static void test_refusals(void **state) {
    sb_tensor *tensor = NULL;
    sb_error error;
    static const int64_t dims[13] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const int64_t large[] = {INT64_C(1) << 32, INT64_C(1) << 31};
    static const int64_t larger[] = {INT64_C(1) << 32, 0, INT64_C(1) << 32};
    refused(sb_tensor_create(SB_DTYPE_NONE, 0, NULL, &tensor, &error), SB_ERROR_INVALID_ARGUMENT, &error,
            "0 is not a dtype");
    refused(sb_tensor_create((sb_dtype)99, 0, NULL, &tensor, &error), SB_ERROR_INVALID_ARGUMENT, &error,
            "99 is not a dtype");
    refused(sb_tensor_create(SB_U8, 13, dims, &tensor, &error), SB_ERROR_SHAPE, &error, "rank 13");
    refused(sb_tensor_create(SB_U8, -1, dims, &tensor, &error), SB_ERROR_SHAPE, &error, "rank -1");
    refused(sb_tensor_create(SB_U8, 1, NULL, &tensor, &error), SB_ERROR_INVALID_ARGUMENT, &error, "no extents");
    refused(sb_tensor_create(SB_U8, 1, &(const int64_t){-5}, &tensor, &error), SB_ERROR_SHAPE, &error, "-5");
    refused(sb_tensor_create(SB_U8, 2, large, &tensor, &error), SB_ERROR_SHAPE, &error, "overflows");
    /* Empty, but its strides would overflow. */
    refused(sb_tensor_create(SB_U8, 3, larger, &tensor, &error), SB_ERROR_SHAPE, &error, "overflows");
    refused(sb_tensor_create(SB_F64, 1, &(const int64_t){INT64_MAX / 4}, &tensor, &error), SB_ERROR_SHAPE, &error,
            "overflows");
    refused(sb_tensor_from_data(SB_U8, 1, &(const int64_t){3}, NULL, &tensor, &error), SB_ERROR_INVALID_ARGUMENT,
            &error, "3 elements");
    refused(sb_tensor_from_data(SB_STRING, 0, NULL, "x", &tensor, &error), SB_ERROR_INVALID_ARGUMENT, &error,
            "sb_tensor_from_strings");
    refused(sb_tensor_from_strings(1, &(const int64_t){2}, NULL, &tensor, &error), SB_ERROR_INVALID_ARGUMENT, &error,
            "2 elements");
    refused(sb_tensor_from_strings(0, NULL, &(const sb_string){NULL, 3}, &tensor, &error), SB_ERROR_INVALID_ARGUMENT,
            &error, "3 bytes");
    refused(sb_tensor_from_strings(1, &(const int64_t){2}, (const sb_string[]){{"a", SIZE_MAX}, {"b", SIZE_MAX}},
                                   &tensor, &error),
            SB_ERROR_SHAPE, &error, "overflows");
    assert_null(tensor);
    /* Without a report. */
    assert_int_equal(sb_tensor_create(SB_U8, 13, dims, &tensor, NULL), SB_ERROR_SHAPE);
}

static void count_release(void *context) {
    ++*(int *)context;
}

static void test_wrap(void **state) {
    _Alignas(8) static char memory[48] = "0123456789abcdefghijklmnopqrstuvwxyz";
    sb_tensor *tensor = NULL, *view = NULL;
    sb_error error;
    int released = 0;
    static const int64_t dims[] = {2, 3}, reversed[] = {-3, -1}, far[] = {INT64_MAX / 2, 1};
    assert_int_equal(sb_tensor_wrap(SB_U8, 2, dims, reversed, memory + 5, count_release, &released, &tensor, NULL),
                     SB_OK);
    assert_false(sb_tensor_is_contiguous(tensor));
    assert_int_equal(sb_tensor_contiguous(tensor, &view, NULL), SB_OK);
    assert_memory_equal(sb_tensor_data(view), "543210", 6);
    sb_tensor_release(view);
    assert_int_equal(sb_tensor_transpose(tensor, (const int[]){1, 0}, &view, NULL), SB_OK);
    sb_tensor_release(tensor);
    assert_int_equal(released, 0);
    sb_tensor_release(view);
    assert_int_equal(released, 1);

    /* Refused: nothing is released. */
    refused(sb_tensor_wrap(SB_U32, 2, dims, NULL, memory + 2, count_release, &released, &tensor, &error),
            SB_ERROR_INVALID_ARGUMENT, &error, "not aligned");
    refused(sb_tensor_wrap(SB_U8, 2, dims, NULL, NULL, count_release, &released, &tensor, &error),
            SB_ERROR_INVALID_ARGUMENT, &error, "6 elements");
    refused(sb_tensor_wrap(SB_U8, 2, dims, far, memory, count_release, &released, &tensor, &error),
            SB_ERROR_INVALID_ARGUMENT, &error, "dimension 0");
    refused(sb_tensor_wrap(SB_U8, 2, dims, (const int64_t[]){1, INT64_MIN}, memory, count_release, &released, &tensor,
                           &error),
            SB_ERROR_INVALID_ARGUMENT, &error, "dimension 1");
    assert_int_equal(released, 1);
    /* The stride of an extent of 1 means nothing, and stays out of all arithmetic. */
    assert_int_equal(sb_tensor_wrap(SB_U16, 2, (const int64_t[]){1, 4}, (const int64_t[]){INT64_MIN, 1}, memory, NULL,
                                    NULL, &tensor, NULL),
                     SB_OK);
    assert_true(sb_tensor_is_contiguous(tensor));
    sb_tensor_release(tensor);
}

static bool equal_scalars(sb_dtype dtype, uint64_t left, uint64_t right) {
    sb_tensor *a = NULL, *b = NULL;
    assert_int_equal(sb_tensor_from_data(dtype, 0, NULL, &left, &a, NULL), SB_OK);
    assert_int_equal(sb_tensor_from_data(dtype, 0, NULL, &right, &b, NULL), SB_OK);
    bool equal = sb_tensor_equal(a, b);
    sb_tensor_release(a);
    sb_tensor_release(b);
    return equal;
}

static void test_equal(void **state) {
    assert_true(equal_scalars(SB_F32, 0x7fc00000, 0xff812345));
    assert_false(equal_scalars(SB_F32, 0x7f800000, 0x7fc00000));
    assert_false(equal_scalars(SB_F32, 0, 0x80000000));
    assert_true(equal_scalars(SB_F16, 0x7e00, 0xfc01));
    assert_false(equal_scalars(SB_F16, 0x7c00, 0xfc00));
    assert_true(equal_scalars(SB_BF16, 0x7fc0, 0xff81));
    assert_false(equal_scalars(SB_BF16, 0x7f80, 0x7fc0));
    assert_true(equal_scalars(SB_F64, UINT64_C(0x7ff8000000000000), UINT64_C(0xfff0000000000001)));
    assert_false(equal_scalars(SB_F64, UINT64_C(0x7ff0000000000000), UINT64_C(0xfff0000000000000)));
    assert_false(equal_scalars(SB_U16, 0x7e00, 0x7e01));
    assert_false(equal_scalars(SB_S64, UINT64_C(0x7ff8000000000000), UINT64_C(0xfff0000000000001)));
    assert_true(equal_scalars(SB_BOOL, 1, 1));
    assert_true(equal_scalars(SB_F8E4M3FN, 0x7f, 0xff));
    assert_false(equal_scalars(SB_F8E4M3FN, 0x7e, 0x7f));
    assert_true(equal_scalars(SB_F8E5M2, 0x7d, 0xff));
    assert_false(equal_scalars(SB_F8E5M2, 0x7c, 0x7d));
    assert_false(equal_scalars(SB_F8E4M3FNUZ, 0x7f, 0xff));
    assert_false(equal_scalars(SB_F8E8M0, 0x7f, 0xff));
    /* The bits above those of the type count for nothing. */
    assert_true(equal_scalars(SB_S4, 0x0f, 0xff));
    assert_false(equal_scalars(SB_S4, 0x07, 0xff));
    assert_true(equal_scalars(SB_U2, 0x01, 0xfd));
    assert_true(equal_scalars(SB_F6E2M3, 0x3f, 0xff));
    assert_false(equal_scalars(SB_F4E2M1, 0x00, 0x08));

    sb_tensor *a = NULL, *b = NULL, *c = NULL, *d = NULL;
    static const sb_string left[] = {{"one", 3}, {"", 0}}, right[] = {{"one", 3}, {"x", 1}};
    assert_int_equal(sb_tensor_from_strings(1, &(const int64_t){2}, left, &a, NULL), SB_OK);
    assert_int_equal(sb_tensor_from_strings(1, &(const int64_t){2}, right, &b, NULL), SB_OK);
    assert_int_equal(sb_tensor_from_strings(2, (const int64_t[]){1, 2}, left, &c, NULL), SB_OK);
    assert_int_equal(sb_tensor_create(SB_U8, 1, &(const int64_t){2}, &d, NULL), SB_OK);
    assert_true(sb_tensor_equal(a, a));
    assert_false(sb_tensor_equal(a, b));
    assert_false(sb_tensor_equal(a, c));
    assert_false(sb_tensor_equal(a, d));
    sb_tensor_release(a);
    sb_tensor_release(b);
    sb_tensor_release(c);
    sb_tensor_release(d);
}

static void test_dims_text(void **state) {
    char text[SB_DIMS_TEXT_BYTES];
    int64_t dims[SB_MAX_RANK];
    assert_string_equal(sb_dims_text(0, NULL, text), "[]");
    assert_string_equal(sb_dims_text(2, (const int64_t[]){2, -3}, text), "[2,-3]");
    for (int i = 0; i < SB_MAX_RANK; i++)
        dims[i] = INT64_MIN;
    size_t length = strlen(sb_dims_text(SB_MAX_RANK, dims, text));
    assert_true(length == 2 + SB_MAX_RANK * 20 + SB_MAX_RANK - 1 && text[length - 1] == ']');
}

static sb_status make_tensors(void *context) {
    sb_tensor *tensors[4] = {NULL};
    int released = 0;
    static char memory[6];
    static const int64_t dims[] = {2, 3};
    static const sb_string strings[6] = {{"a", 1}, {"bc", 2}};
    sb_status status = sb_tensor_create(SB_S16, 2, dims, &tensors[0], NULL);
    if (status == SB_OK)
        status = sb_tensor_from_data(SB_U8, 2, dims, memory, &tensors[1], NULL);
    if (status == SB_OK)
        status = sb_tensor_from_strings(2, dims, strings, &tensors[2], NULL);
    if (status == SB_OK)
        status = sb_tensor_wrap(SB_U8, 2, dims, NULL, memory, count_release, &released, &tensors[3], NULL);
    bool wrapped = status == SB_OK;
    for (int i = 0; i < 4; i++)
        sb_tensor_release(tensors[i]);
    assert_int_equal(released, wrapped);
    return status;
}

static void test_memory(void **state) {
    check_failing_allocations(make_tensors, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_dtypes, no_leak),   cmocka_unit_test_teardown(test_create, no_leak),
        cmocka_unit_test_teardown(test_refusals, no_leak), cmocka_unit_test_teardown(test_wrap, no_leak),
        cmocka_unit_test_teardown(test_equal, no_leak),    cmocka_unit_test_teardown(test_dims_text, no_leak),
        cmocka_unit_test_teardown(test_memory, no_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
