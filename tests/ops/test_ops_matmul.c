/* MatMul: the definition against plain loops. */
#include "ops/node_cases.h"

#include "numerics/chain.h"

static int64_t random_extent(random_source *source) {
    static const int64_t sizes[] = {0, 1, 1, 2, 3, 5, 8, 16, 17, 31, 33, 64, 70};
    return sizes[random_between(source, 0, 12)];
}

/* The definition, by the shortest loops that say it. */
static void definition_is_one_chain(void **unused) {
    random_source source = {4};
    for (int round = 0; round < 40; round++) {
        int64_t m = random_extent(&source), n = random_extent(&source), k = random_extent(&source);
        sb_value outputs[NODE_OUTPUTS] = {{0}};
        node_runner runner = {.op = "MatMul", .version = 9, .input_count = 2, .output_count = 1};
        sb_dtype dtype = round % 2 == 0 ? SB_F32 : SB_S64;
        runner.inputs[0] = random_tensor(&source, WIDE, dtype, 2, (int64_t[]){m, k});
        runner.inputs[1] = random_tensor(&source, WIDE, dtype, 2, (int64_t[]){k, n});
        node_must_run(&runner, SB_ISA_BEST, outputs);
        const sb_tensor *a = runner.inputs[0], *b = runner.inputs[1], *y = outputs[0].tensor;
        for (int64_t i = 0; i < m * n; i++) {
            int64_t a_at = i / n * a->strides[0], b_at = i % n * b->strides[1];
            if (dtype == SB_F32) {
                float expected = sb_chain_f32((const float *)(void *)a->data + a_at, a->strides[1],
                                              (const float *)(void *)b->data + b_at, b->strides[0], k, 0.0f);
                assert_same_floats("MatMul", &expected, (const float *)(void *)y->data + i, 1);
            } else {
                uint64_t expected = 0;
                for (int64_t j = 0; j < k; j++)
                    expected += ((const uint64_t *)(void *)a->data)[a_at + j * a->strides[1]] *
                                ((const uint64_t *)(void *)b->data)[b_at + j * b->strides[0]];
                assert_true(expected == ((const uint64_t *)(void *)y->data)[i]);
            }
        }
        release_outputs(outputs);
        node_clear(&runner);
    }
}

static void wrong_shapes_are_refused(void **unused) {
    random_source source = {5};
    sb_error error;
    sb_value outputs[NODE_OUTPUTS] = {{0}};
    node_runner runner = {.op = "MatMul", .version = 13, .input_count = 2, .output_count = 1};
    runner.inputs[0] = random_tensor(&source, ORDINARY, SB_F32, 2, (int64_t[]){2, 3});
    runner.inputs[1] = random_tensor(&source, ORDINARY, SB_F32, 2, (int64_t[]){4, 3});
    assert_int_equal(node_run(&runner, SB_ISA_BEST, outputs, &error), SB_ERROR_SHAPE);
    assert_non_null(strstr(error.message, "node"));
    node_clear(&runner);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(definition_is_one_chain),
        cmocka_unit_test(wrong_shapes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
