/* The steps of iv_linear_logp on a device. */
#ifndef IV_CUDA_GEMM_LOGP_H
#define IV_CUDA_GEMM_LOGP_H

#include "gemm/engine.h"
#include "gemm/logp_tasks.h"

/** Loads the kernels, so that nothing is loaded later, when a stream may be being captured. Errors:
 * UNSUPPORTED when there are none for the device; DEVICE; OUT_OF_MEMORY. */
iv_status iv_logp_device_prepare(iv_engine *engine, iv_error *error);

/* Each gives its task to `stream` as iv_gemm_on_device does, and nothing when the task has no
 * elements. Errors: INVALID_ARGUMENT when the stream is another device's; DEVICE; OUT_OF_MEMORY. */

/** Computes the logits of `gemm`, which has been checked but for its C, and reduces them at once: all of the task's chunk. *done
 * says whether the device can; if not, nothing has happened. */
iv_status iv_logp_reduce_product_on_device(iv_engine *engine, void *stream, const iv_gemm *gemm, const iv_logp_reduce *task,
                                           bool *done, iv_error *error);

iv_status iv_logp_reduce_on_device(iv_engine *engine, void *stream, const iv_logp_reduce *task,
                                   iv_error *error);
iv_status iv_logp_merge_on_device(iv_engine *engine, void *stream, const iv_logp_merge *task,
                                  iv_error *error);
iv_status iv_logp_differentiate_on_device(iv_engine *engine, void *stream,
                                          const iv_logp_differentiate *task, iv_error *error);
iv_status iv_logp_round_on_device(iv_engine *engine, void *stream, const iv_logp_round *task,
                                  iv_error *error);

#endif
