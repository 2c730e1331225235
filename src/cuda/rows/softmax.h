/* Softmax of rows, for operators of other names as well. */
#ifndef SB_CUDA_ROWS_SOFTMAX_H
#define SB_CUDA_ROWS_SOFTMAX_H

#include "cuda/rows/rows.h"

/** Softmax, or LogSoftmax, of the rows of `in` that the dimensions in the bit set `inner` make, to
 * `out`, of the same shape and float dtype; any strides. With `input` not -1, `in` has the dimensions of that input of
 * the call, and rows end at its used extents. */
sb_status sb_cuda_softmax_rows(sb_call *call, const sb_tensor *out, const sb_tensor *in, uint32_t inner, bool log,
                               int input);

#endif
