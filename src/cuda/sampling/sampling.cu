/* Sampling of images: in f64, one thread for each element of the output. */
#include "cuda/common/index.cuh"
#include "cuda/sampling/sampling_parameters.h"

SB_CUDA_KERNEL(sb_cuda_sample_grid, sb_cuda_grid_sample, p) {
    SB_CUDA_EACH(index, p->elements) {
        sb_sample_taps taps[SB_SAMPLE_AXES];
        int64_t batch = index, point = sb_cuda_take(&batch, p->points);
        int64_t channel = sb_cuda_take(&batch, p->channels);
        int axes = p->source.axes;
        /* A grid point lists the last axis first. */
        for (int d = 0; d < axes; d++)
            sb_sample_find_taps(
                &p->params, sb_number_load(p->grid_dtype, p->grid, (batch * p->points + point) * axes + axes - 1 - d),
                p->extents[d], &taps[d]);
        sb_number_store(p->source.dtype, p->out, index,
                        sb_sample_interpolate(&p->source, taps, batch * p->batch_stride + channel * p->channel_stride));
    }
}

SB_CUDA_KERNEL(sb_cuda_make_affine_grid, sb_cuda_affine_grid, p) {
    SB_CUDA_EACH(index, p->elements) {
        int64_t at[3], batch = index, r = sb_cuda_take(&batch, p->axes);
        double sum = 0.0;
        for (int d = p->axes - 1; d >= 0; d--)
            at[d] = sb_cuda_take(&batch, p->extents[d]);
        for (int c = 0; c <= p->axes; c++) {
            int d = p->axes - 1 - c; /* x is the last axis */
            double x = d < 0 ? 1.0 : sb_sample_grid_coordinate(p->align_corners, at[d], p->extents[d]);
            sum = sb_fma_f64(sb_number_load(p->dtype, p->theta, (batch * p->axes + r) * (p->axes + 1) + c), x, sum);
        }
        sb_number_store(p->dtype, p->out, index, sum);
    }
}

/* Takes an element's number apart; the batch is -1, with a fault, when it is none. */
#define REGION(of_region)                                                                                              \
    int64_t region = index, column = sb_cuda_take(&region, p->params.width);                                           \
    int64_t row = sb_cuda_take(&region, p->params.height);                                                             \
    int64_t channel = sb_cuda_take(&region, p->channels), batch = of_region;                                           \
    int64_t plane = batch * p->image.strides[0] + channel * p->image.strides[1];                                       \
    if (batch < 0 || batch >= p->image.dims[0]) {                                                                      \
        *p->fault = SB_FAULT_INDEX;                                                                                    \
        continue;                                                                                                      \
    }

SB_CUDA_KERNEL(sb_cuda_roi_align, sb_cuda_regions, p) {
    SB_CUDA_EACH(index, p->elements) {
        sb_region_axis rows, columns;
        REGION(sb_cuda_index(p->batches, p->wide, region))
        sb_region_align(&p->params, &p->image, p->dtype, p->regions, region, &rows, &columns);
        sb_number_store(p->image.dtype, p->out, index,
                        rows.grid == 0 ? 0.0
                                       : sb_region_average(&p->params, &p->image, plane, &rows, &columns, row, column));
    }
}

SB_CUDA_KERNEL(sb_cuda_max_roi_pool, sb_cuda_regions, p) {
    SB_CUDA_EACH(index, p->elements) {
        int64_t box[4];
        REGION(sb_i64_from_f64(sb_number_load(p->dtype, p->regions, region * 5)))
        for (int i = 0; i < 4; i++)
            box[i] = sb_region_pool_index(&p->params, sb_number_load(p->dtype, p->regions, region * 5 + 1 + i));
        sb_number_store(p->image.dtype, p->out, index,
                        sb_region_maximum(&p->params, &p->image, plane, box, row, column));
    }
}
