/* Cast to and from text, and quantisation. */
#include "ops/definition_cases.h"
#include "ops/number_text.h"

static void expect_text(sb_dtype dtype, const void *element, const char *text) {
    char written[SB_NUMBER_TEXT_BYTES];
    int length = sb_number_to_text(dtype, element, written);
    assert_int_equal(length, strlen(text));
    assert_memory_equal(written, text, strlen(text));
}

static void numbers_are_written_as_numpy_does(void **unused) {
    expect_text(SB_F32, &(float){0.1f}, "0.1");
    expect_text(SB_F32, &(float){1}, "1.0");
    expect_text(SB_F32, &(float){-0.0f}, "-0.0");
    expect_text(SB_F32, &(float){0.47892547f}, "0.47892547");
    expect_text(SB_F32, &(float){16777216}, "16777216.0");
    expect_text(SB_F32, &(float){1e-5f}, "1e-05");
    expect_text(SB_F32, &(float){0.0001f}, "0.0001");
    expect_text(SB_F32, &(float){-1.5e16f}, "-1.5e+16");
    expect_text(SB_F32, &(float){1e-45f}, "1e-45");
    expect_text(SB_F32, &(float){INFINITY}, "INF");
    expect_text(SB_F32, &(float){-INFINITY}, "-INF");
    expect_text(SB_F32, &(float){NAN}, "NaN");
    expect_text(SB_F64, &(double){1.0 / 3.0}, "0.3333333333333333");
    expect_text(SB_F64, &(double){5e-324}, "5e-324");
    expect_text(SB_F64, &(double){1.7976931348623157e308}, "1.7976931348623157e+308");
    expect_text(SB_F16, &(uint16_t){0x2e66}, "0.1");
    expect_text(SB_BF16, &(uint16_t){0x3dcd}, "0.1");
    expect_text(SB_U64, &(uint64_t){UINT64_MAX}, "18446744073709551615");
    expect_text(SB_S8, &(int8_t){-128}, "-128");
    expect_text(SB_BOOL, &(uint8_t){1}, "True");
    expect_text(SB_F8E4M3FN, &(uint8_t){0x38}, "1.0");
    expect_text(SB_F8E5M2, &(uint8_t){0xfc}, "-INF");
    expect_text(SB_F4E2M1, &(uint8_t){0x0f}, "-6.0");
    expect_text(SB_F8E8M0, &(uint8_t){0x7c}, "0.125");
    expect_text(SB_S4, &(uint8_t){0x0f}, "-1");
    expect_text(SB_U2, &(uint8_t){0xff}, "3");
}

static bool read_text(const char *text, sb_dtype dtype, void *element) {
    return sb_number_from_text((sb_string){text, strlen(text)}, dtype, element);
}

static void numbers_are_read_as_the_standard_says(void **unused) {
    float f32;
    int64_t s64;
    uint8_t u8;
    assert_true(read_text(" 3.14 ", SB_F32, &f32) && f32 == 3.14f);
    assert_true(read_text("1E8", SB_F32, &f32) && f32 == 1e8f);
    assert_true(read_text(".5", SB_F32, &f32) && f32 == 0.5f);
    assert_true(read_text("+INF", SB_F32, &f32) && f32 == INFINITY);
    assert_true(read_text("-inf", SB_F32, &f32) && f32 == -INFINITY);
    assert_true(read_text("nAn", SB_F32, &f32) && f32 != f32);
    assert_true(read_text("9007199254740993", SB_S64, &s64) && s64 == 9007199254740993);
    assert_true(read_text("100.5", SB_S64, &s64) && s64 == 100);
    assert_true(read_text("300", SB_U8, &u8) && u8 == 255);
    assert_true(read_text("True", SB_BOOL, &u8) && u8 == 1);
    static const char *const wrong[] = {"",    " ",     ".",   "e5",   "1e",       "0x10", "1 2",
                                        "1,5", "Hello", "--1", "nan0", "infinity", "1.2.3"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (read_text(wrong[i], SB_F32, &f32))
            fail_msg("\"%s\" was read as a number", wrong[i]);
    }
    assert_false(sb_number_from_text((sb_string){"1\0", 2}, SB_F32, &f32));
    assert_false(sb_number_from_text((sb_string){NULL, 0}, SB_F32, &f32));
}

static void every_f16_survives_text(void **unused) {
    for (uint32_t bits = 0; bits < 0x10000; bits += 7) {
        uint16_t half = (uint16_t)bits, back;
        char text[SB_NUMBER_TEXT_BYTES];
        if ((half & 0x7fff) > 0x7c00)
            continue;
        int length = sb_number_to_text(SB_F16, &half, text);
        assert_true(sb_number_from_text((sb_string){text, (size_t)length}, SB_F16, &back));
        assert_int_equal(half, back);
    }
}

static void text_that_is_no_number_is_named(void **unused) {
    sb_tensor *texts = NULL;
    sb_string entries[] = {{"1", 1}, {"Hello", 5}};
    assert_int_equal(sb_tensor_from_strings(1, (int64_t[]){2}, entries, &texts, NULL), SB_OK);
    node_runner runner = make_node("Cast", 13, texts, NULL, NULL);
    add_int(&runner, "to", 1);
    expect_refusal(runner, SB_ERROR_INVALID_ARGUMENT, "\"Hello\" is not a number");
    node_runner complex = make_node("Cast", 13, LIST(SB_F32, (float, 1)), NULL, NULL);
    add_int(&complex, "to", 14);
    expect_refusal(complex, SB_ERROR_UNSUPPORTED, "element type 14");
}

/* Text becomes a small type by the attributes, and a small type becomes text. */
static void text_and_small_types(void **unused) {
    sb_tensor *texts = NULL;
    sb_string entries[] = {{"-0.4375", 7}, {"1e6", 3}, {"nan", 3}};
    for (int saturate = 0; saturate < 2; saturate++) {
        assert_int_equal(sb_tensor_from_strings(1, (int64_t[]){3}, entries, &texts, NULL), SB_OK);
        node_runner runner = make_node("Cast", 19, texts, NULL, NULL);
        add_int(&runner, "to", 19);
        add_int(&runner, "saturate", saturate);
        expect_output(runner, LIST(SB_F8E5M2, (uint8_t, 0xb7, saturate ? 0x7b : 0x7c, 0x7e)));
    }
    assert_int_equal(sb_tensor_from_strings(1, (int64_t[]){3}, entries, &texts, NULL), SB_OK);
    node_runner integers = make_node("Cast", 21, texts, NULL, NULL);
    add_int(&integers, "to", 22);
    expect_output(integers, LIST(SB_S4, (uint8_t, 0, 1000000 & 15, 0)));
    sb_string written[] = {{"-1.5", 4}, {"6.0", 3}};
    assert_int_equal(sb_tensor_from_strings(1, (int64_t[]){2}, written, &texts, NULL), SB_OK);
    node_runner back = make_node("Cast", 23, LIST(SB_F4E2M1, (uint8_t, 0x0b, 0x07)), NULL, NULL);
    add_int(&back, "to", 8);
    expect_output(back, texts);
}

static void quantising(void **unused) {
    /* Ties to even, saturation, NaN as 0. */
    expect_output(make_node("QuantizeLinear", 13, LIST(SB_F32, (float, 1, 3, -1000, 1000, NAN)),
                            SCALAR(SB_F32, (float, 2)), SCALAR(SB_U8, (uint8_t, 10))),
                  LIST(SB_U8, (uint8_t, 10, 12, 0, 255, 10)));
    node_runner axis = make_node("QuantizeLinear", 13, TENSOR(SB_F32, (2, 2), (float, 4, 4, 4, 4)),
                                 LIST(SB_F32, (float, 1, 2)), LIST(SB_S8, (int8_t, 0, -1)));
    add_int(&axis, "axis", 0);
    expect_output(axis, TENSOR(SB_S8, (2, 2), (int8_t, 4, 4, 1, 1)));
    node_runner blocks = make_node("DequantizeLinear", 21, TENSOR(SB_S8, (1, 5), (int8_t, 1, 1, 1, 1, 1)),
                                   TENSOR(SB_F32, (1, 3), (float, 1, 2, 3)), NULL);
    add_int(&blocks, "axis", 1);
    add_int(&blocks, "block_size", 2);
    expect_output(blocks, TENSOR(SB_F32, (1, 5), (float, 1, 1, 2, 2, 3)));
    expect_output(
        make_node("DequantizeLinear", 10, LIST(SB_S32, (int32_t, INT32_MIN, 3)), SCALAR(SB_F32, (float, 0.5f)), NULL),
        LIST(SB_F32, (float, -1073741824, 1.5f)));
    expect_refusal(make_node("QuantizeLinear", 13, TENSOR(SB_F32, (2, 2), (float, 4, 4, 4, 4)),
                             LIST(SB_F32, (float, 1, 2, 3)), NULL),
                   SB_ERROR_SHAPE, "of shape [3] does not fit input [2,2]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_written_as_numpy_does),
        cmocka_unit_test(numbers_are_read_as_the_standard_says),
        cmocka_unit_test(every_f16_survives_text),
        cmocka_unit_test_teardown(text_that_is_no_number_is_named, leaves_nothing),
        cmocka_unit_test_teardown(text_and_small_types, leaves_nothing),
        cmocka_unit_test_teardown(quantising, leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
