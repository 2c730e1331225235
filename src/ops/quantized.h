/* 8-bit integers that stand for numbers: value = scale * (element - zero point). */
#ifndef SB_OPS_QUANTIZED_H
#define SB_OPS_QUANTIZED_H

#include "graph/op.h"
#include "ops/quantized_values.h"

#define SB_SET_QUANTIZED (SB_SET(SB_S8) | SB_SET(SB_U8))

/** Writes every element of `tensor` (s8 or u8) minus its zero point to `out`, in row-major order.
 * `zero_point` has the same dtype and broadcasts to the tensor's shape; NULL stands for 0. Fails
 * when it does not broadcast. */
sb_status sb_quantized_widen(sb_tensor *tensor, sb_tensor *zero_point, int32_t *out, sb_error *error);

#endif
