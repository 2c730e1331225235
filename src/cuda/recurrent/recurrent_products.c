#include "cuda/recurrent/recurrent_products.h"

#include "cuda/contraction/product.h"
#include "ops/rows.h"

/* Rows of X as those of one matrix, if steps and batch rows are evenly spaced in either order; else a matrix for each step. */
static void place_rows(const sb_recurrent_extents *e, int64_t rows, sb_matmul_geometry *g,
                       sb_cuda_recurrent_products *products) {
    const bool steps_outside = e->steps == 1 || e->batch == 1 || e->x_step == e->batch * e->x_batch;
    const bool rows_outside = e->x_batch == e->steps * e->x_step;
    products->step = rows_outside && !steps_outside ? rows : e->batch * rows;
    products->batch = rows_outside && !steps_outside ? e->steps * rows : rows;
    g->m = e->steps * e->batch;
    g->a_row_stride = steps_outside ? e->batch == 1 ? e->x_step : e->x_batch : e->x_step;
    if (steps_outside || rows_outside)
        return;
    g->m = e->batch;
    g->a_row_stride = e->x_batch;
    g->batch_dims[g->batch_rank] = e->steps;
    g->a_batch_strides[g->batch_rank] = e->x_step;
    g->b_batch_strides[g->batch_rank++] = 0;
    g->batches *= e->steps;
}

sb_status sb_cuda_recurrent_multiply(sb_call *call, const sb_recurrent_params *params,
                                     const sb_recurrent_extents *extents, sb_cuda_recurrent_products *products) {
    const sb_tensor *x = sb_call_input(call, SB_RECURRENT_X), *w = sb_call_input(call, SB_RECURRENT_W);
    const sb_dtype computed = sb_computing_dtype(x->dtype);
    const int64_t rows = params->gates * extents->hidden;
    sb_tensor y = {.dtype = computed, .rank = 1, .strides = {1}};
    sb_matmul_geometry geometry = {.batches = params->directions,
                                   .n = rows,
                                   .k = extents->inputs,
                                   .a_k_stride = extents->x_feature,
                                   .b_k_stride = w->strides[2],
                                   .b_column_stride = w->strides[1]};
    void *memory;
    if (params->directions > 1) {
        geometry.batch_rank = 1;
        geometry.batch_dims[0] = params->directions;
        geometry.b_batch_strides[0] = w->strides[0];
    }
    place_rows(extents, rows, &geometry, products);
    products->direction = extents->steps * extents->batch * rows;
    y.dims[0] = params->directions * products->direction;
    products->bytes = (size_t)y.dims[0] * sb_dtype_size(computed);
    SB_TRY(sb_call_workspace(call, products->bytes, &memory));
    products->data = y.data = memory;
    return sb_cuda_product_alone(call, &geometry, x, w, &y);
}
