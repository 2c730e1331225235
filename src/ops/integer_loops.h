/* The loops of element-wise operators over integers, and of Cast among integers: the same functions for every
 * instruction set. They are compiled once, for any processor of the architecture, since integers are seldom what a
 * model's time goes to, and a loop for each operator, type and instruction set took a third of the time that the whole
 * library took to compile. */
#ifndef SB_OPS_INTEGER_LOOPS_H
#define SB_OPS_INTEGER_LOOPS_H

#include "ops/binary_list.h"
#include "ops/loops.h"
#include "ops/unary_list.h"

#define SB_DECLARE_LOOP(name) void name(void *context, int64_t count, char *const *data, const int64_t *steps);
#define SB_DECLARE_SIGNED(name)                                                                                        \
    SB_DECLARE_LOOP(name##_s8)                                                                                         \
    SB_DECLARE_LOOP(name##_s16)                                                                                        \
    SB_DECLARE_LOOP(name##_s32)                                                                                        \
    SB_DECLARE_LOOP(name##_s64)
#define SB_DECLARE_UNSIGNED(name)                                                                                      \
    SB_DECLARE_LOOP(name##_u8)                                                                                         \
    SB_DECLARE_LOOP(name##_u16)                                                                                        \
    SB_DECLARE_LOOP(name##_u32)                                                                                        \
    SB_DECLARE_LOOP(name##_u64)
#define SB_DECLARE_INTEGERS(name) SB_DECLARE_SIGNED(name) SB_DECLARE_UNSIGNED(name)

/* sb_unary_<op>_<type>: the context is an sb_unary_params. */
#define SB_DECLARE_UNARY(op, unused) SB_DECLARE_INTEGERS(sb_unary_##op)
#define SB_DECLARE_UNARY_SIGNED(op, unused) SB_DECLARE_SIGNED(sb_unary_##op)
SB_UNARY_LIGHT_INTEGERS(SB_DECLARE_UNARY, )
SB_UNARY_HEAVY_INTEGERS(SB_DECLARE_UNARY, )
SB_UNARY_SIGNED(SB_DECLARE_UNARY_SIGNED, )

/* sb_binary_<op>_<type>: the context of quotients is an sb_binary_context, the others have none. */
#define SB_DECLARE_BINARY(op, unused) SB_DECLARE_INTEGERS(sb_binary_##op)
SB_BINARY_INTEGERS(SB_DECLARE_BINARY, )
SB_BINARY_INTEGER_QUOTIENTS(SB_DECLARE_BINARY, )
SB_BINARY_COMPARISONS(SB_DECLARE_BINARY, )

/* sb_cast_<to>_from_<from> among b8 and the integers; also a type to itself, which copies. */
#define SB_DECLARE_CASTS(to) SB_DECLARE_LOOP(sb_cast_##to##_from_b8) SB_DECLARE_INTEGERS(sb_cast_##to##_from)
SB_DECLARE_CASTS(b8)
SB_DECLARE_CASTS(u8)
SB_DECLARE_CASTS(u16)
SB_DECLARE_CASTS(u32)
SB_DECLARE_CASTS(u64)
SB_DECLARE_CASTS(s8)
SB_DECLARE_CASTS(s16)
SB_DECLARE_CASTS(s32)
SB_DECLARE_CASTS(s64)

#undef SB_DECLARE_CASTS
#undef SB_DECLARE_BINARY
#undef SB_DECLARE_UNARY_SIGNED
#undef SB_DECLARE_UNARY
#undef SB_DECLARE_INTEGERS
#undef SB_DECLARE_UNSIGNED
#undef SB_DECLARE_SIGNED
#undef SB_DECLARE_LOOP

#endif
