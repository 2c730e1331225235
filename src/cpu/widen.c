#include "cpu/widen.h"

#include <string.h>

#include "cpu/spread.h"
#include "ops/convert_loops.h"

/* A tensor of f32 at `data` with the extents and strides of `like`. */
static void describe(sb_tensor *tensor, const sb_tensor *like, void *data) {
    tensor->dtype = SB_F32;
    tensor->rank = like->rank;
    tensor->storage = NULL;
    tensor->data = data;
    memcpy(tensor->dims, like->dims, sizeof tensor->dims);
    memcpy(tensor->strides, like->strides, sizeof tensor->strides);
}

/* x with each element once: dimensions that repeat have an extent of 1. */
static void leave_out_repeats(const sb_tensor *x, sb_tensor *once) {
    describe(once, x, x->data);
    once->dtype = x->dtype;
    for (int d = 0; d < x->rank; d++) {
        if (x->strides[d] == 0 && x->dims[d] > 1)
            once->dims[d] = 1;
    }
}

sb_status sb_widen(sb_call *call, const sb_tensor *x, sb_tensor *wide) {
    if (x->dtype == SB_F32) {
        describe(wide, x, x->data);
        return SB_OK;
    }
    sb_tensor once = {.rank = 0};
    int order[SB_MAX_RANK];
    int64_t elements, stride = 1;
    void *memory;
    leave_out_repeats(x, &once);
    SB_TRY(sb_count_elements(SB_F32, once.rank, once.dims, &elements, call->error));
    SB_TRY(sb_call_workspace(call, (size_t)elements * sizeof(float), &memory));
    describe(wide, &once, memory);
    sb_memory_order(&once, order);
    for (int i = once.rank - 1; i >= 0; i--) {
        wide->strides[order[i]] = stride;
        stride *= once.dims[order[i]];
    }
    if (elements > 0)
        sb_spread_run(call, sb_convert_loop_for(call->isa, SB_F32, x->dtype), NULL, wide, 1, (sb_tensor *[]){&once});
    for (int d = 0; d < x->rank; d++) {
        wide->strides[d] = once.dims[d] == x->dims[d] ? wide->strides[d] : 0;
        wide->dims[d] = x->dims[d];
    }
    return SB_OK;
}

sb_status sb_widen_output(sb_call *call, const sb_tensor *y, sb_tensor *wide) {
    void *memory = y->data;
    int64_t elements;
    if (y->dtype != SB_F32) {
        SB_TRY(sb_count_elements(SB_F32, y->rank, y->dims, &elements, call->error));
        SB_TRY(sb_call_workspace(call, (size_t)elements * sizeof(float), &memory));
    }
    describe(wide, y, memory);
    return SB_OK;
}

void sb_narrow(sb_call *call, const sb_tensor *wide, sb_tensor *y) {
    if (y->dtype == SB_F32 || sb_tensor_elements(y) == 0)
        return;
    sb_tensor from = {.rank = 0};
    describe(&from, wide, wide->data);
    sb_spread_run(call, sb_convert_loop_for(call->isa, y->dtype, SB_F32), NULL, y, 1, (sb_tensor *[]){&from});
}
