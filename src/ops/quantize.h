/* What quantization and faster kernels share. */
#ifndef SB_OPS_QUANTIZE_H
#define SB_OPS_QUANTIZE_H

#include "graph/op.h"

/* The element types of a quantization. */
typedef struct sb_quantize_types {
    sb_dtype output, input, scale;
    sb_dtype precision;  /* of the quotient: SB_F32, SB_F16 or SB_BF16 */
    int saturate;        /* to small floats */
    bool has_zero;       /* of a quantization to small floats: whether a zero point is added */
    int64_t least, most; /* of the quantized type, if that is an integer */
} sb_quantize_types;

/** Those of a call of QuantizeLinear or DequantizeLinear. */
sb_quantize_types sb_quantize_types_of(const sb_call *call);

/* Added to a float of magnitude below 2^22, and taken off again, it leaves the nearest integer, ties to even, and never -0. */
#define SB_QUANTIZE_ROUNDING 12582912.0f

/* A quantization that is element-wise: from f32 to an integer of 8 or 16 bits, or back, with one scale and one zero point
 * that are known beforehand. */
typedef struct sb_quantize_single {
    float scale;
    int32_t zero, least, most; /* the latter two of the integer's range */
} sb_quantize_single;

/** Whether a QuantizeLinear or DequantizeLinear of a graph is one. `inputs` NULL: constants are the graph's own; else it is the
 * body of a fused node, whose inputs have these facts, NULL where unknown. */
bool sb_quantize_is_single(const sb_graph *graph, const sb_fact *const *inputs, const sb_node *node,
                           sb_quantize_single *single);

/** Scale and zero point by which DynamicQuantizeLinear quantizes what lies within [least, most], stored where the call wants them. */
sb_status sb_quantize_store_range(sb_call *call, float least, float most, float *scale, uint8_t *zero);

/** Makes the output of QuantizeLinear or DequantizeLinear unless it is there, and gives `part` views of output, input,
 * scale and zero point (NULL where omitted), the latter two broadcast to the former: all at once, or
 * block by block where scales come in blocks. */
sb_status sb_quantize_parts(sb_call *call, sb_status (*part)(sb_call *call, const sb_quantize_types *types,
                                                             const sb_tensor *const operands[4]));

#endif
