/* PagedAppend on a device, for kernels that do it besides other things. */
#ifndef SB_CUDA_MOVING_PAGED_APPEND_H
#define SB_CUDA_MOVING_PAGED_APPEND_H

#include "cuda/moving/paged_append_parameters.h"

/** Whether rows of 16 bits can be read and written 16 bytes at a time, and all their queries and keys are turned, an element with that half
 * a head further on; keys and values then go to the same places. */
bool sb_cuda_append_takes_eights(const sb_cuda_paged_append *append);

#endif
