#include "cpu/channels_last.h"

#include <string.h>

#include "cpu/spread.h"
#include "ops/contraction.h"
#include "ops/convert_loops.h"

/* Which dimension comes at place `d` of memory. */
static int dimension_at(int rank, int d) {
    return d == 0 ? 0 : d == rank - 1 ? 1 : d + 1;
}

sb_status sb_channels_last_output(sb_call *call, int rank, sb_tensor **y) {
    int order[SB_MAX_RANK] = {0};
    for (int d = 0; d < rank; d++)
        order[d] = dimension_at(rank, d);
    return sb_call_output_ordered(call, 0, order, y);
}

sb_status sb_channels_last_copy(sb_call *call, const sb_tensor *x, const float **copy, int64_t *strides) {
    int64_t dims[SB_MAX_RANK], from[SB_MAX_RANK], dense[SB_MAX_RANK];
    void *memory;
    for (int d = 0; d < x->rank; d++) {
        dims[d] = x->dims[dimension_at(x->rank, d)];
        from[d] = x->strides[dimension_at(x->rank, d)];
    }
    sb_row_major_strides(x->rank, dims, dense);
    SB_TRY(sb_call_workspace(call, (size_t)sb_tensor_elements(x) * sizeof(float), &memory));
    sb_gather_dense(sizeof(float), x->rank, dims, from, x->data, memory);
    *copy = memory;
    memcpy(strides, dense, (size_t)(x->rank - 1) * sizeof *strides);
    return SB_OK;
}

sb_status sb_channels_last_widen(sb_call *call, sb_tensor *x, const float **copy, int64_t *strides) {
    sb_tensor wide = {.dtype = SB_F32, .rank = x->rank};
    void *memory;
    SB_TRY(sb_call_workspace(call, (size_t)sb_tensor_elements(x) * sizeof(float), &memory));
    memcpy(wide.dims, x->dims, sizeof wide.dims);
    wide.data = memory;
    wide.strides[1] = 1;
    int64_t step = x->dims[1];
    for (int d = x->rank - 1; d > 1; step *= x->dims[d--])
        wide.strides[d] = step;
    wide.strides[0] = step;
    sb_spread_run(call, sb_convert_loop_for(call->isa, SB_F32, x->dtype), NULL, &wide, 1, &x);
    *copy = memory;
    strides[0] = wide.strides[0];
    memcpy(strides + 1, wide.strides + 2, (size_t)(x->rank - 2) * sizeof *strides);
    return SB_OK;
}
