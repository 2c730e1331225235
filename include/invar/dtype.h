/* Element types. */
#ifndef INVAR_DTYPE_H
#define INVAR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

#include <invar/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The element types of tensors. The numbers are part of the binary interface. */
typedef enum iv_dtype {
    IV_DTYPE_NONE = 0, /**< no type: what an omitted value has */
    IV_BOOL = 1,       /**< one byte, 0 or 1 */
    IV_U8 = 2,
    IV_U16 = 3,
    IV_U32 = 4,
    IV_U64 = 5,
    IV_S8 = 6,
    IV_S16 = 7,
    IV_S32 = 8,
    IV_S64 = 9,
    IV_F16 = 10,    /**< IEEE 754 binary16: storage only, arithmetic is binary32 */
    IV_BF16 = 11,   /**< bfloat16: storage only, arithmetic is binary32 */
    IV_F32 = 12,    /**< IEEE 754 binary32 */
    IV_F64 = 13,    /**< IEEE 754 binary64 */
    IV_STRING = 14, /**< UTF-8 text; only the operators that work on text take it */
    IV_DTYPE_COUNT = 15
} iv_dtype;

/** Bytes of one element; 0 for `IV_DTYPE_NONE` and for numbers that are no dtype. */
IV_API size_t iv_dtype_size(iv_dtype dtype);

/** The dtype's name as Invar prints it: "f32", "s64", "bool", … Never NULL; static storage. */
IV_API const char *iv_dtype_name(iv_dtype dtype);

/** The dtype of a name that `iv_dtype_name` gives; `IV_DTYPE_NONE` when there is none. */
IV_API iv_dtype iv_dtype_from_name(const char *name);

/** Whether the dtype is one of f16, bf16, f32, f64. */
IV_API bool iv_dtype_is_float(iv_dtype dtype);

/** Whether the dtype is a signed or unsigned integer (bool is not). */
IV_API bool iv_dtype_is_integer(iv_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
