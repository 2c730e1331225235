/* Matrix products in f32, one kernel for each shape of tiles. */
#include "cuda/common/index.cuh"
#include "cuda/contraction/tile_kernel.cuh"

struct sb_product_sources {
    sb_tile_source a, b;
};

SB_CUDA_FUNCTION sb_product_sources sb_tile_open_both(const sb_cuda_matmul *p, int64_t batch, int64_t m, int64_t n,
                                                      int rows, int columns, int threads) {
    const sb_cuda_operand *a = &p->base.a, *b = &p->base.b;
    int64_t a_offset = 0, b_offset = 0, rest = batch;
    SB_CUDA_KEEP_LOOP
    for (int d = p->rank - 1; d >= 0; d--) {
        int64_t at = sb_cuda_take(&rest, p->dims[d]);
        a_offset += at * p->a_steps[d];
        b_offset += at * p->b_steps[d];
    }
    return {sb_tile_open(a, a->data + a_offset + m * a->step, p->base.m - m, rows, threads),
            sb_tile_open(b, b->data + b_offset + n * b->step, p->base.n - n, columns, threads)};
}

SB_CUDA_FUNCTION void sb_tile_fetch_right(const sb_cuda_matmul *p, sb_tile_source *source, float *to, int64_t left,
                                          int extent, int depth, int threads) {
    sb_tile_fetch(source, to, left, extent, depth, threads);
}

/* Finishes and stores neighbours of a row. */
SB_CUDA_FUNCTION void sb_tile_store_group(const sb_cuda_matmul *p, int64_t batch, int64_t row, int64_t column,
                                          int width, const float *chains) {
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

#define KERNEL(m, n, ...) SB_TILE_KERNEL(sb_cuda_matmul_f32_##m##x##n, sb_cuda_matmul, m, n, __VA_ARGS__)
SB_TILE_SHAPES(KERNEL)
