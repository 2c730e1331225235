/* The range of rows of f32 and their numbers of 8 bits, for DynamicQuantizeLinear: one function per instruction set. */
#ifndef SB_CPU_ROWS_RANGE_ROWS_H
#define SB_CPU_ROWS_RANGE_ROWS_H

#include <stdint.h>

#include "base/isa.h"

/** Widens [*least, *most] to `count` elements `step` apart, by sb_min_f32 and sb_max_f32, which give the same in any order. */
typedef void sb_range_row(int64_t count, const float *x, int64_t step, float *least, float *most);

/** y[i] = clamp(round(x[i] / scale) + zero) as sb_quantize_value has it for u8; both `step`s in elements. */
typedef void sb_range_quantize(int64_t count, const float *x, int64_t x_step, float scale, uint8_t zero, uint8_t *y,
                               int64_t y_step);

extern sb_range_row sb_range_row_scalar;
extern sb_range_quantize sb_range_quantize_scalar;
#if SB_HAS_X86_KERNELS
extern sb_range_row sb_range_row_avx2, sb_range_row_avx512;
extern sb_range_quantize sb_range_quantize_avx2, sb_range_quantize_avx512;
#endif

#endif
