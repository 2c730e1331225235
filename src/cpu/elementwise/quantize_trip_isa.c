/* The row loops of values that go through an integer, compiled once per instruction set. */
#include "base/isa.h"
#include "cpu/elementwise/quantize_trip.h"
#include "numerics/scalar.h"
#include "ops/loops.h"

/* The quotient is cut to before it is rounded: the range's ends are integers, so that nothing else comes out, and what is
 * left is small enough for the sum that rounds. */
static inline float trip(const sb_quantize_trip *trip, float x) {
    float quotient = sb_div_f32(x, trip->scale);
    quotient = quotient == quotient ? quotient : 0.0f;
    quotient = quotient > trip->most ? trip->most : quotient;
    quotient = quotient < trip->least ? trip->least : quotient;
    return ((quotient + SB_QUANTIZE_ROUNDING) - trip->rounded) * trip->factor;
}

#define TRIP(x) trip(context, x)
SB_UNARY_LOOP(trip_f32, const sb_quantize_trip, float, float, TRIP)

#define RETURN(x) ((float)((int32_t)(x)-context->zero) * context->scale)
SB_UNARY_LOOP(return_u8, const sb_quantize_return, float, uint8_t, RETURN)
SB_UNARY_LOOP(return_s8, const sb_quantize_return, float, int8_t, RETURN)
SB_UNARY_LOOP(return_u16, const sb_quantize_return, float, uint16_t, RETURN)
SB_UNARY_LOOP(return_s16, const sb_quantize_return, float, int16_t, RETURN)

SB_DECLARE_LOOPS(sb_quantize_trip_loops, 1)
sb_walk_row *const SB_ISA_NAME(sb_quantize_trip_loops)[1][SB_DTYPE_COUNT] = {{[SB_F32] = trip_f32}};
SB_DECLARE_LOOPS(sb_quantize_return_loops, 1)
sb_walk_row *const SB_ISA_NAME(sb_quantize_return_loops)[1][SB_DTYPE_COUNT] = {
    {[SB_U8] = return_u8, [SB_S8] = return_s8, [SB_U16] = return_u16, [SB_S16] = return_s16}};
