/* Concat on a device. */
#ifndef SB_CUDA_MOVING_CONCAT_H
#define SB_CUDA_MOVING_CONCAT_H

#include "cuda/common/call.h"

/** `launch` of Concat. Errors: SHAPE, and those of sb_cuda_call_launch. */
sb_status sb_cuda_concat_launch(sb_call *call);
/** `bounded` of Concat: rows of the joined axis are all that is bounded. */
bool sb_cuda_concat_bounded(const sb_kernel_query *query, int input, int axis);

#endif
