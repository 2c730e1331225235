/* Running a checked iv_linear_logp. */
#ifndef IV_GEMM_LOGP_RUN_H
#define IV_GEMM_LOGP_RUN_H

#include "gemm/logp_check.h"

/** Computes a plan whose memory is checked; the forward pass, or the backward pass where there is a
 * gradient. Products that the engine refuses are refused before anything is launched. Errors:
 * UNSUPPORTED, INVALID_ARGUMENT, DEVICE, OUT_OF_MEMORY. */
iv_status iv_logp_run(iv_engine *engine, void *stream, const iv_logp_plan *plan, iv_error *error);

#endif
