/* The steps of sb_linear_logp on a device. */
#ifndef SB_CUDA_LOGP_LOGP_H
#define SB_CUDA_LOGP_LOGP_H

#include "kernel/contraction/engine.h"
#include "kernel/logp/logp_tasks.h"

/** Loads the kernels, so that nothing is loaded later, when a stream may be being captured. Errors:
 * UNSUPPORTED when there are none for the device; DEVICE; OUT_OF_MEMORY. */
sb_status sb_logp_device_prepare(sb_engine *engine, sb_error *error);

/* Each gives its task to `stream` as sb_gemm_on_device does, and nothing when the task has no
 * elements. Errors: INVALID_ARGUMENT when the stream is another device's; DEVICE; OUT_OF_MEMORY. */

/** Computes the logits of `gemm`, which has been checked but for its C, and reduces them at once: all of the task's chunk. *done
 * says whether the device can; if not, nothing has happened. */
sb_status sb_logp_reduce_product_on_device(sb_engine *engine, void *stream, const sb_gemm *gemm,
                                           const sb_logp_reduce *task, bool *done, sb_error *error);

sb_status sb_logp_reduce_on_device(sb_engine *engine, void *stream, const sb_logp_reduce *task, sb_error *error);
sb_status sb_logp_merge_on_device(sb_engine *engine, void *stream, const sb_logp_merge *task, sb_error *error);
sb_status sb_logp_differentiate_on_device(sb_engine *engine, void *stream, const sb_logp_differentiate *task,
                                          sb_error *error);
sb_status sb_logp_round_on_device(sb_engine *engine, void *stream, const sb_logp_round *task, sb_error *error);

#endif
