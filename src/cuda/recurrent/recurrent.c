/* RNN, GRU and LSTM: products of X and W by the kernels of MatMul, and then all steps in one launch, or one after the other: sequence.cuh. */
#include "cuda/common/elements.h"
#include "cuda/list.h"
#include "cuda/recurrent/recurrent_products.h"
#include "cuda/recurrent/sequence.h"
#include "ops/rows.h"

/* A node's operands, and what its kernels take. */
typedef struct recurrence {
    sb_cuda_sequence parameters;
    sb_cuda_sequence_cut cut;
    const sb_tensor *inputs[8]; /* by SB_RECURRENT_…; NULL where omitted */
    sb_tensor *outputs[3];      /* Y, Y_h and Y_c; NULL where not wanted */
    sb_recurrent_extents extents;
    sb_cuda_recurrent_products xw;
    char *memory; /* of the workspace, besides xw */
    size_t bytes;
} recurrence;

/* ---- operands ---- */

static sb_status find_operands(sb_call *call, recurrence *run) {
    const sb_recurrent_params *params = call->node->params;
    int inputs = params->kind == SB_RECURRENT_LSTM ? 8 : 6;
    for (int i = 0; i < inputs; i++)
        run->inputs[i] = sb_call_input(call, i);
    for (int i = 0; i < 3; i++) {
        if (sb_call_wants(call, i))
            SB_TRY(sb_call_output(call, i, &run->outputs[i]));
    }
    sb_recurrent_extents_of(params, run->inputs[SB_RECURRENT_X], run->inputs[SB_RECURRENT_R], &run->extents);
    return SB_OK;
}

/* An initial state: its data, and its steps. */
static const char *find_state(const sb_recurrent_params *params, const sb_tensor *state, int64_t *direction,
                              int64_t *batch, int64_t *stride) {
    if (state == NULL)
        return NULL;
    *direction = state->strides[params->batch_first ? 1 : 0];
    *batch = state->strides[params->batch_first ? 0 : 1];
    *stride = state->strides[2];
    return state->data;
}

/* Whether 16 bytes of a gate row can be read at once. */
static bool is_whole(const sb_tensor *r) {
    const int64_t size = (int64_t)sb_dtype_size(r->dtype);
    bool whole = (uintptr_t)r->data % SB_CUDA_SEQUENCE_PIECE == 0 && r->strides[2] == 1;
    return whole && r->dims[2] * size % SB_CUDA_SEQUENCE_PIECE == 0 &&
           r->strides[1] * size % SB_CUDA_SEQUENCE_PIECE == 0 &&
           (r->dims[0] == 1 || r->strides[0] * size % SB_CUDA_SEQUENCE_PIECE == 0);
}

static void fill_weights(recurrence *run) {
    sb_cuda_sequence *p = &run->parameters;
    const sb_tensor *r = run->inputs[SB_RECURRENT_R], *b = run->inputs[SB_RECURRENT_B];
    const sb_tensor *peepholes = run->inputs[SB_RECURRENT_P];
    p->r = r->data;
    p->r_direction = r->strides[0];
    p->r_line = r->strides[1];
    p->r_k = r->strides[2];
    p->whole = is_whole(r);
    if (b != NULL) {
        p->b = b->data;
        p->b_direction = b->strides[0];
        p->b_stride = b->strides[1];
    }
    if (peepholes != NULL) {
        p->p = peepholes->data;
        p->p_direction = peepholes->strides[0];
        p->p_stride = peepholes->strides[1];
    }
}

static void fill_states(recurrence *run) {
    sb_cuda_sequence *p = &run->parameters;
    const sb_recurrent_extents *e = &run->extents;
    p->initial_h = find_state(&p->params, run->inputs[SB_RECURRENT_H], &p->h_direction, &p->h_batch, &p->h_stride);
    p->initial_c = find_state(&p->params, run->inputs[SB_RECURRENT_C], &p->c_direction, &p->c_batch, &p->c_stride);
    char **const targets[3] = {&p->y, &p->y_h, &p->y_c};
    for (int i = 0; i < 3; i++)
        *targets[i] = run->outputs[i] != NULL ? run->outputs[i]->data : NULL;
    p->y_step = e->y_step;
    p->y_direction = e->y_direction;
    p->y_batch = e->y_batch;
    p->state_direction = e->state_direction;
    p->state_batch = e->state_batch;
}

static void describe(recurrence *run, const sb_recurrent_params *params) {
    sb_cuda_sequence *p = &run->parameters;
    const sb_tensor *lengths = run->inputs[SB_RECURRENT_LENGTHS];
    p->params = *params;
    p->steps = p->end_step = run->extents.steps;
    p->batch = run->extents.batch;
    p->hidden = run->extents.hidden;
    p->rows = params->gates * p->hidden;
    p->xw = run->xw.data;
    p->xw_direction = run->xw.direction;
    p->xw_step = run->xw.step;
    p->xw_batch = run->xw.batch;
    if (lengths != NULL) {
        p->lengths = (const int32_t *)(const void *)lengths->data;
        p->length_stride = lengths->strides[0];
    }
    fill_weights(run);
    fill_states(run);
}

/* ---- launches ---- */

static sb_status launch(sb_call *call, recurrence *run) {
    sb_cuda_sequence *p = &run->parameters;
    sb_cuda_work work = {.module = run->cut.module,
                         .kernel = run->cut.kernel,
                         .parameters = p,
                         .parameter_bytes = sizeof *p,
                         .blocks = (unsigned)run->cut.blocks,
                         .threads = SB_CUDA_SEQUENCE_THREADS,
                         .shared_bytes = run->cut.in_memory ? 0 : (unsigned)p->at.bytes};
    p->fault = sb_cuda_work_fault(&work, call);
    for (int i = 2; i < 8; i++)
        sb_cuda_work_reads(&work, run->inputs[i]);
    for (int i = 0; i < 3; i++)
        sb_cuda_work_writes(&work, run->outputs[i]);
    sb_cuda_work_touches(&work, run->xw.data, run->xw.bytes, false);
    sb_cuda_work_touches(&work, run->memory, run->bytes, true);
    return sb_cuda_call_launch(call, &work);
}

/* Memory for states on their way from step to step, [direction, batch, hidden]. */
typedef struct states {
    char *h[2], *c, *reset, *z, *blocks;
} states;

/* Takes so many bytes of the node's memory, which at first is only counted. */
static char *take(recurrence *run, int64_t bytes) {
    char *memory = run->memory != NULL ? run->memory + run->bytes : NULL;
    run->bytes += ((size_t)bytes + 63) / 64 * 64;
    return memory;
}

static void lay_out(recurrence *run, states *between) {
    const sb_cuda_sequence *p = &run->parameters;
    const sb_dtype dtype = run->inputs[SB_RECURRENT_X]->dtype;
    const int64_t count = p->params.directions * p->batch * p->hidden, size = (int64_t)sb_dtype_size(dtype);
    run->bytes = 0;
    between->h[0] = take(run, count * size);
    between->h[1] = take(run, count * size);
    between->c = take(run, count * size);
    between->reset = take(run, count * size);
    between->z = take(run, count * (int64_t)sb_dtype_size(sb_computing_dtype(dtype)));
    between->blocks = take(run, run->cut.in_memory ? run->cut.blocks * p->at.bytes : 0);
}

/* Has a launch begin with what another one left in `h` and c, and leave its own there. */
static void begin_with(sb_cuda_sequence *p, char *h, char *c) {
    p->initial_h = h;
    p->initial_c = c;
    p->h_direction = p->c_direction = p->batch * p->hidden;
    p->h_batch = p->c_batch = p->hidden;
    p->h_stride = p->c_stride = 1;
}

static void end_with(sb_cuda_sequence *p, char *h, char *c) {
    p->y_h = h;
    p->y_c = p->params.kind == SB_RECURRENT_LSTM ? c : NULL;
    p->state_direction = p->batch * p->hidden;
    p->state_batch = p->hidden;
}

static sb_status launch_step(sb_call *call, recurrence *run) {
    sb_cuda_sequence *p = &run->parameters;
    const bool resets = p->params.kind == SB_RECURRENT_GRU && !p->params.linear_before_reset;
    if (!resets)
        return launch(call, run);
    p->phase = SB_CUDA_SEQUENCE_TO_RESET;
    SB_TRY(launch(call, run));
    p->phase = SB_CUDA_SEQUENCE_FROM_RESET;
    return launch(call, run);
}

static sb_status launch_steps(sb_call *call, recurrence *run) {
    sb_cuda_sequence *p = &run->parameters;
    const sb_cuda_sequence given = *p;
    states between;
    void *memory;
    lay_out(run, &between);
    SB_TRY(sb_call_workspace(call, run->bytes, &memory));
    run->memory = memory;
    lay_out(run, &between);
    p->memory = between.blocks;
    p->reset = between.reset;
    p->z = between.z;
    if (p->steps == 0)
        return launch(call, run);
    for (int64_t step = 0; step < given.steps; step++) {
        p->first_step = step;
        p->end_step = step + 1;
        if (step > 0)
            begin_with(p, between.h[step % 2], between.c);
        if (step + 1 < given.steps) {
            end_with(p, between.h[(step + 1) % 2], between.c);
        } else {
            p->y_h = given.y_h;
            p->y_c = given.y_c;
            p->state_direction = given.state_direction;
            p->state_batch = given.state_batch;
        }
        SB_TRY(launch_step(call, run));
    }
    return SB_OK;
}

static sb_status launch_recurrent(sb_call *call) {
    const sb_recurrent_params *params = call->node->params;
    recurrence run = {0};
    SB_TRY(find_operands(call, &run));
    if (run.extents.batch * run.extents.hidden == 0)
        return SB_OK;
    SB_TRY(sb_cuda_recurrent_multiply(call, params, &run.extents, &run.xw));
    describe(&run, params);
    sb_cuda_sequence_choose(sb_cuda_call_device(call), run.inputs[SB_RECURRENT_X]->dtype, &run.parameters, &run.cut);
    call->way = (sb_call_way){.name = run.cut.cluster != 0 ? "all steps in one launch" : "a launch for each step"};
    return run.cut.cluster != 0 ? launch(call, &run) : launch_steps(call, &run);
}

#define RECURRENT(op_name, kernel_name)                                                                                \
    { .op = op_name, .name = kernel_name, .supports = sb_cuda_supports_all, .launch = launch_recurrent }

const sb_kernel sb_cuda_kernels_recurrent[] = {
    RECURRENT("RNN", "rnn"),
    RECURRENT("GRU", "gru"),
    RECURRENT("LSTM", "lstm"),
    {0},
};
