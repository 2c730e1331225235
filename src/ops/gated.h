/* What the kernels of SwiGLU share with its definition. */
#ifndef SB_OPS_GATED_H
#define SB_OPS_GATED_H

#include "ops/loops.h"

typedef struct sb_gated_params {
    float alpha;
} sb_gated_params;

/* Loops over rows: operand 0 is the output, 1 the gate, 2 the value; the context is an sb_gated_params. */
SB_DECLARE_LOOPS(sb_gated_loops, 1)

#endif
