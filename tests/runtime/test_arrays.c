/* Runs on memory of the caller's: the bits of runs on tensors, whose memory outputs have, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <samebit/samebit.h>

#include "support/failing.h"

#define MOST 64

/* f32[n] x, f32[n] y: "same" is Identity(x), "sum" is Add(x, y), and "size" is Shape(x). */
static sb_model *build_model(void) {
    sb_builder *builder;
    sb_model *model;
    sb_builder_value x, y, same, sum, size;
    sb_error error = {SB_OK, ""};
    const char *dims[] = {"n"};
    sb_value_description input = {
        .name = "x", .kind = SB_KIND_TENSOR, .dtype = SB_F32, .rank = 1, .dims = (int64_t[]){-1}, .dim_texts = dims};
    assert_int_equal(sb_builder_create(&builder, &error), SB_OK);
    assert_int_equal(sb_builder_input(builder, &input, &x, &error), SB_OK);
    input.name = "y";
    assert_int_equal(sb_builder_input(builder, &input, &y, &error), SB_OK);
    assert_int_equal(sb_builder_op(builder, "Identity", 1, &x, 0, NULL, &same, &error), SB_OK);
    assert_int_equal(sb_builder_op(builder, "Add", 2, (sb_builder_value[]){x, y}, 0, NULL, &sum, &error), SB_OK);
    assert_int_equal(sb_builder_op(builder, "Shape", 1, &x, 0, NULL, &size, &error), SB_OK);
    assert_int_equal(sb_builder_output(builder, same, &error), SB_OK);
    assert_int_equal(sb_builder_output(builder, sum, &error), SB_OK);
    assert_int_equal(sb_builder_output(builder, size, &error), SB_OK);
    assert_int_equal(sb_builder_build(builder, NULL, &model, &error), SB_OK);
    sb_builder_destroy(builder);
    return model;
}

static void release_outputs(sb_array *outputs) {
    for (int i = 0; i < 3; i++)
        sb_tensor_release(outputs[i].tensor);
}

static sb_array array_of(float *data, int64_t count, int64_t stride) {
    return (sb_array){.dtype = SB_F32, .rank = 1, .data = data, .dims = {count}, .strides = {stride}};
}

static void test_outputs(void **state) {
    (void)state;
    sb_model *model = build_model();
    sb_session *session;
    sb_error error = {SB_OK, ""};
    float x[MOST], y[MOST];
    assert_int_equal(sb_session_create(model, NULL, &session, &error), SB_OK);
    for (int64_t count = 0; count < 9; count++) {
        for (int i = 0; i < MOST; i++) {
            x[i] = (float)i;
            y[i] = 100 * (float)i;
        }
        /* x backwards, from its end; every third of y. */
        sb_array inputs[] = {array_of(x + MOST - 1, count, -1), array_of(y, count, 3)}, outputs[3];
        assert_int_equal(sb_session_run_arrays(session, inputs, outputs, &error), SB_OK);
        memset(x, 0, sizeof x);
        for (int i = 0; i < 3; i++) {
            assert_non_null(outputs[i].tensor);
            assert_ptr_equal(outputs[i].data, sb_tensor_data(outputs[i].tensor));
            assert_int_equal(outputs[i].dtype, i < 2 ? SB_F32 : SB_S64);
            assert_int_equal(outputs[i].rank, 1);
            assert_int_equal(outputs[i].dims[0], i < 2 ? count : 1);
            assert_true(outputs[i].contiguous);
        }
        const float *same = outputs[0].data, *sum = outputs[1].data;
        for (int64_t i = 0; i < count; i++) {
            float expected = (float)(MOST - 1 - i);
            assert_memory_equal(&same[i], &expected, sizeof expected);
            expected += 300 * (float)i;
            assert_memory_equal(&sum[i], &expected, sizeof expected);
        }
        assert_int_equal(*(const int64_t *)outputs[2].data, count);
        release_outputs(outputs);
    }
    sb_session_destroy(session);
    sb_model_release(model);
}

static void check_refused(sb_session *session, const sb_array *inputs, sb_status expected, const char *message) {
    sb_error error = {SB_OK, ""};
    sb_array outputs[3];
    memset(outputs, 0xff, sizeof outputs);
    assert_int_equal(sb_session_run_arrays(session, inputs, outputs, &error), expected);
    if (strstr(error.message, message) == NULL)
        fail_msg("\"%s\" has no \"%s\"", error.message, message);
    for (int i = 0; i < 3; i++) {
        assert_null(outputs[i].tensor);
        assert_int_equal(outputs[i].dtype, SB_DTYPE_NONE);
    }
    assert_int_equal(sb_session_run_arrays(session, inputs, outputs, NULL), expected);
}

static void test_refusals(void **state) {
    (void)state;
    sb_model *model = build_model();
    sb_session *session;
    float memory[MOST] = {0};
    assert_int_equal(sb_session_create(model, NULL, &session, NULL), SB_OK);
    sb_array right = array_of(memory, 4, 1), wrong = right;
    wrong.dims[0] = 5;
    check_refused(session, (sb_array[]){right, wrong}, SB_ERROR_SHAPE, "input y");
    wrong.dims[0] = -1;
    check_refused(session, (sb_array[]){right, wrong}, SB_ERROR_SHAPE, "input y: ");
    wrong = right;
    wrong.rank = SB_MAX_RANK + 1;
    check_refused(session, (sb_array[]){wrong, right}, SB_ERROR_SHAPE, "input x: ");
    wrong = right;
    wrong.data = (char *)memory + 1;
    check_refused(session, (sb_array[]){wrong, right}, SB_ERROR_INVALID_ARGUMENT, "input x: the memory is not aligned");
    wrong = right;
    wrong.dtype = SB_STRING;
    check_refused(session, (sb_array[]){right, wrong}, SB_ERROR_UNSUPPORTED, "input y is text");
    wrong.dtype = SB_DTYPE_NONE;
    check_refused(session, (sb_array[]){right, wrong}, SB_ERROR_SHAPE, "input y is missing");
    wrong.dtype = (sb_dtype)200;
    check_refused(session, (sb_array[]){right, wrong}, SB_ERROR_INVALID_ARGUMENT, "input y: ");
    wrong.dtype = SB_S32;
    check_refused(session, (sb_array[]){right, wrong}, SB_ERROR_SHAPE, "input y is s32[4] where the model takes f32");
    sb_array outputs[3];
    assert_int_equal(sb_session_run_arrays(session, (sb_array[]){right, right}, outputs, NULL), SB_OK);
    release_outputs(outputs);
    sb_session_destroy(session);
    sb_model_release(model);
}

/* The first run, which makes a plan, and the second, which uses places of its own. */
static sb_status run_twice(void *context) {
    sb_session *session = NULL;
    sb_session_options options = SB_SESSION_OPTIONS_DEFAULT;
    options.threads = 1;
    float memory[MOST] = {0};
    sb_status status = sb_session_create(context, &options, &session, NULL);
    for (int i = 0; i < 2 && status == SB_OK; i++) {
        sb_array input = array_of(memory, 7, 2), outputs[3];
        status = sb_session_run_arrays(session, (sb_array[]){input, input}, outputs, NULL);
        release_outputs(outputs);
    }
    sb_session_destroy(session);
    return status;
}

static void test_without_memory(void **state) {
    (void)state;
    sb_model *model = build_model();
    assert_int_equal(run_twice(model), SB_OK); /* what the model prepares once is there */
    check_failing_allocations(run_twice, model);
    sb_model_release(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outputs),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
