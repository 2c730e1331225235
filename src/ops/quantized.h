/* 8-bit integers that stand for numbers: value = scale * (element - zero point). */
#ifndef IV_OPS_QUANTIZED_H
#define IV_OPS_QUANTIZED_H

#include "graph/op.h"
#include "ops/quantized_values.h"

#define IV_SET_QUANTIZED (IV_SET(IV_S8) | IV_SET(IV_U8))

/** Writes every element of `tensor` (s8 or u8) minus its zero point to `out`, in row-major order.
 * `zero_point` has the same dtype and broadcasts to the tensor's shape; NULL stands for 0. Fails
 * when it does not broadcast. */
iv_status iv_quantized_widen(iv_tensor *tensor, iv_tensor *zero_point, int32_t *out,
                             iv_error *error);

#endif
