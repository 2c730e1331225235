/* RNN, GRU and LSTM, as the reference and the kernels see them.
 *
 * Per time step and gate row: xW and hR are chains of their own from +0 (ops/contraction.h; f32 sums for f16 and bf16),
 * over input features and over the state. With B, Wb + Rb is rounded first. Then
 *
 *     pre = (xW + hR) + (Wb + Rb)          without B: pre = xW + hR
 *
 * and, each operation rounded once (f is the first activation, g the second, h the third; `clip` bounds
 * what f and g get to [-clip, clip], not what h gets):
 *
 *     RNN   H' = f(pre)
 *     GRU   z = f(pre_z), r = f(pre_r)
 *           n = g((xW_n + (r * H)R_n) + (Wb_n + Rb_n))              linear_before_reset = 0
 *           n = g((xW_n + Wb_n) + (r * (hR_n + Rb_n)))              linear_before_reset != 0
 *           H' = ((1 - z) * n) + (z * H)
 *     LSTM  i = f(pre_i + (P_i * C)), F = f(pre_f + (P_f * C)) or 1 - i with input_forget, c = g(pre_c)
 *           C' = (F * C) + (i * c)
 *           o = f(pre_o + (P_o * C')), H' = o * h(C')
 *
 * H, C and r * H are rounded to f16 or bf16 as soon as they are computed, so that a sequence run in pieces has the bits
 * of the whole. Past the end of a sequence Y is +0 and the state stays. */
#ifndef SB_OPS_RECURRENT_H
#define SB_OPS_RECURRENT_H

#include "graph/op.h"
#include "ops/recurrent_types.h"

/* The formal inputs, in order; P and C only exist for LSTM. */
enum {
    SB_RECURRENT_X,
    SB_RECURRENT_W,
    SB_RECURRENT_R,
    SB_RECURRENT_B,
    SB_RECURRENT_LENGTHS,
    SB_RECURRENT_H,
    SB_RECURRENT_C,
    SB_RECURRENT_P
};

/* Extents, and strides in elements. */
typedef struct sb_recurrent_extents {
    int64_t steps, batch, inputs, hidden;
    int64_t x_step, x_batch, x_feature;
    int64_t y_step, y_direction, y_batch; /* of the gapless output Y */
    int64_t state_direction, state_batch; /* of the gapless outputs Y_h and Y_c */
} sb_recurrent_extents;

/** The extents for inputs that infer accepted. */
void sb_recurrent_extents_of(const sb_recurrent_params *params, const sb_tensor *x, const sb_tensor *r,
                             sb_recurrent_extents *extents);

/** The address of row (direction, batch) of an initial state, whose elements are `*stride` apart;
 * NULL for NULL. */
const char *sb_recurrent_state_row(const sb_recurrent_params *params, const sb_tensor *state, int direction,
                                   int64_t batch, int64_t *stride);

/** The number of time steps of batch row `batch`. SHAPE when it is not in [0, steps]. */
sb_status sb_recurrent_length(const sb_call *call, const sb_recurrent_extents *extents, int64_t batch, int64_t *length);

#endif
