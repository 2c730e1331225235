/* What back ends compute of sb_linear_logp between its products. */
#ifndef SB_KERNEL_LOGP_LOGP_STEPS_H
#define SB_KERNEL_LOGP_LOGP_STEPS_H

#include "kernel/contraction/engine.h"
#include "kernel/logp/logp_tasks.h"

/* Each computes a task, or gives it to `stream` as sb_engine_interface.run does; a task without elements is none.
 * Errors: INVALID_ARGUMENT when the stream is another device's; DEVICE; OUT_OF_MEMORY. */
typedef struct sb_logp_steps {
    /* Computes the logits of `gemm`, which has been checked but for its C, and reduces them at once: all of the task's
     * chunk. *done says whether it can; if not, nothing has happened. NULL: it never can. */
    sb_status (*reduce_product)(sb_engine *engine, void *stream, const sb_gemm *gemm, const sb_logp_reduce *task,
                                bool *done, sb_error *error);
    sb_status (*reduce)(sb_engine *engine, void *stream, const sb_logp_reduce *task, sb_error *error);
    sb_status (*merge)(sb_engine *engine, void *stream, const sb_logp_merge *task, sb_error *error);
    sb_status (*differentiate)(sb_engine *engine, void *stream, const sb_logp_differentiate *task, sb_error *error);
    sb_status (*round)(sb_engine *engine, void *stream, const sb_logp_round *task, sb_error *error);
} sb_logp_steps;

#endif
