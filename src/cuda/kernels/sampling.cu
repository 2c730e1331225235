/* Sampling of images: in f64, one thread for each element of the output. */
#include "cuda/kernels/sampling_parameters.h"
#include "cuda/kernels/index.cuh"

IV_CUDA_KERNEL(iv_cuda_sample_grid, iv_cuda_grid_sample, p) {
    IV_CUDA_EACH(index, p->elements) {
        iv_sample_taps taps[IV_SAMPLE_AXES];
        int64_t batch = index, point = iv_cuda_take(&batch, p->points);
        int64_t channel = iv_cuda_take(&batch, p->channels);
        int axes = p->source.axes;
        /* A grid point lists the last axis first. */
        for (int d = 0; d < axes; d++)
            iv_sample_find_taps(&p->params,
                                iv_number_load(p->grid_dtype, p->grid,
                                               (batch * p->points + point) * axes + axes - 1 - d),
                                p->extents[d], &taps[d]);
        iv_number_store(p->source.dtype, p->out, index,
                        iv_sample_interpolate(&p->source, taps,
                                              batch * p->batch_stride +
                                                  channel * p->channel_stride));
    }
}

IV_CUDA_KERNEL(iv_cuda_make_affine_grid, iv_cuda_affine_grid, p) {
    IV_CUDA_EACH(index, p->elements) {
        int64_t at[3], batch = index, r = iv_cuda_take(&batch, p->axes);
        double sum = 0.0;
        for (int d = p->axes - 1; d >= 0; d--)
            at[d] = iv_cuda_take(&batch, p->extents[d]);
        for (int c = 0; c <= p->axes; c++) {
            int d = p->axes - 1 - c; /* x is the last axis */
            double x = d < 0 ? 1.0
                             : iv_sample_grid_coordinate(p->align_corners, at[d], p->extents[d]);
            sum = iv_fma_f64(
                iv_number_load(p->dtype, p->theta, (batch * p->axes + r) * (p->axes + 1) + c), x,
                sum);
        }
        iv_number_store(p->dtype, p->out, index, sum);
    }
}

/* Takes an element's number apart; the batch is -1, with a fault, when it is none. */
#define REGION(of_region)                                                                          \
    int64_t region = index, column = iv_cuda_take(&region, p->params.width);                       \
    int64_t row = iv_cuda_take(&region, p->params.height);                                         \
    int64_t channel = iv_cuda_take(&region, p->channels), batch = of_region;                       \
    int64_t plane = batch * p->image.strides[0] + channel * p->image.strides[1];                   \
    if (batch < 0 || batch >= p->image.dims[0]) {                                                  \
        *p->fault = IV_CUDA_FAULT_INDEX;                                                           \
        continue;                                                                                  \
    }

IV_CUDA_KERNEL(iv_cuda_roi_align, iv_cuda_regions, p) {
    IV_CUDA_EACH(index, p->elements) {
        iv_region_axis rows, columns;
        REGION(iv_cuda_index(p->batches, p->wide, region))
        iv_region_align(&p->params, &p->image, p->dtype, p->regions, region, &rows, &columns);
        iv_number_store(p->image.dtype, p->out, index,
                        rows.grid == 0 ? 0.0
                                       : iv_region_average(&p->params, &p->image, plane, &rows,
                                                           &columns, row, column));
    }
}

IV_CUDA_KERNEL(iv_cuda_max_roi_pool, iv_cuda_regions, p) {
    IV_CUDA_EACH(index, p->elements) {
        int64_t box[4];
        REGION(iv_i64_from_f64(iv_number_load(p->dtype, p->regions, region * 5)))
        for (int i = 0; i < 4; i++)
            box[i] = iv_region_pool_index(
                &p->params, iv_number_load(p->dtype, p->regions, region * 5 + 1 + i));
        iv_number_store(p->image.dtype, p->out, index,
                        iv_region_maximum(&p->params, &p->image, plane, box, row, column));
    }
}
