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
    SB_DTYPE_COUNT = 15
} sb_dtype;

/** Bytes of one element; 0 for `SB_DTYPE_NONE` and for numbers that are no dtype. */
SB_API size_t sb_dtype_size(sb_dtype dtype);

/** The dtype's name as Samebit prints it: "f32", "s64", "bool", … Never NULL; static storage. */
SB_API const char *sb_dtype_name(sb_dtype dtype);

/** The dtype of a name that `sb_dtype_name` gives; `SB_DTYPE_NONE` when there is none. */
SB_API sb_dtype sb_dtype_from_name(const char *name);

/** Whether the dtype is one of f16, bf16, f32, f64. */
SB_API bool sb_dtype_is_float(sb_dtype dtype);

/** Whether the dtype is a signed or unsigned integer (bool is not). */
SB_API bool sb_dtype_is_integer(sb_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
