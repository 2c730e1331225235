/* Sums that take over their addend's memory, and element-wise nodes their input's: where the plan lets them, where it must
 * not, and the same bits either way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/graph_builder.h"
#include "support/random.h"

#define SIDE 48 /* rows and columns of the sum */

static sb_tensor *random_tensor(random_source *source, int rank, const int64_t *dims) {
    sb_tensor *tensor;
    assert_int_equal(sb_tensor_create(SB_F32, rank, dims, &tensor, NULL), SB_OK);
    float *data = sb_tensor_mutable_data(tensor);
    for (int64_t i = 0; i < sb_tensor_elements(tensor); i++)
        data[i] = (float)((int32_t)(random_bits(source) >> 32)) * 0x1p-29f;
    return tensor;
}

/* A model of two inputs, x and what the addend is made from. */
typedef struct example {
    int rank;
    int64_t x_dims[4], z_dims[4];
    /* Adds the nodes and returns the output. */
    sb_value_id (*build)(builder *b, sb_value_id x, sb_value_id z);
    bool shares;
} example;

static sb_value_id weights(builder *b, int rank, const int64_t *dims) {
    random_source source = {7};
    return builder_constant(b, random_tensor(&source, rank, dims));
}

/* Softmax makes values that own memory and are never fused. */
static sb_value_id own(builder *b, sb_value_id value) {
    return builder_unary(b, "Softmax", value);
}

static sb_value_id integer(builder *b, int64_t value) {
    sb_tensor *tensor;
    assert_int_equal(sb_tensor_create(SB_S64, 1, (int64_t[]){1}, &tensor, NULL), SB_OK);
    *(int64_t *)sb_tensor_mutable_data(tensor) = value;
    return builder_constant(b, tensor);
}

static sb_value_id product(builder *b, sb_value_id x, int64_t k) {
    return builder_binary(b, "MatMul", x, weights(b, 2, (int64_t[]){k, SIDE}));
}

static sb_value_id build_sum(builder *b, sb_value_id x, sb_value_id z) {
    sb_value_id addend = own(b, z);
    sb_value_id sum = builder_binary(b, "Add", product(b, x, 40), addend);
    return own(b, sum);
}

/* The chain pauses in the result's memory, which would overwrite the addend. */
static sb_value_id build_long(builder *b, sb_value_id x, sb_value_id z) {
    sb_value_id addend = own(b, z);
    sb_value_id sum = builder_binary(b, "Add", product(b, x, 1000), addend);
    return own(b, sum);
}

static sb_value_id build_read_later(builder *b, sb_value_id x, sb_value_id z) {
    sb_value_id addend = own(b, z);
    sb_value_id sum = builder_binary(b, "Add", product(b, x, 40), addend);
    return builder_binary(b, "MatMul", own(b, sum), addend);
}

static sb_value_id build_twice(builder *b, sb_value_id x, sb_value_id z) {
    sb_value_id addend = own(b, z);
    sb_value_id sum = builder_binary(b, "Add", builder_binary(b, "Add", product(b, x, 40), addend), addend);
    return own(b, sum);
}

/* The product reads what the sum would overwrite. */
static sb_value_id build_of_itself(builder *b, sb_value_id x, sb_value_id z) {
    (void)z;
    sb_value_id addend = own(b, x);
    sb_value_id sum = builder_binary(b, "Add", product(b, addend, SIDE), addend);
    return own(b, sum);
}

/* The same memory, but not the same places: the kernel has to copy. */
static sb_value_id build_transposed(builder *b, sb_value_id x, sb_value_id z) {
    sb_value_id addend = own(b, z);
    sb_value_id sum = builder_binary(b, "Add", product(b, x, 40), builder_unary(b, "Transpose", addend));
    return own(b, sum);
}

/* What is behind the sum does not run in registers: the kernel has to copy. */
static sb_value_id build_with_call(builder *b, sb_value_id x, sb_value_id z) {
    sb_value_id addend = own(b, z);
    sb_value_id sum = builder_binary(b, "Mul", builder_binary(b, "Add", product(b, x, 40), addend), z);
    return own(b, sum);
}

static sb_value_id convolution(builder *b, sb_value_id x, int64_t inputs) {
    return builder_binary(b, "Conv", x, weights(b, 4, (int64_t[]){SIDE, inputs, 1, 1}));
}

static sb_value_id build_conv(builder *b, sb_value_id x, sb_value_id z) {
    sb_value_id addend = convolution(b, z, SIDE);
    sb_value_id sum = builder_binary(b, "Add", convolution(b, x, 40), addend);
    return own(b, builder_unary(b, "Relu", sum));
}

/* The addend's channels are outermost, the sum's innermost: the kernel has to copy. */
static sb_value_id build_conv_layouts(builder *b, sb_value_id x, sb_value_id z) {
    sb_value_id addend = own(b, z);
    sb_value_id sum = builder_binary(b, "Add", convolution(b, x, 40), addend);
    return own(b, builder_unary(b, "Relu", sum));
}

/* ---- element-wise bodies: two nodes, so that they are one fused node ---- */

static sb_value_id bend(builder *b, sb_value_id value) {
    return builder_unary(b, "Neg", builder_unary(b, "Sigmoid", value));
}

static sb_value_id build_body(builder *b, sb_value_id x, sb_value_id z) {
    return own(b, builder_binary(b, "MatMul", x, bend(b, own(b, z))));
}

/* x and z are both read, one of them along its rows only. */
static sb_value_id build_body_of_two(builder *b, sb_value_id x, sb_value_id z) {
    sb_value_id row = weights(b, 1, (int64_t[]){SIDE});
    sb_value_id both = builder_binary(b, "Add", builder_binary(b, "Mul", row, own(b, z)), own(b, x));
    return own(b, both);
}

static sb_value_id build_body_read_later(builder *b, sb_value_id x, sb_value_id z) {
    sb_value_id value = own(b, z);
    return own(b, builder_binary(b, "MatMul", builder_binary(b, "MatMul", x, bend(b, value)), value));
}

/* Two operands in one place, which the result must not take from either. */
static sb_value_id build_body_of_itself(builder *b, sb_value_id x, sb_value_id z) {
    sb_value_id value = own(b, z);
    sb_value_id sum = builder_binary(b, "Add", bend(b, value), builder_unary(b, "Transpose", value));
    return own(b, builder_binary(b, "MatMul", x, sum));
}

static sb_value_id build_body_transposed(builder *b, sb_value_id x, sb_value_id z) {
    return own(b, builder_binary(b, "MatMul", x, bend(b, builder_unary(b, "Transpose", own(b, z)))));
}

/* The same memory backwards: the kernel has to copy. */
static sb_value_id build_body_reversed(builder *b, sb_value_id x, sb_value_id z) {
    sb_value_id reversed = builder_node(
        b, "Slice", 5, (sb_value_id[]){own(b, z), integer(b, -1), integer(b, INT64_MIN), integer(b, 0), integer(b, -1)},
        NULL);
    return own(b, builder_binary(b, "MatMul", x, bend(b, reversed)));
}

static builder build(const example *one) {
    builder b = builder_create();
    sb_value_id x = builder_input(&b, SB_F32, one->rank, one->x_dims);
    sb_value_id z = builder_input(&b, SB_F32, one->rank, one->z_dims);
    assert_int_equal(sb_graph_add_output(b.graph, one->build(&b, x, z), NULL), SB_OK);
    builder_finish(&b);
    return b;
}

/* Whether a fused node's output lies where one of its inputs does. */
static bool shares(const builder *b, sb_tensor *const *inputs) {
    sb_program *program;
    sb_plan *plan;
    sb_value values[2] = {sb_value_of_tensor(inputs[0]), sb_value_of_tensor(inputs[1])};
    assert_int_equal(sb_program_create(b->graph, sb_isa_detect(), false, &program, NULL), SB_OK);
    assert_int_equal(sb_plan_create(program, &(sb_placement){0}, true, values, &plan, NULL), SB_OK);
    bool shared = false;
    for (size_t n = 0; n < b->graph->node_count; n++) {
        const sb_node *node = b->graph->nodes[n];
        for (int i = 0; i < node->input_count && strcmp(node->op->name, "Fused") == 0; i++) {
            /* A view has no place of its own. */
            sb_value_id input = node->inputs[i];
            const sb_node *maker =
                b->graph->values[input].producer >= 0 ? b->graph->nodes[b->graph->values[input].producer] : NULL;
            if (maker != NULL && (maker->op->flags & SB_OP_VIEW) != 0)
                input = maker->inputs[0];
            shared = shared || (plan->offsets[input] >= 0 && plan->offsets[input] == plan->offsets[node->outputs[0]]);
        }
    }
    sb_plan_destroy(plan, program);
    sb_program_destroy(program);
    return shared;
}

static void check(const example *one) {
    random_source source = {3};
    sb_tensor *inputs[2] = {random_tensor(&source, one->rank, one->x_dims),
                            random_tensor(&source, one->rank, one->z_dims)};
    sb_tensor *expected, *output;
    builder plain = build(one), passed = build(one);
    builder_run(&plain, true, SB_ISA_SCALAR, 1, inputs, &expected);
    assert_int_equal(sb_passes_run(passed.graph, passed.scope, NULL), SB_OK);
    assert_true(builder_count(&passed, "Fused") > 0);
    assert_int_equal(shares(&passed, inputs), one->shares);
    for (int threads = 1; threads < 4; threads++) {
        builder_run(&passed, false, sb_isa_detect(), threads, inputs, &output);
        assert_true(sb_tensor_equal(output, expected));
        sb_tensor_release(output);
    }
    sb_tensor_release(expected);
    sb_tensor_release(inputs[0]);
    sb_tensor_release(inputs[1]);
    builder_destroy(&plain);
    builder_destroy(&passed);
}

#define MATRIX(name, k, shared)                                                                                        \
    static void test_##name(void **state) {                                                                            \
        (void)state;                                                                                                   \
        check(&(example){2, {SIDE, k}, {SIDE, SIDE}, build_##name, shared});                                           \
    }
#define IMAGE(name, shared)                                                                                            \
    static void test_##name(void **state) {                                                                            \
        (void)state;                                                                                                   \
        check(&(example){4, {2, 40, 5, 7}, {2, SIDE, 5, 7}, build_##name, shared});                                    \
    }
MATRIX(sum, 40, true)
MATRIX(long, 1000, false)
MATRIX(read_later, 40, false)
MATRIX(twice, 40, false)
MATRIX(of_itself, SIDE, false)
MATRIX(transposed, 40, true)
MATRIX(with_call, 40, true)
MATRIX(body, SIDE, true)
MATRIX(body_of_two, SIDE, true)
MATRIX(body_read_later, SIDE, false)
MATRIX(body_of_itself, SIDE, false)
MATRIX(body_transposed, SIDE, true)
MATRIX(body_reversed, SIDE, true)
IMAGE(conv, true)
IMAGE(conv_layouts, true)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_read_later),
        cmocka_unit_test(test_twice),
        cmocka_unit_test(test_of_itself),
        cmocka_unit_test(test_transposed),
        cmocka_unit_test(test_with_call),
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_conv_layouts),
        cmocka_unit_test(test_body),
        cmocka_unit_test(test_body_of_two),
        cmocka_unit_test(test_body_read_later),
        cmocka_unit_test(test_body_of_itself),
        cmocka_unit_test(test_body_transposed),
        cmocka_unit_test(test_body_reversed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
