/* RNN, GRU and LSTM. */
#include <stdio.h>
#include <string.h>

#include "cuda/common/elements.h"
#include "cuda/list.h"
#include "cuda/recurrent/recurrent_parameters.h"
#include "ops/recurrent.h"
#include "ops/rows.h"

/* A node's operands, the memory of the direction at hand, and what its kernels take. */
typedef struct recurrence {
    sb_cuda_recurrent parameters;
    const sb_tensor *inputs[8]; /* by SB_RECURRENT_…; NULL where omitted */
    sb_tensor *outputs[3];      /* Y, Y_h and Y_c; NULL where not wanted */
    sb_recurrent_extents extents;
    char *memory;
    size_t bytes;
} recurrence;

/* With `gates` not 0: that many threads for each of `elements`, in small blocks,
 * which spread over many multiprocessors. */
static sb_status launch(sb_call *call, const recurrence *run, const char *name, int64_t elements, int gates) {
    sb_cuda_recurrent parameters = run->parameters;
    sb_cuda_work work = {.parameters = &parameters, .parameter_bytes = sizeof parameters};
    const char *suffix = sb_dtype_name(run->inputs[SB_RECURRENT_X]->dtype);
    parameters.fault = sb_cuda_work_fault(&work, call);
    for (int i = 0; i < 8; i++)
        sb_cuda_work_reads(&work, run->inputs[i]);
    for (int i = 0; i < 3; i++)
        sb_cuda_work_writes(&work, run->outputs[i]);
    sb_cuda_work_touches(&work, run->memory, run->bytes, true);
    if (gates == 0)
        return sb_cuda_launch_each(call, &work, "recurrent", name, suffix, elements);
    char full[64];
    snprintf(full, sizeof full, "%s_%s", name, suffix);
    work.module = "recurrent";
    work.kernel = full;
    work.threads = (unsigned)gates * SB_CUDA_RECURRENT_ELEMENTS;
    work.blocks = sb_cuda_call_blocks(call, (elements + SB_CUDA_RECURRENT_ELEMENTS - 1) / SB_CUDA_RECURRENT_ELEMENTS);
    return sb_cuda_call_launch(call, &work);
}

/* Takes `bytes` of the direction's memory, which at first is only counted. */
static char *take(recurrence *run, int64_t elements, size_t size) {
    char *memory = run->memory != NULL ? run->memory + run->bytes : NULL;
    run->bytes += ((size_t)elements * size + 63) / 64 * 64;
    return memory;
}

static void lay_out(recurrence *run, size_t size, size_t computed) {
    sb_cuda_recurrent *p = &run->parameters;
    int64_t states = p->batch * p->hidden;
    run->bytes = 0;
    p->w = take(run, p->inputs * p->rows, size);
    p->r = take(run, p->hidden * p->rows, size);
    p->xw = take(run, p->steps * p->batch * p->rows, computed);
    p->h = take(run, states, size);
    p->h_next = take(run, states, size);
    p->c = take(run, states, size);
    p->reset = take(run, states, size);
    p->z = take(run, states, computed);
}

/* Weights [direction, rows, columns] of one direction as packed [columns, rows]. */
static sb_status transpose(sb_call *call, const sb_tensor *weights, int direction, const char *target) {
    sb_tensor from, to;
    memcpy(&from, weights, sizeof from);
    memcpy(&to, weights, sizeof to);
    from.rank = to.rank = 2;
    from.data += direction * weights->strides[0] * (int64_t)sb_dtype_size(weights->dtype);
    to.data = (char *)(uintptr_t)target;
    for (int d = 0; d < 2; d++) {
        from.dims[d] = to.dims[d] = weights->dims[2 - d];
        from.strides[d] = weights->strides[2 - d];
    }
    sb_row_major_strides(2, to.dims, to.strides);
    return sb_tensor_elements(&to) != 0 ? sb_call_copy(call, &to, &from) : SB_OK;
}

/* Points to what belongs to one direction. */
static void choose_direction(recurrence *run, int direction) {
    sb_cuda_recurrent *p = &run->parameters;
    const sb_recurrent_extents *e = &run->extents;
    const sb_tensor *b = run->inputs[SB_RECURRENT_B], *peepholes = run->inputs[SB_RECURRENT_P];
    const sb_tensor *h = run->inputs[SB_RECURRENT_H], *c = run->inputs[SB_RECURRENT_C];
    int64_t size = (int64_t)sb_dtype_size(run->inputs[SB_RECURRENT_X]->dtype);
    int batch_axis = p->params.batch_first ? 0 : 1;
    p->direction = direction;
    p->backward = direction == 1 || p->params.backward;
    if (b != NULL) {
        p->b = b->data + direction * b->strides[0] * size;
        p->b_stride = b->strides[1];
    }
    if (peepholes != NULL) {
        p->p = peepholes->data + direction * peepholes->strides[0] * size;
        p->p_stride = peepholes->strides[1];
    }
    p->initial_h = sb_recurrent_state_row(&p->params, h, direction, 0, &p->h_stride);
    p->h_batch = h != NULL ? h->strides[batch_axis] : 0;
    p->initial_c = sb_recurrent_state_row(&p->params, c, direction, 0, &p->c_stride);
    p->c_batch = c != NULL ? c->strides[batch_axis] : 0;
    char **const targets[3] = {&p->y, &p->y_h, &p->y_c};
    for (int i = 0; i < 3; i++) {
        int64_t at = direction * (i == 0 ? e->y_direction : e->state_direction);
        *targets[i] = run->outputs[i] != NULL ? run->outputs[i]->data + at * size : NULL;
    }
}

static sb_status run_direction(sb_call *call, recurrence *run, int direction) {
    sb_cuda_recurrent *p = &run->parameters;
    sb_dtype dtype = run->inputs[SB_RECURRENT_X]->dtype;
    size_t size = sb_dtype_size(dtype), computed = sb_dtype_size(sb_computing_dtype(dtype));
    int64_t states = p->batch * p->hidden;
    bool resets = p->params.kind == SB_RECURRENT_GRU && !p->params.linear_before_reset;
    void *memory;
    choose_direction(run, direction);
    run->memory = NULL;
    lay_out(run, size, computed);
    SB_TRY(sb_call_workspace(call, run->bytes, &memory));
    run->memory = memory;
    lay_out(run, size, computed);
    SB_TRY(transpose(call, run->inputs[SB_RECURRENT_W], direction, p->w));
    SB_TRY(transpose(call, run->inputs[SB_RECURRENT_R], direction, p->r));
    SB_TRY(launch(call, run, "sb_cuda_recurrent_start", states, 0));
    SB_TRY(launch(call, run, "sb_cuda_recurrent_product", p->steps * p->batch * p->rows, 0));
    for (p->step = 0; p->step < p->steps; p->step++) {
        SB_TRY(launch(call, run, "sb_cuda_recurrent_step", states, resets ? 2 : p->params.gates));
        if (resets)
            SB_TRY(launch(call, run, "sb_cuda_recurrent_reset", states, 1));
        char *done = p->h;
        p->h = p->h_next;
        p->h_next = done;
    }
    return launch(call, run, "sb_cuda_recurrent_finish", states, 0);
}

static sb_status launch_recurrent(sb_call *call) {
    const sb_recurrent_params *params = call->node->params;
    recurrence run = {.parameters = {.params = *params}};
    sb_cuda_recurrent *p = &run.parameters;
    int inputs = params->kind == SB_RECURRENT_LSTM ? 8 : 6;
    for (int i = 0; i < inputs; i++)
        run.inputs[i] = sb_call_input(call, i);
    for (int i = 0; i < 3; i++) {
        if (sb_call_wants(call, i))
            SB_TRY(sb_call_output(call, i, &run.outputs[i]));
    }
    const sb_tensor *x = run.inputs[SB_RECURRENT_X], *lengths = run.inputs[SB_RECURRENT_LENGTHS];
    sb_recurrent_extents_of(params, x, run.inputs[SB_RECURRENT_R], &run.extents);
    const sb_recurrent_extents *e = &run.extents;
    p->steps = e->steps;
    p->batch = e->batch;
    p->inputs = e->inputs;
    p->hidden = e->hidden;
    p->rows = params->gates * e->hidden;
    p->x = x->data;
    p->x_step = e->x_step;
    p->x_batch = e->x_batch;
    p->x_feature = e->x_feature;
    p->lengths = lengths != NULL ? (const int32_t *)(const void *)lengths->data : NULL;
    p->length_stride = lengths != NULL ? lengths->strides[0] : 0;
    p->y_step = e->y_step;
    p->y_batch = e->y_batch;
    p->state_batch = e->state_batch;
    for (int direction = 0; direction < params->directions && e->batch * e->hidden != 0; direction++)
        SB_TRY(run_direction(call, &run, direction));
    return SB_OK;
}

#define RECURRENT(op_name, kernel_name)                                                                                \
    { .op = op_name, .name = kernel_name, .supports = sb_cuda_supports_all, .launch = launch_recurrent }

const sb_kernel sb_cuda_kernels_recurrent[] = {
    RECURRENT("RNN", "rnn"),
    RECURRENT("GRU", "gru"),
    RECURRENT("LSTM", "lstm"),
    {0},
};
