/* Elements of 16 bits as f32, for kernels that compute in f32 and round once at the end. */
#ifndef SB_CPU_WIDEN_H
#define SB_CPU_WIDEN_H

#include "graph/op.h"

/** Makes `wide` x's elements as f32 in the call's workspace, without gaps in x's order of dimensions in memory; what x repeats
 * (strides of 0) is there once and repeated too. `wide` holds no reference, and ends with the call. x is of f32, which is not copied,
 * f16 or bf16. */
sb_status sb_widen(sb_call *call, const sb_tensor *x, sb_tensor *wide);

/** Makes `wide` of f32 where `y`'s elements are to be computed: y itself if it is of f32, else memory of the call's workspace with
 * y's extents and strides, for sb_narrow. y has no gaps. */
sb_status sb_widen_output(sb_call *call, const sb_tensor *y, sb_tensor *wide);

/** Rounds what was computed in `wide` to the elements of y; nothing to do where y is of f32. */
void sb_narrow(sb_call *call, const sb_tensor *wide, sb_tensor *y);

#endif
