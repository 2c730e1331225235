/* The public builder: a network made by calls gives the digest of the file's, everything that a node can have, and
 * memory that runs out at every place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "api/building.h"
#include "onnx/import.h"
#include "support/failing.h"

/* ---- the digits ---- */

/* Weights come from the file, the network from here. */
typedef struct digits {
    sb_builder *builder;
    sb_graph *file;
} digits;

static sb_builder_value weight(digits *d, const char *layer, const char *part) {
    char name[64];
    sb_builder_value value = 0;
    snprintf(name, sizeof name, "%s%s", layer, part);
    for (size_t v = 0; v < d->file->value_count; v++) {
        if (strcmp(d->file->values[v].name, name) == 0)
            MUST(sb_builder_constant(d->builder, name, d->file->values[v].fact.constant, &value, error));
    }
    assert_true(value != 0);
    return value;
}

static sb_builder_value op(digits *d, const char *name, int count, const sb_builder_value *inputs, int attribute_count,
                           const sb_builder_attribute *attributes) {
    sb_builder_node node = SB_BUILDER_NODE_DEFAULT;
    sb_builder_value output;
    node.op = name;
    node.version = 17;
    node.input_count = count;
    node.inputs = inputs;
    node.attribute_count = attribute_count;
    node.attributes = attributes;
    MUST(sb_builder_add_node(d->builder, &node, &output, error));
    return output;
}

static sb_builder_value convolve(digits *d, const char *index, sb_builder_value x) {
    char conv[16], norm[16];
    snprintf(conv, sizeof conv, "conv%s", index);
    snprintf(norm, sizeof norm, "norm%s", index);
    sb_builder_attribute window[] = {sb_attribute_ints("kernel_shape", 2, (int64_t[]){3, 3}),
                                     sb_attribute_ints("pads", 4, (int64_t[]){1, 1, 1, 1})};
    x = op(d, "Conv", 3, (sb_builder_value[]){x, weight(d, conv, ".weight"), weight(d, conv, ".bias")}, 2, window);
    sb_builder_attribute epsilon = sb_attribute_float("epsilon", 1e-5f);
    x = op(d, "BatchNormalization", 5,
           (sb_builder_value[]){x, weight(d, norm, ".weight"), weight(d, norm, ".bias"),
                                weight(d, norm, ".running_mean"), weight(d, norm, ".running_var")},
           1, &epsilon);
    return op(d, "Relu", 1, &x, 0, NULL);
}

static sb_builder_value pool(digits *d, sb_builder_value x) {
    sb_builder_attribute window[] = {sb_attribute_ints("kernel_shape", 2, (int64_t[]){2, 2}),
                                     sb_attribute_ints("strides", 2, (int64_t[]){2, 2})};
    return op(d, "MaxPool", 1, &x, 2, window);
}

static sb_builder_value dense(digits *d, const char *layer, sb_builder_value x) {
    sb_builder_attribute transposed = sb_attribute_int("transB", 1);
    return op(d, "Gemm", 3, (sb_builder_value[]){x, weight(d, layer, ".weight"), weight(d, layer, ".bias")}, 1,
              &transposed);
}

static sb_model *build_digits(digits *d) {
    sb_model *model;
    sb_builder_value x;
    MUST(add_input(d->builder, "image", 4, (int64_t[]){-1, 1, 8, 8}, &x, error));
    x = op(d, "Mul", 2, (sb_builder_value[]){x, weight(d, "grey_scale", "")}, 0, NULL);
    x = convolve(d, "1", x);
    x = pool(d, convolve(d, "2", x));
    x = pool(d, convolve(d, "3", x));
    x = op(d, "Flatten", 1, &x, 0, NULL);
    x = dense(d, "dense1", x);
    x = dense(d, "dense2", op(d, "Relu", 1, &x, 0, NULL));
    x = op(d, "Softmax", 1, &x, 0, NULL);
    MUST(sb_builder_output(d->builder, x, error));
    MUST(sb_builder_build(d->builder, NULL, &model, error));
    return model;
}

static void test_digits(void **state) {
    (void)state;
    digits d;
    sb_scope *scope;
    sb_tensor *samples, *output;
    sb_session *session;
    char digest[SB_DIGEST_TEXT_BYTES], expected[SB_DIGEST_TEXT_BYTES] = "";
    MUST(sb_scope_create(&scope, error));
    MUST(sb_onnx_load_file(DIGITS "/digits.onnx", scope, &d.file, NULL, NULL, error));
    MUST(sb_builder_create(&d.builder, error));
    sb_model *model = build_digits(&d);
    sb_builder_destroy(d.builder);
    sb_graph_destroy(d.file);
    sb_scope_destroy(scope);
    assert_string_equal(sb_model_input(model, 0)->dim_texts[0], "batch");
    MUST(sb_tensor_load(DIGITS "/samples.npy", NULL, &samples, error));
    MUST(sb_session_create(model, NULL, &session, error));
    MUST(sb_session_run_tensors(session, &samples, &output, error));
    sb_value answer = sb_value_of_tensor(output);
    MUST(sb_digest_values(1, &answer, digest, error));
    FILE *file = fopen(DIGITS "/digest.txt", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%64s", expected), 1);
    fclose(file);
    /* The digest of the file's network covers names too: the command prints it for `probabilities`. */
    assert_non_null(strstr(digest, expected));
    sb_value_release(&answer);
    sb_tensor_release(samples);
    sb_session_destroy(session);
    sb_model_release(model);
}

/* ---- everything else that a graph may have ---- */

/* y = x > 0 (by its sum) ? x + w : x * k, with w of the graph around and k captured as a constant; and z = a Loop that
 * doubles x three times. */
static sb_status build_control(sb_builder *builder, sb_model **model, sb_error *error) {
    const float two = 2, zero = 0;
    const int64_t three = 3;
    const bool yes = true;
    sb_builder_value x, w, k, nothing, sum, condition, y, inner, trips, true_value, z;
    sb_builder_graph then_branch, else_branch, body;
    SB_TRY(add_input(builder, "x", 1, (int64_t[]){-1}, &x, error));
    SB_TRY(add_input(builder, "w", 1, (int64_t[]){1}, &w, error));
    SB_TRY(add_constant(builder, "k", SB_F32, 0, NULL, &two, &k, error));
    SB_TRY(add_constant(builder, NULL, SB_F32, 0, NULL, &zero, &nothing, error));
    SB_TRY(sb_builder_op(builder, "ReduceSum", 1, &x, 1, (sb_builder_attribute[]){sb_attribute_int("keepdims", 0)},
                         &sum, error));
    SB_TRY(add_binary(builder, "Greater", sum, nothing, &condition, error));
    SB_TRY(sb_builder_begin_graph(builder, "then", error));
    SB_TRY(add_binary(builder, "Add", x, w, &inner, error));
    SB_TRY(sb_builder_output(builder, inner, error));
    SB_TRY(sb_builder_end_graph(builder, &then_branch, error));
    SB_TRY(sb_builder_begin_graph(builder, "else", error));
    SB_TRY(add_binary(builder, "Mul", x, k, &inner, error));
    SB_TRY(sb_builder_output(builder, inner, error));
    SB_TRY(sb_builder_end_graph(builder, &else_branch, error));
    sb_builder_attribute branches[] = {sb_attribute_graph("then_branch", then_branch),
                                       sb_attribute_graph("else_branch", else_branch)};
    SB_TRY(sb_builder_op(builder, "If", 1, &condition, 2, branches, &y, error));
    SB_TRY(sb_builder_output(builder, y, error));

    SB_TRY(add_constant(builder, "trips", SB_S64, 0, NULL, &three, &trips, error));
    SB_TRY(add_constant(builder, "yes", SB_BOOL, 0, NULL, &yes, &true_value, error));
    SB_TRY(sb_builder_begin_graph(builder, "body", error));
    sb_builder_value iteration, go_on, carried;
    SB_TRY(sb_builder_input(builder, &(sb_value_description){.name = "i"}, &iteration, error));
    SB_TRY(sb_builder_input(builder, &(sb_value_description){.name = "go_on"}, &go_on, error));
    SB_TRY(sb_builder_input(builder, &(sb_value_description){.name = "carried"}, &carried, error));
    SB_TRY(add_binary(builder, "Add", carried, carried, &inner, error));
    SB_TRY(sb_builder_output(builder, go_on, error));
    SB_TRY(sb_builder_output(builder, inner, error));
    SB_TRY(sb_builder_end_graph(builder, &body, error));
    sb_builder_attribute loop = sb_attribute_graph("body", body);
    SB_TRY(sb_builder_op(builder, "Loop", 3, (sb_builder_value[]){trips, true_value, x}, 1, &loop, &z, error));
    SB_TRY(sb_builder_output(builder, z, error));
    return sb_builder_build(builder, NULL, model, error);
}

static void check_run(sb_model *model, const float *x, const float *expected_y, const float *expected_z) {
    const float w = 0.5f;
    sb_session *session;
    sb_tensor *inputs[2], *outputs[2];
    MUST(sb_session_create(model, NULL, &session, error));
    MUST(sb_tensor_from_data(SB_F32, 1, (int64_t[]){2}, x, &inputs[0], error));
    MUST(sb_tensor_from_data(SB_F32, 1, (int64_t[]){1}, &w, &inputs[1], error));
    MUST(sb_session_run_tensors(session, inputs, outputs, error));
    assert_memory_equal(sb_tensor_data(outputs[0]), expected_y, 2 * sizeof(float));
    assert_memory_equal(sb_tensor_data(outputs[1]), expected_z, 2 * sizeof(float));
    for (int i = 0; i < 2; i++) {
        sb_tensor_release(inputs[i]);
        sb_tensor_release(outputs[i]);
    }
    sb_session_destroy(session);
}

static void test_control(void **state) {
    (void)state;
    sb_builder *builder;
    sb_model *model;
    MUST(sb_builder_create(&builder, error));
    MUST(build_control(builder, &model, error));
    sb_builder_destroy(builder);
    check_run(model, (float[]){1, 2}, (float[]){1.5f, 2.5f}, (float[]){8, 16});
    check_run(model, (float[]){-1, -2}, (float[]){-2, -4}, (float[]){-8, -16});
    sb_model_release(model);
}

/* Names of nodes and outputs, omitted inputs and outputs, and attributes of every kind. */
static void test_nodes(void **state) {
    (void)state;
    sb_builder *builder;
    sb_model *model;
    sb_inspection *inspection;
    sb_builder_value x, outputs[2], split[2], constant;
    const float most = 6;
    MUST(sb_builder_create(&builder, error));
    MUST(add_input(builder, "x", 2, (int64_t[]){-1, 4}, &x, error));
    MUST(add_constant(builder, NULL, SB_F32, 0, NULL, &most, &constant, error));
    sb_builder_node node = SB_BUILDER_NODE_DEFAULT;
    node.op = "Clip";
    node.domain = "ai.onnx";
    node.name = "clip";
    node.version = 12;
    node.input_count = 3;
    node.inputs = (sb_builder_value[]){x, 0, constant};
    node.output_names = (const char *const[]){"clipped"};
    MUST(sb_builder_add_node(builder, &node, outputs, error));
    sb_builder_attribute attributes[] = {sb_attribute_int("axis", 1), sb_attribute_ints("split", 2, (int64_t[]){1, 3})};
    node = (sb_builder_node)SB_BUILDER_NODE_DEFAULT;
    node.op = "Split";
    node.version = 11;
    node.input_count = 1;
    node.inputs = outputs;
    node.attribute_count = 2;
    node.attributes = attributes;
    node.output_count = 2;
    node.output_names = (const char *const[]){"", "right"};
    MUST(sb_builder_add_node(builder, &node, split, error));
    assert_int_equal(split[0], 0);
    MUST(sb_builder_output(builder, split[1], error));
    sb_model_options options = SB_MODEL_OPTIONS_DEFAULT;
    options.passes = false;
    MUST(sb_builder_build(builder, &options, &model, error));
    sb_builder_destroy(builder);
    MUST(sb_model_inspect(model, NULL, &inspection, error));
    assert_string_equal(sb_inspection_node(inspection, 0)->name, "clip");
    assert_int_equal(sb_inspection_node(inspection, 0)->version, 12);
    assert_string_equal(sb_inspection_node(inspection, 1)->name, "Split_1");
    assert_string_equal(sb_inspection_node(inspection, 1)->attributes, "axis=1 split=[1,3]");
    assert_string_equal(sb_model_output(model, 0)->name, "right");
    assert_int_equal(sb_model_output(model, 0)->dims[1], 3);
    sb_inspection_release(inspection);
    sb_model_release(model);
}

static sb_status make_constants(sb_builder *builder, sb_model **model, sb_error *error) {
    const float half = 0.5f;
    sb_tensor *tensor;
    sb_builder_value made[4];
    sb_builder_node node = SB_BUILDER_NODE_DEFAULT;
    SB_TRY(sb_tensor_from_data(SB_F32, 1, (int64_t[]){1}, &half, &tensor, error));
    sb_builder_attribute value = sb_attribute_tensor("value", tensor);
    node.op = "ConstantOfShape";
    node.attribute_count = 1;
    node.attributes = &value;
    node.input_count = 1;
    sb_builder_value shape;
    sb_status status = add_constant(builder, "shape", SB_S64, 1, (int64_t[]){1}, &(int64_t){3}, &shape, error);
    node.inputs = &shape;
    if (status == SB_OK)
        status = sb_builder_add_node(builder, &node, &made[0], error);
    sb_tensor_release(tensor);
    SB_TRY(status);
    SB_TRY(sb_builder_output(builder, made[0], error));
    /* A list of numbers and one of texts. */
    sb_builder_value x;
    SB_TRY(add_input(builder, "x", 3, (int64_t[]){2, -1, 3}, &x, error));
    sb_builder_value w, r;
    SB_TRY(add_input(builder, "w", 3, (int64_t[]){1, 1, 3}, &w, error));
    SB_TRY(add_input(builder, "r", 3, (int64_t[]){1, 1, 1}, &r, error));
    sb_builder_attribute attributes[] = {
        sb_attribute_int("hidden_size", 1), sb_attribute_texts("activations", 1, (const char *const[]){"LeakyRelu"}),
        sb_attribute_floats("activation_alpha", 1, (float[]){0.25f}), sb_attribute_text("direction", "forward")};
    SB_TRY(sb_builder_op(builder, "RNN", 3, (sb_builder_value[]){x, w, r}, 4, attributes, &made[1], error));
    SB_TRY(sb_builder_output(builder, made[1], error));
    return sb_builder_build(builder, NULL, model, error);
}

static void test_attributes(void **state) {
    (void)state;
    sb_builder *builder;
    sb_model *model;
    MUST(sb_builder_create(&builder, error));
    MUST(make_constants(builder, &model, error));
    sb_builder_destroy(builder);
    assert_int_equal(sb_model_output(model, 0)->dims[0], 3);
    assert_int_equal(sb_model_output(model, 1)->rank, 4);
    sb_model_release(model);
}

/* ---- memory ---- */

static sb_status attempt(void *context) {
    sb_status (*build)(sb_builder *, sb_model **, sb_error *) =
        *(sb_status(**)(sb_builder *, sb_model **, sb_error *))context;
    sb_builder *builder;
    sb_model *model = NULL;
    SB_TRY(sb_builder_create(&builder, NULL));
    sb_status status = build(builder, &model, NULL);
    sb_builder_destroy(builder);
    sb_model_release(model);
    return status;
}

static void test_memory(void **state) {
    (void)state;
    sb_status (*builds[])(sb_builder *, sb_model **, sb_error *) = {build_control, make_constants};
    for (size_t i = 0; i < sizeof builds / sizeof builds[0]; i++)
        check_failing_allocations(attempt, &builds[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digits),     cmocka_unit_test(test_control), cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_attributes), cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
