/* Element types. */
#ifndef SAMEBIT_DTYPE_H
#define SAMEBIT_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

#include <samebit/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The element types of tensors. The numbers are part of the binary interface. */
typedef enum sb_dtype {
    SB_DTYPE_NONE = 0, /**< no type: what an omitted value has */
    SB_BOOL = 1,       /**< one byte, 0 or 1 */
    SB_U8 = 2,
    SB_U16 = 3,
    SB_U32 = 4,
    SB_U64 = 5,
    SB_S8 = 6,
    SB_S16 = 7,
    SB_S32 = 8,
    SB_S64 = 9,
    SB_F16 = 10,    /**< IEEE 754 binary16: storage only, arithmetic is binary32 */
    SB_BF16 = 11,   /**< bfloat16: storage only, arithmetic is binary32 */
    SB_F32 = 12,    /**< IEEE 754 binary32 */
    SB_F64 = 13,    /**< IEEE 754 binary64 */
    SB_STRING = 14, /**< UTF-8 text; only the operators that work on text take it */
    /* The small types: storage only, which Cast, QuantizeLinear and DequantizeLinear convert, and which everything
     * that moves elements moves. */
    SB_F8E4M3FN = 15,   /**< 8 bits, no infinities, NaN 0x7f and 0xff, at most 448 */
    SB_F8E4M3FNUZ = 16, /**< 8 bits, bias 8, no infinities, no -0 (0x80 is the NaN), at most 240 */
    SB_F8E5M2 = 17,     /**< 8 bits, as IEEE 754: infinities and NaNs, at most 57344 */
    SB_F8E5M2FNUZ = 18, /**< 8 bits, bias 16, no infinities, no -0 (0x80 is the NaN), at most 57344 */
    SB_F8E8M0 = 19,     /**< 8 bits, powers of two from 2^-127 to 2^127 without a sign; 0xff is the NaN */
    SB_F4E2M1 = 20,     /**< 4 bits: ±0, 0.5, 1, 1.5, 2, 3, 4, 6; neither infinities nor NaN */
    SB_S4 = 21,         /**< -8 to 7 */
    SB_U4 = 22,         /**< 0 to 15 */
    SB_S2 = 23,         /**< -2 to 1 */
    SB_U2 = 24,         /**< 0 to 3 */
    SB_F6E2M3 = 25,     /**< 6 bits, at most 7.5; neither infinities nor NaN */
    SB_F6E3M2 = 26,     /**< 6 bits, at most 28; neither infinities nor NaN */
    SB_DTYPE_COUNT = 27
} sb_dtype;

/** Bytes of one element in memory; 0 for `SB_DTYPE_NONE` and for numbers that are no dtype.
 *
 * An element of 2, 4 or 6 bits takes a byte of its own, so that strides and views are as for any dtype: its bits are
 * the low ones, and the high ones count for nothing. What Samebit computes or reads has them zero, also below a sign.
 * Files in ONNX's formats pack them (`sb_dtype_bits`). */
SB_API size_t sb_dtype_size(sb_dtype dtype);

/** Bits of one element where elements are packed: 2, 4 or 6 for the dtypes of so many bits, 8 × `sb_dtype_size` for
 * the others; 0 for `SB_STRING`, which has no fixed number, `SB_DTYPE_NONE` and numbers that are no dtype. */
SB_API int sb_dtype_bits(sb_dtype dtype);

/** The dtype's name as Samebit prints it: "f32", "s64", "bool", … Never NULL; static storage. */
SB_API const char *sb_dtype_name(sb_dtype dtype);

/** The dtype of a name that `sb_dtype_name` gives; `SB_DTYPE_NONE` when there is none. */
SB_API sb_dtype sb_dtype_from_name(const char *name);

/** Whether the dtype is one of f16, bf16, f32, f64: those that arithmetic takes. */
SB_API bool sb_dtype_is_float(sb_dtype dtype);

/** Whether the dtype is a signed or unsigned integer of 8 to 64 bits (bool is not): those that arithmetic takes. */
SB_API bool sb_dtype_is_integer(sb_dtype dtype);

/** Whether the dtype is one of the small types, f8e4m3fn to f6e3m2. */
SB_API bool sb_dtype_is_small(sb_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
