/* Damaged protobuf files: each kind of damage is found, with its offset, before anything is unpacked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/allocation.h"
#include "onnx/text_proto.h"
#include "onnx/wire.h"

static uint8_t bytes[TEXT_PROTO_ROOM];

/* Checks `size` bytes as a model; in a block of just that size, so that sanitizers see a step past the end. */
static sb_status check(const void *data, size_t size, sb_error *error) {
    uint8_t *exact = malloc(size + (size == 0));
    assert_non_null(exact);
    memcpy(exact, data, size);
    sb_status status = sb_wire_check(exact, size, &onnx__model_proto__descriptor, error);
    free(exact);
    return status;
}

static void expect(const char *data, size_t size, sb_status status, const char *message) {
    sb_error error = {0};
    assert_int_equal(check(data, size, &error), status);
    if (strstr(error.message, message) == NULL)
        fail_msg("'%s' is not in '%s'", message, error.message);
}
#define EXPECT(data, status, message) expect(data, sizeof(data) - 1, status, message)

static void test_damage(void **state) {
    sb_error error;
    assert_int_equal(check("", 0, &error), SB_OK);
    EXPECT("\x08\x07\x08", SB_ERROR_INVALID_FILE, "a number that does not end at byte 2");
    EXPECT("\x08\x07\x00\x01", SB_ERROR_INVALID_FILE, "a bad field tag at byte 2");
    EXPECT("\xff\xff\xff\xff\xff\x01", SB_ERROR_INVALID_FILE, "a bad field tag at byte 0");
    EXPECT("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", SB_ERROR_INVALID_FILE,
           "a number that does not end at byte 0");
    EXPECT("\x12\x05onn", SB_ERROR_INVALID_FILE, "longer than what is left of its message at byte 0");
    EXPECT("\x12\xff\xff\xff\xff\xff\x01", SB_ERROR_INVALID_FILE, "a bad length at byte 0");
    EXPECT("\x08\x07\x0b\x0c", SB_ERROR_INVALID_FILE, "unknown wire type at byte 2");
    EXPECT("\x0a\x01\x07", SB_ERROR_INVALID_FILE, "ir_version of ModelProto has the wrong wire type");
    EXPECT("\x12\x03o\0n", SB_ERROR_INVALID_FILE, "producer_name of ModelProto holds a NUL");
    EXPECT("\x3a\x00\x3a\x00", SB_ERROR_INVALID_FILE, "a second graph in one ModelProto at byte 2");
    /* The inner message ends where the outer one says, not where the file does. */
    EXPECT("\x3a\x03\x12\x04x\x08\x07", SB_ERROR_INVALID_FILE, "at byte 2");
}

static void test_packed(void **state) {
    /* model { graph { initializer { … } } } around a packed list */
    EXPECT("\x3a\x06\x2a\x04\x0a\x02\x01\x80", SB_ERROR_INVALID_FILE, "ends within a number at byte 4");
    EXPECT("\x3a\x07\x2a\x05\x22\x03"
           "abc",
           SB_ERROR_INVALID_FILE, "ends within a number at byte 4");
    EXPECT("\x3a\x11\x2a\x0f\x0a\x0d\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", SB_ERROR_INVALID_FILE,
           "a number that does not end at byte 4");
    sb_error error;
    assert_int_equal(check("\x3a\x07\x2a\x05\x0a\x03\x01\x80\x01", 9, &error), SB_OK);
}

static void test_depth(void **state) {
    sb_error error = {0};
    static const char deep[] = "messages are nested more than 100 deep";
    uint8_t chain[2 * 4000];
    /* type { sequence_type { elem_type { … } } }: the walk must stop by itself, whatever the depth. */
    size_t size = 0;
    for (int i = 0; i < 1000; i++) {
        size_t start = sizeof chain - size;
        size_t length = size < 0x80 ? 2 : 3;
        if (start < length)
            break;
        uint8_t *at = chain + start - length;
        at[0] = i % 2 == 0 ? 0x0a : 0x22;
        at[1] = (uint8_t)(size < 0x80 ? size : (size & 0x7f) | 0x80);
        if (length == 3)
            at[2] = (uint8_t)(size >> 7);
        size += length;
    }
    assert_int_equal(sb_wire_check(chain + sizeof chain - size, size, &onnx__type_proto__descriptor, &error),
                     SB_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, deep));
    /* The innermost 98 links are 230 bytes, the innermost 100 are 236. */
    assert_int_equal(sb_wire_check(chain + sizeof chain - 230, 230, &onnx__type_proto__descriptor, &error), SB_OK);
    assert_int_equal(sb_wire_check(chain + sizeof chain - 236, 236, &onnx__type_proto__descriptor, &error),
                     SB_ERROR_UNSUPPORTED);
}

static void test_budget(void **state) {
    /* Two bytes that unfold to a message of some hundred, many times. */
    sb_arena arena;
    ProtobufCMessage *message;
    sb_error error = {0};
    static uint8_t nodes[60000];
    for (size_t i = 0; i < sizeof nodes; i += 2)
        nodes[i] = 0x0a, nodes[i + 1] = 0;
    sb_arena_begin(&arena, (size_t)1 << 20);
    assert_int_equal(sb_wire_unpack(nodes, sizeof nodes, &onnx__graph_proto__descriptor, &arena, &message, &error),
                     SB_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "unfolds to far more memory"));
    sb_arena_end(&arena);
    sb_arena_begin(&arena, sb_wire_budget(sizeof nodes));
    assert_int_equal(sb_wire_unpack(nodes, sizeof nodes, &onnx__graph_proto__descriptor, &arena, &message, &error),
                     SB_OK);
    sb_arena_end(&arena);
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

static void test_taking_blocks(void **state) {
    sb_arena arena;
    sb_arena_begin(&arena, (size_t)1 << 24);
    void *pieces[4];
    for (int i = 0; i < 4; i++) {
        assert_non_null(sb_arena_allocate(&arena, 24));
        pieces[i] = sb_arena_allocate(&arena, SB_ARENA_OWN_BLOCK + (size_t)i);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % SB_ALIGNMENT, 0);
    }
    sb_arena_block *middle = sb_arena_take(&arena, pieces[1]);
    sb_arena_block *newest = sb_arena_take(&arena, pieces[3]);
    sb_arena_end(&arena);
    assert_int_equal(sb_allocation_count().live_blocks, 2);
    memset(pieces[1], 1, SB_ARENA_OWN_BLOCK + 1);
    memset(pieces[3], 1, SB_ARENA_OWN_BLOCK + 3);
    sb_arena_free_block(middle);
    sb_arena_free_block(newest);
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

/* Every prefix of a sound message, and every single flipped bit, is either sound or refused; what
 * is sound unpacks. */
static void test_mutations(void **state) {
    size_t size = text_proto(&onnx__model_proto__descriptor,
                             "ir_version: 8 producer_name: \"p\" opset_import { version: 17 } "
                             "graph { name: \"g\" node { input: \"x\" output: \"y\" op_type: \"Relu\" "
                             "attribute { name: \"a\" type: INTS ints: [1, -2, 300] } } "
                             "initializer { dims: 2 data_type: 1 float_data: [1.5, 2] name: \"w\" } "
                             "input { name: \"x\" type { tensor_type { elem_type: 1 shape { dim { "
                             "dim_param: \"n\" } } } } } output { name: \"y\" } }",
                             bytes);
    size_t sound = 0;
    for (size_t i = 0; i < size + 8 * size; i++) {
        static uint8_t changed[TEXT_PROTO_ROOM];
        memcpy(changed, bytes, size);
        size_t length = i < size ? i : size;
        if (i >= size)
            changed[(i - size) / 8] ^= (uint8_t)(1u << (i - size) % 8);
        sb_arena arena;
        ProtobufCMessage *message;
        sb_error error = {0};
        sb_arena_begin(&arena, sb_wire_budget(length));
        sb_status status = sb_wire_unpack(changed, length, &onnx__model_proto__descriptor, &arena, &message, &error);
        sound += status == SB_OK;
        assert_int_not_equal(status, SB_ERROR_OUT_OF_MEMORY); /* the check saw what protobuf-c saw */
        sb_arena_end(&arena);
    }
    assert_true(sound > size); /* flips in numbers and names are no damage */
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damage), cmocka_unit_test(test_packed),        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_budget), cmocka_unit_test(test_taking_blocks), cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
