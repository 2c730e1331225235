/* What becomes of the finished chains of matrix products in f32, for the kernels of every shape of tiles. */
#ifndef SB_CUDA_CONTRACTION_GEMM_F32_CUH
#define SB_CUDA_CONTRACTION_GEMM_F32_CUH

#include "cuda/common/index.cuh"
#include "cuda/contraction/tile.cuh"
#include "numerics/scalar.h"

/* Finishes and stores neighbours of a row. */
SB_CUDA_FUNCTION void sb_product_store(const sb_cuda_matmul *p, int64_t batch, int64_t row, int64_t column, int width,
                                       const float *chains) {
    const sb_cuda_contraction *base = &p->base;
    float *y = base->y + batch * p->y_batch + row * base->y_row + column * base->y_column;
    int64_t left = base->n - column;
    int count = left < width ? (int)left : width;
    if (base->plain && count == 4 && base->vectors) {
        sb_tile_put(y, width, chains);
        return;
    }
    sb_cuda_epilogue_place place;
    sb_cuda_epilogue_begin(&base->epilogue, batch, &place);
    place.row = row;
    place.column = column;
    sb_tile_store(base, &place, y, width, count, base->vectors, chains);
}

#endif
