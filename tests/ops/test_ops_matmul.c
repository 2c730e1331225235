/* MatMul and Gemm: kernels against the definition, and the definition against plain loops. */
#include "ops/kernel_cases.h"

#include "numerics/chain.h"

static const sb_dtype float_dtypes[] = {SB_F32, SB_F16, SB_BF16};

static int64_t random_extent(random_source *source) {
    static const int64_t sizes[] = {0, 1, 1, 2, 3, 5, 8, 16, 17, 31, 33, 64, 70};
    return sizes[random_between(source, 0, 12)];
}

static void kernels_equal_the_definition(void **unused) {
    random_source source = {1};
    for (int round = 0; round < 90; round++) {
        sb_dtype dtype = float_dtypes[round % 3];
        distribution kind = (distribution)(round / 3 % DISTRIBUTIONS);
        int64_t m = random_extent(&source), n = random_extent(&source), k = random_extent(&source);
        int a_batch = (int)random_between(&source, 0, 2), b_batch = (int)random_between(&source, 0, 2);
        int64_t batch[2] = {random_between(&source, 1, 3), random_between(&source, 1, 3)};
        int64_t a_dims[4], b_dims[4];
        for (int d = 0; d < a_batch; d++)
            a_dims[d] = random_between(&source, 0, 3) == 0 ? 1 : batch[2 - a_batch + d];
        for (int d = 0; d < b_batch; d++)
            b_dims[d] = random_between(&source, 0, 3) == 0 ? 1 : batch[2 - b_batch + d];
        int a_rank = a_batch + 2, b_rank = b_batch + 2;
        a_dims[a_batch] = m;
        a_dims[a_batch + 1] = b_dims[b_batch] = k;
        b_dims[b_batch + 1] = n;
        if (a_batch == 0 && random_between(&source, 0, 4) == 0) {
            a_rank = 1;
            a_dims[0] = k;
        }
        if (b_batch == 0 && random_between(&source, 0, 4) == 0)
            b_rank = 1;
        node_runner runner = {.op = "MatMul", .version = 13, .input_count = 2, .output_count = 1};
        runner.inputs[0] = random_tensor(&source, kind, dtype, a_rank, a_dims);
        runner.inputs[1] = random_tensor(&source, kind, dtype, b_rank, b_dims);
        runner.constants = random_bits(&source) & 2;
        check_kernels(&runner);
    }
}

static void large_products_are_cut_alike(void **unused) {
    random_source source = {2};
    for (int round = 0; round < 3; round++) {
        sb_dtype dtype = float_dtypes[round];
        int64_t k = dtype == SB_F32 ? 300 : 70;
        node_runner runner = {.op = "MatMul", .version = 13, .input_count = 2, .output_count = 1};
        runner.inputs[0] = random_tensor(&source, ORDINARY, dtype, 3, (int64_t[]){2, 130, k});
        runner.inputs[1] = random_tensor(&source, ORDINARY, dtype, 2, (int64_t[]){k, 200});
        runner.constants = round == 0 ? 2 : 0;
        check_kernels(&runner);
    }
}

static void gemm_kernels_equal_the_definition(void **unused) {
    static const float scales[] = {1, 0.3f, -2, 0};
    random_source source = {3};
    for (int round = 0; round < 90; round++) {
        sb_dtype dtype = float_dtypes[round % 3];
        distribution kind = (distribution)(round / 3 % DISTRIBUTIONS);
        int64_t m = random_extent(&source), n = random_extent(&source), k = random_extent(&source);
        bool transpose_a = random_bits(&source) & 1, transpose_b = random_bits(&source) & 1;
        node_runner runner = {.op = "Gemm", .version = 13, .input_count = 2, .output_count = 1};
        add_int(&runner, "transA", transpose_a);
        add_int(&runner, "transB", transpose_b);
        add_float(&runner, "alpha", scales[random_between(&source, 0, 3)]);
        add_float(&runner, "beta", scales[random_between(&source, 0, 3)]);
        runner.inputs[0] =
            random_tensor(&source, kind, dtype, 2, (int64_t[]){transpose_a ? k : m, transpose_a ? m : k});
        runner.inputs[1] =
            random_tensor(&source, kind, dtype, 2, (int64_t[]){transpose_b ? n : k, transpose_b ? k : n});
        if (random_between(&source, 0, 3) != 0) {
            int64_t c_dims[2] = {random_bits(&source) & 1 ? m : 1, random_bits(&source) & 1 ? n : 1};
            int c_rank = (int)random_between(&source, 0, 2);
            runner.input_count = 3;
            runner.inputs[2] = random_tensor(&source, kind, dtype, c_rank, c_dims + 2 - c_rank);
        }
        runner.constants = random_bits(&source) & 6;
        check_kernels(&runner);
    }
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
        node_must_run(&runner, SB_ISA_BEST, 1, outputs);
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
    assert_int_equal(node_run(&runner, SB_ISA_BEST, 1, outputs, &error), SB_ERROR_SHAPE);
    assert_non_null(strstr(error.message, "node"));
    node_clear(&runner);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(definition_is_one_chain),      cmocka_unit_test(wrong_shapes_are_refused),
        cmocka_unit_test(kernels_equal_the_definition), cmocka_unit_test(gemm_kernels_equal_the_definition),
        cmocka_unit_test(large_products_are_cut_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
