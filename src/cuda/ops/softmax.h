/* Softmax of rows, for operators of other names as well. */
#ifndef IV_CUDA_OPS_SOFTMAX_H
#define IV_CUDA_OPS_SOFTMAX_H

#include "cuda/ops/rows.h"

/** Softmax, or LogSoftmax, of the rows of `in` that the dimensions in the bit set `inner` make, to
 * `out`, of the same shape and float dtype; any strides. */
iv_status iv_cuda_softmax_rows(iv_call *call, const iv_tensor *out, const iv_tensor *in,
                               uint32_t inner, bool log);

#endif
