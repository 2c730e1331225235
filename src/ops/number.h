/* Elements of any numeric dtype as f64, for operators that evaluate in f64 and round once. For the
 * host and for devices. */
#ifndef SB_OPS_NUMBER_H
#define SB_OPS_NUMBER_H

#include <samebit/dtype.h>

#include "numerics/small.h"

/** Element `index` of the elements at `data` as f64: exact but for 64-bit integers, which round to nearest. */
static SB_HD double sb_number_load(sb_dtype dtype, const void *data, int64_t index) {
    switch (dtype) {
    case SB_BOOL:
    case SB_U8:
        return ((const uint8_t *)data)[index];
    case SB_U16:
        return ((const uint16_t *)data)[index];
    case SB_U32:
        return ((const uint32_t *)data)[index];
    case SB_U64:
        return (double)((const uint64_t *)data)[index];
    case SB_S8:
        return ((const int8_t *)data)[index];
    case SB_S16:
        return ((const int16_t *)data)[index];
    case SB_S32:
        return ((const int32_t *)data)[index];
    case SB_S64:
        return (double)((const int64_t *)data)[index];
    case SB_F16:
        return sb_f16_to_f64(((const uint16_t *)data)[index]);
    case SB_BF16:
        return sb_bf16_to_f64(((const uint16_t *)data)[index]);
    case SB_F32:
        return ((const float *)data)[index];
    case SB_F64:
        return ((const double *)data)[index];
#define LOAD_FLOAT(type, name, mantissa, bias, largest, beyond, nan, bits, unused)                                     \
    case SB_##name:                                                                                                    \
        return sb_##type##_to_f32(((const uint8_t *)data)[index]);
        SB_SMALL_FLOATS(LOAD_FLOAT, )
#undef LOAD_FLOAT
    case SB_F8E8M0:
        return sb_f8e8m0_to_f32(((const uint8_t *)data)[index]);
#define LOAD_INTEGER(type, name, bits, is_signed, unused)                                                              \
    case SB_##name:                                                                                                    \
        return sb_##type##_to_s8(((const uint8_t *)data)[index]);
        SB_SMALL_INTEGERS(LOAD_INTEGER, )
#undef LOAD_INTEGER
    default:
        return 0.0;
    }
}

/** Stores `value` as element `index`: rounded once for floats, cut toward zero and saturated for integers. To the small
 * types as Cast does by default: floats saturate, f8e8m0 rounds up, integers keep the low bits of an s32. */
static SB_HD void sb_number_store(sb_dtype dtype, void *data, int64_t index, double value) {
    switch (dtype) {
    case SB_BOOL:
        ((uint8_t *)data)[index] = sb_bool_from_f64(value);
        break;
    case SB_U8:
        ((uint8_t *)data)[index] = sb_u8_from_f64(value);
        break;
    case SB_U16:
        ((uint16_t *)data)[index] = sb_u16_from_f64(value);
        break;
    case SB_U32:
        ((uint32_t *)data)[index] = sb_u32_from_f64(value);
        break;
    case SB_U64:
        ((uint64_t *)data)[index] = sb_u64_from_f64(value);
        break;
    case SB_S8:
        ((int8_t *)data)[index] = sb_i8_from_f64(value);
        break;
    case SB_S16:
        ((int16_t *)data)[index] = sb_i16_from_f64(value);
        break;
    case SB_S32:
        ((int32_t *)data)[index] = sb_i32_from_f64(value);
        break;
    case SB_S64:
        ((int64_t *)data)[index] = sb_i64_from_f64(value);
        break;
    case SB_F16:
        ((uint16_t *)data)[index] = sb_f16_from_f64(value);
        break;
    case SB_BF16:
        ((uint16_t *)data)[index] = sb_bf16_from_f64(value);
        break;
    case SB_F32:
        ((float *)data)[index] = (float)value;
        break;
    case SB_F64:
        ((double *)data)[index] = value;
        break;
#define STORE_FLOAT(type, name, mantissa, bias, largest, beyond, nan, bits, unused)                                    \
    case SB_##name:                                                                                                    \
        ((uint8_t *)data)[index] = sb_##type##_from_f32(sb_f32_from_f64_to_odd(value), 1);                             \
        break;
        SB_SMALL_FLOATS(STORE_FLOAT, )
#undef STORE_FLOAT
    case SB_F8E8M0:
        ((uint8_t *)data)[index] = sb_f8e8m0_from_f32(sb_f32_from_f64_to_odd(value), 1, SB_ROUND_UP);
        break;
#define STORE_INTEGER(type, name, bits, is_signed, unused)                                                             \
    case SB_##name:                                                                                                    \
        ((uint8_t *)data)[index] = sb_##type##_from_s8((int8_t)sb_i32_from_f64(value));                                \
        break;
        SB_SMALL_INTEGERS(STORE_INTEGER, )
#undef STORE_INTEGER
    default:
        break;
    }
}

#endif
