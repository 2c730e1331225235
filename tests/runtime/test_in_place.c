/* Sums that take over their addend's memory: where the plan lets them, where it must not, and the same bits either way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/graph_builder.h"
#include "support/random.h"

#define SIDE 48 /* rows and columns of the sum */

static iv_tensor *random_tensor(random_source *source, int rank, const int64_t *dims) {
    iv_tensor *tensor;
    assert_int_equal(iv_tensor_create(IV_F32, rank, dims, &tensor, NULL), IV_OK);
    float *data = iv_tensor_mutable_data(tensor);
    for (int64_t i = 0; i < iv_tensor_elements(tensor); i++)
        data[i] = (float)((int32_t)(random_bits(source) >> 32)) * 0x1p-29f;
    return tensor;
}

/* A model of two inputs, x and what the addend is made from. */
typedef struct example {
    int rank;
    int64_t x_dims[4], z_dims[4];
    /* Adds the nodes and returns the output. */
    iv_value_id (*build)(builder *b, iv_value_id x, iv_value_id z);
    bool shares;
} example;

static iv_value_id weights(builder *b, int rank, const int64_t *dims) {
    random_source source = {7};
    return builder_constant(b, random_tensor(&source, rank, dims));
}

/* Softmax makes values that own memory and are never fused. */
static iv_value_id own(builder *b, iv_value_id value) {
    return builder_unary(b, "Softmax", value);
}

static iv_value_id product(builder *b, iv_value_id x, int64_t k) {
    return builder_binary(b, "MatMul", x, weights(b, 2, (int64_t[]){k, SIDE}));
}

static iv_value_id build_sum(builder *b, iv_value_id x, iv_value_id z) {
    iv_value_id addend = own(b, z);
    iv_value_id sum = builder_binary(b, "Add", product(b, x, 40), addend);
    return own(b, sum);
}

/* The chain pauses in the result's memory, which would overwrite the addend. */
static iv_value_id build_long(builder *b, iv_value_id x, iv_value_id z) {
    iv_value_id addend = own(b, z);
    iv_value_id sum = builder_binary(b, "Add", product(b, x, 1000), addend);
    return own(b, sum);
}

static iv_value_id build_read_later(builder *b, iv_value_id x, iv_value_id z) {
    iv_value_id addend = own(b, z);
    iv_value_id sum = builder_binary(b, "Add", product(b, x, 40), addend);
    return builder_binary(b, "MatMul", own(b, sum), addend);
}

static iv_value_id build_twice(builder *b, iv_value_id x, iv_value_id z) {
    iv_value_id addend = own(b, z);
    iv_value_id sum = builder_binary(b, "Add", builder_binary(b, "Add", product(b, x, 40), addend), addend);
    return own(b, sum);
}

/* The product reads what the sum would overwrite. */
static iv_value_id build_of_itself(builder *b, iv_value_id x, iv_value_id z) {
    (void)z;
    iv_value_id addend = own(b, x);
    iv_value_id sum = builder_binary(b, "Add", product(b, addend, SIDE), addend);
    return own(b, sum);
}

/* The same memory, but not the same places: the kernel has to copy. */
static iv_value_id build_transposed(builder *b, iv_value_id x, iv_value_id z) {
    iv_value_id addend = own(b, z);
    iv_value_id sum = builder_binary(b, "Add", product(b, x, 40), builder_unary(b, "Transpose", addend));
    return own(b, sum);
}

/* What is behind the sum does not run in registers: the kernel has to copy. */
static iv_value_id build_with_call(builder *b, iv_value_id x, iv_value_id z) {
    iv_value_id addend = own(b, z);
    iv_value_id sum = builder_binary(b, "Mul", builder_binary(b, "Add", product(b, x, 40), addend), z);
    return own(b, sum);
}

static iv_value_id convolution(builder *b, iv_value_id x, int64_t inputs) {
    return builder_binary(b, "Conv", x, weights(b, 4, (int64_t[]){SIDE, inputs, 1, 1}));
}

static iv_value_id build_conv(builder *b, iv_value_id x, iv_value_id z) {
    iv_value_id addend = convolution(b, z, SIDE);
    iv_value_id sum = builder_binary(b, "Add", convolution(b, x, 40), addend);
    return own(b, builder_unary(b, "Relu", sum));
}

/* The addend's channels are outermost, the sum's innermost: the kernel has to copy. */
static iv_value_id build_conv_layouts(builder *b, iv_value_id x, iv_value_id z) {
    iv_value_id addend = own(b, z);
    iv_value_id sum = builder_binary(b, "Add", convolution(b, x, 40), addend);
    return own(b, builder_unary(b, "Relu", sum));
}

static builder build(const example *one) {
    builder b = builder_create();
    iv_value_id x = builder_input(&b, IV_F32, one->rank, one->x_dims);
    iv_value_id z = builder_input(&b, IV_F32, one->rank, one->z_dims);
    assert_int_equal(iv_graph_add_output(b.graph, one->build(&b, x, z), NULL), IV_OK);
    builder_finish(&b);
    return b;
}

/* Whether a fused node's output lies where one of its inputs does. */
static bool shares(const builder *b, iv_tensor *const *inputs) {
    iv_program *program;
    iv_plan *plan;
    iv_value values[2] = {iv_value_of_tensor(inputs[0]), iv_value_of_tensor(inputs[1])};
    assert_int_equal(iv_program_create(b->graph, iv_isa_detect(), false, &program, NULL), IV_OK);
    assert_int_equal(iv_plan_create(program, &(iv_placement){NULL, NULL}, true, values, &plan, NULL), IV_OK);
    bool shared = false;
    for (size_t n = 0; n < b->graph->node_count; n++) {
        const iv_node *node = b->graph->nodes[n];
        for (int i = 0; i < node->input_count && strcmp(node->op->name, "Fused") == 0; i++) {
            /* A view has no place of its own. */
            iv_value_id input = node->inputs[i];
            const iv_node *maker = b->graph->values[input].producer >= 0
                                       ? b->graph->nodes[b->graph->values[input].producer]
                                       : NULL;
            if (maker != NULL && (maker->op->flags & IV_OP_VIEW) != 0)
                input = maker->inputs[0];
            shared = shared || (plan->offsets[input] >= 0 &&
                                plan->offsets[input] == plan->offsets[node->outputs[0]]);
        }
    }
    iv_plan_destroy(plan, program);
    iv_program_destroy(program);
    return shared;
}

static void check(const example *one) {
    random_source source = {3};
    iv_tensor *inputs[2] = {random_tensor(&source, one->rank, one->x_dims),
                            random_tensor(&source, one->rank, one->z_dims)};
    iv_tensor *expected, *output;
    builder plain = build(one), passed = build(one);
    builder_run(&plain, true, IV_ISA_SCALAR, 1, inputs, &expected);
    assert_int_equal(iv_passes_run(passed.graph, passed.scope, NULL), IV_OK);
    assert_true(builder_count(&passed, "Fused") > 0);
    assert_int_equal(shares(&passed, inputs), one->shares);
    for (int threads = 1; threads < 4; threads++) {
        builder_run(&passed, false, iv_isa_detect(), threads, inputs, &output);
        assert_true(iv_tensor_equal(output, expected));
        iv_tensor_release(output);
    }
    iv_tensor_release(expected);
    iv_tensor_release(inputs[0]);
    iv_tensor_release(inputs[1]);
    builder_destroy(&plain);
    builder_destroy(&passed);
}

#define MATRIX(name, k, shared)                                                                    \
    static void test_##name(void **state) {                                                        \
        (void)state;                                                                               \
        check(&(example){2, {SIDE, k}, {SIDE, SIDE}, build_##name, shared});                       \
    }
#define IMAGE(name, shared)                                                                        \
    static void test_##name(void **state) {                                                        \
        (void)state;                                                                               \
        check(&(example){4, {2, 40, 5, 7}, {2, SIDE, 5, 7}, build_##name, shared});                \
    }
MATRIX(sum, 40, true)
MATRIX(long, 1000, false)
MATRIX(read_later, 40, false)
MATRIX(twice, 40, false)
MATRIX(of_itself, SIDE, false)
MATRIX(transposed, 40, true)
MATRIX(with_call, 40, true)
IMAGE(conv, true)
IMAGE(conv_layouts, true)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum),        cmocka_unit_test(test_long),
        cmocka_unit_test(test_read_later), cmocka_unit_test(test_twice),
        cmocka_unit_test(test_of_itself),  cmocka_unit_test(test_transposed),
        cmocka_unit_test(test_with_call),  cmocka_unit_test(test_conv),
        cmocka_unit_test(test_conv_layouts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
