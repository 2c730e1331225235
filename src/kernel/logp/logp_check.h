/* Checking what sb_linear_logp is asked for, and how the work is cut. */
#ifndef SB_KERNEL_LOGP_LOGP_CHECK_H
#define SB_KERNEL_LOGP_LOGP_CHECK_H

#include <samebit/logp.h>

#include "kernel/contraction/engine.h"

/* A call that has been checked, and the places of everything in its workspace, in bytes. Valid
 * during the call that was given `logp` and `gradient`. */
typedef struct sb_logp_plan {
    const sb_linear_logp *logp;
    const sb_linear_logp_gradient *gradient; /* NULL in the forward pass */
    int64_t m, k, v;
    int64_t blocks;        /* of SB_LOGP_BLOCK columns in V */
    int64_t rows, columns; /* of a chunk of logits, at least 1; columns is a multiple of SB_LOGP_BLOCK */
    bool wants_d_hidden, wants_d_weight;
    bool rounds_d_hidden; /* whether d_hidden's chains lie in the workspace until they are finished */
    size_t logits;        /* f32: rows × columns */
    size_t pairs, chosen; /* forward: blocks × rows, and rows */
    size_t gradients;     /* backward: 16 bits, rows × columns */
    size_t d_hidden;      /* … and f32, rows × K, where it is rounded at the end */
    size_t bytes;         /* in all */
} sb_logp_plan;

/** Checks everything but addresses, and fills `*plan`. */
sb_status sb_logp_measure(const sb_engine *engine, const sb_linear_logp *logp, const sb_linear_logp_gradient *gradient,
                          sb_logp_plan *plan, sb_error *error);

/** Cuts the work of a plan into chunks of `rows` × `columns` logits, which no result shows, and
 * gives everything its place in the workspace. `rows` must be at least M where d_weight is wanted.
 * Errors: INVALID_ARGUMENT when sizes overflow. */
sb_status sb_logp_lay_out(sb_logp_plan *plan, int64_t rows, int64_t columns, sb_error *error);

/** Checks the memory of a plan that is measured: that it is there, aligned, on the engine's side, and that what is
 * written lies apart from everything else. On the CPU it reads the targets. Launches nothing. */
sb_status sb_logp_check_memory(sb_engine *engine, const sb_logp_plan *plan, sb_error *error);

#endif
