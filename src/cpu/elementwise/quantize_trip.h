/* Values that go through an integer of 8 or 16 bits and back, as quantized networks put every value: QuantizeLinear, and
 * DequantizeLinear behind it, each with one scale and one zero point, without the integers in between. */
#ifndef SB_CPU_ELEMENTWISE_QUANTIZE_TRIP_H
#define SB_CPU_ELEMENTWISE_QUANTIZE_TRIP_H

#include "ops/quantize.h"

/* y = n factor, where n is x / scale, cut to [least, most] and rounded, ties to even, with the zero point there added and the
 * one back taken off; NaN counts as 0 before. All of them integers, and exact. */
typedef struct sb_quantize_trip {
    float scale, least, most;
    float rounded; /* SB_QUANTIZE_ROUNDING, with both zero points */
    float factor;
} sb_quantize_trip;

/** The trip by `there` and back by `back`. */
sb_quantize_trip sb_quantize_trip_of(const sb_quantize_single *there, const sb_quantize_single *back);

/* y = (x - zero) scale of an integer. */
typedef struct sb_quantize_return {
    int32_t zero;
    float scale;
} sb_quantize_return;

/** The row loop of a trip: operands y and x, both f32; the context is an sb_quantize_trip. They may be the same. */
sb_walk_row *sb_quantize_trip_loop(sb_isa isa);

/** The row loop of the way back alone: operands y of f32 and x of `integer`; the context is an sb_quantize_return. */
sb_walk_row *sb_quantize_return_loop(sb_isa isa, sb_dtype integer);

#endif
