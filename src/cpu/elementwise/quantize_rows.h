/* Row loops of QuantizeLinear and DequantizeLinear, once for each instruction set. */
#ifndef SB_CPU_ELEMENTWISE_QUANTIZE_ROWS_H
#define SB_CPU_ELEMENTWISE_QUANTIZE_ROWS_H

#include "base/isa.h"
#include "ops/quantize.h"
#include "tensor/walk.h"

/* Operands: output, input, scale, zero point; the context is an sb_quantize_types. Quantized types are integers
 * of 2 to 16 bits, or small floats (the last two); the input of quantizing is any float but f64, the output of dequantizing
 * f32, and the scale either or f8e8m0. */
typedef struct sb_quantize_rows {
    sb_walk_row *quantize, *dequantize, *quantize_to_floats, *dequantize_floats;
} sb_quantize_rows;

extern const sb_quantize_rows sb_quantize_rows_scalar;
#if SB_HAS_X86_KERNELS
extern const sb_quantize_rows sb_quantize_rows_avx2, sb_quantize_rows_avx512;
#endif

#endif
