/* What happens to the gates of one batch row in one time step (see ops/recurrent.h), for one float
 * type: define IV_CELL_REAL, IV_CELL(name) (name with a suffix) and IV_CELL_MATH(name) (the name of
 * a function of numerics), then include. Loops over whole vectors, so that they can be vectorised; on
 * a device, vectors of one element. */
#include "ops/real.h"
#include "ops/recurrent_types.h"
#include "ops/unary_formulas.h"

/* What storing does to a value; f64 is always stored as it is. */
static IV_HD void IV_CELL(round_state)(iv_dtype dtype, int64_t count, IV_CELL_REAL *values) {
    if (dtype != IV_F16 && dtype != IV_BF16)
        return;
    for (int64_t i = 0; i < count; i++)
        values[i] = iv_real_round_f32(dtype, (float)values[i]);
}

static IV_HD void IV_CELL(activate)(const iv_activation *activation, int64_t count,
                                     IV_CELL_REAL *values) {
    IV_CELL_REAL alpha = activation->alpha, beta = activation->beta;
#define IV_CELL_EACH(result)                                                                       \
    for (int64_t i = 0; i < count; i++) {                                                          \
        IV_CELL_REAL x = values[i];                                                                \
        values[i] = (result);                                                                      \
    }                                                                                              \
    break
    switch (activation->kind) {
    case IV_ACTIVATION_AFFINE:
        IV_CELL_EACH(alpha * x + beta);
    case IV_ACTIVATION_ELU:
        IV_CELL_EACH(IV_CELL_MATH(unary_Elu)(x, alpha, 0));
    case IV_ACTIVATION_HARD_SIGMOID:
        IV_CELL_EACH(IV_CELL_MATH(unary_HardSigmoid)(x, alpha, beta));
    case IV_ACTIVATION_LEAKY_RELU:
        IV_CELL_EACH(IV_CELL_MATH(unary_LeakyRelu)(x, alpha, 0));
    case IV_ACTIVATION_RELU:
        IV_CELL_EACH(IV_CELL_MATH(unary_Relu)(x, 0, 0));
    case IV_ACTIVATION_SCALED_TANH:
        IV_CELL_EACH(alpha * IV_CELL_MATH(tanh)(beta * x));
    case IV_ACTIVATION_SIGMOID:
        IV_CELL_EACH(IV_CELL_MATH(sigmoid)(x));
    case IV_ACTIVATION_SOFTPLUS:
        IV_CELL_EACH(IV_CELL_MATH(softplus)(x));
    case IV_ACTIVATION_SOFTSIGN:
        IV_CELL_EACH(IV_CELL_MATH(unary_Softsign)(x, 0, 0));
    case IV_ACTIVATION_TANH:
        IV_CELL_EACH(IV_CELL_MATH(tanh)(x));
    case IV_ACTIVATION_THRESHOLDED_RELU:
        IV_CELL_EACH(x >= alpha ? x : (IV_CELL_REAL)0);
    case IV_ACTIVATION_COUNT:
        break;
    }
#undef IV_CELL_EACH
}

/* Clips, then activates. */
static IV_HD void IV_CELL(gate)(const iv_recurrent_params *params, const iv_activation *activation,
                                 int64_t count, IV_CELL_REAL *values) {
    if (params->clips) {
        IV_CELL_REAL high = params->clip, low = -high;
        for (int64_t i = 0; i < count; i++)
            values[i] = values[i] < low ? low : values[i] > high ? high : values[i];
    }
    IV_CELL(activate)(activation, count, values);
}

/* pre = (xw + hr) + bias; `bias` may be NULL, `pre` may be `xw` or `hr`. */
static IV_HD void IV_CELL(join)(int64_t count, const IV_CELL_REAL *xw, const IV_CELL_REAL *hr,
                                 const IV_CELL_REAL *bias, IV_CELL_REAL *pre) {
    if (bias == NULL) {
        for (int64_t i = 0; i < count; i++)
            pre[i] = xw[i] + hr[i];
        return;
    }
    for (int64_t i = 0; i < count; i++)
        pre[i] = (xw[i] + hr[i]) + bias[i];
}

static IV_HD void IV_CELL(add_peephole)(int64_t count, const IV_CELL_REAL *peephole,
                                         const IV_CELL_REAL *c, IV_CELL_REAL *pre) {
    for (int64_t i = 0; i < count; i++)
        pre[i] = pre[i] + peephole[i] * c[i];
}

/* `pre` holds i, o, f, c and is overwritten; `peephole` holds i, o, f or is NULL; `c` goes from C
 * to C' and `h` becomes H'. */
static IV_HD void IV_CELL(lstm)(const iv_recurrent_params *params,
                                 const iv_activation *activations, iv_dtype dtype, int64_t hidden,
                                 IV_CELL_REAL *pre, const IV_CELL_REAL *peephole, IV_CELL_REAL *c,
                                 IV_CELL_REAL *h) {
    IV_CELL_REAL *in = pre, *out = pre + hidden, *forget = out + hidden, *cell = forget + hidden;
    if (peephole != NULL) {
        IV_CELL(add_peephole)(hidden, peephole, c, in);
        IV_CELL(add_peephole)(hidden, peephole + 2 * hidden, c, forget);
    }
    IV_CELL(gate)(params, &activations[0], hidden, in);
    if (params->input_forget) {
        for (int64_t i = 0; i < hidden; i++)
            forget[i] = 1 - in[i];
    } else {
        IV_CELL(gate)(params, &activations[0], hidden, forget);
    }
    IV_CELL(gate)(params, &activations[1], hidden, cell);
    for (int64_t i = 0; i < hidden; i++)
        c[i] = forget[i] * c[i] + in[i] * cell[i];
    IV_CELL(round_state)(dtype, hidden, c);
    if (peephole != NULL)
        IV_CELL(add_peephole)(hidden, peephole + hidden, c, out);
    IV_CELL(gate)(params, &activations[0], hidden, out);
    for (int64_t i = 0; i < hidden; i++)
        h[i] = c[i];
    IV_CELL(activate)(&activations[2], hidden, h);
    for (int64_t i = 0; i < hidden; i++)
        h[i] = out[i] * h[i];
    IV_CELL(round_state)(dtype, hidden, h);
}

/* r * H, rounded as a state is, to `reset`. */
static IV_HD void IV_CELL(gru_reset)(iv_dtype dtype, int64_t hidden, const IV_CELL_REAL *r,
                                      const IV_CELL_REAL *h, IV_CELL_REAL *reset) {
    for (int64_t i = 0; i < hidden; i++)
        reset[i] = r[i] * h[i];
    IV_CELL(round_state)(dtype, hidden, reset);
}

/* pre = (xw + wb) + (r * (hr + rb)): the candidate with linear_before_reset. Biases may be NULL. */
static IV_HD void IV_CELL(gru_join_linear)(int64_t hidden, const IV_CELL_REAL *xw,
                                            const IV_CELL_REAL *wb, const IV_CELL_REAL *r,
                                            const IV_CELL_REAL *hr, const IV_CELL_REAL *rb,
                                            IV_CELL_REAL *pre) {
    if (wb == NULL) {
        for (int64_t i = 0; i < hidden; i++)
            pre[i] = xw[i] + r[i] * hr[i];
        return;
    }
    for (int64_t i = 0; i < hidden; i++)
        pre[i] = (xw[i] + wb[i]) + r[i] * (hr[i] + rb[i]);
}

/* Activates the candidate `n` and moves `h` from H to H'. */
static IV_HD void IV_CELL(gru_update)(const iv_recurrent_params *params,
                                       const iv_activation *activation, iv_dtype dtype,
                                       int64_t hidden, const IV_CELL_REAL *z, IV_CELL_REAL *n,
                                       IV_CELL_REAL *h) {
    IV_CELL(gate)(params, activation, hidden, n);
    for (int64_t i = 0; i < hidden; i++)
        h[i] = (1 - z[i]) * n[i] + z[i] * h[i];
    IV_CELL(round_state)(dtype, hidden, h);
}
