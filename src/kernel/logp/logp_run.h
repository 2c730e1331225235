/* Running a checked sb_linear_logp. */
#ifndef SB_KERNEL_LOGP_LOGP_RUN_H
#define SB_KERNEL_LOGP_LOGP_RUN_H

#include "kernel/logp/logp_check.h"

/** Computes a plan whose memory is checked; the forward pass, or the backward pass where there is a
 * gradient. Products that the engine refuses are refused before anything is launched. Errors:
 * UNSUPPORTED, INVALID_ARGUMENT, DEVICE, OUT_OF_MEMORY. */
sb_status sb_logp_run(sb_engine *engine, void *stream, const sb_logp_plan *plan, sb_error *error);

#endif
