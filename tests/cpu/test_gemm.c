/* f32 matrix products: every instruction set, packing, stride, split and epilogue against the
 * definition, bit for bit. */
#include "float_cases.h"

typedef struct problem {
    sb_gemm_args args;
    float *a, *b, *initial, *operands;
    sb_epilogue epilogue;
    int64_t c_size; /* floats that C spans, gaps and a margin included */
    char name[160];
} problem;

/* Where an m × n matrix of floats may lie: row-major or column-major, dense or with gaps. */
static int64_t random_layout(random_source *source, int64_t m, int64_t n, int64_t *row_stride, int64_t *column_stride) {
    int64_t inner_step = random_between(source, 0, 4) == 0 ? 3 : 1;
    int64_t gap = random_between(source, 0, 2) == 0 ? random_between(source, 1, 9) : 0;
    bool column_major = random_between(source, 0, 2) == 0;
    int64_t inner = column_major ? m : n, outer = column_major ? n : m;
    int64_t step = inner * inner_step + gap;
    *row_stride = column_major ? inner_step : step;
    *column_stride = column_major ? step : inner_step;
    return outer * step + inner * inner_step + 1;
}

static problem random_problem(random_source *source, int64_t m, int64_t n, int64_t k) {
    problem p = {.args = {.m = m, .n = n, .k = k, .continues = random_between(source, 0, 3) == 0}};
    distribution kind = (distribution)random_between(source, 0, DISTRIBUTIONS - 1);
    p.a = random_values(source, kind, random_layout(source, m, k, &p.args.a_row_stride, &p.args.a_column_stride));
    p.b = random_values(source, kind, random_layout(source, k, n, &p.args.b_row_stride, &p.args.b_column_stride));
    p.c_size = random_layout(source, m, n, &p.args.c_row_stride, &p.args.c_column_stride);
    p.initial = random_values(source, kind, p.c_size);
    p.epilogue = random_epilogue(source, kind, m, n, &p.operands);
    p.args.a = p.a;
    p.args.b = p.b;
    snprintf(p.name, sizeof p.name,
             "m %lld n %lld k %lld, values of kind %d, strides A %lld,%lld B %lld,%lld C %lld,%lld", (long long)m,
             (long long)n, (long long)k, (int)kind, (long long)p.args.a_row_stride, (long long)p.args.a_column_stride,
             (long long)p.args.b_row_stride, (long long)p.args.b_column_stride, (long long)p.args.c_row_stride,
             (long long)p.args.c_column_stride);
    return p;
}

static void free_problem(problem *p) {
    sb_free(p->a);
    sb_free(p->b);
    sb_free(p->initial);
    sb_free(p->operands);
}

static float *copy_of(const float *values, int64_t count) {
    float *copy = sb_allocate((size_t)count * sizeof(float));
    assert_non_null(copy);
    memcpy(copy, values, (size_t)count * sizeof(float));
    return copy;
}

/* All of C by random rectangles: cut at random rows, each band at random columns. */
static void run_in_rectangles(random_source *source, const sb_gemm_kernels *kernels, const sb_gemm_args *args,
                              void *workspace) {
    for (int64_t m0 = 0, m1; m0 < args->m; m0 = m1) {
        m1 = random_between(source, m0 + 1, args->m);
        for (int64_t n0 = 0, n1; n0 < args->n; n0 = n1) {
            n1 = random_between(source, n0 + 1, args->n);
            sb_gemm_f32_run(kernels, args, m0, m1, n0, n1, workspace);
        }
    }
}

static void check_kernels(random_source *source, const sb_gemm_kernels *kernels, const problem *p,
                          const float *expected) {
    float *packed = sb_allocate(sb_gemm_f32_packed_bytes(kernels, p->args.k, p->args.n));
    assert_non_null(packed);
    /* In two parts, as threads may share it, the last one first. */
    int64_t part = random_between(source, 0, p->args.n / sb_gemm_f32_panel(kernels)) * sb_gemm_f32_panel(kernels);
    sb_gemm_f32_pack_b(kernels, p->args.k, p->args.n, p->b, p->args.b_row_stride, p->args.b_column_stride, part,
                       p->args.n, packed);
    sb_gemm_f32_pack_b(kernels, p->args.k, p->args.n, p->b, p->args.b_row_stride, p->args.b_column_stride, 0, part,
                       packed);
    for (int way = 0; way < 4; way++) {
        sb_gemm_args args = p->args;
        if (way & 1) {
            args.packed_b = packed;
            args.b = NULL;
        }
        float *c = copy_of(p->initial, p->c_size);
        args.c = c;
        args.epilogue = &p->epilogue;
        void *workspace = sb_allocate(sb_gemm_f32_workspace_bytes(kernels, &args));
        assert_non_null(workspace);
        if (way & 2)
            run_in_rectangles(source, kernels, &args, workspace);
        else
            sb_gemm_f32_run(kernels, &args, 0, args.m, 0, args.n, workspace);
        char what[256];
        snprintf(what, sizeof what, "%s, %s, %s, %s", kernels->name, way & 1 ? "packed" : "raw",
                 way & 2 ? "in rectangles" : "whole", p->name);
        assert_same_floats(what, expected, c, p->c_size);
        sb_free(workspace);
        sb_free(c);
    }
    sb_free(packed);
}

static void check(random_source *source, int64_t m, int64_t n, int64_t k) {
    problem p = random_problem(source, m, n, k);
    float *expected = copy_of(p.initial, p.c_size);
    sb_gemm_args args = p.args;
    args.c = expected;
    args.epilogue = &p.epilogue;
    sb_gemm_f32_reference(&args, 0, m, 0, n);
    const sb_gemm_kernels *kernels[3];
    const int count = machine_kernels(kernels);
    for (int i = 0; i < count; i++)
        check_kernels(source, kernels[i], &p, expected);
    sb_free(expected);
    free_problem(&p);
}

static void test_small_shapes(void **state) {
    (void)state;
    random_source source = {.state = 11};
    for (int i = 0; i < 1500; i++)
        check(&source, random_between(&source, 0, 40), random_between(&source, 0, 80), random_between(&source, 0, 40));
}

/* Around the seams of the blocking: parts of k, blocks of rows, panels, postponed steps. */
static void test_seams(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {
        {1, 1, 1},      {1, 300, 700},  {2, 257, 321},   {3, 129, 320},   {14, 32, 256}, {15, 33, 257},
        {223, 40, 20},  {224, 65, 330}, {225, 31, 19},   {450, 300, 5},   {7, 520, 640}, {29, 600, 9},
        {30, 20, 2000}, {6, 16, 1024},  {40, 160, 1024}, {16, 128, 2048},
    };
    random_source source = {.state = 12};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int repeat = 0; repeat < 3; repeat++)
            check(&source, shapes[i][0], shapes[i][1], shapes[i][2]);
}

/* Every kind of step with operands of every sign of zero, infinity and NaN. */
static void test_steps(void **state) {
    (void)state;
    static const float values[] = {0.0f,     -0.0f,     1.0f, -1.0f,     0x1p-149f, -0x1p-149f,
                                   INFINITY, -INFINITY, NAN,  0x1p-126f, 3.0f,      -2.5f};
    enum { COUNT = sizeof values / sizeof *values, COLUMNS = 3 * COUNT };
    float row[COLUMNS], result[COLUMNS], expected[COLUMNS];
    for (int i = 0; i < COLUMNS; i++)
        row[i] = values[i % COUNT];
    const sb_gemm_kernels *kernels[3];
    const int count = machine_kernels(kernels);
    float factor = 2.0f;
    for (int kind = 0; kind <= SB_EPILOGUE_CALL; kind++)
        for (int i = 0; i < COUNT; i++)
            for (int j = 0; j < COUNT; j++) {
                float vector[COLUMNS], shift[COLUMNS];
                for (int c = 0; c < COLUMNS; c++) {
                    vector[c] = values[i];
                    shift[c] = values[j];
                }
                sb_epilogue epilogue = {.count = 1,
                                        .steps = {{.kind = (sb_epilogue_kind)kind,
                                                   .vector = vector,
                                                   .shift = shift,
                                                   .column_stride = 1,
                                                   .scalar = values[i],
                                                   .high = values[j],
                                                   .call = scale_by_position,
                                                   .context = &factor}}};
                for (int c = 0; c < COLUMNS; c++)
                    expected[c] = sb_epilogue_reference(&epilogue, row[c], 0, c);
                for (int k = 0; k < count; k++) {
                    memcpy(result, row, sizeof row);
                    kernels[k]->epilogue_row(epilogue.steps, 1, result, 0, 0, COLUMNS);
                    assert_same_floats(kernels[k]->name, expected, result, COLUMNS);
                }
            }
}

static void test_split_covers(void **state) {
    (void)state;
    random_source source = {.state = 13};
    const sb_gemm_kernels *kernels[3];
    const int count = machine_kernels(kernels);
    for (int i = 0; i < 300; i++) {
        int64_t m = random_between(&source, 0, 300), n = random_between(&source, 0, 300);
        sb_gemm_split split = sb_gemm_f32_split(kernels[i % count], m, n, random_between(&source, 0, 100000),
                                                (int)random_between(&source, 1, 9));
        unsigned char *seen = sb_allocate_array((size_t)(m * n + 1), 1);
        assert_non_null(seen);
        for (int64_t part = 0; part < split.m_parts * split.n_parts; part++) {
            int64_t m0, m1, n0, n1;
            sb_gemm_split_rectangle(&split, part, &m0, &m1, &n0, &n1);
            assert_true(0 <= m0 && m1 <= m && 0 <= n0 && n1 <= n);
            for (int64_t r = m0; r < m1; r++)
                for (int64_t c = n0; c < n1; c++)
                    seen[r * n + c]++;
        }
        for (int64_t e = 0; e < m * n; e++)
            assert_int_equal(seen[e], 1);
        sb_free(seen);
    }
}

static void test_sizes_overflow(void **state) {
    (void)state;
    const sb_gemm_kernels *kernels = sb_gemm_f32_kernels(SB_ISA_SCALAR);
    assert_int_equal(sb_gemm_f32_packed_bytes(kernels, INT64_MAX / 8, 1 << 10), 0);
    assert_int_equal(sb_gemm_f32_packed_bytes(kernels, INT64_MAX, 1), 0);
    assert_true(sb_gemm_f32_packed_bytes(kernels, 0, 0) > 0);
    sb_gemm_args args = {.m = 1, .n = 1, .k = INT64_MAX, .c_column_stride = 1};
    assert_int_equal(sb_gemm_f32_workspace_bytes(kernels, &args), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_shapes), cmocka_unit_test(test_seams),          cmocka_unit_test(test_steps),
        cmocka_unit_test(test_split_covers), cmocka_unit_test(test_sizes_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
