/* The cells of RNN, GRU and LSTM on f32, one table per instruction set. The formulas are those of
 * ops/recurrent_cell.h, over `count` elements of the state of one batch row. `dtype` is what states are rounded to: SB_F32, not at all,
 * SB_F16 or SB_BF16. */
#ifndef SB_CPU_RECURRENT_RECURRENT_CELLS_H
#define SB_CPU_RECURRENT_RECURRENT_CELLS_H

#include "ops/recurrent.h"

typedef struct sb_recurrent_cells {
    /* pre = (xw + hr) + bias; bias may be NULL. */
    void (*join)(int64_t count, const float *xw, const float *hr, const float *bias, float *pre);
    /* Clips and activates in place. */
    void (*gate)(const sb_recurrent_params *params, const sb_activation *activation, int64_t count, float *values);
    /* Rounds in place. */
    void (*round)(sb_dtype dtype, int64_t count, float *values);
    /* `pre` holds count of i, o, f and c; `peephole` count of i, o and f, or is NULL; c becomes C',
     * h becomes H'. */
    void (*lstm)(const sb_recurrent_params *params, const sb_activation *activations, sb_dtype dtype, int64_t count,
                 float *pre, const float *peephole, float *c, float *h);
    /* reset = r * h. */
    void (*gru_reset)(sb_dtype dtype, int64_t count, const float *r, const float *h, float *reset);
    /* pre = (xw + wb) + (r * (hr + rb)); the biases may be NULL. */
    void (*gru_join_linear)(int64_t count, const float *xw, const float *wb, const float *r, const float *hr,
                            const float *rb, float *pre);
    /* Activates n; h becomes ((1 - z) * n) + (z * h). */
    void (*gru_update)(const sb_recurrent_params *params, const sb_activation *activation, sb_dtype dtype,
                       int64_t count, const float *z, float *n, float *h);
} sb_recurrent_cells;

/** The table of an instruction set that sb_isa_resolve gave. */
const sb_recurrent_cells *sb_recurrent_cells_for(sb_isa isa);

#endif
