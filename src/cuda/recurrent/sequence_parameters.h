/* What the kernels of RNN, GRU and LSTM take (sequence.cuh), for the host and for devices. */
#ifndef SB_CUDA_RECURRENT_SEQUENCE_PARAMETERS_H
#define SB_CUDA_RECURRENT_SEQUENCE_PARAMETERS_H

#include "cuda/common/parameters.h"
#include "ops/recurrent_types.h"

#define SB_CUDA_SEQUENCE_THREADS 512
#define SB_CUDA_SEQUENCE_WARPS (SB_CUDA_SEQUENCE_THREADS / 32)

/* What shared memory and states are cut into: 16 bytes, neighbours along k. Blocks of a cluster have whole pieces of a state. */
#define SB_CUDA_SEQUENCE_PIECE 16
/* Batch rows of a product of 16 bits. */
#define SB_CUDA_SEQUENCE_COLUMNS 8
/* Groups of 16 k whose weights a warp of 16 bits keeps in registers, of one product. */
#define SB_CUDA_SEQUENCE_HELD 12

/* What a launch computes of its steps: all, or of a single one of a GRU that resets before its product what comes before r * H is whole,
 * and what comes behind. */
enum { SB_CUDA_SEQUENCE_WHOLE, SB_CUDA_SEQUENCE_TO_RESET, SB_CUDA_SEQUENCE_FROM_RESET };

/* Where things lie in a block's shared memory, in bytes. */
typedef struct sb_cuda_sequence_layout {
    int64_t weights; /* pieces of R: sb_cuda_sequence.held_lines */
    int64_t state;   /* of `state_bytes`: pieces [k][row] of H before a step */
    int64_t next;    /* of H behind it, with which the former changes places; the same where there is a single step */
    int64_t reset;   /* as one of these: r * H of a GRU that resets before its product */
    int64_t c;       /* [row][own] */
    int64_t sums;    /* [row][sum_pitch]: h R of the gate rows, and what becomes of it */
    int64_t xw;      /* [gate][row][own]: x W of the step */
    int64_t bias;    /* [2][lines]: Wb + Rb, or Wb and Rb for the candidate of a GRU with linear_before_reset */
    int64_t lengths; /* [row] */
    int64_t state_bytes, bytes;
} sb_cuda_sequence_layout;

/* All directions of a node. Strides are in elements. What an operand that is NULL would have is +0, or no term at all.
 *
 * `parts` blocks that follow each other share `tile` batch rows of a direction: each has `own` of the state elements. Its gate rows ("lines") are
 * numbered by gate, and then by element. */
typedef struct sb_cuda_sequence {
    sb_recurrent_params params;
    int64_t steps, batch, hidden, rows; /* rows: gates * hidden */
    int64_t first_step, end_step;       /* of the launch: all of them, or one */
    int32_t phase;
    const char *xw; /* products of x and W, of the computing type */
    int64_t xw_direction, xw_step, xw_batch;
    const char *r;
    int64_t r_direction, r_line, r_k;
    const char *b, *p;
    int64_t b_direction, b_stride, p_direction, p_stride;
    const int32_t *lengths;
    int64_t length_stride;
    const char *initial_h, *initial_c;
    int64_t h_direction, h_batch, h_stride, c_direction, c_batch, c_stride;
    char *y, *y_h, *y_c;
    int64_t y_step, y_direction, y_batch, state_direction, state_batch;
    char *reset, *z; /* [direction, batch, hidden] between two phases: stored, and of the computing type */
    char *memory;    /* of the device, in place of shared memory that has no room: `at.bytes` for each block */
    uint32_t *fault;
    int64_t row_tiles;
    int32_t parts;
    int32_t whole; /* pieces of R lie as such in memory */
    int32_t own, tile;
    sb_cuda_divisor own_divisor, gate_divisor; /* own, and tile * own: elements of a batch row, and of a gate */
    int32_t chunk;  /* batch rows of which chains are computed at once: by a thread 1, 2 or 4, by tensor cores eight */
    int32_t room;   /* rows that states have room for, a multiple of `chunk` */
    int32_t lines;  /* gate rows that R has room for */
    int32_t pieces; /* of a gate row */
    /* Of the first `held_lines` the first `held_pieces` are in registers, and not in shared memory; the others lie there [k][line], and behind
     * them those of other lines. */
    int32_t held_lines, held_pieces;
    int32_t sum_pitch;
    sb_cuda_sequence_layout at;
} sb_cuda_sequence;

#endif
