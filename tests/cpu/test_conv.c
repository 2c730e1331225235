/* f32 convolutions: every instruction set, method, layout, split and epilogue against the
 * definition, bit for bit. */
#include "cpu/contraction/conv.h"
#include "float_cases.h"

typedef struct problem {
    sb_conv_shape shape;
    int64_t w_output_stride, w_input_stride, w_kernel_strides[SB_CONV_RANK];
    float *x, *w, *initial, *operands;
    sb_epilogue epilogue;
    int64_t m, y_size;
    char name[200];
} problem;

/* Strides of a (batch, channels, spatial…) tensor, channels first or last, with or without gaps;
 * returns the floats it spans. */
static int64_t random_layout(random_source *source, int64_t batch, int64_t channels, int rank, const int64_t *extents,
                             int64_t *batch_stride, int64_t *channel_stride, int64_t *strides) {
    bool last = random_between(source, 0, 2) != 0;
    int64_t step = random_between(source, 0, 5) == 0 ? 2 : 1;
    if (last) {
        *channel_stride = step;
        step *= channels;
    }
    for (int d = rank - 1; d >= 0; d--) {
        if (random_between(source, 0, 6) == 0)
            step += random_between(source, 1, 3);
        strides[d] = step;
        step *= extents[d];
    }
    if (!last) {
        *channel_stride = step;
        step *= channels;
    }
    *batch_stride = step;
    return step * batch + 1;
}

/* Outputs that the usual formula gives, for random pads (which may be more than the kernel's reach). */
static void random_window(random_source *source, sb_conv_shape *shape, int d, int64_t largest) {
    shape->kernel[d] = random_between(source, 1, 3);
    shape->stride[d] = random_between(source, 1, 3);
    shape->dilation[d] = random_between(source, 0, 3) == 0 ? 2 : 1;
    shape->pad[d] = random_between(source, 0, 2) == 0 ? random_between(source, -1, 3) : shape->kernel[d] / 2;
    shape->input[d] = random_between(source, 1, largest);
    int64_t span = shape->input[d] + shape->pad[d] + random_between(source, 0, 2) -
                   (shape->kernel[d] - 1) * shape->dilation[d] - 1;
    shape->output[d] = span < 0 ? 0 : span / shape->stride[d] + 1;
    if (random_between(source, 0, 3) == 0) { /* 1×1 */
        shape->kernel[d] = shape->stride[d] = shape->dilation[d] = 1;
        shape->pad[d] = 0;
        shape->output[d] = shape->input[d];
    }
}

static sb_conv_shape random_shape(random_source *source) {
    sb_conv_shape shape = {.rank = (int)random_between(source, 1, 3),
                           .batch = random_between(source, 0, 3),
                           .groups = random_between(source, 0, 2) != 0 ? 1 : random_between(source, 2, 9)};
    int64_t per_group = random_between(source, 0, 1) == 0 ? 1 : random_between(source, 0, 20);
    shape.input_channels = shape.groups * per_group;
    shape.output_channels = shape.groups * random_between(source, 1, per_group == 1 ? 3 : 40);
    if (random_between(source, 0, 3) == 0) { /* depthwise */
        shape.groups = shape.input_channels = random_between(source, 1, 80);
        shape.output_channels = shape.groups * random_between(source, 1, 2);
    }
    bool all_ones = random_between(source, 0, 4) == 0;
    for (int d = 0; d < shape.rank; d++) {
        random_window(source, &shape, d, shape.rank == 1 ? 60 : shape.rank == 2 ? 17 : 6);
        if (all_ones) {
            shape.kernel[d] = shape.stride[d] = shape.dilation[d] = 1;
            shape.pad[d] = 0;
            shape.output[d] = shape.input[d];
        }
    }
    return shape;
}

static problem make_problem(random_source *source, sb_conv_shape shape) {
    problem p = {.shape = shape, .m = shape.batch};
    distribution kind = (distribution)random_between(source, 0, DISTRIBUTIONS - 1);
    const int64_t channels = shape.input_channels / shape.groups;
    for (int d = 0; d < shape.rank; d++)
        p.m *= shape.output[d];
    p.x = random_values(source, kind,
                        random_layout(source, shape.batch, shape.input_channels, shape.rank, shape.input,
                                      &p.shape.x_batch_stride, &p.shape.x_channel_stride, p.shape.x_stride));
    p.y_size = random_layout(source, shape.batch, shape.output_channels, shape.rank, shape.output,
                             &p.shape.y_batch_stride, &p.shape.y_channel_stride, p.shape.y_stride);
    p.initial = random_values(source, kind, p.y_size);
    p.w = random_values(source, kind,
                        random_layout(source, shape.output_channels, channels, shape.rank, shape.kernel,
                                      &p.w_output_stride, &p.w_input_stride, p.w_kernel_strides));
    p.epilogue = random_epilogue(source, kind, p.m, shape.output_channels, &p.operands);
    int used = snprintf(p.name, sizeof p.name, "batch %lld, groups %lld, channels %lld to %lld, kind %d;",
                        (long long)shape.batch, (long long)shape.groups, (long long)shape.input_channels,
                        (long long)shape.output_channels, (int)kind);
    for (int d = 0; d < shape.rank; d++)
        used += snprintf(p.name + used, sizeof p.name - (size_t)used, " %lld>%lld k%lld s%lld d%lld p%lld",
                         (long long)shape.input[d], (long long)shape.output[d], (long long)shape.kernel[d],
                         (long long)shape.stride[d], (long long)shape.dilation[d], (long long)shape.pad[d]);
    return p;
}

static void free_problem(problem *p) {
    sb_free(p->x);
    sb_free(p->w);
    sb_free(p->initial);
    sb_free(p->operands);
}

static float *copy_of(const float *values, int64_t count) {
    float *copy = sb_allocate((size_t)count * sizeof(float));
    assert_non_null(copy);
    memcpy(copy, values, (size_t)count * sizeof(float));
    return copy;
}

static void run_in_rectangles(random_source *source, const sb_conv_plan *plan, const problem *p, const float *packed,
                              float *y, void *workspace) {
    for (int64_t m0 = 0, m1; m0 < plan->m; m0 = m1) {
        m1 = random_between(source, m0 + 1, plan->m);
        for (int64_t n0 = 0, n1; n0 < plan->n; n0 = n1) {
            n1 = random_between(source, n0 + 1, plan->n);
            sb_conv_f32_run(plan, p->x, packed, y, &p->epilogue, m0, m1, n0, n1, workspace);
        }
    }
}

static void run_by_split(const sb_conv_plan *plan, const problem *p, const float *packed, float *y, int threads,
                         void *workspace) {
    sb_gemm_split split = sb_conv_f32_split(plan, threads);
    for (int64_t part = 0; part < split.m_parts * split.n_parts; part++) {
        int64_t m0, m1, n0, n1;
        sb_gemm_split_rectangle(&split, part, &m0, &m1, &n0, &n1);
        sb_conv_f32_run(plan, p->x, packed, y, &p->epilogue, m0, m1, n0, n1, workspace);
    }
}

static int methods_seen[SB_CONV_DEPTHWISE_STRIP + 1];

static void check_kernels(random_source *source, const sb_gemm_kernels *kernels, const problem *p,
                          const float *expected) {
    sb_conv_plan plan;
    sb_error error;
    if (sb_conv_f32_plan(kernels, &p->shape, &plan, &error) != SB_OK)
        fail_msg("%s: %s", p->name, error.message);
    methods_seen[plan.method]++;
    assert_int_equal(plan.m, p->m);
    float *packed = sb_allocate(plan.packed_bytes);
    void *workspace = sb_allocate(plan.workspace_bytes);
    assert_true(packed != NULL && workspace != NULL);
    sb_conv_f32_pack(&plan, p->w, p->w_output_stride, p->w_input_stride, p->w_kernel_strides, packed);
    for (int way = 0; way < 3; way++) {
        float *y = copy_of(p->initial, p->y_size);
        if (way == 0)
            sb_conv_f32_run(&plan, p->x, packed, y, &p->epilogue, 0, plan.m, 0, plan.n, workspace);
        else if (way == 1)
            run_in_rectangles(source, &plan, p, packed, y, workspace);
        else
            run_by_split(&plan, p, packed, y, (int)random_between(source, 1, 8), workspace);
        char what[300];
        snprintf(what, sizeof what, "%s, method %d, way %d, %s", kernels->name, (int)plan.method, way, p->name);
        assert_same_floats(what, expected, y, p->y_size);
        sb_free(y);
    }
    sb_free(packed);
    sb_free(workspace);
}

static void check(random_source *source, sb_conv_shape shape) {
    problem p = make_problem(source, shape);
    float *expected = copy_of(p.initial, p.y_size);
    sb_conv_f32_reference(&p.shape, p.x, p.w, p.w_output_stride, p.w_input_stride, p.w_kernel_strides, expected,
                          &p.epilogue, 0, p.m, 0, shape.output_channels);
    const sb_gemm_kernels *kernels[3];
    const int count = machine_kernels(kernels);
    for (int i = 0; i < count; i++)
        check_kernels(source, kernels[i], &p, expected);
    sb_free(expected);
    free_problem(&p);
}

static void test_random_shapes(void **state) {
    (void)state;
    random_source source = {.state = 21};
    for (int i = 0; i < 1000; i++)
        check(&source, random_shape(&source));
    for (int method = 0; method <= SB_CONV_DEPTHWISE_STRIP; method++)
        assert_true(methods_seen[method] > 20);
}

/* Sizes at which strips, blocks of pixels and parts of k have several pieces. */
static void test_larger_shapes(void **state) {
    (void)state;
    static const sb_conv_shape shapes[] = {
        {.rank = 2,
         .batch = 1,
         .groups = 1,
         .input_channels = 3,
         .output_channels = 40,
         .input = {60, 61},
         .output = {30, 31},
         .kernel = {7, 7},
         .stride = {2, 2},
         .dilation = {1, 1},
         .pad = {3, 3}},
        {.rank = 2,
         .batch = 2,
         .groups = 1,
         .input_channels = 70,
         .output_channels = 34,
         .input = {15, 16},
         .output = {15, 16},
         .kernel = {3, 3},
         .stride = {1, 1},
         .dilation = {1, 1},
         .pad = {1, 1}},
        {.rank = 2,
         .batch = 1,
         .groups = 2,
         .input_channels = 1200,
         .output_channels = 10,
         .input = {4, 4},
         .output = {4, 4},
         .kernel = {3, 3},
         .stride = {1, 1},
         .dilation = {1, 1},
         .pad = {1, 1}},
        {.rank = 2,
         .batch = 2,
         .groups = 1,
         .input_channels = 1024,
         .output_channels = 140,
         .input = {5, 6},
         .output = {5, 6},
         .kernel = {1, 1},
         .stride = {1, 1},
         .dilation = {1, 1}},
        {.rank = 2,
         .batch = 1,
         .groups = 200,
         .input_channels = 200,
         .output_channels = 200,
         .input = {30, 31},
         .output = {15, 16},
         .kernel = {3, 3},
         .stride = {2, 2},
         .dilation = {1, 1},
         .pad = {1, 1}},
        {.rank = 1,
         .batch = 1,
         .groups = 1,
         .input_channels = 5,
         .output_channels = 6,
         .input = {9000},
         .output = {8990},
         .kernel = {11},
         .stride = {1},
         .dilation = {1}},
        {.rank = 3,
         .batch = 1,
         .groups = 1,
         .input_channels = 4,
         .output_channels = 5,
         .input = {12, 30, 40},
         .output = {12, 30, 40},
         .kernel = {3, 3, 3},
         .stride = {1, 1, 1},
         .dilation = {1, 1, 1},
         .pad = {1, 1, 1}},
    };
    random_source source = {.state = 22};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int repeat = 0; repeat < 3; repeat++)
            check(&source, shapes[i]);
}

static void test_refusals(void **state) {
    (void)state;
    const sb_conv_shape good = {.rank = 1,
                                .batch = 1,
                                .groups = 1,
                                .input_channels = 1,
                                .output_channels = 1,
                                .input = {4},
                                .output = {4},
                                .kernel = {1},
                                .stride = {1},
                                .dilation = {1},
                                .x_channel_stride = 1,
                                .y_channel_stride = 1};
    const sb_gemm_kernels *kernels = sb_gemm_f32_kernels(SB_ISA_SCALAR);
    sb_conv_plan plan;
    sb_error error;
    assert_int_equal(sb_conv_f32_plan(kernels, &good, &plan, &error), SB_OK);
    sb_conv_shape bad = good;
    bad.stride[0] = 0;
    assert_int_equal(sb_conv_f32_plan(kernels, &bad, &plan, &error), SB_ERROR_INVALID_ARGUMENT);
    bad = good;
    bad.groups = 2;
    assert_int_equal(sb_conv_f32_plan(kernels, &bad, &plan, &error), SB_ERROR_INVALID_ARGUMENT);
    bad = good;
    bad.rank = SB_CONV_RANK + 1;
    assert_int_equal(sb_conv_f32_plan(kernels, &bad, &plan, &error), SB_ERROR_UNSUPPORTED);
    bad = good;
    bad.dilation[0] = INT64_MAX;
    bad.kernel[0] = 3;
    assert_int_equal(sb_conv_f32_plan(kernels, &bad, &plan, &error), SB_ERROR_UNSUPPORTED);
    bad = good;
    bad.batch = INT64_MAX;
    assert_int_equal(sb_conv_f32_plan(kernels, &bad, &plan, &error), SB_ERROR_UNSUPPORTED);
    bad = good;
    bad.pad[0] = INT64_MIN;
    assert_int_equal(sb_conv_f32_plan(kernels, &bad, &plan, &error), SB_ERROR_UNSUPPORTED);
    bad = good;
    bad.input_channels = bad.output_channels = INT64_MAX / 2;
    assert_int_equal(sb_conv_f32_plan(kernels, &bad, &plan, &error), SB_ERROR_UNSUPPORTED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_shapes),
        cmocka_unit_test(test_larger_shapes),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
