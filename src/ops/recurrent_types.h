/* The attributes of RNN, GRU and LSTM, for the host and for devices. */
#ifndef SB_OPS_RECURRENT_TYPES_H
#define SB_OPS_RECURRENT_TYPES_H

#include <stdbool.h>
#include <stdint.h>

typedef enum sb_recurrent_kind { SB_RECURRENT_RNN, SB_RECURRENT_GRU, SB_RECURRENT_LSTM } sb_recurrent_kind;

typedef enum sb_activation_kind {
    SB_ACTIVATION_AFFINE,       /* (alpha * x) + beta */
    SB_ACTIVATION_ELU,          /* x < 0 ? alpha * expm1(x) : x */
    SB_ACTIVATION_HARD_SIGMOID, /* clamp((alpha * x) + beta, 0, 1) */
    SB_ACTIVATION_LEAKY_RELU,   /* x < 0 ? alpha * x : x */
    SB_ACTIVATION_RELU,         /* x < 0 ? +0 : x */
    SB_ACTIVATION_SCALED_TANH,  /* alpha * tanh(beta * x) */
    SB_ACTIVATION_SIGMOID,
    SB_ACTIVATION_SOFTPLUS,
    SB_ACTIVATION_SOFTSIGN, /* x / (1 + |x|) */
    SB_ACTIVATION_TANH,
    SB_ACTIVATION_THRESHOLDED_RELU, /* x >= alpha ? x : +0 */
    SB_ACTIVATION_COUNT
} sb_activation_kind;

typedef struct sb_activation {
    sb_activation_kind kind;
    float alpha, beta;
} sb_activation;

typedef struct sb_recurrent_params {
    sb_recurrent_kind kind;
    int gates;     /* rows of W per state element: 1, 3 (z, r, n) or 4 (i, o, f, c) */
    int functions; /* activations per direction: 1, 2 or 3 */
    int directions;
    bool backward; /* a single direction that runs from the end */
    bool batch_first, input_forget, linear_before_reset, clips;
    float clip;
    int64_t hidden; /* 0 when the attribute is absent */
    sb_activation activations[2][3];
} sb_recurrent_params;

#endif
