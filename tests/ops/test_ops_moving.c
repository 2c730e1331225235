/* Operators that move, pick and resize elements: their definitions on cases worked out by hand,
 * hostile indices, and every failing allocation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ops/definition_cases.h"
#include "support/failing.h"

static node_runner with_ints(node_runner runner, const char *name, int64_t count, const int64_t *values) {
    add_ints(&runner, name, count, values);
    return runner;
}

static node_runner with_int(node_runner runner, const char *name, int64_t value) {
    add_int(&runner, name, value);
    return runner;
}

static node_runner with_text(node_runner runner, const char *name, const char *value) {
    add_text(&runner, name, value);
    return runner;
}

/* Inputs 1 and up are constants, as in most models, so that shapes are known. */
static node_runner known(node_runner runner) {
    runner.constants = ~UINT64_C(1);
    return runner;
}

static sb_tensor *grid(void) {
    return TENSOR(SB_F32, (2, 3), (float, 1, 2, 3, 4, 5, 6));
}

/* ---- views ---- */

static void slices_of_any_step(void **unused) {
    node_runner back =
        known(make_node("Slice", 13, grid(), LIST(SB_S64, (int64_t, -1)), LIST(SB_S64, (int64_t, INT64_MIN))));
    back.inputs[3] = LIST(SB_S64, (int64_t, 1));
    back.inputs[4] = LIST(SB_S64, (int64_t, -2));
    back.input_count = 5;
    expect_output(back, TENSOR(SB_F32, (2, 2), (float, 3, 1, 6, 4)));
    node_runner leap =
        known(make_node("Slice", 13, grid(), LIST(SB_S64, (int64_t, 1)), LIST(SB_S64, (int64_t, INT64_MAX))));
    leap.inputs[3] = LIST(SB_S64, (int64_t, -1));
    leap.inputs[4] = LIST(SB_S64, (int64_t, INT64_MAX));
    leap.input_count = 5;
    expect_output(leap, TENSOR(SB_F32, (2, 1), (float, 2, 5)));
    node_runner down =
        known(make_node("Slice", 13, grid(), LIST(SB_S64, (int64_t, 2)), LIST(SB_S64, (int64_t, INT64_MIN))));
    down.inputs[3] = LIST(SB_S64, (int64_t, 1));
    down.inputs[4] = LIST(SB_S64, (int64_t, INT64_MIN));
    down.input_count = 5;
    expect_output(down, TENSOR(SB_F32, (2, 1), (float, 3, 6)));
    node_runner still = known(make_node("Slice", 13, grid(), LIST(SB_S64, (int64_t, 0)), LIST(SB_S64, (int64_t, 1))));
    still.inputs[3] = LIST(SB_S64, (int64_t, 1));
    still.inputs[4] = LIST(SB_S64, (int64_t, 0));
    still.input_count = 5;
    expect_refusal(still, SB_ERROR_SHAPE, "the step along axis 1 is 0");
}

static void views_share_memory(void **unused) {
    static const char *const ops[] = {"Transpose", "Flatten", "Squeeze", "Identity"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        sb_tensor *input = TENSOR(SB_F16, (1, 2, 3), (uint16_t, 1, 2, 3, 4, 5, 6));
        node_runner runner = make_node(ops[i], 11, input, NULL, NULL);
        sb_value outputs[NODE_OUTPUTS] = {{0}};
        node_must_run(&runner, SB_ISA_BEST, outputs);
        assert_ptr_equal(outputs[0].tensor->data, input->data);
        release_outputs(outputs);
        node_clear(&runner);
    }
}

static void reshape_moves_only_where_it_must(void **unused) {
    sb_tensor *transposed, *source = grid();
    assert_int_equal(sb_tensor_transpose(source, (int[]){1, 0}, &transposed, NULL), SB_OK);
    sb_tensor_release(source);
    expect_output(known(make_node("Reshape", 14, transposed, LIST(SB_S64, (int64_t, -1)), NULL)),
                  LIST(SB_F32, (float, 1, 4, 2, 5, 3, 6)));
    expect_refusal(known(make_node("Reshape", 14, grid(), LIST(SB_S64, (int64_t, 4, -1)), NULL)), SB_ERROR_SHAPE,
                   "-1 cannot be found");
    expect_refusal(known(make_node("Reshape", 14, grid(), LIST(SB_S64, (int64_t, -1, -1)), NULL)), SB_ERROR_SHAPE,
                   "are -1");
    expect_refusal(known(make_node("Reshape", 14, grid(), LIST(SB_S64, (int64_t, 5)), NULL)), SB_ERROR_SHAPE, "[2,3]");
}

/* A copy leaves a dimension innermost in memory that was, if the shape keeps it and those before it. */
static void reshape_keeps_the_innermost_dimension(void **unused) {
    sb_tensor *source = TENSOR(SB_F32, (2, 2, 3), (float, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)), *turned;
    assert_int_equal(sb_tensor_transpose(source, (int[]){2, 1, 0}, &turned, NULL), SB_OK);
    sb_tensor_release(source);
    node_runner runner = known(make_node("Reshape", 14, turned, LIST(SB_S64, (int64_t, 3, -1)), NULL));
    sb_value outputs[NODE_OUTPUTS] = {{0}};
    node_must_run(&runner, SB_ISA_BEST, outputs);
    assert_int_equal(outputs[0].tensor->strides[0], 1);
    assert_int_equal(outputs[0].tensor->strides[1], 3);
    sb_tensor *expected = TENSOR(SB_F32, (3, 4), (float, 1, 7, 4, 10, 2, 8, 5, 11, 3, 9, 6, 12));
    assert_true(sb_tensor_equal(outputs[0].tensor, expected));
    sb_tensor_release(expected);
    release_outputs(outputs);
    node_clear(&runner);
}

static void uneven_split(void **unused) {
    node_runner runner = make_node("Split", 18, LIST(SB_S32, (int32_t, 1, 2, 3, 4, 5)), NULL, NULL);
    runner.output_count = 3;
    add_int(&runner, "num_outputs", 3);
    sb_value outputs[NODE_OUTPUTS] = {{0}};
    node_must_run(&runner, SB_ISA_BEST, outputs);
    assert_int_equal(outputs[0].tensor->dims[0], 2);
    assert_int_equal(outputs[2].tensor->dims[0], 1);
    assert_int_equal(*(const int32_t *)(const void *)outputs[2].tensor->data, 5);
    release_outputs(outputs);
    node_clear(&runner);
    runner = known(make_node("Split", 13, LIST(SB_S32, (int32_t, 1, 2, 3)), LIST(SB_S64, (int64_t, 4, -1)), NULL));
    runner.output_count = 2;
    expect_refusal(runner, SB_ERROR_SHAPE, "split size 1 is -1");
}

/* ---- joins ---- */

/* An output whose place is given, with gaps between its rows, and of which the first input is the first part. */
static void joined_rows_lie_where_they_shall(void **unused) {
    sb_tensor *room = TENSOR(SB_F32, (4, 4), (float, 1, 2, 3, -1, 4, 5, 6, -1, 0, 0, 0, -1, 0, 0, 0, -1));
    sb_tensor *place, *first;
    sb_value outputs[NODE_OUTPUTS] = {{0}};
    assert_int_equal(sb_tensor_slice(room, 1, 0, 3, 1, &place, NULL), SB_OK);
    assert_int_equal(sb_tensor_slice(place, 0, 0, 2, 1, &first, NULL), SB_OK);
    node_runner runner = with_int(make_node("Concat", 13, first, grid(), NULL), "axis", 0);
    outputs[0] = sb_value_of_tensor(sb_tensor_retain(place));
    node_must_run(&runner, SB_ISA_BEST, outputs);
    assert_ptr_equal(outputs[0].tensor, place);
    assert_memory_equal(room->data, ((float[]){1, 2, 3, -1, 4, 5, 6, -1, 1, 2, 3, -1, 4, 5, 6, -1}),
                        16 * sizeof(float));
    release_outputs(outputs);
    sb_error error;
    outputs[0] = sb_value_of_tensor(sb_tensor_retain(room));
    assert_int_equal(node_run(&runner, SB_ISA_BEST, outputs, &error), SB_ERROR_INTERNAL);
    assert_non_null(strstr(error.message, "output 0 was placed as f32[4,4] but is f32[4,3]"));
    node_clear(&runner);
    sb_tensor_release(place);
    sb_tensor_release(room);
}

static void pads_of_every_mode(void **unused) {
    static const struct {
        const char *mode;
        float expected[7];
    } cases[] = {{"constant", {0, 0, 1, 2, 3, 0, 0}},
                 {"edge", {1, 1, 1, 2, 3, 3, 3}},
                 {"reflect", {3, 2, 1, 2, 3, 2, 1}},
                 {"wrap", {2, 3, 1, 2, 3, 1, 2}}};
    for (size_t i = 0; i < 4; i++) {
        node_runner runner =
            known(with_text(make_node("Pad", 19, LIST(SB_F32, (float, 1, 2, 3)), LIST(SB_S64, (int64_t, 2, 2)), NULL),
                            "mode", cases[i].mode));
        expect_output(runner, list_tensor(SB_F32, 1, (int64_t[]){7}, cases[i].expected, 7));
    }
    expect_output(known(make_node("Pad", 13, LIST(SB_F32, (float, 1, 2, 3)), LIST(SB_S64, (int64_t, -1, 1)),
                                  SCALAR(SB_F32, (float, 9)))),
                  LIST(SB_F32, (float, 2, 3, 9)));
    expect_refusal(known(make_node("Pad", 13, LIST(SB_F32, (float, 1, 2, 3)),
                                   LIST(SB_S64, (int64_t, INT64_MAX, INT64_MAX)), NULL)),
                   SB_ERROR_SHAPE, "");
}

static void text_moves_with_its_storage(void **unused) {
    const sb_string words[3] = {{"one", 3}, {"", 0}, {"three", 5}};
    sb_tensor *text;
    assert_int_equal(sb_tensor_from_strings(1, (int64_t[]){3}, words, &text, NULL), SB_OK);
    node_runner runner = make_node("Gather", 13, text, LIST(SB_S64, (int64_t, -1, 0)), NULL);
    sb_value outputs[NODE_OUTPUTS] = {{0}};
    node_must_run(&runner, SB_ISA_BEST, outputs);
    node_clear(&runner); /* the output must not need the input */
    const sb_string *moved = (const sb_string *)(const void *)outputs[0].tensor->data;
    assert_int_equal(moved[0].bytes, 5);
    assert_memory_equal(moved[0].data, "three", 5);
    assert_memory_equal(moved[1].data, "one", 3);
    release_outputs(outputs);
}

/* ---- indices ---- */

static void indices_outside_are_named(void **unused) {
    expect_refusal(with_int(make_node("Gather", 13, grid(), LIST(SB_S64, (int64_t, 3)), NULL), "axis", 1),
                   SB_ERROR_SHAPE, "index 3 is outside extent 3 of axis 1");
    expect_refusal(make_node("GatherElements", 13, grid(), TENSOR(SB_S64, (1, 1), (int64_t, INT64_MIN)), NULL),
                   SB_ERROR_SHAPE, "outside extent 2 of axis 0");
    expect_refusal(make_node("GatherND", 13, grid(), TENSOR(SB_S64, (1, 2), (int64_t, 0, -4)), NULL), SB_ERROR_SHAPE,
                   "index -4 is outside extent 3 of axis 1");
    expect_refusal(make_node("ScatterElements", 16, grid(), TENSOR(SB_S32, (1, 1), (int32_t, 2)),
                             TENSOR(SB_F32, (1, 1), (float, 0))),
                   SB_ERROR_SHAPE, "node node (ScatterElements): index 2 is outside extent 2 of axis 0");
    expect_refusal(make_node("ScatterND", 16, grid(), TENSOR(SB_S64, (1, 1), (int64_t, 5)),
                             TENSOR(SB_F32, (1, 3), (float, 0, 0, 0))),
                   SB_ERROR_SHAPE, "index 5");
    expect_refusal(
        make_node("ScatterND", 16, grid(), TENSOR(SB_S64, (1, 1), (int64_t, 0)), TENSOR(SB_F32, (1, 2), (float, 0, 0))),
        SB_ERROR_SHAPE, "do not fit");
    expect_refusal(
        with_int(make_node("GatherND", 13, grid(), TENSOR(SB_S64, (1, 3), (int64_t, 0, 0, 0)), NULL), "batch_dims", 0),
        SB_ERROR_SHAPE, "do not fit");
    expect_refusal(known(make_node("TopK", 11, grid(), LIST(SB_S64, (int64_t, 4)), NULL)), SB_ERROR_SHAPE, "k is 4");
}

static void scatter_reduces_in_order(void **unused) {
    float nan = sb_nan_f32();
    expect_output(with_text(make_node("ScatterElements", 18, LIST(SB_F32, (float, 1, 2, 3)),
                                      LIST(SB_S64, (int64_t, 0, 0, -1)), LIST(SB_F32, (float, 5, 7, nan))),
                            "reduction", "max"),
                  LIST(SB_F32, (float, 7, 2, nan)));
    expect_output(with_text(make_node("ScatterElements", 18, LIST(SB_U8, (uint8_t, 250, 2)),
                                      LIST(SB_S64, (int64_t, 0, 0)), LIST(SB_U8, (uint8_t, 5, 7))),
                            "reduction", "add"),
                  LIST(SB_U8, (uint8_t, 6, 2)));
    expect_output(make_node("ScatterElements", 18, LIST(SB_F32, (float, 1, 2)), LIST(SB_S64, (int64_t, 1, 1)),
                            LIST(SB_F32, (float, 5, 7))),
                  LIST(SB_F32, (float, 1, 7)));
}

static void topk_has_one_order(void **unused) {
    float nan = sb_nan_f32();
    sb_tensor *values = LIST(SB_F32, (float, 2, 7, nan, 7, 0.0f, -0.0f));
    node_runner runner = known(make_node("TopK", 11, values, LIST(SB_S64, (int64_t, 6)), NULL));
    runner.output_count = 2;
    sb_value outputs[NODE_OUTPUTS] = {{0}};
    node_must_run(&runner, SB_ISA_BEST, outputs);
    static const int64_t order[6] = {2, 1, 3, 0, 4, 5};
    assert_memory_equal(outputs[1].tensor->data, order, sizeof order);
    release_outputs(outputs);
    node_clear(&runner);
    runner = known(
        make_node("TopK", 11, LIST(SB_S64, (int64_t, 3, INT64_MIN, 3, INT64_MAX)), LIST(SB_S64, (int64_t, 3)), NULL));
    add_int(&runner, "largest", 0);
    expect_output(runner, LIST(SB_S64, (int64_t, INT64_MIN, 3, 3)));
}

/* ---- arithmetic ---- */

static void einsum_is_one_chain(void **unused) {
    /* The diagonal, a repeated label, an ellipsis, three operands. */
    expect_output(with_text(make_node("Einsum", 12, TENSOR(SB_F32, (2, 2), (float, 1, 2, 3, 4)), NULL, NULL),
                            "equation", "ii->i"),
                  LIST(SB_F32, (float, 1, 4)));
    expect_output(with_text(make_node("Einsum", 12, grid(), NULL, NULL), "equation", "...j->..."),
                  LIST(SB_F32, (float, 6, 15)));
    expect_output(with_text(make_node("Einsum", 12, LIST(SB_S32, (int32_t, 1, 2)), LIST(SB_S32, (int32_t, 3, 4)),
                                      LIST(SB_S32, (int32_t, 5, 6))),
                            "equation", "i, j ,i -> ji"),
                  TENSOR(SB_S32, (2, 2), (int32_t, 15, 36, 20, 48)));
    /* Fused: 1 + 2^-24 would be lost without it. */
    float a = 1.0f + 0x1p-23f;
    expect_output(with_text(make_node("Einsum", 12, LIST(SB_F32, (float, a, -1)), LIST(SB_F32, (float, a, 1)), NULL),
                            "equation", "i,i"),
                  SCALAR(SB_F32, (float, __builtin_fmaf(-1, 1, a * a))));
    expect_refusal(with_text(make_node("Einsum", 12, grid(), grid(), NULL), "equation", "ij,jk->ik"), SB_ERROR_SHAPE,
                   "one label has the extents 3 and 2");
    expect_refusal(with_text(make_node("Einsum", 12, grid(), NULL, NULL), "equation", "i$->i"), SB_ERROR_INVALID_MODEL,
                   "$");
}

static void resize_by_hand(void **unused) {
    node_runner twice = make_node("Resize", 18, TENSOR(SB_F32, (1, 2), (float, 0, 4)), NULL, NULL);
    twice.inputs[2] = LIST(SB_F32, (float, 1, 2));
    twice.input_count = 3;
    add_text(&twice, "mode", "linear");
    expect_output(known(twice), TENSOR(SB_F32, (1, 4), (float, 0, 1, 3, 4)));
    node_runner nearest = make_node("Resize", 18, LIST(SB_S8, (int8_t, 1, 2, 3)), NULL, NULL);
    nearest.inputs[3] = LIST(SB_S64, (int64_t, 5));
    nearest.input_count = 4;
    expect_output(known(nearest), LIST(SB_S8, (int8_t, 1, 1, 2, 3, 3)));
    node_runner wrong = make_node("Resize", 18, grid(), NULL, NULL);
    wrong.inputs[2] = LIST(SB_F32, (float, 1, -2));
    wrong.input_count = 3;
    expect_refusal(known(wrong), SB_ERROR_SHAPE, "not positive");
    node_runner huge = make_node("Resize", 18, grid(), NULL, NULL);
    huge.inputs[2] = LIST(SB_F32, (float, 1, 1e30f));
    huge.input_count = 3;
    expect_refusal(known(huge), SB_ERROR_SHAPE, "too large");
}

static void spectrum_of_a_quarter_turn(void **unused) {
    node_runner runner = make_node("DFT", 17, TENSOR(SB_F32, (1, 4, 1), (float, 0, 1, 0, 0)), NULL, NULL);
    expect_output(runner, TENSOR(SB_F32, (1, 4, 2), (float, 1, 0, 0, -1, -1, 0, 0, 1)));
    expect_output(known(make_node("HannWindow", 17, SCALAR(SB_S64, (int64_t, 4)), NULL, NULL)),
                  LIST(SB_F32, (float, 0, 0.5f, 1, 0.5f)));
}

static void boxes_that_overlap_go(void **unused) {
    node_runner runner =
        make_node("NonMaxSuppression", 11, TENSOR(SB_F32, (1, 3, 4), (float, 0, 0, 1, 1, 0, 0, 1, 0.9f, 5, 5, 6, 6)),
                  TENSOR(SB_F32, (1, 1, 3), (float, 0.5f, 0.9f, 0.5f)), NULL);
    runner.inputs[2] = SCALAR(SB_S64, (int64_t, INT64_MAX));
    runner.inputs[3] = SCALAR(SB_F32, (float, 0.5f));
    runner.input_count = 4;
    expect_output(runner, TENSOR(SB_S64, (2, 3), (int64_t, 0, 0, 1, 0, 0, 2)));
}

static void random_numbers_repeat(void **unused) {
    sb_value first[NODE_OUTPUTS] = {{0}}, second[NODE_OUTPUTS] = {{0}};
    for (int i = 0; i < 3; i++) {
        node_runner runner = {.op = "RandomNormal", .version = 15, .output_count = 1};
        add_ints(&runner, "shape", 1, (int64_t[]){4096});
        add_float(&runner, "seed", i < 2 ? 3.0f : 4.0f);
        node_must_run(&runner, SB_ISA_BEST, i == 0 ? first : second);
        node_clear(&runner);
        if (i > 0)
            assert_int_equal(sb_tensor_equal(first[0].tensor, second[0].tensor), i == 1);
        if (i > 0)
            release_outputs(second);
    }
    double sum = 0, squares = 0;
    for (int i = 0; i < 4096; i++) {
        double value = ((const float *)(const void *)first[0].tensor->data)[i];
        sum += value;
        squares += value * value;
    }
    assert_true(sum / 4096 > -0.06 && sum / 4096 < 0.06); /* four standard deviations */
    assert_true(squares / 4096 > 0.91 && squares / 4096 < 1.09);
    release_outputs(first);
}

/* ---- failing allocations ---- */

typedef node_runner maker(void);

static node_runner make_concat(void) {
    return with_int(make_node("Concat", 13, grid(), grid(), NULL), "axis", 0);
}
static node_runner make_pad(void) {
    return known(make_node("Pad", 13, grid(), LIST(SB_S64, (int64_t, 1, 0, 0, 1)), NULL));
}
static node_runner make_unique(void) {
    node_runner runner = make_node("Unique", 11, LIST(SB_F32, (float, 2, 1, 2)), NULL, NULL);
    runner.output_count = 4;
    return runner;
}
static node_runner make_einsum(void) {
    return with_text(make_node("Einsum", 12, grid(), grid(), NULL), "equation", "ij,kj->ik");
}
static node_runner make_cubic(void) {
    node_runner runner = make_node("Resize", 18, grid(), NULL, NULL);
    runner.inputs[2] = LIST(SB_F32, (float, 2, 2));
    runner.input_count = 3;
    return known(with_text(runner, "mode", "cubic"));
}
static node_runner make_scatter(void) {
    return make_node("ScatterND", 16, grid(), TENSOR(SB_S64, (1, 1), (int64_t, 1)),
                     TENSOR(SB_F32, (1, 3), (float, 0, 0, 0)));
}
static node_runner make_tile(void) {
    return known(make_node("Tile", 13, grid(), LIST(SB_S64, (int64_t, 2, 3)), NULL));
}
static node_runner make_split_sequence(void) {
    return make_node("SplitToSequence", 11, grid(), NULL, NULL);
}
static node_runner make_dft(void) {
    return make_node("DFT", 17, TENSOR(SB_F32, (1, 4, 1), (float, 0, 1, 0, 0)), NULL, NULL);
}
static node_runner make_axes(void) {
    return known(with_ints(make_node("Unsqueeze", 11, grid(), NULL, NULL), "axes", 2, (int64_t[]){0, 2}));
}

/* Builds and runs the node once. Making the inputs is not part of it. */
static sb_status run_once(void *context) {
    node_runner *made = context, runner = *made;
    sb_value outputs[NODE_OUTPUTS] = {{0}};
    sb_error error;
    for (int i = 0; i < runner.input_count; i++)
        sb_tensor_retain(runner.inputs[i]);
    runner.attributes = (sb_attributes){0};
    sb_status status = SB_OK;
    for (size_t a = 0; a < made->attributes.count && status == SB_OK; a++) {
        const sb_attribute *attribute = &made->attributes.items[a];
        if (attribute->kind == SB_ATTRIBUTE_INTS) {
            status = sb_attributes_add_ints(&runner.attributes, attribute->name, attribute->scalar, attribute->count,
                                            attribute->ints, &error);
        } else {
            sb_string text = {attribute->strings[0], strlen(attribute->strings[0])};
            status = sb_attributes_add_strings(&runner.attributes, attribute->name, true, 1, &text, &error);
        }
    }
    if (status == SB_OK)
        status = node_run(&runner, SB_ISA_BEST, outputs, &error);
    release_outputs(outputs);
    node_clear(&runner);
    return status;
}

static void every_allocation_may_fail(void **unused) {
    static maker *const makers[] = {make_concat,  make_pad,  make_unique,         make_einsum, make_cubic,
                                    make_scatter, make_tile, make_split_sequence, make_dft,    make_axes};
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
        node_runner made = makers[i]();
        check_failing_allocations(run_once, &made);
        node_clear(&made);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(slices_of_any_step, leaves_nothing),
        cmocka_unit_test_teardown(views_share_memory, leaves_nothing),
        cmocka_unit_test_teardown(reshape_moves_only_where_it_must, leaves_nothing),
        cmocka_unit_test_teardown(reshape_keeps_the_innermost_dimension, leaves_nothing),
        cmocka_unit_test_teardown(uneven_split, leaves_nothing),
        cmocka_unit_test_teardown(joined_rows_lie_where_they_shall, leaves_nothing),
        cmocka_unit_test_teardown(pads_of_every_mode, leaves_nothing),
        cmocka_unit_test_teardown(text_moves_with_its_storage, leaves_nothing),
        cmocka_unit_test_teardown(indices_outside_are_named, leaves_nothing),
        cmocka_unit_test_teardown(scatter_reduces_in_order, leaves_nothing),
        cmocka_unit_test_teardown(topk_has_one_order, leaves_nothing),
        cmocka_unit_test_teardown(einsum_is_one_chain, leaves_nothing),
        cmocka_unit_test_teardown(resize_by_hand, leaves_nothing),
        cmocka_unit_test_teardown(spectrum_of_a_quarter_turn, leaves_nothing),
        cmocka_unit_test_teardown(boxes_that_overlap_go, leaves_nothing),
        cmocka_unit_test_teardown(random_numbers_repeat, leaves_nothing),
        cmocka_unit_test_teardown(every_allocation_may_fail, leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
