/* The kernel of LinearAttention in f32, f16 and bf16, by the steps of linear_step.h. Threads take a head and some columns of its state
 * from the first position to the last. What is of 16 bits is widened before, and rounded once when it is there. */
#include <string.h>

#include "cpu/list.h"
#include "cpu/pieces.h"
#include "cpu/recurrent/linear_step.h"
#include "cpu/supports.h"
#include "cpu/widen.h"
#include "ops/linear_attention.h"

enum { QUERY, KEY, VALUE, PAST, DECAY, BETA, OPERANDS };

/* Row-major f32; NULL where omitted. */
typedef struct recurrence {
    sb_linear_work work;
    sb_linear_step_run *step;
    const float *operands[OPERANDS];
    float *output, *present;
    int64_t group, tiles; /* heads of queries for one of keys; pieces of a state */
} recurrence;

/* Columns of a state, from its first column on, of one head of a batch. */
typedef struct part {
    int64_t batch, head, first, columns;
} part;

/* Floats of a thread: the state, factors of a decay, the values, and what is read of them. */
static size_t workspace_floats(const recurrence *run) {
    size_t state, factors = (size_t)run->work.width, floats;
    const size_t rows = (size_t)run->group + 1;
    if (__builtin_mul_overflow(factors, SB_LINEAR_COLUMNS, &state) || __builtin_add_overflow(state, factors, &state) ||
        __builtin_add_overflow(state, rows * SB_LINEAR_COLUMNS + 16, &floats))
        return 0;
    return floats;
}

/* Between a state [width, value width] of a tensor and the columns of a part. */
static void move_state(const recurrence *run, const part *p, float *state, const float *from, float *to) {
    const sb_linear_work *work = &run->work;
    const int64_t head = p->batch * work->params->key_heads + p->head;
    for (int64_t i = 0; i < work->width; i++) {
        const int64_t at = (head * work->width + i) * work->value_width + p->first;
        float *row = state + i * SB_LINEAR_COLUMNS;
        if (from != NULL)
            memcpy(row, from + at, (size_t)p->columns * sizeof *row);
        if (to != NULL)
            memcpy(to + at, row, (size_t)p->columns * sizeof *row);
    }
}

static void run_positions(const recurrence *run, const part *p, sb_linear_step *step, float *u, float *y) {
    const sb_linear_work *work = &run->work;
    const int64_t heads = work->params->key_heads;
    const int64_t betas = work->beta != NULL ? work->beta->dims[2] : 0;
    for (int64_t at = 0; at < work->positions; at++) {
        const int64_t place = p->batch * work->positions + at, head = place * heads + p->head;
        step->key = run->operands[KEY] + head * work->width;
        step->query = run->operands[QUERY] + head * run->group * work->width;
        if (step->decay != NULL)
            step->decay = run->operands[DECAY] + head * step->decays;
        if (step->beta != NULL)
            step->beta = run->operands[BETA] + (betas == 1 ? place : head);
        memcpy(u, run->operands[VALUE] + head * work->value_width + p->first, (size_t)p->columns * sizeof *u);
        run->step(step, u, y);
        for (int64_t h = 0; h < run->group && run->output != NULL; h++)
            memcpy(run->output + (head * run->group + h) * work->value_width + p->first, y + h * SB_LINEAR_COLUMNS,
                   (size_t)p->columns * sizeof *y);
    }
}

static void run_part(void *context, int64_t index, void *workspace) {
    const recurrence *run = context;
    const sb_linear_work *work = &run->work;
    const int64_t head = index / run->tiles, first = index % run->tiles * SB_LINEAR_COLUMNS;
    const int64_t left = work->value_width - first;
    const part p = {head / work->params->key_heads, head % work->params->key_heads, first,
                    left < SB_LINEAR_COLUMNS ? left : SB_LINEAR_COLUMNS};
    const size_t state = (size_t)work->width * SB_LINEAR_COLUMNS;
    float *u = (float *)workspace + state, *y = u + SB_LINEAR_COLUMNS;
    sb_linear_step step = {.width = work->width,
                           .columns = (int)(p.columns + 15) / 16 * 16,
                           .state = workspace,
                           .decay = run->operands[DECAY],
                           .decays = work->decay == NULL                               ? 0
                                     : work->decay->dims[2] == work->params->key_heads ? 1
                                                                                       : work->width,
                           .factors = y + run->group * SB_LINEAR_COLUMNS,
                           .beta = run->operands[BETA],
                           .heads = run->group,
                           .scale = work->scale};
    memset(workspace, 0, (state + SB_LINEAR_COLUMNS) * sizeof(float));
    move_state(run, &p, workspace, run->operands[PAST], NULL);
    run_positions(run, &p, &step, u, y);
    move_state(run, &p, workspace, NULL, run->present);
}

/* Operand `index` as row-major f32; *held is to be released. */
static sb_status read_operand(sb_call *call, int index, sb_tensor **held, const float **data) {
    sb_tensor wide = {.rank = 0};
    if (sb_call_input(call, index) == NULL)
        return SB_OK;
    SB_TRY(sb_call_contiguous(call, index, held));
    SB_TRY(sb_widen(call, *held, &wide));
    *data = (const float *)(const void *)wide.data;
    return SB_OK;
}

static sb_status run_parts(sb_call *call, recurrence *run) {
    const sb_linear_work *work = &run->work;
    sb_tensor output = {.rank = 0}, present = {.rank = 0};
    const size_t floats = workspace_floats(run);
    int64_t parts;
    if (floats == 0 || floats > SIZE_MAX / sizeof(float) ||
        __builtin_mul_overflow(work->batch, work->params->key_heads, &parts) ||
        __builtin_mul_overflow(parts, run->tiles, &parts))
        return sb_call_fail(call, SB_ERROR_SHAPE, "the states are too large");
    if (work->output != NULL)
        SB_TRY(sb_widen_output(call, work->output, &output));
    if (work->present != NULL)
        SB_TRY(sb_widen_output(call, work->present, &present));
    run->output = (float *)(void *)output.data;
    run->present = (float *)(void *)present.data;
    SB_TRY(sb_pieces_run(call, parts, floats * sizeof(float), run_part, run));
    if (work->output != NULL)
        sb_narrow(call, &output, work->output);
    if (work->present != NULL)
        sb_narrow(call, &present, work->present);
    return SB_OK;
}

static sb_status launch_linear(sb_call *call) {
    recurrence run = {.step = sb_linear_step_for(call->isa)};
    sb_linear_work *work = &run.work;
    sb_tensor *held[OPERANDS] = {NULL};
    SB_TRY(sb_linear_describe(call, work));
    SB_TRY(sb_linear_make_outputs(call, work));
    run.group = work->params->heads / work->params->key_heads;
    run.tiles = (work->value_width + SB_LINEAR_COLUMNS - 1) / SB_LINEAR_COLUMNS;
    sb_status status = SB_OK;
    for (int i = 0; i < OPERANDS && status == SB_OK; i++)
        status = read_operand(call, i, &held[i], &run.operands[i]);
    if (status == SB_OK)
        status = run_parts(call, &run);
    for (int i = 0; i < OPERANDS; i++)
        sb_tensor_release(held[i]);
    return status;
}

const sb_kernel sb_cpu_kernels_linear_attention[] = {
    {.op = "LinearAttention", .name = "linear-attention", .supports = sb_cpu_supports_all, .launch = launch_linear},
    {0},
};
