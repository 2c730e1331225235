#include "cpu/rows/factor.h"

#include "ops/convert_loops.h"

sb_status sb_load_factor(sb_call *call, int index, const float **factor) {
    sb_tensor *tensor;
    void *values;
    *factor = NULL;
    if (sb_call_input(call, index) == NULL)
        return SB_OK;
    SB_TRY(sb_call_contiguous(call, index, &tensor));
    int64_t count = sb_tensor_elements(tensor);
    sb_status status = sb_call_workspace(call, (size_t)count * sizeof(float), &values);
    if (status == SB_OK) {
        sb_convert_loop_for(call->isa, SB_F32,
                            tensor->dtype)(NULL, count, (char *const[]){values, tensor->data},
                                           (const int64_t[]){sizeof(float), (int64_t)sb_dtype_size(tensor->dtype)});
        *factor = values;
    }
    sb_tensor_release(tensor);
    return status;
}
