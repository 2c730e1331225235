/* Element types as ONNX numbers them in attributes such as `to` and `dtype`. */
#ifndef IV_OPS_ELEMENT_TYPE_H
#define IV_OPS_ELEMENT_TYPE_H

#include "graph/graph.h"

/** The dtype of ONNX's TensorProto.DataType `number`; IV_DTYPE_NONE where Invar has none. */
iv_dtype iv_element_type(int64_t number);

/** The attribute `name` as a dtype; `otherwise` where it is absent or 0. UNSUPPORTED, naming the
 * node, for types that Invar does not have (8-bit and smaller floats, 4-bit integers, complex
 * numbers). */
iv_status iv_node_element_type(const iv_node *node, const char *name, iv_dtype otherwise,
                               iv_dtype *dtype, iv_error *error);

#endif
