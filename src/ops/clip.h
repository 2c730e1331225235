/* The loops of Clip. */
#ifndef SB_OPS_CLIP_H
#define SB_OPS_CLIP_H

#include "ops/loops.h"

/* A bound in the type that is computed in. */
typedef union sb_clip_bound {
    float f32;
    double f64;
    char bytes[8];
} sb_clip_bound;

typedef struct sb_clip_bounds {
    sb_clip_bound least, most;
} sb_clip_bounds;

/* node->params: the bounds as attributes, before operator set 11; later ones: no bounds at all. */
typedef struct sb_clip_params {
    float least, most;
    sb_clip_bounds f32, f64; /* the same, as the loops take them */
} sb_clip_params;

/* Row 0: operands output and x; the context is an sb_clip_bounds. Row 1: operands output, x, least,
 * most; no context. Row 2: operands output, x, least; the context is an sb_clip_bounds, of which most counts. */
SB_DECLARE_LOOPS(sb_clip_loops, 3)

#endif
