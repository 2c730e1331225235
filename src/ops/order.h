/* Elements of any dtype as integers that sort as the elements do: the order behind TopK, Unique and
 * their ties. For the host and for devices. */
#ifndef IV_OPS_ORDER_H
#define IV_OPS_ORDER_H

#include <invar/dtype.h>

#include "numerics/convert.h"
#include "numerics/minmax.h"

/** A key that is larger for larger elements: floats as the numerics contract orders them (-0 < +0,
 * every NaN equal and above everything; with `nan_low`, below everything). Unsigned integers
 * compare as such. */
static IV_HD int64_t iv_order_key(iv_dtype dtype, const void *data, int64_t index, bool nan_low) {
    const uint64_t flip = UINT64_C(1) << 63;
    switch (dtype) {
    case IV_BOOL:
    case IV_U8:
        return ((const uint8_t *)data)[index];
    case IV_U16:
        return ((const uint16_t *)data)[index];
    case IV_U32:
        return ((const uint32_t *)data)[index];
    case IV_U64:
        return (int64_t)(((const uint64_t *)data)[index] ^ flip);
    case IV_S8:
        return ((const int8_t *)data)[index];
    case IV_S16:
        return ((const int16_t *)data)[index];
    case IV_S32:
        return ((const int32_t *)data)[index];
    case IV_S64:
        return ((const int64_t *)data)[index];
    case IV_F64: {
        double value = ((const double *)data)[index];
        return nan_low ? iv_bits_order_nan_low_f64(value) : iv_bits_order_f64(value);
    }
    default: {
        float value = dtype == IV_F32   ? ((const float *)data)[index]
                      : dtype == IV_F16 ? iv_f16_to_f32(((const uint16_t *)data)[index])
                                        : iv_bf16_to_f32(((const uint16_t *)data)[index]);
        return nan_low ? iv_bits_order_nan_low_f32(value) : iv_bits_order_f32(value);
    }
    }
}

#endif
