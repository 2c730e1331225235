/* Row loops of QuantizeLinear and DequantizeLinear, once for each instruction set. */
#ifndef SB_CPU_ELEMENTWISE_QUANTIZE_ROWS_H
#define SB_CPU_ELEMENTWISE_QUANTIZE_ROWS_H

#include "base/isa.h"
#include "ops/quantize.h"
#include "tensor/walk.h"

/* Operands: output, input, scale, zero point; the context is an sb_quantize_types. Quantized types have 8 or 16 bits; the
 * input and the scale of `quantize` are any floats but f64, those of `dequantize` f32. */
typedef struct sb_quantize_rows {
    sb_walk_row *quantize, *dequantize;
} sb_quantize_rows;

extern const sb_quantize_rows sb_quantize_rows_scalar;
#if SB_HAS_X86_KERNELS
extern const sb_quantize_rows sb_quantize_rows_avx2, sb_quantize_rows_avx512;
#endif

#endif
