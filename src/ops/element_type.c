#include "ops/element_type.h"

#include "graph/op.h"

sb_dtype sb_element_type(int64_t number) {
    static const sb_dtype dtypes[] = {
        [1] = SB_F32,         [2] = SB_U8,      [3] = SB_S8,          [4] = SB_U16,   [5] = SB_S16,
        [6] = SB_S32,         [7] = SB_S64,     [8] = SB_STRING,      [9] = SB_BOOL,  [10] = SB_F16,
        [11] = SB_F64,        [12] = SB_U32,    [13] = SB_U64,        [16] = SB_BF16, [17] = SB_F8E4M3FN,
        [18] = SB_F8E4M3FNUZ, [19] = SB_F8E5M2, [20] = SB_F8E5M2FNUZ, [21] = SB_U4,   [22] = SB_S4,
        [23] = SB_F4E2M1,     [24] = SB_F8E8M0, [25] = SB_U2,         [26] = SB_S2,   [27] = SB_F6E2M3,
        [28] = SB_F6E3M2,
    };
    int64_t count = sizeof dtypes / sizeof dtypes[0];
    return number >= 0 && number < count ? dtypes[number] : SB_DTYPE_NONE;
}

sb_status sb_node_element_type(const sb_node *node, const char *name, sb_dtype otherwise, sb_dtype *dtype,
                               sb_error *error) {
    int64_t number;
    SB_TRY(sb_node_int(node, name, 0, &number, error));
    *dtype = number == 0 ? otherwise : sb_element_type(number);
    if (*dtype == SB_DTYPE_NONE && number != 0)
        return sb_fail(error, SB_ERROR_UNSUPPORTED,
                       "node %s (%s): attribute %s asks for ONNX element type %lld, which Samebit does "
                       "not have",
                       node->name, node->op->name, name, (long long)number);
    return SB_OK;
}
