/* Turning heads on the host, for kernels that do so besides other things. */
#ifndef SB_CPU_ROWS_ROTARY_H
#define SB_CPU_ROWS_ROTARY_H

#include "base/isa.h"
#include "ops/rotary.h"

/** Turns `half` pairs of a head by cosines `c` and sines `s`: elements i and half + i, or interleaved 2i and 2i + 1. */
typedef void sb_rotary_turn(bool interleaved, int64_t half, const float *c, const float *s, const float *x, float *y);

extern sb_rotary_turn sb_rotary_turn_scalar;
#if SB_HAS_X86_KERNELS
extern sb_rotary_turn sb_rotary_turn_avx2, sb_rotary_turn_avx512;
#endif

/** Turns all tokens of a checked call, on its workers. */
void sb_cpu_rotary_run(const sb_call *call, const sb_rotary *rotary);

#endif
