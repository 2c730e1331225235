/* The loops of Clip. */
#ifndef IV_OPS_CLIP_H
#define IV_OPS_CLIP_H

#include "ops/loops.h"

/* A bound in the type that is computed in. */
typedef union iv_clip_bound {
    float f32;
    double f64;
    char bytes[8];
} iv_clip_bound;

typedef struct iv_clip_bounds {
    iv_clip_bound least, most;
} iv_clip_bounds;

/* node->params: the bounds as attributes, before operator set 11; later ones: no bounds at all. */
typedef struct iv_clip_params {
    float least, most;
    iv_clip_bounds f32, f64; /* the same, as the loops take them */
} iv_clip_params;

/* Row 0: operands output and x; the context is an iv_clip_bounds. Row 1: operands output, x, least,
 * most; no context. */
IV_DECLARE_LOOPS(iv_clip_loops, 2)

#endif
