/* Elements of any numeric dtype as f64, for operators that evaluate in f64 and round once. For the
 * host and for devices. */
#ifndef IV_OPS_NUMBER_H
#define IV_OPS_NUMBER_H

#include <invar/dtype.h>

#include "numerics/convert.h"

/** Element `index` of the elements at `data` as f64: exact but for 64-bit integers, which round to
 * nearest. */
static IV_HD double iv_number_load(iv_dtype dtype, const void *data, int64_t index) {
    switch (dtype) {
    case IV_BOOL:
    case IV_U8:
        return ((const uint8_t *)data)[index];
    case IV_U16:
        return ((const uint16_t *)data)[index];
    case IV_U32:
        return ((const uint32_t *)data)[index];
    case IV_U64:
        return (double)((const uint64_t *)data)[index];
    case IV_S8:
        return ((const int8_t *)data)[index];
    case IV_S16:
        return ((const int16_t *)data)[index];
    case IV_S32:
        return ((const int32_t *)data)[index];
    case IV_S64:
        return (double)((const int64_t *)data)[index];
    case IV_F16:
        return iv_f16_to_f64(((const uint16_t *)data)[index]);
    case IV_BF16:
        return iv_bf16_to_f64(((const uint16_t *)data)[index]);
    case IV_F32:
        return ((const float *)data)[index];
    case IV_F64:
        return ((const double *)data)[index];
    default:
        return 0.0;
    }
}

/** Stores `value` as element `index`: rounded once for floats, cut toward zero and saturated for
 * integers. */
static IV_HD void iv_number_store(iv_dtype dtype, void *data, int64_t index, double value) {
    switch (dtype) {
    case IV_BOOL:
        ((uint8_t *)data)[index] = iv_bool_from_f64(value);
        break;
    case IV_U8:
        ((uint8_t *)data)[index] = iv_u8_from_f64(value);
        break;
    case IV_U16:
        ((uint16_t *)data)[index] = iv_u16_from_f64(value);
        break;
    case IV_U32:
        ((uint32_t *)data)[index] = iv_u32_from_f64(value);
        break;
    case IV_U64:
        ((uint64_t *)data)[index] = iv_u64_from_f64(value);
        break;
    case IV_S8:
        ((int8_t *)data)[index] = iv_i8_from_f64(value);
        break;
    case IV_S16:
        ((int16_t *)data)[index] = iv_i16_from_f64(value);
        break;
    case IV_S32:
        ((int32_t *)data)[index] = iv_i32_from_f64(value);
        break;
    case IV_S64:
        ((int64_t *)data)[index] = iv_i64_from_f64(value);
        break;
    case IV_F16:
        ((uint16_t *)data)[index] = iv_f16_from_f64(value);
        break;
    case IV_BF16:
        ((uint16_t *)data)[index] = iv_bf16_from_f64(value);
        break;
    case IV_F32:
        ((float *)data)[index] = (float)value;
        break;
    case IV_F64:
        ((double *)data)[index] = value;
        break;
    default:
        break;
    }
}

#endif
