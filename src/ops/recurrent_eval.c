#include "ops/recurrent_eval.h"

#include <string.h>

#include "base/allocation.h"
#include "ops/contraction.h"
#include "ops/recurrent.h"

/* A node's evaluation. W and R of the direction at hand are gapless [inputs][rows] and [hidden][rows]. */
typedef struct recurrence {
    const sb_recurrent_params *params;
    sb_recurrent_extents extents;
    int64_t rows; /* gates * hidden */
    sb_dtype dtype;
    int64_t size; /* of an element */
    const sb_tensor *x, *w, *r, *b, *initial_h, *initial_c, *p;
    sb_tensor *y, *y_h, *y_c; /* NULL when not wanted */
    char *w_transposed, *r_transposed;
    void *vectors;
} recurrence;

#define SB_CELL_REAL float
#define SB_CELL(name) name##_f32
#define SB_CELL_MATH(name) sb_##name##_f32
#define SB_CELL_LOAD(dtype, data, index) sb_real_load_f32(dtype, data, index)
#define SB_CELL_STORE(dtype, data, index, value) sb_real_store_f32(dtype, data, index, value)
#include "ops/recurrent_cell.h"
#include "ops/recurrent_run.h"
#undef SB_CELL_REAL
#undef SB_CELL
#undef SB_CELL_MATH
#undef SB_CELL_LOAD
#undef SB_CELL_STORE

#define SB_CELL_REAL double
#define SB_CELL(name) name##_f64
#define SB_CELL_MATH(name) sb_##name##_f64
#define SB_CELL_LOAD(dtype, data, index) (((const double *)(const void *)(data))[index])
#define SB_CELL_STORE(dtype, data, index, value) (((double *)(void *)(data))[index] = (value))
#include "ops/recurrent_cell.h"
#include "ops/recurrent_run.h"

static sb_status create_outputs(sb_call *call, recurrence *run) {
    sb_tensor **outputs[] = {&run->y, &run->y_h, &run->y_c};
    for (int i = 0; i < 3; i++) {
        if (sb_call_wants(call, i))
            SB_TRY(sb_call_output(call, i, outputs[i]));
    }
    if (run->y != NULL && sb_tensor_elements(run->y) != 0)
        memset(run->y->data, 0, (size_t)(sb_tensor_elements(run->y) * run->size));
    return SB_OK;
}

static sb_status allocate_work(recurrence *run, sb_error *error) {
    size_t rows = (size_t)run->rows, size = (size_t)run->size;
    size_t vectors = 6 * rows + 8 * (size_t)run->extents.hidden;
    run->w_transposed = sb_allocate_array((size_t)run->extents.inputs * rows, size);
    run->r_transposed = sb_allocate_array((size_t)run->extents.hidden * rows, size);
    run->vectors = sb_allocate_array(vectors, sizeof(double));
    if (run->w_transposed == NULL || run->r_transposed == NULL || run->vectors == NULL)
        return sb_fail_memory(error, ((size_t)run->extents.inputs + vectors) * size);
    return SB_OK;
}

static void transpose_weights(const recurrence *run, int direction) {
    const sb_tensor *w = run->w, *r = run->r;
    size_t size = (size_t)run->size;
    sb_gather_dense(size, 2, (int64_t[]){run->extents.inputs, run->rows}, (int64_t[]){w->strides[2], w->strides[1]},
                    w->data + direction * w->strides[0] * run->size, run->w_transposed);
    sb_gather_dense(size, 2, (int64_t[]){run->extents.hidden, run->rows}, (int64_t[]){r->strides[2], r->strides[1]},
                    r->data + direction * r->strides[0] * run->size, run->r_transposed);
}

static sb_status run_direction(const sb_call *call, recurrence *run, int direction) {
    row_f32 narrow;
    row_f64 wide;
    transpose_weights(run, direction);
    if (run->dtype == SB_F64)
        start_direction_f64(run, direction, run->vectors, &wide);
    else
        start_direction_f32(run, direction, run->vectors, &narrow);
    for (int64_t batch = 0; batch < run->extents.batch; batch++) {
        int64_t length;
        SB_TRY(sb_recurrent_length(call, &run->extents, batch, &length));
        if (run->dtype == SB_F64)
            run_row_f64(run, &wide, direction, batch, length);
        else
            run_row_f32(run, &narrow, direction, batch, length);
    }
    return SB_OK;
}

sb_status sb_recurrent_eval(sb_call *call) {
    const sb_recurrent_params *params = call->node->params;
    bool is_lstm = params->kind == SB_RECURRENT_LSTM;
    recurrence run = {.params = params,
                      .x = sb_call_input(call, SB_RECURRENT_X),
                      .w = sb_call_input(call, SB_RECURRENT_W),
                      .r = sb_call_input(call, SB_RECURRENT_R),
                      .b = sb_call_input(call, SB_RECURRENT_B),
                      .initial_h = sb_call_input(call, SB_RECURRENT_H),
                      .initial_c = is_lstm ? sb_call_input(call, SB_RECURRENT_C) : NULL,
                      .p = is_lstm ? sb_call_input(call, SB_RECURRENT_P) : NULL};
    run.dtype = run.x->dtype;
    run.size = (int64_t)sb_dtype_size(run.dtype);
    sb_recurrent_extents_of(params, run.x, run.r, &run.extents);
    run.rows = params->gates * run.extents.hidden;
    SB_TRY(create_outputs(call, &run));
    sb_status status = allocate_work(&run, call->error);
    for (int direction = 0; direction < params->directions && status == SB_OK; direction++)
        status = run_direction(call, &run, direction);
    sb_free(run.w_transposed);
    sb_free(run.r_transposed);
    sb_free(run.vectors);
    return status;
}
