#include "ops/recurrent_eval.h"

#include <string.h>

#include "base/allocation.h"
#include "ops/contraction.h"
#include "ops/recurrent.h"

/* A node's evaluation. W and R of the direction at hand are gapless [inputs][rows] and
 * [hidden][rows]. */
typedef struct recurrence {
    const iv_recurrent_params *params;
    iv_recurrent_extents extents;
    int64_t rows; /* gates * hidden */
    iv_dtype dtype;
    int64_t size; /* of an element */
    const iv_tensor *x, *w, *r, *b, *initial_h, *initial_c, *p;
    iv_tensor *y, *y_h, *y_c; /* NULL when not wanted */
    char *w_transposed, *r_transposed;
    void *vectors;
} recurrence;

#define IV_CELL_REAL float
#define IV_CELL(name) name##_f32
#define IV_CELL_MATH(name) iv_##name##_f32
#define IV_CELL_LOAD(dtype, data, index) iv_real_load_f32(dtype, data, index)
#define IV_CELL_STORE(dtype, data, index, value) iv_real_store_f32(dtype, data, index, value)
#include "ops/recurrent_cell.h"
#include "ops/recurrent_run.h"
#undef IV_CELL_REAL
#undef IV_CELL
#undef IV_CELL_MATH
#undef IV_CELL_LOAD
#undef IV_CELL_STORE

#define IV_CELL_REAL double
#define IV_CELL(name) name##_f64
#define IV_CELL_MATH(name) iv_##name##_f64
#define IV_CELL_LOAD(dtype, data, index) (((const double *)(const void *)(data))[index])
#define IV_CELL_STORE(dtype, data, index, value) (((double *)(void *)(data))[index] = (value))
#include "ops/recurrent_cell.h"
#include "ops/recurrent_run.h"

static iv_status create_outputs(iv_call *call, recurrence *run) {
    iv_tensor **outputs[] = {&run->y, &run->y_h, &run->y_c};
    for (int i = 0; i < 3; i++) {
        if (iv_call_wants(call, i))
            IV_TRY(iv_call_output(call, i, outputs[i]));
    }
    if (run->y != NULL && iv_tensor_elements(run->y) != 0)
        memset(run->y->data, 0, (size_t)(iv_tensor_elements(run->y) * run->size));
    return IV_OK;
}

static iv_status allocate_work(recurrence *run, iv_error *error) {
    size_t rows = (size_t)run->rows, size = (size_t)run->size;
    size_t vectors = 6 * rows + 8 * (size_t)run->extents.hidden;
    run->w_transposed = iv_allocate_array((size_t)run->extents.inputs * rows, size);
    run->r_transposed = iv_allocate_array((size_t)run->extents.hidden * rows, size);
    run->vectors = iv_allocate_array(vectors, sizeof(double));
    if (run->w_transposed == NULL || run->r_transposed == NULL || run->vectors == NULL)
        return iv_fail_memory(error, ((size_t)run->extents.inputs + vectors) * size);
    return IV_OK;
}

static void transpose_weights(const recurrence *run, int direction) {
    const iv_tensor *w = run->w, *r = run->r;
    size_t size = (size_t)run->size;
    iv_gather_dense(size, 2, (int64_t[]){run->extents.inputs, run->rows},
                    (int64_t[]){w->strides[2], w->strides[1]},
                    w->data + direction * w->strides[0] * run->size, run->w_transposed);
    iv_gather_dense(size, 2, (int64_t[]){run->extents.hidden, run->rows},
                    (int64_t[]){r->strides[2], r->strides[1]},
                    r->data + direction * r->strides[0] * run->size, run->r_transposed);
}

static iv_status run_direction(const iv_call *call, recurrence *run, int direction) {
    row_f32 narrow;
    row_f64 wide;
    transpose_weights(run, direction);
    if (run->dtype == IV_F64)
        start_direction_f64(run, direction, run->vectors, &wide);
    else
        start_direction_f32(run, direction, run->vectors, &narrow);
    for (int64_t batch = 0; batch < run->extents.batch; batch++) {
        int64_t length;
        IV_TRY(iv_recurrent_length(call, &run->extents, batch, &length));
        if (run->dtype == IV_F64)
            run_row_f64(run, &wide, direction, batch, length);
        else
            run_row_f32(run, &narrow, direction, batch, length);
    }
    return IV_OK;
}

iv_status iv_recurrent_eval(iv_call *call) {
    const iv_recurrent_params *params = call->node->params;
    bool is_lstm = params->kind == IV_RECURRENT_LSTM;
    recurrence run = {.params = params,
                      .x = iv_call_input(call, IV_RECURRENT_X),
                      .w = iv_call_input(call, IV_RECURRENT_W),
                      .r = iv_call_input(call, IV_RECURRENT_R),
                      .b = iv_call_input(call, IV_RECURRENT_B),
                      .initial_h = iv_call_input(call, IV_RECURRENT_H),
                      .initial_c = is_lstm ? iv_call_input(call, IV_RECURRENT_C) : NULL,
                      .p = is_lstm ? iv_call_input(call, IV_RECURRENT_P) : NULL};
    run.dtype = run.x->dtype;
    run.size = (int64_t)iv_dtype_size(run.dtype);
    iv_recurrent_extents_of(params, run.x, run.r, &run.extents);
    run.rows = params->gates * run.extents.hidden;
    IV_TRY(create_outputs(call, &run));
    iv_status status = allocate_work(&run, call->error);
    for (int direction = 0; direction < params->directions && status == IV_OK; direction++)
        status = run_direction(call, &run, direction);
    iv_free(run.w_transposed);
    iv_free(run.r_transposed);
    iv_free(run.vectors);
    return status;
}
