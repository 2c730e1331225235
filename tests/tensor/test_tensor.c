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
    return iv_allocation_count().live_blocks == 0 ? 0 : -1;
}

static void refused(iv_status status, iv_status expected, const iv_error *error,
                    const char *words) {
    assert_int_equal(status, expected);
    assert_int_equal(error->status, expected);
    if (strstr(error->message, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error->message, words);
}

static void test_dtypes(void **state) {
    static const size_t sizes[IV_DTYPE_COUNT] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 16};
    for (int i = 0; i < IV_DTYPE_COUNT; i++) {
        iv_dtype dtype = (iv_dtype)i;
        assert_int_equal(iv_dtype_size(dtype), sizes[i]);
        assert_int_equal(iv_dtype_from_name(iv_dtype_name(dtype)), i);
        assert_int_equal(iv_dtype_is_float(dtype), i >= IV_F16 && i <= IV_F64);
        assert_int_equal(iv_dtype_is_integer(dtype), i >= IV_U8 && i <= IV_S64);
    }
    static const int outside[] = {-1, IV_DTYPE_COUNT, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        assert_int_equal(iv_dtype_size((iv_dtype)outside[i]), 0);
        assert_string_equal(iv_dtype_name((iv_dtype)outside[i]), "unknown");
    }
    assert_int_equal(iv_dtype_from_name("float"), IV_DTYPE_NONE);
    assert_int_equal(iv_dtype_from_name(NULL), IV_DTYPE_NONE);
}

static void test_create(void **state) {
    iv_tensor *tensor = NULL;
    assert_int_equal(iv_tensor_create(IV_F32, 3, (const int64_t[]){2, 3, 4}, &tensor, NULL), IV_OK);
    assert_int_equal(iv_tensor_rank(tensor), 3);
    assert_int_equal(iv_tensor_elements(tensor), 24);
    assert_int_equal(iv_tensor_dtype(tensor), IV_F32);
    assert_memory_equal(iv_tensor_strides(tensor), ((const int64_t[]){12, 4, 1}), 24);
    assert_int_equal((uintptr_t)iv_tensor_data(tensor) % IV_ALIGNMENT, 0);
    assert_ptr_equal(iv_tensor_mutable_data(tensor), iv_tensor_data(tensor));
    const float *data = iv_tensor_data(tensor);
    for (int i = 0; i < 24; i++)
        assert_true(data[i] == 0);
    iv_tensor *same = iv_tensor_retain(tensor);
    iv_tensor_release(tensor);
    assert_ptr_equal(same, tensor);
    assert_int_equal(iv_tensor_elements(same), 24);
    iv_tensor_release(same);

    assert_int_equal(iv_tensor_create(IV_U8, 0, NULL, &tensor, NULL), IV_OK);
    assert_int_equal(iv_tensor_elements(tensor), 1);
    assert_true(iv_tensor_is_contiguous(tensor));
    iv_tensor_release(tensor);
    assert_int_equal(iv_tensor_create(IV_STRING, 2, (const int64_t[]){2, 0}, &tensor, NULL), IV_OK);
    assert_int_equal(iv_tensor_elements(tensor), 0);
    assert_true(iv_tensor_is_contiguous(tensor));
    iv_tensor_release(tensor);
    assert_null(iv_tensor_retain(NULL));
    iv_tensor_release(NULL);
}

static void test_refusals(void **state) {
    iv_tensor *tensor = NULL;
    iv_error error;
    static const int64_t dims[13] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const int64_t large[] = {INT64_C(1) << 32, INT64_C(1) << 31};
    static const int64_t larger[] = {INT64_C(1) << 32, 0, INT64_C(1) << 32};
    refused(iv_tensor_create(IV_DTYPE_NONE, 0, NULL, &tensor, &error), IV_ERROR_INVALID_ARGUMENT,
            &error, "0 is not a dtype");
    refused(iv_tensor_create((iv_dtype)99, 0, NULL, &tensor, &error), IV_ERROR_INVALID_ARGUMENT,
            &error, "99 is not a dtype");
    refused(iv_tensor_create(IV_U8, 13, dims, &tensor, &error), IV_ERROR_SHAPE, &error, "rank 13");
    refused(iv_tensor_create(IV_U8, -1, dims, &tensor, &error), IV_ERROR_SHAPE, &error, "rank -1");
    refused(iv_tensor_create(IV_U8, 1, NULL, &tensor, &error), IV_ERROR_INVALID_ARGUMENT, &error,
            "no extents");
    refused(iv_tensor_create(IV_U8, 1, &(const int64_t){-5}, &tensor, &error), IV_ERROR_SHAPE,
            &error, "-5");
    refused(iv_tensor_create(IV_U8, 2, large, &tensor, &error), IV_ERROR_SHAPE, &error,
            "overflows");
    /* Empty, but its strides would overflow. */
    refused(iv_tensor_create(IV_U8, 3, larger, &tensor, &error), IV_ERROR_SHAPE, &error,
            "overflows");
    refused(iv_tensor_create(IV_F64, 1, &(const int64_t){INT64_MAX / 4}, &tensor, &error),
            IV_ERROR_SHAPE, &error, "overflows");
    refused(iv_tensor_from_data(IV_U8, 1, &(const int64_t){3}, NULL, &tensor, &error),
            IV_ERROR_INVALID_ARGUMENT, &error, "3 elements");
    refused(iv_tensor_from_data(IV_STRING, 0, NULL, "x", &tensor, &error),
            IV_ERROR_INVALID_ARGUMENT, &error, "iv_tensor_from_strings");
    refused(iv_tensor_from_strings(1, &(const int64_t){2}, NULL, &tensor, &error),
            IV_ERROR_INVALID_ARGUMENT, &error, "2 elements");
    refused(iv_tensor_from_strings(0, NULL, &(const iv_string){NULL, 3}, &tensor, &error),
            IV_ERROR_INVALID_ARGUMENT, &error, "3 bytes");
    refused(iv_tensor_from_strings(1, &(const int64_t){2},
                                   (const iv_string[]){{"a", SIZE_MAX}, {"b", SIZE_MAX}}, &tensor,
                                   &error),
            IV_ERROR_SHAPE, &error, "overflows");
    assert_null(tensor);
    /* Without a report. */
    assert_int_equal(iv_tensor_create(IV_U8, 13, dims, &tensor, NULL), IV_ERROR_SHAPE);
}

static void count_release(void *context) {
    ++*(int *)context;
}

static void test_wrap(void **state) {
    _Alignas(8) static char memory[48] = "0123456789abcdefghijklmnopqrstuvwxyz";
    iv_tensor *tensor = NULL, *view = NULL;
    iv_error error;
    int released = 0;
    static const int64_t dims[] = {2, 3}, reversed[] = {-3, -1}, far[] = {INT64_MAX / 2, 1};
    assert_int_equal(iv_tensor_wrap(IV_U8, 2, dims, reversed, memory + 5, count_release, &released,
                                    &tensor, NULL),
                     IV_OK);
    assert_false(iv_tensor_is_contiguous(tensor));
    assert_int_equal(iv_tensor_contiguous(tensor, &view, NULL), IV_OK);
    assert_memory_equal(iv_tensor_data(view), "543210", 6);
    iv_tensor_release(view);
    assert_int_equal(iv_tensor_transpose(tensor, (const int[]){1, 0}, &view, NULL), IV_OK);
    iv_tensor_release(tensor);
    assert_int_equal(released, 0);
    iv_tensor_release(view);
    assert_int_equal(released, 1);

    /* Refused: nothing is released. */
    refused(iv_tensor_wrap(IV_U32, 2, dims, NULL, memory + 2, count_release, &released, &tensor,
                           &error),
            IV_ERROR_INVALID_ARGUMENT, &error, "not aligned");
    refused(iv_tensor_wrap(IV_U8, 2, dims, NULL, NULL, count_release, &released, &tensor, &error),
            IV_ERROR_INVALID_ARGUMENT, &error, "6 elements");
    refused(iv_tensor_wrap(IV_U8, 2, dims, far, memory, count_release, &released, &tensor, &error),
            IV_ERROR_INVALID_ARGUMENT, &error, "dimension 0");
    refused(iv_tensor_wrap(IV_U8, 2, dims, (const int64_t[]){1, INT64_MIN}, memory, count_release,
                           &released, &tensor, &error),
            IV_ERROR_INVALID_ARGUMENT, &error, "dimension 1");
    assert_int_equal(released, 1);
    /* The stride of an extent of 1 means nothing, and stays out of all arithmetic. */
    assert_int_equal(iv_tensor_wrap(IV_U16, 2, (const int64_t[]){1, 4},
                                    (const int64_t[]){INT64_MIN, 1}, memory, NULL, NULL, &tensor,
                                    NULL),
                     IV_OK);
    assert_true(iv_tensor_is_contiguous(tensor));
    iv_tensor_release(tensor);
}

static bool equal_scalars(iv_dtype dtype, uint64_t left, uint64_t right) {
    iv_tensor *a = NULL, *b = NULL;
    assert_int_equal(iv_tensor_from_data(dtype, 0, NULL, &left, &a, NULL), IV_OK);
    assert_int_equal(iv_tensor_from_data(dtype, 0, NULL, &right, &b, NULL), IV_OK);
    bool equal = iv_tensor_equal(a, b);
    iv_tensor_release(a);
    iv_tensor_release(b);
    return equal;
}

static void test_equal(void **state) {
    assert_true(equal_scalars(IV_F32, 0x7fc00000, 0xff812345));
    assert_false(equal_scalars(IV_F32, 0x7f800000, 0x7fc00000));
    assert_false(equal_scalars(IV_F32, 0, 0x80000000));
    assert_true(equal_scalars(IV_F16, 0x7e00, 0xfc01));
    assert_false(equal_scalars(IV_F16, 0x7c00, 0xfc00));
    assert_true(equal_scalars(IV_BF16, 0x7fc0, 0xff81));
    assert_false(equal_scalars(IV_BF16, 0x7f80, 0x7fc0));
    assert_true(equal_scalars(IV_F64, UINT64_C(0x7ff8000000000000), UINT64_C(0xfff0000000000001)));
    assert_false(equal_scalars(IV_F64, UINT64_C(0x7ff0000000000000), UINT64_C(0xfff0000000000000)));
    assert_false(equal_scalars(IV_U16, 0x7e00, 0x7e01));
    assert_false(equal_scalars(IV_S64, UINT64_C(0x7ff8000000000000), UINT64_C(0xfff0000000000001)));
    assert_true(equal_scalars(IV_BOOL, 1, 1));

    iv_tensor *a = NULL, *b = NULL, *c = NULL, *d = NULL;
    static const iv_string left[] = {{"one", 3}, {"", 0}}, right[] = {{"one", 3}, {"x", 1}};
    assert_int_equal(iv_tensor_from_strings(1, &(const int64_t){2}, left, &a, NULL), IV_OK);
    assert_int_equal(iv_tensor_from_strings(1, &(const int64_t){2}, right, &b, NULL), IV_OK);
    assert_int_equal(iv_tensor_from_strings(2, (const int64_t[]){1, 2}, left, &c, NULL), IV_OK);
    assert_int_equal(iv_tensor_create(IV_U8, 1, &(const int64_t){2}, &d, NULL), IV_OK);
    assert_true(iv_tensor_equal(a, a));
    assert_false(iv_tensor_equal(a, b));
    assert_false(iv_tensor_equal(a, c));
    assert_false(iv_tensor_equal(a, d));
    iv_tensor_release(a);
    iv_tensor_release(b);
    iv_tensor_release(c);
    iv_tensor_release(d);
}

static void test_dims_text(void **state) {
    char text[IV_DIMS_TEXT_BYTES];
    int64_t dims[IV_MAX_RANK];
    assert_string_equal(iv_dims_text(0, NULL, text), "[]");
    assert_string_equal(iv_dims_text(2, (const int64_t[]){2, -3}, text), "[2,-3]");
    for (int i = 0; i < IV_MAX_RANK; i++)
        dims[i] = INT64_MIN;
    size_t length = strlen(iv_dims_text(IV_MAX_RANK, dims, text));
    assert_true(length == 2 + IV_MAX_RANK * 20 + IV_MAX_RANK - 1 && text[length - 1] == ']');
}

static iv_status make_some(void *context) {
    iv_tensor *tensors[4] = {NULL};
    int released = 0;
    static char memory[6];
    static const int64_t dims[] = {2, 3};
    static const iv_string strings[6] = {{"a", 1}, {"bc", 2}};
    iv_status status = iv_tensor_create(IV_S16, 2, dims, &tensors[0], NULL);
    if (status == IV_OK)
        status = iv_tensor_from_data(IV_U8, 2, dims, memory, &tensors[1], NULL);
    if (status == IV_OK)
        status = iv_tensor_from_strings(2, dims, strings, &tensors[2], NULL);
    if (status == IV_OK)
        status = iv_tensor_wrap(IV_U8, 2, dims, NULL, memory, count_release, &released, &tensors[3],
                                NULL);
    bool wrapped = status == IV_OK;
    for (int i = 0; i < 4; i++)
        iv_tensor_release(tensors[i]);
    assert_int_equal(released, wrapped);
    return status;
}

static void test_memory(void **state) {
    check_failing_allocations(make_some, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_dtypes, no_leak),
        cmocka_unit_test_teardown(test_create, no_leak),
        cmocka_unit_test_teardown(test_refusals, no_leak),
        cmocka_unit_test_teardown(test_wrap, no_leak),
        cmocka_unit_test_teardown(test_equal, no_leak),
        cmocka_unit_test_teardown(test_dims_text, no_leak),
        cmocka_unit_test_teardown(test_memory, no_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
