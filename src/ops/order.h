/* Elements of any dtype as integers that sort as the elements do: the order behind TopK, Unique and
 * their ties. For the host and for devices. */
#ifndef SB_OPS_ORDER_H
#define SB_OPS_ORDER_H

#include <samebit/dtype.h>

#include "numerics/convert.h"
#include "numerics/minmax.h"
#include "ops/number.h"

/** A key that is larger for larger elements: floats as the numerics contract orders them (-0 < +0,
 * every NaN equal and above everything; with `nan_low`, below everything). Unsigned integers
 * compare as such. */
static SB_HD int64_t sb_order_key(sb_dtype dtype, const void *data, int64_t index, bool nan_low) {
    const uint64_t flip = UINT64_C(1) << 63;
    switch (dtype) {
    case SB_BOOL:
    case SB_U8:
        return ((const uint8_t *)data)[index];
    case SB_U16:
        return ((const uint16_t *)data)[index];
    case SB_U32:
        return ((const uint32_t *)data)[index];
    case SB_U64:
        return (int64_t)(((const uint64_t *)data)[index] ^ flip);
    case SB_S8:
        return ((const int8_t *)data)[index];
    case SB_S16:
        return ((const int16_t *)data)[index];
    case SB_S32:
        return ((const int32_t *)data)[index];
    case SB_S64:
        return ((const int64_t *)data)[index];
    case SB_F64: {
        double value = ((const double *)data)[index];
        return nan_low ? sb_bits_order_nan_low_f64(value) : sb_bits_order_f64(value);
    }
    case SB_S4:
    case SB_U4:
    case SB_S2:
    case SB_U2:
        return (int64_t)sb_number_load(dtype, data, index);
    default: {
        float value = dtype == SB_F32    ? ((const float *)data)[index]
                      : dtype == SB_F16  ? sb_f16_to_f32(((const uint16_t *)data)[index])
                      : dtype == SB_BF16 ? sb_bf16_to_f32(((const uint16_t *)data)[index])
                                         : (float)sb_number_load(dtype, data, index); /* the small types: exactly */
        return nan_low ? sb_bits_order_nan_low_f32(value) : sb_bits_order_f32(value);
    }
    }
}

#endif
