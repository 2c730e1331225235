/* MatMul and Gemm of all sizes, as the CPU computes them. */
#include "harness/harness.h"

static const sb_dtype float_dtypes[] = {SB_F32, SB_F16, SB_BF16};

static int64_t random_extent(harness *h) {
    static const int64_t sizes[] = {0, 1, 1, 2, 3, 5, 8, 16, 17, 31, 33, 64, 70};
    return sizes[random_between(&h->random, 0, 12)];
}

HARNESS_GROUP(matmul, matmul, HARNESS_CPU) {
    for (int round = 0; round < 90; round++) {
        sb_dtype dtype = float_dtypes[round % 3];
        distribution kind = (distribution)(round / 3 % DISTRIBUTIONS);
        int64_t m = random_extent(h), n = random_extent(h), k = random_extent(h);
        int a_batch = (int)random_between(&h->random, 0, 2), b_batch = (int)random_between(&h->random, 0, 2);
        int64_t batch[2] = {random_between(&h->random, 1, 3), random_between(&h->random, 1, 3)};
        int64_t a_dims[4], b_dims[4];
        for (int d = 0; d < a_batch; d++)
            a_dims[d] = random_between(&h->random, 0, 3) == 0 ? 1 : batch[2 - a_batch + d];
        for (int d = 0; d < b_batch; d++)
            b_dims[d] = random_between(&h->random, 0, 3) == 0 ? 1 : batch[2 - b_batch + d];
        int a_rank = a_batch + 2, b_rank = b_batch + 2;
        a_dims[a_batch] = m;
        a_dims[a_batch + 1] = b_dims[b_batch] = k;
        b_dims[b_batch + 1] = n;
        if (a_batch == 0 && random_between(&h->random, 0, 4) == 0) {
            a_rank = 1;
            a_dims[0] = k;
        }
        if (b_batch == 0 && random_between(&h->random, 0, 4) == 0)
            b_rank = 1;
        harness_case test = harness_op("MatMul", 13);
        add_input(&test, random_tensor(h, kind, dtype, a_rank, a_dims));
        add_input(&test, random_tensor(h, kind, dtype, b_rank, b_dims));
        test.constants = random_bits(&h->random) & 2;
        harness_run(h, &test);
    }
}

HARNESS_GROUP(matmul, large, HARNESS_CPU) {
    for (int round = 0; round < 3; round++) {
        sb_dtype dtype = float_dtypes[round];
        int64_t k = dtype == SB_F32 ? 300 : 70;
        harness_case test = harness_op("MatMul", 13);
        add_input(&test, random_tensor(h, ORDINARY, dtype, 3, (int64_t[]){2, 130, k}));
        add_input(&test, random_tensor(h, ORDINARY, dtype, 2, (int64_t[]){k, 200}));
        test.constants = round == 0 ? 2 : 0;
        harness_run(h, &test);
    }
}

HARNESS_GROUP(matmul, gemm, HARNESS_CPU) {
    static const float scales[] = {1, 0.3f, -2, 0};
    for (int round = 0; round < 90; round++) {
        sb_dtype dtype = float_dtypes[round % 3];
        distribution kind = (distribution)(round / 3 % DISTRIBUTIONS);
        int64_t m = random_extent(h), n = random_extent(h), k = random_extent(h);
        bool transpose_a = random_bits(&h->random) & 1, transpose_b = random_bits(&h->random) & 1;
        harness_case test = harness_op("Gemm", 13);
        set_int(&test, "transA", transpose_a);
        set_int(&test, "transB", transpose_b);
        set_float(&test, "alpha", scales[random_between(&h->random, 0, 3)]);
        set_float(&test, "beta", scales[random_between(&h->random, 0, 3)]);
        add_input(&test, random_tensor(h, kind, dtype, 2, (int64_t[]){transpose_a ? k : m, transpose_a ? m : k}));
        add_input(&test, random_tensor(h, kind, dtype, 2, (int64_t[]){transpose_b ? n : k, transpose_b ? k : n}));
        if (random_between(&h->random, 0, 3) != 0) {
            int64_t c_dims[2] = {random_bits(&h->random) & 1 ? m : 1, random_bits(&h->random) & 1 ? n : 1};
            int c_rank = (int)random_between(&h->random, 0, 2);
            add_input(&test, random_tensor(h, kind, dtype, c_rank, c_dims + 2 - c_rank));
        }
        test.constants = random_bits(&h->random) & 6;
        harness_run(h, &test);
    }
}
