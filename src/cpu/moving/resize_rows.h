/* Interpolation along one axis in f32, one function per instruction set. */
#ifndef SB_CPU_MOVING_RESIZE_ROWS_H
#define SB_CPU_MOVING_RESIZE_ROWS_H

#include <stdint.h>

#include "base/isa.h"
#include "ops/resize.h"

/** Makes line x of out (`axis->out` lines of `inner` floats) of those of `from` (`axis->in` lines): each element is the chain
 * acc = fma((float)weight, element, acc) over the taps in ascending order, from +0. `out` overlaps nothing. Pure. */
typedef void sb_resize_lines(const sb_resize_axis *axis, int64_t inner, const float *from, float *out);

/** The same for lines of one element, `count` of them: tap t of line x is from[places[t * stride + x]] and weighs weights[t * stride + x]. */
typedef void sb_resize_elements(int taps, int64_t count, int64_t stride, const int32_t *places, const float *weights,
                                const float *from, float *out);

extern sb_resize_lines sb_resize_lines_scalar;
extern sb_resize_elements sb_resize_elements_scalar;
#if SB_HAS_X86_KERNELS
extern sb_resize_lines sb_resize_lines_avx2, sb_resize_lines_avx512;
extern sb_resize_elements sb_resize_elements_avx2, sb_resize_elements_avx512;
#endif

#endif
