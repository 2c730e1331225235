/* The CPU's f32 convolutions on raw pointers: every instruction set, method, layout, cut and epilogue against the
 * reference. */
#include "base/allocation.h"
#include "cpu/contraction/conv.h"
#include "harness/cpu_raw.h"
#include "harness/harness.h"

#define METHODS (SB_CONV_DEPTHWISE_STRIP + 1)

typedef struct problem {
    sb_conv_shape shape;
    int64_t w_strides[2 + SB_CONV_RANK];
    sb_tensor *x, *w, *y; /* views of their buffers */
    sb_tensor *initial;   /* all of y's buffer: gaps and a margin included */
    sb_tensor *operands;
    sb_epilogue epilogue;
    int64_t m;
} problem;

/* ---- making ---- */

/* Elements of a (batch, channels, spatial…) tensor, channels first or last, with or without gaps. */
static sb_tensor *random_image(harness *h, distribution kind, int64_t batch, int64_t channels, int rank,
                               const int64_t *extents) {
    random_source *random = &h->random;
    int64_t dims[2 + SB_CONV_RANK] = {batch, channels}, strides[2 + SB_CONV_RANK];
    bool last = random_between(random, 0, 2) != 0;
    int64_t step = random_between(random, 0, 5) == 0 ? 2 : 1;
    if (last) {
        strides[1] = step;
        step *= channels;
    }
    for (int d = rank - 1; d >= 0; d--) {
        dims[2 + d] = extents[d];
        if (random_between(random, 0, 6) == 0)
            step += random_between(random, 1, 3);
        strides[2 + d] = step;
        step *= extents[d];
    }
    if (!last) {
        strides[1] = step;
        step *= channels;
    }
    strides[0] = step;
    sb_tensor *floats = random_floats(h, kind, step * batch + 1), *view = view_floats(floats, 2 + rank, dims, strides);
    sb_tensor_release(floats);
    return view;
}

/* Outputs that the usual formula gives, for random pads (which may be more than the kernel's reach). */
static void random_window(random_source *random, sb_conv_shape *shape, int d, int64_t largest) {
    shape->kernel[d] = random_between(random, 1, random_between(random, 0, 3) == 0 ? 9 : 3);
    shape->stride[d] = random_between(random, 1, 3);
    shape->dilation[d] = random_between(random, 0, 3) == 0 ? 2 : 1;
    shape->pad[d] = random_between(random, 0, 2) == 0 ? random_between(random, -1, 3) : shape->kernel[d] / 2;
    shape->input[d] = random_between(random, 1, largest);
    int64_t span = shape->input[d] + shape->pad[d] + random_between(random, 0, 2) -
                   (shape->kernel[d] - 1) * shape->dilation[d] - 1;
    shape->output[d] = span < 0 ? 0 : span / shape->stride[d] + 1;
}

static void make_pointwise(sb_conv_shape *shape, int d) {
    shape->kernel[d] = shape->stride[d] = shape->dilation[d] = 1;
    shape->pad[d] = 0;
    shape->output[d] = shape->input[d];
}

static sb_conv_shape random_shape(random_source *random) {
    sb_conv_shape shape = {.rank = (int)random_between(random, 1, 3),
                           .batch = random_between(random, 0, 3),
                           .groups = random_between(random, 0, 2) != 0 ? 1 : random_between(random, 2, 9)};
    int64_t per_group = random_between(random, 0, 1) == 0 ? 1 : random_between(random, 0, 20);
    shape.input_channels = shape.groups * per_group;
    shape.output_channels = shape.groups * random_between(random, 1, per_group == 1 ? 3 : 40);
    if (random_between(random, 0, 3) == 0) { /* depthwise */
        shape.groups = shape.input_channels = random_between(random, 1, 80);
        shape.output_channels = shape.groups * random_between(random, 1, 2);
    }
    if (random_between(random, 0, 7) == 0) { /* few channels */
        shape.groups = 1;
        shape.input_channels = random_between(random, 1, 4);
        shape.output_channels = random_between(random, 1, 70);
    }
    bool all_pointwise = random_between(random, 0, 4) == 0;
    /* Long rows are computed without tables of pointers. */
    bool long_rows = random_between(random, 0, 3) == 0;
    for (int d = 0; d < shape.rank; d++) {
        int64_t largest = shape.rank == 1 ? 60 : shape.rank == 2 ? 17 : 6;
        random_window(random, &shape, d, long_rows ? (d + 1 == shape.rank ? 140 : 4) : largest);
        if (all_pointwise || random_between(random, 0, 3) == 0)
            make_pointwise(&shape, d);
    }
    return shape;
}

static problem make_problem(harness *h, sb_conv_shape shape) {
    problem p = {.shape = shape, .m = shape.batch};
    distribution kind = (distribution)random_between(&h->random, 0, DISTRIBUTIONS - 1);
    for (int d = 0; d < shape.rank; d++)
        p.m *= shape.output[d];
    p.x = random_image(h, kind, shape.batch, shape.input_channels, shape.rank, shape.input);
    p.w = random_image(h, kind, shape.output_channels, shape.input_channels / shape.groups, shape.rank, shape.kernel);
    p.y = random_image(h, kind, shape.batch, shape.output_channels, shape.rank, shape.output);
    p.epilogue = random_epilogue(h, kind, p.m, shape.output_channels, &p.operands);
    int64_t count = (int64_t)(p.y->storage->bytes / sizeof(float));
    MUST(sb_tensor_over(p.y->storage, p.y->data, SB_F32, 1, &count, NULL, &p.initial, error));
    p.shape.x_batch_stride = p.x->strides[0];
    p.shape.x_channel_stride = p.x->strides[1];
    p.shape.y_batch_stride = p.y->strides[0];
    p.shape.y_channel_stride = p.y->strides[1];
    memcpy(p.shape.x_stride, p.x->strides + 2, (size_t)shape.rank * sizeof(int64_t));
    memcpy(p.shape.y_stride, p.y->strides + 2, (size_t)shape.rank * sizeof(int64_t));
    memcpy(p.w_strides, p.w->strides, (size_t)(2 + shape.rank) * sizeof(int64_t));
    return p;
}

static void describe(const problem *p, char *text, size_t bytes) {
    const sb_conv_shape *shape = &p->shape;
    char steps[64];
    int used = snprintf(text, bytes, "f32 convolution, groups %lld,", (long long)shape->groups);
    for (int d = 0; d < shape->rank; d++)
        used += snprintf(text + used, bytes - (size_t)used, " stride %lld dilation %lld pad %lld to %lld,",
                         (long long)shape->stride[d], (long long)shape->dilation[d], (long long)shape->pad[d],
                         (long long)shape->output[d]);
    snprintf(text + used, bytes - (size_t)used, " epilogue steps:%s", epilogue_text(&p->epilogue, steps));
}

/* ---- running ---- */

static void run_in_rectangles(random_source *random, const sb_conv_plan *plan, const problem *p, const float *packed,
                              float *y, void *workspace) {
    for (int64_t m0 = 0, m1; m0 < plan->m; m0 = m1) {
        m1 = random_between(random, m0 + 1, plan->m);
        for (int64_t n0 = 0, n1; n0 < plan->n; n0 = n1) {
            n1 = random_between(random, n0 + 1, plan->n);
            sb_conv_f32_run(plan, floats_of(p->x), packed, y, &p->epilogue, m0, m1, n0, n1, workspace);
        }
    }
}

static void run_by_split(const sb_conv_plan *plan, const problem *p, const float *packed, float *y, int threads,
                         void *workspace) {
    sb_gemm_split split = sb_conv_f32_split(plan, threads);
    for (int64_t part = 0; part < split.m_parts * split.n_parts; part++) {
        int64_t m0, m1, n0, n1;
        sb_gemm_split_rectangle(&split, part, &m0, &m1, &n0, &n1);
        sb_conv_f32_run(plan, floats_of(p->x), packed, y, &p->epilogue, m0, m1, n0, n1, workspace);
    }
}

static sb_conv_plan plan_of(const sb_gemm_kernels *kernels, const problem *p) {
    sb_conv_plan plan;
    MUST(sb_conv_f32_plan(kernels, &p->shape, &plan, error));
    assert_true(plan.m == p->m);
    return plan;
}

static void check_kernels(harness *h, const sb_gemm_kernels *kernels, const problem *p, const sb_tensor *expected) {
    static const char *const ways[] = {"whole", "in rectangles", "by a split"};
    sb_tensor *inputs[] = {p->x, p->w, p->y};
    sb_conv_plan plan = plan_of(kernels, p);
    float *packed = raw_block(plan.packed_bytes);
    void *workspace = raw_block(plan.workspace_bytes);
    sb_conv_f32_pack(&plan, floats_of(p->w), p->w_strides[0], p->w_strides[1], p->w_strides + 2, packed);
    for (int way = 0; way < 3; way++) {
        sb_tensor *y = copy_floats(p->initial);
        char what[96];
        if (way == 0)
            sb_conv_f32_run(&plan, floats_of(p->x), packed, floats_of(y), &p->epilogue, 0, plan.m, 0, plan.n,
                            workspace);
        else if (way == 1)
            run_in_rectangles(&h->random, &plan, p, packed, floats_of(y), workspace);
        else
            run_by_split(&plan, p, packed, floats_of(y), (int)random_between(&h->random, 1, 8), workspace);
        snprintf(what, sizeof what, "f32 convolution by %s, method %d, %s", kernels->name, (int)plan.method, ways[way]);
        harness_compare(h, what, expected, y, inputs, 3);
        sb_tensor_release(y);
    }
    sb_free(packed);
    sb_free(workspace);
}

/* Counts the methods by which instruction sets would compute the case, also when it is not wanted. */
static void check_problem(harness *h, problem p, int methods[METHODS]) {
    sb_tensor *inputs[] = {p.x, p.w, p.y};
    const sb_gemm_kernels *kernels[3];
    const int count = machine_kernels(kernels);
    char what[384];
    describe(&p, what, sizeof what);
    for (int i = 0; i < count; i++)
        methods[plan_of(kernels[i], &p).method]++;
    if (harness_wants(h, what, inputs, 3) && (h->sides & HARNESS_CPU) != 0) {
        sb_tensor *expected = copy_floats(p.initial);
        sb_conv_f32_reference(&p.shape, floats_of(p.x), floats_of(p.w), p.w_strides[0], p.w_strides[1], p.w_strides + 2,
                              floats_of(expected), &p.epilogue, 0, p.m, 0, p.shape.output_channels);
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

static void check(harness *h, sb_conv_shape shape, int methods[METHODS]) {
    check_problem(h, make_problem(h, shape), methods);
}

HARNESS_GROUP(f32_convolution, random, HARNESS_CPU) {
    int methods[METHODS] = {0};
    for (int i = 0; i < 1000; i++)
        check(h, random_shape(&h->random), methods);
    for (int method = 0; method < METHODS; method++)
        assert_true(methods[method] > 20);
}

/* Sizes at which strips, blocks of pixels and parts of k have several pieces. */
HARNESS_GROUP(f32_convolution, larger, HARNESS_CPU) {
    static const struct {
        int rank;
        int64_t batch, groups, inputs, outputs;
        int64_t in[3], out[3], kernel[3], stride, pad;
    } sizes[] = {
        {2, 1, 1, 3, 40, {60, 61}, {30, 31}, {7, 7}, 2, 3},
        {2, 2, 1, 70, 34, {15, 16}, {15, 16}, {3, 3}, 1, 1},
        {2, 1, 2, 1200, 10, {4, 4}, {4, 4}, {3, 3}, 1, 1},
        {2, 2, 1, 1024, 140, {5, 6}, {5, 6}, {1, 1}, 1, 0},
        {2, 1, 200, 200, 200, {30, 31}, {15, 16}, {3, 3}, 2, 1},
        {1, 1, 1, 5, 6, {9000}, {8990}, {11}, 1, 0},
        {3, 1, 1, 4, 5, {12, 30, 40}, {12, 30, 40}, {3, 3, 3}, 1, 1},
    };
    int methods[METHODS] = {0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        sb_conv_shape shape = {.rank = sizes[i].rank,
                               .batch = sizes[i].batch,
                               .groups = sizes[i].groups,
                               .input_channels = sizes[i].inputs,
                               .output_channels = sizes[i].outputs};
        for (int d = 0; d < shape.rank; d++) {
            shape.input[d] = sizes[i].in[d];
            shape.output[d] = sizes[i].out[d];
            shape.kernel[d] = sizes[i].kernel[d];
            shape.stride[d] = sizes[i].stride;
            shape.dilation[d] = 1;
            shape.pad[d] = sizes[i].pad;
        }
        for (int repeat = 0; repeat < 3; repeat++)
            check(h, shape, methods);
    }
}

/* Kernel positions that are in the padding for whole blocks of pixels, or for all: some of them first, last and between others. Every
 * third time no weight is above 0, so that positions in the padding leave a chain of -0 as it is. */
HARNESS_GROUP(f32_convolution, dilated, HARNESS_CPU) {
    static const int64_t dilations[] = {2, 3, 6, 12, 19};
    int methods[METHODS] = {0};
    for (int round = 0; round < 120; round++) {
        sb_conv_shape shape = {.rank = 1 + round % 2,
                               .batch = 1 + round % 3 / 2,
                               .groups = round % 7 == 6 ? 2 : 1,
                               .input_channels = (int64_t[]){32, 50, 96, 10}[round / 2 % 4],
                               .output_channels = (int64_t[]){34, 8, 70}[round / 3 % 3]};
        for (int d = 0; d < shape.rank; d++) {
            shape.input[d] = shape.rank == 1 ? 130 : 7 + 3 * d + round % 5;
            shape.kernel[d] = round % 11 == 10 ? 2 : 3;
            shape.stride[d] = round % 13 == 12 ? 2 : 1;
            shape.dilation[d] = dilations[(round + d) % 5] * (shape.rank == 1 ? 5 : 1);
            shape.pad[d] = shape.dilation[d];
            int64_t span = shape.input[d] + 2 * shape.pad[d] - (shape.kernel[d] - 1) * shape.dilation[d] - 1;
            shape.output[d] = span / shape.stride[d] + 1;
        }
        problem p = make_problem(h, shape);
        float *w = (float *)p.w->storage->data;
        for (size_t i = 0; round % 3 == 2 && i < p.w->storage->bytes / sizeof(float); i++)
            w[i] = w[i] > 0.0f ? -w[i] : w[i];
        check_problem(h, p, methods);
    }
    assert_true(methods[SB_CONV_INDIRECT] > 20);
}
