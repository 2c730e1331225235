/* TensorProto in all forms of storage, sparse tensors, sequences and optionals, and writing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/allocation.h"
#include "onnx/tensor.h"
#include "onnx/text_proto.h"
#include "support/failing.h"

static uint8_t bytes[TEXT_PROTO_ROOM];

static sb_status read_text(const char *text, sb_tensor **tensor, sb_error *error) {
    size_t size = text_proto(&onnx__tensor_proto__descriptor, text, bytes);
    return sb_onnx_tensor_read(bytes, size, tensor, error);
}

/* Reads the tensor and compares it with `rank` extents and the bytes of `data`. */
static void expect(const char *text, sb_dtype dtype, int rank, const int64_t *dims, const void *data) {
    sb_tensor *tensor, *wanted;
    sb_error error = {0};
    if (read_text(text, &tensor, &error) != SB_OK)
        fail_msg("%s: %s", text, error.message);
    assert_int_equal(sb_tensor_from_data(dtype, rank, dims, data, &wanted, NULL), SB_OK);
    assert_true(sb_tensor_equal(tensor, wanted));
    sb_tensor_release(tensor);
    sb_tensor_release(wanted);
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

static void expect_failure(const char *text, sb_status status, const char *message) {
    sb_tensor *tensor;
    sb_error error = {0};
    assert_int_equal(read_text(text, &tensor, &error), status);
    if (strstr(error.message, message) == NULL)
        fail_msg("'%s' is not in '%s'", message, error.message);
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

#define PAIR(type, a, b) ((const type[]){(type)(a), (type)(b)})
static const int64_t two[] = {2};

static void test_typed(void **state) {
    expect("dims: 2 data_type: 1 float_data: [1.5, -2]", SB_F32, 1, two, PAIR(float, 1.5, -2));
    expect("dims: 2 data_type: 1 float_data: 1.5 float_data: -2", SB_F32, 1, two, PAIR(float, 1.5, -2));
    expect("dims: 2 data_type: 11 double_data: [1.5, -2]", SB_F64, 1, two, PAIR(double, 1.5, -2));
    expect("dims: 2 data_type: 7 int64_data: [-1, 5000000000]", SB_S64, 1, two, PAIR(int64_t, -1, 5000000000));
    expect("dims: 2 data_type: 13 uint64_data: [1, 18446744073709551615]", SB_U64, 1, two,
           PAIR(uint64_t, 1, UINT64_MAX));
    expect("dims: 2 data_type: 12 uint64_data: [1, 4294967295]", SB_U32, 1, two, PAIR(uint32_t, 1, UINT32_MAX));
    expect("dims: 2 data_type: 6 int32_data: [1, -7]", SB_S32, 1, two, PAIR(int32_t, 1, -7));
    expect("dims: 2 data_type: 5 int32_data: [-32768, 32767]", SB_S16, 1, two, PAIR(int16_t, -32768, 32767));
    expect("dims: 2 data_type: 4 int32_data: [0, 65535]", SB_U16, 1, two, PAIR(uint16_t, 0, 65535));
    expect("dims: 2 data_type: 3 int32_data: [-128, 127]", SB_S8, 1, two, PAIR(int8_t, -128, 127));
    expect("dims: 2 data_type: 2 int32_data: [0, 255]", SB_U8, 1, two, PAIR(uint8_t, 0, 255));
    expect("dims: 2 data_type: 9 int32_data: [1, 0]", SB_BOOL, 1, two, PAIR(uint8_t, 1, 0));
    expect("dims: 2 data_type: 10 int32_data: [15360, 49152]", SB_F16, 1, two, PAIR(uint16_t, 0x3c00, 0xc000));
    expect("dims: 2 data_type: 16 int32_data: [16256, -16384]", SB_BF16, 1, two, PAIR(uint16_t, 0x3f80, 0xc000));
    expect("data_type: 1 float_data: 3", SB_F32, 0, NULL, &(float){3});
    expect("dims: [0, 3] data_type: 1", SB_F32, 2, (const int64_t[]){0, 3}, NULL);
}

static void test_raw(void **state) {
    expect("dims: 2 data_type: 1 raw_data: \"\\x00\\x00\\xc0\\x3f\\x00\\x00\\x00\\xc0\"", SB_F32, 1, two,
           PAIR(float, 1.5, -2));
    expect("dims: 2 data_type: 10 raw_data: \"\\x00\\x3c\\x00\\xc0\"", SB_F16, 1, two, PAIR(uint16_t, 0x3c00, 0xc000));
    expect("dims: 2 data_type: 9 raw_data: \"\\x01\\x00\"", SB_BOOL, 1, two, PAIR(uint8_t, 1, 0));
    expect_failure("dims: 2 data_type: 9 raw_data: \"\\x01\\x02\"", SB_ERROR_INVALID_MODEL,
                   "element 1 is the byte 2 where a bool is 0 or 1");
    expect_failure("name: \"w\" dims: 2 data_type: 1 raw_data: \"\\x00\\x00\"", SB_ERROR_INVALID_MODEL,
                   "tensor 'w': it has 2 bytes where f32[2] needs 8");
    expect_failure("dims: 1 data_type: 8 raw_data: \"a\"", SB_ERROR_INVALID_MODEL, "text cannot be stored as raw data");
}

#define BYTES(...) ((const uint8_t[]){__VA_ARGS__})

/* Elements of less than 8 bits: the first one lowest, the last byte filled up. */
static void test_packed(void **state) {
    static const int64_t three[] = {3}, five[] = {5};
    expect("dims: 3 data_type: 22 raw_data: \"\\xa1\\x0f\"", SB_S4, 1, three, BYTES(1, 10, 15));
    expect("dims: 3 data_type: 21 int32_data: [161, 15]", SB_U4, 1, three, BYTES(1, 10, 15));
    expect("dims: 3 data_type: 23 int32_data: [-95, 15]", SB_F4E2M1, 1, three, BYTES(1, 10, 15));
    expect("dims: 5 data_type: 25 raw_data: \"\\xe4\\x02\"", SB_U2, 1, five, BYTES(0, 1, 2, 3, 2));
    expect("dims: 5 data_type: 26 int32_data: [228, 2]", SB_S2, 1, five, BYTES(0, 1, 2, 3, 2));
    /* What fills the last byte up is not looked at. */
    expect("dims: 5 data_type: 26 raw_data: \"\\xe4\\xfe\"", SB_S2, 1, five, BYTES(0, 1, 2, 3, 2));
    /* Four elements of 6 bits in three bytes: 1, 2, 62, 63, and 5. In `int32_data` they have a number each. */
    expect("dims: 5 data_type: 27 raw_data: \"\\x81\\xe0\\xff\\x05\"", SB_F6E2M3, 1, five, BYTES(1, 2, 62, 63, 5));
    expect("dims: 5 data_type: 28 int32_data: [1, 2, 62, 63, 5]", SB_F6E3M2, 1, five, BYTES(1, 2, 62, 63, 5));
    expect("dims: 3 data_type: 17 int32_data: [56, 255, -1]", SB_F8E4M3FN, 1, three, BYTES(0x38, 0xff, 0xff));
    expect("dims: 3 data_type: 24 raw_data: \"\\x7f\\x00\\xff\"", SB_F8E8M0, 1, three, BYTES(0x7f, 0, 0xff));
    expect("dims: [0, 3] data_type: 22", SB_S4, 2, (const int64_t[]){0, 3}, NULL);
    expect_failure("dims: 3 data_type: 22 raw_data: \"\\xa1\"", SB_ERROR_INVALID_MODEL,
                   "it has 1 bytes where s4[3] needs 2");
    expect_failure("dims: 5 data_type: 27 raw_data: \"\\xa1\\x00\\x00\"", SB_ERROR_INVALID_MODEL,
                   "it has 3 bytes where f6e2m3[5] needs 4");
    expect_failure("dims: 5 data_type: 25 int32_data: [1, 2, 3]", SB_ERROR_INVALID_MODEL,
                   "it has 3 numbers where u2[5] needs 2");
    expect_failure("dims: 3 data_type: 22 int32_data: [1, 256]", SB_ERROR_INVALID_MODEL,
                   "number 1 is 256, which is no byte with 2 elements of s4");
    expect_failure("dims: 1 data_type: 28 int32_data: 64", SB_ERROR_INVALID_MODEL,
                   "element 0 is 64, which is no f6e3m2");
    expect_failure("dims: 1 data_type: 20 int32_data: 256", SB_ERROR_INVALID_MODEL, "which is no f8e5m2fnuz");
}

/* Data large enough to move out of the message instead of being copied. */
static void test_moved(void **state) {
    enum { COUNT = 5000 };
    static float values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)i;
    for (int raw = 0; raw < 2; raw++) {
        int64_t dims[] = {COUNT / 5, 5};
        Onnx__TensorProto proto = ONNX__TENSOR_PROTO__INIT;
        proto.n_dims = 2, proto.dims = dims, proto.has_data_type = 1, proto.data_type = 1;
        if (raw)
            proto.has_raw_data = 1, proto.raw_data = (ProtobufCBinaryData){sizeof values, (uint8_t *)values};
        else
            proto.n_float_data = COUNT, proto.float_data = values;
        size_t size = onnx__tensor_proto__pack(&proto, bytes);
        sb_tensor *tensor;
        assert_int_equal(sb_onnx_tensor_read(bytes, size, &tensor, NULL), SB_OK);
        assert_memory_equal(sb_tensor_data(tensor), values, sizeof values);
        assert_int_equal((uintptr_t)sb_tensor_data(tensor) % SB_ALIGNMENT, 0);
        sb_tensor_release(tensor);
        assert_int_equal(sb_allocation_count().live_blocks, 0);
    }
}

static void test_bad_tensors(void **state) {
    expect_failure("name: \"c\" dims: 1 data_type: 14", SB_ERROR_UNSUPPORTED,
                   "tensor 'c': elements of type complex64 are not supported");
    expect_failure("dims: 1 data_type: 99", SB_ERROR_UNSUPPORTED, "99 is no element type");
    expect_failure("dims: 1", SB_ERROR_INVALID_MODEL, "0 is no element type");
    expect_failure("dims: -1 data_type: 1", SB_ERROR_INVALID_MODEL, "its shape is bad");
    expect_failure("dims: [4294967296, 4294967296] data_type: 1", SB_ERROR_INVALID_MODEL, "its shape is bad");
    expect_failure("dims: 1000000000000 data_type: 1 float_data: 1", SB_ERROR_INVALID_MODEL,
                   "it has 1 numbers where f32[1000000000000] needs 1000000000000");
    expect_failure("dims: [1,1,1,1,1,1,1,1,1,1,1,1,1] data_type: 1 float_data: 1", SB_ERROR_UNSUPPORTED,
                   "it has 13 dimensions");
    expect_failure("dims: 1 data_type: 1 float_data: 1 segment { begin: 0 end: 1 }", SB_ERROR_UNSUPPORTED,
                   "one segment");
    expect_failure("dims: 2 data_type: 2 int32_data: [0, 256]", SB_ERROR_INVALID_MODEL,
                   "element 1 is 256, which is no u8");
    expect_failure("dims: 1 data_type: 12 uint64_data: 4294967296", SB_ERROR_INVALID_MODEL, "which is no u32");
    expect_failure("dims: 2 data_type: 1 int32_data: [0, 1]", SB_ERROR_INVALID_MODEL, "it has 0 numbers");
    expect_failure("dims: 1 data_type: 1 data_location: EXTERNAL external_data { key: \"location\" "
                   "value: \"x\" }",
                   SB_ERROR_UNSUPPORTED, "only models may have external data");
}

static void test_strings(void **state) {
    sb_tensor *tensor;
    assert_int_equal(
        read_text("dims: 3 data_type: 8 string_data: \"ab\" string_data: \"\" string_data: \"c\\x00d\"", &tensor, NULL),
        SB_OK);
    const sb_string *strings = sb_tensor_data(tensor);
    assert_int_equal(strings[0].bytes, 2);
    assert_memory_equal(strings[0].data, "ab", 2);
    assert_int_equal(strings[1].bytes, 0);
    assert_int_equal(strings[2].bytes, 3);
    assert_memory_equal(strings[2].data, "c\0d", 3);
    void *written;
    size_t size;
    sb_tensor *again;
    assert_int_equal(sb_onnx_tensor_write(tensor, "t", &written, &size, NULL), SB_OK);
    assert_int_equal(sb_onnx_tensor_read(written, size, &again, NULL), SB_OK);
    assert_true(sb_tensor_equal(tensor, again));
    sb_tensor_release(tensor);
    sb_tensor_release(again);
    sb_free(written);
    expect_failure("dims: 2 data_type: 8 string_data: \"ab\"", SB_ERROR_INVALID_MODEL,
                   "it has 1 texts where string[2] needs 2");
}

/* Every dtype and a view with strides, written and read. */
static void test_round_trip(void **state) {
    for (int dtype = SB_BOOL; dtype < SB_DTYPE_COUNT; dtype++) {
        if (dtype == SB_STRING)
            continue;
        const int64_t dims[] = {2, 3};
        uint8_t data[48];
        for (size_t i = 0; i < sizeof data; i++)
            data[i] = dtype == SB_BOOL ? i & 1 : (uint8_t)(37 * i + 1);
        sb_tensor *tensor, *transposed, *again;
        assert_int_equal(sb_tensor_from_data((sb_dtype)dtype, 2, dims, data, &tensor, NULL), SB_OK);
        assert_int_equal(sb_tensor_transpose(tensor, (const int[]){1, 0}, &transposed, NULL), SB_OK);
        void *written;
        size_t size;
        assert_int_equal(sb_onnx_tensor_write(transposed, NULL, &written, &size, NULL), SB_OK);
        assert_int_equal(sb_onnx_tensor_read(written, size, &again, NULL), SB_OK);
        assert_true(sb_tensor_equal(transposed, again));
        sb_free(written);
        sb_tensor_release(tensor);
        sb_tensor_release(transposed);
        sb_tensor_release(again);
    }
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

/* ---- sparse ---- */

static sb_status read_sparse(const char *text, size_t budget, sb_tensor **tensor, sb_error *error) {
    size_t size = text_proto(&onnx__sparse_tensor_proto__descriptor, text, bytes);
    sb_arena arena;
    sb_arena_begin(&arena, sb_wire_budget(size));
    ProtobufCMessage *message;
    sb_status status = sb_wire_unpack(bytes, size, &onnx__sparse_tensor_proto__descriptor, &arena, &message, error);
    if (status == SB_OK)
        status = sb_onnx_tensor_of_sparse((Onnx__SparseTensorProto *)message, NULL, &budget, tensor, error);
    sb_arena_end(&arena);
    return status;
}

static void test_sparse(void **state) {
    static const char *const forms[] = {
        "dims: [2, 3] values { dims: 2 data_type: 1 float_data: [1, 2] } indices { dims: 2 "
        "data_type: 7 int64_data: [1, 5] }",
        "dims: [2, 3] values { dims: 2 data_type: 1 float_data: [1, 2] } indices { dims: [2, 2] "
        "data_type: 7 int64_data: [0, 1, 1, 2] }"};
    const float wanted[] = {0, 1, 0, 0, 0, 2};
    for (int i = 0; i < 2; i++) {
        sb_tensor *tensor;
        assert_int_equal(read_sparse(forms[i], 24, &tensor, NULL), SB_OK);
        assert_int_equal(sb_tensor_rank(tensor), 2);
        assert_memory_equal(sb_tensor_data(tensor), wanted, sizeof wanted);
        sb_tensor_release(tensor);
        sb_error error = {0};
        assert_int_equal(read_sparse(forms[i], 23, &tensor, &error), SB_ERROR_UNSUPPORTED);
        assert_non_null(strstr(error.message, "it takes 24 bytes when dense"));
    }
    static const char *const bad[] = {"dims: 6 values { name: \"s\" dims: 1 data_type: 1 "
                                      "float_data: 1 } indices { dims: 1 data_type: 7 "
                                      "int64_data: 6 }",
                                      "dims: 6 values { name: \"s\" dims: 1 data_type: 1 "
                                      "float_data: 1 } indices { dims: 1 data_type: 7 "
                                      "int64_data: -1 }",
                                      "dims: [2, 3] values { name: \"s\" dims: 1 data_type: 1 "
                                      "float_data: 1 } indices { dims: [1, 2] "
                                      "data_type: 7 int64_data: [0, 3] }",
                                      "dims: 6 values { name: \"s\" dims: 2 data_type: 1 "
                                      "float_data: [1, 2] } indices { dims: 2 data_type: 7 "
                                      "int64_data: [2, 2] }",
                                      "dims: [2, 3] values { name: \"s\" dims: 1 data_type: 1 "
                                      "float_data: 1 } indices { dims: [1, 3] "
                                      "data_type: 7 int64_data: [0, 0, 0] }",
                                      "dims: 6 values { name: \"s\" dims: 1 data_type: 1 "
                                      "float_data: 1 } indices { dims: 1 data_type: 6 "
                                      "int32_data: 1 }"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sb_tensor *tensor;
        sb_error error = {0};
        assert_int_equal(read_sparse(bad[i], 1000, &tensor, &error), SB_ERROR_INVALID_MODEL);
        assert_non_null(strstr(error.message, "sparse tensor 's'"));
    }
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

/* ---- sequences and optionals, which the installed onnx.proto does not have ---- */

/* Appends field `number` with the tensor as its message. */
static size_t append_item(uint8_t *target, uint8_t number, const char *text) {
    size_t size = text_proto(&onnx__tensor_proto__descriptor, text, bytes);
    assert_true(size < 128);
    target[0] = (uint8_t)(number << 3 | 2);
    target[1] = (uint8_t)size;
    memcpy(target + 2, bytes, size);
    return size + 2;
}

static void test_sequences(void **state) {
    uint8_t file[256] = {0x10, 1}; /* elem_type: tensor */
    size_t size = 2;
    size += append_item(file + size, 3, "dims: 1 data_type: 1 float_data: 4");
    size += append_item(file + size, 3, "dims: 2 data_type: 1 float_data: [5, 6]");
    sb_value value;
    sb_error error = {0};
    assert_int_equal(sb_onnx_value_read(file, size, SB_KIND_SEQUENCE, false, SB_F64, &value, &error), SB_OK);
    assert_int_equal(value.kind, SB_KIND_SEQUENCE);
    assert_int_equal(sb_sequence_count(value.sequence), 2);
    assert_int_equal(sb_sequence_dtype(value.sequence), SB_F32);
    assert_int_equal(sb_tensor_elements(sb_sequence_item(value.sequence, 1).tensor), 2);
    sb_value_release(&value);

    assert_int_equal(sb_onnx_value_read(file, 2, SB_KIND_SEQUENCE, false, SB_F64, &value, &error), SB_OK);
    assert_int_equal(sb_sequence_count(value.sequence), 0);
    assert_int_equal(sb_sequence_dtype(value.sequence), SB_F64);
    sb_value_release(&value);

    size += append_item(file + size, 3, "dims: 1 data_type: 7 int64_data: 1");
    assert_int_equal(sb_onnx_value_read(file, size, SB_KIND_SEQUENCE, false, SB_F32, &value, &error),
                     SB_ERROR_INVALID_FILE);
    assert_non_null(strstr(error.message, "item 2 of the sequence is s64"));
    assert_int_equal(sb_onnx_value_read(file, size - 1, SB_KIND_SEQUENCE, false, SB_F32, &value, &error),
                     SB_ERROR_INVALID_FILE);
    assert_int_equal(sb_onnx_value_read("\x1a\x01\xff", 3, SB_KIND_SEQUENCE, false, SB_F32, &value, &error),
                     SB_ERROR_INVALID_FILE);
    assert_non_null(strstr(error.message, "the tensor at byte 2"));
    assert_int_equal(sb_onnx_value_read("\x32\x00", 2, SB_KIND_SEQUENCE, false, SB_F32, &value, &error),
                     SB_ERROR_UNSUPPORTED);
    assert_int_equal(sb_onnx_value_read("\x2a\x00", 2, SB_KIND_SEQUENCE, false, SB_F32, &value, &error),
                     SB_ERROR_UNSUPPORTED);
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

static void test_optionals(void **state) {
    uint8_t file[256];
    sb_value value;
    assert_int_equal(sb_onnx_value_read("", 0, SB_KIND_TENSOR, true, SB_F32, &value, NULL), SB_OK);
    assert_int_equal(value.kind, SB_KIND_NONE);
    size_t size = append_item(file, 3, "dims: 1 data_type: 1 float_data: 4");
    assert_int_equal(sb_onnx_value_read(file, size, SB_KIND_TENSOR, true, SB_F32, &value, NULL), SB_OK);
    assert_int_equal(value.kind, SB_KIND_TENSOR);
    sb_value_release(&value);
    /* An optional sequence of that one tensor: the sequence's only field is the same. */
    uint8_t outer[300] = {5 << 3 | 2, (uint8_t)size};
    memcpy(outer + 2, file, size);
    assert_int_equal(sb_onnx_value_read(outer, size + 2, SB_KIND_SEQUENCE, true, SB_F32, &value, NULL), SB_OK);
    assert_int_equal(value.kind, SB_KIND_SEQUENCE);
    assert_int_equal(sb_sequence_count(value.sequence), 1);
    sb_value_release(&value);
    assert_int_equal(sb_onnx_value_read("\x3a\x00", 2, SB_KIND_TENSOR, true, SB_F32, &value, NULL),
                     SB_ERROR_UNSUPPORTED);
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

/* ---- running out of memory ---- */

static sb_status read_and_write(void *context) {
    sb_tensor *tensor;
    sb_error error;
    SB_TRY(read_text(context, &tensor, &error));
    void *written;
    size_t size;
    sb_status status = sb_onnx_tensor_write(tensor, "t", &written, &size, &error);
    if (status == SB_OK)
        sb_free(written);
    sb_tensor_release(tensor);
    return status;
}

static sb_status read_one_sequence(void *context) {
    static uint8_t file[256];
    size_t size = append_item(file, 3, "dims: 1 data_type: 1 float_data: 4");
    sb_value value;
    sb_error error;
    SB_TRY(sb_onnx_value_read(file, size, SB_KIND_SEQUENCE, false, SB_F32, &value, &error));
    sb_value_release(&value);
    return SB_OK;
}

static sb_status read_one_sparse(void *context) {
    sb_tensor *tensor;
    sb_error error;
    SB_TRY(read_sparse("dims: 6 values { dims: 1 data_type: 1 float_data: 1 } indices { dims: 1 "
                       "data_type: 7 int64_data: 2 }",
                       1000, &tensor, &error));
    sb_tensor_release(tensor);
    return SB_OK;
}

static void test_no_memory(void **state) {
    check_failing_allocations(read_and_write, "dims: 2 data_type: 8 string_data: \"ab\" string_data: \"c\"");
    check_failing_allocations(read_and_write, "dims: 2 data_type: 2 int32_data: [3, 4]");
    check_failing_allocations(read_and_write, "name: \"x\" dims: 2 data_type: 1 float_data: [3, 4]");
    check_failing_allocations(read_one_sequence, NULL);
    check_failing_allocations(read_one_sparse, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_typed),      cmocka_unit_test(test_raw),         cmocka_unit_test(test_packed),
        cmocka_unit_test(test_moved),      cmocka_unit_test(test_bad_tensors), cmocka_unit_test(test_strings),
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_sparse),      cmocka_unit_test(test_sequences),
        cmocka_unit_test(test_optionals),  cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
