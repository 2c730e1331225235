/* What the kernels of RNN, GRU and LSTM take, for the host and for devices. */
#ifndef SB_CUDA_RECURRENT_RECURRENT_PARAMETERS_H
#define SB_CUDA_RECURRENT_RECURRENT_PARAMETERS_H

#include "cuda/common/parameters.h"
#include "ops/recurrent_types.h"

/* State elements of a block that computes a time step. */
#define SB_CUDA_RECURRENT_ELEMENTS 32

/* One direction of a node. Pointers are to the elements of this direction; strides are in elements.
 * What an operand that is NULL would have is +0, or no term at all. */
typedef struct sb_cuda_recurrent {
    sb_recurrent_params params;
    int32_t direction, backward;
    int64_t steps, batch, inputs, hidden, rows; /* rows: gates * hidden */
    int64_t step;                               /* the time step that the kernel computes */
    const char *x;
    int64_t x_step, x_batch, x_feature;
    const char *w, *r; /* packed: [inputs, rows], [hidden, rows] */
    const char *b, *p;
    int64_t b_stride, p_stride;
    const int32_t *lengths;
    int64_t length_stride;
    const char *initial_h, *initial_c;
    int64_t h_batch, h_stride, c_batch, c_stride; /* of the initial states */
    char *xw;                                     /* [steps, batch, rows] of the computing type */
    char *h, *h_next, *c, *reset, *z;             /* [batch, hidden]; z of the computing type, else stored */
    char *y, *y_h, *y_c;
    int64_t y_step, y_batch, state_batch;
    uint32_t *fault;
} sb_cuda_recurrent;

#endif
