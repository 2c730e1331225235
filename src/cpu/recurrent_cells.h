/* The cells of RNN, GRU and LSTM in f32, one table per instruction set. The formulas are those of
 * ops/recurrent_cell.h, over `count` elements of the state of one batch row. */
#ifndef IV_CPU_RECURRENT_CELLS_H
#define IV_CPU_RECURRENT_CELLS_H

#include "ops/recurrent.h"

typedef struct iv_recurrent_cells {
    /* pre = (xw + hr) + bias; bias may be NULL. */
    void (*join)(int64_t count, const float *xw, const float *hr, const float *bias, float *pre);
    /* Clips and activates in place. */
    void (*gate)(const iv_recurrent_params *params, const iv_activation *activation, int64_t count,
                 float *values);
    /* `pre` holds count of i, o, f and c; `peephole` count of i, o and f, or is NULL; c becomes C',
     * h becomes H'. */
    void (*lstm)(const iv_recurrent_params *params, const iv_activation *activations, int64_t count,
                 float *pre, const float *peephole, float *c, float *h);
    /* reset = r * h. */
    void (*gru_reset)(int64_t count, const float *r, const float *h, float *reset);
    /* pre = (xw + wb) + (r * (hr + rb)); the biases may be NULL. */
    void (*gru_join_linear)(int64_t count, const float *xw, const float *wb, const float *r,
                            const float *hr, const float *rb, float *pre);
    /* Activates n; h becomes ((1 - z) * n) + (z * h). */
    void (*gru_update)(const iv_recurrent_params *params, const iv_activation *activation,
                       int64_t count, const float *z, float *n, float *h);
} iv_recurrent_cells;

/** The table of an instruction set that iv_isa_resolve gave. */
const iv_recurrent_cells *iv_recurrent_cells_for(iv_isa isa);

#endif
