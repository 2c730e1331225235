/* Element-wise operators: values at the corners, and every row loop against the definition. */
#include "ops/binary.h"
#include "ops/definition_cases.h"
#include "ops/unary.h"

static void corners_of_one_input(void **unused) {
    const float inf = INFINITY, nan = NAN;
    expect_output(make_node("Relu", 14, LIST(SB_F32, (float, -1, -0.0f, 0, 2, nan, -inf)), NULL, NULL),
                  LIST(SB_F32, (float, 0, -0.0f, 0, 2, nan, 0)));
    expect_output(make_node("Sign", 13, LIST(SB_F32, (float, -3, -0.0f, 0, inf, nan)), NULL, NULL),
                  LIST(SB_F32, (float, -1, 0, 0, 1, nan)));
    expect_output(make_node("Round", 11, LIST(SB_F32, (float, 0.5f, 1.5f, -2.5f, -0.25f, 8388609)), NULL, NULL),
                  LIST(SB_F32, (float, 0, 2, -2, -0.0f, 8388609)));
    expect_output(make_node("Abs", 13, LIST(SB_S8, (int8_t, -128, -1, 127)), NULL, NULL),
                  LIST(SB_S8, (int8_t, -128, 1, 127)));
    expect_output(make_node("Neg", 13, LIST(SB_S64, (int64_t, INT64_MIN, 5)), NULL, NULL),
                  LIST(SB_S64, (int64_t, INT64_MIN, -5)));
    expect_output(make_node("BitwiseNot", 18, LIST(SB_U16, (uint16_t, 0, 0xff00)), NULL, NULL),
                  LIST(SB_U16, (uint16_t, 0xffff, 0x00ff)));
    expect_output(make_node("Not", 1, LIST(SB_BOOL, (uint8_t, 0, 1)), NULL, NULL), LIST(SB_BOOL, (uint8_t, 1, 0)));
    expect_output(make_node("IsNaN", 13, LIST(SB_F16, (uint16_t, 0x7c00, 0x7e01, 0)), NULL, NULL),
                  LIST(SB_BOOL, (uint8_t, 0, 1, 0)));
    /* 1 / sqrt(2) in bf16 loads exactly, is computed in f32 and rounds once. */
    expect_output(make_node("Reciprocal", 13, LIST(SB_BF16, (uint16_t, 0x4040)), NULL, NULL),
                  LIST(SB_BF16, (uint16_t, 0x3eab)));
}

static void parameters(void **unused) {
    const float inf = INFINITY;
    node_runner positive = make_node("IsInf", 10, LIST(SB_F32, (float, inf, -inf, 1)), NULL, NULL);
    add_int(&positive, "detect_negative", 0);
    expect_output(positive, LIST(SB_BOOL, (uint8_t, 1, 0, 0)));
    node_runner leaky = make_node("LeakyRelu", 6, LIST(SB_F64, (double, -2, 3)), NULL, NULL);
    add_float(&leaky, "alpha", 0.5f);
    expect_output(leaky, LIST(SB_F64, (double, -1, 3)));
    node_runner shrink = make_node("Shrink", 9, LIST(SB_S16, (int16_t, -4, 1, 4)), NULL, NULL);
    add_float(&shrink, "lambd", 1.5f);
    add_float(&shrink, "bias", 1.0f);
    expect_output(shrink, LIST(SB_S16, (int16_t, -3, 0, 3)));
    node_runner hard = make_node("HardSigmoid", 6, LIST(SB_F32, (float, -10, 0, 10)), NULL, NULL);
    expect_output(hard, LIST(SB_F32, (float, 0, 0.5f, 1)));
    node_runner gelu = make_node("Gelu", 20, LIST(SB_F32, (float, 1)), NULL, NULL);
    add_text(&gelu, "approximate", "fast");
    expect_refusal(gelu, SB_ERROR_INVALID_MODEL, "approximate is \"fast\"");
}

static void integers_wrap_and_never_divide_by_zero(void **unused) {
    expect_output(make_node("Add", 14, LIST(SB_U8, (uint8_t, 250)), LIST(SB_U8, (uint8_t, 10)), NULL),
                  LIST(SB_U8, (uint8_t, 4)));
    expect_output(make_node("Mul", 14, LIST(SB_S16, (int16_t, 30000)), LIST(SB_S16, (int16_t, 3)), NULL),
                  LIST(SB_S16, (int16_t, 24464)));
    expect_output(
        make_node("Div", 14, LIST(SB_S32, (int32_t, -7, 7, INT32_MIN)), LIST(SB_S32, (int32_t, 2, -2, -1)), NULL),
        LIST(SB_S32, (int32_t, -3, -3, INT32_MIN)));
    expect_refusal(make_node("Div", 14, LIST(SB_U8, (uint8_t, 1, 2)), LIST(SB_U8, (uint8_t, 1, 0)), NULL),
                   SB_ERROR_INVALID_ARGUMENT, "integer division by zero");
    expect_refusal(make_node("Mod", 13, LIST(SB_S64, (int64_t, 1)), LIST(SB_S64, (int64_t, 0)), NULL),
                   SB_ERROR_INVALID_ARGUMENT, "node node (Mod): integer division by zero");
    expect_output(
        make_node("Mod", 13, LIST(SB_S8, (int8_t, -7, 7, -7, -128)), LIST(SB_S8, (int8_t, 3, -3, -3, -1)), NULL),
        LIST(SB_S8, (int8_t, 2, -2, -1, 0)));
    node_runner truncated = make_node("Mod", 13, LIST(SB_S8, (int8_t, -7, 7)), LIST(SB_S8, (int8_t, 3, -3)), NULL);
    add_int(&truncated, "fmod", 1);
    expect_output(truncated, LIST(SB_S8, (int8_t, -1, 1)));
    node_runner shift = make_node("BitShift", 11, LIST(SB_U8, (uint8_t, 129, 1)), LIST(SB_U8, (uint8_t, 1, 8)), NULL);
    add_text(&shift, "direction", "LEFT");
    expect_output(shift, LIST(SB_U8, (uint8_t, 2, 0)));
}

static void remainders_of_floats(void **unused) {
    expect_refusal(make_node("Mod", 13, LIST(SB_F32, (float, 1)), LIST(SB_F32, (float, 2)), NULL),
                   SB_ERROR_INVALID_MODEL, "fmod must be 1");
    expect_output(
        make_node("Mod", 28, LIST(SB_F32, (float, -7, 7, 6, -1)), LIST(SB_F32, (float, 3, -3, -3, INFINITY)), NULL),
        LIST(SB_F32, (float, 2, -2, -0.0f, INFINITY)));
}

static void powers(void **unused) {
    expect_output(
        make_node("Pow", 15, LIST(SB_S32, (int32_t, 3, -2, 1, -1)), LIST(SB_S64, (int64_t, 4, 3, -5, -3)), NULL),
        LIST(SB_S32, (int32_t, 81, -8, 1, -1)));
    expect_refusal(make_node("Pow", 15, LIST(SB_S32, (int32_t, 0)), LIST(SB_S32, (int32_t, -1)), NULL),
                   SB_ERROR_INVALID_ARGUMENT, "0 to a negative power");
    expect_output(make_node("Pow", 15, LIST(SB_F32, (float, 1.1f, 3, 2)), LIST(SB_U8, (uint8_t, 2, 3, 10)), NULL),
                  LIST(SB_F32, (float, 1.1f * 1.1f, 27, 1024)));
    expect_output(make_node("Pow", 15, LIST(SB_S64, (int64_t, 4)), LIST(SB_F32, (float, 0.5f)), NULL),
                  LIST(SB_S64, (int64_t, 2)));
}

static void old_models_align_by_axis(void **unused) {
    node_runner runner =
        make_node("Add", 6, TENSOR(SB_F32, (2, 2, 1), (float, 0, 0, 0, 0)), LIST(SB_F32, (float, 1, 2)), NULL);
    add_int(&runner, "broadcast", 1);
    add_int(&runner, "axis", 1);
    expect_output(runner, TENSOR(SB_F32, (2, 2, 1), (float, 1, 2, 1, 2)));
    expect_output(
        make_node("PRelu", 6, TENSOR(SB_F32, (1, 2, 2), (float, -1, 1, -1, -2)), LIST(SB_F32, (float, 2, 3)), NULL),
        TENSOR(SB_F32, (1, 2, 2), (float, -2, 1, -3, -6)));
    expect_refusal(make_node("Add", 14, LIST(SB_F32, (float, 1)), LIST(SB_F64, (double, 1)), NULL),
                   SB_ERROR_INVALID_MODEL, "dtypes f32 and f64");
}

static void choices(void **unused) {
    expect_output(make_node("Where", 16, LIST(SB_BOOL, (uint8_t, 1, 0)), SCALAR(SB_S64, (int64_t, 7)),
                            LIST(SB_S64, (int64_t, 1, 2))),
                  LIST(SB_S64, (int64_t, 7, 2)));
    expect_output(
        make_node("Clip", 13, LIST(SB_S8, (int8_t, -9, 0, 9)), SCALAR(SB_S8, (int8_t, -3)), SCALAR(SB_S8, (int8_t, 4))),
        LIST(SB_S8, (int8_t, -3, 0, 4)));
    node_runner upper = make_node("Clip", 13, LIST(SB_F32, (float, NAN, 9)), NULL, NULL);
    upper.input_count = 3;
    upper.inputs[2] = SCALAR(SB_F32, (float, 4));
    expect_output(upper, LIST(SB_F32, (float, NAN, 4)));
    node_runner old = make_node("Clip", 6, LIST(SB_F16, (uint16_t, 0x4200, 0xc200)), NULL, NULL);
    add_float(&old, "min", 0);
    expect_output(old, LIST(SB_F16, (uint16_t, 0x4200, 0)));
    expect_output(make_node("Max", 13, LIST(SB_F32, (float, 0.0f, NAN, 1)), LIST(SB_F32, (float, -0.0f, 5, 2)),
                            SCALAR(SB_F32, (float, -1))),
                  LIST(SB_F32, (float, 0.0f, NAN, 2)));
    /* The sum of f16 stays in f32 until the end: 2048 + 1 + 1 is 2050, while 2048 + 1 rounds to 2048. */
    expect_output(make_node("Sum", 13, LIST(SB_F16, (uint16_t, 0x6800)), LIST(SB_F16, (uint16_t, 0x3c00)),
                            LIST(SB_F16, (uint16_t, 0x3c00))),
                  LIST(SB_F16, (uint16_t, 0x6801)));
}

/* ---- loops against definitions ---- */

static int64_t extents[] = {3, 5, 37};

static void unary_loops_equal_the_definition(void **unused) {
#define ROW(op) {#op, SB_UNARY_ROW_##op},
    static const struct {
        const char *name;
        int row;
    } ops[] = {SB_UNARY_OPS(ROW)};
#undef ROW
    random_source source = {11};
    for (size_t n = 0; n < sizeof ops / sizeof ops[0]; n++) {
        for (int round = 0; round < 14; round++) {
            static const sb_dtype dtypes[] = {SB_F32, SB_F32, SB_F16, SB_BF16, SB_F64, SB_S16, SB_U64, SB_BOOL};
            sb_dtype dtype = round < 10 ? dtypes[round % 5] : dtypes[4 + (round - 10) % 4];
            distribution kind = (distribution)(round % DISTRIBUTIONS);
            if (sb_unary_loops_scalar[ops[n].row][dtype] == NULL)
                continue;
            check_loops((node_runner){.op = ops[n].name,
                                      .version = 20,
                                      .input_count = 1,
                                      .output_count = 1,
                                      .inputs = {random_tensor(&source, kind, dtype, 3, extents)}});
        }
    }
}

static void binary_loops_equal_the_definition(void **unused) {
#define ROW(op) {#op, SB_BINARY_ROW_##op},
    static const struct {
        const char *name;
        int row; /* of the loops that it has */
    } ops[] = {SB_BINARY_OPS(ROW) ROW(Max) ROW(Min) ROW(Pow){"Sum", SB_BINARY_ROW_Pow}};
#undef ROW
    static const sb_dtype dtypes[] = {SB_F32, SB_F16, SB_BF16, SB_F64, SB_S8, SB_U16, SB_BOOL, SB_S32, SB_U64};
    random_source source = {12};
    for (size_t n = 0; n < sizeof ops / sizeof ops[0]; n++) {
        for (int round = 0; round < 18; round++) {
            sb_dtype dtype = dtypes[round % 9];
            bool divides = strcmp(ops[n].name, "Div") == 0 || strcmp(ops[n].name, "Mod") == 0;
            if (sb_binary_loops_scalar[ops[n].row][dtype] == NULL || (divides && sb_dtype_is_integer(dtype)))
                continue;
            distribution kind = (distribution)(round % DISTRIBUTIONS);
            int64_t other[] = {random_between(&source, 0, 1) == 0 ? 1 : 5, random_between(&source, 0, 1) == 0 ? 1 : 37};
            node_runner runner = {.op = ops[n].name,
                                  .version = 19,
                                  .input_count = 2,
                                  .output_count = 1,
                                  .inputs = {random_tensor(&source, kind, dtype, 3, extents),
                                             random_tensor(&source, kind, dtype, 2, other)}};
            if (strcmp(ops[n].name, "Mod") == 0)
                add_int(&runner, "fmod", 1);
            if (strcmp(ops[n].name, "BitShift") == 0)
                add_text(&runner, "direction", "LEFT");
            check_loops(runner);
        }
    }
}

static void conversions_equal_the_definition(void **unused) {
    /* ONNX's numbers of the types in the order of sb_dtype. */
    static const int64_t numbers[] = {0, 9, 2, 4, 12, 13, 3, 5, 6, 7, 10, 16, 1, 11};
    random_source source = {13};
    for (int from = SB_BOOL; from <= SB_F64; from++) {
        for (int to = SB_BOOL; to <= SB_F64; to++) {
            distribution kind = (distribution)random_between(&source, 0, DISTRIBUTIONS - 1);
            node_runner runner = {.op = "Cast", .version = 13, .input_count = 1, .output_count = 1};
            runner.inputs[0] = random_tensor(&source, kind, (sb_dtype)from, 3, extents);
            add_int(&runner, "to", numbers[to]);
            check_loops(runner);
        }
    }
}

static void clip_loops_equal_the_definition(void **unused) {
    static const sb_dtype dtypes[] = {SB_F32, SB_F16, SB_F64, SB_S8, SB_U32};
    random_source source = {14};
    for (int round = 0; round < 20; round++) {
        sb_dtype dtype = dtypes[round % 5];
        distribution kind = (distribution)(round % DISTRIBUTIONS);
        check_loops((node_runner){.op = "Clip",
                                  .version = 13,
                                  .input_count = 3,
                                  .output_count = 1,
                                  .inputs = {random_tensor(&source, kind, dtype, 3, extents),
                                             random_tensor(&source, kind, dtype, 0, NULL),
                                             random_tensor(&source, kind, dtype, 0, NULL)}});
        check_loops((node_runner){.op = "Where",
                                  .version = 16,
                                  .input_count = 3,
                                  .output_count = 1,
                                  .inputs = {random_tensor(&source, kind, SB_BOOL, 1, (int64_t[]){37}),
                                             random_tensor(&source, kind, dtype, 3, extents),
                                             random_tensor(&source, kind, dtype, 0, NULL)}});
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(corners_of_one_input, leaves_nothing),
        cmocka_unit_test_teardown(parameters, leaves_nothing),
        cmocka_unit_test_teardown(integers_wrap_and_never_divide_by_zero, leaves_nothing),
        cmocka_unit_test_teardown(remainders_of_floats, leaves_nothing),
        cmocka_unit_test_teardown(powers, leaves_nothing),
        cmocka_unit_test_teardown(old_models_align_by_axis, leaves_nothing),
        cmocka_unit_test_teardown(choices, leaves_nothing),
        cmocka_unit_test_teardown(unary_loops_equal_the_definition, leaves_nothing),
        cmocka_unit_test_teardown(binary_loops_equal_the_definition, leaves_nothing),
        cmocka_unit_test_teardown(conversions_equal_the_definition, leaves_nothing),
        cmocka_unit_test_teardown(clip_loops_equal_the_definition, leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
