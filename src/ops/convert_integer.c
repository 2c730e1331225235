/* The loops of Cast among truth values and integers. */
#include "ops/convert_values.h"
#include "ops/dense_loops.h"
#include "ops/integer_loops.h"

#define LOOP(from, from_type, kind, load, to, to_type)                                                                 \
    static inline to_type value_##to##_from_##from(from_type value) {                                                  \
        return (to_type)SB_TO_##to##_FROM_##kind(SB_FROM_##kind(load(value)));                                         \
    }                                                                                                                  \
    SB_DENSE_UNARY(sb_cast_##to##_from_##from, to_type, from_type, value_##to##_from_##from)
#define LOOPS(to, to_type) SB_CONVERT_INTEGERS(LOOP, to, to_type)

LOOPS(b8, uint8_t)
LOOPS(u8, uint8_t)
LOOPS(u16, uint16_t)
LOOPS(u32, uint32_t)
LOOPS(u64, uint64_t)
LOOPS(s8, int8_t)
LOOPS(s16, int16_t)
LOOPS(s32, int32_t)
LOOPS(s64, int64_t)
