#include "cpu/elementwise/quantize_trip.h"

#include "base/isa.h"
#include "ops/loops.h"

SB_DECLARE_LOOPS(sb_quantize_trip_loops, 1)
SB_DECLARE_LOOPS(sb_quantize_return_loops, 1)

sb_quantize_trip sb_quantize_trip_of(const sb_quantize_single *there, const sb_quantize_single *back) {
    return (sb_quantize_trip){.scale = there->scale,
                              .least = (float)(there->least - there->zero),
                              .most = (float)(there->most - there->zero),
                              .rounded = SB_QUANTIZE_ROUNDING - (float)(there->zero - back->zero),
                              .factor = back->scale};
}

sb_walk_row *sb_quantize_trip_loop(sb_isa isa) {
    return SB_PICK_LOOPS(sb_quantize_trip_loops, isa)[0][SB_F32];
}

sb_walk_row *sb_quantize_return_loop(sb_isa isa, sb_dtype integer) {
    return SB_PICK_LOOPS(sb_quantize_return_loops, isa)[0][integer];
}
