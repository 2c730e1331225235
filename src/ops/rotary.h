/* What the kernels of RotaryEmbedding share with its definition. */
#ifndef SB_OPS_ROTARY_H
#define SB_OPS_ROTARY_H

#include "graph/op.h"

typedef struct sb_rotary_params {
    int64_t heads;   /* of an input of three axes; 0: not given */
    int64_t rotated; /* elements of a head that are rotated; 0: all */
    bool interleaved;
} sb_rotary_params;

/* A call, described for any layout: steps are in elements. */
typedef struct sb_rotary {
    const sb_tensor *x, *cosines, *sines, *positions; /* positions: NULL where the tables have a row per token */
    sb_tensor *y;
    int64_t batch, tokens, heads, head_size, half;
    int64_t x_steps[4], y_steps[4]; /* batch, token, head, element of a head */
    bool interleaved;
} sb_rotary;

/** Describes a call, whose output is `y`, wherever its tensors lie. SHAPE where extents do not fit. */
sb_status sb_rotary_describe(const sb_call *call, sb_tensor *y, sb_rotary *rotary);

/** Checks the positions. SHAPE where the tables do not have one. */
sb_status sb_rotary_check(const sb_call *call, const sb_rotary *rotary);

/** The row of a table, of cosines or sines, that a token has. */
const char *sb_rotary_row(const sb_rotary *rotary, const sb_tensor *table, int64_t batch, int64_t token);

/** Computes all heads of tokens [begin, end), numbered through the batch. */
void sb_rotary_tokens(const sb_rotary *rotary, int64_t begin, int64_t end);

#endif
