/* Views against a naive index model, for every dtype, and the arguments that they refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/failing.h"
#include "tensor/random_view.h"

static int no_leak(void **state) {
    return sb_allocation_count().live_blocks == 0 ? 0 : -1;
}

static void test_random_chains(void **state) {
    static model plan;
    random_source source = {1};
    for (int dtype = SB_BOOL; dtype < SB_DTYPE_COUNT; dtype++) {
        for (int round = 0; round < 150; round++) {
            sb_tensor *tensor = model_random(&source, (sb_dtype)dtype, &plan);
            model_check(tensor, &plan);
            sb_tensor *contiguous = NULL;
            assert_int_equal(sb_tensor_contiguous(tensor, &contiguous, NULL), SB_OK);
            assert_true(sb_tensor_is_contiguous(contiguous));
            model_check(contiguous, &plan);
            assert_true(sb_tensor_equal(tensor, contiguous));
            /* The copy stands on its own. */
            if (!sb_tensor_is_contiguous(tensor)) {
                sb_tensor_release(tensor);
                tensor = NULL;
                model_check(contiguous, &plan);
            }
            sb_tensor_release(tensor);
            sb_tensor_release(contiguous);
        }
    }
}

/* A reshape is refused only when no strides exist: tried against every stride per dimension that
 * the addresses suggest. */
static void test_reshape_finds_all(void **state) {
    static model plan;
    random_source source = {2};
    int found = 0, refused = 0;
    for (int round = 0; round < 4000; round++) {
        sb_tensor *tensor = model_random(&source, SB_S64, &plan);
        int64_t dims[SB_MAX_RANK], offsets[MODEL_ELEMENTS], index[SB_MAX_RANK];
        int64_t count = plan.count;
        if (count == 0) {
            sb_tensor_release(tensor);
            continue;
        }
        int rank = model_random_shape(&source, count, dims);
        for (int64_t i = 0; i < count; i++) {
            model_unravel(plan.rank, plan.dims, i, index);
            offsets[i] = 0;
            for (int d = 0; d < plan.rank; d++)
                offsets[i] += index[d] * sb_tensor_strides(tensor)[d];
        }
        /* The only candidate: each dimension's stride is the distance to its second element. */
        int64_t strides[SB_MAX_RANK], inner = 1;
        for (int d = rank - 1; d >= 0; d--) {
            strides[d] = dims[d] > 1 ? offsets[inner] - offsets[0] : 0;
            inner *= dims[d];
        }
        bool possible = true;
        for (int64_t i = 0; i < count; i++) {
            model_unravel(rank, dims, i, index);
            int64_t offset = offsets[0];
            for (int d = 0; d < rank; d++)
                offset += index[d] * strides[d];
            possible = possible && offset == offsets[i];
        }
        sb_tensor *view = NULL;
        sb_status status = sb_tensor_reshape(tensor, rank, dims, &view, NULL);
        assert_int_equal(status, possible ? SB_OK : SB_ERROR_UNSUPPORTED);
        found += possible;
        refused += !possible;
        sb_tensor_release(view);
        sb_tensor_release(tensor);
    }
    assert_true(found > 500 && refused > 100);
}

static void test_views_keep_storage(void **state) {
    static model plan;
    sb_tensor *tensor = model_start(SB_F32, 2, (const int64_t[]){3, 4}, &plan), *view = NULL;
    assert_int_equal(sb_tensor_slice(tensor, 0, 2, 3, -1, &view, NULL), SB_OK);
    assert_ptr_equal(sb_tensor_data(view), (const char *)sb_tensor_data(tensor) + 8 * 4);
    sb_tensor_release(tensor);
    const float *data = sb_tensor_data(view);
    for (int i = 0; i < 12; i++)
        assert_true(model_is(SB_F32, (const char *)&data[-4 * (i / 4) + i % 4], (2 - i / 4) * 4 + i % 4));
    sb_tensor_release(view);
}

static void refused(sb_status status, sb_status expected, const sb_error *error, const char *words) {
    assert_int_equal(status, expected);
    assert_int_equal(error->status, expected);
    if (strstr(error->message, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error->message, words);
}

static void test_refusals(void **state) {
    static model plan;
    sb_tensor *tensor = model_start(SB_U8, 2, (const int64_t[]){3, 4}, &plan), *view = NULL;
    sb_error error;
    refused(sb_tensor_reshape(tensor, 1, (const int64_t[]){11}, &view, &error), SB_ERROR_SHAPE, &error,
            "[3,4] to [11]");
    refused(sb_tensor_reshape(tensor, 2, (const int64_t[]){-3, -4}, &view, &error), SB_ERROR_SHAPE, &error, "negative");
    refused(sb_tensor_reshape(tensor, 3, (const int64_t[]){INT64_MAX, INT64_MAX, 12}, &view, &error), SB_ERROR_SHAPE,
            &error, "overflows");
    refused(sb_tensor_reshape(tensor, 13, plan.ids, &view, &error), SB_ERROR_SHAPE, &error, "rank 13");
    refused(sb_tensor_reshape(tensor, -1, plan.ids, &view, &error), SB_ERROR_SHAPE, &error, "rank -1");
    refused(sb_tensor_reshape(tensor, 1, NULL, &view, &error), SB_ERROR_INVALID_ARGUMENT, &error, "no extents");
    refused(sb_tensor_transpose(tensor, (const int[]){0, 0}, &view, &error), SB_ERROR_INVALID_ARGUMENT, &error,
            "twice");
    refused(sb_tensor_transpose(tensor, (const int[]){0, 2}, &view, &error), SB_ERROR_INVALID_ARGUMENT, &error,
            "dimension 2");
    refused(sb_tensor_transpose(tensor, (const int[]){-1, 0}, &view, &error), SB_ERROR_INVALID_ARGUMENT, &error,
            "dimension -1");
    static const int64_t slices[][3] = {
        {0, 5, 1},         {4, 1, 1},        {-1, 1, 1},        {0, 2, -1},
        {0, -1, 1},        {0, 1, 0},        {3, 2, INT64_MAX}, {0, INT64_MAX, INT64_MAX},
        {3, 3, INT64_MIN}, {INT64_MAX, 2, 1}};
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++)
        refused(sb_tensor_slice(tensor, 1, slices[i][0], slices[i][1], slices[i][2], &view, &error), SB_ERROR_SHAPE,
                &error, "axis 1");
    refused(sb_tensor_slice(tensor, 2, 0, 1, 1, &view, &error), SB_ERROR_INVALID_ARGUMENT, &error, "axis 2");
    refused(sb_tensor_slice(tensor, -1, 0, 1, 1, &view, &error), SB_ERROR_INVALID_ARGUMENT, &error, "axis -1");
    refused(sb_tensor_broadcast(tensor, 2, (const int64_t[]){3, 5}, &view, &error), SB_ERROR_SHAPE, &error,
            "[3,4] to [3,5]");
    refused(sb_tensor_broadcast(tensor, 1, (const int64_t[]){4}, &view, &error), SB_ERROR_SHAPE, &error,
            "[3,4] to [4]");
    refused(sb_tensor_broadcast(tensor, 4, (const int64_t[]){INT64_MAX, 2, 3, 4}, &view, &error), SB_ERROR_SHAPE,
            &error, "overflows");
    /* One element, however large the step. */
    assert_int_equal(sb_tensor_slice(tensor, 1, 3, 1, INT64_MIN, &view, NULL), SB_OK);
    assert_true(model_is(SB_U8, sb_tensor_data(view), 3));
    sb_tensor_release(view);
    /* None, wherever it starts. */
    assert_int_equal(sb_tensor_slice(tensor, 1, INT64_MAX, 0, 1, &view, NULL), SB_OK);
    assert_int_equal(sb_tensor_elements(view), 0);
    sb_tensor_release(view);
    sb_tensor_release(tensor);
}

/* An empty tensor may wrap no memory at all: no view may compute an address from it. */
static void test_empty_without_memory(void **state) {
    sb_tensor *tensor = NULL, *view = NULL;
    static const int64_t dims[] = {5, 0, 7}, strides[] = {INT64_MAX, INT64_MIN, 3};
    assert_int_equal(sb_tensor_wrap(SB_F64, 3, dims, strides, NULL, NULL, NULL, &tensor, NULL), SB_OK);
    assert_int_equal(sb_tensor_slice(tensor, 0, 4, 5, -1, &view, NULL), SB_OK);
    assert_null(sb_tensor_data(view));
    sb_tensor_release(view);
    assert_int_equal(sb_tensor_broadcast(tensor, 4, (const int64_t[]){9, 5, 0, 7}, &view, NULL), SB_OK);
    assert_int_equal(sb_tensor_elements(view), 0);
    sb_tensor_release(view);
    assert_int_equal(sb_tensor_reshape(tensor, 1, (const int64_t[]){0}, &view, NULL), SB_OK);
    sb_tensor_release(view);
    sb_tensor_release(tensor);
}

static sb_status chain(void *context) {
    sb_dtype dtype = *(const sb_dtype *)context;
    sb_tensor *steps[5] = {NULL};
    sb_status status = sb_tensor_create(dtype, 2, (const int64_t[]){4, 6}, &steps[0], NULL);
    if (status == SB_OK)
        status = sb_tensor_transpose(steps[0], (const int[]){1, 0}, &steps[1], NULL);
    if (status == SB_OK)
        status = sb_tensor_slice(steps[1], 0, 5, 3, -2, &steps[2], NULL);
    if (status == SB_OK)
        status = sb_tensor_broadcast(steps[2], 3, (const int64_t[]){2, 3, 4}, &steps[3], NULL);
    if (status == SB_OK)
        status = sb_tensor_contiguous(steps[3], &steps[4], NULL);
    for (int i = 0; i < 5; i++)
        sb_tensor_release(steps[i]);
    return status;
}

static void test_memory(void **state) {
    check_failing_allocations(chain, &(sb_dtype){SB_F16});
    check_failing_allocations(chain, &(sb_dtype){SB_STRING});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_random_chains, no_leak),
        cmocka_unit_test_teardown(test_reshape_finds_all, no_leak),
        cmocka_unit_test_teardown(test_views_keep_storage, no_leak),
        cmocka_unit_test_teardown(test_refusals, no_leak),
        cmocka_unit_test_teardown(test_empty_without_memory, no_leak),
        cmocka_unit_test_teardown(test_memory, no_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
