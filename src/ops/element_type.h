/* Element types as ONNX numbers them in attributes such as `to` and `dtype`. */
#ifndef SB_OPS_ELEMENT_TYPE_H
#define SB_OPS_ELEMENT_TYPE_H

#include "graph/graph.h"

/** The dtype of ONNX's TensorProto.DataType `number`; SB_DTYPE_NONE where Samebit has none. */
sb_dtype sb_element_type(int64_t number);

/** The attribute `name` as a dtype; `otherwise` where it is absent or 0. UNSUPPORTED, naming the node, for types that
 * Samebit does not have (complex numbers, and what newer versions of ONNX may add). */
sb_status sb_node_element_type(const sb_node *node, const char *name, sb_dtype otherwise, sb_dtype *dtype,
                               sb_error *error);

#endif
