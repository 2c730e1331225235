/* Convolutions in f32 as products, one kernel for each shape of tiles. */
#include "cuda/contraction/patch.cuh"
#include "cuda/contraction/tile_kernel.cuh"

struct sb_convolution_sources {
    sb_tile_source a;
    sb_patch_source b;
};

SB_CUDA_FUNCTION sb_convolution_sources sb_tile_open_both(const sb_cuda_convolution *p, int64_t group, int64_t m,
                                                          int64_t n, int rows, int columns, int threads) {
    const sb_cuda_contraction *base = &p->base;
    return {sb_tile_open(&base->a, base->a.data + group * p->a_group + m * base->a.step, base->m - m, rows, threads),
            sb_patch_open(p, group, n, columns)};
}

SB_CUDA_FUNCTION void sb_tile_fetch_right(const sb_cuda_convolution *p, sb_patch_source *source, float *to,
                                          int64_t left, int extent, int depth, int threads) {
    sb_patch_fetch(p, source, to, left, extent, depth, threads);
}

SB_CUDA_FUNCTION void sb_tile_store_group(const sb_cuda_convolution *p, int64_t group, int64_t row, int64_t column,
                                          int width, const float *chains) {
    sb_patch_store(p, group, row, column, width, chains);
}

#define KERNEL(m, n, ...) SB_TILE_KERNEL(sb_cuda_conv_f32_##m##x##n, sb_cuda_convolution, m, n, __VA_ARGS__)
SB_TILE_SHAPES(KERNEL)
