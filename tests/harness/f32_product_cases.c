/* The CPU's f32 matrix products on raw pointers: every instruction set, packing, stride, cut and epilogue against the
 * reference. */
#include <math.h>

#include "base/allocation.h"
#include "harness/cpu_raw.h"
#include "harness/harness.h"

typedef struct problem {
    sb_gemm_args args;
    sb_tensor *a, *b, *c; /* views of their buffers */
    sb_tensor *initial;   /* all of C's buffer: gaps and a margin included */
    sb_tensor *operands;
    sb_epilogue epilogue;
} problem;

/* Where an m × n matrix of floats may lie: row-major or column-major, dense or with gaps. Returns what it spans. */
static int64_t random_layout(random_source *random, int64_t m, int64_t n, int64_t strides[2]) {
    int64_t inner_step = random_between(random, 0, 4) == 0 ? 3 : 1;
    int64_t gap = random_between(random, 0, 2) == 0 ? random_between(random, 1, 9) : 0;
    bool column_major = random_between(random, 0, 2) == 0;
    int64_t inner = column_major ? m : n, outer = column_major ? n : m;
    int64_t step = inner * inner_step + gap;
    strides[0] = column_major ? inner_step : step;
    strides[1] = column_major ? step : inner_step;
    return outer * step + inner * inner_step + 1;
}

static sb_tensor *random_matrix(harness *h, distribution kind, int64_t m, int64_t n) {
    int64_t strides[2], count = random_layout(&h->random, m, n, strides);
    sb_tensor *floats = random_floats(h, kind, count), *view = view_floats(floats, 2, (int64_t[]){m, n}, strides);
    sb_tensor_release(floats);
    return view;
}

static problem random_problem(harness *h, int64_t m, int64_t n, int64_t k) {
    distribution kind = (distribution)random_between(&h->random, 0, DISTRIBUTIONS - 1);
    problem p = {
        .a = random_matrix(h, kind, m, k), .b = random_matrix(h, kind, k, n), .c = random_matrix(h, kind, m, n)};
    int64_t count = (int64_t)(p.c->storage->bytes / sizeof(float));
    MUST(sb_tensor_over(p.c->storage, p.c->data, SB_F32, 1, &count, NULL, &p.initial, error));
    p.epilogue = random_epilogue(h, kind, m, n, &p.operands);
    p.args = (sb_gemm_args){.m = m,
                            .n = n,
                            .k = k,
                            .a = floats_of(p.a),
                            .a_row_stride = p.a->strides[0],
                            .a_column_stride = p.a->strides[1],
                            .b = floats_of(p.b),
                            .b_row_stride = p.b->strides[0],
                            .b_column_stride = p.b->strides[1],
                            .c_row_stride = p.c->strides[0],
                            .c_column_stride = p.c->strides[1],
                            .continues = random_between(&h->random, 0, 3) == 0};
    return p;
}

/* All of C by random rectangles: cut at random rows, each band at random columns. */
static void run_in_rectangles(random_source *random, const sb_gemm_kernels *kernels, const sb_gemm_args *args,
                              void *workspace) {
    for (int64_t m0 = 0, m1; m0 < args->m; m0 = m1) {
        m1 = random_between(random, m0 + 1, args->m);
        for (int64_t n0 = 0, n1; n0 < args->n; n0 = n1) {
            n1 = random_between(random, n0 + 1, args->n);
            sb_gemm_f32_run(kernels, args, m0, m1, n0, n1, workspace);
        }
    }
}

/* In two parts, as threads may share it, the last one first. */
static float *pack(random_source *random, const sb_gemm_kernels *kernels, const sb_gemm_args *args) {
    float *packed = raw_block(sb_gemm_f32_packed_bytes(kernels, args->k, args->n));
    int64_t panel = sb_gemm_f32_panel(kernels), part = random_between(random, 0, args->n / panel) * panel;
    sb_gemm_f32_pack_b(kernels, args->k, args->n, args->b, args->b_row_stride, args->b_column_stride, part, args->n,
                       packed);
    sb_gemm_f32_pack_b(kernels, args->k, args->n, args->b, args->b_row_stride, args->b_column_stride, 0, part, packed);
    return packed;
}

static void check_kernels(harness *h, const sb_gemm_kernels *kernels, const problem *p, const sb_tensor *expected) {
    float *packed = pack(&h->random, kernels, &p->args);
    for (int way = 0; way < 4; way++) {
        sb_tensor *c = copy_floats(p->initial), *inputs[] = {p->a, p->b, p->c};
        sb_gemm_args args = p->args;
        char what[96];
        if (way & 1) {
            args.packed_b = packed;
            args.b = NULL;
        }
        args.c = floats_of(c);
        args.epilogue = &p->epilogue;
        void *workspace = raw_block(sb_gemm_f32_workspace_bytes(kernels, &args));
        if (way & 2)
            run_in_rectangles(&h->random, kernels, &args, workspace);
        else
            sb_gemm_f32_run(kernels, &args, 0, args.m, 0, args.n, workspace);
        snprintf(what, sizeof what, "f32 product by %s, B %s, %s", kernels->name, way & 1 ? "packed" : "raw",
                 way & 2 ? "in rectangles" : "whole");
        harness_compare(h, what, expected, c, inputs, 3);
        sb_free(workspace);
        sb_tensor_release(c);
    }
    sb_free(packed);
}

static void check(harness *h, int64_t m, int64_t n, int64_t k) {
    problem p = random_problem(h, m, n, k);
    sb_tensor *inputs[] = {p.a, p.b, p.c};
    char what[128], steps[64];
    snprintf(what, sizeof what, "f32 product%s, epilogue steps:%s", p.args.continues ? " continued" : "",
             epilogue_text(&p.epilogue, steps));
    if (harness_wants(h, what, inputs, 3) && (h->sides & HARNESS_CPU) != 0) {
        const sb_gemm_kernels *kernels[3];
        const int count = machine_kernels(kernels);
        sb_tensor *expected = copy_floats(p.initial);
        sb_gemm_args args = p.args;
        args.c = floats_of(expected);
        args.epilogue = &p.epilogue;
        sb_gemm_f32_reference(&args, 0, m, 0, n);
        for (int i = 0; i < count; i++)
            check_kernels(h, kernels[i], &p, expected);
        sb_tensor_release(expected);
    }
    sb_tensor_release(p.initial);
    sb_tensor_release(p.operands);
    for (int i = 0; i < 3; i++)
        sb_tensor_release(inputs[i]);
    harness_next(h);
}

HARNESS_GROUP(f32_product, small, HARNESS_CPU) {
    for (int i = 0; i < 1500; i++) {
        int64_t m = random_between(&h->random, 0, 40), n = random_between(&h->random, 0, 80);
        check(h, m, n, random_between(&h->random, 0, 40));
    }
}

/* Around the seams of the blocking: parts of k, blocks of rows, panels, postponed steps. */
HARNESS_GROUP(f32_product, seams, HARNESS_CPU) {
    static const int64_t shapes[][3] = {
        {1, 1, 1},      {1, 300, 700},  {2, 257, 321},   {3, 129, 320},   {14, 32, 256}, {15, 33, 257},
        {223, 40, 20},  {224, 65, 330}, {225, 31, 19},   {450, 300, 5},   {7, 520, 640}, {29, 600, 9},
        {30, 20, 2000}, {6, 16, 1024},  {40, 160, 1024}, {16, 128, 2048},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int repeat = 0; repeat < 3; repeat++)
            check(h, shapes[i][0], shapes[i][1], shapes[i][2]);
    }
}

/* ---- steps of epilogues ---- */

static const float corners[] = {0.0f,     -0.0f,     1.0f, -1.0f,     0x1p-149f, -0x1p-149f,
                                INFINITY, -INFINITY, NAN,  0x1p-126f, 3.0f,      -2.5f};
enum { CORNERS = sizeof corners / sizeof *corners, COLUMNS = 3 * CORNERS };

/* One kind of step with operands i and j, on a row of every corner. */
static void check_step(harness *h, sb_epilogue_kind kind, int i, int j) {
    static float factor = 2.0f;
    const int64_t columns = COLUMNS;
    const sb_gemm_kernels *kernels[3];
    const int count = machine_kernels(kernels);
    float vector[COLUMNS], shift[COLUMNS];
    sb_tensor *row = NULL, *expected = NULL;
    char what[96];
    MUST(sb_tensor_create(SB_F32, 1, &columns, &row, error));
    MUST(sb_tensor_create(SB_F32, 1, &columns, &expected, error));
    sb_epilogue epilogue = {.count = 1,
                            .steps = {{.kind = kind,
                                       .vector = vector,
                                       .shift = shift,
                                       .column_stride = 1,
                                       .scalar = corners[i],
                                       .high = corners[j],
                                       .call = scale_by_position,
                                       .context = &factor}}};
    for (int c = 0; c < COLUMNS; c++) {
        vector[c] = corners[i];
        shift[c] = corners[j];
        floats_of(row)[c] = corners[c % CORNERS];
    }
    for (int c = 0; c < COLUMNS; c++)
        floats_of(expected)[c] = sb_epilogue_reference(&epilogue, floats_of(row)[c], 0, c);
    for (int k = 0; k < count; k++) {
        sb_tensor *found = copy_floats(row);
        kernels[k]->epilogue_row(epilogue.steps, 1, floats_of(found), 0, 0, COLUMNS);
        snprintf(what, sizeof what, "step %d of %g and %g by %s", (int)kind, (double)corners[i], (double)corners[j],
                 kernels[k]->name);
        harness_compare(h, what, expected, found, &row, 1);
        sb_tensor_release(found);
    }
    sb_tensor_release(row);
    sb_tensor_release(expected);
}

/* Every kind of step with operands of every sign of zero, infinity and NaN. */
HARNESS_GROUP(f32_product, steps, HARNESS_CPU) {
    for (int kind = 0; kind <= SB_EPILOGUE_CALL; kind++) {
        for (int i = 0; i < CORNERS; i++) {
            char what[96];
            snprintf(what, sizeof what, "epilogue step %d, first operand %g", kind, (double)corners[i]);
            bool wanted = harness_wants(h, what, NULL, 0) && (h->sides & HARNESS_CPU) != 0;
            for (int j = 0; j < CORNERS && wanted; j++)
                check_step(h, (sb_epilogue_kind)kind, i, j);
            harness_next(h);
        }
    }
}
