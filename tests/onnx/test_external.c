/* External data: mapped where they can be, copied where they must, and never from outside the model's folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/allocation.h"
#include "onnx/import.h"
#include "onnx/text_proto.h"
#include "support/failing.h"

static char folder[256];

static const char *in_folder(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const void *data, size_t size) {
    FILE *file = fopen(in_folder(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* The folder: model/ with weights.bin (the floats 0 … 7), sub/inner.bin, links; and secret.bin beside it. */
static int set_up(void **state) {
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/samebit-external-XXXXXX", base != NULL ? base : "/tmp");
    assert_non_null(mkdtemp(folder));
    float data[8];
    for (int i = 0; i < 8; i++)
        data[i] = (float)i;
    assert_int_equal(mkdir(in_folder("model"), 0700), 0);
    assert_int_equal(mkdir(in_folder("model/sub"), 0700), 0);
    write_file("secret.bin", data, sizeof data);
    write_file("model/weights.bin", data, sizeof data);
    write_file("model/sub/inner.bin", data, sizeof data);
    write_file("model/empty.bin", data, 0);
    assert_int_equal(symlink("../secret.bin", in_folder("model/outward")), 0);
    assert_int_equal(symlink("..", in_folder("model/up")), 0);
    assert_int_equal(symlink("sub/inner.bin", in_folder("model/inward")), 0);
    assert_int_equal(mkfifo(in_folder("model/pipe"), 0600), 0);
    return 0;
}

static int tear_down(void **state) {
    static const char *const files[] = {"model/pipe",
                                        "model/inward",
                                        "model/up",
                                        "model/outward",
                                        "model/empty.bin",
                                        "model/sub/inner.bin",
                                        "model/weights.bin",
                                        "model/model.onnx",
                                        "secret.bin",
                                        "model/sub",
                                        "model"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        remove(in_folder(files[i]));
    return rmdir(folder);
}

/* Loads model/model.onnx, one initialiser with the given external data; the first float goes to *value. */
static sb_status load(const char *dims, const char *external, float *value, sb_error *error) {
    static uint8_t bytes[TEXT_PROTO_ROOM];
    char text[1024];
    snprintf(text, sizeof text,
             "ir_version: 8 opset_import { version: 17 } graph { initializer { name: \"w\" %s "
             "data_type: 1 data_location: EXTERNAL %s } output { name: \"w\" } }",
             dims, external);
    write_file("model/model.onnx", bytes, text_proto(&onnx__model_proto__descriptor, text, bytes));
    sb_scope *scope;
    sb_graph *graph;
    SB_TRY(sb_scope_create(&scope, error));
    sb_status status = sb_onnx_load_file(in_folder("model/model.onnx"), scope, &graph, NULL, NULL, error);
    if (status == SB_OK) {
        const sb_tensor *tensor = graph->values[0].fact.constant;
        *value = sb_tensor_elements(tensor) != 0 ? *(const float *)sb_tensor_data(tensor) : -1;
        sb_graph_destroy(graph);
    }
    sb_scope_destroy(scope);
    return status;
}

static void expect(const char *dims, const char *external, float wanted) {
    float value = -2;
    sb_error error = {0};
    if (load(dims, external, &value, &error) != SB_OK)
        fail_msg("%s: %s", external, error.message);
    assert_true(value == wanted);
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

static void expect_failure(const char *external, sb_status status, const char *message) {
    float value;
    sb_error error = {0};
    assert_int_equal(load("dims: 2", external, &value, &error), status);
    if (strstr(error.message, message) == NULL || strstr(error.message, "tensor 'w'") == NULL)
        fail_msg("'%s' is not in '%s'", message, error.message);
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

#define AT(location) "external_data { key: \"location\" value: \"" location "\" } "
#define WITH(key, value) "external_data { key: \"" key "\" value: \"" value "\" } "

static void test_found(void **state) {
    expect("dims: 2", AT("weights.bin"), 0);
    expect("dims: 2", AT("weights.bin") WITH("offset", "4") WITH("length", "8"), 1);
    expect("dims: 8", AT("weights.bin") WITH("checksum", "whatever"), 0);
    expect("dims: 2", AT("sub/inner.bin") WITH("offset", "24"), 6);
    expect("dims: 2", AT("./sub/.//inner.bin"), 0);
    expect("dims: 2", AT("inward"), 0);
    expect("dims: 0", AT("empty.bin"), -1);
    expect("dims: 0", AT("weights.bin") WITH("offset", "32"), -1);
}

/* Not a multiple of the element's size: copied. */
static void test_misaligned(void **state) {
    /* bytes 6 and 7 end the float 1, bytes 8 and 9 begin the float 2 */
    const uint32_t bits = 0x00003f80;
    float wanted;
    memcpy(&wanted, &bits, sizeof wanted);
    expect("dims: 1", AT("weights.bin") WITH("offset", "6"), wanted);
}

/* Elements of 4 bits, two a byte: unpacked, of any offset, and counted as the bytes that they take. */
static void test_packed(void **state) {
    /* bytes 6 and 7 are 0x80 and 0x3f: elements 0, 8, 15 and 3 */
    const uint8_t elements[] = {0, 8, 15, 3};
    float wanted;
    memcpy(&wanted, elements, sizeof wanted);
    expect("dims: 4", AT("weights.bin") WITH("offset", "6") WITH("length", "2") "data_type: 22 ", wanted);
    expect("dims: 64", AT("weights.bin") "data_type: 21 ", 0);
    expect_failure(AT("weights.bin") WITH("length", "2") "data_type: 22 ", SB_ERROR_INVALID_MODEL,
                   "it has 2 bytes of external data where s4[2] needs 1");
    expect_failure(AT("weights.bin") WITH("offset", "32") "data_type: 25 ", SB_ERROR_INVALID_FILE, "which has only 32");
}

static void test_outside(void **state) {
    expect_failure(AT("../secret.bin"), SB_ERROR_INVALID_MODEL, "may lie outside the model's folder");
    expect_failure(AT("sub/../../secret.bin"), SB_ERROR_INVALID_MODEL, "may lie outside");
    expect_failure(AT("sub/.."), SB_ERROR_INVALID_MODEL, "may lie outside");
    expect_failure(AT("/etc/passwd"), SB_ERROR_INVALID_MODEL, "may lie outside");
    expect_failure(AT(""), SB_ERROR_INVALID_MODEL, "may lie outside");
    expect_failure(AT("outward"), SB_ERROR_INVALID_MODEL, "a link leads out of the model's folder");
    expect_failure(AT("up/secret.bin"), SB_ERROR_INVALID_MODEL, "a link leads out");
}

static void test_bad_files(void **state) {
    expect_failure(AT("missing.bin"), SB_ERROR_IO, "missing.bin");
    expect_failure(AT("sub"), SB_ERROR_IO, "not a regular file");
    expect_failure(AT("pipe"), SB_ERROR_IO, "not a regular file");
    expect_failure(AT("empty.bin"), SB_ERROR_INVALID_FILE, "which has only 0");
    expect_failure(AT("weights.bin") WITH("offset", "28"), SB_ERROR_INVALID_FILE,
                   "bytes 28 to 36 of weights.bin, which has only 32");
    expect_failure(AT("weights.bin") WITH("offset", "9223372036854775807"), SB_ERROR_INVALID_FILE, "which has only 32");
    expect_failure(AT("weights.bin") WITH("offset", "99999999999999999999"), SB_ERROR_INVALID_MODEL,
                   "no number of bytes");
    expect_failure(AT("weights.bin") WITH("offset", "-4"), SB_ERROR_INVALID_MODEL,
                   "the offset of its external data is '-4'");
    expect_failure(AT("weights.bin") WITH("offset", "4x"), SB_ERROR_INVALID_MODEL, "'4x'");
    expect_failure(AT("weights.bin") WITH("length", "12"), SB_ERROR_INVALID_MODEL,
                   "it has 12 bytes of external data where f32[2] needs 8");
    expect_failure(WITH("offset", "4"), SB_ERROR_INVALID_MODEL, "no location");
}

/* A few bytes of file must not copy one large file a thousand times. */
static void test_copies(void **state) {
    static uint8_t bytes[TEXT_PROTO_ROOM];
    static char text[40000] = "ir_version: 8 opset_import { version: 17 } graph { ";
    for (int i = 0; i < 20; i++) {
        char one[256];
        snprintf(one, sizeof one,
                 "initializer { name: \"w%d\" dims: 4 data_type: 1 data_location: EXTERNAL "
                 "external_data { key: \"location\" value: \"weights.bin\" } external_data { key: "
                 "\"offset\" value: \"1\" } } ",
                 i);
        strcat(text, one);
    }
    strcat(text, "}");
    write_file("model/model.onnx", bytes, text_proto(&onnx__model_proto__descriptor, text, bytes));
    sb_scope *scope;
    sb_graph *graph;
    sb_error error = {0};
    assert_int_equal(sb_scope_create(&scope, NULL), SB_OK);
    assert_int_equal(sb_onnx_load_file(in_folder("model/model.onnx"), scope, &graph, NULL, NULL, &error),
                     SB_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "tensor 'w2': its external data begin at byte 1"));
    sb_scope_destroy(scope);
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

static void test_from_memory(void **state) {
    static uint8_t bytes[TEXT_PROTO_ROOM];
    size_t size = text_proto(&onnx__model_proto__descriptor,
                             "ir_version: 8 opset_import { version: 17 } graph { initializer { name: "
                             "\"w\" dims: 2 data_type: 1 data_location: EXTERNAL " AT("weights.bin") "} }",
                             bytes);
    sb_scope *scope;
    sb_graph *graph;
    sb_error error = {0};
    assert_int_equal(sb_scope_create(&scope, NULL), SB_OK);
    assert_int_equal(sb_onnx_load(bytes, size, NULL, scope, &graph, NULL, NULL, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "load it from its file"));
    assert_int_equal(sb_onnx_load(bytes, size, in_folder("model"), scope, &graph, NULL, NULL, &error), SB_OK);
    sb_graph_destroy(graph);
    sb_scope_destroy(scope);
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

/* A file so large that its pages are let go while it is read: all tensors must be whole. */
static void test_large_file(void **state) {
    enum { TENSORS = 3, ELEMENTS = 5 << 20 };
    float *data = malloc(ELEMENTS * sizeof *data);
    assert_non_null(data);
    FILE *file = fopen(in_folder("model/model.onnx"), "wb");
    assert_non_null(file);
    Onnx__TensorProto tensor = ONNX__TENSOR_PROTO__INIT;
    int64_t dims = ELEMENTS;
    tensor.n_dims = 1, tensor.dims = &dims, tensor.has_data_type = 1, tensor.data_type = 1;
    tensor.has_raw_data = 1;
    tensor.raw_data = (ProtobufCBinaryData){ELEMENTS * sizeof *data, (uint8_t *)data};
    char names[TENSORS][3] = {"w0", "w1", "w2"};
    Onnx__TensorProto tensors[TENSORS], *initializers[TENSORS];
    for (int i = 0; i < TENSORS; i++) {
        tensors[i] = tensor;
        tensors[i].name = names[i];
        initializers[i] = &tensors[i];
    }
    Onnx__GraphProto graph_proto = ONNX__GRAPH_PROTO__INIT;
    graph_proto.n_initializer = TENSORS, graph_proto.initializer = initializers;
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    model.has_ir_version = 1, model.ir_version = 8, model.graph = &graph_proto;
    for (int64_t i = 0; i < ELEMENTS; i++)
        data[i] = (float)i;
    size_t size = onnx__model_proto__get_packed_size(&model);
    uint8_t *packed = malloc(size);
    assert_non_null(packed);
    onnx__model_proto__pack(&model, packed);
    assert_int_equal(fwrite(packed, 1, size, file), size);
    fclose(file);
    free(packed);

    sb_scope *scope;
    sb_graph *graph;
    assert_int_equal(sb_scope_create(&scope, NULL), SB_OK);
    assert_int_equal(sb_onnx_load_file(in_folder("model/model.onnx"), scope, &graph, NULL, NULL, NULL), SB_OK);
    assert_int_equal(graph->value_count, TENSORS);
    for (int i = 0; i < TENSORS; i++)
        assert_memory_equal(sb_tensor_data(graph->values[i].fact.constant), data, ELEMENTS * sizeof *data);
    sb_graph_destroy(graph);
    sb_scope_destroy(scope);
    free(data);
    assert_int_equal(sb_allocation_count().live_blocks, 0);
}

static sb_status load_once(void *context) {
    float value;
    sb_error error;
    return load("dims: 2", context, &value, &error);
}

static void test_no_memory(void **state) {
    check_failing_allocations(load_once, AT("weights.bin"));
    check_failing_allocations(load_once, AT("weights.bin") WITH("offset", "2"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found),       cmocka_unit_test(test_misaligned), cmocka_unit_test(test_packed),
        cmocka_unit_test(test_outside),     cmocka_unit_test(test_bad_files),  cmocka_unit_test(test_copies),
        cmocka_unit_test(test_from_memory), cmocka_unit_test(test_large_file), cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
