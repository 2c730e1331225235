/* The steps of sb_linear_logp on a device. */
#ifndef SB_CUDA_LOGP_LOGP_H
#define SB_CUDA_LOGP_LOGP_H

#include "cuda/contraction/engine.h"
#include "kernel/logp/logp_steps.h"

/** Loads the kernels, so that nothing is loaded later, when a stream may be being captured. Errors:
 * UNSUPPORTED when there are none for the device; DEVICE; OUT_OF_MEMORY. */
sb_status sb_logp_device_load(sb_cuda_device *device, sb_error *error);

/* What engines on a device compute between products. */
extern const sb_logp_steps sb_logp_device_steps;

#endif
