/* Tensors whose channels lie side by side, innermost in memory, as kernels of windows and points leave them: [batch][positions][channels]. */
#ifndef SB_CPU_CHANNELS_LAST_H
#define SB_CPU_CHANNELS_LAST_H

#include "graph/op.h"

/** Output 0, of so many dimensions, with the channels innermost. */
sb_status sb_channels_last_output(sb_call *call, int rank, sb_tensor **y);

/** Copies x, of f32, to the call's workspace so. `strides` gets those of the batch and of each spatial axis, in elements. */
sb_status sb_channels_last_copy(sb_call *call, const sb_tensor *x, const float **copy, int64_t *strides);

/** The same in f32 of any float that is computed in f32, by all workers. */
sb_status sb_channels_last_widen(sb_call *call, sb_tensor *x, const float **copy, int64_t *strides);

#endif
