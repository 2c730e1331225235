/* 8-bit integers that stand for numbers: value = scale * (element - zero point). */
#ifndef IV_OPS_QUANTIZED_H
#define IV_OPS_QUANTIZED_H

#include "graph/op.h"

#define IV_SET_QUANTIZED (IV_SET(IV_S8) | IV_SET(IV_U8))

/** Writes every element of `tensor` (s8 or u8) minus its zero point to `out`, in row-major order.
 * `zero_point` has the same dtype and broadcasts to the tensor's shape; NULL stands for 0. Fails
 * when it does not broadcast. */
iv_status iv_quantized_widen(iv_tensor *tensor, iv_tensor *zero_point, int32_t *out,
                             iv_error *error);

/** The element for an exact sum: round(sum * multiplier) + zero_point, saturated. The sum converts
 * to f32, the product rounds once, then to an integer with ties to even. */
int32_t iv_quantized_rescale(iv_dtype dtype, int32_t sum, float multiplier, int32_t zero_point);

/** Element `index` of s8 or u8 elements at `data`, and storing one that is in range. */
static inline int32_t iv_quantized_load(iv_dtype dtype, const void *data, int64_t index) {
    return dtype == IV_S8 ? ((const int8_t *)data)[index] : ((const uint8_t *)data)[index];
}

static inline void iv_quantized_store(void *data, int64_t index, int32_t value) {
    ((uint8_t *)data)[index] = (uint8_t)value;
}

#endif
