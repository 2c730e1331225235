/* RNN, GRU and LSTM, as the reference and the kernels see them.
 *
 * Per time step and gate row: xW and hR are chains of their own from +0 (ops/contraction.h; f32
 * sums for f16 and bf16), over input features and over the state. With B, Wb + Rb is rounded first.
 * Then
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
 *     LSTM  i = f(pre_i + (P_i * C)), F = f(pre_f + (P_f * C)) or 1 - i with input_forget, c =
 * g(pre_c) C' = (F * C) + (i * c) o = f(pre_o + (P_o * C')), H' = o * h(C')
 *
 * H, C and r * H are rounded to f16 or bf16 as soon as they are computed, so that a sequence run in
 * pieces has the bits of the whole. Past the end of a sequence Y is +0 and the state stays. */
#ifndef IV_OPS_RECURRENT_H
#define IV_OPS_RECURRENT_H

#include "graph/op.h"
#include "ops/recurrent_types.h"

/* The formal inputs, in order; P and C only exist for LSTM. */
enum {
    IV_RECURRENT_X,
    IV_RECURRENT_W,
    IV_RECURRENT_R,
    IV_RECURRENT_B,
    IV_RECURRENT_LENGTHS,
    IV_RECURRENT_H,
    IV_RECURRENT_C,
    IV_RECURRENT_P
};

/* Extents, and strides in elements. */
typedef struct iv_recurrent_extents {
    int64_t steps, batch, inputs, hidden;
    int64_t x_step, x_batch, x_feature;
    int64_t y_step, y_direction, y_batch; /* of the gapless output Y */
    int64_t state_direction, state_batch; /* of the gapless outputs Y_h and Y_c */
} iv_recurrent_extents;

/** The extents for inputs that infer accepted. */
void iv_recurrent_extents_of(const iv_recurrent_params *params, const iv_tensor *x,
                             const iv_tensor *r, iv_recurrent_extents *extents);

/** The address of row (direction, batch) of an initial state, whose elements are `*stride` apart;
 * NULL for NULL. */
const char *iv_recurrent_state_row(const iv_recurrent_params *params, const iv_tensor *state,
                                   int direction, int64_t batch, int64_t *stride);

/** The number of time steps of batch row `batch`. SHAPE when it is not in [0, steps]. */
iv_status iv_recurrent_length(const iv_call *call, const iv_recurrent_extents *extents,
                              int64_t batch, int64_t *length);

#endif
