#include "ops/element_type.h"

#include "graph/op.h"

iv_dtype iv_element_type(int64_t number) {
    static const iv_dtype dtypes[] = {
        [1] = IV_F32,  [2] = IV_U8,   [3] = IV_S8,     [4] = IV_U16,   [5] = IV_S16,
        [6] = IV_S32,  [7] = IV_S64,  [8] = IV_STRING, [9] = IV_BOOL,  [10] = IV_F16,
        [11] = IV_F64, [12] = IV_U32, [13] = IV_U64,   [16] = IV_BF16,
    };
    int64_t count = sizeof dtypes / sizeof dtypes[0];
    return number >= 0 && number < count ? dtypes[number] : IV_DTYPE_NONE;
}

iv_status iv_node_element_type(const iv_node *node, const char *name, iv_dtype otherwise,
                               iv_dtype *dtype, iv_error *error) {
    int64_t number;
    IV_TRY(iv_node_int(node, name, 0, &number, error));
    *dtype = number == 0 ? otherwise : iv_element_type(number);
    if (*dtype == IV_DTYPE_NONE && number != 0)
        return iv_fail(
            error, IV_ERROR_UNSUPPORTED,
            "node %s (%s): attribute %s asks for ONNX element type %lld, which Invar does "
            "not have",
            node->name, node->op->name, name, (long long)number);
    return IV_OK;
}
