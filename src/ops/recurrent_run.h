/* One batch row of one direction through all its time steps, for one float type: the macros of
 * ops/recurrent_cell.h, and SB_CELL_LOAD and SB_CELL_STORE for elements of a dtype. */

/* Vectors of one batch row. `h_stored` and `reset_stored` are the states as elements of the dtype,
 * which is what the chains take. */
typedef struct SB_CELL(row) {
    SB_CELL_REAL *xw, *hr, *pre, *bias, *w_bias, *r_bias, *peephole, *c, *h, *reset;
    void *h_stored, *reset_stored;
} SB_CELL(row);

/* Lays the vectors out in `memory` and loads biases and peepholes of `direction`. */
static void SB_CELL(start_direction)(const recurrence *run, int direction, SB_CELL_REAL *memory, SB_CELL(row) * row) {
    int64_t hidden = run->extents.hidden, rows = run->rows;
    *row = (SB_CELL(row)){.xw = memory, .hr = memory + rows, .pre = memory + 2 * rows};
    memory += 3 * rows;
    row->c = memory;
    row->h = memory + hidden;
    row->reset = memory + 2 * hidden;
    row->h_stored = memory + 3 * hidden;
    row->reset_stored = memory + 4 * hidden;
    memory += 5 * hidden;
    if (run->b != NULL) {
        const char *b = run->b->data + direction * run->b->strides[0] * run->size;
        row->bias = memory;
        row->w_bias = memory + rows;
        row->r_bias = memory + 2 * rows;
        for (int64_t i = 0; i < rows; i++) {
            row->w_bias[i] = SB_CELL_LOAD(run->dtype, b, i * run->b->strides[1]);
            row->r_bias[i] = SB_CELL_LOAD(run->dtype, b, (rows + i) * run->b->strides[1]);
            row->bias[i] = row->w_bias[i] + row->r_bias[i];
        }
    }
    memory += 3 * rows;
    if (run->p != NULL) {
        const char *p = run->p->data + direction * run->p->strides[0] * run->size;
        row->peephole = memory;
        for (int64_t i = 0; i < 3 * hidden; i++)
            row->peephole[i] = SB_CELL_LOAD(run->dtype, p, i * run->p->strides[1]);
    }
}

static void SB_CELL(load_state)(const recurrence *run, const sb_tensor *state, int direction, int64_t batch,
                                SB_CELL_REAL *values) {
    int64_t stride = 0;
    const char *data = sb_recurrent_state_row(run->params, state, direction, batch, &stride);
    for (int64_t i = 0; i < run->extents.hidden; i++)
        values[i] = data != NULL ? SB_CELL_LOAD(run->dtype, data, i * stride) : (SB_CELL_REAL)0;
}

static void SB_CELL(store)(const recurrence *run, const SB_CELL_REAL *values, void *out) {
    for (int64_t i = 0; i < run->extents.hidden; i++)
        SB_CELL_STORE(run->dtype, out, i, values[i]);
}

/* out = state · Rᵀ for gate rows [first, first + count). */
static void SB_CELL(recur)(const recurrence *run, const void *state, int64_t first, int64_t count, SB_CELL_REAL *out) {
    memset(out + first, 0, (size_t)count * sizeof *out);
    sb_contract_row(run->dtype, count, run->extents.hidden, state, 1, run->r_transposed + first * run->size, run->rows,
                    1, out + first);
}

static void SB_CELL(gru)(const recurrence *run, const sb_activation *activations, const SB_CELL(row) * row) {
    const sb_recurrent_params *params = run->params;
    int64_t hidden = run->extents.hidden, n = 2 * hidden;
    SB_CELL_REAL *z = row->pre, *r = row->pre + hidden, *candidate = row->pre + n;
    bool has_bias = row->bias != NULL;
    SB_CELL(recur)(run, row->h_stored, 0, params->linear_before_reset ? run->rows : n, row->hr);
    SB_CELL(join)(n, row->xw, row->hr, row->bias, row->pre);
    SB_CELL(gate)(params, &activations[0], n, row->pre);
    if (params->linear_before_reset) {
        SB_CELL(gru_join_linear)
        (hidden, row->xw + n, has_bias ? row->w_bias + n : NULL, r, row->hr + n, has_bias ? row->r_bias + n : NULL,
         candidate);
    } else {
        SB_CELL(gru_reset)(run->dtype, hidden, r, row->h, row->reset);
        SB_CELL(store)(run, row->reset, row->reset_stored);
        SB_CELL(recur)(run, row->reset_stored, n, hidden, row->hr);
        SB_CELL(join)
        (hidden, row->xw + n, row->hr + n, has_bias ? row->bias + n : NULL, candidate);
    }
    SB_CELL(gru_update)(params, &activations[1], run->dtype, hidden, z, candidate, row->h);
}

/* One time step: `x` are the step's features. */
static void SB_CELL(step)(const recurrence *run, const sb_activation *activations, const SB_CELL(row) * row,
                          const char *x) {
    const sb_recurrent_params *params = run->params;
    int64_t hidden = run->extents.hidden;
    memset(row->xw, 0, (size_t)run->rows * sizeof *row->xw);
    sb_contract_row(run->dtype, run->rows, run->extents.inputs, x, run->extents.x_feature, run->w_transposed, run->rows,
                    1, row->xw);
    if (params->kind == SB_RECURRENT_GRU) {
        SB_CELL(gru)(run, activations, row);
    } else {
        SB_CELL(recur)(run, row->h_stored, 0, run->rows, row->hr);
        SB_CELL(join)(run->rows, row->xw, row->hr, row->bias, row->pre);
        if (params->kind == SB_RECURRENT_LSTM) {
            SB_CELL(lstm)
            (params, activations, run->dtype, hidden, row->pre, row->peephole, row->c, row->h);
        } else {
            SB_CELL(gate)(params, &activations[0], hidden, row->pre);
            memcpy(row->h, row->pre, (size_t)hidden * sizeof *row->h);
            SB_CELL(round_state)(run->dtype, hidden, row->h);
        }
    }
    SB_CELL(store)(run, row->h, row->h_stored);
}

static void SB_CELL(run_row)(const recurrence *run, const SB_CELL(row) * row, int direction, int64_t batch,
                             int64_t length) {
    const sb_recurrent_extents *e = &run->extents;
    bool backward = direction == 1 || run->params->backward;
    SB_CELL(load_state)(run, run->initial_h, direction, batch, row->h);
    SB_CELL(load_state)(run, run->initial_c, direction, batch, row->c);
    SB_CELL(store)(run, row->h, row->h_stored);
    for (int64_t i = 0; i < length; i++) {
        int64_t t = backward ? length - 1 - i : i;
        SB_CELL(step)
        (run, run->params->activations[direction], row,
         run->x->data + (t * e->x_step + batch * e->x_batch) * run->size);
        if (run->y != NULL)
            memcpy(run->y->data + (t * e->y_step + direction * e->y_direction + batch * e->y_batch) * run->size,
                   row->h_stored, (size_t)(e->hidden * run->size));
    }
    int64_t state = direction * e->state_direction + batch * e->state_batch;
    if (run->y_h != NULL)
        SB_CELL(store)(run, row->h, run->y_h->data + state * run->size);
    if (run->y_c != NULL)
        SB_CELL(store)(run, row->c, run->y_c->data + state * run->size);
}
