/* Nodes behind 16-bit products in the kernels that compute both: in every shape that has them and in the
 * general one, under several orders of what is asynchronous, against the CPU's product and plain loops over the nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "hopper_cases.h"
#include "ops/real.h"

/* ---- programs ---- */

#define INPUTS 5
#define STEPS 6

/* A program and what it reads, which has an element for each of some batches, rows and columns. */
typedef struct nodes {
    sb_gemm_fused fused;
    pair inputs[INPUTS];
} nodes;

static pair add_input(setting *setting, const product *p, int number, int64_t rows, int64_t columns, bool by_outer,
                      layout layout, sb_gemm16_nodes *program) {
    int64_t outer = p->batches / program->inner_batch, batches = by_outer ? outer : program->inner_batch;
    pair made = make_pair(setting, p->dtype, rows, columns, batches, layout, number == 1 ? SPECIAL : TAME);
    int64_t batch = batches > 1 ? made.host.batch_stride * 2 : 0;
    program->inputs[number] = (sb_cuda_epilogue_input){
        .data = made.device.data,
        .steps = {by_outer ? batch : 0, by_outer ? 0 : batch, rows > 1 ? made.host.row_stride * 2 : 0,
                  columns > 1 ? made.host.column_stride * 2 : 0},
        .dtype = p->dtype == SB_F16 ? SB_CUDA_EPILOGUE_F16 : SB_CUDA_EPILOGUE_BF16};
    return made;
}

static nodes make_nodes(setting *setting, const product *p, int form) {
    static const struct {
        uint8_t operation, input;
        float a, b;
    } steps[] = {
        {SB_GEMM16_NODE_ADD, 1, 0, 0},         {SB_GEMM16_NODE_MUL, 0, 0.125f, 0}, {SB_GEMM16_NODE_ADD, 2, 0, 0},
        {SB_GEMM16_NODE_RELU, 0, 0, 0},        {SB_GEMM16_NODE_SUB, 3, 0, 0},      {SB_GEMM16_NODE_DIV, 4, 0, 0},
        {SB_GEMM16_NODE_CLIP, 0, -1.5f, 2.5f}, {SB_GEMM16_NODE_SUB_FROM, 5, 0, 0}, {SB_GEMM16_NODE_MUL, 2, 0, 0},
        {SB_GEMM16_NODE_DIV_INTO, 0, 3, 0},    {SB_GEMM16_NODE_ADD, 0, -0.75f, 0},
    };
    enum { COUNT = sizeof steps / sizeof steps[0] };
    nodes made = {0};
    sb_gemm16_nodes *program = &made.fused.program;
    program->inner_batch = p->batches % 3 == 0 ? 3 : 1;
    made.inputs[0] = add_input(setting, p, 0, 1, p->n, false, ROWS, program);
    made.inputs[1] = add_input(setting, p, 1, p->m, p->n, true, form % 2 != 0 ? WIDE_ROWS : ODD_ROWS, program);
    made.inputs[2] = add_input(setting, p, 2, p->m, 1, false, COLUMNS, program);
    made.inputs[3] = add_input(setting, p, 3, 1, 1, true, ROWS, program);
    made.inputs[4] = add_input(setting, p, 4, p->m, p->n, false, form % 2 != 0 ? REVERSED : APART, program);
    program->count = 1 + form % STEPS;
    for (int i = 0; i < program->count; i++) {
        int step = (form * 3 + i) % COUNT;
        program->steps[i] = (sb_gemm16_node){
            .operation = steps[step].operation, .input = steps[step].input, .a = steps[step].a, .b = steps[step].b};
    }
    for (int i = 0; i < INPUTS; i++)
        made.fused.ranges[made.fused.range_count++] =
            (sb_cuda_range){made.inputs[i].memory->address, made.inputs[i].bytes, false};
    return made;
}

static void release_nodes(nodes *nodes) {
    for (int i = 0; i < INPUTS; i++)
        release_pair(&nodes->inputs[i]);
}

/* ---- the nodes one by one ---- */

static float node(const sb_gemm16_node *step, float value, float other) {
    switch (step->operation) {
    case SB_GEMM16_NODE_ADD:
        return value + other;
    case SB_GEMM16_NODE_SUB:
        return value - other;
    case SB_GEMM16_NODE_SUB_FROM:
        return other - value;
    case SB_GEMM16_NODE_MUL:
        return value * other;
    case SB_GEMM16_NODE_DIV:
        return value / other;
    case SB_GEMM16_NODE_DIV_INTO:
        return other / value;
    case SB_GEMM16_NODE_RELU:
        return value < 0 ? 0 : value;
    default:
        value = value < step->a ? step->a : value;
        return value > step->b ? step->b : value;
    }
}

static float read_input(const nodes *nodes, sb_dtype dtype, int number, const int64_t at[4]) {
    const sb_cuda_epilogue_input *input = &nodes->fused.program.inputs[number];
    const char *data = nodes->inputs[number].host.data;
    for (int i = 0; i < 4; i++)
        data += at[i] * input->steps[i];
    return sb_real_load_f32(dtype, data, 0);
}

static void run_nodes(const product *p, const operands *all, const nodes *nodes) {
    const sb_gemm16_nodes *program = &nodes->fused.program;
    const sb_matrix *c = &all->c.host;
    for (int64_t batch = 0; batch < p->batches; batch++) {
        for (int64_t row = 0; row < p->m; row++) {
            for (int64_t column = 0; column < p->n; column++) {
                const int64_t at[4] = {batch / program->inner_batch, batch % program->inner_batch, row, column};
                int64_t index = (p->batches > 1 ? batch * c->batch_stride : 0) + (p->m > 1 ? row * c->row_stride : 0) +
                                (p->n > 1 ? column * c->column_stride : 0);
                for (int i = 0; i < program->count; i++) {
                    const sb_gemm16_node *step = &program->steps[i];
                    float value = sb_real_load_f32(p->dtype, c->data, index);
                    float other = step->input != 0 ? read_input(nodes, p->dtype, step->input - 1, at) : step->a;
                    sb_real_store_f32(p->dtype, c->data, index, node(step, value, other));
                }
            }
        }
    }
}

/* ---- on the device ---- */

static void run_fused(setting *setting, const product *p, const operands *all, const nodes *nodes) {
    sb_gemm gemm = describe_gemm(p, all, true);
    const sb_gemm_model model = SB_GEMM_MODEL_DEFAULT;
    sb_gemm_plan plan;
    gemm.schedule = p->schedule;
    MUST(sb_gemm_plan_fill(&gemm, &model, &plan, error));
    plan.fused = &nodes->fused;
    MUST(sb_cuda_enter(setting->queue.stream->device, error));
    MUST(sb_cuda_leave(setting->queue.stream->device, sb_gemm_launch(&setting->queue, -1, &plan, NULL, error), error));
    MUST(sb_cuda_stream_synchronize(setting->queue.stream, error));
}

/* A case under every schedule of the host, by the kernel with this beginning of its name. */
static void check(setting *setting, const product *p, int form, const char *kernel) {
    char text[512];
    hopper_case c = make_hopper_case(setting, p);
    nodes nodes = make_nodes(setting, p, form);
    size_t where;
    run_nodes(p, &c.all, &nodes);
    describe_product(p, text, sizeof text);
    for (int i = 0; i < HOPPER_SCHEDULES; i++) {
        MUST(
            sb_cuda_upload(setting->staging, &setting->queue, c.all.c.memory->address, c.before, c.all.c.bytes, error));
        host_set_schedule(&hopper_schedules[i]);
        run_fused(setting, p, &c.all, &nodes);
        host_set_schedule(NULL);
        if (!same_bytes(setting, &c.all.c, &where))
            fail_msg("%s, form %d: byte %zu of C differs under \"%s\"", text, form, where, hopper_schedules[i].name);
        const host_rings rings = host_last_rings();
        if (kernel != NULL && strncmp(rings.kernel, kernel, strlen(kernel)) != 0)
            fail_msg("%s: %s is run", text, rings.kernel);
    }
    release_nodes(&nodes);
    release_hopper_case(&c);
}

static product make_product(sb_dtype dtype, int64_t m, int64_t n, int64_t k, const char *schedule) {
    product p = plain;
    p.dtype = p.c_dtype = dtype;
    p.m = m;
    p.n = n;
    p.k = k;
    p.a = WIDE_ROWS;
    p.schedule = schedule;
    return p;
}

/* Tiles of 128 rows: one that is cut off, and several behind each other, with batches of two steps. */
static void test_two_warpgroups(void **unused) {
    static const struct {
        const char *schedule, *kernel;
        int64_t n;
    } shapes[] = {
        {"tile-128x256", "sb_gemm16_fused_128x256_", 328},
        {"tile-128x192", "sb_gemm16_fused_128x192_", 200},
        {"tile-128x128", "sb_gemm16_fused_128x128_", 264},
        {"tile-128x64", "sb_gemm16_fused_128x64_", 72},
    };
    setting setting = set_up_with(2);
    for (int shape = 0; shape < 4; shape++) {
        for (int form = 0; form < 6; form++) {
            bool many = form % 3 == 2;
            product p =
                make_product((shape + form) % 2 != 0 ? SB_F16 : SB_BF16, many ? 300 : 129 + form,
                             many ? shapes[shape].n : 40 + 8 * form, many ? 136 : 520 + form, shapes[shape].schedule);
            p.b = form / 3 != 0 ? WIDE_ROWS : WIDE_COLUMNS;
            p.c = WIDE_ROWS;
            p.batches = form == 1 ? 6 : form == 4 ? 2 : 1;
            p.values = form == 3 ? SPECIAL : TAME;
            p.bias_dtype = form == 4 ? p.dtype : SB_DTYPE_NONE;
            p.scale = form == 4 ? 0.3f : 1;
            check(&setting, &p, shape * 6 + form, shapes[shape].kernel);
        }
    }
    tear_down(&setting);
}

/* Tiles of 64 rows, with results in registers: C in any layout, or of columns that are no multiple of eight. */
static void test_one_warpgroup(void **unused) {
    static const struct {
        const char *schedule, *kernel;
        bool swapped;
    } shapes[] = {
        {"tile-64x64", "sb_gemm16_fused_64x64_", false},   {"tile-64x32", "sb_gemm16_fused_64x32_", false},
        {"tile-64x16", "sb_gemm16_fused_64x16_", false},   {"swapped-64x64", "sb_gemm16_fused_64x64_", true},
        {"swapped-64x32", "sb_gemm16_fused_64x32_", true}, {"swapped-64x16", "sb_gemm16_fused_64x16_", true},
        {"swapped-64x8", "sb_gemm16_fused_64x8_", true},   {"row-64x8", "sb_gemm16_fused_row_64x8_", true},
    };
    setting setting = set_up_with(2);
    for (int shape = 0; shape < 8; shape++) {
        for (int form = 0; form < 6; form++) {
            bool swapped = shapes[shape].swapped, mn_major = form % 2 != 0, is_row = shape == 7;
            product p = make_product((shape + form) % 2 != 0 ? SB_F16 : SB_BF16,
                                     is_row    ? 1
                                     : swapped ? 1 + 6 * form
                                               : 33 + 9 * form,
                                     swapped ? 67 + 8 * form : 9 + 16 * form, 256, shapes[shape].schedule);
            p.a = mn_major && !swapped ? WIDE_COLUMNS : WIDE_ROWS;
            p.b = mn_major && swapped ? WIDE_ROWS : WIDE_COLUMNS;
            p.c = form == 2 ? COLUMNS : form == 3 ? APART : form == 5 ? WIDE_ROWS : ROWS;
            p.batches = form == 4 && !is_row ? 3 : 1;
            p.values = form == 1 ? SPECIAL : TAME;
            p.residual_dtype = form == 5 ? p.dtype : SB_DTYPE_NONE;
            check(&setting, &p, shape * 6 + form, shapes[shape].kernel);
        }
    }
    tear_down(&setting);
}

/* Tiles of 64 of C's columns, which turn their results in shared memory where eight neighbours of a row are 16 bytes: tiles of fewer
 * rows than a multiprocessor's share, several behind each other, and what Gemm's own node adds before. */
static void test_turned(void **unused) {
    static const char *const names[] = {"swapped-64x64", "swapped-64x32", "swapped-64x16", "swapped-64x8", "row-64x8"};
    static const char *const kernels[] = {"64x64", "64x32", "64x16", "64x8", "row_64x8"};
    static const int64_t columns[] = {64, 8, 72, 136, 24, 200};
    setting setting = set_up_with(2);
    for (int shape = 0; shape < 5; shape++) {
        for (int form = 0; form < 6; form++) {
            char kernel[64];
            snprintf(kernel, sizeof kernel, "sb_gemm16_fused_%s_", kernels[shape]);
            product p = make_product((shape + form) % 2 != 0 ? SB_F16 : SB_BF16, shape == 4 ? 1 : 1 + 13 * form,
                                     columns[form], form == 0 ? 64 : 320, names[shape]);
            p.b = form % 2 != 0 ? WIDE_ROWS : WIDE_COLUMNS;
            p.c = WIDE_ROWS;
            p.batches = form == 4 && shape != 4 ? 3 : 1;
            p.values = form == 1 ? SPECIAL : TAME;
            p.bias_dtype = form == 3 ? SB_F32 : SB_DTYPE_NONE;
            p.residual_dtype = form == 5 ? p.dtype : SB_DTYPE_NONE;
            check(&setting, &p, shape * 6 + form, kernel);
        }
    }
    tear_down(&setting);
}

/* Everything else: odd strides, no k, few columns. */
static void test_general(void **unused) {
    setting setting = set_up_with(2);
    for (int form = 0; form < 20; form++) {
        product p = make_product(form / 2 % 2 != 0 ? SB_F16 : SB_BF16, 1 + form * 8, 1 + (19 - form) * 5,
                                 form == 4 ? 0 : 19 * form, form % 2 != 0 ? "general" : "general-small");
        p.a = (layout)(form % LAYOUTS);
        p.b = (layout)(form * 3 % LAYOUTS);
        p.c = (layout)(form * 5 % LAYOUTS);
        p.batches = 1 + form % 3 * (1 + form % 2 * 2);
        p.values = (values)(form % VALUES);
        p.bias_dtype = form % 4 == 0 ? SB_F32 : SB_DTYPE_NONE;
        p.residual_dtype = form % 5 == 0 ? p.dtype : SB_DTYPE_NONE;
        p.scale = form % 3 == 0 ? -2 : 1;
        check(&setting, &p, form, NULL);
    }
    tear_down(&setting);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_warpgroups),
        cmocka_unit_test(test_one_warpgroup),
        cmocka_unit_test(test_turned),
        cmocka_unit_test(test_general),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
