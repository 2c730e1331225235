/* Tiles of depthwise convolutions in f32. */
#ifndef SB_CUDA_CONTRACTION_CONV_DEPTHWISE_H
#define SB_CUDA_CONTRACTION_CONV_DEPTHWISE_H

#include <stdbool.h>

#include "cuda/contraction/contraction_parameters.h"

/** Chooses tiles for p->conv, which has been filled in and has elements, on a device with that many multiprocessors, and sets
 * all else. False where conv_depthwise_f32.cu does not take it: groups of more than one channel, other steps or gaps
 * along the last axis, a third axis, a kernel that does not fit. */
bool sb_cuda_depthwise_plan(sb_cuda_depthwise *p, int multiprocessors);
/** The shared memory of a block, in bytes. */
unsigned sb_cuda_depthwise_shared(const sb_cuda_depthwise *p);

#endif
