/* RNN, GRU and LSTM in f32, f16 and bf16: one matrix product for the inputs of all time steps, then a product and
 * the cells per step, both directions at once, cut into blocks of state elements. Of 16 bits all vectors are f32; beside states, which are
 * rounded, lie their elements for the products. */
#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "cpu/list.h"
#include "cpu/pieces.h"
#include "cpu/recurrent/recurrent_cells.h"
#include "cpu/recurrent/recurrent_products.h"
#include "ops/contraction.h"
#include "ops/real.h"

/* State elements of a block are a multiple of this: a cache line of floats, and a panel of weights. */
#define BLOCK_UNIT 64

static bool supports_recurrent(const sb_kernel_query *query, char *why) {
    sb_dtype dtype = query->inputs[SB_RECURRENT_X]->dtype;
    if (dtype == SB_F32 || dtype == SB_F16 || dtype == SB_BF16)
        return true;
    snprintf(why, SB_WHY_BYTES, "recurrent operators of %s have no kernel", sb_dtype_name(dtype));
    return false;
}

/* ---- weights ---- */

/* Packed weights: W of each direction as one matrix [inputs][gates * hidden]; R of each direction
 * and gate as a matrix [hidden][hidden] of its own, so that a block of state elements is a range of
 * columns in each. */
typedef struct weights {
    sb_isa isa;
    sb_dtype dtype;
    int directions, gates;
    int64_t inputs, hidden;
    size_t w_bytes, r_bytes; /* of one matrix */
    char *w, *r;             /* NULL when not packed ahead */
} weights;

static weights describe_weights(sb_isa isa, sb_dtype dtype, const sb_recurrent_params *params, int64_t inputs,
                                int64_t hidden) {
    return (weights){.isa = isa,
                     .dtype = dtype,
                     .directions = params->directions,
                     .gates = params->gates,
                     .inputs = inputs,
                     .hidden = hidden,
                     .w_bytes = sb_recurrent_packed_bytes(isa, dtype, inputs, params->gates * hidden),
                     .r_bytes = sb_recurrent_packed_bytes(isa, dtype, hidden, hidden)};
}

static void pack_w(const weights *weights, const sb_tensor *w, char *packed) {
    const int64_t size = (int64_t)sb_dtype_size(weights->dtype);
    for (int d = 0; d < weights->directions; d++)
        sb_recurrent_pack(weights->isa, weights->dtype, weights->inputs, weights->gates * weights->hidden,
                          w->data + d * w->strides[0] * size, w->strides[2], w->strides[1],
                          packed + (size_t)d * weights->w_bytes);
}

static void pack_r(const weights *weights, const sb_tensor *r, char *packed) {
    const int64_t size = (int64_t)sb_dtype_size(weights->dtype);
    for (int d = 0; d < weights->directions; d++) {
        for (int g = 0; g < weights->gates; g++)
            sb_recurrent_pack(weights->isa, weights->dtype, weights->hidden, weights->hidden,
                              r->data + (d * r->strides[0] + g * weights->hidden * r->strides[1]) * size, r->strides[2],
                              r->strides[1], packed + (size_t)(d * weights->gates + g) * weights->r_bytes);
    }
}

static void release_weights(void *state) {
    weights *weights = state;
    if (weights == NULL)
        return;
    sb_free(weights->w);
    sb_free(weights->r);
    sb_free(weights);
}

static sb_status prepare_recurrent(const sb_kernel_query *query, void **result, sb_error *error) {
    const sb_recurrent_params *params = query->node->params;
    const sb_tensor *w = query->inputs[SB_RECURRENT_W]->constant;
    const sb_tensor *r = query->inputs[SB_RECURRENT_R]->constant;
    weights *state = sb_allocate_array(1, sizeof *state);
    if (state == NULL)
        return sb_fail_memory(error, sizeof *state);
    if (w != NULL && r != NULL) {
        *state = describe_weights(query->isa, w->dtype, params, w->dims[2], r->dims[2]);
        state->w = sb_allocate_array((size_t)params->directions, state->w_bytes);
        state->r = sb_allocate_array((size_t)(params->directions * params->gates), state->r_bytes);
        if (state->w == NULL || state->r == NULL) {
            release_weights(state);
            return sb_fail_memory(error, SIZE_MAX);
        }
        pack_w(state, w, state->w);
        pack_r(state, r, state->r);
    }
    *result = state;
    return SB_OK;
}

/* ---- one run ---- */

/* What a direction works on. Row b of a state is for batch row b. */
typedef struct direction {
    float *xw;             /* [time steps and batch][rows] */
    float *h, *h_next, *c; /* [batch][hidden] */
    float *hr;             /* [batch][rows] */
    char *h_stored, *h_next_stored,
        *reset_stored; /* elements of the dtype of h, h_next and reset: of f32, they themselves */
    float *z, *reset;  /* [batch][hidden]; GRU */
    float *bias, *w_bias, *r_bias, *peephole; /* [rows], [3 * hidden]; NULL when absent */
} direction;

typedef struct recurrence {
    const sb_recurrent_params *params;
    const sb_recurrent_cells *cells;
    weights weights;
    sb_recurrent_extents extents;
    int64_t rows, longest;     /* gates * hidden; time steps of the longest sequence */
    int64_t *lengths;          /* [batch] */
    int64_t xw_step, xw_batch; /* in rows of xw */
    sb_dtype dtype;
    int64_t size; /* of an element */
    const char *x;
    int64_t x_row_stride, x_feature; /* rows of x lie in the order of xw */
    char *y;                         /* NULL when not wanted */
    direction directions[2];
    sb_gemm_split split; /* of the product for the inputs */
    int64_t blocks, block;
    char *workspace; /* per task of a step */
    size_t workspace_bytes, product_bytes;
    int64_t step;
    bool second_phase;
} recurrence;

/* Rows [t][b] or [b][t] of x, whichever is evenly spaced; else a gapless copy. */
static sb_status find_rows(sb_call *call, recurrence *run) {
    const sb_recurrent_extents *e = &run->extents;
    const sb_tensor *x = sb_call_input(call, SB_RECURRENT_X);
    run->x = x->data;
    run->x_feature = e->x_feature;
    run->xw_step = e->batch;
    run->xw_batch = 1;
    run->x_row_stride = e->batch == 1 ? e->x_step : e->x_batch;
    if (e->batch == 1 || e->steps == 1 || e->x_step == e->x_batch * e->batch)
        return SB_OK;
    if (e->x_batch == e->x_step * e->steps) {
        run->xw_step = 1;
        run->xw_batch = e->steps;
        run->x_row_stride = e->x_step;
        return SB_OK;
    }
    void *copy;
    SB_TRY(sb_call_workspace(call, (size_t)(sb_tensor_elements(x) * run->size), &copy));
    sb_gather_dense((size_t)run->size, 3, (int64_t[]){e->steps, e->batch, e->inputs},
                    (int64_t[]){e->x_step, e->x_batch, e->x_feature}, x->data, copy);
    run->x = copy;
    run->x_feature = 1;
    run->x_row_stride = e->inputs;
    return SB_OK;
}

static sb_recurrent_product input_product(const recurrence *run, int direction) {
    return (sb_recurrent_product){.isa = run->weights.isa,
                                  .dtype = run->dtype,
                                  .m = run->extents.steps * run->extents.batch,
                                  .n = run->rows,
                                  .k = run->extents.inputs,
                                  .a = run->x,
                                  .a_row_stride = run->x_row_stride,
                                  .a_column_stride = run->x_feature,
                                  .packed_b = run->weights.w + (size_t)direction * run->weights.w_bytes,
                                  .c = run->directions[direction].xw,
                                  .c_row_stride = run->rows};
}

static void multiply_inputs(void *context, int64_t index, void *workspace) {
    const recurrence *run = context;
    int64_t parts = run->split.m_parts * run->split.n_parts, m0, m1, n0, n1;
    sb_recurrent_product product = input_product(run, (int)(index / parts));
    sb_gemm_split_rectangle(&run->split, index % parts, &m0, &m1, &n0, &n1);
    sb_recurrent_product_run(&product, m0, m1, n0, n1, workspace);
}

/* hr = state · Rᵀ for one gate. */
static sb_recurrent_product state_product(const recurrence *run, int direction, int gate, const char *state) {
    const size_t matrix = (size_t)(direction * run->weights.gates + gate);
    return (sb_recurrent_product){.isa = run->weights.isa,
                                  .dtype = run->dtype,
                                  .m = run->extents.batch,
                                  .n = run->extents.hidden,
                                  .k = run->extents.hidden,
                                  .a = state,
                                  .a_row_stride = run->extents.hidden,
                                  .a_column_stride = 1,
                                  .packed_b = run->weights.r + matrix * run->weights.r_bytes,
                                  .c = run->directions[direction].hr + gate * run->extents.hidden,
                                  .c_row_stride = run->rows};
}

/* ---- one block of state elements in one time step ---- */

typedef struct block {
    const recurrence *run;
    const direction *direction;
    int index; /* of the direction */
    int64_t first, count;
    void *workspace; /* of a product */
    float *pre;      /* gates * count */
    float *peephole;
} block;

/* One gate's product, in passes from the block's last columns to its first. */
static void multiply_backward(const block *block, const sb_recurrent_product *product) {
    const int64_t pass = sb_recurrent_product_pass(product);
    for (int64_t n = (block->count - 1) / pass * pass; n >= 0; n -= pass) {
        const int64_t end = block->count < n + pass ? block->count : n + pass;
        sb_recurrent_product_run(product, 0, product->m, block->first + n, block->first + end, block->workspace);
    }
}

/* Every other step goes through the weights backward: what a cache holds of them was read last. An LSTM of 512 units on
 * a second-level cache of a quarter of its weights takes 14 % less time, 20 on two threads, which have two of them. */
static void multiply_state(const block *block, const char *state, int first_gate, int end_gate) {
    const bool backward = block->run->step % 2 != 0;
    for (int i = first_gate; i < end_gate; i++) {
        const int gate = backward ? first_gate + end_gate - 1 - i : i;
        const sb_recurrent_product product = state_product(block->run, block->index, gate, state);
        if (backward)
            multiply_backward(block, &product);
        else
            sb_recurrent_product_run(&product, 0, product.m, block->first, block->first + block->count,
                                     block->workspace);
    }
}

/* The block's part of a state at `at`, as elements of the dtype. */
static void store_state(const block *block, int64_t at, const float *state, char *stored) {
    const recurrence *run = block->run;
    for (int64_t j = at; j < at + block->count && run->dtype != SB_F32; j++)
        sb_real_store_f32(run->dtype, stored, j, state[j]);
}

/* The time step that batch row `b` is at; -1 when its sequence has ended. */
static int64_t time_of(const block *block, int64_t b) {
    const recurrence *run = block->run;
    if (run->step >= run->lengths[b])
        return -1;
    bool backward = block->index == 1 || run->params->backward;
    return backward ? run->lengths[b] - 1 - run->step : run->step;
}

static const float *inputs_of(const block *block, int64_t b, int64_t t) {
    const recurrence *run = block->run;
    return block->direction->xw + (t * run->xw_step + b * run->xw_batch) * run->rows + block->first;
}

static const float *from(const float *vector, int64_t offset) {
    return vector != NULL ? vector + offset : NULL;
}

/* pre of gates [first_gate, end_gate) of batch row `b`. */
static void join_gates(const block *block, int64_t b, int64_t t, int first_gate, int end_gate) {
    const recurrence *run = block->run;
    const float *xw = inputs_of(block, b, t);
    const float *hr = block->direction->hr + b * run->rows + block->first;
    for (int g = first_gate; g < end_gate; g++) {
        int64_t gate = g * run->extents.hidden;
        run->cells->join(block->count, xw + gate, hr + gate, from(block->direction->bias, gate + block->first),
                         block->pre + g * block->count);
    }
}

/* H' of batch row `b`, for the next step and for Y; of a sequence that has ended, t < 0, for the former alone. */
static void end_step(const block *block, int64_t b, int64_t t) {
    const recurrence *run = block->run;
    const sb_recurrent_extents *e = &run->extents;
    const direction *direction = block->direction;
    const int64_t at = b * e->hidden + block->first;
    store_state(block, at, direction->h_next, direction->h_next_stored);
    if (t >= 0 && run->y != NULL)
        memcpy(run->y + (t * e->y_step + block->index * e->y_direction + b * e->y_batch + block->first) * run->size,
               direction->h_next_stored + at * run->size, (size_t)(block->count * run->size));
}

static void step_rnn_or_lstm(const block *block) {
    const recurrence *run = block->run;
    const sb_recurrent_params *params = run->params;
    const sb_activation *activations = params->activations[block->index];
    int64_t hidden = run->extents.hidden, count = block->count;
    multiply_state(block, block->direction->h_stored, 0, params->gates);
    for (int64_t b = 0; b < run->extents.batch; b++) {
        int64_t at = b * hidden + block->first, t = time_of(block, b);
        float *h = block->direction->h_next + at;
        if (t < 0) {
            memcpy(h, block->direction->h + at, (size_t)count * sizeof *h);
            end_step(block, b, t);
            continue;
        }
        join_gates(block, b, t, 0, params->gates);
        if (params->kind == SB_RECURRENT_LSTM) {
            run->cells->lstm(params, activations, run->dtype, count, block->pre, block->peephole,
                             block->direction->c + at, h);
        } else {
            run->cells->gate(params, &activations[0], count, block->pre);
            memcpy(h, block->pre, (size_t)count * sizeof *h);
            run->cells->round(run->dtype, count, h);
        }
        end_step(block, b, t);
    }
}

/* The gates z and r, and r * H for the product of the second phase. */
static void step_gru_gates(const block *block) {
    const recurrence *run = block->run;
    const sb_recurrent_params *params = run->params;
    int64_t hidden = run->extents.hidden, count = block->count;
    multiply_state(block, block->direction->h_stored, 0, 2);
    for (int64_t b = 0; b < run->extents.batch; b++) {
        int64_t at = b * hidden + block->first, t = time_of(block, b);
        if (t < 0) {
            memset(block->direction->reset + at, 0, (size_t)count * sizeof(float));
            memset(block->direction->reset_stored + at * run->size, 0, (size_t)(count * run->size));
            continue;
        }
        join_gates(block, b, t, 0, 2);
        run->cells->gate(params, &params->activations[block->index][0], 2 * count, block->pre);
        memcpy(block->direction->z + at, block->pre, (size_t)count * sizeof(float));
        run->cells->gru_reset(run->dtype, count, block->pre + count, block->direction->h + at,
                              block->direction->reset + at);
        store_state(block, at, block->direction->reset, block->direction->reset_stored);
    }
}

/* The candidate of batch row `b` with linear_before_reset; z and r come out in `pre`. */
static void join_linear(const block *block, int64_t b, int64_t t) {
    const recurrence *run = block->run;
    const sb_recurrent_params *params = run->params;
    int64_t n = 2 * run->extents.hidden, count = block->count;
    join_gates(block, b, t, 0, 2);
    run->cells->gate(params, &params->activations[block->index][0], 2 * count, block->pre);
    run->cells->gru_join_linear(count, inputs_of(block, b, t) + n, from(block->direction->w_bias, n + block->first),
                                block->pre + count, block->direction->hr + b * run->rows + block->first + n,
                                from(block->direction->r_bias, n + block->first), block->pre + 2 * count);
}

static void step_gru_state(const block *block) {
    const recurrence *run = block->run;
    const sb_recurrent_params *params = run->params;
    bool linear = params->linear_before_reset;
    int64_t hidden = run->extents.hidden, count = block->count;
    if (linear)
        multiply_state(block, block->direction->h_stored, 0, 3);
    else
        multiply_state(block, block->direction->reset_stored, 2, 3);
    for (int64_t b = 0; b < run->extents.batch; b++) {
        int64_t at = b * hidden + block->first, t = time_of(block, b);
        float *h = block->direction->h_next + at;
        memcpy(h, block->direction->h + at, (size_t)count * sizeof *h);
        if (t < 0) {
            end_step(block, b, t);
            continue;
        }
        if (linear)
            join_linear(block, b, t);
        else
            join_gates(block, b, t, 2, 3);
        run->cells->gru_update(params, &params->activations[block->index][1], run->dtype, count,
                               linear ? block->pre : block->direction->z + at, block->pre + 2 * count, h);
        end_step(block, b, t);
    }
}

static void run_block(const recurrence *run, int64_t task) {
    int direction = (int)(task / run->blocks);
    char *workspace = run->workspace + (size_t)task * run->workspace_bytes;
    block block = {.run = run,
                   .direction = &run->directions[direction],
                   .index = direction,
                   .first = task % run->blocks * run->block,
                   .workspace = workspace,
                   .pre = (float *)(void *)(workspace + run->product_bytes)};
    int64_t hidden = run->extents.hidden, left = hidden - block.first;
    block.count = left < run->block ? left : run->block;
    if (block.direction->peephole != NULL) {
        block.peephole = block.pre + run->params->gates * run->block;
        for (int p = 0; p < 3; p++)
            memcpy(block.peephole + p * block.count, block.direction->peephole + p * hidden + block.first,
                   (size_t)block.count * sizeof(float));
    }
    if (run->params->kind != SB_RECURRENT_GRU)
        step_rnn_or_lstm(&block);
    else if (run->params->linear_before_reset || run->second_phase)
        step_gru_state(&block);
    else
        step_gru_gates(&block);
}

static void run_blocks(void *context, int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; task++)
        run_block(context, task);
}

/* ---- setting up ---- */

static sb_status find_weights(sb_call *call, recurrence *run) {
    const weights *ahead = call->state;
    const sb_tensor *w = sb_call_input(call, SB_RECURRENT_W);
    const sb_tensor *r = sb_call_input(call, SB_RECURRENT_R);
    if (ahead->w != NULL) {
        run->weights = *ahead;
        return SB_OK;
    }
    run->weights = describe_weights(call->isa, run->dtype, run->params, w->dims[2], r->dims[2]);
    weights *weights = &run->weights;
    void *packed_w, *packed_r;
    SB_TRY(sb_call_workspace(call, (size_t)weights->directions * weights->w_bytes, &packed_w));
    SB_TRY(sb_call_workspace(call, (size_t)(weights->directions * weights->gates) * weights->r_bytes, &packed_r));
    weights->w = packed_w;
    weights->r = packed_r;
    pack_w(weights, w, weights->w);
    pack_r(weights, r, weights->r);
    return SB_OK;
}

static sb_status find_lengths(sb_call *call, recurrence *run) {
    void *memory;
    SB_TRY(sb_call_workspace(call, (size_t)run->extents.batch * sizeof *run->lengths, &memory));
    run->lengths = memory;
    for (int64_t b = 0; b < run->extents.batch; b++) {
        SB_TRY(sb_recurrent_length(call, &run->extents, b, &run->lengths[b]));
        if (run->lengths[b] > run->longest)
            run->longest = run->lengths[b];
    }
    return SB_OK;
}

static void load_state(const recurrence *run, const sb_tensor *state, int direction, float *to) {
    int64_t hidden = run->extents.hidden, stride = 0;
    for (int64_t b = 0; b < run->extents.batch; b++) {
        const char *values = sb_recurrent_state_row(run->params, state, direction, b, &stride);
        for (int64_t j = 0; j < hidden; j++)
            to[b * hidden + j] = values != NULL ? sb_real_load_f32(run->dtype, values, j * stride) : 0.0f;
    }
}

/* Where elements of states lie, and those of the first one. */
static sb_status start_stored(sb_call *call, const recurrence *run, direction *direction) {
    const int64_t count = run->extents.batch * run->extents.hidden;
    if (run->dtype == SB_F32) {
        direction->h_stored = (char *)direction->h;
        direction->h_next_stored = (char *)direction->h_next;
        direction->reset_stored = (char *)direction->reset;
        return SB_OK;
    }
    void *memory;
    SB_TRY(sb_call_workspace(call, (size_t)(3 * count * run->size), &memory));
    direction->h_stored = memory;
    direction->h_next_stored = direction->h_stored + count * run->size;
    direction->reset_stored = direction->h_next_stored + count * run->size;
    for (int64_t j = 0; j < count; j++)
        sb_real_store_f32(run->dtype, direction->h_stored, j, direction->h[j]);
    return SB_OK;
}

/* Lays out the memory of a direction and loads its states, biases and peepholes. */
static sb_status start_direction(sb_call *call, recurrence *run, int index) {
    bool is_lstm = run->params->kind == SB_RECURRENT_LSTM;
    const sb_tensor *b = sb_call_input(call, SB_RECURRENT_B);
    const sb_tensor *p = is_lstm ? sb_call_input(call, SB_RECURRENT_P) : NULL;
    direction *direction = &run->directions[index];
    int64_t rows = run->rows, state = run->extents.batch * run->extents.hidden, xw, floats;
    if (__builtin_mul_overflow(run->extents.steps * run->extents.batch, rows, &xw) ||
        __builtin_add_overflow(xw, 5 * state + run->extents.batch * rows + 3 * rows + 3 * run->extents.hidden,
                               &floats) ||
        floats > INT64_MAX / (int64_t)sizeof(float))
        return sb_fail_memory(call->error, SIZE_MAX);
    void *memory;
    SB_TRY(sb_call_workspace(call, (size_t)floats * sizeof(float), &memory));
    float *next = memory;
    direction->xw = next;
    direction->h = next += xw;
    direction->h_next = next += state;
    direction->c = next += state;
    direction->z = next += state;
    direction->reset = next += state;
    direction->hr = next += state;
    next += run->extents.batch * rows;
    load_state(run, sb_call_input(call, SB_RECURRENT_H), index, direction->h);
    if (is_lstm)
        load_state(run, sb_call_input(call, SB_RECURRENT_C), index, direction->c);
    if (b != NULL) {
        const char *values = b->data + index * b->strides[0] * run->size;
        direction->bias = next;
        direction->w_bias = next + rows;
        direction->r_bias = next + 2 * rows;
        for (int64_t i = 0; i < rows; i++) {
            direction->w_bias[i] = sb_real_load_f32(run->dtype, values, i * b->strides[1]);
            direction->r_bias[i] = sb_real_load_f32(run->dtype, values, (rows + i) * b->strides[1]);
            direction->bias[i] = direction->w_bias[i] + direction->r_bias[i];
        }
    }
    if (p != NULL) {
        const char *values = p->data + index * p->strides[0] * run->size;
        direction->peephole = next + 3 * rows;
        for (int64_t i = 0; i < 3 * run->extents.hidden; i++)
            direction->peephole[i] = sb_real_load_f32(run->dtype, values, i * p->strides[1]);
    }
    return start_stored(call, run, direction);
}

static size_t lines(size_t bytes) {
    return (bytes + SB_ALIGNMENT - 1) / SB_ALIGNMENT * SB_ALIGNMENT;
}

/* Cuts the state into blocks, about one per thread and direction, and makes each task's workspace. */
static sb_status cut_blocks(sb_call *call, recurrence *run) {
    int64_t hidden = run->extents.hidden, threads = sb_workers_threads(call->workers);
    int64_t units = (hidden + BLOCK_UNIT - 1) / BLOCK_UNIT, directions = run->params->directions;
    int64_t wanted = (threads + directions - 1) / directions;
    /* Less work than this in a step costs more to hand out than it takes: some ten microseconds. */
    int64_t work = run->extents.batch * run->rows * hidden, most = work / (1 << 17) + 1;
    wanted = wanted < most ? wanted : most;
    wanted = wanted < units ? wanted : units;
    run->block = (units + wanted - 1) / wanted * BLOCK_UNIT;
    run->blocks = (hidden + run->block - 1) / run->block;
    sb_recurrent_product product = state_product(run, 0, 0, run->directions[0].h_stored);
    run->product_bytes = lines(sb_recurrent_product_bytes(&product));
    run->workspace_bytes = run->product_bytes + lines((size_t)((run->params->gates + 3) * run->block) * sizeof(float));
    void *memory;
    SB_TRY(sb_call_workspace(call, (size_t)(directions * run->blocks) * run->workspace_bytes, &memory));
    run->workspace = memory;
    return SB_OK;
}

static void run_steps(sb_call *call, recurrence *run) {
    int64_t tasks = run->params->directions * run->blocks;
    bool two_phases = run->params->kind == SB_RECURRENT_GRU && !run->params->linear_before_reset;
    for (run->step = 0; run->step < run->longest; run->step++) {
        for (int phase = two_phases ? 0 : 1; phase < 2; phase++) {
            run->second_phase = phase == 1;
            sb_workers_run(call->workers, tasks, 1, run_blocks, run);
        }
        for (int d = 0; d < run->params->directions; d++) {
            direction *direction = &run->directions[d];
            float *h = direction->h;
            char *stored = direction->h_stored;
            direction->h = direction->h_next;
            direction->h_next = h;
            direction->h_stored = direction->h_next_stored;
            direction->h_next_stored = stored;
        }
    }
}

static void store_states(const recurrence *run, float *const *states, sb_tensor *output) {
    const sb_recurrent_extents *e = &run->extents;
    for (int d = 0; d < run->params->directions; d++) {
        for (int64_t b = 0; b < e->batch; b++) {
            const int64_t at = d * e->state_direction + b * e->state_batch;
            for (int64_t j = 0; j < e->hidden; j++)
                sb_real_store_f32(run->dtype, output->data, at + j, states[d][b * e->hidden + j]);
        }
    }
}

static sb_status run_all(sb_call *call, recurrence *run) {
    SB_TRY(find_weights(call, run));
    SB_TRY(find_lengths(call, run));
    SB_TRY(find_rows(call, run));
    for (int d = 0; d < run->params->directions; d++)
        SB_TRY(start_direction(call, run, d));
    SB_TRY(cut_blocks(call, run));
    sb_recurrent_product product = input_product(run, 0);
    run->split = sb_recurrent_product_split(&product, sb_workers_threads(call->workers));
    size_t bytes = sb_recurrent_product_bytes(&product);
    if (bytes == 0)
        return sb_fail_memory(call->error, SIZE_MAX);
    SB_TRY(sb_pieces_run(call, run->params->directions * run->split.m_parts * run->split.n_parts, bytes,
                         multiply_inputs, run));
    run_steps(call, run);
    return SB_OK;
}

static sb_status launch_recurrent(sb_call *call) {
    sb_tensor *outputs[3] = {NULL};
    recurrence run = {.params = call->node->params, .cells = sb_recurrent_cells_for(call->isa)};
    for (int i = 0; i < 3; i++) {
        if (sb_call_wants(call, i))
            SB_TRY(sb_call_output(call, i, &outputs[i]));
    }
    run.dtype = sb_call_input(call, SB_RECURRENT_X)->dtype;
    run.size = (int64_t)sb_dtype_size(run.dtype);
    sb_recurrent_extents_of(run.params, sb_call_input(call, SB_RECURRENT_X), sb_call_input(call, SB_RECURRENT_R),
                            &run.extents);
    run.rows = run.params->gates * run.extents.hidden;
    if (outputs[0] != NULL) {
        run.y = outputs[0]->data;
        if (sb_call_input(call, SB_RECURRENT_LENGTHS) != NULL)
            memset(run.y, 0, (size_t)(sb_tensor_elements(outputs[0]) * run.size));
    }
    if (run.extents.batch == 0 || run.extents.hidden == 0)
        return SB_OK;
    SB_TRY(run_all(call, &run));
    if (outputs[1] != NULL)
        store_states(&run, (float *[]){run.directions[0].h, run.directions[1].h}, outputs[1]);
    if (outputs[2] != NULL)
        store_states(&run, (float *[]){run.directions[0].c, run.directions[1].c}, outputs[2]);
    return SB_OK;
}

#define RECURRENT_KERNEL(op_name)                                                                                      \
    {                                                                                                                  \
        .op = op_name, .name = "recurrent", .supports = supports_recurrent, .prepare = prepare_recurrent,              \
        .release = release_weights, .launch = launch_recurrent                                                         \
    }

const sb_kernel sb_cpu_kernels_recurrent[] = {
    RECURRENT_KERNEL("RNN"),
    RECURRENT_KERNEL("GRU"),
    RECURRENT_KERNEL("LSTM"),
    {0},
};
