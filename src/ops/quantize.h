/* What quantization and faster kernels share. */
#ifndef IV_OPS_QUANTIZE_H
#define IV_OPS_QUANTIZE_H

#include "graph/op.h"

/* The element types of a quantization. */
typedef struct iv_quantize_types {
    iv_dtype output, input, scale;
    int64_t least, most; /* of the quantized type */
} iv_quantize_types;

/** Those of a call of QuantizeLinear or DequantizeLinear. */
iv_quantize_types iv_quantize_types_of(const iv_call *call);

/** Makes the output of QuantizeLinear or DequantizeLinear, and gives `part` views of output, input,
 * scale and zero point (NULL where omitted), the latter two broadcast to the former: all at once, or
 * block by block where scales come in blocks. */
iv_status iv_quantize_parts(iv_call *call,
                            iv_status (*part)(iv_call *call, const iv_quantize_types *types,
                                              const iv_tensor *const operands[4]));

#endif
