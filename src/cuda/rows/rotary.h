/* Turning heads on a device, for kernels that do so besides other things. */
#ifndef SB_CUDA_ROWS_ROTARY_H
#define SB_CUDA_ROWS_ROTARY_H

#include "cuda/common/elements.h"
#include "cuda/rows/rotary_parameters.h"
#include "ops/rotary.h"

/** Fills parameters from a described call, and names what the work reads. */
void sb_cuda_rotary_fill(sb_call *call, const sb_rotary *rotary, sb_cuda_work *work, sb_cuda_rotary *parameters);

#endif
