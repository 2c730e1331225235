/* What happens to the gates of one batch row in one time step (see ops/recurrent.h), for one float
 * type: define SB_CELL_REAL, SB_CELL(name) (name with a suffix) and SB_CELL_MATH(name) (the name of
 * a function of numerics), then include. Loops over whole vectors, so that they can be vectorised; on
 * a device, vectors of one element. */
#include "ops/real.h"
#include "ops/recurrent_types.h"
#include "ops/unary_formulas.h"

/* What storing does to a value; f64 is always stored as it is. */
static SB_HD void SB_CELL(round_state)(sb_dtype dtype, int64_t count, SB_CELL_REAL *values) {
    if (dtype != SB_F16 && dtype != SB_BF16)
        return;
    for (int64_t i = 0; i < count; i++)
        values[i] = sb_real_round_f32(dtype, (float)values[i]);
}

static SB_HD void SB_CELL(activate)(const sb_activation *activation, int64_t count, SB_CELL_REAL *values) {
    SB_CELL_REAL alpha = activation->alpha, beta = activation->beta;
#define SB_CELL_EACH(result)                                                                                           \
    for (int64_t i = 0; i < count; i++) {                                                                              \
        SB_CELL_REAL x = values[i];                                                                                    \
        values[i] = (result);                                                                                          \
    }                                                                                                                  \
    break
    switch (activation->kind) {
    case SB_ACTIVATION_AFFINE:
        SB_CELL_EACH(alpha * x + beta);
    case SB_ACTIVATION_ELU:
        SB_CELL_EACH(SB_CELL_MATH(unary_Elu)(x, alpha, 0));
    case SB_ACTIVATION_HARD_SIGMOID:
        SB_CELL_EACH(SB_CELL_MATH(unary_HardSigmoid)(x, alpha, beta));
    case SB_ACTIVATION_LEAKY_RELU:
        SB_CELL_EACH(SB_CELL_MATH(unary_LeakyRelu)(x, alpha, 0));
    case SB_ACTIVATION_RELU:
        SB_CELL_EACH(SB_CELL_MATH(unary_Relu)(x, 0, 0));
    case SB_ACTIVATION_SCALED_TANH:
        SB_CELL_EACH(alpha * SB_CELL_MATH(tanh)(beta * x));
    case SB_ACTIVATION_SIGMOID:
        SB_CELL_EACH(SB_CELL_MATH(sigmoid)(x));
    case SB_ACTIVATION_SOFTPLUS:
        SB_CELL_EACH(SB_CELL_MATH(softplus)(x));
    case SB_ACTIVATION_SOFTSIGN:
        SB_CELL_EACH(SB_CELL_MATH(unary_Softsign)(x, 0, 0));
    case SB_ACTIVATION_TANH:
        SB_CELL_EACH(SB_CELL_MATH(tanh)(x));
    case SB_ACTIVATION_THRESHOLDED_RELU:
        SB_CELL_EACH(x >= alpha ? x : (SB_CELL_REAL)0);
    case SB_ACTIVATION_COUNT:
        break;
    }
#undef SB_CELL_EACH
}

/* Clips, then activates. */
static SB_HD void SB_CELL(gate)(const sb_recurrent_params *params, const sb_activation *activation, int64_t count,
                                SB_CELL_REAL *values) {
    if (params->clips) {
        SB_CELL_REAL high = params->clip, low = -high;
        for (int64_t i = 0; i < count; i++)
            values[i] = values[i] < low ? low : values[i] > high ? high : values[i];
    }
    SB_CELL(activate)(activation, count, values);
}

/* pre = (xw + hr) + bias; `bias` may be NULL, `pre` may be `xw` or `hr`. */
static SB_HD void SB_CELL(join)(int64_t count, const SB_CELL_REAL *xw, const SB_CELL_REAL *hr, const SB_CELL_REAL *bias,
                                SB_CELL_REAL *pre) {
    if (bias == NULL) {
        for (int64_t i = 0; i < count; i++)
            pre[i] = xw[i] + hr[i];
        return;
    }
    for (int64_t i = 0; i < count; i++)
        pre[i] = (xw[i] + hr[i]) + bias[i];
}

static SB_HD void SB_CELL(add_peephole)(int64_t count, const SB_CELL_REAL *peephole, const SB_CELL_REAL *c,
                                        SB_CELL_REAL *pre) {
    for (int64_t i = 0; i < count; i++)
        pre[i] = pre[i] + peephole[i] * c[i];
}

/* F = 1 - i. */
static SB_HD void SB_CELL(lstm_forget)(int64_t hidden, const SB_CELL_REAL *in, SB_CELL_REAL *forget) {
    for (int64_t i = 0; i < hidden; i++)
        forget[i] = 1 - in[i];
}

/* `c` goes from C to C'. */
static SB_HD void SB_CELL(lstm_state)(sb_dtype dtype, int64_t hidden, const SB_CELL_REAL *in,
                                      const SB_CELL_REAL *forget, const SB_CELL_REAL *cell, SB_CELL_REAL *c) {
    for (int64_t i = 0; i < hidden; i++)
        c[i] = forget[i] * c[i] + in[i] * cell[i];
    SB_CELL(round_state)(dtype, hidden, c);
}

/* `h` becomes H', of o and C'. */
static SB_HD void SB_CELL(lstm_output)(const sb_activation *activation, sb_dtype dtype, int64_t hidden,
                                       const SB_CELL_REAL *out, const SB_CELL_REAL *c, SB_CELL_REAL *h) {
    for (int64_t i = 0; i < hidden; i++)
        h[i] = c[i];
    SB_CELL(activate)(activation, hidden, h);
    for (int64_t i = 0; i < hidden; i++)
        h[i] = out[i] * h[i];
    SB_CELL(round_state)(dtype, hidden, h);
}

/* `pre` holds i, o, f, c and is overwritten; `peephole` holds i, o, f or is NULL; `c` goes from C
 * to C' and `h` becomes H'. */
static SB_HD void SB_CELL(lstm)(const sb_recurrent_params *params, const sb_activation *activations, sb_dtype dtype,
                                int64_t hidden, SB_CELL_REAL *pre, const SB_CELL_REAL *peephole, SB_CELL_REAL *c,
                                SB_CELL_REAL *h) {
    SB_CELL_REAL *in = pre, *out = pre + hidden, *forget = out + hidden, *cell = forget + hidden;
    if (peephole != NULL) {
        SB_CELL(add_peephole)(hidden, peephole, c, in);
        SB_CELL(add_peephole)(hidden, peephole + 2 * hidden, c, forget);
    }
    SB_CELL(gate)(params, &activations[0], hidden, in);
    if (params->input_forget)
        SB_CELL(lstm_forget)(hidden, in, forget);
    else
        SB_CELL(gate)(params, &activations[0], hidden, forget);
    SB_CELL(gate)(params, &activations[1], hidden, cell);
    SB_CELL(lstm_state)(dtype, hidden, in, forget, cell, c);
    if (peephole != NULL)
        SB_CELL(add_peephole)(hidden, peephole + hidden, c, out);
    SB_CELL(gate)(params, &activations[0], hidden, out);
    SB_CELL(lstm_output)(&activations[2], dtype, hidden, out, c, h);
}

/* r * H, rounded as a state is, to `reset`. */
static SB_HD void SB_CELL(gru_reset)(sb_dtype dtype, int64_t hidden, const SB_CELL_REAL *r, const SB_CELL_REAL *h,
                                     SB_CELL_REAL *reset) {
    for (int64_t i = 0; i < hidden; i++)
        reset[i] = r[i] * h[i];
    SB_CELL(round_state)(dtype, hidden, reset);
}

/* pre = (xw + wb) + (r * (hr + rb)): the candidate with linear_before_reset. Biases may be NULL. */
static SB_HD void SB_CELL(gru_join_linear)(int64_t hidden, const SB_CELL_REAL *xw, const SB_CELL_REAL *wb,
                                           const SB_CELL_REAL *r, const SB_CELL_REAL *hr, const SB_CELL_REAL *rb,
                                           SB_CELL_REAL *pre) {
    if (wb == NULL) {
        for (int64_t i = 0; i < hidden; i++)
            pre[i] = xw[i] + r[i] * hr[i];
        return;
    }
    for (int64_t i = 0; i < hidden; i++)
        pre[i] = (xw[i] + wb[i]) + r[i] * (hr[i] + rb[i]);
}

/* Activates the candidate `n` and moves `h` from H to H'. */
static SB_HD void SB_CELL(gru_update)(const sb_recurrent_params *params, const sb_activation *activation,
                                      sb_dtype dtype, int64_t hidden, const SB_CELL_REAL *z, SB_CELL_REAL *n,
                                      SB_CELL_REAL *h) {
    SB_CELL(gate)(params, activation, hidden, n);
    for (int64_t i = 0; i < hidden; i++)
        h[i] = (1 - z[i]) * n[i] + z[i] * h[i];
    SB_CELL(round_state)(dtype, hidden, h);
}
