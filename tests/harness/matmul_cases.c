/* MatMul, MatMulF32 and Gemm of all sizes, as the CPU computes them, and as devices do in 16 bits. */
#include "harness/graphs.h"

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

/* ---- products over heads ---- */

/* A view of `dims` whose dimensions lie in memory in any order, one of a matrix's own two innermost, of a tensor whose rows are
 * longer: from the `first` element on, by `gap`. */
static sb_tensor *view_of(harness *h, distribution kind, sb_dtype dtype, int rank, const int64_t *dims, int64_t first,
                          int64_t gap) {
    int order[SB_MAX_RANK], back[SB_MAX_RANK];
    int64_t memory[SB_MAX_RANK];
    sb_tensor *whole, *rows, *tensor;
    for (int i = 0; i < rank; i++)
        order[i] = i;
    for (int i = rank - 1; i > 0; i--) {
        int other = (int)random_between(&h->random, i == rank - 1 && rank > 1 ? rank - 2 : 0, i), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (int i = 0; i < rank; i++) {
        memory[i] = dims[order[i]] + (i == rank - 1 ? first + gap : 0);
        back[order[i]] = i;
    }
    whole = packed_tensor(h, kind, dtype, rank, memory);
    MUST(sb_tensor_slice(whole, rank - 1, first, dims[order[rank - 1]], 1, &rows, error));
    MUST(sb_tensor_transpose(rows, back, &tensor, error));
    sb_tensor_release(rows);
    sb_tensor_release(whole);
    return tensor;
}

/* The operand's dimensions: batches, of which some are 1 and leading ones may be left out, and the matrix's. Returns the
 * rank. */
static int batched_dims(harness *h, int batch_rank, const int64_t *batches, int64_t rows, int64_t columns,
                        int64_t *dims) {
    int left_out = random_between(&h->random, 0, 2) == 0 ? (int)random_between(&h->random, 0, batch_rank) : 0;
    for (int d = left_out; d < batch_rank; d++)
        dims[d - left_out] = random_between(&h->random, 0, 4) == 0 ? 1 : batches[d];
    dims[batch_rank - left_out] = rows;
    dims[batch_rank - left_out + 1] = columns;
    return batch_rank - left_out + 2;
}

/* Extents that copies of 16 bytes like, alone and with room for more, and others. */
static int64_t pick_extent(harness *h, bool aligned) {
    static const int64_t even[] = {8, 16, 24, 56, 64, 72, 136}, odd[] = {1, 7, 15, 17, 57, 61, 63, 65, 130};
    return aligned ? even[random_between(&h->random, 0, 6)] : odd[random_between(&h->random, 0, 8)];
}

HARNESS_GROUP(matmul, heads, HARNESS_CPU | HARNESS_CUDA) {
    for (int round = 0; round < 48; round++) {
        sb_dtype dtype = round % 2 == 0 ? SB_F16 : SB_BF16;
        distribution kind = (distribution)(round / 2 % DISTRIBUTIONS);
        int batch_rank = round / 4 % 5;
        int64_t batches[4], dims[SB_MAX_RANK];
        for (int d = 0; d < 4; d++)
            batches[d] = random_between(&h->random, 1, batch_rank > 2 ? 2 : 3);
        int64_t m = pick_extent(h, round % 3 != 0), n = pick_extent(h, round % 3 != 0),
                k = pick_extent(h, round % 4 != 0), first = round % 5 == 0 ? 3 : round % 2 * 8,
                gap = round % 7 == 0 ? 5 : random_between(&h->random, 0, 1) * 8;
        harness_case test = harness_op("MatMul", 13);
        int rank = batched_dims(h, batch_rank, batches, m, k, dims);
        add_input(&test, view_of(h, kind, dtype, rank, dims, first, gap));
        rank = batched_dims(h, batch_rank, batches, k, n, dims);
        add_input(&test, view_of(h, kind, dtype, rank, dims, first, gap));
        test.constants = random_between(&h->random, 0, 3) == 0 ? 2 : 0;
        harness_run(h, &test);
    }
}

/* ---- rows of no multiple of 16 bytes ---- */

/* As they lie, which a device may copy where there is much to compute; or behind gaps of NaN. */
static sb_tensor *odd_rows(harness *h, distribution kind, sb_dtype dtype, int rank, const int64_t *dims, bool gaps) {
    return gaps ? gapped_tensor(h, kind, dtype, rank, dims) : packed_tensor(h, kind, dtype, rank, dims);
}

/* Batches, of which B may have none; rows, k, columns. */
typedef struct odd_shape {
    int64_t batches, m, k, n;
} odd_shape;

HARNESS_GROUP(matmul, odd_rows, HARNESS_CPU | HARNESS_CUDA) {
    static const odd_shape shapes[] = {{1, 70, 197, 64}, {3, 21, 61, 72}, {1, 5, 51, 486}, {2, 70, 63, 97},
                                       {1, 33, 517, 42}, {2, 1, 333, 40}, {4, 17, 15, 3},  {2, 34, 771, 10}};
    const int count = (int)(sizeof shapes / sizeof *shapes);
    for (int round = 0; round < 8 * count; round++) {
        const odd_shape *s = &shapes[round % count];
        const int way = round / count;
        const bool b_is_batched = way & 4;
        const distribution kind = (distribution)(round % DISTRIBUTIONS);
        const sb_dtype dtype = (round / 5 + way) % 2 == 0 ? SB_F16 : SB_BF16;
        harness_case test = harness_op("MatMul", 13);
        add_input(&test, odd_rows(h, kind, dtype, 3, (int64_t[]){s->batches, s->m, s->k}, way & 1));
        add_input(&test,
                  odd_rows(h, kind, dtype, b_is_batched ? 3 : 2,
                           (int64_t[]){b_is_batched ? s->batches : s->k, b_is_batched ? s->k : s->n, s->n}, way & 2));
        test.constants = round % 3;
        harness_run(h, &test);
    }
}

HARNESS_GROUP(matmul, odd_gemm, HARNESS_CPU | HARNESS_CUDA) {
    static const odd_shape shapes[] = {{1, 61, 97, 70}, {1, 5, 51, 186}, {1, 35, 517, 26}, {1, 1, 333, 45}};
    const int count = (int)(sizeof shapes / sizeof *shapes);
    for (int round = 0; round < 16 * count; round++) {
        const odd_shape *s = &shapes[round % count];
        const int way = round / count;
        const bool transpose_a = way & 4, transpose_b = way & 8;
        const distribution kind = (distribution)(round % DISTRIBUTIONS);
        const sb_dtype dtype = (round / 5 + way) % 2 == 0 ? SB_F16 : SB_BF16;
        harness_case test = harness_op("Gemm", 13);
        set_int(&test, "transA", transpose_a);
        set_int(&test, "transB", transpose_b);
        set_float(&test, "alpha", way % 3 == 0 ? 0.3f : 1);
        set_float(&test, "beta", way % 3 == 1 ? -2 : 1);
        add_input(&test, odd_rows(h, kind, dtype, 2, (int64_t[]){transpose_a ? s->k : s->m, transpose_a ? s->m : s->k},
                                  way & 1));
        add_input(&test, odd_rows(h, kind, dtype, 2, (int64_t[]){transpose_b ? s->n : s->k, transpose_b ? s->k : s->n},
                                  way & 2));
        add_input(&test, packed_tensor(h, kind, dtype, 2, (int64_t[]){way % 2 == 0 ? s->m : 1, s->n}));
        test.constants = round % 3 == 0 ? 2 : 0;
        harness_run(h, &test);
    }
}

/* A row that is added behind, to one matrix or to several, of which A may lie by columns: as a token mixer has it. */
static void run_with_bias(harness *h, const odd_shape *s, sb_dtype dtype, distribution kind, int way) {
    builder b = builder_create();
    sb_tensor *tensors[HARNESS_INPUTS] = {NULL}, *turned;
    const bool by_columns = way & 1;
    const int64_t a_dims[] = {s->batches, s->m, s->k}, memory[] = {s->batches, s->k, s->m}, b_dims[] = {s->k, s->n},
                  rows[] = {1, 1, s->n};
    sb_value_id a = graph_input(h, &b, dtype, 3, a_dims, PACKED, tensors),
                w = graph_input(h, &b, dtype, 2, b_dims, PACKED, tensors),
                bias = graph_input(h, &b, dtype, way & 2 ? 1 : 3, way & 2 ? &s->n : rows, PACKED, tensors);
    release_all(tensors, 3);
    tensors[0] = gapped_tensor(h, kind, dtype, 3, by_columns ? memory : a_dims);
    if (by_columns) {
        MUST(sb_tensor_transpose(tensors[0], (int[]){0, 2, 1}, &turned, error));
        sb_tensor_release(tensors[0]);
        tensors[0] = turned;
    }
    tensors[1] = odd_rows(h, kind, dtype, 2, b_dims, way & 4);
    tensors[2] = packed_tensor(h, kind, dtype, way & 2 ? 1 : 3, way & 2 ? &s->n : rows);
    sb_value_id product = builder_binary(&b, "MatMul", a, w);
    harness_run_fused(
        h, &b, way & 8 ? builder_binary(&b, "Add", bias, product) : builder_binary(&b, "Add", product, bias), tensors);
    release_all(tensors, HARNESS_INPUTS);
    builder_destroy(&b);
}

HARNESS_GROUP(matmul, odd_bias, HARNESS_CPU | HARNESS_CUDA) {
    static const odd_shape shapes[] = {{1, 96, 49, 64}, {2, 61, 61, 61}, {1, 66, 196, 132},
                                       {1, 5, 517, 33}, {3, 8, 64, 99},  {1, 1, 75, 50}};
    for (int i = 0; i < 96; i++)
        run_with_bias(h, &shapes[i % 6], i / 6 % 2 == 0 ? SB_F16 : SB_BF16, (distribution)(i % DISTRIBUTIONS), i / 6);
}

/* ---- results that are not rounded ---- */

HARNESS_GROUP(matmul, unrounded, HARNESS_CPU | HARNESS_CUDA) {
    for (int round = 0; round < 48; round++) {
        sb_dtype dtype = float_dtypes[round % 3];
        distribution kind = (distribution)(round / 3 % DISTRIBUTIONS);
        int batch_rank = round / 12;
        int64_t batches[4], dims[SB_MAX_RANK];
        for (int d = 0; d < 4; d++)
            batches[d] = random_between(&h->random, 1, batch_rank > 2 ? 2 : 3);
        int64_t m = pick_extent(h, round % 5 != 0), n = pick_extent(h, round % 5 != 0),
                k = pick_extent(h, round % 4 != 0), first = round % 7 == 0 ? 3 : round % 2 * 8,
                gap = round % 11 == 0 ? 5 : random_between(&h->random, 0, 1) * 8;
        harness_case test = harness_op("MatMulF32", 1);
        test.domain = "samebit";
        int rank = batched_dims(h, batch_rank, batches, m, k, dims);
        add_input(&test, view_of(h, kind, dtype, rank, dims, first, gap));
        rank = batched_dims(h, batch_rank, batches, k, n, dims);
        add_input(&test, view_of(h, kind, dtype, rank, dims, first, gap));
        test.constants = random_between(&h->random, 0, 2) == 0 ? 2 : 0;
        harness_run(h, &test);
    }
}
