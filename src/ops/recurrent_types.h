/* The attributes of RNN, GRU and LSTM, for the host and for devices. */
#ifndef IV_OPS_RECURRENT_TYPES_H
#define IV_OPS_RECURRENT_TYPES_H

#include <stdbool.h>
#include <stdint.h>

typedef enum iv_recurrent_kind {
    IV_RECURRENT_RNN,
    IV_RECURRENT_GRU,
    IV_RECURRENT_LSTM
} iv_recurrent_kind;

typedef enum iv_activation_kind {
    IV_ACTIVATION_AFFINE,       /* (alpha * x) + beta */
    IV_ACTIVATION_ELU,          /* x < 0 ? alpha * expm1(x) : x */
    IV_ACTIVATION_HARD_SIGMOID, /* clamp((alpha * x) + beta, 0, 1) */
    IV_ACTIVATION_LEAKY_RELU,   /* x < 0 ? alpha * x : x */
    IV_ACTIVATION_RELU,         /* x < 0 ? +0 : x */
    IV_ACTIVATION_SCALED_TANH,  /* alpha * tanh(beta * x) */
    IV_ACTIVATION_SIGMOID,
    IV_ACTIVATION_SOFTPLUS,
    IV_ACTIVATION_SOFTSIGN, /* x / (1 + |x|) */
    IV_ACTIVATION_TANH,
    IV_ACTIVATION_THRESHOLDED_RELU, /* x >= alpha ? x : +0 */
    IV_ACTIVATION_COUNT
} iv_activation_kind;

typedef struct iv_activation {
    iv_activation_kind kind;
    float alpha, beta;
} iv_activation;

typedef struct iv_recurrent_params {
    iv_recurrent_kind kind;
    int gates;     /* rows of W per state element: 1, 3 (z, r, n) or 4 (i, o, f, c) */
    int functions; /* activations per direction: 1, 2 or 3 */
    int directions;
    bool backward; /* a single direction that runs from the end */
    bool batch_first, input_forget, linear_before_reset, clips;
    float clip;
    int64_t hidden; /* 0 when the attribute is absent */
    iv_activation activations[2][3];
} iv_recurrent_params;

#endif
