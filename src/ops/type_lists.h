/* The element types of arithmetic, listed for macros that make a function for each. For the host
 * and for devices. */
#ifndef SB_OPS_TYPE_LISTS_H
#define SB_OPS_TYPE_LISTS_H

#include "numerics/convert.h"

#define SB_SAME(value) (value)

/* X(dtype, suffix, stored type, computing type, its suffix, load, store, …) */
#define SB_FLOAT_TYPES(X, ...)                                                                                         \
    X(F16, f16, uint16_t, float, f32, sb_f16_to_f32, sb_f16_from_f32, __VA_ARGS__)                                     \
    X(BF16, bf16, uint16_t, float, f32, sb_bf16_to_f32, sb_bf16_from_f32, __VA_ARGS__)                                 \
    X(F32, f32, float, float, f32, SB_SAME, SB_SAME, __VA_ARGS__)                                                      \
    X(F64, f64, double, double, f64, SB_SAME, SB_SAME, __VA_ARGS__)

/* X(dtype, suffix, type, unsigned type of that width or of unsigned, whichever is wider, …):
 * arithmetic happens in the latter, so that nothing overflows on the way. */
#define SB_SIGNED_TYPES(X, ...)                                                                                        \
    X(S8, s8, int8_t, unsigned, __VA_ARGS__)                                                                           \
    X(S16, s16, int16_t, unsigned, __VA_ARGS__)                                                                        \
    X(S32, s32, int32_t, unsigned, __VA_ARGS__)                                                                        \
    X(S64, s64, int64_t, uint64_t, __VA_ARGS__)
#define SB_UNSIGNED_TYPES(X, ...)                                                                                      \
    X(U8, u8, uint8_t, unsigned, __VA_ARGS__)                                                                          \
    X(U16, u16, uint16_t, unsigned, __VA_ARGS__)                                                                       \
    X(U32, u32, uint32_t, unsigned, __VA_ARGS__)                                                                       \
    X(U64, u64, uint64_t, uint64_t, __VA_ARGS__)

#endif
